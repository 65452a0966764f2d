"""Are the statistics of comparisons right? False alarms, coverage and power of simulated pairs of runs.

Run: ``python benchmarks/calibration.py [--plot calibration.svg]``. Prints the table of ``docs/regressions.md``.

Every simulated run answers cases that differ in difficulty. Both runs answer the same cases, independently given the
difficulty; the second is worse by a known drop. The intervals use the package's own weights and quantile rule. Three
metrics: binary (a case is right or wrong), bounded (a score between 0 and 1), micro-F1 (a formula over summed counts).
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import ndtr, ndtri
from tabulate import tabulate

from pytest_llmeval.scoring.comparison.inference import FEW_CHANGED
from pytest_llmeval.scoring.comparison.significance import mcnemar_tails, two_sided
from pytest_llmeval.scoring.resample import resampled_totals

SIZES = (50, 200, 1000)
DROPS = (0.0, 0.02, 0.05, 0.1)
SIMULATIONS, RESAMPLES, CHUNK = 4_000, 2_000, 500
LEVEL = 0.05
SEED = 11

Array = np.ndarray
Counts = list[Array]


def difficulty(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Chances between 0.2 and 0.9 with mean 2/3, so that a drop of 0.1 leaves every chance above 0."""
    return 0.2 + 0.7 * rng.beta(4, 2, shape)


def binary(rng: np.random.Generator, chance: Array) -> Counts:
    return [(rng.random(chance.shape) < chance).astype(float)]


def bounded(rng: np.random.Generator, chance: Array) -> Counts:
    return [rng.beta(5 * chance, 5 * (1 - chance))]


def micro_f1(rng: np.random.Generator, chance: Array) -> Counts:
    gold = 1 + rng.poisson(3, chance.shape)
    hits = rng.binomial(gold, chance)
    return [hits.astype(float), rng.poisson(gold * (1 - chance)).astype(float), (gold - hits).astype(float)]


def mean(sums: Counts, cases: int) -> Array:
    return sums[0] / cases


def f1(sums: Counts, _cases: int) -> Array:
    return 2 * sums[0] / (2 * sums[0] + sums[1] + sums[2])


@dataclass(frozen=True)
class World:
    """A metric, and how runs are simulated."""

    name: str
    answer: Callable[[np.random.Generator, Array], Counts]
    formula: Callable[[Counts, int], Array]
    rare: bool = False


WORLDS = (
    World("binary", binary, mean),
    World("bounded", bounded, mean),
    World("micro-F1", micro_f1, f1),
    World("binary, 2 % wrong", binary, mean, rare=True),
)


@dataclass(frozen=True)
class Share:
    """What a setting came to, as shares of its simulations."""

    outside: float
    covered: float
    found: float
    bca_outside: float
    bca_covered: float
    mcnemar: float | None
    warned: float


def simulate(world: World, size: int, drop: float) -> Share:
    """Simulate pairs of runs of `size` cases of which the second is worse by `drop`."""
    rng = np.random.default_rng([SEED, size, round(drop * 100), WORLDS.index(world)])
    weights = resampled_totals(np.eye(size), RESAMPLES)
    parts = [list(_chunk(world, rng, weights, drop)) for _ in range(SIMULATIONS // CHUNK)]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Share(*(None if np.isnan(column).all() else float(column.mean()) for column in columns))


def _chunk(world: World, rng: np.random.Generator, weights: Array, drop: float) -> Iterator[Array]:
    size = weights.shape[1]
    shape = (size, CHUNK)
    chance = 0.96 + 0.04 * rng.random(shape) if world.rare else difficulty(rng, shape)
    before, after = world.answer(rng, chance), world.answer(rng, chance - drop)
    resampled = np.sort(
        world.formula([weights @ part for part in after], size)
        - world.formula([weights @ part for part in before], size),
        axis=0,
    )
    tail = np.full(CHUNK, LEVEL / 2)
    low, high = _quantile(resampled, tail), _quantile(resampled, 1 - tail)
    yield (low > 0) | (high < 0)
    yield (low <= -drop) & (high >= -drop)
    yield high < 0
    low, high = _bca(world, before, after, resampled)
    yield (low > 0) | (high < 0)
    yield (low <= -drop) & (high >= -drop)
    yield _mcnemar(before[0], after[0]) if world.answer is binary else np.full(CHUNK, np.nan)
    changed = np.any([here != there for here, there in zip(after, before, strict=True)], axis=0)
    yield changed.sum(axis=0) < FEW_CHANGED


def _quantile(ordered: Array, level: Array) -> Array:
    """Return one quantile per column, interpolated as NumPy does."""
    place = level * (len(ordered) - 1)
    below = np.floor(place).astype(int)
    above = np.minimum(below + 1, len(ordered) - 1)
    columns = np.arange(ordered.shape[1])
    return ordered[below, columns] + (place - below) * (ordered[above, columns] - ordered[below, columns])


def _bca(world: World, before: Counts, after: Counts, resampled: Array) -> tuple[Array, Array]:
    size = len(before[0])
    totals = [[part.sum(axis=0) for part in run] for run in (after, before)]
    estimate = world.formula(totals[0], size) - world.formula(totals[1], size)
    without = [
        [total - part for total, part in zip(*pair, strict=True)] for pair in zip(totals, (after, before), strict=True)
    ]
    jackknife = world.formula(without[0], size - 1) - world.formula(without[1], size - 1)
    influence = jackknife.mean(axis=0) - jackknife
    squares = (influence**2).sum(axis=0)
    a = np.where(squares > 0, (influence**3).sum(axis=0) / np.maximum(6 * squares**1.5, 1e-300), 0.0)
    below = (resampled < estimate - 1e-12).sum(axis=0) + (np.abs(resampled - estimate) <= 1e-12).sum(axis=0) / 2
    z0 = ndtri(np.clip(below / RESAMPLES, 1 / (RESAMPLES + 1), RESAMPLES / (RESAMPLES + 1)))
    levels = (ndtr(z0 + (z0 + z) / (1 - a * (z0 + z))) for z in (ndtri(LEVEL / 2), -ndtri(LEVEL / 2)))
    low, high = (_quantile(resampled, level) for level in levels)
    return low, high


def _mcnemar(before: Array, after: Array) -> Array:
    worse, better = (before > after).sum(axis=0), (after > before).sum(axis=0)
    tails = (mcnemar_tails(int(b), int(c), len(before), 0.0) for b, c in zip(worse, better, strict=True))
    return np.array([two_sided(min(each)) <= LEVEL for each in tails])


def table(shares: dict[tuple[str, int, float], Share]) -> str:
    """Return the table of the documentation."""
    rows = []
    for world in WORLDS:
        for size in SIZES:
            same = shares[world.name, size, 0.0]
            cells = [f"{same.outside:.3f}", f"{same.bca_outside:.3f}"]
            cells.append("" if same.mcnemar is None else f"{same.mcnemar:.3f}")
            if world.rare:
                cells += ["", "", "", "", ""]
            else:
                worse = shares[world.name, size, 0.05]
                cells += [f"{worse.covered:.3f}", f"{worse.bca_covered:.3f}"]
                cells += [f"{shares[world.name, size, drop].found:.2f}" for drop in DROPS[1:]]
            rows.append((world.name, size, *cells, f"{same.warned:.0%}"))
    headers = ("metric", "cases", "false alarms", "BCa", "McNemar", "coverage", "BCa", "2", "5", "10", "warned")
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True)


def plot(shares: dict[tuple[str, int, float], Share], path: Path) -> None:
    """Draw false alarms and power; the same numbers give the same bytes."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    mpl.rcParams.update({"svg.hashsalt": "calibration", "svg.fonttype": "none", "font.size": 9})
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    left.axhspan(0.03, 0.07, color="0.9")
    left.axhline(LEVEL, color="0.6", linewidth=0.8)
    for number, world in enumerate(WORLDS):
        rates = [shares[world.name, size, 0.0].outside for size in SIZES]
        left.plot(SIZES, rates, marker="osv^"[number], color=f"C{number}", label=world.name)
        for size, style in zip(SIZES, (":", "--", "-"), strict=True):
            if not world.rare:
                power = [shares[world.name, size, drop].found for drop in DROPS]
                right.plot([100 * drop for drop in DROPS], power, style, color=f"C{number}", marker="osv^"[number])
    left.set(xscale="log", xticks=SIZES, xticklabels=SIZES, ylim=(0, 0.1), xlabel="cases", ylabel="false alarms")
    left.minorticks_off()
    left.legend(frameon=False, fontsize=8)
    right.axhline(0.8, color="0.6", linewidth=0.8)
    right.set(ylim=(0, 1.02), xlabel="true drop, points", ylabel="drops found")
    for size, style in zip(SIZES, (":", "--", "-"), strict=True):
        right.plot([], [], style, color="0.3", label=f"{size} cases")
    right.legend(frameon=False, fontsize=8)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulate comparisons and print how often they are right.")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the results into an SVG file")
    options = parser.parse_args()
    started = time.perf_counter()
    shares = {
        (world.name, size, drop): simulate(world, size, drop)
        for world in WORLDS
        for size in SIZES
        for drop in (DROPS[:1] if world.rare else DROPS)
    }
    print(table(shares))
    print(f"{SIMULATIONS} simulations of {RESAMPLES} resamples each, {time.perf_counter() - started:.0f} s")
    if options.plot:
        plot(shares, options.plot)


if __name__ == "__main__":
    main()

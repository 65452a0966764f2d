"""Are the statistics right? False alarms, coverage and power of simulated runs, where the truth is known.

Run: ``python benchmarks/tables.py [TABLE ...]``, which writes them into the pages of the documentation, and
``python benchmarks/calibration.py calibration.svg``, which draws the results.

Pairs of runs: both answer the same cases, which differ in difficulty, independently given the difficulty; the second
is worse by a known drop. In clustered runs, five cases each belong together: half of the answers are that of the
cluster, and clusters are what is drawn. The intervals use the package's weights, levels and guards: what few changes,
skewed differences and unseen cases allow.
Single runs: is the true value in the interval that a report shows?
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
from scipy import stats
from tables import SEED, Row, mean, rows, share, table

from pytest_llmeval.core import Metric
from pytest_llmeval.evaluators import Margins
from pytest_llmeval.numbers import Estimate, NormalTest, wilson_interval
from pytest_llmeval.numbers._inference import adjusted_gates, held_tails, witnessed_tail
from pytest_llmeval.numbers._intervals import Resampled, Tails, expanded, nominal, value_interval
from pytest_llmeval.numbers._resample import resampled_totals
from pytest_llmeval.numbers._significance import mcnemar_tails, sign_tails, two_sided

SIZES = (20, 50, 200, 1000)
DROPS = (0.0, 0.02, 0.05, 0.1)
SIMULATIONS, RESAMPLES, CHUNK = 2_000, 2_000, 500
LEVEL = 0.05
RESOLVED = 25
"""Of so many resamples on a side, `Resampled` takes quantiles; beyond, a normal distribution."""
CLUSTER = 5
TINY = 1e-9
EASIEST = 0.2
"""The smallest chance of a right answer, so that no larger drop can be simulated."""
LABELS = ('"a"', '"b"', '"c"')

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


def average_score(sums: Counts, cases: int) -> Array:
    return sums[0] / cases


def f1(sums: Counts, _cases: int) -> Array:
    return 2 * sums[0] / (2 * sums[0] + sums[1] + sums[2])


@dataclass(frozen=True)
class World:
    """A metric, and how runs are simulated."""

    name: str
    answer: Callable[[np.random.Generator, Array], Counts]
    formula: Callable[[Counts, int], Array]
    clustered: bool = False
    rare: bool = False


WORLDS = (
    World("binary", binary, average_score),
    World("bounded", bounded, average_score),
    World("micro-F1", micro_f1, f1),
    World("binary, clustered", binary, average_score, clustered=True),
    World("bounded, clustered", bounded, average_score, clustered=True),
    World("binary, 2 % wrong", binary, average_score, rare=True),
)


@dataclass(frozen=True)
class Pairs:
    """What many pairs of runs came to, one entry per pair.

    Attributes:
        estimates: The difference.
        deviations: Its standard deviation, as resampled.
        alarms: Whether its interval excludes 0.
        falls: Whether its interval is below 0.
        covered: Whether its interval holds the truth.
        exact: Whether McNemar's test excludes 0; NaN where it does not apply.
        mid_p: The same with the mid-p-value.
        p_values: Of a fall, one-sided.
    """

    estimates: Array
    deviations: Array
    alarms: Array
    falls: Array
    covered: Array
    exact: Array
    mid_p: Array
    p_values: Array


@cache
def simulate(world: World, size: int, drop: float, simulations: int, seed: int) -> Pairs:
    """Simulate pairs of runs of `size` cases of which the second is worse by `drop`."""
    rng = np.random.default_rng([seed, size, round(drop * 10_000), WORLDS.index(world)])
    units = size // CLUSTER if world.clustered else size
    weights = resampled_totals(np.eye(units), RESAMPLES)
    pairs = [min(CHUNK, simulations - done) for done in range(0, simulations, CHUNK)]
    parts = [_chunk(world, rng, weights, size, drop, each) for each in pairs]
    return Pairs(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _chunk(world: World, rng: np.random.Generator, weights: Array, size: int, drop: float, pairs: int) -> list[Array]:
    shape = (size, pairs)
    units = weights.shape[1]
    chance = 0.96 + 0.04 * rng.random(shape) if world.rare else difficulty(rng, shape)
    before, after = (_answers(world, rng, each) for each in (chance, chance - drop))
    changed = np.any([a != b for a, b in zip(after, before, strict=True)], axis=0).sum(axis=0)
    estimate = world.formula([part.sum(axis=0) for part in after], size)
    estimate -= world.formula([part.sum(axis=0) for part in before], size)
    resampled = world.formula([weights @ part for part in after], size)
    resampled -= world.formula([weights @ part for part in before], size)
    ordered = np.sort(resampled, axis=0)
    low, high = _interval(ordered, units)
    guards = _guards(world, before, after, estimate, changed)
    alarms = ((low > 0) & (guards[0] <= LEVEL / 2)) | ((high < 0) & (guards[1] <= LEVEL / 2))
    shares = (1 + (resampled >= -1e-12).sum(axis=0)) / (1 + len(resampled))
    for column in np.flatnonzero(shares * len(resampled) <= RESOLVED):
        shares[column] = Resampled(resampled[:, column]).tails(0.0).below
    p_values = np.maximum([nominal(share, units) for share in shares], guards[1])
    exact, mid_p = (_mcnemar(before[0], after[0], mid_p=way) for way in (False, True))
    if world.answer is not binary or world.clustered:
        exact = mid_p = np.full(pairs, np.nan)
    else:  # changes of one size are counted, and not resampled
        alarms, p_values = (guards <= LEVEL / 2).any(axis=0), guards[1]
        low = np.where(guards[0] <= LEVEL / 2, np.maximum(low, TINY), low)
        high = np.where(guards[1] <= LEVEL / 2, np.minimum(high, -TINY), high)
    covered = (low <= -drop) & (high >= -drop)
    return [estimate, resampled.std(axis=0), alarms, alarms & (high < 0), covered, exact, mid_p, p_values]


def _guards(world: World, before: Counts, after: Counts, estimate: Array, changed: Array) -> Array:
    """Return the smallest p-values that the package allows, of rises and of falls."""
    units = len(before[0])
    size = units * CLUSTER if world.clustered else units
    here, there = ([part.sum(axis=0) for part in parts] for parts in (after, before))
    value = world.formula(here, size)
    with np.errstate(all="ignore"):
        cases = size - size // units
        without = world.formula([total - part for total, part in zip(here, after, strict=True)], cases)
        without -= world.formula([total - part for total, part in zip(there, before, strict=True)], cases)
    values = units * estimate - (units - 1) * without
    found = []
    for pair in range(len(estimate)):
        known = Estimate(
            value=float(value[pair]),
            baseline=float(value[pair] - estimate[pair]),
            resampled=np.empty(0),
            jackknives=(),
            contributions=values[:, pair],
            cases=size,
            baseline_cases=size,
            units=units,
            changed=int(changed[pair]),
            left_out=0,
            left_out_drop=None,
            binary=world.answer is binary,
            errored=0,
            lost_resamples=0.0,
        )
        held = held_tails(known, Metric(world.name), Tails(0.0, 0.0), 0.0)
        found.append([max(each) for each in zip(held, witnessed_tail(known), strict=True)])
    return np.array(found).T


def _answers(world: World, rng: np.random.Generator, chance: Array) -> Counts:
    """Return the counts of what is drawn: cases, or clusters of them."""
    counts = world.answer(rng, chance)
    if not world.clustered:
        return counts
    leader = np.arange(len(chance)) // CLUSTER * CLUSTER
    follows = rng.random(chance.shape) < 0.5
    counts = [np.where(follows, part[leader], part) for part in counts]
    return [part.reshape(-1, CLUSTER, part.shape[1]).sum(axis=1) for part in counts]


def _interval(ordered: Array, units: int) -> tuple[Array, Array]:
    """Return one interval per column, as `Resampled` would for one."""
    level = expanded(LEVEL / 2, units)
    if level * len(ordered) >= RESOLVED:
        levels = np.full(ordered.shape[1], level)
        return _quantile(ordered, levels), _quantile(ordered, 1 - levels)
    middle, far = ordered.mean(axis=0), -stats.norm.ppf(level) * ordered.std(axis=0)
    return np.minimum(ordered[RESOLVED - 1], middle - far), np.maximum(ordered[-RESOLVED], middle + far)


def _quantile(ordered: Array, level: Array) -> Array:
    """Return one quantile per column, interpolated as NumPy does."""
    place = level * (len(ordered) - 1)
    below = np.floor(place).astype(int)
    above = np.minimum(below + 1, len(ordered) - 1)
    columns = np.arange(ordered.shape[1])
    return ordered[below, columns] + (place - below) * (ordered[above, columns] - ordered[below, columns])


def _mcnemar(before: Array, after: Array, *, mid_p: bool) -> Array:
    worse, better = (before > after).sum(axis=0), (after > before).sum(axis=0)
    tails = (mcnemar_tails(int(b), int(c), len(before), 0.0, mid_p=mid_p) for b, c in zip(worse, better, strict=True))
    return np.array([float(two_sided(min(each)) <= LEVEL) for each in tails])


@table(
    "comparisons",
    "../benchmarks/calibration.md",
    ("metric", "cases", "false alarms", "McNemar", "mid-p", "coverage", "2", "5", "10"),
    simulations=SIMULATIONS,
)
def comparisons(simulations: int, seed: int) -> Iterator[Row]:
    """Comparisons: false alarms, coverage of a drop of 5 points, and which drops are found, by an oracle as well."""
    for world, size in rows(product(WORLDS, SIZES)):
        same = simulate(world, size, 0.0, simulations, seed)
        alarms, exact = share(same.alarms), ("", "")
        if not np.isnan(same.exact).all():
            alarms, *exact = map(share, _counted(world, size, COUNTED * simulations, seed))
        if world.rare:
            yield (world.name, size, alarms, *exact, "", "", "", "")
            continue
        found = [simulate(world, size, drop, simulations, seed) for drop in DROPS[1:]]
        beyond = stats.norm.ppf(LEVEL / 2) * same.estimates.std()
        power = [(share(each.falls, 2), share(each.estimates < beyond, 2)) for each in found]
        yield (world.name, size, alarms, *exact, share(found[1].covered), *power)


COUNTED = 10
"""Pairs of runs of which only changes are counted, for each pair that is resampled."""


def _counted(world: World, size: int, simulations: int, seed: int) -> Iterator[Array]:
    """Yield how often equally good runs of answers of 0 and 1 are found to differ, by our test and by McNemar's."""
    rng = np.random.default_rng([seed, size, WORLDS.index(world), COUNTED])
    changes = []
    for done in range(0, simulations, CHUNK):
        shape = (size, min(CHUNK, simulations - done))
        chance = 0.96 + 0.04 * rng.random(shape) if world.rare else difficulty(rng, shape)
        (before,), (after,) = (_answers(world, rng, chance) for _ in range(2))
        changes.append(np.stack([(before > after).sum(axis=0), (after > before).sum(axis=0)]))
    pairs, which = np.unique(np.concatenate(changes, axis=1), axis=1, return_inverse=True)
    exact = partial(mcnemar_tails, pairs=size, at=0.0)
    for tails in (sign_tails, exact, partial(exact, mid_p=True)):
        found = np.array([two_sided(min(tails(int(worse), int(better)))) <= LEVEL for worse, better in pairs.T])
        yield found[which.ravel()]


@table(
    "detectable",
    "../benchmarks/calibration.md",
    ("metric", "cases", "detectable drop", "found"),
    simulations=SIMULATIONS,
)
def detectable(simulations: int, seed: int) -> Iterator[Row]:
    """How many drops are found that are as large as is called detectable; 0.80 is promised."""
    # Of 20 cases, a binary drop is too large to simulate.
    kinds = ((world, size) for world in WORLDS[:3] for size in SIZES[world.answer is binary :])
    for world, size in rows(kinds):
        deviations = simulate(world, size, 0.0, simulations, seed).deviations
        drops = [
            NormalTest(1 - LEVEL, size).detectable(float(each), binary=world.answer is binary)
            for each in np.quantile(deviations, np.linspace(0.05, 0.95, 19))
        ]
        drop = round(drops[9], 3)
        found = simulate(world, size, drop, simulations, seed).falls
        yield (world.name, size, replace(mean(drops), value=drop), share(found, 2))


ANSWERED = ((0.95, 0.85), (0.67, 0.57))


@table(
    "answers",
    "../benchmarks/calibration.md",
    ("cases", "equally good runs red", *(f"{old} to {new}: ours / McNemar / mid-p" for old, new in ANSWERED)),
)
def answers(_simulations: int, _seed: int) -> Iterator[Row]:
    """How often falls of answers of 0 and 1 are found, computed without simulation."""
    for cases in (10, 20, 50, 100, 200):
        exact = partial(mcnemar_tails, pairs=cases, at=0.0)
        ways = [_least_falls(cases, tails) for tails in (sign_tails, exact, partial(exact, mid_p=True))]
        red = max(_found(cases, ways[0], change, 0.5) for change in np.linspace(0.005, 0.5, 100))
        cells = []
        for old, new in ANSWERED:
            fall, rise = old * (1 - new), new * (1 - old)
            found = (_found(cases, least, fall + rise, fall / (fall + rise)) for least in ways)
            cells.append(" / ".join(f"{each:.2f}" for each in found))
        yield (cases, f"{red:.4f}", *cells)


def _least_falls(cases: int, tails: Callable[[int, int], Tails]) -> list[int]:
    """Return for every number of changes how many of them must fall to be significant."""
    return [
        next((falls for falls in range(changed + 1) if tails(falls, changed - falls).above <= LEVEL / 2), changed + 1)
        for changed in range(cases + 1)
    ]


def _found(cases: int, least: Sequence[int], change: float, falls: float) -> float:
    """Return how often so many fall, by the shares of cases that change and of changes that are falls."""
    changed = np.arange(cases + 1)
    return float(stats.binom.pmf(changed, cases, change) @ stats.binom.sf(np.array(least) - 1, changed, falls))


@table("shares", "../benchmarks/calibration.md", ("cases", "0.5", "0.8", "0.9", "0.95", "0.99"))
def shares(_simulations: int, _seed: int) -> Iterator[Row]:
    """Coverage of Wilson's interval, computed without simulation."""
    for cases in (10, 30, 100, 1000):
        bounds = [wilson_interval(hits, cases, 1 - LEVEL) for hits in range(cases + 1)]
        cells = []
        for each in (0.5, 0.8, 0.9, 0.95, 0.99):
            inside = [low <= each <= high for low, high in bounds]
            cells.append(f"{float(stats.binom.pmf(range(cases + 1), cases, each) @ inside):.3f}")
        yield (cases, *cells)


def confusion_cells(rng: np.random.Generator, chance: Array) -> Counts:
    """Nine cells of a confusion matrix; one label per case, of unequal frequency."""
    gold = rng.choice(3, p=(0.5, 0.3, 0.2), size=chance.shape)
    wrong = (gold + rng.integers(1, 3, chance.shape)) % 3
    answer = np.where(rng.random(chance.shape) < chance, gold, wrong)
    return [((gold == right) & (answer == said)).astype(float) for right in range(3) for said in range(3)]


def _margins(sums: Counts) -> Margins:
    cells = {(right, said): sums[3 * i + j] for i, right in enumerate(LABELS) for j, said in enumerate(LABELS)}
    return Margins.from_cells(cells, len(sums[0]))


def kappa(sums: Counts, _cases: int) -> Array:
    return _margins(sums).cohen_kappa()


def macro_f1(sums: Counts, _cases: int) -> Array:
    return _margins(sums).average("macro")["f1"]


VALUES = (
    ("f1 of texts", bounded, average_score, Metric("f1")),
    ("F1 of pairs, pooled", micro_f1, f1, Metric("pair_f1")),
    ("macro F1", confusion_cells, macro_f1, Metric("f1_macro")),
    ("Cohen's kappa", confusion_cells, kappa, Metric("cohen_kappa", low=-1.0)),
)


@table(
    "values",
    "../benchmarks/calibration.md",
    ("metric", "cases", "coverage", "plain percentiles"),
    simulations=SIMULATIONS,
)
def values(simulations: int, seed: int) -> Iterator[Row]:
    """Coverage of the intervals of values, next to that of plain percentiles."""
    for (name, answer, formula, metric), size in rows(product(VALUES, (20, 30, 100, 1000))):
        rng = np.random.default_rng(SEED)
        many = answer(rng, difficulty(rng, (1_000_000, 1))[:, 0])
        truth = float(formula([part.sum(keepdims=True) for part in many], 1_000_000)[0])
        rng = np.random.default_rng([seed, size])
        weights = resampled_totals(np.eye(size), RESAMPLES)
        inside, plain = [], []
        for _ in range(simulations):
            counts = answer(rng, difficulty(rng, (size, 1))[:, 0])
            value = float(formula([part.sum(keepdims=True) for part in counts], size)[0])
            resampled = formula(list((weights @ np.column_stack(counts)).T), size)
            bounds = value_interval(resampled, value, size, metric, 1 - LEVEL)
            inside.append(bounds is not None and bounds[0] <= truth <= bounds[1])
            low, high = np.nanquantile(resampled, (LEVEL / 2, 1 - LEVEL / 2))
            plain.append(low <= truth <= high)
        yield (name, size, share(inside), share(plain))


@table("families", "../benchmarks/calibration.md", ("gates", "share"), simulations=1_000)
def families(simulations: int, seed: int) -> Iterator[Row]:
    """How a gate fares next to 19 clean ones: a drop of 5 points of a bounded score of 200 cases."""
    worse = simulate(WORLDS[1], 200, 0.05, simulations, seed).p_values
    clean = simulate(WORLDS[1], 200, 0.0, 20 * simulations, seed).p_values.reshape(simulations, 20)
    beside = [[each, *others[1:]] for each, others in zip(worse, clean, strict=True)]
    yield ("the drop is found by a gate alone, or a primary one", share(2 * worse <= LEVEL, 2))
    yield ("it is found next to 19 gates without a drop", share((adjusted(each)[0] <= LEVEL for each in beside), 2))
    yield ("any of 20 gates without a drop fails", share(min(adjusted(each)) <= LEVEL for each in clean))


@table(
    "projects",
    "../benchmarks/calibration.md",
    ("files", "red, each a family", "red, one family", "drop found, each a family", "drop found, one family"),
    simulations=1_000,
)
def projects(simulations: int, seed: int) -> Iterator[Row]:
    """How often equally good runs of files with a gate each are red, and how often a drop in one of them is found."""
    worse = simulate(WORLDS[1], 200, 0.1, simulations, seed).p_values
    for files in rows((1, 10, 50)):
        clean = simulate(WORLDS[1], 200, 0.0, files * simulations, seed).p_values.reshape(simulations, files)
        apart = share((2 * clean <= LEVEL).any(axis=1), 2)
        together = share((min(adjusted(each)) <= LEVEL for each in clean), 2)
        found = share(2 * worse <= LEVEL, 2)
        among = zip(worse, clean[:, 1:], strict=True)
        yield (files, apart, together, found, share((adjusted([p, *rest])[0] <= LEVEL for p, rest in among), 2))


def adjusted(p_values: "list[float] | Array") -> list[float]:
    return [each[0] for each in adjusted_gates([[two_sided(each)] for each in p_values])]


@table("tails", "../benchmarks/calibration.md", ("level", "p-values below"), simulations=200_000)
def tails(simulations: int, seed: int) -> Iterator[Row]:
    """How often p-values of equally good runs are below what resamples resolve."""
    rng = np.random.default_rng(seed)
    size = 50
    weights = resampled_totals(np.eye(size), RESAMPLES)
    p_values: list[float] = []
    while len(p_values) < simulations:
        chance = difficulty(rng, (size, min(20_000, simulations - len(p_values))))
        before, after = bounded(rng, chance)[0], bounded(rng, chance)[0]
        resampled = weights @ (after - before) / size
        p_values += [two_sided(nominal(min(Resampled(each).tails(0.0)), size)) for each in resampled.T]
    for at in (0.05, 0.01, 0.001, 0.0002):
        yield (f"{at:g}", share((each <= at for each in p_values), 5))


def plot(path: Path) -> None:
    """Draw false alarms and power; the same numbers give the same bytes."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    mpl.rcParams.update({"svg.hashsalt": "calibration", "svg.fonttype": "none", "font.size": 9})
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    left.axhspan(0.03, 0.07, color="0.9")
    left.axhline(LEVEL, color="0.6", linewidth=0.8)
    for number, world in enumerate(WORLDS):
        rates = [simulate(world, size, 0.0, SIMULATIONS, SEED).alarms.mean() for size in SIZES]
        left.plot(SIZES, rates, marker="osv^Dx"[number], color=f"C{number}", label=world.name)
        for size, style in zip(SIZES[1:], (":", "--", "-"), strict=True):
            if not (world.rare or world.clustered):
                power = [simulate(world, size, drop, SIMULATIONS, SEED).falls.mean() for drop in DROPS]
                right.plot([100 * drop for drop in DROPS], power, style, color=f"C{number}", marker="osv^"[number])
    left.set(xscale="log", xticks=SIZES, xticklabels=SIZES, ylim=(0, 0.1), xlabel="cases", ylabel="false alarms")
    left.minorticks_off()
    left.legend(frameon=False, fontsize=8)
    right.axhline(0.8, color="0.6", linewidth=0.8)
    right.set(ylim=(0, 1.02), xlabel="true drop, points", ylabel="drops found")
    for size, style in zip(SIZES[1:], (":", "--", "-"), strict=True):
        right.plot([], [], style, color="0.3", label=f"{size} cases")
    right.legend(frameon=False, fontsize=8)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw false alarms and power of comparisons.")
    parser.add_argument("plot", type=Path, metavar="FILE", help="the SVG file to write")
    plot(parser.parse_args().plot)


if __name__ == "__main__":
    main()

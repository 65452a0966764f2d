"""What stopping when decided costs in wrong verdicts, and what it saves.

Suites of 20 to 2,000 cases are drawn, half of them with scores of 0 and 1 and half with continuous ones, run in a
random order, and looked at after every twentieth of their cases (ten at least), as ``stop: when_decided`` does, at a
level of 1 %.

The first table is about a gate ``score >= 0.7`` on suites that score 0.7 plus a margin on average: how often the gate
was decided before the end, how often that verdict was not the one of all cases, and how many cases it took on average.
The second is about ``max_drop`` against a baseline, with true drops of 0 to 0.3 and clusters of one and of five
cases that move
together: early verdicts `failed` where there is no drop are false; in the other rows those count that a complete run
would not have given, by a paired t test at 95 %.

    python benchmarks/stopping.py [SEEDS]
"""

import sys
from collections.abc import Callable, Iterator

import numpy as np
from scipy.stats import ttest_1samp

from pytest_llmeval.core import FloatArray, Metric
from pytest_llmeval.gates import DropGate, Gate, LimitGate
from pytest_llmeval.gates._limit import ScoreLimit
from pytest_llmeval.suites._settings import StopSettings
from pytest_llmeval.workbench.early._evidence import PartScores, decide_gate

SIZES = (20, 100, 500, 2000)
DIFFERENCES = (0.0, 0.05, 0.1, 0.3)
LIMIT = 0.7
METRIC = Metric("score", averaged=True)
LEVEL = 1 - StopSettings().confidence


def early(gate: Gate, scores: FloatArray, units: "np.typing.NDArray[np.intp]") -> tuple[str, int]:
    """Return the verdict before the last block and after how many cases it was given, or nothing and all cases."""
    cases, block = len(scores), StopSettings().block_of(len(scores))
    last = max(0, -(-cases // block) - 1) * block
    nothing = np.zeros(last, dtype=bool)
    part = PartScores("", np.ones(cases, dtype=bool), scores[:last], nothing, nothing)
    found = decide_gate(gate, [part], units, METRIC, LEVEL)
    return ("", cases) if found is None else (found.result.outcome, min(cases, -(-found.cases // block) * block))


def shares(rng: np.random.Generator, cases: int, mean: float) -> FloatArray:
    """Return scores of 0 and 1."""
    return (rng.random(cases) < mean).astype(float)


def graded(rng: np.random.Generator, cases: int, mean: float) -> FloatArray:
    """Return continuous scores with a standard deviation of about 0.2."""
    return rng.beta(5 * mean, 5 * (1 - mean) + 1e-9, cases)


def moves(rng: np.random.Generator, units: int, drop: float) -> FloatArray:
    """Return how much worse each case is, where a tenth gets better and as many, and those of the drop, get worse."""
    return rng.choice([-1.0, 0.0, 1.0], size=units, p=[0.1, 0.8 - drop, 0.1 + drop])


def shifts(rng: np.random.Generator, units: int, drop: float) -> FloatArray:
    """Return continuous drops with a standard deviation of 0.15."""
    return np.clip(rng.normal(drop, 0.15, units), -1, 1)


def limits(seeds: int) -> Iterator[tuple[object, ...]]:
    """Yield the rows of the first table."""
    gate = LimitGate("score", (ScoreLimit(">=", LIMIT),))
    for name, draw in (("0 and 1", shares), ("continuous", graded)):
        for cases in SIZES:
            for margin in DIFFERENCES:
                found = []
                for seed in range(seeds):
                    scores = draw(np.random.default_rng(seed), cases, min(1.0, LIMIT + margin))
                    outcome, took = early(gate, scores, np.arange(cases))
                    whole = "passed" if scores.mean() >= LIMIT - 1e-12 else "failed"
                    found.append((bool(outcome), outcome not in ("", whole), took))
                yield name, cases, margin, *_means(found)


def drops(seeds: int) -> Iterator[tuple[object, ...]]:
    """Yield the rows of the second table."""
    kinds: tuple[tuple[str, Callable[[np.random.Generator, int, float], FloatArray], int, float], ...] = (
        ("0 and 1", moves, 1, 0.0),
        ("0 and 1, clusters of 5", moves, 5, 0.0),
        ("continuous", shifts, 1, 0.0),
        ("0 and 1, max_drop 0.05", moves, 1, 0.05),
        ("continuous, max_drop 0.05", shifts, 1, 0.05),
    )
    for name, draw, size, allowed in kinds:
        gate = DropGate("score", allowed)
        for cases in SIZES:
            for drop in DIFFERENCES:
                found = []
                for seed in range(seeds):
                    moved = draw(np.random.default_rng(seed), cases // size, drop)
                    outcome, took = early(gate, np.repeat(moved, size), np.arange(cases) // size)
                    proven = moved.mean() > allowed and moved.std() > 0 and ttest_1samp(moved, allowed).pvalue <= 0.05
                    whole = "failed" if proven else "passed"
                    wrong = outcome == "failed" if drop <= allowed else outcome not in ("", whole)
                    found.append((bool(outcome), wrong, took))
                yield name, cases, drop, *_means(found)


def _means(found: list[tuple[bool, bool, int]]) -> tuple[str, str, str]:
    decided, wrong, took = np.array(found, dtype=float).mean(axis=0)
    return f"{100 * decided:.0f} %", f"{100 * wrong:.1f} %", f"{took:.0f}"


def main() -> None:
    """Print both tables."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    for title, rows in (("margin", limits(seeds)), ("true drop", drops(seeds))):
        print(f"| scores | cases | {title} | decided early | false verdicts | cases run on average |")
        print("|---|---|---|---|---|---|")
        for row in rows:
            print(f"| {' | '.join(map(str, row))} |", flush=True)
        print()


if __name__ == "__main__":
    main()

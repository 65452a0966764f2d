"""Intervals and comparisons: 10,000 resamples of 10,000 cases, as products of weights and counts.

Run: ``python benchmarks/resampling.py``.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from pytest_llmeval import Case, compare, get_evaluator, score
from pytest_llmeval.core.results import Result
from pytest_llmeval.scoring.intervals import Resampled, resampled_interval
from pytest_llmeval.scoring.resample import resampled_totals

CASES, COUNTS, RESAMPLES, ROUNDS = 10_000, 12, 10_000, 5
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon")


def intervals() -> None:
    matrix = np.random.default_rng(7).integers(0, 5, size=(CASES, COUNTS)).astype(float)
    totals = resampled_totals(matrix, RESAMPLES)
    for column in range(1, COUNTS):
        resampled_interval(Resampled(totals[:, column] / totals[:, 0]), 0.95, CASES)


def run(seed: int) -> Result:
    """Return a run with all metrics of `text`."""
    rng = np.random.default_rng(seed)
    answers = [" ".join(rng.choice(WORDS, 3)) for _ in range(CASES)]
    cases = [Case(str(number), expected="alpha beta gamma", prediction=each) for number, each in enumerate(answers)]
    return score(get_evaluator("text"), cases, confidence=None)


def seconds(work: Callable[[], object]) -> str:
    found = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        found.append(time.perf_counter() - started)
    return f"median {statistics.median(found):.2f}  min {min(found):.2f}  max {max(found):.2f}"


def main() -> None:
    here, there = run(1), run(2)
    print(f"{RESAMPLES} resamples of {CASES} cases; wall seconds of {ROUNDS} rounds")
    print(f"{COUNTS} counts, {COUNTS - 1} intervals: {seconds(intervals)}")
    for method in ("percentile", "bca"):
        print(
            f"compare, {len(here.metrics)} metrics, {method}: {seconds(partial(compare, here, there, method=method))}"
        )


if __name__ == "__main__":
    main()

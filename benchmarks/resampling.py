"""Intervals: 10,000 resamples of 10,000 cases and twelve count columns, as one product of weights and counts.

Run: ``python benchmarks/resampling.py``.
"""

import statistics
import time

import numpy as np

from pytest_llmeval.resample import percentile_interval, resampled_totals

CASES, COUNTS, RESAMPLES, ROUNDS = 10_000, 12, 10_000, 5


def main() -> None:
    matrix = np.random.default_rng(7).integers(0, 5, size=(CASES, COUNTS)).astype(float)
    seconds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        totals = resampled_totals(matrix, RESAMPLES)
        for column in range(1, COUNTS):
            percentile_interval(totals[:, column] / totals[:, 0], 0.95)
        seconds.append(time.perf_counter() - started)
    print(
        f"{RESAMPLES} resamples of {CASES} cases, {COUNTS} counts, {COUNTS - 1} intervals; "
        f"wall seconds of {ROUNDS} rounds"
    )
    print(f"median {statistics.median(seconds):.2f}  min {min(seconds):.2f}  max {max(seconds):.2f}")


if __name__ == "__main__":
    main()

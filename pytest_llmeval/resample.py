"""Bootstrap weights, and intervals from resampled totals.

A resample of n cases is a row of n integer weights that add up to n (Efron's bootstrap: how often each case was
drawn). All resampled totals of all counts are one product ``weights @ matrix``, done in slices so that the weights
never stand in memory as a whole.
"""

__all__ = ("SEED", "percentile_interval", "resample_count", "resampled_totals")

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.observation import FloatArray

SEED = 20240607
"""The seed of every resampling; with it, equal data give equal intervals."""

_MOST_RESAMPLES = 10_000
_LEAST_RESAMPLES = 1_000
_DRAWS = 20_000_000
_SLICE_DRAWS = 1_000_000


def resample_count(cases: int) -> int:
    """Return how many resamples a set of `cases` gets: 10,000 up to 2,000 cases, then fewer, never under 1,000.

    The work stays at 20 million draws, because large sets have narrow intervals whose ends need less precision.
    """
    return max(_LEAST_RESAMPLES, min(_MOST_RESAMPLES, _DRAWS // max(cases, 1)))


def resampled_totals(matrix: "FloatArray", resamples: int, seed: int = SEED) -> "FloatArray":
    """Return bootstrap totals.

    Args:
        matrix: Shape ``(cases, counts)``.
        resamples: How many.
        seed: Equal seeds and shapes draw equal weights, which is what makes comparisons paired.

    Returns:
        Shape ``(resamples, counts)``.
    """
    import numpy as np
    from threadpoolctl import threadpool_limits

    cases, counts = matrix.shape
    generator = np.random.Generator(np.random.SFC64(seed))
    index_type = np.uint16 if cases <= np.iinfo(np.uint16).max + 1 else np.uint32
    totals = np.empty((resamples, counts))
    rows = max(1, min(resamples, _SLICE_DRAWS // max(cases, 1)))
    weights = np.empty((rows, cases))
    # One thread: products this narrow gain nothing from more, and the sums then do not depend on the number of cores.
    with threadpool_limits(1, user_api="blas"):
        for start in range(0, resamples, rows):
            size = min(rows, resamples - start)
            drawn = generator.integers(0, cases, size=(size, cases), dtype=index_type)
            for row in range(size):
                weights[row] = np.bincount(drawn[row], minlength=cases)
            np.matmul(weights[:size], matrix, out=totals[start : start + size])
    return totals


def percentile_interval(values: "FloatArray", confidence: float) -> tuple[float, float] | None:
    """Return the percentile interval of resampled metric values (Efron and Tibshirani 1993, chapter 13).

    Args:
        values: One per resample; a value that is not finite belongs to a resample in which the metric is undefined.
        confidence: Between 0 and 1, such as 0.95.

    Returns:
        Lower and upper bound, or ``None`` where fewer than half of the resamples have a value.
    """
    import numpy as np

    finite = values[np.isfinite(values)]
    if finite.size * 2 <= values.size:
        return None
    tail = (1 - confidence) / 2
    low, high = np.quantile(finite, (tail, 1 - tail))
    return float(low), float(high)

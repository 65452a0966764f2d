"""Agreement of a judge with people: moments of score pairs, and coefficients computed from their sums.

Everything is computed for many sums at once: each is a column with one entry per total.
"""

__all__ = (
    "krippendorff_alpha",
    "level_of",
    "pair_moments",
    "pearson",
    "unit_moments",
    "weighted_kappa",
)

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_llmeval.evaluators.measures.confusion import ratio

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

_ROUNDING = 1e-12
"""Share of a sum of squares that is rounding, not spread."""

_TIE = 9
"""Decimals to which distances from two levels are compared."""


def level_of(score: float, levels: Sequence[float]) -> float:
    """Return the level nearest to a score; of two equally near ones the lower."""
    return min(levels, key=lambda level: (round(abs(score - level), _TIE), level))


def pair_moments(judge: float, people: float) -> dict[str, float]:
    """Return what Pearson's correlation, bias and mean absolute error need of one pair of scores.

    Args:
        judge: The judge's score.
        people: The mean score of the people.
    """
    return {
        "pairs": 1,
        "x": judge,
        "y": people,
        "xx": judge * judge,
        "yy": people * people,
        "xy": judge * people,
        "distance": abs(judge - people),
    }


def unit_moments(values: Sequence[float]) -> dict[str, float]:
    """Return what Krippendorff's alpha needs of one unit: the scores that raters gave it, two or more."""
    total, squares = sum(values), sum(value * value for value in values)
    differences = sum((left - right) ** 2 for left in values for right in values)
    return {
        "values": len(values),
        "value": total,
        "value_squares": squares,
        "within": differences / (len(values) - 1),
    }


def _spread(count: "FloatArray", total: "FloatArray", squares: "FloatArray") -> "FloatArray":
    """Return ``count * squares - total ** 2``, exactly 0 where only rounding keeps it from 0."""
    import numpy as np

    spread = count * squares - total * total
    return np.where(spread > _ROUNDING * count * squares, spread, 0.0)


def pearson(sums: "Sums") -> "FloatArray":
    """Return the correlation of judge and people in [-1, 1]; NaN where either side does not vary (Pearson 1895)."""
    import numpy as np

    spread = _spread(sums["pairs"], sums["x"], sums["xx"]) * _spread(sums["pairs"], sums["y"], sums["yy"])
    return np.clip(ratio(sums["pairs"] * sums["xy"] - sums["x"] * sums["y"], np.sqrt(spread)), -1.0, 1.0)


def krippendorff_alpha(sums: "Sums") -> "FloatArray":
    """Return ``1 - observed / expected`` disagreement with squared differences, for interval data; at most 1.

    With n scores in all, the observed disagreement is the mean over scores of the squared difference to the other
    scores of the same unit, and the expected one that of all pairs of scores (Krippendorff 2011). NaN where all scores
    are the same.
    """
    count = sums["values"]
    spread = _spread(count, sums["value"], sums["value_squares"])
    # Expected: 2 spread / (n (n - 1)); observed: within / n.
    return 1.0 - ratio(sums["within"] * (count - 1), 2 * spread)


def weighted_kappa(cells: "Mapping[tuple[float, float], FloatArray]", length: int) -> "FloatArray":
    """Return Cohen's kappa with squared differences of levels as weights, in [-1, 1] (Cohen 1968).

    Args:
        cells: ``(level of the people, level of the judge)`` to a column of counts.
        length: Of the columns.

    Returns:
        ``1 - observed / expected`` disagreement; NaN where all counts are in one and the same level.
    """
    import numpy as np

    levels = sorted({level for cell in cells for level in cell})
    row = {level: number for number, level in enumerate(levels)}
    people, judge = np.zeros((len(levels), length)), np.zeros((len(levels), length))
    observed = np.zeros(length)
    for (left, right), column in cells.items():
        people[row[left]] += column
        judge[row[right]] += column
        observed += (left - right) ** 2 * column
    weights = np.subtract.outer(levels, levels) ** 2
    expected = np.einsum("il,ij,jl->l", people, weights, judge)
    return 1.0 - ratio(observed * people.sum(axis=0), expected)

"""Precision, recall and F1 of counted things."""

__all__ = ("precision_recall_f1",)

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray


def precision_recall_f1(
    right: "FloatArray", found: "FloatArray", expected: "FloatArray", cases: "FloatArray"
) -> "tuple[FloatArray, FloatArray, FloatArray]":
    """Return precision, recall and F1 of summed counts.

    Where nothing is expected and nothing found, all three are 1; where something is expected and nothing found,
    precision is 0; where nothing is expected but something found, recall is undefined.

    Args:
        right: How many are on both sides.
        found: How many there are.
        expected: How many there should be.
        cases: How many cases were counted; without any, nothing is defined.
    """
    import numpy as np

    nothing = (found + expected == 0) & (cases > 0)
    with np.errstate(all="ignore"):
        precision = np.where(nothing, 1.0, np.where((found == 0) & (expected > 0), 0.0, right / found))
        recall = np.where(nothing, 1.0, right / expected)
        f1 = np.where(nothing, 1.0, 2 * right / (found + expected))
    return precision, recall, f1

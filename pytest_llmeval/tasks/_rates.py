"""Precision, recall and F1 of summed counts, defined also where nothing is expected or answered."""

from pytest_llmeval.core import FloatArray


def precision_recall_f1(
    right: FloatArray, answered: FloatArray, expected: FloatArray, cases: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Precision, recall and F1 of a task's summed counts of right, answered and expected items.

    Where nothing is expected and nothing found, all three are 1; where something is expected and nothing found,
    precision is 0; where nothing is expected but something found, nothing is missed: recall is 1, the others are 0.

    Args:
        right: How many are on both sides.
        answered: How many there are.
        expected: How many there should be.
        cases: How many cases were counted; without any, nothing is defined.
    """
    import numpy as np

    nothing = (answered + expected == 0) & (cases > 0)
    with np.errstate(all="ignore"):
        precision = np.where(nothing, 1.0, np.where((answered == 0) & (expected > 0), 0.0, right / answered))
        recall = np.where((expected == 0) & (cases > 0), 1.0, right / expected)
        f1 = np.where(nothing, 1.0, 2 * right / (answered + expected))
    return precision, recall, f1

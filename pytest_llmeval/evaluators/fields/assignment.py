"""Optimal assignment: pairs with the largest total weight."""

__all__ = ("assign",)

from collections.abc import Sequence

_FEW = 4
"""Up to this length of the shorter side a search over subsets is faster than SciPy, and needs no import of it."""


def assign(weights: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Pair rows with columns one-to-one so that the sum of the weights is as large as possible.

    Args:
        weights: A weight of at least 0 for each row and column.

    Returns:
        The pairs with a weight above 0, by row. Ties are broken by the numbers of rows and columns alone.

    Example:
        >>> assign([[3, 2], [2, 0]])
        [(0, 1), (1, 0)]
    """
    if not weights or not weights[0]:
        return []
    if len(weights[0]) <= _FEW:
        return _by_subsets(weights)
    if len(weights) <= _FEW:
        turned = _by_subsets(list(zip(*weights, strict=True)))
        return sorted((row, column) for column, row in turned)
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(np.array(weights, dtype=float), maximize=True)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return [(row, column) for row, column in pairs if weights[row][column]]


def _by_subsets(weights: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Go through the rows, keeping the best pairs for each subset of the columns that is taken."""
    best: dict[int, tuple[int, tuple[tuple[int, int], ...]]] = {0: (0, ())}
    for row, line in enumerate(weights):
        before = dict(best)
        for column, weight in enumerate(line):
            if not weight:
                continue
            taken = 1 << column
            for subset, (total, pairs) in before.items():
                reached = best.get(subset | taken)
                if not subset & taken and (reached is None or total + weight > reached[0]):
                    best[subset | taken] = (total + weight, (*pairs, (row, column)))
    return list(max(best.values(), key=lambda each: each[0])[1])

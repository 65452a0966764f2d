"""One-to-one pairs of what is expected and what was answered."""

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias

Edges: TypeAlias = Mapping[tuple[int, int], Sequence[int]]
"""What may be paired, as ``(row, column)``, and how welcome each pair is: whole numbers of at least 0, the weightiest
first, as many for each pair."""

_EXACT = 2**53
"""Whole numbers up to here are exact in double precision, which `linear_sum_assignment` of SciPy computes in."""


def first_pairs(rows: Iterable[Hashable | None], columns: Iterable[Hashable | None]) -> list[tuple[int, int]]:
    """Pair equal keys of expected and predicted items one-to-one: each row takes the first free column with its key.

    ``None`` is no key. Among equal keys this pairs as many as possible.

    Example:
        >>> first_pairs("abca", "xaca")
        [(0, 1), (2, 2), (3, 3)]
    """
    free: defaultdict[Hashable, deque[int]] = defaultdict(deque)
    for column, key in enumerate(columns):
        if key is not None:
            free[key].append(column)
    return [(row, free[key].popleft()) for row, key in enumerate(rows) if free.get(key)]


def best_pairs(edges: Edges) -> list[tuple[int, int]]:
    """Pair expected with predicted items one-to-one: a maximum bipartite matching, the best one by preference.

    Among the matchings of most pairs, the sum of the first preference is as large as possible, then that of the
    second, and so on. Exact; but of so many pairs that their value goes beyond 2 ** 53, the last preferences are
    left out (three preferences of 0 or 1 fit for 9,000 pairs).

    Returns:
        The pairs, sorted. Ties between matchings are broken by row and column numbers alone.

    Example:
        >>> best_pairs({(0, 0): [1], (0, 1): [0], (1, 0): [1]})
        [(0, 1), (1, 0)]
    """
    rows, columns = (sorted({edge[side] for edge in edges}) for side in (0, 1))
    if min(len(rows), len(columns)) <= 1:
        return sorted(edges, key=lambda edge: ([-preference for preference in edges[edge]], edge))[:1]
    if len(rows) == len(columns) == len(edges):  # nothing has a choice
        return sorted(edges)
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    row_place, column_place = ({name: place for place, name in enumerate(side)} for side in (rows, columns))
    values = np.zeros((len(rows), len(columns)))
    for (row, column), value in _values(edges, min(len(rows), len(columns))).items():
        values[row_place[row], column_place[column]] = value
    pairs = zip(*linear_sum_assignment(values, maximize=True), strict=True)
    chosen = ((rows[row], columns[column]) for row, column in pairs)
    return sorted(pair for pair in chosen if pair in edges)


def _values(edges: Edges, most: int) -> dict[tuple[int, int], int]:
    """Turn a possible pair's preferences into one number, so that sums over at most `most` pairs compare like them.

    A pair weighs more than all preferences together, and a preference more than all after it together.
    """
    values = dict.fromkeys(edges, 1)
    for level in range(len(next(iter(edges.values())))):
        base = most * max(edge[level] for edge in edges.values()) + 1
        if most * base * (max(values.values()) + 1) > _EXACT:
            break
        values = {pair: value * base + edges[pair][level] for pair, value in values.items()}
    return values

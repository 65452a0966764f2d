"""Character spans: how much two of them overlap, and which ones belong together."""

__all__ = ("Span", "assign_spans", "overlap_ratio", "pair_spans", "span_faults")

from collections.abc import Sequence
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]
"""A half-open interval ``[start, end)`` of characters; nothing is assumed of the order of its ends."""


def overlap_ratio(a: Span, b: Span) -> float:
    """Return the length of the intersection of two spans over that of their union (Jaccard 1912).

    Returns:
        In [0, 1]; 1.0 for equal spans. A span that covers no character (empty or reversed) overlaps no other.
    """
    if a == b:
        return 1.0
    shared = min(a[1], b[1]) - max(a[0], b[0])
    if shared <= 0:
        return 0.0
    return shared / (a[1] - a[0] + b[1] - b[0] - shared)


def pair_spans(gold: Sequence[Span], predicted: Sequence[Span]) -> list[tuple[int, int, float]]:
    """Pair spans one-to-one so that the sum of their overlaps is as large as possible.

    Returns:
        ``(index in gold, index in predicted, overlap)`` of the pairs that overlap, by index in gold.
    """
    if not gold or not predicted:
        return []
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    overlaps = np.array([[overlap_ratio(right, answered) for answered in predicted] for right in gold])
    rows, columns = linear_sum_assignment(overlaps, maximize=True)
    pairs = zip(rows.tolist(), columns.tolist(), overlaps[rows, columns].tolist(), strict=True)
    return [pair for pair in pairs if pair[2] > 0]


def assign_spans(gold: Sequence[Span], predicted: Sequence[Span]) -> list[float]:
    """Return for each gold span its overlap with the predicted span that `pair_spans` gives it.

    Returns:
        One number in [0, 1] for each gold span, in order; 0.0 where none is assigned.
    """
    overlaps = [0.0] * len(gold)
    for row, _, overlap in pair_spans(gold, predicted):
        overlaps[row] = overlap
    return overlaps


def span_faults(spans: Sequence[Span], length: int) -> dict[str, list[int]]:
    """Say which spans are not a proper, separate part of a text.

    Args:
        spans: Spans in any order.
        length: Of the text in characters.

    Returns:
        Indices into `spans` by kind; kinds without a span are left out. ``outside``: an end lies before or after
        the text; ``empty``: both ends are the same; ``reversed``: the end comes before the start;
        ``overlapping``: it begins before an earlier one has ended.
    """
    faults: dict[str, list[int]] = {
        "outside": [
            index for index, (start, end) in enumerate(spans) if min(start, end) < 0 or max(start, end) > length
        ],
        "empty": [index for index, (start, end) in enumerate(spans) if start == end],
        "reversed": [index for index, (start, end) in enumerate(spans) if start > end],
        "overlapping": _overlapping(spans),
    }
    return {kind: indices for kind, indices in faults.items() if indices}


def _overlapping(spans: Sequence[Span]) -> list[int]:
    found: list[int] = []
    reached: int | None = None
    for start, end, index in sorted((start, end, index) for index, (start, end) in enumerate(spans) if start < end):
        if reached is not None and start < reached:
            found.append(index)
        reached = end if reached is None else max(reached, end)
    return sorted(found)

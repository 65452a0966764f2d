"""Sequences of tool names, compared."""

__all__ = ("ORDERS", "Order", "common_subsequence", "follows")

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, get_args

Order: TypeAlias = Literal["exact", "in_order", "any_order", "superset", "subset"]
"""How the names of calls are compared."""

ORDERS: Final = get_args(Order)


def follows(expected: Sequence[str], called: Sequence[str], order: Order) -> bool:
    """Return whether calls follow the expected trajectory.

    Args:
        expected: The names of the expected calls.
        called: The names of the calls.
        order: ``exact``: the same sequence. ``in_order``: the expected sequence is a subsequence of the calls.
            ``any_order``: the same names, equally often. ``superset``: each expected name at least as often as
            expected. ``subset``: no name more often than expected.

    Example:
        >>> follows(["search", "book"], ["search", "look", "book"], "in_order")
        True
        >>> follows(["search", "book"], ["book", "search"], "any_order")
        True
    """
    if order == "exact":
        return list(expected) == list(called)
    if order == "in_order":
        rest = iter(called)
        return all(name in rest for name in expected)
    right, made = Counter(expected), Counter(called)
    if order == "any_order":
        return right == made
    return right <= made if order == "superset" else made <= right


def common_subsequence(expected: Sequence[str], called: Sequence[str]) -> int:
    """Return the length of the longest common subsequence.

    >>> common_subsequence("abcd", "badc")
    2
    """
    from rapidfuzz.distance import LCSseq

    return len(expected) if expected == called else LCSseq.similarity(expected, called)

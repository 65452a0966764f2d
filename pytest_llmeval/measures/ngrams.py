"""Numbered tokens, and how many n-grams two token lists share."""

__all__ = ("number_tokens", "shared_count", "shared_ngrams")

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence


def number_tokens(left: Sequence[str], right: Sequence[str]) -> tuple[list[int], list[int], int]:
    """Replace tokens by small numbers, equal tokens by equal ones.

    Returns:
        Both sides as numbers, and how many different tokens there are.
    """
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    number = numbers.__getitem__
    return list(map(number, left)), list(map(number, right)), len(numbers)


def shared_count(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """Return the size of the intersection of two multisets."""
    left_set, right_set = set(left), set(right)
    common = left_set & right_set
    if len(left_set) == len(left) or len(right_set) == len(right):
        return len(common)
    left_counts, right_counts = Counter(left), Counter(right)
    return sum(map(min, map(left_counts.__getitem__, common), map(right_counts.__getitem__, common)))


def shared_ngrams(left: Sequence[int], right: Sequence[int], size: int, longest: int) -> list[int]:
    """Count the n-grams that two lists share (clipped counts), for n from 1 to `longest`.

    Args:
        left: Token numbers, each below `size`.
        right: As `left`.
        size: How many different tokens there are; an n-gram is numbered in base `size`.
        longest: The highest order.

    Returns:
        The counts; order n stands at position n - 1.
    """
    counts = [0] * longest
    left_grams, right_grams = left, right
    for order in range(longest):
        if order:
            left_grams = [gram * size + token for gram, token in zip(left_grams, left[order:], strict=False)]
            right_grams = [
                gram * size + token for gram, token in zip(right_grams, right[order:], strict=False)
            ]
        counts[order] = shared_count(left_grams, right_grams)
        if not counts[order]:
            # No shared n-gram: no longer one can be shared.
            break
    return counts

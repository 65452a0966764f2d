"""Token ids, and counts of common n-grams."""

__all__ = ("exact_match", "harmonic_mean", "number_tokens", "shared_count", "shared_ngrams", "token_f1")

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

_SHORT = 32
"""Below this length, counting in a loop is faster than making counters."""


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
    """Return the size of the intersection of two multisets.

    Example:
        >>> shared_count("aab", "aaac")
        2
    """
    left_set = set(left)
    if len(left_set) == len(left):
        return len(left_set.intersection(right))
    right_set = set(right)
    common = left_set & right_set
    if len(right_set) == len(right):
        return len(common)
    if len(right) < _SHORT:
        return _shared_count_of_few(left, right)
    if 2 * len(common) < len(left_set):
        left = list(filter(common.__contains__, left))
        right = list(filter(common.__contains__, right))
    get = Counter(left).get
    return sum(
        [
            mine if mine < other else other  # noqa: FURB136  # calling min takes a third longer
            for item, other in Counter(right).items()
            if (mine := get(item))
        ]
    )


def _shared_count_of_few(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    if left == right:
        return len(left)
    unmatched: dict[Hashable, int] = {}
    for item in right:
        unmatched[item] = unmatched.get(item, 0) + 1
    shared = 0
    for item in left:
        if unmatched.get(item):
            unmatched[item] -= 1
            shared += 1
    return shared


def shared_ngrams(left: Sequence[int], right: Sequence[int], size: int, longest: int) -> list[int]:
    """Count the n-grams that two lists share (clipped counts), for n from 1 to `longest`.

    Args:
        left: Token numbers, each below `size`.
        right: As `left`.
        size: How many different tokens there are; an n-gram is numbered in base `size`.
        longest: The highest order.

    Returns:
        The counts; order n is at index n - 1.
    """
    shared = [shared_count(left, right)] + [0] * (longest - 1)
    left_grams, right_grams = left, right
    for order in range(2, longest + 1):
        if not shared[order - 2]:
            # Without a shared n-gram there is no longer one.
            break
        left_grams = [gram * size + token for gram, token in zip(left_grams, left[order - 1 :], strict=False)]
        right_grams = [gram * size + token for gram, token in zip(right_grams, right[order - 1 :], strict=False)]
        shared[order - 1] = shared_count(left_grams, right_grams)
    return shared


def exact_match(prediction: str, reference: str) -> float:
    """Return 1.0 if both texts are the same but for case and outer white space, else 0.0."""
    return float(prediction.strip().lower() == reference.strip().lower())


def token_f1(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """Return F1 of the two multisets of tokens.

    With *c* tokens in common, P = c / len(prediction), R = c / len(reference), F1 = 2PR / (P + R). In [0, 1]; 0
    where a side has no token. It is SQuAD's answer score (Rajpurkar et al. 2016) without dropping articles.
    """
    common = shared_count(prediction, reference)
    return harmonic_mean(common / len(prediction), common / len(reference)) if common else 0.0


def harmonic_mean(precision: float, recall: float) -> float:
    """Return 2PR / (P + R), and 0 where both are 0."""
    total = precision + recall
    return 2 * precision * recall / total if total > 0 else 0.0

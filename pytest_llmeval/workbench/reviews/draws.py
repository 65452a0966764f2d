"""Random choices of answers."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from itertools import accumulate
from typing import TYPE_CHECKING, Final
from zlib import crc32

from pytest_llmeval.core import FloatArray, LlmevalError
from pytest_llmeval.evaluators import AnswerText

if TYPE_CHECKING:
    from pytest_llmeval.workbench.reviews.modes import Draw

BASE: Final = 0.5
"""Share of the picks that is spread evenly: no answer weighs more than twice as much as in an even choice."""


def inclusion_probabilities(worth: Sequence[float], size: int) -> list[float]:
    """The probability with which each answer is drawn for review: half even, half in proportion to its worth.

    Args:
        worth: What a label of each would teach, at least 0.
        size: How many are picked.

    Returns:
        Numbers above 0, at most 1, whose sum is `size`, or 1 each where there are no more answers.

    >>> inclusion_probabilities([0, 0, 1, 3], 2)
    [0.25, 0.25, 0.5, 1.0]
    """
    count = len(worth)
    if size >= count:
        return [1.0] * count
    total = sum(worth)
    shares = [BASE / count + (1 - BASE) * value / total if total else 1 / count for value in worth]
    certain: set[int] = set()
    while True:
        remainder = sum(share for place, share in enumerate(shares) if place not in certain)
        factor = (size - len(certain)) / remainder
        more = {place for place, share in enumerate(shares) if place not in certain and factor * share >= 1}
        if not more:
            return [1.0 if place in certain else factor * share for place, share in enumerate(shares)]
        certain |= more


def drawn(
    draw: "Draw",
    size: int,
    names: Sequence[str],
    seed: int,
    *,
    failed: Sequence[bool],
    worth: Sequence[float],
    texts: Sequence[str],
) -> tuple[list[int], list[float]]:
    """Draw the answers of a review, and return their probabilities.

    Args:
        draw: How; of each kind, half of the probability is even over all answers.
        size: How many, at least 1.
        names: Of the answers, each once.
        seed: Any whole number.
        failed: Whether a case with the answer failed, for ``failing``.
        worth: What labels would teach, for ``uncertain``.
        texts: Contents, for ``spread``.

    Returns:
        The places of the picks in rising order, and the probability of each answer.

    Raises:
        LlmevalError: Failing answers are preferred, and there are none.
    """
    if draw == "failing" and not any(failed):
        raise LlmevalError("no answer failed: draw 'random' or 'spread'")
    groups = content_groups(texts, names, size, seed) if draw == "spread" else None
    sizes = Counter(groups or ())
    preferred = {
        "failing": list(map(float, failed)),
        "spread": [1 / sizes[group] for group in groups or ()],
        "uncertain": list(worth),
    }.get(draw, [0.0] * len(names))
    probabilities = inclusion_probabilities(preferred, size)
    return picked(probabilities, names, seed, groups), probabilities


def picked(
    probabilities: Sequence[float], names: Sequence[str], seed: int, groups: Sequence[int] | None = None
) -> list[int]:
    """Pick answers for review with given probabilities: systematic sampling in random order (Goodman and Kish 1950).

    Args:
        probabilities: Their sum is the number that is picked.
        names: Of the answers, each once. The picks depend on names and seed alone, not on the order.
        seed: Any whole number.
        groups: Of each answer; those of one group are next to each other in the order, which spreads the picks.

    Returns:
        Places of the picks, in rising order.
    """
    order = shuffled(names, seed, "order")
    if groups is not None:
        order.sort(key=groups.__getitem__)
    ends = list(accumulate(probabilities[place] for place in order))
    start = _number(seed, "start", "") / 2**256
    chosen = (bisect_left(ends, start + step) for step in range(round(ends[-1]) if ends else 0))
    return sorted({order[min(place, len(order) - 1)] for place in chosen})


def shuffled(names: Sequence[str], seed: int, purpose: str) -> list[int]:
    """The positions of answers in a random order that depends on names, seed and purpose alone."""
    return sorted(range(len(names)), key=lambda place: (_number(seed, purpose, names[place]), names[place]))


def _number(seed: int, purpose: str, name: str) -> int:
    """A large number that depends on seed, purpose and name alone, for reproducible draws of answers."""
    text = f"{seed} {purpose} {name}"
    return int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest())


_DIMENSIONS: Final = 512
_SAME: Final = 1e-6


def content_groups(texts: Sequence[str], names: Sequence[str], size: int, seed: int) -> list[int]:
    """Group answers by the words of their texts, so that a review draws from all groups.

    The centres are chosen one after the other, each the farthest from all earlier ones (Gonzalez 1985). Groups depend
    on texts, names and seed alone, not on the order.

    Args:
        texts: At least one.
        names: Of the texts, each once.
        size: The greatest number of groups, at least 1; there are fewer where texts have the same words.
        seed: Of the first centre.

    Returns:
        The number of the group of each text, counted from 0.

    >>> content_groups(["no refund", "no refund", "rude"], ["a", "b", "c"], 2, seed=1)
    [0, 0, 1]
    """
    import numpy as np

    order = shuffled(names, seed, "centre")
    vectors = _word_vectors([texts[place] for place in order])
    groups = np.zeros(len(texts), dtype=int)
    nearest = _distances(vectors, 0)
    for number in range(1, size):
        centre = int(nearest.argmax())
        if nearest[centre] <= _SAME:
            break
        distances = _distances(vectors, centre)
        groups[distances < nearest] = number
        nearest = np.minimum(nearest, distances)
    by_place = dict(zip(order, groups.tolist(), strict=True))
    return [by_place[place] for place in range(len(texts))]


def _distances(vectors: FloatArray, centre: int) -> FloatArray:
    """The distances of answers' word vectors from a centre, rounded so that they are equal on all machines."""
    distances: FloatArray = (1 - vectors @ vectors[centre]).round(6)
    return distances


def _word_vectors(texts: Sequence[str]) -> FloatArray:
    """The words of each answer as a vector of length 1, or 0 without words."""
    import numpy as np

    vectors = np.zeros((len(texts), _DIMENSIONS))
    for row, text in enumerate(texts):
        for word in {*AnswerText(text).words} or {""}:
            vectors[row, crc32(word.encode("utf-8", "surrogatepass")) % _DIMENSIONS] += 1
    lengths: FloatArray = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors /= np.maximum(lengths, 1)
    return vectors

"""What two texts differ in, by words."""

__all__ = ("word_lines",)

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from pytest_llmeval.core.wording import listed

_MOST = 10


def word_lines(prediction: str, references: Iterable[str], split: Callable[[str], Sequence[str]]) -> list[str]:
    """Say which words an answer lacks and which it has too many, against the reference that shares most with it.

    Args:
        prediction: The answer.
        references: The right answers; nothing is said where one of them is the prediction.
        split: Returns the words of a text.

    >>> word_lines("It is Lyon", ["Paris", "It is Paris"], str.split)
    ['missing words: Paris', 'extra words: Lyon']
    """
    texts = list(references)
    if not texts or prediction.strip() in map(str.strip, texts):
        return []
    if not prediction.strip():
        return ["the answer is empty"]
    found = Counter(split(prediction))
    wanted = max(map(Counter, map(split, texts)), key=lambda words: _likeness(words, found))
    lines = [
        f"{name} words: {listed(words.elements(), _MOST)}"
        for name, words in (("missing", wanted - found), ("extra", found - wanted))
        if words
    ]
    return lines or ["the same words, in another order, case or punctuation"]


def _likeness(left: "Counter[str]", right: "Counter[str]") -> float:
    total = left.total() + right.total()
    return 2 * (left & right).total() / total if total else 0.0

"""Sentences of Chinese, Japanese and English text as half-open character intervals, and offsets in them."""

__all__ = ("sentence_index", "sentence_spans")

import re
from bisect import bisect_right
from collections.abc import Sequence

_END_MARKS = re.compile("[。！？.!?]+")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Split a text into sentences.

    A sentence ends after a run of ``。 ！ ？ . ! ?``, and the next one begins right there, with the white space
    between them. What follows the last run, even white space alone, is one more sentence. Abbreviations and
    decimals do split. Linear in the length of the text.

    Args:
        text: Any text.

    Returns:
        ``[start, end)`` of each sentence, in order and without gaps; empty for an empty text.

    Example:
        >>> sentence_spans("One... Two?! Three")
        [(0, 6), (6, 12), (12, 18)]
    """
    ends = [match.end() for match in _END_MARKS.finditer(text)]
    if text and (not ends or ends[-1] < len(text)):
        ends.append(len(text))
    return list(zip([0, *ends], ends, strict=False))


def sentence_index(position: int, spans: Sequence[tuple[int, int]]) -> int:
    """Return the index of the sentence that contains a character position.

    Args:
        position: Character offset; it may lie outside the text.
        spans: What `sentence_spans` returned.

    Returns:
        The index, counted from 0. A position before the text gives the first sentence, one at or after its end
        the last; -1 if there is no sentence.
    """
    if not spans:
        return -1
    return max(bisect_right(spans, position, key=lambda span: span[0]) - 1, 0)

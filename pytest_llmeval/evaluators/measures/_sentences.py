"""Sentences of texts, with the passages that they cite."""

import re
from collections.abc import Iterator

_NUMBERS = r"\d{1,3}(?:\s*(?:[,，、;；&]|and|和|与|及|[-–—~～至])\s*\d{1,3})*"
_MARK = rf"[\[［【]\s*\^?{_NUMBERS}\s*[\]］】]"
_END = re.compile(rf"(?:(?P<stop>[.!?…。！？]+)[\"'”’」』）)*_`]*(?:[^\S\n]*{_MARK})*|\n+)")
_ENDS_ANYWHERE = re.compile("[。！？]")
_GOES_ON = re.compile(r"\S|[^\S\n]{1,9}[a-z]")
_INITIAL = re.compile(r"(?<!\S)(?:[A-Z]|\d+)$")
_LONGEST_LABEL = 9
_CITATION = re.compile(rf"(?<!^){_MARK}")
_PART = re.compile(r"(?P<first>\d{1,3})(?:\s*[-–—~～至]\s*(?P<last>\d{1,3}))?")
_READABLE = re.compile(r"[^\W_]")


def split_sentences(text: str) -> list[str]:
    r"""The sentences of an answer's text as people read them.

    A sentence ends with its line, after ``。 ！ ？``, and after ``. ! ?`` before white space, with the quotation marks
    and citations that follow; but not before a small letter, nor after an initial or a number, as in lists. What has
    neither letter nor digit is no sentence.

    Example:
        >>> split_sentences("It takes 3.5 days. [1] J. Doe said so!\n1. Ask him.")
        ['It takes 3.5 days. [1]', 'J. Doe said so!', '1. Ask him.']
        >>> split_sentences("三十天内可以退货。[2]运费另计！")
        ['三十天内可以退货。[2]', '运费另计！']
    """
    pieces = (text[start:end].strip() for start, end in _sentence_spans(text))
    return [piece for piece in pieces if _READABLE.search(piece)]


def _sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each sentence in a text."""
    start = 0
    for end in _END.finditer(text):
        if end["stop"] is None or _is_end(text, start, end):
            yield start, end.end()
            start = end.end()
    yield start, len(text)


def _is_end(text: str, start: int, end: re.Match[str]) -> bool:
    """Whether marks that may end a sentence of an answer do so."""
    if _ENDS_ANYWHERE.search(end["stop"]):
        return True
    if _GOES_ON.match(text, end.end()):
        return False
    return end["stop"] != "." or not _INITIAL.search(text[max(start, end.start() - _LONGEST_LABEL) : end.start()])


def cited_by(sentence: str) -> list[int]:
    """The numbers of the passages that a sentence of an answer cites, each once, in order.

    Citations are ``[1]``, ``[^1]``, ``[1, 3]``, ``[1 and 3]``, ``[2-4]``, ``【1】`` and ``［1］``. One that begins the
    sentence, and so its line, is the label of an entry in a list of sources, and cites nothing.

    Example:
        >>> cited_by("Refunds take 30 days [2], and shipping is free [1-3]."), cited_by("[1] https://example.org/terms")
        ([2, 1, 3], [])
    """
    numbers: dict[int, None] = {}
    for mark in _CITATION.finditer(sentence):
        for part in _PART.finditer(mark.group()):
            first, last = sorted((int(part["first"]), int(part["last"] or part["first"])))
            numbers |= dict.fromkeys(range(first, last + 1))
    return list(numbers)

"""Cause spans: locating quoted words among the tokens of an utterance."""

__all__ = ("clean_span", "joined_tokens", "locate_span", "tokens")

import re
from string import punctuation

_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Thai, Lao, Burmese, Khmer, Kana and Han: their words have no spaces between them."""

_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")


def tokens(text: str) -> list[str]:
    """Return the tokens of an utterance: what stands between white space, as in the official script.

    In a text with characters of a script without spaces each of these is a token, and so is each mark.

    >>> tokens("Hi , tushy !"), tokens("我难过，OK？")
    (['Hi', ',', 'tushy', '!'], ['我', '难', '过', '，', 'OK', '？'])
    """
    return _TOKEN.findall(text) if _HAS_UNSPACED.search(text) else text.split()


def joined_tokens(utterance: str, start: int, end: int) -> str:
    """Return the words of a span of an utterance."""
    return ("" if _HAS_UNSPACED.search(utterance) else " ").join(tokens(utterance)[start:end])


def clean_span(text: str) -> str:
    """Return a span without ASCII punctuation and white space around it; empty if it is nothing else.

    Example:
        >>> clean_span("What ? !")
        'What'
    """
    start, end = 0, len(text)
    while start < end and _is_outer(text[start]):
        start += 1
    while start < end and _is_outer(text[end - 1]):
        end -= 1
    return text[start:end]


def _is_outer(character: str) -> bool:
    return character in punctuation or character.isspace()


def locate_span(span_text: str, utterance_text: str) -> tuple[int, int]:
    """Return the position of a span in an utterance, by the rule of the official script.

    The span is cleaned as by `clean_span`; both are split into `tokens`, at white space unless the utterance is in a
    script without spaces. The span is where its tokens first follow one another in the utterance.

    Returns:
        The first token, counted from 0, and the token after the last; ``(0, 0)``, a span without token, if the span
        does not occur.

    Example:
        >>> locate_span("tushy !", "Hi , tushy !")
        (2, 3)
    """
    utterance = tokens(utterance_text)
    if _HAS_UNSPACED.search(utterance_text):
        span = _TOKEN.findall(span_text)
        while span and not span[0].isalnum():
            del span[0]
        while span and not span[-1].isalnum():
            del span[-1]
    else:
        span = clean_span(span_text).split()
    size = len(span)
    for start in range(len(utterance) - size + 1 if size else 0):
        if utterance[start : start + size] == span:
            return start, start + size
    return 0, 0

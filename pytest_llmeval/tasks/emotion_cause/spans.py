"""Cause spans: locating quoted words among the tokens of an utterance."""

__all__ = ("clean_span", "locate_span")

from string import punctuation


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

    The span is cleaned as by `clean_span`; both are split at white space. The span is where its tokens first follow
    one another in the utterance.

    Returns:
        The first token, counted from 0, and the token after the last; ``(0, 0)``, a span without token, if the span
        does not occur.

    Example:
        >>> locate_span("tushy !", "Hi , tushy !")
        (2, 3)
    """
    span, utterance = clean_span(span_text).split(), utterance_text.split()
    size = len(span)
    for start in range(len(utterance) - size + 1 if size else 0):
        if utterance[start : start + size] == span:
            return start, start + size
    return 0, 0

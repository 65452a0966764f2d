"""Gold annotations of a conversation: utterances, and pairs with located spans."""

__all__ = ("gold_pair", "utterance_texts")

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_llmeval.tasks.emotion_cause.pairs import (
    Pair,
    PairFault,
    SpanPair,
    Subtask,
    parse_cause_utterance,
    parse_emotion,
    parse_pair,
    quoted,
    two_items,
)
from pytest_llmeval.tasks.emotion_cause.spans import locate_span

_POSITIONS = re.compile(r"U?\d+_\d+_\d+")
_NOWHERE = (0, 0)
_SPAN_TEXT = re.compile(r"U?(\d+)_(.*)", re.DOTALL)


def utterance_texts(conversation: Any) -> list[str] | None:
    """Return the texts of the utterances of a conversation.

    Args:
        conversation: An official conversation, or its list of utterances; an utterance is an object with ``text``, or
            a text.

    Returns:
        The texts in order; ``None`` if it is anything else.
    """
    if isinstance(conversation, Mapping):
        conversation = conversation.get("conversation")
    if not isinstance(conversation, (list, tuple)):
        return None
    given = [each.get("text") if isinstance(each, Mapping) else each for each in conversation]
    texts = [text for text in given if isinstance(text, str)]
    return texts if len(texts) == len(given) else None


def gold_pair(
    raw: Any, subtask: Subtask, texts: Sequence[str] | None = None, absent: tuple[int, int] | None = None
) -> Pair:
    """Read a gold pair, or a predicted one that quotes the words of its span.

    In Subtask 1 it has the words of the span, ``["3_surprise", "1_some words"]``, which `locate_span` finds in the
    first utterance; or positions like a prediction. Otherwise it is as in `parse_pair`.

    Args:
        raw: The pair.
        subtask: 1 or 2.
        texts: Of all utterances in order, where spans are words.
        absent: The span of words that the utterance does not have; ``None``: they are a fault.

    Raises:
        PairFault: The pair breaks a rule, or there is no text of its cause utterance.
    """
    if subtask == 2:  # noqa: PLR2004 (the number of the subtask)
        return parse_pair(raw, subtask)
    left, right = two_items(raw)
    worded = _SPAN_TEXT.fullmatch(right) if isinstance(right, str) and not _POSITIONS.fullmatch(right) else None
    if worded is None:
        return parse_pair(raw, subtask)
    utterance, emotion = parse_emotion(left)
    cause = parse_cause_utterance(worded[1])
    if texts is None:
        message = f"found the words {quoted(worded[2])}, expected positions, or the utterances as input"
        raise PairFault("cause span", message)
    if not 1 <= cause <= len(texts):
        raise PairFault("cause utterance", f"found utterance {cause}, expected 1 to {len(texts)}")
    span = locate_span(worded[2], texts[cause - 1])
    if span == _NOWHERE:
        if absent is None:
            message = f"found the words {quoted(worded[2])}, expected words of utterance {cause}"
            raise PairFault("cause span", f"{message}, {quoted(texts[cause - 1])}")
        span = absent
    return SpanPair(utterance, cause, *span, emotion)

"""Conversion between the forms of emotion-cause files: gold with quoted words, official files, internal lists."""

__all__ = ("Converted", "Form", "convert_pairs", "internal_text", "official_text")

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

from pytest_llmeval.tasks.emotion_cause.gold import gold_pair, utterance_texts
from pytest_llmeval.tasks.emotion_cause.pair_files import ID, PAIRS, PairConversation, PairFile
from pytest_llmeval.tasks.emotion_cause.pairs import (
    EMOTIONS,
    Pair,
    SpanPair,
    Subtask,
    format_pair,
    parse_internal,
    parse_pair,
    quoted,
)

Form: TypeAlias = Literal["internal", "official", "text"]
"""How pairs are written: as numbers, as in a submission, or with the words of their spans as in official gold files."""


@dataclass
class Converted:
    """Pairs that have been read.

    Attributes:
        pairs: Conversation to its pairs, in the order of the file.
        notes: What was converted and may not be meant.
    """

    pairs: dict[int, list[Pair]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def convert_pairs(file: PairFile, form: Form, subtask: Subtask, conversations: PairFile | None = None) -> Converted:
    """Read the pairs of a file.

    The words of spans become positions by the rule of the official script: a span whose words the utterance does not
    have gets the positions 0 to 0, and a note.

    Args:
        file: Gets the faults of its pairs.
        form: How they are written.
        subtask: What they are about.
        conversations: An official file with the utterances that `file` has not. Its conversations come first, in its
            order, also those without pairs.
    """
    if file.conversations and file.internal != (form == "internal"):
        found = "an internal list of pairs" if file.internal else "conversations instead of an internal list"
        file.fault((), None, "submission form", f"found {found}, expected the form {form!r}")
        return Converted()
    known = conversations.conversations if conversations is not None else {}
    converted = Converted({number: [] for number in known})
    for conversation in file.conversations.values():
        file.check_list(conversation)
        texts = _texts(conversation, known.get(conversation.number))
        pairs = converted.pairs.setdefault(conversation.number, [])
        for position, (raw, pair) in enumerate(file.parse(conversation, _reader(form, subtask, texts)), start=1):
            pairs.append(pair)
            if form == "text" and isinstance(pair, SpanPair) and pair.start == pair.end:
                place = f"conversation {conversation.number}, pair {position} {quoted(raw)}"
                converted.notes.append(
                    f"{place}: utterance {pair.cause_utterance} does not contain these words; the span is empty"
                )
    return converted


def _reader(form: Form, subtask: Subtask, texts: list[str] | None) -> Callable[[Any], Pair]:
    if form == "internal":
        return lambda raw: parse_internal(raw, subtask)[1]
    if form == "text":
        return partial(gold_pair, subtask=subtask, texts=texts, absent=(0, 0))
    return partial(parse_pair, subtask=subtask)


def _texts(conversation: PairConversation, known: PairConversation | None) -> list[str] | None:
    own = utterance_texts(conversation.entry)
    return own if own is not None or known is None else utterance_texts(known.entry)


def official_text(pairs: Mapping[int, Sequence[Pair]]) -> str:
    """Return the text of a submission, with a line for each conversation."""
    return _lines({ID: number, PAIRS: [format_pair(pair) for pair in each]} for number, each in pairs.items())


def internal_text(pairs: Mapping[int, Sequence[Pair]], *, with_spans: bool = False) -> str:
    """Return the text of an internal list, with a line for each pair.

    Args:
        pairs: By conversation.
        with_spans: Whether to write six numbers for a pair with a span; otherwise pairs that differ in their spans only
            become one.
    """
    rows: list[tuple[int, ...]] = []
    for number, each in pairs.items():
        if with_spans:
            rows += [(number, *pair[:-1], EMOTIONS.index(pair.emotion)) for pair in each]
            continue
        plain = [(number, pair.emotion_utterance, pair.cause_utterance, EMOTIONS.index(pair.emotion)) for pair in each]
        spans = any(isinstance(pair, SpanPair) for pair in each)
        rows += dict.fromkeys(plain) if spans else plain
    return _lines(rows)


def _lines(rows: Iterable[Any]) -> str:
    lines = [json.dumps(row) for row in rows]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"

"""The gold annotation of a conversation, its predicted pairs in any form, their errors, and scores of utterances."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import compress
from typing import Any, Final, NamedTuple

from pytest_llmeval.core import FloatArray
from pytest_llmeval.evaluators import AnswerValue
from pytest_llmeval.tasks._replies import ReplyData, read_reply
from pytest_llmeval.tasks.emotion_cause._pairs import (
    CANDIDATES,
    ID,
    KEEP,
    PAIRS,
    Pair,
    PairFault,
    SpanPair,
    SubmissionFault,
    Subtask,
    format_pair,
    internal_number,
    joined_tokens,
    locate_span,
    order_fault,
    parse_cause_utterance,
    parse_emotion,
    parse_internal,
    parse_pair,
    quoted,
    two_items,
    whole_fault,
    whole_number,
)
from pytest_llmeval.tasks.emotion_cause._scores import (
    PARTS,
    prf,
)

_POSITIONS = re.compile(r"U?\d+_\d+_\d+")

NOWHERE: Final = (0, 0)
"""The official position of words that an utterance does not have: a span without token."""

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
    utterances = [utterance.get("text") if isinstance(utterance, Mapping) else utterance for utterance in conversation]
    texts = [text for text in utterances if isinstance(text, str)]
    return texts if len(texts) == len(utterances) else None


def gold_pair(
    raw: Any, subtask: Subtask, texts: Sequence[str] | None = None, absent: tuple[int, int] = NOWHERE
) -> Pair:
    """Read a gold pair, or a predicted one that quotes the words of its span.

    In Subtask 1 it has the words of the span, ``["3_surprise", "1_some words"]``, which `locate_span` finds in the
    first utterance; or positions like a prediction. If not, it is as in `parse_pair`.

    Args:
        raw: The pair.
        subtask: 1 or 2.
        texts: Of all utterances in order, where spans are words.
        absent: The span of words that the utterance does not have; default: `NOWHERE`, as in the official script.

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
    return SpanPair(utterance, cause, *(absent if span == NOWHERE else span), emotion)


def has_absent_words(raw: Any, pair: Pair) -> bool:
    """Whether a gold pair quotes words that its utterance does not have."""
    if not isinstance(pair, SpanPair) or (pair.start, pair.end) != NOWHERE or internal_number(raw) is not None:
        return False
    return not _POSITIONS.fullmatch(raw[1])


def checked_order(pair: Pair) -> Pair:
    """Return a gold emotion-cause pair whose span does not end before it starts.

    Raises:
        PairFault: Its span ends before it starts.
    """
    if wrong := order_fault(pair):
        raise PairFault("span order", wrong)
    return pair


_GOLD_FORM = f"expected a list of pairs, or an object with {PAIRS}"
_FORM = f"{_GOLD_FORM}, or with {CANDIDATES[0]} and {KEEP}"

LABELS = ("emotions", "causes")
"""Keys of objects with a label for each utterance."""

OBJECT_KEYS = (PAIRS, *CANDIDATES, *LABELS)
"""Keys of the objects that are predictions."""


@dataclass(frozen=True, slots=True)
class Gold:
    """The right emotion-cause pairs of a conversation, and the faults of the others.

    Attributes:
        pairs: In the order given, repeated ones included; ``None`` without ground truth, which is not the
            same as a conversation without pairs.
        faults: Of the pairs, which are left out, or of the whole.
    """

    pairs: Sequence[Pair] | None
    faults: Sequence[SubmissionFault] = ()


@dataclass(frozen=True, slots=True)
class Predicted:
    """The predicted emotion-cause pairs of a conversation, kept or only candidates, and their faults.

    Attributes:
        candidates: In the order given, repeated ones included.
        keep: For each candidate whether it is kept; the others are predicted by a first step only.
        faults: Of the pairs, which are left out, or of the whole.
    """

    candidates: Sequence[Pair] = ()
    keep: Sequence[bool] = ()
    faults: Sequence[SubmissionFault] = ()

    def pairs(self) -> Sequence[Pair]:
        """Return the candidates that the second step keeps: the prediction."""
        if all(self.keep):
            return self.candidates
        return [pair for pair, flag in zip(self.candidates, self.keep, strict=True) if flag]


def read_gold(expected: Any, conversation: Any, subtask: Subtask, name: Any, *, labels: bool = False) -> Gold:
    """Read a conversation's gold emotion-cause pairs.

    Args:
        expected: A list of gold pairs as in `gold_pair`, or of internal ones as in `parse_internal`; or an object with
            them as ``emotion-cause_pairs``, whose ``conversation`` overrides `conversation`.
        conversation: The utterances, or ``None``.
        subtask: 1 or 2.
        name: Of the conversation, for faults; a ``conversation_ID`` in `expected` overrides it.
        labels: Whether an object may have labels of utterances in place of pairs.
    """
    if expected is None or (labels and _only_labels(expected)):
        return Gold(None)
    raw = expected.get(PAIRS) if isinstance(expected, Mapping) else _as_rows(expected)
    name = _name(expected, name)
    if not isinstance(raw, (list, tuple)):
        return Gold((), [_form_fault(name, expected, raw, _GOLD_FORM)])
    texts = utterances_of(expected, conversation)
    if (right := read_gold_texts(raw, texts, subtask)) is not None:
        return Gold(right)
    pairs: list[Pair] = []
    faults = []
    read = _InternalRows()
    for position, row in enumerate(raw, start=1):
        try:
            internal = read.pair(row, subtask)
            pairs.append(checked_order(gold_pair(row, subtask, texts) if internal is None else internal))
        except PairFault as fault:
            faults.append(SubmissionFault(name, position, row, fault.rule, str(fault)))
    return Gold(pairs, faults)


def _text_pairs(raw: Sequence[Any]) -> list[tuple[str, str]] | None:
    """Emotion-cause pairs of two texts each, unparsed; ``None`` if one has another form."""
    pairs = []
    for pair in raw:
        if type(pair) is not list or len(pair) != 2 or type(pair[0]) is not str or type(pair[1]) is not str:  # noqa: PLR2004 (a pair is two)
            return None
        pairs.append((pair[0], pair[1]))
    return pairs


def _read_plain_pairs(raw: Sequence[Any], subtask: Subtask) -> list[Pair] | None:
    """Predicted emotion-cause pairs of two texts each; ``None`` for other forms or faults, which are read singly."""
    pairs = _text_pairs(raw)
    if pairs is None:
        return None
    try:
        return [checked_order(parse_pair(pair, subtask)) for pair in pairs]
    except PairFault:
        return None


def read_gold_texts(raw: Any, texts: Sequence[str] | None, subtask: Subtask) -> Sequence[Pair] | None:
    """Gold emotion-cause pairs of two texts each; ``None`` for other forms or faults, which are read singly."""
    pairs = _text_pairs(raw)
    if pairs is None:
        return None
    try:
        return _read_text_pairs(tuple(pairs), None if texts is None else tuple(texts), subtask)
    except PairFault:
        return None


@lru_cache(maxsize=4096)
def _read_text_pairs(
    pairs: tuple[tuple[str, str], ...], texts: tuple[str, ...] | None, subtask: Subtask
) -> Sequence[Pair]:
    """The gold emotion-cause pairs that quote texts of utterances, cached since they are read several times."""
    # The gold of a conversation is read where its file is loaded, checked and scored.
    return tuple([checked_order(gold_pair(pair, subtask, texts)) for pair in pairs])


def read_prediction(
    prediction: Any, subtask: Subtask, name: Any, texts: Sequence[str] | None = None, *, labels: bool = False
) -> Predicted:
    """Read a conversation's predicted emotion-cause pairs; unreadable ones are reported, not counted.

    Args:
        prediction: A list of pairs as in `parse_pair`, or of internal ones as in `parse_internal`; an object with them
            as ``emotion-cause_pairs``; an object with ``candidates`` (or ``candidate_pairs``), a list of pairs, and
            ``keep``, whether each of them is kept (0, 1, false or true); or the text of such JSON data.
        subtask: 1 or 2.
        name: Of the conversation, for faults; a ``conversation_ID`` in `prediction` overrides it.
        texts: Of the utterances, where spans may be words; ``None`` where they have to be positions.
        labels: Whether an object may have labels of utterances in place of pairs.
    """
    reply = read_reply(prediction, _rank, lists=True) if isinstance(prediction, str) else ReplyData(prediction)
    if reply.fault:
        return Predicted(faults=[whole_fault(name, "pair list", reply.fault)])
    if reply.value is not None:
        prediction = reply.value
    if labels and _only_labels(prediction):
        return Predicted()
    name = _name(prediction, name)
    step = next((key for key in CANDIDATES if isinstance(prediction, Mapping) and key in prediction), None)
    stepped = step is not None
    raw = prediction.get(step or PAIRS) if isinstance(prediction, Mapping) else _as_rows(prediction)
    if not isinstance(raw, (list, tuple)):
        return Predicted(faults=[_form_fault(name, prediction, raw, _FORM)])
    if not stepped and texts is None and (pairs := _read_plain_pairs(raw, subtask)) is not None:
        return Predicted(pairs, [True] * len(pairs))
    faults: list[SubmissionFault] = []
    flags = _flags(prediction.get(KEEP), len(raw), name, faults) if stepped else [True] * len(raw)
    candidates: list[Pair] = []
    keep: list[bool] = []
    read = _InternalRows()
    for position, (row, flag) in enumerate(zip(raw, flags, strict=True), start=1):
        try:
            pair = read.pair(row, subtask)
            if pair is None:
                # Words that are nowhere make a span of their own that meets no other.
                nowhere = (-position, -position)
                pair = parse_pair(row, subtask) if texts is None else gold_pair(row, subtask, texts, nowhere)
            candidates.append(pair)
        except PairFault as fault:
            faults.append(SubmissionFault(name, position, row, fault.rule, str(fault)))
        else:
            keep.append(flag)
            if wrong := order_fault(pair):
                faults.append(SubmissionFault(name, position, row, "span order", wrong))
    return Predicted(candidates, keep, faults)


def _rank(value: Any) -> int:
    """The likelihood that reply data is the answer: 2 for emotion-cause pairs, 1 for an empty list, 0 for others."""
    if isinstance(value, Mapping):
        return 2 * any(key in value for key in OBJECT_KEYS)
    if not isinstance(value, list):
        return 0
    return 2 if value and all(isinstance(row, list) for row in value) else int(not value)


def _as_rows(value: Any) -> Any:
    """A list of internal emotion-cause pairs; a single pair becomes a list of one."""
    return value if internal_number(value) is None else [value]


def _only_labels(value: Any) -> bool:
    """Whether an emotion-cause annotation is an object with utterance labels and without pairs."""
    return isinstance(value, Mapping) and any(key in value for key in LABELS) and PAIRS not in value


class _InternalRows:
    """Reader of one conversation's emotion-cause pairs in internal (numeric) form."""

    def __init__(self) -> None:
        self._number: int | None = None

    def pair(self, raw: Any, subtask: Subtask) -> Pair | None:
        """Read an internal pair; ``None`` for any other.

        Raises:
            PairFault: It breaks a rule, or is of another conversation than those before it.
        """
        if internal_number(raw) is None:
            return None
        number, pair = parse_internal(raw, subtask)
        if self._number is None:
            self._number = number
        elif number != self._number:
            message = f"found conversation {number}, expected {self._number}, that of the pairs before it"
            raise PairFault("conversation id", message)
        return pair


def _name(value: Any, name: Any) -> Any:
    """The number of a conversation: its own ``conversation_ID``, else the name of its case."""
    identifier = value.get(ID) if isinstance(value, Mapping) else None
    for candidate_id in (identifier, name):
        number = whole_number(candidate_id)
        if number is not None:
            return number
    return name


def utterances_of(expected: Any, conversation: Any) -> list[str] | None:
    """The texts of a conversation's utterances: those of an official object, else those of `conversation`."""
    texts = utterance_texts(expected) if isinstance(expected, Mapping) else None
    return utterance_texts(conversation) if texts is None else texts


def _form_fault(name: Any, value: Any, raw: Any, expected: str) -> SubmissionFault:
    """The fault of an emotion-cause answer whose pairs are no list."""
    excerpt = f"{quoted(raw)} as {PAIRS}" if isinstance(value, Mapping) and PAIRS in value else quoted(value)
    return whole_fault(name, "pair list", f"found {excerpt}, {expected}")


def _flags(keep: Any, length: int, name: Any, faults: list[SubmissionFault]) -> list[bool]:
    """The keep flag of each candidate emotion-cause pair; a candidate without a flag is not kept."""
    values = keep if isinstance(keep, (list, tuple)) else ()
    numbers = [value if isinstance(value, bool) else whole_number(value) for value in values]
    flags = [number in (0, 1) and bool(number) for number in numbers][:length]
    if len(values) != length or not all(number in (0, 1) for number in numbers):
        message = f"found {quoted(keep)} as {KEEP}, expected {length} times 0 or 1, one for each candidate"
        faults.append(whole_fault(name, "pair list", message))
    return flags + [False] * (length - len(flags))


def internal_rows(value: Any) -> dict[int, Any] | None:
    """Each conversation's part of an internal list of emotion-cause pairs; ``None`` for other predictions."""
    key = next((key for key in (*CANDIDATES, PAIRS) if isinstance(value, Mapping) and key in value), None)
    rows = value[key] if key is not None else _as_rows(value)
    numbers = [internal_number(row) for row in rows] if isinstance(rows, (list, tuple)) else [None]
    conversations = [number for number in numbers if number is not None]
    if len(conversations) < len(numbers):
        return None
    return {
        number: _part(value, key, [conversation == number for conversation in conversations])
        for number in dict.fromkeys(conversations)
    }


def _part(value: Any, key: str | None, chosen: Sequence[bool]) -> Any:
    """An emotion-cause prediction with only the chosen pairs and their keep flags, for mutators."""
    if key is None:
        return list(compress(_as_rows(value), chosen))
    keep = value.get(KEEP)
    flags = {KEEP: list(compress(keep, chosen))} if isinstance(keep, (list, tuple)) else {}
    return {**value, key: list(compress(value[key], chosen)), **flags}


SIDES: Final = ("emotion", "cause")
"""Stems of the metrics, in the order of `LABELS`."""

UTTERANCE_METRICS: Final = tuple(f"{side}_{part}" for side in SIDES for part in PARTS)

_NONE: Final = frozenset(("", "0", "neutral", "none", "null"))


@dataclass
class LabelCounts:
    """Counts of a conversation's utterances by whether they are labelled as emotions or as causes.

    Attributes:
        counts: Hits, predicted and gold utterances of each side.
        undefined: Metric to the reason why it has no value.
        fault: The fault of the predicted labels, if any.
    """

    counts: dict[str, int] = field(default_factory=dict)
    undefined: dict[str, str] = field(default_factory=dict)
    fault: str | None = None


def label_faults(expected: Any) -> Iterator[str]:
    """Yield the faults of gold labels of utterances."""
    for key in LABELS:
        fault = _fault(_listed(expected, key), key, None)
        if fault is not None:
            yield fault


def count_utterances(
    expected: Any, prediction: Any, gold: Sequence[Pair] | None, predicted: Sequence[Pair]
) -> LabelCounts:
    """Count a conversation's utterances with an emotion, and those that are causes, against the gold.

    Args:
        expected: An object may have a label for each utterance as ``emotions`` and ``causes``: numbers, names, true or
            false; 0, null, false and ``neutral`` are none. What it does not have comes from the pairs.
        prediction: The same.
        gold: The right pairs.
        predicted: The predicted pairs.
    """
    out = LabelCounts()
    for place, (side, key) in enumerate(zip(SIDES, LABELS, strict=True)):
        labels, theirs = _listed(expected, key), _listed(prediction, key)
        if labels is None and gold is None:
            out.undefined |= {f"{side}_{part}": f"no expected {key} and no expected pairs" for part in PARTS}
            continue
        fault = _fault(theirs, key, None if labels is None else len(labels))
        out.fault = out.fault or fault
        right = _numbers(gold or (), place) if labels is None else _labelled(labels)
        answers = _numbers(predicted, place) if theirs is None else set() if fault is not None else _labelled(theirs)
        out.counts |= {
            f"{side}.n": 1,
            f"{side}.hits": len(right & answers),
            f"{side}.predicted": len(answers),
            f"{side}.gold": len(right),
        }
    return out


def utterance_scores(sums: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Precision, recall and F1 of emotion and cause utterances; NaN without ground truth."""
    import numpy as np

    scores: dict[str, FloatArray] = {}
    for side in SIDES:
        columns = prf(*(sums[f"{side}.{name}"] for name in ("hits", "predicted", "gold")))
        there = sums[f"{side}.n"] > 0
        scores |= {
            f"{side}_{part}": np.where(there, column, np.nan) for part, column in zip(PARTS, columns, strict=True)
        }
    return scores


def _listed(value: Any, key: str) -> Any:
    """The labels of utterances under a key of an emotion-cause annotation, if any."""
    return value.get(key) if isinstance(value, Mapping) else None


def _fault(labels: Any, key: str, length: int | None) -> str | None:
    """The fault of a list of utterance labels: another form, a label of another type, or a wrong length."""
    if labels is None:
        return None
    if not isinstance(labels, (list, tuple)):
        return f"{key}: found {AnswerValue(labels).kind}, expected a list with a label for each utterance"
    wrong = next((label for label in labels if not (label is None or isinstance(label, (str, int, float)))), None)
    if wrong is not None:
        return f"{key}: found {AnswerValue(wrong).kind} as a label, expected a number or a name"
    if length is not None and len(labels) != length:
        return f"{key}: found {len(labels)} labels, expected {length}, one for each utterance"
    return None


def _labelled(labels: Sequence[Any]) -> set[int]:
    """The numbers of a conversation's utterances that have a label, from 1."""
    return {number for number, label in enumerate(labels, 1) if _is_label(label)}


def _is_label(label: Any) -> bool:
    """Whether an utterance label marks an emotion or a cause; 0, empty text and words for none do not."""
    return label.strip().lower() not in _NONE if isinstance(label, str) else bool(label)


def _numbers(pairs: Sequence[Pair], place: int) -> set[int]:
    """The utterances of emotion-cause pairs that have an emotion, or are causes."""
    return {pair[place] for pair in pairs if pair.emotion not in _NONE}  # type: ignore[misc]  # both are numbers


_WRONG = ("wrong_span", "wrong_emotion", "wrong_utterance")
"""Kinds of errors, the nearest first."""


class PairErrors(NamedTuple):
    """The wrong emotion-cause pairs of a conversation by kind of error.

    Attributes:
        not_found: Gold pairs to which no predicted pair comes near.
        not_expected: Predicted pairs that come near no gold pair.
        wrong: Kind to the predicted pairs, each with the gold pair that it comes near.
    """

    not_found: Sequence[Pair]
    not_expected: Sequence[Pair]
    wrong: Mapping[str, Sequence[tuple[Pair, Pair]]]

    def details(self) -> dict[str, Any]:
        """Return the pairs by kind, without empty kinds."""
        kinds: dict[str, list[Any]] = {
            "not_found": list(map(format_pair, self.not_found)),
            **{
                kind: [
                    {"predicted": format_pair(predicted), "expected": format_pair(right)} for predicted, right in pairs
                ]
                for kind, pairs in self.wrong.items()
            },
            "not_expected": list(map(format_pair, self.not_expected)),
        }
        return {kind: pairs for kind, pairs in kinds.items() if pairs}

    def lines(self, utterances: Sequence[str] = ()) -> list[str]:
        """Describe the errors, a line for each pair.

        Args:
            utterances: The texts of the conversation, for the words of spans.
        """

        def spelling(pair: Pair) -> str:
            return _spelling(pair, utterances)

        lines = [f"[{pair.emotion}] pair not found: {spelling(pair)}" for pair in self.not_found]
        for kind, pairs in self.wrong.items():
            words = kind.replace("_", " ")
            lines += [
                f"[{right.emotion}] {words}: {spelling(predicted)}, expected {spelling(right)}"
                for predicted, right in pairs
            ]
        return lines + [f"[{pair.emotion}] pair not expected: {spelling(pair)}" for pair in self.not_expected]


def _what_differs(predicted: Pair, right: Pair) -> str | None:
    """The kind of error of a predicted emotion-cause pair that comes near a gold one; ``None`` if none is near."""
    same_emotion = predicted.emotion == right.emotion
    same_cause = predicted.cause_utterance == right.cause_utterance
    same_utterance = predicted.emotion_utterance == right.emotion_utterance
    if same_cause and same_utterance:
        return "wrong_span" if same_emotion else "wrong_emotion"
    return "wrong_utterance" if same_emotion and (same_cause or same_utterance) else None


def pair_errors(missing: Sequence[Pair], extra: Sequence[Pair]) -> PairErrors:
    """Sort wrong emotion-cause pairs by kind of error; a gold pair explains one predicted pair at most.

    Args:
        missing: Gold pairs that are not predicted.
        extra: Predicted pairs that are not in gold.
    """
    near: dict[str, list[tuple[Pair, Pair]]] = {kind: [] for kind in _WRONG}
    for predicted in extra:
        for right in missing:
            kind = _what_differs(predicted, right)
            if kind is not None:
                near[kind].append((predicted, right))
    not_found, not_expected = dict.fromkeys(missing), dict.fromkeys(extra)
    wrong: dict[str, list[tuple[Pair, Pair]]] = {kind: [] for kind in _WRONG}
    for kind, pairs in near.items():
        for predicted, right in pairs:
            if predicted in not_expected and right in not_found:
                wrong[kind].append((predicted, right))
                del not_expected[predicted], not_found[right]
    return PairErrors(list(not_found), list(not_expected), wrong)


def _spelling(pair: Pair, utterances: Sequence[str]) -> str:
    """An emotion-cause pair for the report, such as ``3_joy/2`` or ``3_joy/2_0_4``, with the words of its span."""
    text = "/".join(map(str, format_pair(pair)))
    if not isinstance(pair, SpanPair) or not 1 <= pair.cause_utterance <= len(utterances):
        return text
    words = joined_tokens(utterances[pair.cause_utterance - 1], max(pair.start, 0), max(pair.end, 0))
    return f"{text} {json.dumps(words, ensure_ascii=False)}"

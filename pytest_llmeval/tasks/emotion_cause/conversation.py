"""The gold and predicted pairs of one conversation, in any of their forms."""

__all__ = ("Gold", "Predicted", "read_gold", "read_prediction", "utterances_of")

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.tasks.emotion_cause.gold import gold_pair, utterance_texts
from pytest_llmeval.tasks.emotion_cause.pairs import Pair, PairFault, Subtask, parse_pair, quoted
from pytest_llmeval.tasks.emotion_cause.submission import SubmissionFault, conversation_number

_ID, _PAIRS, _CANDIDATES, _KEEP = "conversation_ID", "emotion-cause_pairs", "candidates", "keep"
_GOLD_FORM = f"expected a list of pairs, or an object with {_PAIRS}"
_FORM = f"{_GOLD_FORM}, or with {_CANDIDATES} and {_KEEP}"


@dataclass(frozen=True, slots=True)
class Gold:
    """The right pairs of a conversation.

    Attributes:
        pairs: In the order given, repeated ones included; ``None`` where there is no ground truth, which is not the
            same as a conversation without pairs.
        faults: Of the pairs, which are left out, or of the whole.
    """

    pairs: Sequence[Pair] | None
    faults: Sequence[SubmissionFault] = ()


@dataclass(frozen=True, slots=True)
class Predicted:
    """The predicted pairs of a conversation.

    Attributes:
        candidates: In the order given, repeated ones included.
        keep: For each candidate whether it is kept; the others are predicted by a first step only.
        faults: Of the pairs, which are left out, or of the whole.
    """

    candidates: Sequence[Pair] = ()
    keep: Sequence[bool] = ()
    faults: Sequence[SubmissionFault] = ()

    def kept(self) -> Sequence[Pair]:
        """Return the candidates that are kept."""
        if all(self.keep):
            return self.candidates
        return [pair for pair, kept in zip(self.candidates, self.keep, strict=True) if kept]


def read_gold(expected: Any, conversation: Any, subtask: Subtask, name: Any) -> Gold:
    """Read what is right.

    Args:
        expected: A list of gold pairs as in `gold_pair`; or an object with them as ``emotion-cause_pairs``, whose
            ``conversation`` goes before `conversation`.
        conversation: The utterances, or ``None``.
        subtask: 1 or 2.
        name: Of the conversation, for faults; a ``conversation_ID`` in `expected` goes before it.
    """
    if expected is None:
        return Gold(None)
    raw = expected.get(_PAIRS) if isinstance(expected, Mapping) else expected
    name = _name(expected, name)
    if not isinstance(raw, (list, tuple)):
        return Gold((), [_form_fault(name, expected, raw, _GOLD_FORM)])
    texts = utterances_of(expected, conversation)
    pairs: list[Pair] = []
    faults = []
    for position, each in enumerate(raw, start=1):
        try:
            pairs.append(gold_pair(each, subtask, texts))
        except PairFault as fault:
            faults.append(SubmissionFault(name, position, each, fault.rule, str(fault)))
    return Gold(pairs, faults)


def read_prediction(prediction: Any, subtask: Subtask, name: Any, texts: Sequence[str] | None = None) -> Predicted:
    """Read the prediction; unreadable parts are reported, and count as not predicted.

    Args:
        prediction: A list of pairs as in `parse_pair`; an object with them as ``emotion-cause_pairs``; or an object
            with ``candidates``, a list of pairs, and ``keep``, whether each of them is kept (0, 1, false or true).
        subtask: 1 or 2.
        name: Of the conversation, for faults; a ``conversation_ID`` in `prediction` goes before it.
        texts: Of the utterances, where spans may be words; ``None`` where they have to be positions.
    """
    name = _name(prediction, name)
    stepped = isinstance(prediction, Mapping) and _CANDIDATES in prediction
    raw = prediction.get(_CANDIDATES if stepped else _PAIRS) if isinstance(prediction, Mapping) else prediction
    if not isinstance(raw, (list, tuple)):
        return Predicted(faults=[_form_fault(name, prediction, raw, _FORM)])
    faults: list[SubmissionFault] = []
    flags = _flags(prediction.get(_KEEP), len(raw), name, faults) if stepped else [True] * len(raw)
    candidates: list[Pair] = []
    keep: list[bool] = []
    for position, (each, kept) in enumerate(zip(raw, flags, strict=True), start=1):
        try:
            candidates.append(parse_pair(each, subtask) if texts is None else gold_pair(each, subtask, texts))
        except PairFault as fault:
            faults.append(SubmissionFault(name, position, each, fault.rule, str(fault)))
        else:
            keep.append(kept)
    return Predicted(candidates, keep, faults)


def _name(value: Any, name: Any) -> Any:
    given = value.get(_ID) if isinstance(value, Mapping) else None
    for each in (given, name):
        number = conversation_number(each)
        if number is not None:
            return number
    return name


def utterances_of(expected: Any, conversation: Any) -> list[str] | None:
    """Return the texts of the utterances: those of an official object, else those of `conversation`."""
    texts = utterance_texts(expected) if isinstance(expected, Mapping) else None
    return utterance_texts(conversation) if texts is None else texts


def _form_fault(name: Any, value: Any, raw: Any, expected: str) -> SubmissionFault:
    found = f"{quoted(raw)} as {_PAIRS}" if isinstance(value, Mapping) and _PAIRS in value else quoted(value)
    return SubmissionFault(name, 0, None, "pair list", f"found {found}, {expected}")


def _flags(keep: Any, length: int, name: Any, faults: list[SubmissionFault]) -> list[bool]:
    """Return which candidates are kept; one without a flag is not."""
    given = keep if isinstance(keep, (list, tuple)) else ()
    flags = [each in (0, 1) and bool(each) for each in given][:length]
    if len(given) != length or not _all_flags(given):
        message = f"found {quoted(keep)} as {_KEEP}, expected {length} times 0 or 1, one for each candidate"
        faults.append(SubmissionFault(name, 0, None, "pair list", message))
    return flags + [False] * (length - len(flags))


def _all_flags(values: Iterable[Any]) -> bool:
    return all(isinstance(each, (bool, int)) and each in (0, 1) for each in values)

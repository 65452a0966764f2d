"""Validation of submissions to SemEval-2024 Task 3, collecting all faults."""

__all__ = ("SubmissionFault", "conversation_number", "validate_submission")

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_llmeval.tasks.emotion_cause.pairs import PairFault, Rule, Subtask, parse_pair, quoted

_ID, _PAIRS = "conversation_ID", "emotion-cause_pairs"


class SubmissionFault(NamedTuple):
    """One fault of a submission.

    Attributes:
        conversation: Its number, or the value in its place; ``None`` if the fault is not in one conversation.
        position: Of the pair in its conversation, counted from 1; 0 where the fault is of no one pair.
        pair: The unchanged pair; ``None`` if the fault is not in one pair.
        rule: Which rule is broken.
        message: ``found ..., expected ...``.
    """

    conversation: Any
    position: int
    pair: Any
    rule: Rule
    message: str

    def __str__(self) -> str:
        place = [] if self.conversation is None else [f"conversation {_shown(self.conversation)}"]
        if self.position:
            place.append(f"pair {self.position} {quoted(self.pair)}")
        return f"{', '.join(place) or 'submission'}: {self.rule}: {self.message}"


def validate_submission(
    data: Any, subtask: Subtask, gold: Sequence[Mapping[str, Any]] | None = None
) -> list[SubmissionFault]:
    """Return all faults of a submission, in its order; last the conversations that are missing.

    The same submissions have faults as the official script stops at, but for the spellings and the two oddities that
    `parse_pair` names. Conversations that `gold` lacks are not scored, so their pairs may be anything.

    Args:
        data: What the JSON file holds: ``[{"conversation_ID": 1, "emotion-cause_pairs": [...]}]``.
        subtask: 1 or 2.
        gold: The official gold file; without it all conversations are checked, and none can be missing.

    Raises:
        ValueError: A conversation of `gold` has no number.
    """
    if isinstance(data, dict) and _ID in data:
        data = [data]
    if not isinstance(data, list):
        return [SubmissionFault(None, 0, None, "submission form", f"found {quoted(data)}, expected a list")]
    wanted = None if gold is None else dict.fromkeys(map(_gold_number, gold))
    faults: list[SubmissionFault] = []
    seen: dict[int, int] = {}
    for place, entry in enumerate(data, start=1):
        number = conversation_number(entry.get(_ID)) if isinstance(entry, dict) else None
        if number is None:
            faults.append(_unnumbered(entry, place))
        elif number in seen:
            message = f"found it twice, again as entry {place} (first as entry {seen[number]}), expected it once"
            faults.append(SubmissionFault(number, 0, None, "conversation repeated", message))
        else:
            seen[number] = place
            if wanted is None or number in wanted:
                faults += _pair_faults(number, entry, subtask)
    return faults + list(_missing(wanted or (), seen))


def conversation_number(value: Any) -> int | None:
    """Return the number of a conversation, ``11``, ``"11"`` or ``11.0``; ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    return number if isinstance(value, str) or number == value else None


def _gold_number(conversation: Mapping[str, Any]) -> int:
    number = conversation_number(conversation.get(_ID))
    if number is None:
        raise ValueError(f"gold: found {_ID} {quoted(conversation.get(_ID))}, expected a whole number")
    return number


def _unnumbered(entry: Any, place: int) -> SubmissionFault:
    expected = f"expected an object with {_ID} and {_PAIRS}"
    if not isinstance(entry, dict):
        return SubmissionFault(
            None, 0, None, "conversation form", f"found {quoted(entry)} as entry {place}, {expected}"
        )
    if _ID not in entry:
        message = f"found no {_ID} in entry {place}, {expected}"
        return SubmissionFault(None, 0, None, "conversation form", message)
    message = f"found {_ID} {quoted(entry[_ID])} in entry {place}, expected a whole number"
    return SubmissionFault(entry[_ID], 0, None, "conversation id", message)


def _pair_faults(number: int, entry: Mapping[str, Any], subtask: Subtask) -> Iterator[SubmissionFault]:
    pairs = entry.get(_PAIRS)
    if not isinstance(pairs, list):
        found = f"{quoted(pairs)} as {_PAIRS}" if _PAIRS in entry else f"no key {_PAIRS}"
        yield SubmissionFault(number, 0, None, "pair list", f"found {found}, expected a list of pairs")
        return
    for position, pair in enumerate(pairs, start=1):
        try:
            parse_pair(pair, subtask)
        except PairFault as fault:
            yield SubmissionFault(number, position, pair, fault.rule, str(fault))


def _missing(wanted: Iterable[int], seen: Mapping[int, int]) -> Iterator[SubmissionFault]:
    for number in wanted:
        if number not in seen:
            message = "found no entry, expected one, with an empty list if there are no pairs"
            yield SubmissionFault(number, 0, None, "conversation missing", message)


def _shown(conversation: Any) -> str:
    return str(conversation) if isinstance(conversation, int) else quoted(conversation)

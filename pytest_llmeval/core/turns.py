"""The turns of a conversation: what the user said, and what the answer was."""

__all__ = ("WANTED_TURN", "Turn", "chosen_turns", "expected_turns", "is_turn", "turns_of")

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias, TypeGuard, TypeVar

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.core.parts import TURNS, Parts, PredictionParts
from pytest_llmeval.core.wording import counted

Turn: TypeAlias = Literal["last", "each"] | int
"""Which turns are read; a number counts from 1."""

WANTED_TURN: Final = "last, each, or the number of a turn, counted from 1"


def is_turn(value: Any) -> TypeGuard[Turn]:
    """Return whether a value says which turns are read."""
    return value in ("last", "each") or (type(value) is int and value > 0)


_OF_MESSAGE = ("contexts", "tool_calls")


def turns_of(case: Case, parts: Parts) -> list[Case]:
    """Return a case for each turn of a conversation: a message of the user, and what follows up to the next one.

    Its input is what the user said, its prediction has the parts of the answer: the last message of the assistant.

    Args:
        case: Its prediction is the whole.
        parts: Where the messages are in it.

    Raises:
        PredictionError: The prediction is no conversation.
    """
    messages = parts.read("messages", case.prediction)
    if not isinstance(messages, Sequence) or not all(isinstance(each, Mapping) for each in messages):
        raise PredictionError("the messages are no list of objects, so they have no turns")
    starts = [place for place, each in enumerate(messages) if each.get("role") == "user"]
    ends = [*starts[1:], len(messages)]
    expected = expected_turns(case.expected)
    figures = case.origin.figures if case.origin is not None else {}
    turns = []
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        prediction = _answer(messages[start:end])
        turns.append(
            replace(
                case,
                input=messages[start].get("content"),
                expected=case.expected if expected is None else expected[number] if number < len(expected) else None,
                prediction=prediction,
                origin=PredictionParts(Parts(), prediction, figures),
                conversation=True,
            )
        )
    return turns


_T = TypeVar("_T")


def chosen_turns(turns: Sequence[_T], turn: Turn) -> Sequence[_T]:
    """Return the turns that are read.

    Raises:
        PredictionError: There is no such turn.
    """
    if turn == "each" and turns:
        return turns
    place = len(turns) if turn == "last" else turn
    if not isinstance(place, int) or not 0 < place <= len(turns):
        raise PredictionError(f"the conversation has {counted(len(turns), 'turn')}, expected turn {turn}")
    return [turns[place - 1]]


def expected_turns(expected: Any) -> Sequence[Any] | None:
    """Return what is expected of each turn, if the case says so: ``expected: {turns: [...]}``."""
    turns = expected.get(TURNS) if isinstance(expected, Mapping) else None
    return turns if isinstance(turns, list) else None


def _answer(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    said = [each for each in messages if each.get("role") == "assistant"]
    answer: dict[str, Any] = {"messages": list(messages)}
    if said:
        answer["answer"] = said[-1].get("content")
    for name in _OF_MESSAGE:
        found = [each[name] for each in said if isinstance(each.get(name), list)]
        if found:
            answer[name] = [item for each in found for item in each]
    return answer

"""The first step at which the repeats of a case differ."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_llmeval.core import MISSING, Case, PredictionError, grouped
from pytest_llmeval.evaluators import MessageStep, MissingTraceError, ToolCall


class _Action(NamedTuple):
    """One action of an agent in a repeat of a case.

    Attributes:
        key: The same for equal steps.
        what: The step as people read it.
        is_user: Whether a turn begins with it.
    """

    key: str
    what: str
    is_user: bool = False


_USER = _Action("user", "a message of the user", is_user=True)
_ASSISTANT = _Action("assistant", "a message of the assistant")
_END = _Action("end", "the end")


def first_parting(repeats: Sequence[Case], redact: Callable[[str], str] = str) -> dict[str, Any] | None:
    """The first step at which the repeats of a case that ran differ; ``None`` if none does, or for no steps.

    Steps are messages of the user, calls of tools with their arguments, and messages of the assistant without calls.
    Texts differ whenever a model writes them again, so they are compared only if no repeat calls a tool.

    Args:
        repeats: The case with each of its predictions; those without one are left out.
        redact: Makes the text of a step presentable.

    Returns:
        ``turn``, counted from 1, ``None`` for lists of calls; ``step`` in that turn, counted from 1 behind the message
        of the user; and ``variants``, each with ``what`` was done and by which ``repeats``, counted from 1.
    """
    if all(repeat.prediction is repeats[0].prediction for repeat in repeats):
        return None
    numbers = [number for number, case in enumerate(repeats, 1) if case.prediction is not MISSING]
    try:
        read = [_Read.parse(repeats[number - 1]) for number in numbers]
    except (MissingTraceError, PredictionError):
        return None
    conversations = [repeat.messages is not None for repeat in read]
    compares_texts = not any(repeat.calls for repeat in read)
    if len(read) < 2 or (compares_texts and not all(conversations)):  # noqa: PLR2004 (a pair)
        return None
    steps = [list(repeat.steps(texts=compares_texts)) for repeat in read]
    turn = done = 0
    for place in range(max(map(len, steps))):
        now = [step[place] if place < len(step) else _END for step in steps]
        if len({action.key for action in now}) > 1:
            variants = _variant_actions(dict(zip(numbers, now, strict=True)), redact)
            return {"turn": max(turn, 1) if any(conversations) else None, "step": done + 1, "variants": variants}
        turn, done = (turn + 1, 0) if now[0].is_user else (turn, done + 1)
    return None


def _variant_actions(steps: Mapping[int, _Action], redact: Callable[[str], str]) -> list[dict[str, Any]]:
    """The different actions at one step in which repeats of a case ran, each with the numbers of its repeats."""
    repeats = grouped((step.key, number) for number, step in steps.items())
    what = {step.key: step.what for step in steps.values()}
    return [{"what": redact(what[key]), "repeats": repeat} for key, repeat in repeats.items()]


class _Read(NamedTuple):
    """The trace of one repeat of a case.

    Attributes:
        messages: What was said and called; ``None`` where only calls are known.
        calls: The calls.
    """

    messages: Sequence[MessageStep] | None
    calls: Sequence[ToolCall]

    @classmethod
    def parse(cls, case: Case) -> "_Read":
        """The trace of a prediction.

        Raises:
            MissingTraceError: It has neither messages nor calls of tools, or some that cannot be read.
            PredictionError: A part cannot be looked up.
        """
        steps, listed = MessageStep.read_case(case), case.parts.get("tool_calls")
        if steps is not None:
            calls = [call for step in steps for call in step.calls]
            if calls or not listed:
                return cls(steps, calls)
        return cls(None, ToolCall.read_trace(listed))

    def steps(self, *, texts: bool) -> Iterator[_Action]:
        """Yield the actions in the trace of a repeat, in order."""
        if self.messages is None:
            yield from map(_action_of_call, self.calls)
            return
        for role, text, calls in self.messages:
            yield from map(_action_of_call, calls)
            if role == "user":
                yield _with_text(_USER, text) if texts else _USER
            elif role == "assistant" and text and not calls:
                yield _with_text(_ASSISTANT, text) if texts else _ASSISTANT


def _action_of_call(call: ToolCall) -> _Action:
    """An agent's tool call as an action that is compared between repeats of a case."""
    arguments = json.dumps(call.arguments or {}, sort_keys=True, ensure_ascii=False, default=str)
    return _Action(f"call {call.name} {arguments}", f"{call.name}({arguments[1:-1]})")


def _with_text(step: _Action, text: str) -> _Action:
    """A message of a conversation as an action with its text, for repeats that are compared by their texts."""
    return _Action(f"{step.key} {text}", f"{step.what}: {text}", step.is_user)

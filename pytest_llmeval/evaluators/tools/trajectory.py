"""Sequences of tool names, compared, and the step at which repeats part."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.evaluators.tools.calls import (
    MessageStep,
    MissingTraceError,
    ToolCall,
    messages_of,
    read_steps,
    read_trace,
)

Order: TypeAlias = Literal["exact", "in_order", "any_order", "superset", "subset"]
"""How the names of calls are compared."""

ORDERS: Final = get_args(Order)


def follows(expected: Sequence[str], called: Sequence[str], order: Order) -> bool:
    """Return whether calls follow the expected trajectory.

    Args:
        expected: The names of the expected calls.
        called: The names of the calls.
        order: ``exact``: the same sequence. ``in_order``: the expected sequence is a subsequence of the calls.
            ``any_order``: the same names, equally often. ``superset``: each expected name at least as often as
            expected. ``subset``: no name more often than expected.

    Example:
        >>> follows(["search", "book"], ["search", "look", "book"], "in_order")
        True
        >>> follows(["search", "book"], ["book", "search"], "any_order")
        True
    """
    if order == "exact":
        return list(expected) == list(called)
    if order == "in_order":
        rest = iter(called)
        return all(name in rest for name in expected)
    right, made = Counter(expected), Counter(called)
    if order == "any_order":
        return right == made
    return right <= made if order == "superset" else made <= right


def common_subsequence(expected: Sequence[str], called: Sequence[str]) -> int:
    """Return the length of the longest common subsequence.

    >>> common_subsequence("abcd", "badc")
    2
    """
    from rapidfuzz.distance import LCSseq

    return len(expected) if expected == called else LCSseq.similarity(expected, called)


class _Action(NamedTuple):
    """One thing that a repeat did.

    Attributes:
        key: The same for equal steps.
        what: The step as people read it.
        is_user: Whether a turn begins with it.
    """

    key: str
    what: str
    is_user: bool = False


_END = _Action("end", "the end")
_USER = _Action("user", "a message of the user", is_user=True)
_ASSISTANT = _Action("assistant", "a message of the assistant")


def first_parting(repeats: Sequence[Case], shown: Callable[[str], str] = str) -> dict[str, Any] | None:
    """Return where the repeats of a case part; ``None`` where they never do, or have no steps that can be compared.

    Steps are messages of the user, calls of tools with their arguments, and messages of the assistant without calls.
    Texts differ whenever a model writes them again, so they are compared only if no repeat calls a tool.

    Args:
        repeats: The case with each of its predictions; those without one are left out.
        shown: Makes the text of a step presentable.

    Returns:
        ``turn``, counted from 1, ``None`` for lists of calls; ``step`` in that turn, counted from 1 behind the message
        of the user; and ``variants``, each with ``what`` was done and by which ``repeats``, counted from 1.
    """
    if all(each.prediction is repeats[0].prediction for each in repeats):
        return None
    numbers = [number for number, case in enumerate(repeats, 1) if case.prediction is not MISSING]
    try:
        read = [_Read.of(repeats[number - 1]) for number in numbers]
    except (MissingTraceError, PredictionError):
        return None
    conversations = [each.messages is not None for each in read]
    compares_texts = not any(each.calls for each in read)
    if len(read) < 2 or (compares_texts and not all(conversations)):  # noqa: PLR2004 (a pair)
        return None
    steps = [list(each.steps(texts=compares_texts)) for each in read]
    turn = done = 0
    for place in range(max(map(len, steps))):
        now = [each[place] if place < len(each) else _END for each in steps]
        if len({each.key for each in now}) > 1:
            variants = _variants(dict(zip(numbers, now, strict=True)), shown)
            return {"turn": max(turn, 1) if any(conversations) else None, "step": done + 1, "variants": variants}
        turn, done = (turn + 1, 0) if now[0].is_user else (turn, done + 1)
    return None


def _variants(steps: Mapping[int, _Action], shown: Callable[[str], str]) -> list[dict[str, Any]]:
    repeats: dict[str, list[int]] = {}
    for number, step in steps.items():
        repeats.setdefault(step.key, []).append(number)
    what = {step.key: step.what for step in steps.values()}
    return [{"what": shown(what[key]), "repeats": each} for key, each in repeats.items()]


class _Read(NamedTuple):
    """A repeat whose trace has been read.

    Attributes:
        messages: What was said and called; ``None`` where only calls are known.
        calls: The calls.
    """

    messages: Sequence[MessageStep] | None
    calls: Sequence[ToolCall]

    @classmethod
    def of(cls, case: Case) -> "_Read":
        """Read a prediction.

        Raises:
            MissingTraceError: It has neither messages nor calls of tools, or some that cannot be read.
            PredictionError: A part cannot be looked up.
        """
        messages, listed = messages_of(case), case.parts.get("tool_calls")
        if messages is not None:
            steps = read_steps(messages)
            made = [call for step in steps for call in step.calls]
            if made or not listed:
                return cls(steps, made)
        return cls(None, read_trace(listed))

    def steps(self, *, texts: bool) -> Iterator[_Action]:
        """Yield what was done, in order."""
        if self.messages is None:
            yield from map(_called, self.calls)
            return
        for role, text, calls in self.messages:
            yield from map(_called, calls)
            if role == "user":
                yield _said(_USER, text) if texts else _USER
            elif role == "assistant" and text and not calls:
                yield _said(_ASSISTANT, text) if texts else _ASSISTANT


def _called(call: ToolCall) -> _Action:
    arguments = json.dumps(call.arguments or {}, sort_keys=True, ensure_ascii=False, default=str)
    return _Action(f"call {call.name} {arguments}", f"{call.name}({arguments[1:-1]})")


def _said(step: _Action, text: str) -> _Action:
    return _Action(f"{step.key} {text}", f"{step.what}: {text}", step.is_user)

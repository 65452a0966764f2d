"""Policies of agents."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias
from unicodedata import normalize

from pydantic import Discriminator, Tag

from pytest_llmeval.core import Case, FieldsError, counted, excerpt
from pytest_llmeval.evaluators import MessageStep, MissingTraceError, TimedPattern, ToolCall

_LONGEST: Final = 80
"""Characters of a pattern or a claim that messages show."""


@dataclass(frozen=True)
class UserApproval:
    """A message by which the user approves what the assistant has proposed.

    Attributes:
        user: Regular expression that finds something in it, in any case.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    user: str

    def __post_init__(self) -> None:
        if fault := _pattern_fault(self.user):
            raise FieldsError([("user", fault)])


def _form(setting: Any) -> str:
    """Distinguish the forms of a setting, so that faults are those of the one that was meant."""
    return "[mapping]" if isinstance(setting, Mapping | ApprovalRule | UserApproval) else "[other]"


@dataclass(frozen=True)
class ApprovalRule:
    """A condition before each call of a tool.

    Attributes:
        tool: Pattern of tools.
        needs: Pattern of tools of which a call must have succeeded, or the approval of the user.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    tool: str
    needs: Annotated[Annotated[UserApproval, Tag("[mapping]")] | Annotated[str, Tag("[other]")], Discriminator(_form)]


ApprovalRules: TypeAlias = Annotated[
    Annotated[ApprovalRule, Tag("[mapping]")] | Annotated[tuple[ApprovalRule, ...], Tag("[other]")],
    Discriminator(_form),
]
"""One rule, or a list of them."""


class PolicyVerdict(NamedTuple):
    """The broken and the undecidable rules of an agent's tool policies in one case.

    Attributes:
        unmet: Rules that are broken, with the turn and the reason.
        undecided: Why others cannot be decided.
    """

    unmet: Sequence[str]
    undecided: Sequence[str]


class _Event(NamedTuple):
    """A message or a tool call in an agent's conversation, as policies see it.

    Attributes:
        kind: ``user`` and ``said`` are messages, of the user and of the assistant.
        text: Of the message.
        call: The call.
        place: Where it is, as messages show it.
    """

    kind: Literal["user", "said", "call"]
    text: str = ""
    call: ToolCall | None = None
    place: str = ""


_Broken: TypeAlias = Iterator[tuple[_Event, str]]


class _Timeline(NamedTuple):
    """The messages and tool calls of an agent's conversation in order, as policies see them.

    Attributes:
        events: The events.
        lacks: Why messages are missing; empty where there are all of them.
        hears: Whether all that the assistant said is in it.
    """

    events: Sequence[_Event]
    lacks: str
    hears: bool

    @property
    def answers(self) -> bool:
        """Whether anything that the assistant said is in it."""
        return any(event.kind == "said" for event in self.events)


@dataclass(frozen=True)
class ToolPolicies:
    """A suite's policies for an agent: the order of calls, approvals by the user, claims of the assistant.

    Attributes:
        before: Approvals that calls need.
        says_did_not: Pattern of a tool to a regular expression of what claims that it was called, in any case.

    Raises:
        FieldsError: A pattern does not compile.
    """

    before: Sequence[ApprovalRule] = ()
    says_did_not: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        claims = (self.says_did_not or {}).items()
        faults = [(f"says_did_not.{tool}", fault) for tool, claim in claims if (fault := _pattern_fault(claim))]
        if faults:
            raise FieldsError(faults)

    def __bool__(self) -> bool:
        return bool(self.before or self.says_did_not)

    def verdict(self, case: Case, calls: Sequence[ToolCall]) -> PolicyVerdict:
        """Say which rules a case breaks.

        Args:
            case: As the evaluator views it.
            calls: All of its calls.

        Raises:
            SlowPatternError: A pattern searched for too long.
        """
        timeline = _timeline(case, calls)
        unmet: list[str] = []
        undecided: list[str] = []
        for rule in self.before:
            if isinstance(rule.needs, UserApproval):
                if not timeline.lacks:
                    unmet += _lines(_without_approval(rule.tool, rule.needs.user, timeline.events))
                elif any(fnmatchcase(call.name, rule.tool) for call in calls):
                    undecided.append(f"before {rule.tool}: {timeline.lacks}")
            else:
                unmet += _lines(_without_call(rule.tool, rule.needs, timeline.events))
        for tool, claim in (self.says_did_not or {}).items():
            broken = _lines(_claims(tool, claim, timeline.events))
            unmet += broken
            if not (broken or timeline.hears):
                undecided.append(f"says_did_not {tool}: {timeline.lacks}{'' if timeline.answers else ' and no answer'}")
        return PolicyVerdict(unmet, undecided)


def _pattern_fault(pattern: str) -> str | None:
    """The reason why a regular expression of an agent's policy does not compile, if any."""
    try:
        TimedPattern.compile(normalize("NFC", pattern), ignore_case=True)
    except ValueError as error:
        return str(error)
    return None


def _timeline(case: Case, calls: Sequence[ToolCall]) -> _Timeline:
    """The messages and calls of a case in order; without calls in messages, all calls come before the answer."""
    has_messages, lacks = True, "the prediction has no messages"
    try:
        steps = MessageStep.read_case(case)
    except MissingTraceError as error:
        lacks = str(error)
    else:
        has_messages = steps is not None
        message_calls = [call for step in steps or () for call in step.calls]
        if steps is not None and Counter(call.name for call in message_calls) == Counter(call.name for call in calls):
            return _Timeline(list(_events(steps)), "", hears=True)
        if steps is not None:
            lacks = f"the messages have {len(message_calls)} of {len(calls)} tool calls"
    events = [_Event("call", call=call, place=f"call {number}") for number, call in enumerate(calls, 1)]
    answer = case.parts.get("answer")
    has_answer = isinstance(answer, str) and not has_messages
    if isinstance(answer, str):
        events.append(_Event("said", normalize("NFC", answer), place="answer"))
    return _Timeline(events, lacks, hears=has_answer)


def _events(steps: Sequence[MessageStep]) -> Iterator[_Event]:
    """Yield a conversation's events; a message's calls come before its text, which reports their results."""
    turn = 0
    for step in steps:
        turn += step.role == "user"
        place = f"turn {max(turn, 1)}"
        yield from (_Event("call", call=call, place=place) for call in step.calls)
        if step.role == "user":
            yield _Event("user", normalize("NFC", step.text), place=place)
        elif step.role == "assistant" and step.text:
            yield _Event("said", normalize("NFC", step.text), place=place)


def _lines(broken: _Broken) -> list[str]:
    """The report's line on a broken policy: the first violation, with the number of the others."""
    breaches = list(broken)
    if not breaches:
        return []
    (event, reason), more = breaches[0], len(breaches) - 1
    return [f"{event.place}: found {reason}{f' (and {more} more)' if more else ''}"]


def _without_call(tool: str, needs: str, events: Sequence[_Event]) -> _Broken:
    """Yield calls of a tool that lack their own successful call of the tool that the policy needs before."""
    available = used = 0
    for event in events:
        if (call := event.call) is None:
            continue
        if fnmatchcase(call.name, tool):
            if available:
                available -= not call.failed
                used += not call.failed
            else:
                spent = f" of its own: {used} served earlier calls" if used else ""
                yield event, f"{call} without an earlier {needs}{spent}"
        if fnmatchcase(call.name, needs):
            available += not call.failed


def _without_approval(tool: str, pattern: str, events: Sequence[_Event]) -> _Broken:
    """Yield calls of a tool that the user has not approved, which the policy requires.

    The user approves what the assistant said last: with the first message after it, or with one that follows at once.
    A call that fails leaves the approval to the next one.
    """
    expression = TimedPattern.compile(normalize("NFC", pattern), ignore_case=True)
    proposed = spoke = False
    approval: _Event | None = None
    used: _Event | None = None
    for event in events:
        if event.kind == "said":
            proposed = spoke = True
        elif event.kind == "user":
            if spoke:
                approval = used = None
                spoke = False
            if proposed and used is None and expression.search(event.text):
                approval = event
        elif event.call is not None and fnmatchcase(event.call.name, tool):
            if approval is None:
                spent = f": that of {used.place} was for an earlier call" if used else ""
                yield (
                    event,
                    f"{event.call} without an approval by the user that matches '{excerpt(pattern, _LONGEST)}'{spent}",
                )
            elif not event.call.failed:
                approval, used = None, approval


def _claims(tool: str, pattern: str, events: Sequence[_Event]) -> _Broken:
    """Yield messages in which the assistant claims to have called a tool before any call has succeeded."""
    expression = TimedPattern.compile(normalize("NFC", pattern), ignore_case=True)
    tried = ""
    for event in events:
        if event.call is not None and fnmatchcase(event.call.name, tool):
            if not event.call.failed:
                return
            tried = ": an earlier call failed"
        elif event.kind == "said" and (match := expression.search(event.text)):
            yield event, f"the claim '{excerpt(match[0], _LONGEST)}' without an earlier successful {tool}{tried}"


@dataclass(frozen=True, slots=True)
class CallLimits:
    """A suite's limits on the tool calls of a trace: their number, and forbidden or required tools.

    Attributes:
        max_calls: Most calls, failed ones included.
        forbidden: Patterns of tools that may not be called, not even in vain.
        required: Patterns of tools; for each, a call that counts.
    """

    max_calls: int | None = None
    forbidden: Sequence[str] = ()
    required: Sequence[str] = ()

    def __bool__(self) -> bool:
        return self.max_calls is not None or bool(self.forbidden or self.required)

    def unmet(self, calls: Sequence[ToolCall], counted_calls: Sequence[ToolCall]) -> Iterator[str]:
        """Yield the limits that a trace does not keep, with what was found.

        Args:
            calls: All calls.
            counted_calls: Those that count, failed ones perhaps left out.
        """
        if self.max_calls is not None and len(calls) > self.max_calls:
            yield f"found {counted(len(calls), 'tool call')}, expected at most {self.max_calls}"
        for pattern in self.forbidden:
            matches = [str(call) for call in calls if fnmatchcase(call.name, pattern)]
            if matches:
                more = f" and {len(matches) - 1} more" if len(matches) > 1 else ""
                yield f"found {matches[0]}{more}, expected no call of {pattern}"
        for pattern in self.required:
            if not any(fnmatchcase(call.name, pattern) for call in counted_calls):
                called = ", ".join(dict.fromkeys(call.name for call in counted_calls)) or "no calls"
                yield f"found {called}, expected a call of {pattern}"

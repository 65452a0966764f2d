"""The leader of conversations."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Final, Literal

from pytest_llmeval.core import (
    excerpt,
    is_media,
)
from pytest_llmeval.data import STRICT
from pytest_llmeval.judges import JudgeSpec
from pytest_llmeval.suites._media_files import names_file
from pytest_llmeval.suites._reading import SuiteReading

_STOPS: Final = ("goal_reached", "gave_up", "out_of_scope")
_WANTS: Final = ("persona", "goal", "knows")
_STOP_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True)
class MessageEntry:
    """A message of a scripted conversation.

    Attributes:
        role: Who says it.
        content: A text, an image, a sound or a document (``{file: PATH}``), or a list of these.
    """

    __pydantic_config__: ClassVar = STRICT

    role: Literal["system", "user", "assistant"]
    content: str | list[Any] | dict[str, Any]


@dataclass(frozen=True)
class SimulatedUser(JudgeSpec):
    """A model that plays the user of a conversation; its settings as a model are those of judges.

    Attributes:
        persona: Who the user is. That of a case goes before it, as do goal and knowledge.
        goal: What the user wants.
        knows: What the user knows.
        max_turns: Most calls of the target.
        stop: The reasons for which the user may end a conversation.
        language: Of the instructions; ``auto``: by the script of the goal.
        instructions: File of the instructions, in place of those that ship.
        unrecorded: What happens where an agent says something that no recording answers: the model is asked, the case
            fails, or the conversation stops there. A run that records asks.
        checks_role: Whether the suite's judge, if it has one, says whether the user kept to its role.

    Raises:
        FieldsError: With every fault.
    """

    persona: str = ""
    goal: str = ""
    knows: dict[str, Any] = field(default_factory=dict)
    max_turns: int = 12
    stop: tuple[str, ...] = _STOPS
    language: Literal["auto", "en", "zh"] = "auto"
    instructions: str | None = None
    unrecorded: Literal["ask", "fail", "stop"] = "ask"
    checks_role: bool = True

    def _faults(self) -> Iterator[tuple[str, str]]:
        yield from super()._faults()
        if self.model is None:
            yield "model", "found no model, expected PROVIDER:NAME of the model that plays the user"
        if self.max_turns < 1:
            yield "max_turns", f"found {self.max_turns}, expected a whole number of at least 1"
        if wrong := [each for each in self.stop if not _STOP_NAME.fullmatch(each)]:
            yield "stop", f"found {wrong[0]!r}, expected names of lower-case letters such as goal_reached"
        if not self.stop:
            yield "stop", "found an empty list, expected at least one reason such as goal_reached"

    @cached_property
    def way(self) -> str:
        """Everything that decides what it says, besides what the case wants and what the target says, as text."""
        settings = [self.model, self.address, self.request_parameters(), self.stop, self.language, self.instructions]
        return json.dumps([*settings, self.max_turns])

    def wants_of(self, value: Any) -> dict[str, Any]:
        """Return what the user of a case wants: its persona, goal and knowledge, those of the suite where it has none.

        Args:
            value: Input of the case: the goal as text, an object of the three, or messages that begin the conversation.

        Raises:
            ValueError: It is none of these, or nobody says the goal; ``found ..., expected ...``.
        """
        expected = "expected the user's goal as text, or an object with goal, persona and knows"
        own: Mapping[str, Any] = {}
        if isinstance(value, str):
            own = {"goal": value}
        elif isinstance(value, Mapping):
            own = value
        elif value is not None and not isinstance(value, list):
            raise ValueError(f"found {excerpt(json.dumps(value), 40)} as input, {expected}")
        if unknown := sorted(map(str, own.keys() - set(_WANTS))):
            raise ValueError(f"found {unknown[0]!r} in the input, {expected}")
        wants = {name: own.get(name) if own.get(name) not in (None, "", {}) else getattr(self, name) for name in _WANTS}
        for name, kind, expectation in (
            ("persona", str, "text"),
            ("goal", str, "text"),
            ("knows", Mapping, "names with values"),
        ):
            if not isinstance(wants[name], kind):
                raise ValueError(f"found {excerpt(json.dumps(wants[name]), 40)} as {name}, expected {expectation}")  # noqa: TRY004 (a fault)
        if not str(wants["goal"]).strip():
            raise ValueError("found no goal of the simulated user, expected one as input, or in conversation.user")
        return wants


@dataclass(frozen=True)
class ConversationSpec:
    """The leader of conversations, and their end.

    Attributes:
        stop: ``script``: after the reply to the last message of the script; ``target``: when the target ends it.
        max_turns: Most calls of the target.
        user: Plays the user after the script, if there is one, up to the end.
    """

    __pydantic_config__: ClassVar = STRICT

    stop: Literal["script", "target"] = "script"
    max_turns: int | None = None
    user: SimulatedUser | None = None

    @property
    def limit(self) -> int | None:
        """Most calls of the target; ``None`` for no limit."""
        if self.user is None:
            return self.max_turns
        return self.user.max_turns if self.max_turns is None else min(self.max_turns, self.user.max_turns)


def script_of(messages: Sequence[str | MessageEntry]) -> list[dict[str, Any]]:
    """Return the messages of a script; a text is a message of the user."""
    return [{"role": "user", "content": each} if isinstance(each, str) else dict(vars(each)) for each in messages]


def script_fault(messages: Sequence[str | MessageEntry]) -> str | None:
    """Return the fault of a script as a whole."""
    if not messages:
        return "found an empty list, expected at least one message"
    for number, each in enumerate(messages, 1):
        parts = each.content if isinstance(each, MessageEntry) and isinstance(each.content, list) else [each]
        for part in parts:
            content = part.content if isinstance(part, MessageEntry) else part
            if not isinstance(content, str) and not is_media(content) and not names_file(content):
                what = excerpt(json.dumps(content, default=str), 40)
                return f"found {what} in message {number}, expected a text or {{file: PATH}}"
    last = messages[-1]
    if isinstance(last, str) or last.role == "user":
        return None
    return f"found a last message of the {last.role}, expected one of the user, which the target answers"


def with_user_metrics(entries: Sequence[Any], user: SimulatedUser | None, *, judged: bool) -> list[Any]:
    """Return the evaluators of a suite with those about its simulated user: how conversations end, and drift.

    Args:
        entries: Of the suite file.
        user: Its simulated user; ``None`` for none.
        judged: Whether it has a judge.
    """
    if user is None:
        return list(entries)
    names = [each if isinstance(each, str) else next(iter(each), None) for each in entries if each]
    listed = list(entries)
    if "conversation" not in names:
        listed.append("conversation")
    if judged and user.checks_role and "user_drift" not in names:
        listed.append("user_drift")
    reasons = {"reasons": list(user.stop)}
    for place, each in enumerate(listed):
        if each == "conversation":
            listed[place] = {"conversation": reasons}
        elif isinstance(each, Mapping) and isinstance(options := each.get("conversation", 0), Mapping | None):
            listed[place] = {**each, "conversation": {**reasons, **(options or {})}}
    return listed


def read_conversation(reading: SuiteReading, entry: Any) -> ConversationSpec:
    """Read ``conversation``: when conversations end."""
    if entry is None:
        return ConversationSpec()
    spec: ConversationSpec | None = reading.check(ConversationSpec, entry, ("conversation",))
    if spec is None:
        return ConversationSpec()
    if spec.max_turns is not None and spec.max_turns < 1:
        reading.fault(("conversation", "max_turns"), f"found {spec.max_turns}, expected at least 1")
    if spec.stop == "target" and spec.limit is None:
        reading.fault(("conversation",), "found stop: target without max_turns, expected a limit such as max_turns: 10")
    return _with_instructions(reading, spec)


def _with_instructions(reading: SuiteReading, spec: ConversationSpec) -> ConversationSpec:
    """Return the settings of conversations with the text of the user's instructions in place of their file."""
    user = spec.user
    if user is None or user.instructions is None:
        return spec
    place = ("conversation", "user", "instructions")
    text = reading.read_file(user.instructions, place)
    if text is not None and not (isinstance(text, str) and text.strip()):
        reading.fault(place, f"found {user.instructions!r} without a text, expected instructions")
    return replace(spec, user=replace(user, instructions=text if isinstance(text, str) else None))

"""Conversations in suite files: the script of a case, and when a conversation ends."""

__all__ = ("ConversationSpec", "MessageEntry", "script_fault", "script_of")

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from pytest_llmeval.data.files.plain import STRICT


@dataclass(frozen=True)
class MessageEntry:
    """A message of a scripted conversation."""

    __pydantic_config__: ClassVar = STRICT

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class ConversationSpec:
    """When conversations end.

    Attributes:
        stop: ``script``: after the reply to the last message of the script; ``target``: when the target ends it.
        max_turns: Most calls of the target.
    """

    __pydantic_config__: ClassVar = STRICT

    stop: Literal["script", "target"] = "script"
    max_turns: int | None = None


def script_of(messages: Sequence[str | MessageEntry]) -> list[dict[str, str]]:
    """Return the messages of a script; a text is a message of the user."""
    return [{"role": "user", "content": each} if isinstance(each, str) else dict(vars(each)) for each in messages]


def script_fault(messages: Sequence[str | MessageEntry]) -> str | None:
    """Return the fault of a script as a whole."""
    if not messages:
        return "found an empty list, expected at least one message"
    last = messages[-1]
    if isinstance(last, str) or last.role == "user":
        return None
    return f"found a last message of the {last.role}, expected one of the user, which the target answers"

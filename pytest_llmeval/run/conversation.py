"""Leading a scripted conversation with a target, turn by turn."""

__all__ = ("Dialogue",)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_llmeval.core.case import MISSING
from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.core.parts import Parts
from pytest_llmeval.core.results import TargetUsage
from pytest_llmeval.run.target_figures import usage_of_target
from pytest_llmeval.suite.conversation import ConversationSpec

_LISTS = ("contexts", "tool_calls")


@dataclass
class Dialogue:
    """A conversation under way: `next` says what to send, `add` takes the reply.

    Attributes:
        script: Messages of the case, in order. A message of the user that one of the assistant follows is history.
        parts: Where the parts of a reply are.
        settings: When it ends.
    """

    script: Sequence[Mapping[str, Any]]
    parts: Parts
    settings: ConversationSpec
    _messages: list[Any] = field(default_factory=list)
    _replies: list[Any] = field(default_factory=list)
    _sent: int = 0
    _stop: str | None = None
    _reason: str | None = None

    def next(self) -> list[Any] | None:
        """Return the messages so far, to which the target must reply; ``None`` at the end of the conversation."""
        if self._stop is None:
            if self._sent == len(self.script) and self.settings.stop == "script":
                self._stop = "script"
            elif self.settings.max_turns is not None and len(self._replies) >= self.settings.max_turns:
                self._stop = "max_turns"
            else:
                self._follow_script()
        return None if self._stop is not None else list(self._messages)

    def _follow_script(self) -> None:
        """Say what the script says, up to a message that the target must reply to or to the end."""
        while self._sent < len(self.script):
            message, *rest = self.script[self._sent : self._sent + 2]
            self._messages.append(dict(message))
            self._sent += 1
            if message["role"] == "user" and not (rest and rest[0]["role"] == "assistant"):
                break

    def add(self, reply: Any) -> None:
        """Take a reply of the target: text, or an object with parts, and with ``stop`` where the target decides.

        Raises:
            PredictionError: It lacks the answer.
        """
        self._replies.append(reply)
        new = self.parts.find("messages", reply)
        if new is MISSING:
            message = {"role": "assistant", "content": self.parts.read("answer", reply)}
            found = {name: self.parts.find(name, reply) for name in _LISTS}
            self._messages.append(message | {name: each for name, each in found.items() if each is not MISSING})
        elif isinstance(new, list) and new and all(isinstance(each, Mapping) for each in new):
            self._messages += new
        else:
            raise PredictionError("the messages of the reply are no list of objects, expected those that it adds")
        said = reply.get("stop") if isinstance(reply, Mapping) and self.settings.stop == "target" else None
        if said:
            self._stop = "target"
            self._reason = said if isinstance(said, str) else None

    def transcript(self) -> dict[str, Any]:
        """Return the conversation as a prediction: messages, the last answer, how many turns, and why it ended."""
        last: Mapping[str, Any] = next(
            (each for each in reversed(self._messages) if each.get("role") == "assistant"), {}
        )
        told: dict[str, Any] = {
            "answer": last.get("content"),
            "messages": self._messages,
            "stop": self._stop,
            "turns": len(self._replies),
        }
        if self._reason is not None:
            told["stop_reason"] = self._reason
        for name in _LISTS:
            found = [each[name] for each in self._messages if isinstance(each.get(name), list)]
            if found:
                told[name] = found[-1] if name == "contexts" else [item for each in found for item in each]
        usages = [usage_of_target(self.parts, each) for each in self._replies]
        if any(each is not None for each in usages):
            told["usage"] = _sum([each or TargetUsage() for each in usages])
        return told


def _sum(usages: Sequence[TargetUsage]) -> dict[str, float]:
    columns = zip(TargetUsage._fields, zip(*usages, strict=True), strict=True)
    return {name: sum(amounts) for name, amounts in columns if None not in amounts}

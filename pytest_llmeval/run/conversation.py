"""Leading a conversation with a target, turn by turn, by its script or by a simulated user."""

__all__ = ("Dialogue", "UserQuestions", "beginning")

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from pytest_llmeval.core.case import MISSING
from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.core.parts import OUTCOME, PARTS, Parts
from pytest_llmeval.core.results import TargetUsage
from pytest_llmeval.judge.asking import JudgePanel, PanelQuestion
from pytest_llmeval.judge.questions.simulated_user import UserTurn, next_turn_question
from pytest_llmeval.run.target_figures import usage_of_target
from pytest_llmeval.suite.model_settings import ConversationSpec, SimulatedUser

_LISTS = ("contexts", "tool_calls")
_USERS = ("user", "human")
_ASSISTANTS = {"assistant", "ai", "model", "response"}
_OWN = frozenset((*PARTS, "stop", "stop_comment", "stop_reason", "turns", "unrecorded_from", "user"))
"""Keys of a transcript, which no reply can set."""


@dataclass
class Dialogue:
    """A conversation under way: `next` says what to send, `add` takes the reply.

    Attributes:
        script: Messages of the case, in order. A message of the user that one of the assistant follows is history.
        parts: Where the parts of a reply are.
        settings: Who leads it, and when it ends.
    """

    script: Sequence[Mapping[str, Any]]
    parts: Parts
    settings: ConversationSpec
    _messages: list[Any] = field(default_factory=list)
    _replies: list[Any] = field(default_factory=list)
    _sent: int = 0
    _stop: str | None = None
    _reason: str | None = None
    _comment: str = ""
    _unrecorded: int | None = None

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """What has been said so far."""
        return self._messages

    @property
    def turn(self) -> int:
        """Number of the turn that is under way, counted from 1."""
        return len(self._replies) + 1

    @property
    def wants_user(self) -> bool:
        """Whether the simulated user speaks next."""
        if self.settings.user is None or self._stop is not None or self._sent < len(self.script):
            return False
        is_asked = bool(self._messages) and self._messages[-1].get("role") == "user"
        return not is_asked and not self._is_full

    @property
    def _is_full(self) -> bool:
        limit = self.settings.limit
        return limit is not None and len(self._replies) >= limit

    def hear(self, turn: UserTurn) -> None:
        """Take what the simulated user does.

        Raises:
            PredictionError: It ends the conversation before it has begun.
        """
        if turn.message:
            self._messages.append({"role": "user", "content": turn.message})
            return
        if not self._replies:
            raise PredictionError(f"the simulated user ended before it said anything: {turn.stop} ({turn.reason})")
        self._stop, self._reason, self._comment = "user", turn.stop, turn.reason

    def leave_recording(self) -> None:
        """Note that the turn under way is not recorded."""
        self._unrecorded = self._unrecorded or self.turn

    def stop_unrecorded(self) -> None:
        """End the conversation where its recording does."""
        self._stop = "recording"

    def next(self) -> list[Any] | None:
        """Return the messages so far, to which the target must reply; ``None`` at the end of the conversation."""
        if self._stop is None:
            scripted = self.settings.stop == "script" and self.settings.user is None
            if self._sent == len(self.script) and scripted:
                self._stop = "script"
            elif self._is_full:
                self._stop = "max_turns"
            else:
                self._follow_script()
        # A copy: what a target does to its messages is not what was said.
        return None if self._stop is not None else deepcopy(self._messages)

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
        new = self.parts.find("messages", reply)
        if new is MISSING:
            answer = self.parts.read("answer", reply)
            if answer is None or answer == []:
                raise PredictionError(f"the reply is {json.dumps(answer)}, expected an answer")
            message = {"role": "assistant", "content": answer}
            found = {name: self.parts.find(name, reply) for name in _LISTS}
            self._messages.append(message | {name: each for name, each in found.items() if each is not MISSING})
        elif isinstance(new, list) and new and all(isinstance(each, Mapping) for each in new):
            self._messages += _added(self._messages, new)
        else:
            raise PredictionError("the messages of the reply are no list of objects, expected those that it adds")
        self._replies.append(reply)
        said = reply.get("stop") if isinstance(reply, Mapping) and self.settings.stop == "target" else None
        if said:
            self._stop = "target"
            self._reason = said if isinstance(said, str) else None

    def transcript(self) -> dict[str, Any]:
        """Return the conversation as a prediction: messages, the last answer, how many turns, and why it ended.

        What the target returned beside its last answer, such as the state of its world, is kept under its own names,
        and as the outcome.
        """
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
        if self._comment:
            told["stop_comment"] = self._comment
        if self._unrecorded is not None:
            told["unrecorded_from"] = self._unrecorded
        for name in _LISTS:
            found = [each[name] for each in self._messages if isinstance(each.get(name), list)]
            if found:
                told[name] = found[-1] if name == "contexts" else [item for each in found for item in each]
        final = self._replies[-1] if self._replies else None
        if isinstance(final, Mapping):
            told |= {name: value for name, value in final.items() if name not in _OWN}
        outcome = self.parts.find(OUTCOME, final)
        if outcome is not MISSING:
            told[OUTCOME] = outcome
        usages = [usage_of_target(self.parts, each) for each in self._replies]
        if any(each is not None for each in usages):
            told["usage"] = _sum([each or TargetUsage() for each in usages])
        return told


@dataclass(frozen=True)
class UserQuestions:
    """What the model that plays the user of a case is asked.

    Attributes:
        user: Its settings.
        wants: Persona, goal and knowledge.
        panel: Where questions go.
        case: Id of the case.
        repeat: Counted from 0.
        asker: As of `JurorQuestion`.
    """

    user: SimulatedUser
    wants: Mapping[str, Any]
    panel: JudgePanel
    case: str
    repeat: int
    asker: str

    def next(self, messages: Sequence[Mapping[str, Any]]) -> PanelQuestion:
        """Return the question that follows what has been said."""
        said = [
            (each["role"] == "user", text)
            for each in messages
            if each.get("role") in ("user", "assistant") and (text := _text(each.get("content")))
        ]
        language = None if self.user.language == "auto" else self.user.language
        question = next_turn_question(self.wants, said, self.user.stop, self.user.instructions, language)
        return self.panel.bind(question, self.case, self.repeat, self.asker)

    def of(self, messages: Sequence[Mapping[str, Any]], script: int, *, ended: bool) -> Iterator[PanelQuestion]:
        """Yield the questions whose replies a conversation consists of.

        Args:
            messages: Of the conversation.
            script: How many of them were there from the start.
            ended: Whether the user ended it, or was to say more.
        """
        for place, message in enumerate(messages):
            if place >= script and message.get("role") == "user":
                yield self.next(messages[:place])
        if ended:
            yield self.next(messages)


def _added(said: Sequence[Any], given: list[Any]) -> list[Any]:
    """Return the messages that a reply adds; many frameworks return the whole conversation with them.

    Raises:
        PredictionError: It does not answer, or speaks for the user.
    """
    new = given[len(said) :] if given[: len(said)] == list(said) else given
    if any(each.get("role") in _USERS and _text(each.get("content")) for each in new):
        raise PredictionError("the reply has a message of the user, expected those of the assistant and of its tools")
    if not any({each.get("role"), each.get("kind"), each.get("type")} & _ASSISTANTS for each in new):
        raise PredictionError("the reply has no message of the assistant, expected at least one")
    return new


def beginning(value: Any) -> Sequence[Mapping[str, Any]]:
    """Return the messages that the input of a conversation begins with; none where it says what a user wants."""
    return value if isinstance(value, list) else ()


def _text(content: Any) -> str:
    """Return what is said in a message: its text, or the texts of its parts."""
    if isinstance(content, list):
        return "\n".join(str(each["text"]) for each in content if isinstance(each, Mapping) and each.get("text"))
    return content if isinstance(content, str) else "" if content is None else json.dumps(content, ensure_ascii=False)


def _sum(usages: Sequence[TargetUsage]) -> dict[str, float]:
    told = {
        "input_tokens": [each.input_tokens for each in usages],
        "output_tokens": [each.output_tokens for each in usages],
        "cost_usd": [each.cost_usd for each in usages],
    }
    return {name: sum(filter(None, amounts)) for name, amounts in told.items() if None not in amounts}

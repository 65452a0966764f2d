"""Leading a conversation with a target, turn by turn, by its script or by a simulated user."""

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

from pytest_llmeval.core import (
    MISSING,
    BudgetError,
    JudgeError,
    LlmevalError,
    MediaForm,
    Parts,
    PredictionError,
    TargetUsage,
    as_line,
    input_digest,
    quotation,
)
from pytest_llmeval.judges import Judgement, JudgePanel, Mode, ModeFile, PanelQuestion, Question, ReplyObject, Verdict
from pytest_llmeval.run._execute import json_like
from pytest_llmeval.run._job import Answers, CaseAnswer, Job, Next, answer_to, usage_of_target
from pytest_llmeval.suites import ConversationSpec, SimulatedUser, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.judges import SuiteJudges
    from pytest_llmeval.targets import Recordings

SIMULATED_USER: Final = "simulated_user"
"""The name of the mode in which a judge model plays the user."""

_LONGEST_QUOTE = 80
"""Most characters of a message in an error."""

_LISTS = ("contexts", "tool_calls")
_USERS = ("user", "human")
_ASSISTANTS = {"assistant", "ai", "model", "response"}
_OWN = frozenset((*Parts.NAMES, "stop", "stop_comment", "stop_reason", "turns", "unrecorded_from", "user"))
"""Keys of a transcript, which no reply can set."""


class UserTurn(Struct, frozen=True):
    """The turn of a simulated user in a conversation of a run: a message, or the end.

    Attributes:
        message: What it says; empty where it ends the conversation.
        stop: One of the reasons of the suite; empty where it goes on.
        reason: Why, in its own words.
    """

    message: str = ""
    stop: str = ""
    reason: str = ""


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
        """The messages of the conversation so far."""
        return self._messages

    @property
    def turn(self) -> int:
        """The number of the conversation's turn that is under way, counted from 1."""
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
        """Whether the conversation has as many replies as its limit allows."""
        limit = self.settings.limit
        return limit is not None and len(self._replies) >= limit

    def hear(self, turn: UserTurn) -> None:
        """Take the turn of the simulated user into the conversation.

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
        """The messages so far, to which the target must reply; ``None`` at the end of the conversation."""
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
            message, *following = self.script[self._sent : self._sent + 2]
            self._messages.append(dict(message))
            self._sent += 1
            if message["role"] == "user" and not (following and following[0]["role"] == "assistant"):
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
            lists = {name: self.parts.find(name, reply) for name in _LISTS}
            self._messages.append(message | {name: list_ for name, list_ in lists.items() if list_ is not MISSING})
        elif isinstance(new, list) and new and all(isinstance(message_of_reply, Mapping) for message_of_reply in new):
            self._messages += _added_messages(self._messages, new)
        else:
            raise PredictionError("the messages of the reply are no list of objects, expected those that it adds")
        self._replies.append(reply)
        stop = reply.get("stop") if isinstance(reply, Mapping) and self.settings.stop == "target" else None
        if stop:
            self._stop = "target"
            self._reason = stop if isinstance(stop, str) else None

    def transcript(self) -> dict[str, Any]:
        """The conversation as a prediction: messages, the last answer, how many turns, and why it ended.

        What the target returned beside its last answer, such as the state of its world, is kept under its own names,
        and as the outcome.
        """
        last: Mapping[str, Any] = next(
            (message for message in reversed(self._messages) if message.get("role") == "assistant"), {}
        )
        transcript: dict[str, Any] = {
            "answer": last.get("content"),
            "messages": self._messages,
            "stop": self._stop,
            "turns": len(self._replies),
        }
        if self._reason is not None:
            transcript["stop_reason"] = self._reason
        if self._comment:
            transcript["stop_comment"] = self._comment
        if self._unrecorded is not None:
            transcript["unrecorded_from"] = self._unrecorded
        for name in _LISTS:
            values = [message[name] for message in self._messages if isinstance(message.get(name), list)]
            if values:
                transcript[name] = values[-1] if name == "contexts" else [item for value in values for item in value]
        final = self._replies[-1] if self._replies else None
        if isinstance(final, Mapping):
            transcript |= {name: value for name, value in final.items() if name not in _OWN}
        outcome = self.parts.find(Parts.OUTCOME, final)
        if outcome is not MISSING:
            transcript[Parts.OUTCOME] = outcome
        usages = [usage_of_target(self.parts, reply) for reply in self._replies]
        if any(usage is not None for usage in usages):
            transcript["usage"] = _sum_usages([usage or TargetUsage() for usage in usages])
        return transcript


@dataclass(frozen=True)
class UserQuestions:
    """The questions to the model that plays the user of a case.

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
        """The question to a simulated user that follows what has been said."""
        spoken = [
            (message["role"] == "user", text)
            for message in messages
            if message.get("role") in ("user", "assistant") and (text := _text(message.get("content")))
        ]
        language = None if self.user.language == "auto" else self.user.language
        question = next_turn_question(self.wants, spoken, self.user.stop, self.user.instructions, language)
        return self.panel.bind(question, self.case, self.repeat, self.asker)

    def replayed(self, messages: Sequence[Mapping[str, Any]], script: int, *, ended: bool) -> Iterator[PanelQuestion]:
        """Yield the questions to a simulated user of whose replies a conversation consists.

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


@dataclass
class Conversations:
    """The link of the chain that leads conversations: the next link is asked for each reply, until the end.

    Attributes:
        judges: The judges of the process, which also play users.
        recordings: Predictions of earlier runs.
    """

    judges: "SuiteJudges"
    recordings: "Recordings | None"
    _spoken: dict[tuple[SuiteKey, str, int], list[Judgement]] = field(default_factory=dict)
    """What simulated users said in the conversations of this process."""

    async def __call__(self, job: Job, ask: Next) -> Answers:
        """Return the transcript, or what the next link answers if the case is no conversation.

        Raises:
            BaseException: Any error of the target, with its turn.
        """
        if not job.case.conversation:
            return await ask(job)
        dialogue = Dialogue(beginning(job.case.input), job.suite.parts, job.suite.conversation)
        user = user_questions(job)
        spoken = self._spoken[job.place] = []
        try:
            while (messages := await self._to_reply(dialogue, user, spoken)) is not None:
                dialogue.add(await self._turn(job, messages, ask))
        except Exception as error:  # noqa: BLE001 (it is raised again, with its turn)
            raise PredictionError.in_turn(error, dialogue.turn) from error.__cause__
        wants = {} if user is None else {"user": {name: want for name, want in user.wants.items() if want}}
        return {job.case.id: job.case.answered(json_like(dialogue.transcript() | wants))}

    async def _turn(self, job: Job, messages: list[Any], ask: Next) -> Any:
        """The reply in one turn, as JSON data; one that a killed run has got is taken over.

        Not in a world: what the agent did in that of the killed run has not happened in this one.
        """
        keeps = self.recordings is not None and self.recordings.mode == "auto" and job.world is None
        if not keeps:
            return await _target_reply(job, messages, ask)
        shared, run, key = self.judges.store.coordination, turns_of(job), input_digest(messages)
        if (stored := shared.get_answer(run, key)) is not None:
            return json.loads(stored)
        reply = await _target_reply(job, messages, ask)
        shared.put_answer(run, key, json.dumps(reply))
        return reply

    async def _to_reply(
        self, dialogue: Dialogue, user: UserQuestions | None, spoken: list[Judgement]
    ) -> list[Any] | None:
        """The message to which the target must reply, after the simulated user has spoken if it is its turn."""
        if user is not None and dialogue.wants_user:
            await self._hear_user(dialogue, user, spoken)
        return dialogue.next()

    async def _hear_user(self, dialogue: Dialogue, user: UserQuestions, spoken: list[Judgement]) -> None:
        """Let the simulated user take its turn, and keep what it took in `spoken`.

        Raises:
            LlmevalError: It has none: its reply cannot be read, is not recorded, or the budget is spent.
        """
        question, mode = user.next(dialogue.messages), self.judges.store.mode
        (juror,) = question.expected
        recordings = juror.juror.recordings
        if recordings.get(juror.key) is None and recordings.has(juror.case, SIMULATED_USER):
            dialogue.leave_recording()
            if user.user.unrecorded == "stop" and mode in ("auto", "replay") and dialogue.turn > 1:
                dialogue.stop_unrecorded()
                return
            if user.user.unrecorded == "fail" and mode == "auto":
                raise PredictionError(_outside(dialogue))
        judgement = await self.judges.service.judge(question)
        spoken.append(judgement)
        verdict = judgement.verdict
        if isinstance(verdict, BudgetError):
            raise verdict
        if isinstance(verdict, LlmevalError):
            raise PredictionError(
                _outside(dialogue) if mode == "replay" else f"the simulated user has no reply: {verdict}"
            )
        dialogue.hear(read_turn(verdict))

    def add_spoken(self, job: Job, answer: CaseAnswer) -> None:
        """Add what the simulated user of a conversation took, and what of it can be recorded.

        Where another process has led the conversation, the questions are those that its transcript answers.
        """
        user = user_questions(job)
        if user is None:
            return
        spoken = self._spoken.pop(job.place, None)
        if spoken is None:
            spoken = []
            transcript: Any = answer.case.prediction
            messages = transcript.get("messages") if isinstance(transcript, Mapping) else None
            ended = isinstance(messages, list) and transcript.get("stop") == "user"
            script = len(beginning(job.case.input))
            asks = self.judges.store.asks
            for question in user.replayed(messages, script, ended=ended) if isinstance(messages, list) else ():
                (juror,) = question.expected
                may_be_known = asks or juror.juror.recordings.get(juror.key) is not None
                if may_be_known and (known := self.judges.service.known(question)) is not None:
                    spoken.append(known)
        for judgement in spoken:
            answer.calls += [call._replace(user=True) for call in judgement.calls]
            answer.entries += [structs.replace(entry, case=answer.case.id) for entry in judgement.entries]


async def _target_reply(job: Job, messages: list[Any], ask: Next) -> Any:
    """The target's reply to the messages of a conversation that a run leads."""
    return answer_to(job, await ask(structs.replace(job, messages=messages))).prediction


def user_questions(job: Job) -> UserQuestions | None:
    """The questions to the simulated user of a case; ``None`` where it has none."""
    user = job.suite.conversation.user
    if user is None or job.user is None or not job.case.conversation:
        return None
    wants = user.wants_of(job.case.input)
    return UserQuestions(user, wants, job.user.panel, job.case.id, job.repeat, asker(job))


def _outside(dialogue: Dialogue) -> str:
    """The reason why a replayed conversation cannot continue: no recorded reply fits a simulated user's message."""
    reply = next(
        (message.get("content") for message in reversed(dialogue.messages) if message.get("role") == "assistant"), None
    )
    remedy = "record one with --llmeval-judge=record"
    if reply is None:
        return f"no first message is recorded: {remedy}"
    return (
        f"the conversation leaves its recording: no reply to '{as_line(reply, _LONGEST_QUOTE)}' is recorded; {remedy}"
    )


def turns_of(job: Job) -> str:
    """The key under which the replies of a conversation are stored while it continues."""
    return f"turns {asker(job)} {job.case.id} {job.repeat} {input_digest([job.case.input, job.case.way])}"


def asker(job: Job) -> str:
    """The name by which a test's or system's judge questions are distinguished from others in the store."""
    return " ".join((job.key.display_path, job.key.test, job.key.variant))


def _added_messages(sent: Sequence[Any], reply_messages: list[Any]) -> list[Any]:
    """The messages that a target's reply adds to a conversation; many frameworks return all of them.

    Raises:
        PredictionError: It does not answer, or speaks for the user.
    """
    new = reply_messages[len(sent) :] if reply_messages[: len(sent)] == list(sent) else reply_messages
    if any(message.get("role") in _USERS and _text(message.get("content")) for message in new):
        raise PredictionError("the reply has a message of the user, expected those of the assistant and of its tools")
    if not any({message.get("role"), message.get("kind"), message.get("type")} & _ASSISTANTS for message in new):
        raise PredictionError("the reply has no message of the assistant, expected at least one")
    return new


def beginning(value: Any) -> Sequence[Mapping[str, Any]]:
    """The scripted messages of a conversation in a case's input; none where it describes a simulated user."""
    return value if isinstance(value, list) else ()


def _text(content: Any) -> str:
    """The text of a message in a conversation, or of its parts, with a line about each medium."""
    content = MediaForm.describe_all(content)
    if isinstance(content, list):
        texts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        return "\n".join(str(text) for text in texts if text)
    return content if isinstance(content, str) else "" if content is None else json.dumps(content, ensure_ascii=False)


def _sum_usages(usages: Sequence[TargetUsage]) -> dict[str, float]:
    """The tokens and cost of all target replies in a conversation; an amount that one reply lacks is left out."""
    amounts_by_name = {
        "input_tokens": [usage.input_tokens for usage in usages],
        "output_tokens": [usage.output_tokens for usage in usages],
        "cost_usd": [usage.cost_usd for usage in usages],
    }
    return {name: sum(filter(None, amounts)) for name, amounts in amounts_by_name.items() if None not in amounts}


_SCHEMA_TEXT: Final = {"type": ["string", "null"]}


def next_turn_question(
    wants: Mapping[str, Any],
    turns: Sequence[tuple[bool, str]],
    stops: Sequence[str],
    instructions: str | None = None,
    language: str | None = None,
) -> Question:
    """The question for a simulated user's next turn, to the model that plays this user in a run.

    Args:
        wants: ``persona``, ``goal`` and ``knows``, as far as there are any.
        turns: The conversation so far: whether it was the user, and the text.
        stops: The reasons for which it may end the conversation.
        instructions: In place of those that ship.
        language: ``en`` or ``zh``; default: by the goal.
    """
    texts = {
        "persona": str(wants.get("persona") or ""),
        "goal": str(wants.get("goal") or ""),
        "knows": json.dumps(wants.get("knows") or {}, ensure_ascii=False, sort_keys=True),
        "stops": ", ".join(stops),
        # No text can pass for a message of the other side: each is a value of its own.
        "conversation": json.dumps([{"you" if own else "agent": text} for own, text in turns], ensure_ascii=False),
    }
    mode = _user_mode(tuple(stops), instructions)
    return Question(mode, texts, Question.instruction_language(texts["goal"], language))


@cache
def _user_mode(stops: tuple[str, ...], instructions: str | None) -> Mode:
    """The judge mode in which a model plays the user of a conversation, named after its own instructions if any."""
    stop = {"anyOf": [{"type": "string", "enum": list(stops)}, {"type": "null"}]}
    own: dict[str, Any] = {} if instructions is None else {"instructions": {"en": instructions, "zh": instructions}}
    return ModeFile(SIMULATED_USER).mode(
        "" if instructions is None else f"-{sha256(instructions.encode()).hexdigest()[:12]}",
        **own,
        scale=(0.0, 1.0),
        read=partial(_read, stops),
        reply_schema=ReplyObject.schema(message=_SCHEMA_TEXT, stop=stop, reason={"type": "string"}),
        asks_again=True,
        plays=True,
    )


def _read(stops: Sequence[str], reply: str) -> Verdict:
    """The reply of a simulated user as a verdict: 1 for a message, 0 for an end.

    Raises:
        JudgeError: It is neither, or both.
    """
    data = ReplyObject.closing(reply, lambda _: {})
    message, stop, reason = (data.get(name) for name in ("message", "stop", "reason"))
    says = isinstance(message, str) and bool(message.strip())
    if not (message is None or isinstance(message, str)) or not (stop is None or isinstance(stop, str)):
        raise JudgeError.unreadable(reply, "found a message or stop that is no text, expected text or null")
    if says is bool(stop):
        parts = "both a message and a stop" if says else "neither a message nor a stop"
        raise JudgeError.unreadable(reply, f"found {parts}, expected one of them")
    if stop and stop not in stops:
        raise JudgeError.unreadable(reply, f"found the stop {quotation(stop, 40)}, expected one of {', '.join(stops)}")
    why = reason if isinstance(reason, str) else ""
    return Verdict(float(says), why, {"message": message} if says else {"stop": stop})


def read_turn(verdict: Verdict) -> UserTurn:
    """The turn of a simulated user that its reply was read as."""
    return UserTurn(verdict.details.get("message", ""), verdict.details.get("stop", ""), verdict.reasoning)

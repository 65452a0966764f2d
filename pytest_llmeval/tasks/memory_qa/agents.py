"""Memory agents as targets of suites: one agent per conversation, which answers one question at a time."""

__all__ = ("as_target",)

import asyncio
import hashlib
import inspect
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.services.background import in_thread
from pytest_llmeval.tasks.memory_qa.qa import Agent, Sample

_OF_THE_QUESTION = ("question", "question_date")


@dataclass
class _Conversation:
    """A conversation and the agent that has read it."""

    sample: Sample
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    agent: Agent | None = None
    failure: Exception | None = None

    async def prepare(self, make: Callable[[], Agent]) -> Agent:
        """Return the agent, once it has read the conversation; one that could not fails for every question alike."""
        if self.failure is not None:
            raise self.failure
        if self.agent is None:
            try:
                agent = await _called(make)
                await _called(agent.memory.reset)
                await _called(lambda: agent.ingest_sample(self.sample))
            except Exception as error:
                self.failure = error
                raise
            self.agent = agent
        return self.agent


def as_target(agent_factory: Callable[[], Agent], *, fresh: bool = False) -> Callable[[Any], Awaitable[Any]]:
    """Return a target for suites that answers questions by memory agents, as `run_eval` drives them.

    Each process makes an agent for each conversation: its memory is reset, it reads the conversation, and it answers
    the questions one after the other, in the order in which they are asked. Different conversations run at the same
    time. The input of a case holds ``question`` and either ``conversation`` with ``conversation_id``, as the source
    ``locomo`` gives them, or the history itself, as ``longmemeval`` does.

    Args:
        agent_factory: Makes an agent; its methods may be ``async``.
        fresh: Whether an agent is made anew for every question. For agents whose answers change what they remember:
            which questions a process asks, and so what such an agent remembers, differs with ``-n`` and ``-k``.
    """
    conversations: dict[str, _Conversation] = {}

    async def answer(value: Any) -> Any:
        question, sample = _parts(value)
        if fresh:
            agent = await _Conversation(sample).prepare(agent_factory)
            return await _called(lambda: agent.answer(question))
        conversation = conversations.setdefault(sample.sample_id, _Conversation(sample))
        async with conversation.turn:
            agent = await conversation.prepare(agent_factory)
            return await _called(lambda: agent.answer(question))

    answer.__module__ = sys._getframe(1).f_globals.get("__name__", __name__)  # noqa: SLF001 (as namedtuple: a suite may name only what its own module defines)
    return answer


def _parts(value: Any) -> tuple[str, Sample]:
    """Return the question of an input, and its conversation."""
    if not isinstance(value, Mapping) or not isinstance(value.get("question"), str):
        found = f"an object with {', '.join(map(repr, value))}" if isinstance(value, Mapping) else type(value).__name__
        raise PredictionError(f"found {found} as input, expected an object with 'question' and 'conversation'")
    history = {key: each for key, each in value.items() if key not in _OF_THE_QUESTION}
    if not history.keys() - {"conversation_id"}:
        raise PredictionError("found a question without a conversation, expected one (source: history is not false)")
    name = history.get("conversation_id")
    if name is None:
        name = hashlib.sha256(json.dumps(history, sort_keys=True).encode()).hexdigest()[:16]
    return value["question"], Sample(str(name), history.get("conversation", history), ())


async def _called(work: Callable[[], Any]) -> Any:
    """Return what a method returns or awaits; it runs in a thread, so that other conversations go on."""
    found = await in_thread(work, "llmeval-agent")
    return await found if inspect.isawaitable(found) else found

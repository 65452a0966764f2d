"""Help for tests of the service that asks judges: a scripted judge, and what it is asked."""

__all__ = ("Scripted", "asked", "fault", "reached", "run", "verdict")

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from llm_server import PATIENCE
from stored_judgements import question

from pytest_llmeval import LlmevalError
from pytest_llmeval.judge.bound_question import BoundQuestion, SuiteJudge
from pytest_llmeval.judge.contract import JudgeReply, JudgeRequest, Usage, Verdict
from pytest_llmeval.judge.service import Judgement

_T = TypeVar("_T")


@dataclass
class Scripted:
    """A judge that answers 0.5, or what it is told to; `gate` keeps its answers back."""

    answers: list[JudgeReply | BaseException] = field(default_factory=list)
    requests: list[JudgeRequest] = field(default_factory=list)
    gate: asyncio.Event | None = None

    async def complete(self, request: JudgeRequest) -> JudgeReply:
        self.requests.append(request)
        if self.gate is not None:
            await self.gate.wait()
        answer = self.answers.pop(0) if self.answers else JudgeReply("0.5", Usage(30, 4))
        if isinstance(answer, BaseException):
            raise answer
        return answer


def run(work: Coroutine[Any, Any, _T]) -> _T:
    async def whole() -> _T:
        try:
            return await work
        finally:
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

    return asyncio.run(asyncio.wait_for(whole(), PATIENCE))


async def reached(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0)


def asked(suite_judge: SuiteJudge, answer: str = "Paris", repeat: int = 0, case: str = "paris") -> BoundQuestion:
    return BoundQuestion(suite_judge, question(answer), case, repeat)


def verdict(told: Judgement) -> Verdict:
    assert isinstance(told.verdict, Verdict), told.verdict
    return told.verdict


def fault(told: Judgement) -> LlmevalError:
    assert isinstance(told.verdict, LlmevalError)
    return told.verdict

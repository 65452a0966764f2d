"""Help for tests of the service that asks judges: a scripted judge, and what it is asked."""

__all__ = ("OneJudge", "Scripted", "ask_of", "asked", "fault", "reached", "run", "verdict")

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from llm_server import PATIENCE
from stored_judgements import question

from pytest_llmeval import LlmevalError
from pytest_llmeval.judge.asking import JudgePanel, Juror, JurorVerdict, PanelQuestion
from pytest_llmeval.judge.contract import JudgeReply, JudgeRequest, Question, Usage, Verdict
from pytest_llmeval.judge.replies import ReplyStore
from pytest_llmeval.judge.run_store import RunStore
from pytest_llmeval.judge.service import JudgeService

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


class OneJudge:
    """A service that is asked one judge's questions, and what came of them.

    Attributes:
        store: Of the service.
        service: As everything else uses it.
    """

    def __init__(self, store: RunStore) -> None:
        self.store = store
        self.service = JudgeService(store.limit, store)

    @property
    def cache(self) -> ReplyStore:
        return self.store.replies

    def known(self, asked: PanelQuestion) -> JurorVerdict | None:
        found = self.service.known(asked)
        return None if found is None else found.jurors[""]

    async def judge(self, asked: PanelQuestion) -> JurorVerdict:
        found = await self.service.judge(asked)
        assert found.verdict is found.jurors[""].verdict
        return found.jurors[""]


def ask_of(juror: Juror, put: Question, case: str = "paris", repeat: int = 0, asker: str = "") -> PanelQuestion:
    return JudgePanel.of_one(juror).bind(put, case, repeat, asker)


def asked(juror: Juror, answer: str = "Paris", repeat: int = 0, case: str = "paris") -> PanelQuestion:
    return ask_of(juror, question(answer), case, repeat)


def verdict(found: JurorVerdict) -> Verdict:
    assert isinstance(found.verdict, Verdict), found.verdict
    return found.verdict


def fault(found: JurorVerdict) -> LlmevalError:
    assert isinstance(found.verdict, LlmevalError)
    return found.verdict

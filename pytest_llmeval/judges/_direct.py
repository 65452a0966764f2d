"""Judges for Python code, without pytest: asked at once, and nothing is kept."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_llmeval.core import FieldsError, JudgeCall, JudgeError, LlmevalError
from pytest_llmeval.judges._asking import Judgement, JudgePanel, Juror, JurorQuestion, JurorVerdict, PanelQuestion
from pytest_llmeval.judges._contract import ChatClient, JudgeClient, JudgeReply, JudgeRequest, Usage, Verdict
from pytest_llmeval.judges._recordings import Judgements
from pytest_llmeval.judges._service import CallLimit, JudgeService
from pytest_llmeval.judges._spec import JudgeSpec, Reduce, numbered, panel_faults
from pytest_llmeval.services import Background, caught

if TYPE_CHECKING:
    from pytest_llmeval.judges._coordination import Reservation

Judgeable: TypeAlias = (
    str
    | JudgeSpec
    | JudgeClient
    | ChatClient
    | Callable[[JudgeRequest], JudgeReply | str | Awaitable[JudgeReply | str]]
)
"""A judge: ``PROVIDER:NAME`` of a model, a spec, a client, or a function, plain or async."""


@dataclass(frozen=True)
class Panel:
    """Several judges for Python code, in place of one.

    Attributes:
        judges: Two or more; as a mapping with names for reports, otherwise they are called by their models.
        reduce: ``mean``, ``median``, ``majority`` or ``unanimous``; ``None``: the majority of words such as yes and no,
            the mean of scores.
        min_judges: How many verdicts a question needs; ``None``: that of every judge.

    Raises:
        FieldsError: A `ValueError` with every fault.
    """

    judges: Mapping[str, Judgeable] | Sequence[Judgeable]
    reduce: Reduce | None = None
    min_judges: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.judges, str) or not isinstance(self.judges, Mapping | Sequence):  # a text is a sequence, too
            raise FieldsError(
                [("judges", f"found {self.judges!r}, expected a list or a mapping of two or more judges")]
            )
        if faults := panel_faults(len(self.judges), self.reduce, self.min_judges):
            raise FieldsError(faults)

    @property
    def named(self) -> dict[str, Judgeable]:
        """The judges by name, each of its own."""
        if isinstance(self.judges, Mapping):
            return dict(self.judges)
        return dict(zip(numbered([_name(each) for each in self.judges]), self.judges, strict=True))

    @property
    def least(self) -> int:
        """The number of verdicts that a question needs."""
        return self.min_judges or len(self.judges)


def _name(judge: Judgeable) -> str:
    if isinstance(judge, JudgeSpec):
        return str(judge.model)
    return judge if isinstance(judge, str) else getattr(judge, "__name__", type(judge).__name__)


@dataclass
class DirectJudges:
    """The judges of a call from Python, and the event loop in which they are asked.

    Attributes:
        panel: One judge, or several.
        workers: Most calls at a time.
    """

    panel: JudgePanel
    workers: int

    def __post_init__(self) -> None:
        self._service = JudgeService(CallLimit(self.workers), _Forgetful())
        self._background = Background()
        self._turns = asyncio.Semaphore(self.workers)
        clients: Any = [each.client for each in self.panel.jurors.values()]
        self._background.closing += [each.aclose for each in clients]

    @classmethod
    def from_judge(cls, llm: Any, workers: int) -> "DirectJudges":
        """Return what asks a judge or a panel; see `Judgeable` and `Panel`.

        Raises:
            JudgeError: It cannot judge.
        """
        if isinstance(llm, Panel):
            jurors = {name: _juror(each) for name, each in llm.named.items()}
            return cls(JudgePanel(jurors, llm.reduce, llm.least), workers)
        return cls(JudgePanel.of_one(_juror(llm)), workers)

    def known(self, question: PanelQuestion) -> Judgement | None:
        """Return the result if no call is needed."""
        return self._service.known(question)

    async def judge(self, question: PanelQuestion) -> Judgement:
        """Return the judgement of a question.

        Raises:
            LlmevalError: Nothing can be asked, for example because an optional dependency is not installed.
        """
        async with self._turns:  # a question that is asked again goes before the next one
            judgement = await self._service.judge(question)
        if isinstance(judgement.verdict, LlmevalError) and not isinstance(judgement.verdict, JudgeError):
            raise judgement.verdict
        return judgement

    def run(self, jobs: Iterable[Awaitable[None]]) -> None:
        """Run what asks, as many at a time as calls are allowed.

        Raises:
            BaseException: What one of the jobs raised, such as an interrupt, once the calls in flight have ended.
        """
        self._background.run(self._run(iter(jobs)))

    async def _run(self, jobs: Iterator[Awaitable[None]]) -> None:
        stopped: list[BaseException] = []

        async def work() -> None:
            while not stopped and (job := next(jobs, None)) is not None:
                _, error = await caught(job)
                if error is not None:
                    stopped.append(error)

        await asyncio.gather(*(work() for _ in range(self.workers)))
        if stopped:
            raise stopped[0]

    def close(self) -> None:
        """Close the clients and end the event loop."""
        self._background.close()


def _juror(llm: Any) -> Juror:
    from pytest_llmeval.judges.clients import as_client, connect

    spec = JudgeSpec(llm) if isinstance(llm, str) else llm
    client = connect(spec) if isinstance(spec, JudgeSpec) else as_client(llm)
    spec = spec if isinstance(spec, JudgeSpec) else getattr(llm, "spec", None)
    known = spec if isinstance(spec, JudgeSpec) else JudgeSpec()
    return Juror(known.model or "", known.request_parameters(), Judgements(Path()), client)


class _Forgetful:
    """A `pytest_llmeval.judges._service.JudgeStore` in memory; only questions that all cases share are asked once."""

    def __init__(self) -> None:
        self._shared: dict[str, asyncio.Future[tuple[JurorVerdict | None, BaseException | None]]] = {}

    def known(self, question: JurorQuestion) -> None:
        """Return nothing."""

    async def obtain(self, question: JurorQuestion, ask: Callable[[], Awaitable[JurorVerdict]]) -> JurorVerdict:
        """Return the verdict; a question that cases share is asked once for all of them, even if it fails."""
        if not question.question.shared:
            return await ask()
        if question.key not in self._shared:
            self._shared[question.key] = asyncio.ensure_future(caught(ask()))
        verdict, error = await self._shared[question.key]
        if verdict is None:
            assert error is not None
            raise error
        return verdict

    async def reserve(self, question: JurorQuestion) -> None:
        """Allow any call."""

    def settle(self, reservation: "Reservation | None", usage: Usage, cost: float | None) -> None:
        """Count nothing."""

    def keep(self, question: JurorQuestion, reply: JudgeReply, verdict: Verdict, call: JudgeCall) -> JurorVerdict:
        """Return the verdict; nothing is kept."""
        del question, reply
        return JurorVerdict(verdict, call)

    def keep_failure(self, question: JurorQuestion, error: JudgeError, call: JudgeCall | None) -> JurorVerdict:
        """Return why there is no verdict."""
        del question
        return JurorVerdict(error, call)

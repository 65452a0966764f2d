"""A judge for Python code, without pytest and stores."""

__all__ = ("DirectJudge", "Judgeable", "Panel")

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_llmeval.core.errors import FieldsError, JudgeError
from pytest_llmeval.judge.contract import JudgeClient, JudgeReply, JudgeRequest, Question, Verdict
from pytest_llmeval.judge.panel import candidates, numbered, panel_faults
from pytest_llmeval.judge.questions.probabilities import enveloped
from pytest_llmeval.judge.questions.render import render
from pytest_llmeval.judge.questions.replies import read_reply
from pytest_llmeval.judge.reduction import reduced
from pytest_llmeval.judge.spec import JudgeSpec, Reduce
from pytest_llmeval.services.background import Background, caught

if TYPE_CHECKING:
    from pytest_llmeval.judge.clients import AsyncJudge

Judgeable: TypeAlias = (
    str | JudgeSpec | JudgeClient | Callable[[JudgeRequest], JudgeReply | str | Awaitable[JudgeReply | str]]
)
"""What can be a judge: ``PROVIDER:NAME`` of a model, a spec, a client, or a function, plain or async."""


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
        """How many verdicts a question needs."""
        return self.min_judges or len(self.judges)


def _name(judge: Judgeable) -> str:
    if isinstance(judge, JudgeSpec):
        return str(judge.model)
    return judge if isinstance(judge, str) else getattr(judge, "__name__", type(judge).__name__)


@dataclass(frozen=True)
class _Juror:
    """One judge.

    Attributes:
        client: Asks it.
        model: Its name.
        parameters: What it is sent besides.
    """

    client: "AsyncJudge"
    model: str
    parameters: Mapping[str, Any]

    @classmethod
    def of(cls, llm: Any) -> "_Juror":
        from pytest_llmeval.judge.clients import as_client, connect

        spec = JudgeSpec(llm) if isinstance(llm, str) else llm
        client = connect(spec) if isinstance(spec, JudgeSpec) else as_client(llm)
        spec = spec if isinstance(spec, JudgeSpec) else getattr(llm, "spec", None)
        known = spec if isinstance(spec, JudgeSpec) else JudgeSpec()
        return cls(client, known.name, known.request_parameters())

    async def ask(self, question: Question) -> Verdict:
        mode = question.mode
        request = JudgeRequest(render(question), self.model, self.parameters, mode.reply_schema, mode.expected_of)
        reply = await self.client.complete(request)
        try:
            return read_reply(mode, enveloped(request, reply))
        except JudgeError:
            if not mode.asks_again:
                raise
        return read_reply(mode, enveloped(request, await self.client.complete(request)))


@dataclass(frozen=True)
class DirectJudge:
    """A judge or a panel, and the event loop in which it is asked.

    Attributes:
        jurors: Name to judge; a single one, or those of the panel.
        panel: The panel; ``None`` for a single judge.
        workers: Most calls at a time.
    """

    jurors: Mapping[str, _Juror]
    panel: Panel | None
    workers: int
    background: Background = field(default_factory=Background)

    @classmethod
    def of(cls, llm: Any, workers: int) -> "DirectJudge":
        """Return a judge; see `Judgeable` and `Panel`.

        Raises:
            JudgeError: It cannot judge.
        """
        panel = llm if isinstance(llm, Panel) else None
        judges = {"": llm} if panel is None else panel.named
        judge = cls({name: _Juror.of(each) for name, each in judges.items()}, panel, workers)
        judge.background.closing += [each.client.aclose for each in judge.jurors.values()]
        return judge

    @cached_property
    def _slots(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(self.workers)

    async def ask(self, question: Question) -> Verdict:
        """Return the verdict on a question.

        Raises:
            JudgeError: There is none.
        """
        if self.panel is None:
            (juror,) = self.jurors.values()
            return await juror.ask(question)
        given = await self._all_given(question, candidates(self.jurors, question.mode, self.panel.least))
        verdict = reduced(question.mode, given, self.panel.reduce, self.panel.least)
        if isinstance(verdict, Verdict):
            return verdict
        raise verdict

    async def _all_given(self, question: Question, jurors: Mapping[str, _Juror]) -> "dict[str, Verdict | JudgeError]":
        if not question.mode.asks_one:
            told = await asyncio.gather(*(self._given(each, question) for each in jurors.values()))
            return dict(zip(jurors, told, strict=True))
        given = {}
        for name, juror in jurors.items():
            given[name] = await self._given(juror, question)
            if isinstance(given[name], Verdict):
                break
        return given

    async def _given(self, juror: _Juror, question: Question) -> Verdict | JudgeError:
        async with self._slots:
            try:
                return await juror.ask(question)
            except JudgeError as error:
                return error

    def ask_all(self, questions: Mapping[int, Question], keep: Callable[[int, Verdict], None]) -> dict[int, JudgeError]:
        """Ask many questions.

        Args:
            questions: By number.
            keep: Called with each verdict as it arrives.

        Returns:
            The questions without a verdict.

        Raises:
            BaseException: Anything but a missing verdict, such as an interrupt, once the calls in flight have ended.
        """
        return self.background.run(self._ask_all(questions, keep))

    def close(self) -> None:
        """Close the client and end the event loop."""
        self.background.close()

    async def _ask_all(
        self, questions: Mapping[int, Question], keep: Callable[[int, Verdict], None]
    ) -> dict[int, JudgeError]:
        failed: dict[int, JudgeError] = {}
        stopped: list[BaseException] = []
        left = iter(questions.items())

        async def work() -> None:
            for number, question in left:
                verdict, error = await caught(self.ask(question))
                if isinstance(error, JudgeError):
                    failed[number] = error
                elif error is not None:
                    stopped.append(error)
                elif verdict is not None:
                    keep(number, verdict)
                if stopped:
                    return

        await asyncio.gather(*(work() for _ in range(min(self.workers, len(questions)))))
        if stopped:
            raise stopped[0]
        return dict(sorted(failed.items()))

"""Questions on their way to judges."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core import (
    Case,
    EvaluatorError,
    JudgeError,
    LlmevalError,
    PredictionError,
    Reading,
)
from pytest_llmeval.judges._evaluators import JudgedEvaluator
from pytest_llmeval.judges._panel import Judgeable, Judgement, JudgePanel, Panel, PanelQuestion
from pytest_llmeval.judges._protocol import Question, UnaskedError, Verdict
from pytest_llmeval.judges._service import CallLimit, JudgeService, UnkeptVerdicts
from pytest_llmeval.services import Background, caught, together

if TYPE_CHECKING:
    from pytest_llmeval.judges._panel import JurorQuestion, StoredReplies
    from pytest_llmeval.judges._recordings import Judgements
    from pytest_llmeval.judges._run_store import RunStore
    from pytest_llmeval.judges._spec import JudgeSpec, PanelSpec

_MOST_ROUNDS = 8


def _awaits(verdicts: Sequence[Verdict | JudgeError]) -> bool:
    """Whether a judge's verdict is deferred, so that questions that may depend on it cannot be put yet."""
    return any(isinstance(verdict, UnaskedError) and verdict.is_pending for verdict in verdicts)


@dataclass
class Asking:
    """The questions of one evaluator to its judges about one case, in rounds: later ones may depend on verdicts.

    Attributes:
        evaluator: Asks.
        views: What it sees of the case: one, or one for each turn that it reads.
        panel: Where the questions go.
        case: Id of the case.
        repeat: Counted from 0.
        asker: As in `JurorQuestion`.
        error: Why its questions could not be put.
        verdicts: View by view, the verdicts on its questions, in order; errors of other kinds are `JudgeError`.
        judged: Each question with its judgement.
    """

    evaluator: JudgedEvaluator
    views: Sequence[Case]
    panel: JudgePanel
    case: str
    repeat: int = 0
    asker: str = ""
    error: Exception | None = None
    verdicts: list[list[Verdict | JudgeError]] = field(init=False)
    judged: list[tuple[PanelQuestion, Judgement]] = field(default_factory=list)
    _put: list[PanelQuestion] = field(default_factory=list)
    _open: list[int] = field(init=False)
    """The number of unanswered questions about each view."""
    _rounds: int = 0
    _followed: int = 0
    """The number of questions in rounds after the first."""
    _audited: bool | None = None
    """True if the large judge of a cascade is asked about the whole case anyway; ``None`` before any is asked."""

    def __post_init__(self) -> None:
        self.verdicts = [[] for _ in self.views]
        self._open = [1] * len(self.views)

    @classmethod
    def about(
        cls,
        evaluator: JudgedEvaluator,
        case: Case,
        reading: Reading,
        panel: JudgePanel,
        repeat: int = 0,
        asker: str = "",
    ) -> "Asking":
        """The questions about a case; none and an error where the prediction lacks a part that is read."""
        try:
            return cls(evaluator, reading.views(case), panel, case.id, repeat, asker)
        except PredictionError as error:
            return cls(evaluator, (), panel, case.id, repeat, asker, error)

    @classmethod
    def without_run(
        cls,
        evaluator: JudgedEvaluator,
        case: Case,
        reading: Reading,
        judge: "JudgeSpec | PanelSpec",
        recordings: "Judgements",
        repeat: int = 0,
    ) -> "Asking":
        """The questions about a case that only recorded and stored replies answer.

        Args:
            evaluator: Asks.
            case: The case.
            reading: What the evaluator reads.
            judge: The judge or judges of the suite; an evaluator's own model goes before.
            recordings: Of the suite.
            repeat: Counted from 0.
        """
        panel = JudgePanel.without_clients(evaluator.own_model or judge, recordings)
        return cls.about(evaluator, case, reading, panel, repeat)

    def next(self) -> list[PanelQuestion]:
        """The questions of the next round to judges, until `add`; empty at the end, and where `error` says why."""
        if not self._put and self.error is None:
            try:
                self._put = self._next()
                for question in self._put:
                    _ = question.key  # what cannot be put as a question, such as a set, fails here
            except Exception as error:  # noqa: BLE001 (an evaluator's bug concerns this case only)
                self.error, self._put = error, []
        return self._put

    def _next(self) -> list[PanelQuestion]:
        """The questions of the next round, bound to the judges."""
        put = [
            list(self._questions(view, before)) if left and not _awaits(before) else []
            for view, before, left in zip(self.views, self.verdicts, self._open, strict=True)
        ]
        if any(put) and self._rounds == _MOST_ROUNDS:  # there is no end of rounds, which would be paid for
            raise EvaluatorError(f"evaluator {self.evaluator.name!r} asks in more than {_MOST_ROUNDS} rounds")
        if self._rounds:
            self._followed += sum(map(len, put))
        self._rounds += 1
        self._open = [len(questions) for questions in put]
        return self._draw_audit(
            [self.panel.bind(question, self.case, self.repeat, self.asker) for question in chain(*put)]
        )

    def _draw_audit(self, put: list[PanelQuestion]) -> list[PanelQuestion]:
        """Decide by the first questions to a cascade whether all that is asked about the case is audited.

        Counts of a case may depend on several verdicts, so what the large judge adds to them is known only if it has
        answered all of these questions.
        """
        cascades = [question for question in put if question.cascade is not None]
        if cascades and self._audited is None:
            rule = self.panel.cascade
            self._audited = rule is not None and rule.audits(
                [next(iter(cascade.jurors.values())).key for cascade in cascades]
            )
        return [replace(question, audited=question.cascade is not None) for question in put] if self._audited else put

    def _questions(self, view: Case, before: Sequence[Verdict | JudgeError]) -> Sequence[Question]:
        """The questions of an evaluator about a case in this round."""
        if not self._rounds:
            return self.evaluator.questions(view)
        return self.evaluator.follow_up(view, list(before))

    def add(self, judgements: Sequence[Judgement]) -> None:
        """Add the judgements of the questions that `next` returned, in order."""
        self.judged += zip(self._put, judgements, strict=True)
        self._put = []
        verdicts = iter(judgements)
        for verdict, left in zip(self.verdicts, self._open, strict=True):
            verdict.extend(_as_judge_error(next(verdicts).verdict) for _ in range(left))

    @property
    def juror_questions(self) -> "list[JurorQuestion]":
        """The questions of all rounds so far, to each juror that may get one."""
        put = [*(question for question, _ in self.judged), *self.next()]
        return [to_juror for question in put for to_juror in question.askable]

    @property
    def most_follow_ups(self) -> int:
        """The most questions that may follow the rounds so far."""
        return max(0, sum(map(self.evaluator.most_follow_ups, self.views)) - self._followed)

    def is_known(self, judges: JudgeService) -> bool:
        """Whether all questions are answered without a call; the rounds continue until one is not."""
        return self.is_answered(judges.known)

    def is_stored(self, stored: "StoredReplies") -> bool:
        """Whether all questions have a recorded or a stored reply; the rounds continue until one has none."""
        return self.is_answered(lambda question: question.known(lambda to_juror: to_juror.stored_verdict(stored)))

    def is_answered(self, judgement_of: Callable[[PanelQuestion], Judgement | None]) -> bool:
        """Whether all questions have a judgement; the rounds continue until one has none.

        Args:
            judgement_of: Returns the judgement of a question, if it has one.
        """
        while put := self.next():
            known = [judgement_of(question) for question in put]
            if None in known:
                return False
            self.add([judgement for judgement in known if judgement is not None])
        return True

    async def ask(self, judges: JudgeService) -> None:
        """Ask the judges to the end, round by round, independent of other evaluators."""
        while put := self.next():
            self.add(await together([judges.judge(question) for question in put]))

    @staticmethod
    def ask_all(askings: "Iterable[Asking]", panel: JudgePanel, workers: int, store: "RunStore | None" = None) -> None:
        """Ask the judges for one call of the Python API, and close their clients at the end.

        Args:
            askings: Each about one case.
            panel: The judges.
            workers: Most calls at a time.
            store: Of verdicts; ``None``: nothing is kept.

        Raises:
            BaseException: What one of them raised, such as an interrupt, once the calls in flight have ended.
            LlmevalError: Nothing can be asked, for example because an optional dependency is not installed.
        """
        _run_jobs(panel, workers, lambda service: (asking.ask(service) for asking in askings), store)

    @staticmethod
    def pass_verdicts(
        questions: Iterable[tuple[Callable[[], Question], Callable[[Verdict | LlmevalError], None]]],
        judge: Judgeable | Panel,
        workers: int,
    ) -> None:
        """Ask the judges questions, and pass on each verdict; raises what `ask_all` does.

        Args:
            questions: What makes a question, and what gets its verdict.
            judge: The judge or judges.
            workers: Most calls at a time.
        """
        panel = JudgePanel.from_python(judge)

        async def ask(
            service: JudgeService, make: Callable[[], Question], then: Callable[[Verdict | LlmevalError], None]
        ) -> None:
            then((await service.judge(panel.bind(make(), ""))).verdict)

        _run_jobs(panel, workers, lambda service: (ask(service, make, then) for make, then in questions))


def _run_jobs(
    panel: JudgePanel,
    workers: int,
    jobs: Callable[[JudgeService], Iterable[Awaitable[None]]],
    store: "RunStore | None" = None,
) -> None:
    """Run the judging jobs of a Python API call, each about one case, and close the judges' clients at the end."""
    if store is not None:
        for juror in panel.jurors.values():
            juror.price = juror.spec.known_price  # stored verdicts say what they cost
    service = JudgeService(CallLimit(workers), store or UnkeptVerdicts(), strict=True)
    with closing(Background()) as background:
        clients: Any = [juror.client for juror in panel.jurors.values()]
        background.closing += [client.aclose for client in clients]
        if store is not None:
            background.closing.append(store.heart.aclose)  # it beats in the loop that ends here
        background.run(_work_off(iter(jobs(service)), service.limit, workers))


def _as_judge_error(verdict: Verdict | LlmevalError) -> Verdict | JudgeError:
    """A judge's verdict for an evaluator, or its error as `JudgeError`."""
    if isinstance(verdict, LlmevalError) and not isinstance(verdict, JudgeError):
        return JudgeError(str(verdict))
    return verdict


async def _work_off(jobs: Iterator[Awaitable[None]], limit: CallLimit, workers: int) -> None:
    """Run the judging jobs of a Python API call, `workers` at a time, and raise the first error at the end."""
    stopped: list[BaseException] = []

    async def work() -> None:
        while not stopped and (job := next(jobs, None)) is not None:
            with limit.in_turn():  # a question that is asked again goes before the next one
                _, error = await caught(job)
            if error is not None:
                stopped.append(error)

    await asyncio.gather(*(work() for _ in range(workers)))
    if stopped:
        raise stopped[0]

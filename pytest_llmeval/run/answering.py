"""Obtaining the prediction of a case and the verdicts of its judges."""

__all__ = ("Answering", "Asking", "Pending")

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import BudgetError, LlmevalError, PredictionError
from pytest_llmeval.core.results import JudgingShown
from pytest_llmeval.judge.contract import Question
from pytest_llmeval.judge.judged_evaluator import JudgedEvaluator
from pytest_llmeval.judge.limit import CallLimit
from pytest_llmeval.run.blocks import Blocks
from pytest_llmeval.run.conversation import Dialogue
from pytest_llmeval.run.execute import json_like
from pytest_llmeval.run.job import CaseAnswer, Job
from pytest_llmeval.run.opponents import Opponents, put_beside
from pytest_llmeval.run.rounds import Rounds
from pytest_llmeval.run.shared_answers import Sharing
from pytest_llmeval.run.target_budget import TargetBudget
from pytest_llmeval.run.target_figures import FIGURE_DIGITS, with_figures
from pytest_llmeval.services.background import Background, ThisThread, together
from pytest_llmeval.services.stopwatch import Stopwatch
from pytest_llmeval.suite.suite import Suite
from pytest_llmeval.targets.arguments import for_case
from pytest_llmeval.targets.contract import BatchTarget
from pytest_llmeval.targets.python import Recordings, Target, call_target, recorded_figures, recording

if TYPE_CHECKING:
    from pytest_llmeval.judge.bound_question import SuiteJudge
    from pytest_llmeval.judge.panel import Bound, SuitePanel
    from pytest_llmeval.judge.service import Judgement, JudgeService


@dataclass
class Answering:
    """Gets answers: from recordings and stores at once, else from targets and judges.

    Attributes:
        background: Where calls are made.
        limit: On calls in flight.
        recordings: Predictions of earlier runs.
        judges: Asks judges.
    """

    background: Background
    limit: CallLimit
    recordings: Recordings | None = None
    judges: "JudgeService | None" = None
    _limits: dict[tuple[Path, str], asyncio.Semaphore] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sharing = Sharing(self.judges)
        self.budget = TargetBudget(self.judges)
        self.blocks = Blocks(self.sharing, self.limit, self.budget, self.recordings)
        self.opponents = Opponents(self.predicted, self._predict)

    def at_once(self, job: Job) -> "CaseAnswer | Pending | None":
        """Return the answer if it requires no call, or what judges must be asked; ``None`` if a target must be."""
        try:
            case = self.predicted(job)
        except LlmevalError as error:
            return CaseAnswer(job.case, error)
        others = self.opponents.known(job)
        if case is None or others is None:
            return None
        answer = CaseAnswer(put_beside(case, others))
        asked = self.askings(job, answer)
        for each in asked:
            while put := each.next(answer):
                known = [self._known(question) for question in put]
                if None in known:
                    return Pending(answer, asked)
                each.add(put, [judgement for judgement in known if judgement is not None])
        _enter(answer, asked)
        return answer

    def _known(self, asked: "Bound") -> "Judgement | None":
        if self.judges is None:
            return None
        try:
            return self.judges.known(asked)
        except LlmevalError:
            return None  # faults of the store are reported when it is used

    def now(self, job: Job) -> CaseAnswer:
        """Return the answer; a plain target runs in this thread.

        Raises:
            KeyboardInterrupt: The user interrupts.
        """
        __tracebackhide__ = True
        known = self.at_once(job)
        if isinstance(known, CaseAnswer):
            return known
        job.prepare(asks_target=known is None)
        here = ThisThread()
        answer = here.wait(self.background.submit(self.answer(job, known, here)))
        if isinstance(answer.error, KeyboardInterrupt):
            raise answer.error
        return answer

    async def answer(self, job: Job, pending: "Pending | None" = None, here: ThisThread | None = None) -> CaseAnswer:
        """Return the answer; many of these run at a time.

        Args:
            job: The case.
            pending: What `at_once` returned, if that was no answer.
            here: Where a plain target is called; ``None``: in a thread of its own.
        """
        if pending is not None:
            return await self._told(pending)
        answer = CaseAnswer(job.case)
        try:
            # Other cases share the answers of opponents, and must not wait for the thread of this one.
            answer.case = await self._beside_others(job) if job.opponents else await self._own(job, here)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 (whatever the target did concerns this case only)
            answer.error = error
            return answer
        return await self._judged(job, answer)

    async def _own(self, job: Job, here: ThisThread | None = None) -> Case:
        return self.predicted(job) or await self._predict(job, here)

    async def _beside_others(self, job: Job) -> Case:
        """Return the case with its own prediction and those of its opponents, asked for at the same time."""
        others = asyncio.ensure_future(self.opponents.all(job))
        case = self.predicted(job)
        return put_beside(case or await self.opponents.own(job), await others)

    def predicted(self, job: Job) -> Case | None:
        """Return the case with the prediction that it carries or that is recorded."""
        if job.case.prediction is not MISSING:
            return with_figures(job.case, job.parts)
        if self.recordings is None:
            return None
        place = (job.key.shown, job.key.variant, job.case, job.repeat)
        known = self.recordings.get(*place)
        if known is MISSING:
            return None
        return with_figures(job.case.answered(known), job.parts, self.recordings.figures(*place))

    async def _predict(self, job: Job, here: ThisThread | None = None) -> Case:
        target = job.target.load()
        if isinstance(target, BatchTarget) and not job.case.conversation:
            told = await self.blocks.predict(job, target)
        else:
            # A target in this thread is called for this case alone: another process would answer elsewhere.
            ask = partial(self._call, job, target, here)
            told = await (ask() if here is not None else self.sharing.once(job, job.case, ask))
        return with_figures(job.case.answered(told["prediction"]), job.parts, told["figures"])

    async def _call(self, job: Job, target: Target | BatchTarget, here: ThisThread | None) -> dict[str, Any]:
        answered: list[Case] = []
        async with self._of_suite(job.suite), self.limit.slot():
            if self.judges is not None and self.limit.shared is not None:
                self.judges.heart.beat()  # or else a slow target would lose the slot
            reservation = await self.budget.admit(job.case, job.suite.model)
            try:
                watch = Stopwatch()
                with watch.running():
                    prediction = await self._answered(job, target, here)
                answered.append(self._kept(job, json_like(prediction), watch.seconds))
            finally:
                self.budget.charge(reservation, answered)
        self.limit.succeeded()
        return {"prediction": answered[0].prediction, "figures": recorded_figures(answered[0])}

    async def _answered(self, job: Job, target: Target | BatchTarget, here: ThisThread | None) -> Any:
        """Return what the target answers, or the transcript of a conversation with it."""
        if not job.case.conversation:
            return await self._reply(job, target, job.case.input, here)
        dialogue = Dialogue(job.case.input, job.suite.parts, job.suite.conversation)
        while (messages := dialogue.next()) is not None:
            dialogue.add(json_like(await self._reply(job, target, messages, here)))
        return dialogue.transcript()

    async def _reply(self, job: Job, target: Target | BatchTarget, value: Any, here: ThisThread | None) -> Any:
        if isinstance(target, BatchTarget):
            (told,) = await target.answer([value])
            if isinstance(told, PredictionError):
                raise told
            return told
        timeout = job.suite.target.timeout if job.suite.target else None
        run = None if here is None else partial(self._run_in, here)
        return await call_target(for_case(target, job.case), value, timeout, run)

    async def _run_in(self, here: ThisThread, work: Callable[[], Any]) -> Any:
        """Call a plain target in the thread that waits for it; what it asks is a part of its call."""

        def within() -> Any:
            with self.limit.within():
                return work()

        return await here.call(within)

    def _kept(self, job: Job, prediction: Any, seconds: float) -> Case:
        """Return the case with its answer, once the answer is on disk."""
        case = with_figures(job.case.answered(prediction), job.parts, {"latency_s": round(seconds, FIGURE_DIGITS)})
        if self.recordings is not None:
            self.recordings.keep(recording(job.key.shown, job.key.variant, case, job.repeat))
        return case

    def _of_suite(self, suite: Suite) -> asyncio.Semaphore:
        """Return the suite's own limit on calls of its target."""
        if suite.place not in self._limits:
            most = suite.target.concurrency if suite.target is not None else None
            self._limits[suite.place] = asyncio.Semaphore(most or self.limit.ceiling)
        return self._limits[suite.place]

    async def _judged(self, job: Job, answer: CaseAnswer) -> CaseAnswer:
        return await self._told(Pending(answer, self.askings(job, answer)))

    async def _told(self, pending: "Pending") -> CaseAnswer:
        answer, asked = pending
        if self.judges is not None:
            await together([_ask(each, answer, self.judges) for each in asked])
            _enter(answer, asked)
        return answer

    def askings(self, job: Job, answer: CaseAnswer) -> "list[Asking]":
        """Return what is to be asked about an answered case, evaluator by evaluator."""
        if job.judge is None:
            return []
        asked = []
        for label, evaluator in job.suite.evaluators.items():
            if isinstance(evaluator, JudgedEvaluator):
                try:
                    rounds = Rounds.of(evaluator, answer.case, job.suite.readings[label])
                except PredictionError as error:
                    answer.failed[label] = error
                else:
                    asked.append(Asking(label, job, job.judge.judge_for(evaluator), rounds))
        return asked


@dataclass
class Asking:
    """The questions of one evaluator about one case.

    Attributes:
        label: Of the evaluator.
        job: The case.
        suite_judge: Where the questions go.
        rounds: What is asked when.
        told: Each question with what came of it.
    """

    label: str
    job: Job
    suite_judge: "SuiteJudge | SuitePanel"
    rounds: Rounds
    told: "list[tuple[Bound, Judgement]]" = field(default_factory=list)
    _put: "list[Bound]" = field(default_factory=list)

    def next(self, answer: CaseAnswer) -> "list[Bound]":
        """Return the questions of the next round; none where the evaluator cannot put them, which the answer says.

        They stay the next ones until `add`.
        """
        if not self._put and self.label not in answer.failed:
            self._put = self._bound(answer)
        return self._put

    def _bound(self, answer: CaseAnswer) -> "list[Bound]":
        key, job = self.job.key, self.job
        asker = " ".join((key.shown, key.test, key.variant))
        try:
            asked = [self.suite_judge.bind(each, job.case.id, job.repeat, asker) for each in self.rounds.next()]
            for each in asked:
                _ = each.key  # what cannot be put as a question, such as a set, shows here
        except Exception as error:  # noqa: BLE001 (an evaluator's bug concerns this case only)
            answer.failed[self.label] = error
            return []
        return asked

    def add(self, asked: "Sequence[Bound]", told: "Sequence[Judgement]") -> None:
        """Add what came of the questions of a round."""
        self._put = []
        self.rounds.add([each.verdict for each in told])
        self.told += zip(asked, told, strict=True)


class Pending(NamedTuple):
    """An answer without verdicts, or with some of them.

    Attributes:
        answer: The answer.
        asked: What is asked about it; some rounds of questions may have been answered.
    """

    answer: CaseAnswer
    asked: list[Asking]


async def _ask(asking: Asking, answer: CaseAnswer, judges: "JudgeService") -> None:
    """Ask round by round, whatever other evaluators wait for."""
    while put := asking.next(answer):
        asking.add(put, await together([judges.judge(each) for each in put]))


def _enter(answer: CaseAnswer, asked: Sequence[Asking]) -> None:
    """Write what judges said into an answer."""
    for asking in asked:
        if asking.label not in answer.failed:
            answer.verdicts[asking.label] = asking.rounds.verdicts
        for bound, judgement in asking.told:
            answer.calls += judgement.calls
            for juror, each in judgement.singles:
                answer.judgings.append(_shown(asking.label, bound.question, each, juror))
                # A verdict may have been made for a case of another suite that asks the same.
                answer.entries += [replace(each.entry, case=answer.case.id)] if each.entry is not None else []
            if isinstance(judgement.verdict, BudgetError):
                answer.error = answer.error or judgement.verdict


def _shown(label: str, question: Question, judgement: "Judgement", juror: str) -> JudgingShown:
    """Return a question with its reply as reports show them."""
    verdict = judgement.verdict
    reply = judgement.entry.reply if judgement.entry else getattr(verdict, "reasoning", "") or str(verdict)
    score, cost = getattr(verdict, "score", None), judgement.call.cost_usd if judgement.call else None
    return JudgingShown(label, question.mode.name, dict(question.texts), reply, score, cost, juror)

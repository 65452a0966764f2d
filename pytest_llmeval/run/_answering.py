"""Obtaining the predictions of cases and the verdicts of their judges, some of them before their turn."""

import asyncio
import itertools
import time
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from msgspec import structs

from pytest_llmeval.core import (
    MISSING,
    AnyError,
    BudgetError,
    Case,
    LlmevalError,
    NoAnswer,
)
from pytest_llmeval.judges import Asking, SuiteJudges
from pytest_llmeval.run._conversation import Conversations, asker
from pytest_llmeval.run._job import Answers, CaseAnswer, EarlyCalls, Job, Link, LoadedCase, Next, answer_to
from pytest_llmeval.run._links import (
    AskTarget,
    Batched,
    Budgeted,
    InWorld,
    Limited,
    OrphanedError,
    Recorded,
    Recording,
    Shared,
    batch_target,
    traced,
)
from pytest_llmeval.services import Pending, SharedTask, ThisThread, UseRecord, together
from pytest_llmeval.suites import SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.targets import Recordings

_AnswerPlace: TypeAlias = tuple[SuiteKey, str, int]

_PORTIONS = 16
"""How many looks it takes until all cases of a window are others."""


def chain(links: Sequence[Link], last: Next) -> Next:
    """A call of the first link that answers a case, which calls the one behind it, up to the target."""
    return reduce(_link_step, reversed(links), last)


def _link_step(ask: Next, link: Link) -> Next:
    """A step of the chain that answers a job: this link, with the call of the one behind it."""
    return lambda job: link(job, ask)


@dataclass
class Answering:
    """Gets the answers of cases: from recordings and stores at once, else from targets and judges.

    To add a way to answer, write a link and add it to one of the tuples here; their order is that of asking.

    Attributes:
        judges: The judges of the process, with what the processes of the run share.
        recordings: Predictions of earlier runs.
    """

    judges: SuiteJudges
    recordings: "Recordings | None" = None

    def __post_init__(self) -> None:
        self._service = self.judges.service  # made here: this thread and that of the loop use it, and must share it
        self.recorded = Recorded(self.recordings)
        self.opponents = Opponents(self.recorded)
        self.batched = Batched(self.recorded)
        self._conversations = Conversations(self.judges, self.recordings)
        self._limited = Limited(self.judges)
        self._shared = Shared(self.judges, self.recorded)
        self._ask = self._make_chain((self.opponents, self.recorded, self.batched, self._shared))

    def _make_chain(self, links: Sequence[Link], thread: ThisThread | None = None) -> Next:
        """The chain of some links and of those that call a target.

        Args:
            links: The ways to answer that are tried before.
            thread: Where a plain target runs; ``None``: in a thread of its own.
        """
        budgeted, recording = Budgeted(self.judges), Recording(self.recordings, self.judges)
        calls = (self._limited, budgeted, recording, InWorld(thread), self._conversations, traced)
        return chain((*links, *calls), AskTarget(self.judges, thread))

    def _chain_for(self, job: Job, thread: ThisThread | None) -> Next:
        """The chain for a job: a plain target in this thread is called for this case alone.

        Other cases and processes share the answers of opponents and batches, and must not wait for this thread.
        """
        if thread is None or job.opponents or batch_target(job) is not None:
            return self._ask
        return self._make_chain((self.recorded,), thread)

    def is_orphaned(self, job: Job) -> bool:
        """Whether a process of the run died while it asked for the answer."""
        return self._shared.is_orphaned(job)

    def at_once(self, job: Job) -> "CaseAnswer | PendingAnswer | None":
        """The answer if it requires no call, or what judges must be asked; ``None`` if a target must be."""
        try:
            case = self.recorded.known(job)
        except LlmevalError as error:
            return CaseAnswer(job.case, error)
        others = self.opponents.known(job)
        if case is None or others is None:
            return None
        case = with_others(case, others)
        answer = CaseAnswer(case, origin="recorded" if job.case.prediction is MISSING else "given")
        pending = PendingAnswer(answer, self.askings(job, case))
        self._conversations.add_spoken(job, pending.answer)
        if not all(map(self._is_known, pending.questions.values())):
            return pending
        return pending.complete()

    def now(self, job: Job) -> CaseAnswer:
        """The answer to a job; a plain target runs in this thread.

        Raises:
            KeyboardInterrupt: The user interrupts.
        """
        __tracebackhide__ = True
        known = self.at_once(job)
        if isinstance(known, CaseAnswer):
            return known
        job.prepare(asks_target=known is None)
        here = ThisThread()
        answer = here.run(self.judges.background, self.answer(job, known, here))
        if isinstance(answer.error, KeyboardInterrupt):
            raise answer.error
        return answer

    async def answer(
        self,
        job: Job,
        pending: "PendingAnswer | None" = None,
        here: ThisThread | None = None,
        cut_off: list[CaseAnswer] | None = None,
    ) -> CaseAnswer:
        """The answer to a job; many of these run at a time.

        Args:
            job: The case.
            pending: What `at_once` returned, if that was no answer.
            here: Where a plain target is called; ``None``: in a thread of its own.
            cut_off: Gets what has been paid for of an answer whose judges or opponents are cancelled.
        """
        user = job.key.user
        UseRecord.USER.set(user)  # calls made early run beside the items of other suites
        if (used := UseRecord.current()) is not None:
            used.begin_ahead(user)
        with self.judges.limit.in_turn():
            if pending is not None:
                return await self._ask_judges(pending, cut_off)
            return await self._answered(job, here, cut_off)

    async def _answered(self, job: Job, here: ThisThread | None, cut_off: list[CaseAnswer] | None) -> CaseAnswer:
        """The target's answer to a case, or its error, before judges are asked."""
        answer = CaseAnswer(job.case, origin="run" if job.case.prediction is MISSING else "given")
        try:
            answer.case = answer_to(job, await self._chain_for(job, here)(job))
        except asyncio.CancelledError:
            answer.case = self.opponents.own(job) or answer.case
            if cut_off is not None and answer.case.prediction is not MISSING:
                cut_off.append(answer)
            raise
        except BaseException as error:  # noqa: BLE001 (an error of the target concerns this case only)
            answer.error = error
            self._conversations.add_spoken(job, answer)
            return answer
        self._conversations.add_spoken(job, answer)
        return await self._ask_judges(PendingAnswer(answer, self.askings(job, answer.case)), cut_off)

    async def _ask_judges(self, pending: "PendingAnswer", cut_off: list[CaseAnswer] | None) -> CaseAnswer:
        """The answer with the verdicts of all judges that are asked about it."""
        judges = self._service
        try:
            await together([question.ask(judges) for question in pending.questions.values()])
        except asyncio.CancelledError:
            if cut_off is not None:
                cut_off.append(pending.complete())
            raise
        return pending.complete()

    def _is_known(self, asking: Asking) -> bool:
        """Whether a run has the judges' replies to all questions about an answer, so that none is called."""
        try:
            return asking.is_known(self._service)
        except LlmevalError:
            return False  # faults of the store are reported when it is used

    def askings(self, job: Job, case: Case) -> dict[str, Asking]:
        """The questions about an answered case, by evaluator."""
        if job.judge is None:
            return {}
        name = asker(job)
        return {
            label: Asking.about(
                evaluator, case, job.suite.readings[label], job.judge.panel_for(evaluator), job.repeat, name
            )
            for label, evaluator in job.suite.asking.items()
        }


class PendingAnswer(NamedTuple):
    """An answer to a case without its judges' verdicts, or with some of them.

    Attributes:
        answer: The answer.
        questions: Evaluator label to its questions; some rounds may have been answered.
    """

    answer: CaseAnswer
    questions: dict[str, Asking]

    def complete(self) -> CaseAnswer:
        """The answer with the verdicts and errors of all questions."""
        answer = self.answer
        for label, asking in self.questions.items():
            if asking.error is None:
                answer.verdicts[label] = asking.verdicts
            else:
                answer.failed[label] = asking.error
            for bound, judgement in asking.judged:
                answer.calls += judgement.calls
                answer.judgings += judgement.judgings(bound.question, label)
                # A verdict may have been made for a case of another suite that asks the same.
                answer.entries += [structs.replace(entry, case=answer.case.id) for entry in judgement.entries]
                if isinstance(judgement.verdict, BudgetError):
                    answer.error = answer.error or judgement.verdict
        return answer


@dataclass
class Opponents:
    """The answers of a suite's other systems, for judges that compare. No system is asked twice for one case.

    Attributes:
        recorded: Answers without a call.
    """

    recorded: Recorded
    _tasks: dict[_AnswerPlace, SharedTask[Case | BaseException]] = field(default_factory=dict)
    _answered: set[_AnswerPlace] = field(default_factory=set)

    async def __call__(self, job: Job, ask: Next) -> Answers:
        """Return the case with its own answer and those of its opponents, asked for at the same time.

        Raises:
            BaseException: Any error of its own target.
        """
        if not job.opponents:
            return await ask(job)
        others = asyncio.ensure_future(self._others(job, ask))
        try:
            case = self.recorded.known(job) or await self._own(job, ask)
            return {case.id: with_others(case, await others)}
        except asyncio.CancelledError:
            others.cancel()
            raise

    async def _own(self, job: Job, ask: Next) -> Case:
        """The target's answer to a case's own question; one that runs again gets another."""
        place = job.place
        if place in self._answered:
            del self._tasks[place]
        self._answered.add(place)
        answer = await self._shared(job, ask)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def _shared(self, job: Job, ask: Next) -> Case | BaseException:
        """The target's answer to a job, asked for once for all cases that need it."""
        place = job.place
        if place not in self._tasks or self._tasks[place].is_cancelled:
            self._tasks[place] = SharedTask(self._outcome(job, ask))
        return await self._tasks[place].result()

    async def _outcome(self, job: Job, ask: Next) -> Case | BaseException:
        """The result of a target, with what it raised: out of its task, an exit would end the event loop."""
        try:
            return answer_to(job, await ask(job))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 (an error of the target concerns this case only)
            return error

    def own(self, job: Job) -> Case | None:
        """The answer to a case's own question, if it has come while its opponents have not answered."""
        answer = self._find_ended(job)
        return None if isinstance(answer, BaseException) else answer

    def _find_ended(self, job: Job) -> Case | BaseException | None:
        """The answer, or the error, of a task that has ended."""
        shared = self._tasks.get(job.place)
        return None if shared is None or not shared.task.done() or shared.task.cancelled() else shared.task.result()

    def known(self, job: Job) -> dict[str, Any] | None:
        """The opponents' answers to a case; ``None`` where one must be asked for."""
        others = self.at_hand(job)
        return None if None in others.values() else others

    def at_hand(self, job: Job) -> dict[str, Any]:
        """The opponents' answers to a case, ``None`` in place of each that must be asked for."""
        return {name: self._known(opponent) for name, opponent in job.opponents.items()}

    def _known(self, opponent: Job | NoAnswer) -> Any:
        """An opponent's answer that needs no call; ``None`` if a target must be asked."""
        if not isinstance(opponent, Job):
            return opponent
        try:
            case = self.recorded.known(opponent)
        except LlmevalError as error:
            return NoAnswer(str(error))
        if case is not None:
            return _answer_of(opponent, case)
        answer = self._find_ended(opponent)
        return None if answer is None else _answer_of(opponent, answer)

    async def _others(self, job: Job, ask: Next) -> dict[str, Any]:
        """The answers of all opponents of a case, asked for at the same time."""
        others = await asyncio.gather(*(self._other(opponent, ask) for opponent in job.opponents.values()))
        return dict(zip(job.opponents, others, strict=True))

    async def _other(self, opponent: Job | NoAnswer, ask: Next) -> Any:
        """The answer of an opponent, asked for if it is not known."""
        known = self._known(opponent)
        if known is not None or not isinstance(opponent, Job):
            return known
        return _answer_of(opponent, await self._shared(opponent, ask))


def with_others(case: Case, others: Mapping[str, Any]) -> Case:
    """A case of the run with the answers of the suite's other systems, if there are any."""
    return replace(case, others=others) if others else case


def _answer_of(opponent: Job, answer: Case | BaseException) -> Mapping[str, Any] | NoAnswer:
    """An opponent's answer with its parts for a case of the run, or why that system gave none."""
    if isinstance(answer, BaseException):
        return NoAnswer(str(answer) if isinstance(answer, LlmevalError) else AnyError(answer).text)
    return answer.with_part_paths(opponent.parts).parts


@dataclass
class Prefetch:
    """A window over a run's next cases, whose targets are called early; its size bounds what an early stop wastes.

    Attributes:
        answering: Gets answers.
        window: How many cases to come are considered.
    """

    answering: Answering
    window: int
    _pending: dict[tuple[SuiteKey, str, int], CaseAnswer | Pending[CaseAnswer]] = field(default_factory=dict)
    _considered: set[tuple[SuiteKey, str]] = field(default_factory=set)
    _starting: list[tuple[Coroutine[Any, Any, CaseAnswer], Pending[CaseAnswer]]] = field(default_factory=list)
    _since_look: int = 0

    def looks_ahead(self, loaded: LoadedCase) -> bool:
        """Whether the run's next cases are looked at before this one: many at a time, which costs less.

        A case that was not foreseen, as where another process has run those before it, is a reason to look at once.
        """
        self._since_look += 1
        if self.considered(loaded) and self._since_look <= self.window // _PORTIONS:
            return False
        self._since_look = 0
        return True

    def considered(self, loaded: LoadedCase) -> bool:
        """Whether a case has been considered for an early call, or has had its turn."""
        return loaded.place in self._considered

    def take(self, jobs: Sequence[Job], following: Iterable[Sequence[Job]], early: EarlyCalls) -> list[CaseAnswer]:
        """The answers of one case, after early calls for the cases to come were begun.

        Args:
            jobs: One per repeat.
            following: The jobs of those of the next cases that have not been considered, nearest first.
            early: What may be called for them, and in the background for this one.
        """
        __tracebackhide__ = True
        if any(map(self.answering.is_orphaned, jobs)):  # if one of them ends this process, it does so alone
            self.finish()
            following = ()
        try:
            own = list(map(self._own, jobs, itertools.repeat(early)))  # a comprehension would show in tracebacks
            # In place of a crashed worker, cases run out of order: those after them may have had their turn here.
            self._considered |= {job.loaded.place for job in jobs}
            for job in (job for jobs_of_case in following for job in jobs_of_case):
                self._considered.add(job.loaded.place)
                started = self._start(job, early)
                if started is not None:
                    self._pending[job.place] = started
        finally:
            self._send()
        answers = [self._wait(job, started) for job, started in zip(jobs, own, strict=True)]
        if self.answering.judges.limit.activity.in_flight:
            self.answering.judges.background.give_way()
        return answers

    def _send(self) -> None:
        """Hand the early calls that were prepared to the background loop."""
        starting, self._starting = self._starting, []
        if starting:
            self.answering.judges.background.submit_all(starting)

    def finish(self, within_s: float | None = None) -> None:
        """Wait for early calls under way. Cases that another process runs need it: cut off, they would be repeated.

        Args:
            within_s: How long a case may take, after which nobody needs it any more; ``None`` if that is unknown.
        """
        until = None if within_s is None else time.monotonic() + within_s
        for pending in self._pending.values():
            if isinstance(pending, Pending):
                pending.ended(None if until is None else until - time.monotonic())

    def _own(self, job: Job, early: EarlyCalls) -> CaseAnswer | Pending[CaseAnswer] | None:
        """The answer, pending or not, to a job whose turn it is."""
        __tracebackhide__ = True
        return self._pending.pop(job.place, None) or self._start(job, early)

    def _start(self, job: Job, early: EarlyCalls) -> CaseAnswer | Pending[CaseAnswer] | None:
        """Answer at once, or in the background if that is allowed."""
        __tracebackhide__ = True
        known = self.answering.at_once(job)
        if isinstance(known, CaseAnswer):
            return known
        asks_target = known is None
        if not (early.target if asks_target else early.judge):
            return None
        job.prepare(asks_target=asks_target)
        answer: Pending[CaseAnswer] = Pending()
        self._starting.append((self.answering.answer(job, known), answer))
        return answer

    def _wait(self, job: Job, started: CaseAnswer | Pending[CaseAnswer] | None) -> CaseAnswer:
        """The answer to a job whose turn it is; one whose process died is asked for again."""
        __tracebackhide__ = True
        if started is None:
            return self.answering.now(job)
        answer = started.result() if isinstance(started, Pending) else started
        return self.answering.now(job) if isinstance(answer.error, OrphanedError) else answer

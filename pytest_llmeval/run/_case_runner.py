"""The runner of the cases of a process."""

import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field, structs

from pytest_llmeval.core import (
    MISSING,
    BudgetError,
    Case,
    ComparingEvaluator,
    LlmevalError,
    NoAnswer,
    PredictionError,
)
from pytest_llmeval.judges import JudgeOptions
from pytest_llmeval.run._execute import (
    CutShortError,
    Execution,
    answered_with,
    as_approved,
    execute_repeats,
    is_xfail,
    unanswered,
)
from pytest_llmeval.run._job import (
    CaseAnswer,
    EarlyCalls,
    Job,
    LoadedCase,
    SuiteTargets,
    why_unanswered,
    with_figures,
)
from pytest_llmeval.run._measuring import MeasuredBlocks
from pytest_llmeval.services import Activity, Background, OwnThread, Snapshot, together
from pytest_llmeval.suites import LoadedSuite, SuiteKey

if TYPE_CHECKING:
    import asyncio

    from pytest_llmeval.baselines import ApprovedAnswers
    from pytest_llmeval.judges import SuiteJudges
    from pytest_llmeval.run._answering import Answering, Prefetch
    from pytest_llmeval.run._run_record import RunRecord
    from pytest_llmeval.targets import Recordings, Target

_WIDEST_WINDOW = 1_000
"""Every case of the window is considered again with each portion of it that has run."""

_GRACE_S: Final = 5.0
"""How long a run that is ended waits for plain targets whose answers are recorded: they are paid for."""

_NEAR = 2
_FAR = 8
"""Times as many cases as calls at a time: to score one takes longer than to ask about it, and must not hold it up."""

_TURNS_TO_START = 3
"""Turns of the event loop until a next case has called its target; scored before, a case would hold it up."""

_NOT_CALLED: Final = (
    "no prediction, and llmeval score calls no target: record predictions by pytest --llmeval "
    "--llmeval-predictions=FILE, and score them by --predictions FILE"
)


class FromFixtures(Struct, frozen=True):
    """The target and judge that the user's fixtures give in place of the suite's own.

    Attributes:
        target: Answers; ``None`` for the suite's own.
        judge: Makes the judge when it is needed; ``None`` for the model that the suite names.
    """

    target: "Target | None" = None
    judge: Callable[[], Any] | None = None


async def _cancel_tasks(tasks: "Iterable[asyncio.Task[Any]]") -> None:
    """Cancel the asyncio tasks of calls in flight, and return when they have ended."""
    import asyncio

    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class CaseRunner(Struct, dict=True):
    """Runs the cases of a process: answers, judge verdicts and scores.

    Attributes:
        options: The user's options for judges and concurrency.
        recordings: Predictions of earlier runs, if the user named a file.
        ends: Exceptions of a target that end the whole run.
        skips: Exceptions of a target that skip the case.
        in_turn: Whether nothing may be called early, because a debugger may stop the calls.
        may_stop: Whether the run may stop at a failure, so that calls for cases far ahead would be wasted.
        explains_all: Whether evaluators also say what is wrong with cases that pass: reports list the worst cases.
        approves: Whether the run approves scores, and failures where a suite says so.
        mutates: Whether the end of the run changes its answers, to see what suites do not notice.
        all_answers: Whether the report shows the answers of all cases.
        background: Where calls are made.
        activity: What the process does.
    """

    options: JudgeOptions = field(default_factory=JudgeOptions)
    recordings: "Recordings | None" = None
    ends: tuple[type[BaseException], ...] = (KeyboardInterrupt,)
    skips: tuple[type[BaseException], ...] = ()
    in_turn: bool = False
    may_stop: bool = False
    explains_all: bool = True
    approves: bool = False
    mutates: bool = False
    all_answers: bool = False

    def __post_init__(self) -> None:
        self._known: dict[SuiteKey, Mapping[str, Sequence[str]]] = {}  # read where a case fails
        self.background = Background(grace_s=_GRACE_S if self.records else 0.0)
        self.activity = Activity()
        self._measured = MeasuredBlocks()

    @cached_property
    def judges(self) -> "SuiteJudges":
        """The judges of all suites."""
        from pytest_llmeval.judges import SuiteJudges

        return SuiteJudges(self.options, self.background, self.activity)

    def snapshot(self) -> Snapshot:
        """The activity of the run's processes, as far as they have shown it."""
        return self.judges.snapshot() if "judges" in vars(self) else self.activity.snapshot()

    def calls_line(self) -> str:
        """The line on the cost of a run that was cut off; empty without calls."""
        return self.snapshot().calls_line(complete="judges" not in vars(self) or not self.judges.has_others)

    @cached_property
    def _prefetch(self) -> "Prefetch":
        """The window over the next cases in which targets and judges are called early."""
        from pytest_llmeval.run._answering import Answering, Prefetch

        answering = Answering(self.judges, self.recordings)
        most = self.options.concurrency
        window = _NEAR * most if self.may_stop else max(_NEAR * most, min(_FAR * most, _WIDEST_WINDOW))
        return Prefetch(answering, window)

    @cached_property
    def _targets(self) -> "SuiteTargets":
        """The targets of the suites of this process."""
        return SuiteTargets(self.background, self.judges.calls, self.judges.limit.slow_down)

    @cached_property
    def _opponents(self) -> "OpponentJobs":
        """The jobs of other systems with whose answers judges compare."""
        return OpponentJobs(self._targets)

    @property
    def records(self) -> bool:
        """Whether the predictions of this run are to be recorded."""
        return self.recordings is not None and self.recordings.mode != "replay"

    def hands_over_answers(self, loaded: LoadedCase) -> bool:
        """Whether the end of the run reads the predictions of a case; those of Python tests are their own."""
        return (self.records or self.mutates or bool(loaded.suite.against_approved)) and not loaded.key.test

    def excused(self, loaded: LoadedCase, execution: Execution) -> Execution:
        """The execution of a case, whose failure is known if it was approved, or is being approved."""
        record = execution.record
        if record.outcome != "failed" or is_xfail(execution.case):
            return execution
        every = self.approves and loaded.suite.approve.failures
        approved = record.unmet if every else self._known_failures(loaded).get(record.id, ())
        return structs.replace(execution, record=as_approved(record, approved))

    def _known_failures(self, loaded: LoadedCase) -> Mapping[str, Sequence[str]]:
        """The approved failures of a case's suite."""
        key = loaded.key
        if key not in self._known:
            from pytest_llmeval.baselines import FailuresFile

            try:
                self._known[key] = FailuresFile(key).read_for(loaded.suite)
            except LlmevalError:
                self._known[key] = {}  # the end of the run says what is wrong with the file
        return self._known[key]

    def run(
        self,
        loaded: LoadedCase,
        fixtures: FromFixtures = FromFixtures(),  # noqa: B008 (immutable)
        following: Iterable[LoadedCase] = (),
        early: EarlyCalls = EarlyCalls(),  # noqa: B008 (immutable)
    ) -> Execution:
        """Run one case.

        Args:
            loaded: The case.
            fixtures: What the user's fixtures give.
            following: The next cases, for which calls may be made already.
            early: Which ones.

        Raises:
            BaseException: The target wants the whole run to end: one of `ends`.
        """
        __tracebackhide__ = True
        started = time.perf_counter()
        answers = self._own_answers(loaded) or self._answers(loaded, fixtures, following, early)
        execution = self._score_answers(loaded, answers, started)
        if isinstance(execution.error, self.ends):
            raise execution.error
        return execution

    def run_returned(self, loaded: LoadedCase, returned: Any, fixtures: FromFixtures) -> Execution:
        """Run one case by what the user's code returned as its prediction."""
        __tracebackhide__ = True
        try:
            answered = answered_with(loaded.case, returned)
        except PredictionError as error:
            return unanswered(loaded.case.answered(MISSING), error, loaded.suite.secret_variables)
        return self.run(structs.replace(loaded, case=answered), fixtures)

    def run_answered(self, suite: LoadedSuite, key: SuiteKey) -> Iterator[Execution]:
        """Run the answered cases of a suite in order; the questions about the next ones are asked meanwhile.

        Args:
            suite: Its cases have predictions, or the runner has recorded ones.
            key: What results are gathered under.

        Raises:
            LlmevalError: The budget is spent.
        """
        loaded = [LoadedCase(suite, case, key) for case in suite.cases]
        for place, entry in enumerate(loaded, 1):
            following = (loaded[number] for number in range(place, len(loaded)))
            execution = self.run(entry, following=following, early=EarlyCalls(judge=True))
            execution.require_budget()
            yield execution

    def run_judged(self, suite: LoadedSuite, key: SuiteKey, run: "RunRecord") -> None:
        """Score answered cases by judges, several calls at a time; no target is called.

        The recordings of the runner, if it has any, are only replayed.

        Args:
            suite: As one system answers it.
            key: What results are gathered under.
            run: Takes the results, and the verdicts if they are recorded.

        Raises:
            LlmevalError: The judge cannot be used, or the budget is spent.
        """
        from pytest_llmeval.judges import Judgements
        from pytest_llmeval.run._run_record import SuitePart

        loaded = [LoadedCase(suite, case, key) for case in suite.cases]
        answered = [
            entry
            for entry in loaded
            if not entry.is_skipped and (self.recordings is not None or entry.case.prediction is not MISSING)
        ]
        places = {entry.case.id: place for place, entry in enumerate(answered, 1)}
        executions = []
        for entry in loaded:
            if (place := places.get(entry.case.id)) is None:
                executions.append(self.run_recorded(entry))
                continue
            following = (answered[number] for number in range(place, len(answered)))
            execution = self.run(entry, following=following, early=EarlyCalls(judge=True))
            if isinstance(execution.error, BudgetError):
                raise LlmevalError(f"{execution.error}; finished verdicts are stored: run it again with a new budget")
            executions.append(execution.as_expected())
        run.add_part(SuitePart.from_executions(key, suite.total, executions, secrets=suite.secret_variables))
        if self.options.records:
            for stored in (stored for execution in executions for stored in execution.entries):
                run.judgements.add(Judgements.path_of(suite.path), stored)

    def run_recorded(self, loaded: LoadedCase) -> Execution:
        """Run one case of a suite without judges by the prediction that it carries, or that is recorded for it."""
        if loaded.is_skipped:
            return Execution.skipped(loaded.case)
        return self._score_answers(loaded, self._own_answers(loaded) or self._replay_answers(loaded)).as_expected()

    def _replay_answers(self, loaded: LoadedCase) -> Sequence[CaseAnswer]:
        """The recorded answers to a case, or why there are none."""
        if self.recordings is None:
            none = CaseAnswer(loaded.case, PredictionError(why_unanswered(loaded.suite) or _NOT_CALLED))
            return [none] * loaded.suite.repeats.times
        jobs = self.jobs(loaded, FromFixtures(), EarlyCalls())
        return [answer for job in jobs if isinstance(answer := self.answering.at_once(job), CaseAnswer)]

    async def stream(
        self,
        cases: Sequence[LoadedCase],
        fixtures: FromFixtures = FromFixtures(),  # noqa: B008 (immutable)
    ) -> AsyncGenerator[tuple[int, Execution], None]:
        """Run cases of a suite on the running event loop, several at a time.

        If the waiting task is cancelled, no further call is made, those under way are cancelled, and the cases that
        have their answers are yielded before the cancellation continues, as are those that have some of what they need:
        they did not run, and their cost counts. Evaluators run in one thread of their own.

        Yields:
            Position and execution of each case, as soon as it has run.

        Raises:
            BaseException: A target wants the whole run to end: one of `ends`.
        """
        import asyncio

        finished: asyncio.Queue[asyncio.Task[Execution] | None] = asyncio.Queue()
        tasks: dict[asyncio.Task[Execution], int] = {}
        scoring: set[int] = set()
        parts: dict[int, list[CaseAnswer]] = {}
        thread = OwnThread("llmeval-score")
        to_come = iter(enumerate(cases))
        most = self._most_at_a_time(cases[0].suite) if cases else 0

        async def execution(place: int) -> Execution:
            started = time.perf_counter()
            loaded = cases[place]
            if loaded.is_skipped:
                return Execution.skipped(loaded.case)
            parts[place] = []
            answers = self._own_answers(loaded) or await self._answers_here(loaded, fixtures, parts[place])
            scoring.add(place)
            finished.put_nowait(None)  # the next case need not wait for the score of this one
            for _ in range(_TURNS_TO_START):
                await asyncio.sleep(0)
            scored = await thread.call(partial(self._score_answers, loaded, answers, started))
            del parts[place]
            return scored

        try:
            while True:
                for place, _ in islice(to_come, max(0, most - len(tasks) + len(scoring))):
                    task = asyncio.ensure_future(execution(place))
                    tasks[task] = place
                    task.add_done_callback(finished.put_nowait)
                if not tasks:
                    return
                done = await finished.get()
                if done is None:
                    continue
                place = tasks.pop(done)
                scoring.discard(place)
                yield place, self._conclude(done.result())
        except asyncio.CancelledError:
            answered = [task for task, place in tasks.items() if place in scoring or task.done()]
            if answered:
                await asyncio.wait(answered)
            for task in answered:
                yield tasks.pop(task), self._conclude(task.result())
            await _cancel_tasks(tasks)
            for task, place in tasks.items():
                if not task.cancelled() and task.exception() is None:  # worlds are torn down to their end
                    yield place, self._conclude(task.result())
                elif paid := parts.get(place):
                    for answer in paid:
                        answer.error = CutShortError()
                    yield place, self._score_answers(cases[place], paid)
            raise
        finally:
            await _cancel_tasks(tasks)
            thread.end()

    def _conclude(self, execution: Execution) -> Execution:
        """The execution of a case as it is expected; an error that ends the run is raised."""
        if isinstance(execution.error, self.ends):
            raise execution.error
        return execution.as_expected()

    def _most_at_a_time(self, suite: LoadedSuite) -> int:
        """The number of cases of a suite that run at the same time on an event loop."""
        own = suite.target.concurrency if suite.target is not None else None
        return max(min(own or self.options.concurrency, self.options.concurrency), self._batch_width(suite))

    async def _answers_here(
        self, loaded: LoadedCase, fixtures: FromFixtures, parts: list[CaseAnswer]
    ) -> Sequence[CaseAnswer]:
        """The answers to a case, for which the calls are made on the running event loop.

        Args:
            loaded: The case.
            fixtures: What the user's fixtures give.
            parts: Gets the answers of repeats as they come, and of those that are cut off what has been paid for.
        """
        return await together([self._answer_here(job, parts) for job in self.jobs(loaded, fixtures, EarlyCalls())])

    async def _answer_here(self, job: Job, parts: list[CaseAnswer]) -> CaseAnswer:
        """The answer to one repeat of a case, for which the calls are made on the running event loop."""
        known = self.answering.at_once(job)
        if not isinstance(known, CaseAnswer):
            job.prepare(asks_target=known is None)
            known = await self.answering.answer(job, known, cut_off=parts)
        parts.append(known)
        return known

    def _own_answers(self, loaded: LoadedCase) -> Sequence[CaseAnswer]:
        """The answers of a case that carries its prediction and requires no judge."""
        suite = loaded.suite
        if suite.judged or not self._is_recorded(loaded):
            return ()
        return [CaseAnswer(with_figures(loaded.case, suite.parts_of(loaded.case)))] * suite.repeats.times

    def _is_recorded(self, loaded: LoadedCase) -> bool:
        """Whether a case carries a prediction of the suite's file."""
        # A Python test has its own prediction, which is in no batch of the file's predictions.
        return loaded.case.prediction is not MISSING and not loaded.key.test

    def _score_answers(
        self, loaded: LoadedCase, answers: Sequence[CaseAnswer], started: float | None = None
    ) -> Execution:
        """The execution of a case, scored from its answers."""
        measure = self._measured.measure if self._is_recorded(loaded) else None
        execution = execute_repeats(loaded.suite, answers, measure, explains_all=self.explains_all, started=started)
        if isinstance(execution.error, self.skips):
            return execution.with_record(outcome="skipped", errors={})
        return execution

    def _answers(
        self, loaded: LoadedCase, fixtures: FromFixtures, following: Iterable[LoadedCase], early: EarlyCalls
    ) -> Sequence[CaseAnswer]:
        """The answers to the repeats of a case, while early calls for the following cases begin."""
        __tracebackhide__ = True
        early = self._allowed_early_calls(loaded.suite, early)
        ahead = any(early) and self._prefetch.looks_ahead(loaded)
        to_come = islice(following, self.window(loaded.suite)) if ahead else ()
        next_jobs = (self.jobs(case, fixtures, early) for case in to_come if not self._prefetch.considered(case))
        return self._prefetch.take(self.jobs(loaded, fixtures, early), next_jobs, early)

    def window(self, suite: LoadedSuite) -> int:
        """The number of cases to prefetch: enough to fill the batches that a service answers at once."""
        return max(self._prefetch.window, self._batch_width(suite))

    def _batch_width(self, suite: LoadedSuite) -> int:
        """The number of cases that an HTTP target of a suite answers in batches under way; 0 for others."""
        http = suite.target.http if suite.target is not None else None
        return min(http.batch * http.concurrency, _WIDEST_WINDOW) if http is not None else 0

    def _allowed_early_calls(self, suite: LoadedSuite, early: EarlyCalls) -> EarlyCalls:
        """The early calls that the suite and the options allow."""
        if self.in_turn or self.options.concurrency == 1:
            return EarlyCalls()
        targets = [suite.target, *(suite.systems[name].target for name in suite.opponents if name in suite.systems)]
        one_by_one = any(target is not None and target.concurrency == 1 for target in targets)
        user = suite.conversation.user
        if user is not None and user.provider == "fixture" and not early.judge:  # it is not set up yet
            return EarlyCalls()
        return EarlyCalls(early.target and not one_by_one, early.judge)

    @property
    def answering(self) -> "Answering":
        """The answering of cases: the chain of links, and the judges."""
        return self._prefetch.answering

    def jobs(self, loaded: LoadedCase, fixtures: FromFixtures, early: EarlyCalls) -> Sequence[Job]:
        """The jobs for all repeats of a case."""
        suite = loaded.suite
        target = fixtures.target
        load_target = partial(self._targets.load, suite) if target is None else lambda: target
        judge = None
        if suite.judged:
            from pytest_llmeval.judges import JudgeAccess

            panel = self.judges.judge_of(suite.path, suite.judge, loaded.key.display_path, priced=suite.asks_judge)
            judge = JudgeAccess(panel, self.judges, suite.path, suite.judge, fixtures.judge, suite.objects)
        player, user = suite.conversation.user, None
        if player is not None:
            display_path = loaded.key.display_path
            user = self.judges.user_access(suite.path, player, display_path, fixtures.judge, suite.objects)
        shared = self.options.shares and early.target and not loaded.key.test
        jobs = [Job(loaded, repeat, load_target, judge, shared, user) for repeat in range(suite.repeats.times)]
        return (
            [structs.replace(job, opponents=self._opponents.jobs_of(job)) for job in jobs] if suite.opponents else jobs
        )

    def finish(self, within_s: float | None = None) -> None:
        """Wait for the calls that are under way for cases that other processes run: cut off, they would be repeated.

        Args:
            within_s: How long a case may take, after which nobody needs it any more; ``None`` if that is unknown.
        """
        if "_prefetch" in vars(self):
            self._prefetch.finish(within_s)

    def begin_no_more(self) -> None:
        """Begin no call any more, as the run is interrupted; those under way may end before `close`.

        The processes of a run end one after another, and each would begin the calls that the one before it gave up.
        """
        if "judges" in vars(self):
            self.judges.limit.close()

    def close(self, *, whole_run: bool) -> None:
        """Stop what still runs in the background, close the cache, and merge the answers that arrived last.

        Args:
            whole_run: Whether the run ends, not only this process.
        """
        self.background.close()
        if "judges" in vars(self):
            self.judges.close(whole_run=whole_run)
        if whole_run and self.recordings is not None:
            with suppress(OSError, LlmevalError):  # then the next run merges them
                self.recordings.close()


class OpponentJobs(Struct, frozen=True):
    """The jobs of a suite's other systems whose answers a judge compares with a case's.

    Attributes:
        targets: Of the process.
    """

    targets: SuiteTargets
    _cases: dict[tuple[Path, str], Mapping[str, Case]] = {}
    _approved: "dict[SuiteKey, ApprovedAnswers]" = {}

    def jobs_of(self, job: Job) -> dict[str, Job | NoAnswer]:
        """The jobs of a case's opponents by name, or why there is none."""
        return {name: self._job(job, name) for name in job.suite.opponents}

    def _job(self, job: Job, name: str) -> Job | NoAnswer:
        """The job of one opponent, or why it has no answer."""
        if name == ComparingEvaluator.APPROVED:
            return self._approved_job(job)
        if name == job.key.variant:
            return NoAnswer.ITSELF
        if name not in job.suite.systems:
            return NoAnswer("the suite has no system of this name")
        suite = job.suite.for_variant(name)
        if suite.place not in self._cases:
            self._cases[suite.place] = {case.id: case for case in suite.cases}
        case = self._cases[suite.place].get(job.case.id)
        if case is None:
            return NoAnswer("has no prediction for this case")
        key = job.key._replace(test="", variant=name)
        load_target = partial(self.targets.load, suite)
        return Job(LoadedCase(suite, case, key), job.repeat, load_target, shared=job.shared, user=job.user)

    def _approved_job(self, job: Job) -> Job | NoAnswer:
        """The job of the approved answer, for which no target need be asked."""
        from pytest_llmeval.baselines import ApprovedAnswers

        key = job.key._replace(test="")
        if key not in self._approved:
            self._approved[key] = ApprovedAnswers.read(key)
        answer = self._approved[key].find(job.case, job.repeat)
        if isinstance(answer, NoAnswer):
            return answer
        return structs.replace(job, loaded=structs.replace(job.loaded, case=job.case.answered(answer)), judge=None)

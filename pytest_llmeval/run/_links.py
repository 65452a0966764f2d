"""The links of the chain that answers a case: each answers a job, or asks the next one."""

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import convert, structs, to_builtins

from pytest_llmeval.core import (
    MISSING,
    Case,
    LlmevalError,
    MissingExtraError,
    PredictionError,
    input_digest,
)
from pytest_llmeval.run._conversation import beginning, turns_of
from pytest_llmeval.run._execute import answered_with
from pytest_llmeval.run._job import FIGURE_DIGITS, Answers, Job, Link, Next, with_figures
from pytest_llmeval.run._measuring import cut_in_blocks
from pytest_llmeval.services import Secrets, SharedTask, Stopwatch, ThisThread
from pytest_llmeval.suites import LoadedSuite, Registry
from pytest_llmeval.targets import BatchTarget, PythonTarget, World

if TYPE_CHECKING:
    from pytest_llmeval.judges import JudgeSpec, Price, SuiteJudges
    from pytest_llmeval.targets import Recordings

_BlockPlace: TypeAlias = tuple[tuple[Path, str], str, int, str]
_TOKENS = ("input_tokens", "output_tokens")


class OrphanedError(LlmevalError):
    """A process died while it asked for this answer, maybe because of it."""


@dataclass(frozen=True)
class Recorded:
    """The link of the chain for predictions that a case carries, or that an earlier run recorded.

    Attributes:
        recordings: Predictions of earlier runs.
    """

    recordings: "Recordings | None"

    def known(self, job: Job) -> Case | None:
        """The case with its recorded answer, if that requires no call."""
        if job.case.prediction is not MISSING:
            return with_figures(job.case, job.parts)
        if self.recordings is None:
            return None
        place = (job.key.display_path, job.key.variant, job.case, job.repeat)
        prediction = self.recordings.get(*place)
        if prediction is MISSING:
            return None
        answered = job.suite.reread(job.case, prediction, self.recordings.written(*place))
        return with_figures(answered, job.parts, self.recordings.figures(*place))

    def holds(self, job: Job, case: Case) -> bool:
        """Whether the answer to a case of the same suite is recorded."""
        if self.recordings is None:
            return False
        return self.recordings.get(job.key.display_path, job.key.variant, case, job.repeat) is not MISSING

    async def __call__(self, job: Job, ask: Next) -> Answers:
        """The recorded answers, else those of the next link."""
        case = self.known(job)
        return await ask(job) if case is None else {case.id: case}


@dataclass
class Batched:
    """The link of the chain for services that take several inputs in one request: a block of cases.

    Blocks are cut by position in the file, so that every run and every process asks for a case in the same company.
    A case that runs again is asked for alone.

    Attributes:
        recorded: Predictions that need not be asked for.
    """

    recorded: Recorded
    _tasks: dict[_BlockPlace, SharedTask[Answers]] = field(default_factory=dict)
    _answered: set[_BlockPlace] = field(default_factory=set)
    _cut: dict[tuple[Path, str], Mapping[str, Sequence[Case]]] = field(default_factory=dict)

    async def __call__(self, job: Job, ask: Next) -> Answers:
        """Return the answers to the whole block of the case, asked for once."""
        target = batch_target(job)
        if target is None:
            return await ask(job)
        own = (job.suite.place, job.key.variant, job.repeat, job.case.id)
        if own in self._answered:
            return await ask(structs.replace(job, block=[job.case], shared=False))
        self._answered.add(own)
        block = [job.case] if target.batch == 1 else self._blocks_of(job.suite, target.batch)[job.case.id]
        place = (*own[:-1], block[0].id)
        if place not in self._tasks or self._tasks[place].is_cancelled:
            unrecorded = [case for case in block if not self.recorded.holds(job, case)]
            first = structs.replace(job.loaded, case=block[0])
            whole = structs.replace(job, loaded=first, block=unrecorded)
            self._tasks[place] = SharedTask(ask(whole))
        return await self._tasks[place].result()

    def _blocks_of(self, suite: LoadedSuite, size: int) -> Mapping[str, Sequence[Case]]:
        """The blocks by case; they are cut once, since looking a case up among all takes time with each."""
        if suite.place not in self._cut:
            self._cut[suite.place] = {
                name: block
                for part in suite.stretches
                for name, block in cut_in_blocks(
                    [case for case in part if case.prediction is MISSING and not case.conversation], size
                ).items()
            }
        return self._cut[suite.place]

    def first_of(self, suite: LoadedSuite, size: int, case: Case) -> str:
        """The id of the first case of a case's block, by which blocks are distinguished."""
        return self._blocks_of(suite, size)[case.id][0].id


@dataclass(frozen=True)
class Shared:
    """The link of the chain that shares answers through the working cache: only one process of a run asks.

    A missing prediction, for example because of a time limit, is shared. Other exceptions of the target stay in
    its process, where its type and traceback are known: the process whose turn it is asks again.

    Attributes:
        judges: The judges of the process, which have that cache.
        recorded: Has the answers that a process wrote before it died.
    """

    judges: "SuiteJudges"
    recorded: Recorded
    _answered: set[str] = field(default_factory=set)

    async def __call__(self, job: Job, ask: Next) -> Answers:
        """Return the answers of the next link, or those that another process of the run got.

        Raises:
            PredictionError: There are none.
            OrphanedError: The process that asked has died, or was cut off. What killed it may kill this one, so it is
                asked for again only when its case's turn comes: a crash then costs that case, and no other.
        """
        if not job.shared:
            return await ask(job)
        key = self._key(job)
        if key in self._answered:
            return await ask(job)  # the case runs again, to get another answer
        answers = await self._answers(key, job, ask)
        self._answered.add(key)
        if isinstance(answers, PredictionError):
            raise answers
        return answers

    def is_orphaned(self, job: Job) -> bool:
        """Whether a process died, or was cut off, while it asked for the answer."""
        working = self.judges.store.working
        return job.shared and working.place.is_coordinated and working.is_orphaned(self._key(job))

    def _key(self, job: Job) -> str:
        """The key of a job's answers in the working cache."""
        run, case = self.judges.store.working.run, job.case
        parts = (run, job.key.display_path, job.key.variant, case.id, str(job.repeat), input_digest(case.input))
        return " ".join(("answer", *parts))

    async def _answers(self, key: str, job: Job, ask: Next) -> Answers | PredictionError:
        """The answers to a job, asked for here or by another process of the run."""
        store, working = self.judges.store, self.judges.store.working
        store.heart.beat()
        while not working.claim(key, store.lease_s):
            if (stored := working.get(key)) is not None:
                return await ask(job) if stored == _OBJECTS else _decode_answers(job, stored)
            if working.is_orphaned(key):
                raise OrphanedError("the process that asked for this prediction has died")
            await store.leases.ended(key)
        let_go = working.release
        try:
            if (stored := working.get(key)) is not None:  # stored since the first look
                return await ask(job) if stored == _OBJECTS else _decode_answers(job, stored)
            if not job.block and (case := self.recorded.known(job)) is not None:
                return {case.id: case}
            answers: Answers | PredictionError
            try:
                answers = await ask(job)
            except PredictionError as error:
                answers = PredictionError(str(error))
            working.put(key, _encode_answers(job, answers))
        except asyncio.CancelledError:
            # Ctrl-C reaches one process of a run before another, which would begin the call again and be cut off, too.
            let_go = working.orphan
            raise
        else:
            return answers
        finally:
            let_go(key)


_OBJECTS: Final = "objects"
"""In place of answers that are users' objects: another process asks the target itself."""


def _encode_answers(job: Job, answers: Answers | PredictionError) -> str:
    """The answers to a job as text in the working cache, where the other processes of a run read them."""
    if isinstance(answers, PredictionError):
        return json.dumps({"error": str(answers)})
    if not all(job.suite.can_rebuild(answer) for answer in answers.values() if isinstance(answer, Case)):
        return _OBJECTS
    from pytest_llmeval.targets import Recordings

    fields = {
        name: {"error": str(answer)}
        if isinstance(answer, PredictionError)
        else {
            "prediction": answer.prediction,
            "figures": Recordings.figures_of(answer),
            "object": to_builtins(answer.written_object()),
        }
        for name, answer in answers.items()
    }
    return json.dumps({"answers": fields})


def _decode_answers(job: Job, text: str) -> Answers | PredictionError:
    """The answers to a job that another process of the run wrote into the working cache."""
    stored = json.loads(text)
    if "error" in stored:
        return PredictionError(stored["error"])
    from pytest_llmeval.core import WrittenObject

    answers: dict[str, Case | PredictionError] = {}
    for case in job.cases:
        fields = stored["answers"].get(case.id)
        if fields is None:
            continue
        if "error" in fields:
            answers[case.id] = PredictionError(fields["error"])
        else:
            answered = job.suite.reread(case, fields["prediction"], convert(fields["object"], WrittenObject | None))
            answers[case.id] = with_figures(answered, job.suite.parts_of(case), fields["figures"])
    return answers


@dataclass
class Limited:
    """The link of the chain that limits how many target calls are in flight at a time.

    Attributes:
        judges: The judges of the process, with the limit on all calls.
    """

    judges: "SuiteJudges"
    _suites: dict[tuple[Path, str], asyncio.Semaphore] = field(default_factory=dict)
    _targets: dict[BatchTarget, asyncio.Semaphore] = field(default_factory=dict)

    async def __call__(self, job: Job, ask: Next) -> Answers:
        """Return the answers of the next link, which is asked when its turn comes."""
        limit = self.judges.limit
        async with self._own(job), limit.slot():
            if limit.shared is not None:
                self.judges.store.heart.beat()  # or else a slow target would lose the slot
            answers = await ask(job)
        limit.succeeded()
        return answers

    def _own(self, job: Job) -> AbstractAsyncContextManager[None]:
        """The limit that a suite or a service has for itself."""
        target = batch_target(job)
        if target is not None:
            return self._targets.setdefault(target, asyncio.Semaphore(target.concurrency))
        suite = job.suite
        if suite.place not in self._suites:
            most = suite.target.concurrency if suite.target is not None else None
            self._suites[suite.place] = asyncio.Semaphore(most or self.judges.limit.ceiling)
        return self._suites[suite.place]


@dataclass(frozen=True)
class Budgeted:
    """The link of the chain that charges target calls to the budget that all processes of a run share.

    Calls of models are known and limited in advance, as those of judges. What another target takes, its predictions
    say afterwards, so it may exceed the budget.

    Attributes:
        judges: The judges of the process, which have the budget.
    """

    judges: "SuiteJudges"

    async def __call__(self, job: Job, ask: Next) -> Answers:
        """Return the answers of the next link, and count what they took, or what was reserved if that is unknown.

        Raises:
            BudgetError: The budget is spent.
            PredictionError: The budget limits money, and the price of the model is unknown.
        """
        store, model = self.judges.store, job.suite.model
        if not store.budget:
            return await ask(job)
        if model is not None:
            reservation = await store.spending.reserve_call(
                model.messages(job.case.input),
                model.spec.model or "",
                model.spec.request_parameters(),
                self._price(model.spec),
                _most_turns(job),
            )
        else:
            reservation = await store.spending.reserve(calls=0, tokens=0, usd=0.0)
        answers: Answers = {}
        try:
            answers = await ask(job)
        finally:
            store.spending.settle(reservation, **_used(answers))
        return answers

    def _price(self, spec: "JudgeSpec") -> "Price | None":
        """The price of a model; one must be known if the budget limits money."""
        price = spec.known_price
        if price is None and self.judges.store.budget.usd is not None:
            raise PredictionError(
                f"found the model {spec.model!r} without a known price, but --llmeval-budget limits USD: "
                f"expected 'price: {{input: USD, output: USD}}' (per million tokens) beside 'model'"
                f"{MissingExtraError.price_hint()}"
            )
        return price


def _most_turns(job: Job) -> int:
    """The most calls of a model as target that a case takes: one, or one for each turn of the user."""
    if not job.case.conversation:
        return 1
    settings = job.suite.conversation
    if settings.user is None:
        return sum(message["role"] == "user" for message in beginning(job.case.input))
    return 1 if settings.limit is None else settings.limit


def _used(answers: Answers) -> dict[str, Any]:
    """The tokens and the cost of a target's answers; ``None`` where they do not say."""
    cases = [answer for answer in answers.values() if isinstance(answer, Case)]
    figures = [case.origin.figures for case in cases if case.origin is not None]
    tokens = [figure[name] for figure in figures for name in _TOKENS if figure.get(name) is not None]
    costs = [figure["cost_usd"] for figure in figures if figure.get("cost_usd") is not None]
    return {"tokens": int(sum(tokens)) if tokens else None, "usd": sum(costs) if costs else None}


@dataclass(frozen=True)
class Recording:
    """The link of the chain that records predictions with their latency, on disk before anyone sees them.

    Attributes:
        recordings: Predictions that this run adds to.
        judges: The judges of the process, which have the turns of conversations that a killed run did not end.
    """

    recordings: "Recordings | None"
    judges: "SuiteJudges"

    async def __call__(self, job: Job, ask: Next) -> Answers:
        """Return the answers of the next link, after they are written."""
        watch = Stopwatch()
        with watch.running():
            answers = await ask(job)
        figures = {"latency_s": round(watch.seconds, FIGURE_DIGITS)}
        return {
            name: answer if isinstance(answer, PredictionError) else self._stored_case(job, answer, figures)
            for name, answer in answers.items()
        }

    def _stored_case(self, job: Job, answered: Case, figures: Mapping[str, float]) -> Case:
        """The answered case, whose prediction has been recorded."""
        case = with_figures(answered, job.suite.parts_of(answered), figures)
        if self.recordings is not None:
            from pytest_llmeval.targets import Recordings

            hidden = Secrets.of_variables(job.suite.secret_variables)
            self.recordings.keep(Recordings.row(job.key.display_path, job.key.variant, case, job.repeat, hidden))
            if job.case.conversation:
                self.judges.store.coordination.forget_run(turns_of(job))
        return case


@dataclass(frozen=True)
class InWorld:
    """The link of the chain that sets up the world of a case before its target answers, and tears it down.

    Attributes:
        thread: Where a plain target runs, and its world with it; ``None``: each world has a thread of its own.
    """

    thread: ThisThread | None = None

    async def __call__(self, job: Job, ask: Next) -> Answers:
        """Return the answers of the next link, which finds the world in its job.

        Raises:
            PredictionError: The world cannot be set up or torn down.
        """
        spec, target = job.suite.target, job.load_target()
        if spec is None or spec.world is None or isinstance(target, BatchTarget):
            return await ask(job)
        factory = job.suite.called(spec.world, "world")
        # A plain target without a time limit runs in this thread, and its world with it.
        stays = spec.timeout is None and not inspect.iscoroutinefunction(target)
        run = self.thread.call if self.thread is not None and stays else None
        world = World(factory, job.suite.typed(job.case), run)
        return await world.hold(lambda: ask(structs.replace(job, world=world)))


async def traced(job: Job, ask: Next) -> Answers:
    """The target's answers with what their spans tell, if the suite says ``traces: true``.

    The link that collects spans is an extension; see `Registry.extend`.
    """
    spec = job.suite.target
    if spec is None or not spec.traces or job.case.conversation:
        return await ask(job)
    link: Link = Registry.installed().extensions("traced")[-1].load()
    return await link(job, ask)


@dataclass(frozen=True)
class AskTarget:
    """The last link of the chain that answers a case: calls the target.

    Attributes:
        judges: The judges of the process, with the limit on calls in flight.
        thread: Where a plain target is called; ``None``: in a thread of its own.
    """

    judges: "SuiteJudges"
    thread: ThisThread | None = None

    async def __call__(self, job: Job) -> Answers:
        """Return the answers of the target, as JSON data.

        Raises:
            BaseException: Any error of the target.
        """
        target, cases = job.load_target(), job.cases
        self.judges.limit.activity.target_calls += 1
        if isinstance(target, BatchTarget):
            predictions = await target.answer([case.input if job.messages is None else job.messages for case in cases])
        else:
            return {job.case.id: answered_with(job.case, await self._call(job, target))}
        return {
            case.id: prediction if isinstance(prediction, PredictionError) else case.answered(prediction)
            for case, prediction in zip(cases, predictions, strict=True)
        }

    async def _call(self, job: Job, target: Callable[..., Any]) -> Any:
        """The target's prediction for a job."""
        spec, world = job.suite.target, job.world
        callee = PythonTarget(target)
        if job.messages is None:
            value = callee.typed_input(job.case.input, job.case.object_of("input"))
        else:
            from pytest_llmeval.core import Media

            value = callee.typed_input(Media.restore_all(job.messages))
        bound = callee.bound(job.suite.typed(job.case), world)
        ask = partial(bound.ask, timeout=spec.timeout if spec is not None else None, around=job.around)
        if world is not None and world.thread is not None:
            ask = partial(ask, run=world.thread.call, can_be_left=True)
        elif self.thread is not None:
            ask = partial(ask, run=partial(self._run_in, self.thread))
        return await ask(value)

    async def _run_in(self, thread: ThisThread, work: Callable[[], Any]) -> Any:
        """Call a plain target in the thread that waits for it; what it asks is a part of its call."""

        def within_its_call() -> Any:
            with self.judges.limit.within():
                return work()

        return await thread.call(within_its_call)


def batch_target(job: Job) -> BatchTarget | None:
    """The target of a job if cases are sent to it in batches, which turns of conversations are not.

    Raises:
        PredictionError: The job has no target.
    """
    target = job.load_target()
    return target if isinstance(target, BatchTarget) and not job.case.conversation else None

"""Obtaining the predictions of cases and the verdicts of their judges, some of them before their turn."""

__all__ = ("Answering", "PendingAnswer", "Prefetch", "user_questions")

import asyncio
import inspect
import itertools
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import BudgetError, LlmevalError, PredictionError, in_turn
from pytest_llmeval.core.results import AnswerOrigin, JudgingShown
from pytest_llmeval.core.wording import as_line
from pytest_llmeval.judge.asking import Asking, Judgement, JurorVerdict
from pytest_llmeval.judge.contract import Question
from pytest_llmeval.judge.limit import CallLimit
from pytest_llmeval.judge.questions.simulated_user import SIMULATED_USER, read_turn
from pytest_llmeval.run.conversation import Dialogue, UserQuestions, beginning
from pytest_llmeval.run.execute import json_like
from pytest_llmeval.run.job import CaseAnswer, EarlyCalls, Job, LoadedCase
from pytest_llmeval.run.sharing import Blocks, Opponents, OrphanedError, Sharing, TargetBudget, put_beside
from pytest_llmeval.run.target_figures import FIGURE_DIGITS, with_figures
from pytest_llmeval.services.background import Background, ThisThread, together, waited
from pytest_llmeval.services.secrets import secret_values
from pytest_llmeval.services.stopwatch import Stopwatch
from pytest_llmeval.suite.model_settings import wants_of
from pytest_llmeval.suite.suite import Suite, SuiteKey
from pytest_llmeval.targets.callables import load_target
from pytest_llmeval.targets.python import (
    Recordings,
    Target,
    call_target,
    for_case,
    in_world,
    input_digest,
    recorded_figures,
    recording,
    typed_input,
)
from pytest_llmeval.targets.spec import BatchTarget
from pytest_llmeval.targets.worlds import World, within

if TYPE_CHECKING:
    from pytest_llmeval.judge.service import JudgeService
    from pytest_llmeval.judge.store.run_store import RunStore


_SAID = 80
"""Most characters of a message in an error."""

_PORTIONS = 16
"""How many looks it takes until all cases of a window are others."""


@dataclass
class Answering:
    """Gets answers: from recordings and stores at once, else from targets and judges.

    Attributes:
        background: Where calls are made.
        limit: On calls in flight.
        recordings: Predictions of earlier runs.
        judges: Asks judges.
        store: What the processes of the run share.
    """

    background: Background
    limit: CallLimit
    recordings: Recordings | None = None
    judges: "JudgeService | None" = None
    store: "RunStore | None" = None
    _limits: dict[tuple[Path, str], asyncio.Semaphore] = field(default_factory=dict)
    _spoken: dict[tuple[SuiteKey, str, int], list[Judgement]] = field(default_factory=dict)
    """What simulated users said in the conversations of this process."""

    def __post_init__(self) -> None:
        self.sharing = Sharing(self.store)
        self.budget = TargetBudget(self.store)
        self.blocks = Blocks(self.sharing, self.limit, self.budget, self.recordings)
        self.opponents = Opponents(self.predicted, self._predict)

    def at_once(self, job: Job) -> "CaseAnswer | PendingAnswer | None":
        """Return the answer if it requires no call, or what judges must be asked; ``None`` if a target must be."""
        try:
            case = self.predicted(job)
        except LlmevalError as error:
            return CaseAnswer(job.case, error)
        others = self.opponents.known(job)
        if case is None or others is None:
            return None
        case = put_beside(case, others)
        made: AnswerOrigin = "recorded" if job.case.prediction is MISSING else "given"
        pending = PendingAnswer(CaseAnswer(case, made=made), self.askings(job, case))
        self._add_spoken(job, pending.answer)
        if self.judges is not None and not all(_is_known(each, self.judges) for each in pending.asked.values()):
            return pending
        return pending.complete()

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

    async def answer(
        self, job: Job, pending: "PendingAnswer | None" = None, here: ThisThread | None = None
    ) -> CaseAnswer:
        """Return the answer; many of these run at a time.

        Args:
            job: The case.
            pending: What `at_once` returned, if that was no answer.
            here: Where a plain target is called; ``None``: in a thread of its own.
        """
        if pending is not None:
            return await self._judged(pending)
        answer = CaseAnswer(job.case, made="run" if job.case.prediction is MISSING else "given")
        try:
            # Other cases share the answers of opponents, and must not wait for the thread of this one.
            answer.case = await self._beside_others(job) if job.opponents else await self._own(job, here)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 (whatever the target did concerns this case only)
            answer.error = error
            self._add_spoken(job, answer)
            return answer
        self._add_spoken(job, answer)
        return await self._judged(PendingAnswer(answer, self.askings(job, answer.case)))

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
            found = await self.blocks.predict(job, target)
        else:
            # A target in this thread is called for this case alone: another process would answer elsewhere.
            ask = partial(self._call, job, target, here)
            found = await (ask() if here is not None else self.sharing.once(job, job.case, ask))
        return with_figures(job.case.answered(found["prediction"]), job.parts, found["figures"])

    async def _call(self, job: Job, target: Target | BatchTarget, here: ThisThread | None) -> dict[str, Any]:
        answered: list[Case] = []
        async with self._of_suite(job.suite), self.limit.slot():
            if self.store is not None and self.limit.shared is not None:
                self.store.heart.beat()  # or else a slow target would lose the slot
            reservation = await self.budget.admit(job)
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
        """Return what the target answers, or the transcript of a conversation with it, in a world if there is one."""
        spec = job.suite.target
        if spec is None or spec.world is None or isinstance(target, BatchTarget):
            return await self._led(job, target, here)
        factory = load_target(spec.world, job.suite.path.parent, "world")
        # A plain target without a time limit runs in this thread, and its world with it.
        stays = here is not None and spec.timeout is None and not inspect.iscoroutinefunction(target)
        world = World(factory, job.case, here.call if here is not None and stays else None)
        return await within(world, partial(self._led, job, target, here, world))

    async def _led(
        self, job: Job, target: Target | BatchTarget, here: ThisThread | None, world: World | None = None
    ) -> Any:
        if not job.case.conversation:
            return await self._reply(job, target, job.case.input, here, world)
        dialogue = Dialogue(beginning(job.case.input), job.suite.parts, job.suite.conversation)
        user = user_questions(job)
        spoken = self._spoken[_job_place(job)] = []
        try:
            while (messages := await self._to_reply(dialogue, user, spoken)) is not None:
                dialogue.add(await self._turn(job, target, messages, here, world))
        except Exception as error:  # noqa: BLE001 (it is raised again, with its turn)
            raise in_turn(error, dialogue.turn) from error.__cause__
        wants = {} if user is None else {"user": {name: each for name, each in user.wants.items() if each}}
        return dialogue.transcript() | wants

    async def _turn(
        self,
        job: Job,
        target: Target | BatchTarget,
        messages: list[Any],
        here: ThisThread | None,
        world: World | None = None,
    ) -> Any:
        """Return the reply in one turn of a conversation, as JSON data; one that a killed run has got is taken over.

        Not in a world: what the agent did in that of the killed run has not happened in this one.
        """
        keeps = self.recordings is not None and self.recordings.mode == "auto" and self.store is not None
        if not keeps or world is not None:
            return json_like(await self._reply(job, target, messages, here, world))
        assert self.store is not None
        cache, run, key = self.store.cache, _turns_of(job), input_digest(messages)
        if (kept := cache.get_answer(run, key)) is not None:
            return json.loads(kept)
        reply = json_like(await self._reply(job, target, messages, here))
        cache.put_answer(run, key, json.dumps(reply))
        return reply

    async def _to_reply(
        self, dialogue: Dialogue, user: UserQuestions | None, spoken: list[Judgement]
    ) -> list[Any] | None:
        """Return what the target must reply to, after the simulated user has spoken if it is its turn."""
        if user is not None and dialogue.wants_user:
            await self._hear_user(dialogue, user, spoken)
        return dialogue.next()

    async def _hear_user(self, dialogue: Dialogue, user: UserQuestions, spoken: list[Judgement]) -> None:
        """Let the simulated user take its turn, and keep what it took in `spoken`.

        Raises:
            LlmevalError: It has none: its reply cannot be read, is not recorded, or the budget is spent.
        """
        judges = self.judges
        assert judges is not None
        asked = user.next(dialogue.messages)
        (juror,) = asked.expected
        recordings = juror.juror.recordings
        if recordings.get(juror.key) is None and recordings.has(juror.case, SIMULATED_USER):
            dialogue.leave_recording()
            mode = self.store.mode if self.store is not None else "auto"
            if user.user.unrecorded == "stop" and mode in ("auto", "replay") and dialogue.turn > 1:
                dialogue.stop_unrecorded()
                return
            if user.user.unrecorded == "fail" and mode == "auto":
                raise PredictionError(_outside(dialogue))
        judgement = await judges.judge(asked)
        spoken.append(judgement)
        verdict = judgement.verdict
        if isinstance(verdict, BudgetError):
            raise verdict
        if isinstance(verdict, LlmevalError):
            replays = self.store is not None and self.store.mode == "replay"
            raise PredictionError(_outside(dialogue) if replays else f"the simulated user has no reply: {verdict}")
        dialogue.hear(read_turn(verdict))

    def _add_spoken(self, job: Job, answer: CaseAnswer) -> None:
        """Add what the simulated user of a conversation took, and what of it can be recorded.

        Where another process has led the conversation, the questions are those that its transcript answers.
        """
        user = user_questions(job)
        if user is None or self.judges is None:
            return
        spoken = self._spoken.pop(_job_place(job), None)
        if spoken is None:
            spoken = []
            transcript: Any = answer.case.prediction
            messages = transcript.get("messages") if isinstance(transcript, Mapping) else None
            ended = isinstance(messages, list) and transcript.get("stop") == "user"
            script = len(beginning(job.case.input))
            asks = self.store is None or self.store.asks
            for each in user.of(messages, script, ended=ended) if isinstance(messages, list) else ():
                (juror,) = each.expected
                may_be_known = asks or juror.juror.recordings.get(juror.key) is not None
                if may_be_known and (known := self.judges.known(each)) is not None:
                    spoken.append(known)
        for judgement in spoken:
            answer.calls += [call._replace(user=True) for call in judgement.calls]
            answer.entries += [structs.replace(each, case=answer.case.id) for each in judgement.entries]

    async def _reply(
        self, job: Job, target: Target | BatchTarget, value: Any, here: ThisThread | None, world: World | None = None
    ) -> Any:
        if isinstance(target, BatchTarget):
            (answer,) = await target.answer([value])
            if isinstance(answer, PredictionError):
                raise answer
            return answer
        spec = job.suite.target
        ask = partial(call_target, timeout=spec.timeout if spec is not None else None)
        asked, given = target, typed_input(target, value)
        if world is not None:
            asked = in_world(target, world.value)
        if world is not None and world.thread is not None:
            ask = partial(ask, run=world.thread.call, can_be_left=True)
        elif here is not None:
            ask = partial(ask, run=partial(self._run_in, here))
        asked = for_case(asked, job.case)
        if spec is None or not spec.traces or job.case.conversation:
            return await ask(asked, given)
        from pytest_llmeval.targets.tracing import TracedCall

        traced = TracedCall()
        return traced.joined(json_like(await ask(traced.of(asked), given)))

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
            hidden = secret_values(job.suite.secret_variables)
            self.recordings.keep(recording(job.key.shown, job.key.variant, case, job.repeat, hidden))
            if job.case.conversation and self.store is not None:
                self.store.cache.forget_run(_turns_of(job))
        return case

    def _of_suite(self, suite: Suite) -> asyncio.Semaphore:
        """Return the suite's own limit on calls of its target."""
        if suite.place not in self._limits:
            most = suite.target.concurrency if suite.target is not None else None
            self._limits[suite.place] = asyncio.Semaphore(most or self.limit.ceiling)
        return self._limits[suite.place]

    async def _judged(self, pending: "PendingAnswer") -> CaseAnswer:
        judges = self.judges
        if judges is None:
            return pending.answer
        await together([each.ask(judges) for each in pending.asked.values()])
        return pending.complete()

    def askings(self, job: Job, case: Case) -> dict[str, Asking]:
        """Return what is to be asked about an answered case, by evaluator."""
        if job.judge is None:
            return {}
        asker = _asker(job)
        return {
            label: Asking.about(each, case, job.suite.readings[label], job.judge.panel_for(each), job.repeat, asker)
            for label, each in job.suite.evaluators.items()
            if each.asks
        }


def user_questions(job: Job) -> UserQuestions | None:
    """Return what the simulated user of a case is asked; ``None`` where it has none."""
    user = job.suite.conversation.user
    if user is None or job.user is None or not job.case.conversation:
        return None
    wants = wants_of(user, job.case.input)
    return UserQuestions(user, wants, job.user.panel, job.case.id, job.repeat, _asker(job))


def _outside(dialogue: Dialogue) -> str:
    """Say that nothing is recorded for what a simulated user is to reply to."""
    said = next((each.get("content") for each in reversed(dialogue.messages) if each.get("role") == "assistant"), None)
    remedy = "record one with --llmeval-judge=record"
    if said is None:
        return f"no first message is recorded: {remedy}"
    return f"the conversation leaves its recording: no reply to '{as_line(said, _SAID)}' is recorded; {remedy}"


def _turns_of(job: Job) -> str:
    """Return where the replies of a conversation are kept as long as it goes on."""
    return f"turns {_asker(job)} {job.case.id} {job.repeat} {input_digest([job.case.input, job.case.way])}"


def _asker(job: Job) -> str:
    return " ".join((job.key.shown, job.key.test, job.key.variant))


def _job_place(job: Job) -> tuple[SuiteKey, str, int]:
    return job.key, job.case.id, job.repeat


def _is_known(asking: Asking, judges: "JudgeService") -> bool:
    try:
        return asking.is_known(judges)
    except LlmevalError:
        return False  # faults of the store are reported when it is used


class PendingAnswer(NamedTuple):
    """An answer without verdicts, or with some of them.

    Attributes:
        answer: The answer.
        asked: Evaluator label to what is asked about it; some rounds may have been answered.
    """

    answer: CaseAnswer
    asked: dict[str, Asking]

    def complete(self) -> CaseAnswer:
        """Write what came of all questions into the answer, and return it."""
        answer = self.answer
        for label, asking in self.asked.items():
            if asking.error is None:
                answer.verdicts[label] = asking.verdicts
            else:
                answer.failed[label] = asking.error
            for bound, judgement in asking.judged:
                answer.calls += judgement.calls
                for juror, each in judgement.jurors.items():
                    answer.judgings.append(_shown(label, bound.question, each, juror))
                # A verdict may have been made for a case of another suite that asks the same.
                answer.entries += [structs.replace(each, case=answer.case.id) for each in judgement.entries]
                if isinstance(judgement.verdict, BudgetError):
                    answer.error = answer.error or judgement.verdict
        return answer


def _shown(label: str, question: Question, judgement: JurorVerdict, juror: str) -> JudgingShown:
    """Return a question with its reply as reports show them."""
    verdict = judgement.verdict
    reply = judgement.entry.reply if judgement.entry else getattr(verdict, "reasoning", "") or str(verdict)
    score, cost = getattr(verdict, "score", None), judgement.call.cost_usd if judgement.call else None
    return JudgingShown(label, question.mode.name, dict(question.texts), reply, score, cost, juror)


@dataclass
class Prefetch:
    """A window over the cases to come, which bounds what is wasted when a run stops early.

    Attributes:
        answering: Gets answers.
        window: How many cases to come are considered.
    """

    answering: Answering
    window: int
    _pending: "dict[tuple[SuiteKey, str, int], CaseAnswer | Future[CaseAnswer]]" = field(default_factory=dict)
    _considered: set[tuple[SuiteKey, str]] = field(default_factory=set)
    _starting: "list[tuple[Coroutine[Any, Any, CaseAnswer], Future[CaseAnswer]]]" = field(default_factory=list)
    _since_look: int = 0

    def looks_ahead(self, loaded: LoadedCase) -> bool:
        """Return whether the cases to come are looked at before this one: many at a time, which costs less.

        A case that was not foreseen, as where another process has run those before it, is a reason to look at once.
        """
        self._since_look += 1
        if self.considered(loaded) and self._since_look <= self.window // _PORTIONS:
            return False
        self._since_look = 0
        return True

    def considered(self, loaded: LoadedCase) -> bool:
        """Return whether a case to come has been considered already."""
        return _place(loaded) in self._considered

    def take(self, jobs: Sequence[Job], following: Iterable[Sequence[Job]], early: EarlyCalls) -> list[CaseAnswer]:
        """Return the answers of one case, and send for those of the cases to come.

        Args:
            jobs: One per repeat.
            following: The jobs of those of the next cases that have not been considered, nearest first.
            early: What may be called for them, and in the background for this one.
        """
        __tracebackhide__ = True
        try:
            own = list(map(self._own, jobs, itertools.repeat(early)))  # a comprehension would show in tracebacks
            self._considered -= {_place(job.loaded) for job in jobs}
            for job in (job for each in following for job in each):
                place = _place(job.loaded)
                self._considered.add(place)
                started = self._start(job, early)
                if started is not None:
                    self._pending[*place, job.repeat] = started
        finally:
            self._send()
        answers = [self._wait(job, started) for job, started in zip(jobs, own, strict=True)]
        if self.answering.limit.activity.in_flight:
            self.answering.background.give_way()
        return answers

    def _send(self) -> None:
        starting, self._starting = self._starting, []
        if starting:
            self.answering.background.submit_all(starting)

    def finish(self, within_s: float | None = None) -> None:
        """Wait for what is under way. Cases that another process runs need it: cut off, it would be asked for twice.

        Args:
            within_s: How long a case may take, after which nobody needs it any more; ``None`` if that is unknown.
        """
        wait([each for each in self._pending.values() if isinstance(each, Future)], within_s)

    def _own(self, job: Job, early: EarlyCalls) -> "CaseAnswer | Future[CaseAnswer] | None":
        __tracebackhide__ = True
        return self._pending.pop((*_place(job.loaded), job.repeat), None) or self._start(job, early)

    def _start(self, job: Job, early: EarlyCalls) -> "CaseAnswer | Future[CaseAnswer] | None":
        """Answer at once, or in the background if that is allowed."""
        __tracebackhide__ = True
        found = self.answering.at_once(job)
        if isinstance(found, CaseAnswer):
            return found
        asks_target = found is None
        if not (early.target if asks_target else early.judge):
            return None
        job.prepare(asks_target=asks_target)
        answer: Future[CaseAnswer] = Future()
        self._starting.append((self.answering.answer(job, found), answer))
        return answer

    def _wait(self, job: Job, started: "CaseAnswer | Future[CaseAnswer] | None") -> CaseAnswer:
        __tracebackhide__ = True
        if started is None:
            return self.answering.now(job)
        answer = waited(started) if isinstance(started, Future) else started
        return self.answering.now(job) if isinstance(answer.error, OrphanedError) else answer


def _place(loaded: LoadedCase) -> tuple[SuiteKey, str]:
    # The key includes the Python test, which has its own prediction for a case of a suite.
    return loaded.key, loaded.case.id

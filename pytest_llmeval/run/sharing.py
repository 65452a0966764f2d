"""Answers that are asked for once: by the processes of a run, in batches, for several cases; and what they may cost."""

__all__ = ("Blocks", "OpponentJobs", "Opponents", "OrphanedError", "Sharing", "TargetBudget", "put_beside")

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import structs

from pytest_llmeval.baselines.answers import ApprovedAnswers
from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import LlmevalError, PredictionError, format_error, price_hint
from pytest_llmeval.core.evaluator import APPROVED
from pytest_llmeval.core.missing import ITSELF, Itself, NoAnswer
from pytest_llmeval.core.parts import PredictionParts
from pytest_llmeval.judge.limit import CallLimit
from pytest_llmeval.run.conversation import beginning
from pytest_llmeval.run.job import Job, LoadedCase, TargetSource
from pytest_llmeval.run.score import cut
from pytest_llmeval.run.target_figures import FIGURE_DIGITS, with_figures
from pytest_llmeval.services.secrets import secret_values
from pytest_llmeval.services.stopwatch import Stopwatch
from pytest_llmeval.suite.suite import Suite, SuiteKey
from pytest_llmeval.targets.python import Recordings, input_digest, recorded_figures, recording
from pytest_llmeval.targets.spec import BatchTarget

if TYPE_CHECKING:
    from pytest_llmeval.judge.store.leases import Reservation
    from pytest_llmeval.judge.store.run_store import RunStore
    from pytest_llmeval.suite.systems import ModelSystem

_BlockPlace: TypeAlias = tuple[tuple[Path, str], str, int, str]
_AnswerPlace: TypeAlias = tuple[SuiteKey, str, int]
_TOKENS = ("input_tokens", "output_tokens")


class OrphanedError(LlmevalError):
    """A process died while it asked for this answer, maybe because of it."""


@dataclass(frozen=True)
class Sharing:
    """Answers in the working cache, for the length of a run.

    Attributes:
        store: Has that cache; ``None`` where a process is alone.
    """

    store: "RunStore | None"
    _given: set[str] = field(default_factory=set)

    async def once(self, job: Job, first: Case, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Return what `ask` gives, JSON data, or what it gave in another process of the run.

        A missing prediction, for example because of a time limit, is shared too. Other exceptions of the target stay
        in its process, where its type and traceback are known: the process whose turn it is asks again.

        Args:
            job: What it is asked for.
            first: The case, or the first one of a batch, which identifies the request.
            ask: Asks.

        Raises:
            PredictionError: There is none.
            OrphanedError: The process that asked has died. What killed it may kill this one, so it is asked for again
                only when its case's turn comes: a crash then costs that case, and no other.
        """
        store = self.store
        if not job.shared or store is None:
            return await ask()
        parts = (store.run, job.key.shown, job.key.variant, first.id, str(job.repeat), input_digest(first.input))
        key = " ".join(("answer", *parts))
        if key in self._given:
            return await ask()  # the case runs again, to get another answer
        outcome = await self._once(store, key, ask)
        self._given.add(key)
        if "error" in outcome:
            raise PredictionError(outcome["error"])
        return outcome["given"]

    async def _once(self, store: "RunStore", key: str, ask: Callable[[], Awaitable[Any]]) -> dict[str, Any]:
        store.heart.beat()
        cache = store.cache
        while not cache.lease(key, store.owner, store.lease_s, inherit=False):
            if (known := cache.get_answer(store.run, key)) is not None:
                return _outcome_from(known)
            if cache.is_orphaned(key):
                raise OrphanedError("the process that asked for this prediction has died")
            await store.leases.ended(key)
        try:
            if (known := cache.get_answer(store.run, key)) is not None:  # kept since we looked
                return _outcome_from(known)
            try:
                outcome = {"given": await ask()}
            except PredictionError as error:
                outcome = {"error": str(error)}
            cache.put_answer(store.run, key, json.dumps(outcome))
            return outcome
        finally:
            cache.release(key, store.owner)


def _outcome_from(text: str) -> dict[str, Any]:
    outcome: dict[str, Any] = json.loads(text)
    return outcome


@dataclass(frozen=True)
class TargetBudget:
    """Counts what targets take.

    Calls of models are known and limited in advance, as those of store. What another target takes, its predictions say
    afterwards, so it may exceed the budget.

    Attributes:
        store: Has the budget, which all processes share; ``None`` where there is none.
    """

    store: "RunStore | None"

    async def admit(self, job: Job | None = None) -> "Reservation | None":
        """Allow a call.

        Args:
            job: What is asked, which may ask a model; ``None`` for a batch.

        Raises:
            BudgetError: The budget is spent.
            PredictionError: The budget limits money, and the price of the model is unknown.
        """
        if self.store is None or not self.store.budget:
            return None
        if job is not None and job.suite.model is not None:
            return await self._admit_model(self.store, job, job.suite.model)
        return await self.store.spending.reserve(calls=0, tokens=0, usd=0.0)

    async def _admit_model(self, store: "RunStore", job: Job, model: "ModelSystem") -> "Reservation | None":
        from pytest_llmeval.judge.prices import price_of

        case, turns = job.case, 1
        messages = model.messages(case.input)
        price = price_of(model.spec)
        if price is None and store.budget.usd is not None:
            raise PredictionError(
                f"found the model {model.spec.model!r} without a known price, but --llmeval-budget limits USD: "
                f"expected 'price: {{input: USD, output: USD}}' (per million tokens) beside 'model'{price_hint()}"
            )
        if case.conversation:
            scripted = sum(each["role"] == "user" for each in beginning(case.input))
            turns = scripted if job.suite.conversation.user is None else job.suite.conversation.limit or 1
        return await store.spending.reserve_call(messages, model.spec.request_parameters(), price, turns)

    def charge(self, reservation: "Reservation | None", answered: Iterable[Case]) -> None:
        """Count what a call took; what was set aside for it, where that is not known.

        Args:
            reservation: What `admit` gave.
            answered: The cases that it answered.
        """
        if self.store is None:
            return
        figures = [each.origin.figures for each in answered if each.origin is not None]
        tokens = [each[name] for each in figures for name in _TOKENS if each.get(name) is not None]
        costs = [each["cost_usd"] for each in figures if each.get("cost_usd") is not None]
        self.store.spending.settle(
            reservation, tokens=int(sum(tokens)) if tokens else None, usd=sum(costs) if costs else None
        )


@dataclass
class Blocks:
    """The blocks that a process has asked for.

    Attributes:
        sharing: Reads what other processes asked.
        limit: On calls in flight.
        budget: Of the run.
        recordings: Predictions of earlier runs, which need not be asked for.
    """

    sharing: Sharing
    limit: CallLimit
    budget: TargetBudget
    recordings: Recordings | None = None
    _asked: "dict[_BlockPlace, asyncio.Task[dict[str, Any]]]" = field(default_factory=dict)
    _taken: set[_BlockPlace] = field(default_factory=set)
    _cut: dict[tuple[Path, str], Mapping[str, Sequence[Case]]] = field(default_factory=dict)
    _gates: dict[BatchTarget, asyncio.Semaphore] = field(default_factory=dict)

    async def predict(self, job: Job, target: BatchTarget) -> dict[str, Any]:
        """Return the prediction of a case and its figures, asked for together with its neighbours in the file.

        Blocks are cut by position in the file, so that every run and every process asks for a case in the same company.
        A case that runs again is asked for alone.

        Args:
            job: Of the case, which carries no prediction.
            target: Answers.

        Raises:
            PredictionError: There is none.
        """
        mine = (job.suite.place, job.key.variant, job.repeat, job.case.id)
        if mine in self._taken:
            found = await self._ask(job, target, [job.case])
        else:
            self._taken.add(mine)
            found = await self._asked_once(job, target)
        given: dict[str, Any] = found[job.case.id]
        if "error" in given:
            raise PredictionError(given["error"])
        return given

    async def _asked_once(self, job: Job, target: BatchTarget) -> dict[str, Any]:
        block = [job.case] if target.batch == 1 else self._blocks_of(job.suite, target.batch)[job.case.id]
        place = (job.suite.place, job.key.variant, job.repeat, block[0].id)
        if place not in self._asked:
            wanted = [each for each in block if not self._is_recorded(job, each)]
            asking = self.sharing.once(job, block[0], lambda: self._ask(job, target, wanted))
            self._asked[place] = asyncio.ensure_future(asking)
        return await asyncio.shield(self._asked[place])

    async def _ask(self, job: Job, target: BatchTarget, cases: Sequence[Case]) -> dict[str, Any]:
        """Return, by case, its prediction or why there is none, as JSON data."""
        gate = self._gates.setdefault(target, asyncio.Semaphore(target.concurrency))
        answers: dict[str, Case | PredictionError] = {}
        async with gate, self.limit.slot():
            reservation = await self.budget.admit()
            try:
                watch = Stopwatch()
                with watch.running():
                    found = await target.answer([each.input for each in cases])
                seconds = round(watch.seconds, FIGURE_DIGITS)
                answers = {
                    case.id: self._kept(job, case, each, seconds) for case, each in zip(cases, found, strict=True)
                }
            finally:
                self.budget.charge(reservation, (each for each in answers.values() if isinstance(each, Case)))
        self.limit.succeeded()
        return {name: _as_json(each) for name, each in answers.items()}

    def _kept(self, job: Job, case: Case, prediction: Any | PredictionError, seconds: float) -> Case | PredictionError:
        """Return the case with its answer, once the answer is on disk, or why there is none."""
        if isinstance(prediction, PredictionError):
            return prediction
        answered = with_figures(case.answered(prediction), job.parts, {"latency_s": seconds})
        if self.recordings is not None:
            hidden = secret_values(job.suite.secret_variables)
            self.recordings.keep(recording(job.key.shown, job.key.variant, answered, job.repeat, hidden))
        return answered

    def _blocks_of(self, suite: Suite, size: int) -> Mapping[str, Sequence[Case]]:
        """Return, by case, its block; they are cut once, since looking a case up among all takes time with each."""
        if suite.place not in self._cut:
            self._cut[suite.place] = {
                name: block
                for part in suite.stretches
                for name, block in cut(
                    [each for each in part if each.prediction is MISSING and not each.conversation], size
                ).items()
            }
        return self._cut[suite.place]

    def first_of(self, suite: Suite, size: int, case: Case) -> str:
        """Return the id of the first case of a case's block, by which blocks are distinguished."""
        return self._blocks_of(suite, size)[case.id][0].id

    def _is_recorded(self, job: Job, case: Case) -> bool:
        if self.recordings is None:
            return False
        return self.recordings.get(job.key.shown, job.key.variant, case, job.repeat) is not MISSING


def _as_json(answer: Case | PredictionError) -> dict[str, Any]:
    if isinstance(answer, PredictionError):
        return {"error": str(answer)}
    return {"prediction": answer.prediction, "figures": recorded_figures(answer)}


@dataclass(frozen=True)
class OpponentJobs:
    """Who else must answer a case.

    Attributes:
        target_of: Returns who answers the cases of a suite, as one of its systems has it.
    """

    target_of: Callable[[Suite], TargetSource]
    _cases: dict[tuple[Path, str], Mapping[str, Case]] = field(default_factory=dict)
    _approved: dict[SuiteKey, ApprovedAnswers] = field(default_factory=dict)

    def of(self, job: Job) -> dict[str, Job | NoAnswer | Itself]:
        """Return the jobs by the names of the opponents, or why there is none."""
        return {name: self._job(job, name) for name in job.suite.opponents}

    def _job(self, job: Job, name: str) -> Job | NoAnswer | Itself:
        if name == APPROVED:
            return self._approved_job(job)
        if name == job.key.variant:
            return ITSELF
        if name not in job.suite.systems:
            return NoAnswer("the suite has no system of this name")
        suite = job.suite.of(name)
        if suite.place not in self._cases:
            self._cases[suite.place] = {case.id: case for case in suite.cases}
        case = self._cases[suite.place].get(job.case.id)
        if case is None:
            return NoAnswer("has no prediction for this case")
        key = job.key._replace(test="", variant=name)
        return Job(LoadedCase(suite, case, key), job.repeat, self.target_of(suite), shared=job.shared, user=job.user)

    def _approved_job(self, job: Job) -> Job | NoAnswer:
        """Return the job of the approved answer, for which nobody need be asked."""
        key = job.key._replace(test="")
        if key not in self._approved:
            self._approved[key] = ApprovedAnswers.read(key)
        found = self._approved[key].find(job.case, job.repeat)
        if isinstance(found, NoAnswer):
            return found
        return structs.replace(job, loaded=structs.replace(job.loaded, case=job.case.answered(found)), judge=None)


@dataclass
class Opponents:
    """The answers that a process has asked for, so that no system is asked twice: for its own item and as an opponent.

    Attributes:
        predicted: Returns the case of a job with the prediction that is known without a call, if there is one.
        ask: Asks for the prediction.
    """

    predicted: Callable[[Job], Case | None]
    ask: Callable[[Job], Awaitable[Case]]
    _asked: "dict[_AnswerPlace, asyncio.Task[Case | BaseException]]" = field(default_factory=dict)
    _taken: set[_AnswerPlace] = field(default_factory=set)

    async def own(self, job: Job) -> Case:
        """Return the answer to a case's own question; one that runs again gets another.

        Raises:
            BaseException: Whatever the target raised.
        """
        place = _answer_place(job)
        if place in self._taken:
            del self._asked[place]
        self._taken.add(place)
        answer = await self._once(job)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def _once(self, job: Job) -> Case | BaseException:
        """Return the answer, asking for it if nobody has yet."""
        place = _answer_place(job)
        if place not in self._asked:
            self._asked[place] = asyncio.ensure_future(self._outcome(job))
        return await asyncio.shield(self._asked[place])

    async def _outcome(self, job: Job) -> Case | BaseException:
        """Return what a target raises: out of its task, an exit would end the event loop."""
        try:
            return await self.ask(job)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 (whatever the target did concerns this case only)
            return error

    def known(self, job: Job) -> dict[str, Any] | None:
        """Return the opponents' answers to a case; ``None`` where one must be asked for."""
        found = self.at_hand(job)
        return None if None in found.values() else found

    def at_hand(self, job: Job) -> dict[str, Any]:
        """Return the opponents' answers to a case, ``None`` in place of each that must be asked for."""
        return {name: self._known(each) for name, each in job.opponents.items()}

    def _known(self, opponent: Job | NoAnswer | Itself) -> Any:
        if not isinstance(opponent, Job):
            return opponent
        try:
            case = self.predicted(opponent)
        except LlmevalError as error:
            return NoAnswer(str(error))
        if case is not None:
            return _answer_of(opponent, case)
        asked = self._asked.get(_answer_place(opponent))
        if asked is None or not asked.done() or asked.cancelled():
            return None
        return _answer_of(opponent, asked.result())

    async def all(self, job: Job) -> dict[str, Any]:
        """Return the opponents' answers to a case."""
        found = await asyncio.gather(*map(self._found, job.opponents.values()))
        return dict(zip(job.opponents, found, strict=True))

    async def _found(self, opponent: Job | NoAnswer | Itself) -> Any:
        known = self._known(opponent)
        if known is not None or not isinstance(opponent, Job):
            return known
        return _answer_of(opponent, await self._once(opponent))


def put_beside(case: Case, others: Mapping[str, Any]) -> Case:
    """Return a case with the answers of others, if there are any."""
    return replace(case, others=others) if others else case


def _answer_of(opponent: Job, answer: Case | BaseException) -> PredictionParts | NoAnswer:
    """Return an answer with its parts, or why there is none."""
    if isinstance(answer, BaseException):
        return NoAnswer(str(answer) if isinstance(answer, LlmevalError) else format_error(answer))
    return PredictionParts(opponent.parts, answer.prediction)


def _answer_place(job: Job) -> _AnswerPlace:
    return job.key, job.case.id, job.repeat

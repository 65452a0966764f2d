"""The answers of other systems to a case, for evaluators that compare with them."""

__all__ = ("OpponentJobs", "Opponents", "put_beside")

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import LlmevalError, format_error
from pytest_llmeval.core.evaluator import APPROVED
from pytest_llmeval.core.missing import ITSELF, Itself, NoAnswer
from pytest_llmeval.core.parts import PredictionParts
from pytest_llmeval.run.job import Job, LoadedCase, TargetSource
from pytest_llmeval.snapshots.answers import ApprovedAnswers
from pytest_llmeval.suite.suite import Suite, SuiteKey

_AnswerPlace: TypeAlias = tuple[SuiteKey, str, int]


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
        return Job(LoadedCase(suite, case, key), job.repeat, self.target_of(suite), shared=job.shared)

    def _approved_job(self, job: Job) -> Job | NoAnswer:
        """Return the job of the approved answer, for which nobody need be asked."""
        key = job.key._replace(test="")
        if key not in self._approved:
            self._approved[key] = ApprovedAnswers.read(key)
        found = self._approved[key].find(job.case, job.repeat)
        if isinstance(found, NoAnswer):
            return found
        return replace(job, loaded=replace(job.loaded, case=job.case.answered(found)), judge=None)


@dataclass
class Opponents:
    """The answers that a process has asked for, so that no system is asked twice: for its own item and as an opponent.

    Attributes:
        predicted: Returns the case of a job with the prediction that is known without a call, if there is one.
        ask: Asks for the prediction.
    """

    predicted: Callable[[Job], Case | None]
    ask: Callable[[Job], Awaitable[Case]]
    _told: "dict[_AnswerPlace, asyncio.Task[Case | BaseException]]" = field(default_factory=dict)
    _taken: set[_AnswerPlace] = field(default_factory=set)

    async def own(self, job: Job) -> Case:
        """Return the answer to a case's own question; one that runs again gets another.

        Raises:
            BaseException: Whatever the target raised.
        """
        place = _place(job)
        if place in self._taken:
            del self._told[place]
        self._taken.add(place)
        told = await self._once(job)
        if isinstance(told, BaseException):
            raise told
        return told

    async def _once(self, job: Job) -> Case | BaseException:
        """Return the answer, asking for it if nobody has yet."""
        place = _place(job)
        if place not in self._told:
            self._told[place] = asyncio.ensure_future(self._outcome(job))
        return await asyncio.shield(self._told[place])

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
            return _shown(opponent, case)
        told = self._told.get(_place(opponent))
        return _shown(opponent, told.result()) if told is not None and told.done() and not told.cancelled() else None

    async def all(self, job: Job) -> dict[str, Any]:
        """Return the opponents' answers to a case."""
        found = await asyncio.gather(*map(self._found, job.opponents.values()))
        return dict(zip(job.opponents, found, strict=True))

    async def _found(self, opponent: Job | NoAnswer | Itself) -> Any:
        known = self._known(opponent)
        if known is not None or not isinstance(opponent, Job):
            return known
        return _shown(opponent, await self._once(opponent))


def put_beside(case: Case, others: Mapping[str, Any]) -> Case:
    """Return a case with the answers of others, if there are any."""
    return replace(case, others=others) if others else case


def _shown(opponent: Job, told: Case | BaseException) -> PredictionParts | NoAnswer:
    """Return an answer with its parts, or why there is none."""
    if isinstance(told, BaseException):
        return NoAnswer(str(told) if isinstance(told, LlmevalError) else format_error(told))
    return PredictionParts(opponent.parts, told.prediction)


def _place(job: Job) -> _AnswerPlace:
    return job.key, job.case.id, job.repeat

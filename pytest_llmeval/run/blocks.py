"""Batches of cases for services that answer several inputs per request."""

__all__ = ("Blocks",)

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.judge.limit import CallLimit
from pytest_llmeval.run.job import Job
from pytest_llmeval.run.measured_blocks import cut
from pytest_llmeval.run.shared_answers import Sharing
from pytest_llmeval.run.target_budget import TargetBudget
from pytest_llmeval.run.target_figures import FIGURE_DIGITS, with_figures
from pytest_llmeval.services.stopwatch import Stopwatch
from pytest_llmeval.suite.suite import Suite
from pytest_llmeval.targets.contract import BatchTarget
from pytest_llmeval.targets.python import Recordings, recorded_figures, recording

_BlockPlace: TypeAlias = tuple[tuple[Path, str], str, int, str]


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
        told: dict[str, Case | PredictionError] = {}
        async with gate, self.limit.slot():
            reservation = await self.budget.admit()
            try:
                watch = Stopwatch()
                with watch.running():
                    found = await target.answer([each.input for each in cases])
                seconds = round(watch.seconds, FIGURE_DIGITS)
                told = {case.id: self._kept(job, case, each, seconds) for case, each in zip(cases, found, strict=True)}
            finally:
                self.budget.charge(reservation, (each for each in told.values() if isinstance(each, Case)))
        self.limit.succeeded()
        return {name: _as_json(each) for name, each in told.items()}

    def _kept(self, job: Job, case: Case, prediction: Any | PredictionError, seconds: float) -> Case | PredictionError:
        """Return the case with its answer, once the answer is on disk, or why there is none."""
        if isinstance(prediction, PredictionError):
            return prediction
        answered = with_figures(case.answered(prediction), job.parts, {"latency_s": seconds})
        if self.recordings is not None:
            self.recordings.keep(recording(job.key.shown, job.key.variant, answered, job.repeat))
        return answered

    def _blocks_of(self, suite: Suite, size: int) -> Mapping[str, Sequence[Case]]:
        """Return, by case, its block; they are cut once, since looking a case up among all takes time with each."""
        if suite.place not in self._cut:
            self._cut[suite.place] = cut(
                [each for each in suite.cases if each.prediction is MISSING and not each.conversation], size
            )
        return self._cut[suite.place]

    def first_of(self, suite: Suite, size: int, case: Case) -> str:
        """Return the id of the first case of a case's block, by which blocks are told apart."""
        return self._blocks_of(suite, size)[case.id][0].id

    def _is_recorded(self, job: Job, case: Case) -> bool:
        if self.recordings is None:
            return False
        return self.recordings.get(job.key.shown, job.key.variant, case, job.repeat) is not MISSING


def _as_json(told: Case | PredictionError) -> dict[str, Any]:
    if isinstance(told, PredictionError):
        return {"error": str(told)}
    return {"prediction": told.prediction, "figures": recorded_figures(told)}

"""Batches of cases for services that answer several inputs per request."""

__all__ = ("Blocks", "cut")

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.judge.limit import CallLimit
from pytest_llmeval.run.job import Answer, Job
from pytest_llmeval.run.shared_answers import Sharing
from pytest_llmeval.suite.suite import Suite
from pytest_llmeval.targets.contract import BatchTarget
from pytest_llmeval.targets.python import Recordings, recording

_Place: TypeAlias = tuple[Path, str, int, str]


@dataclass
class Blocks:
    """The blocks that a process has asked for.

    Attributes:
        sharing: Reads what other processes asked.
        limit: On calls in flight.
        recordings: Predictions of earlier runs, which need not be asked for.
    """

    sharing: Sharing
    limit: CallLimit
    recordings: Recordings | None = None
    _asked: "dict[_Place, asyncio.Task[dict[str, Any]]]" = field(default_factory=dict)
    _taken: set[_Place] = field(default_factory=set)
    _cut: dict[Path, Mapping[str, Sequence[Case]]] = field(default_factory=dict)
    _gates: dict[BatchTarget, asyncio.Semaphore] = field(default_factory=dict)

    async def predict(self, job: Job, target: BatchTarget, answer: Answer) -> Any:
        """Return the prediction of a case, asked for together with its neighbours in the file.

        Blocks are cut by position in the file, so that every run and every process asks for a case in the same company.
        A case that runs again is asked for alone.

        Args:
            job: Of the case, which carries no prediction.
            target: Answers.
            answer: Receives the duration of the call.

        Raises:
            PredictionError: There is none.
        """
        mine = (job.suite.path, job.key.variant, job.repeat, job.case.id)
        if mine in self._taken:
            found = await self._ask(job, target, [job.case])
        else:
            self._taken.add(mine)
            found = await self._asked_once(job, target)
        given = found[job.case.id]
        if "seconds" in given:
            answer.target_seconds.append(given["seconds"])
        if "error" in given:
            raise PredictionError(given["error"])
        return given["prediction"]

    async def _asked_once(self, job: Job, target: BatchTarget) -> dict[str, Any]:
        block = [job.case] if target.batch == 1 else self._blocks_of(job.suite, target.batch)[job.case.id]
        place = (job.suite.path, job.key.variant, job.repeat, block[0].id)
        if place not in self._asked:
            wanted = [each for each in block if not self._is_recorded(job, each)]
            asking = self.sharing.once(job, block[0], lambda: self._ask(job, target, wanted))
            self._asked[place] = asyncio.ensure_future(asking)
        return await asyncio.shield(self._asked[place])

    async def _ask(self, job: Job, target: BatchTarget, cases: Sequence[Case]) -> dict[str, Any]:
        """Return, by case, its prediction or why there is none, as JSON data."""
        gate = self._gates.setdefault(target, asyncio.Semaphore(target.concurrency))
        async with gate, self.limit.slot():
            started = time.perf_counter()
            found = await target.answer([each.input for each in cases])
            seconds = time.perf_counter() - started
        self.limit.succeeded()
        told = [
            {"error": str(each)} if isinstance(each, PredictionError) else {"prediction": each, "seconds": seconds}
            for each in found
        ]
        if self.recordings is not None:
            for case, each in zip(cases, told, strict=True):
                if "prediction" in each:
                    answered = case.answered(each["prediction"])
                    self.recordings.keep(recording(job.key.shown, job.key.variant, answered, job.repeat))
        return {case.id: each for case, each in zip(cases, told, strict=True)}

    def _blocks_of(self, suite: Suite, size: int) -> Mapping[str, Sequence[Case]]:
        """Return, by case, its block; they are cut once, since looking a case up among all takes time with each."""
        if suite.path not in self._cut:
            self._cut[suite.path] = cut([each for each in suite.cases if each.prediction is MISSING], size)
        return self._cut[suite.path]

    def _is_recorded(self, job: Job, case: Case) -> bool:
        if self.recordings is None:
            return False
        return self.recordings.get(job.key.shown, job.key.variant, case, job.repeat) is not MISSING


def cut(cases: Sequence[Case], size: int) -> Mapping[str, Sequence[Case]]:
    """Cut cases into blocks; return the id of each case with its block."""
    blocks = [cases[start : start + size] for start in range(0, len(cases), size)]
    return {each.id: block for block in blocks for each in block}

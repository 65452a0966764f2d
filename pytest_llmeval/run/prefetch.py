"""Looking ahead: while one case runs, the answers of the next ones are already on their way."""

__all__ = ("EarlyCalls", "Prefetch")

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

from pytest_llmeval.run.answering import Answering
from pytest_llmeval.run.job import Answer, Job
from pytest_llmeval.run.shared_answers import OrphanedError


class EarlyCalls(NamedTuple):
    """What may be asked before a case's own turn, when the fixtures of its test are not set up yet."""

    target: bool = False
    judge: bool = False


@dataclass
class Prefetch:
    """A window over the cases to come, which bounds what is wasted when a run stops early.

    Attributes:
        answering: Gets answers.
        window: How many cases are looked at.
    """

    answering: Answering
    window: int
    _pending: "dict[tuple[str, str, str, int], Answer | Future[Answer]]" = field(default_factory=dict)
    _looked: set[tuple[str, str, str]] = field(default_factory=set)

    def looked(self, path: Path, variant: str, case: str) -> bool:
        """Return whether a case to come has been looked at already."""
        return (str(path), variant, case) in self._looked

    def take(self, jobs: Sequence[Job], following: Iterable[Sequence[Job]], look: EarlyCalls) -> list[Answer]:
        """Return the answers of one case, and send for those of the cases to come.

        Args:
            jobs: One per repeat.
            following: The jobs of those of the next cases that have not been looked at, nearest first.
            look: What may be asked for them, and in the background for this one.
        """
        __tracebackhide__ = True
        own = list(map(self._own, jobs, repeat(look)))  # a comprehension would show in tracebacks
        self._looked -= {_place(job)[:3] for job in jobs}
        for job in (job for each in following for job in each):
            place = _place(job)
            self._looked.add(place[:3])
            started = self._start(job, look)
            if started is not None:
                self._pending[place] = started
        return [self._wait(job, started) for job, started in zip(jobs, own, strict=True)]

    def finish(self) -> None:
        """Wait for what is under way. Cases that another process runs need it: cut off, it would be asked for twice."""
        wait(each for each in self._pending.values() if isinstance(each, Future))

    def _own(self, job: Job, look: EarlyCalls) -> "Answer | Future[Answer] | None":
        __tracebackhide__ = True
        return self._pending.pop(_place(job), None) or self._start(job, look)

    def _start(self, job: Job, look: EarlyCalls) -> "Answer | Future[Answer] | None":
        """Answer at once, or in the background if that is allowed."""
        __tracebackhide__ = True
        answer = self.answering.at_once(job)
        if answer is not None:
            return answer
        asks_target = self.answering.needs_target(job)
        if not (look.target if asks_target else look.judge):
            return None
        job.prepare(asks_target)
        return self.answering.predictor.background.submit(self.answering.answer(job))

    def _wait(self, job: Job, started: "Answer | Future[Answer] | None") -> Answer:
        __tracebackhide__ = True
        if started is None:
            return self.answering.now(job)
        answer = started.result() if isinstance(started, Future) else started
        return self.answering.now(job) if isinstance(answer.error, OrphanedError) else answer


def _place(job: Job) -> tuple[str, str, str, int]:
    # A Python test brings a prediction of its own for a case, which nobody has looked at before.
    return str(job.suite.path), job.variant, job.case.id, job.repeat

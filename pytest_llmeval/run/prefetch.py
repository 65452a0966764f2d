"""Early calls for the next cases while one case runs."""

__all__ = ("Prefetch",)

from collections.abc import Coroutine, Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from pytest_llmeval.run.answering import Answering
from pytest_llmeval.run.job import CaseAnswer, EarlyCalls, Job, LoadedCase
from pytest_llmeval.run.shared_answers import OrphanedError
from pytest_llmeval.services.background import waited
from pytest_llmeval.suite.suite import SuiteKey

_PORTIONS = 16
"""How many looks it takes until all cases of a window are others."""


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
            own = list(map(self._own, jobs, repeat(early)))  # a comprehension would show in tracebacks
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

    def finish(self) -> None:
        """Wait for what is under way. Cases that another process runs need it: cut off, it would be asked for twice."""
        wait(each for each in self._pending.values() if isinstance(each, Future))

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

"""Calls of a process: their counts, cost and waits, for progress, and the time that a target takes by itself."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Self

from msgspec import Struct


class Snapshot(NamedTuple):
    """Counts at one moment; those of several processes add up.

    Attributes:
        total: Cases that are to run. Each process has the same ones, so totals do not add up.
        done: Cases that have run.
        in_flight: Calls of targets and judges that are under way.
        retries: Attempts that were repeated.
        cost_usd: Of calls with a known price; ``None`` where there was none.
        waits: What a call waits for, such as its next attempt.
    """

    total: int = 0
    done: int = 0
    in_flight: int = 0
    retries: int = 0
    cost_usd: float | None = None
    waits: str = ""

    @classmethod
    def of_all(cls, parts: Iterable[Self]) -> Self:
        """Return the counts of several processes."""
        every = list(parts)
        costs = [each.cost_usd for each in every if each.cost_usd is not None]
        return cls(
            max((each.total for each in every), default=0),
            sum(each.done for each in every),
            sum(each.in_flight for each in every),
            sum(each.retries for each in every),
            sum(costs) if costs else None,
            next((each.waits for each in every if each.waits), ""),
        )


class Activity(Struct):
    """Counts of one process. `done` and `total` belong to the thread of the tests, the others to the event loop."""

    total: int = 0
    done: int = 0
    in_flight: int = 0
    retries: int = 0
    cost_usd: float | None = None
    _waits: dict[object, str] = {}

    def snapshot(self) -> Snapshot:
        """Return the present counts; of several calls that wait, the one that began last is shown."""
        waits = list(self._waits.values())
        return Snapshot(self.total, self.done, self.in_flight, self.retries, self.cost_usd, waits[-1] if waits else "")

    def spend(self, usd: float | None) -> None:
        """Add the cost of a call, if it is known."""
        if usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + usd

    @contextmanager
    def waiting(self) -> Iterator[Callable[[str], None]]:
        """Yield a function that sets what a call waits for, until the end of the block."""
        call = object()
        try:
            yield lambda text: self._waits.__setitem__(call, text)
        finally:
            self._waits.pop(call, None)


_running: "ContextVar[Stopwatch | None]" = ContextVar("_running", default=None)


class Stopwatch:
    """Adds up the seconds of the calls that are made while it runs; calls that overlap count once.

    The event loop may be busy when an answer arrives, so the clock is read where a call is made: in the worker thread
    of a function, around the exchange of a request.

    Attributes:
        seconds: So far.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._since = 0.0
        self._under_way = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Time the calls that are made in here."""
        token = _running.set(self)
        try:
            yield
        finally:
            _running.reset(token)

    @contextmanager
    def call(self) -> Iterator[None]:
        """Time one call; calls within it are a part of it."""
        token = _running.set(None)
        if not self._under_way:
            self._since = time.perf_counter()
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self.seconds += time.perf_counter() - self._since
            _running.reset(token)


def stopwatch() -> Stopwatch:
    """Return the stopwatch that runs, or one that nobody reads."""
    return _running.get() or Stopwatch()

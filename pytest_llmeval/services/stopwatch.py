"""The time that a target takes by itself, apart from our own work and waits for a turn."""

__all__ = ("Stopwatch", "stopwatch")

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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

"""Overhead of pytest-xdist workers: a note for runs that are faster without them."""

__all__ = ("WorkerTime",)

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import pytest

from pytest_llmeval.core.wording import counted
from pytest_llmeval.plugin.session import Run

_OUTSIDE: Final = 1.4
"""In one process, tests of half a millisecond or more take at most about so many times what pytest measures for them.

Shorter ones take more, but handling their reports keeps the main process of a run with workers busy for longer still.
"""


@dataclass(eq=False)
class WorkerTime:
    """Hooks of the main process of a run with ``-n``.

    Attributes:
        run: Gets the line among its notes.
        workers: How many there are.
        clock: Seconds.
    """

    run: Run
    workers: int
    clock: Callable[[], float] = time.monotonic
    _begun: float = field(init=False)
    _ready: float = 0.0
    _first: float | None = None
    _last: float = 0.0
    _tests_s: float = 0.0
    _lost: bool = False

    def __post_init__(self) -> None:
        self._begun = self.clock()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self) -> None:
        """Note that a worker has started."""
        self._ready = self.clock()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, error: object) -> None:
        """Note a crashed worker, since restarting takes time."""
        self._lost = self._lost or bool(error)

    def pytest_runtest_logstart(self) -> None:
        """Note when tests began."""
        if self._first is None:
            self._first = self.clock()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what tests took in workers; verdicts come from this process."""
        if hasattr(report, "worker_id"):
            self._tests_s += report.duration
            self._last = self.clock()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Note it if the run would clearly be faster without workers; collection takes one process no longer."""
        complete = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and not self._lost
        if not complete or self._first is None or not self.run.record.items:
            return
        spent_s = (self._ready - self._begun) + (self._last - self._first)
        if spent_s > _OUTSIDE * self._tests_s and session.config.get_verbosity() >= 0:
            self.run.notes.append(
                f"this run is faster without -n: its tests took {self._tests_s:.2f} s together, starting "
                f"{counted(self.workers, 'worker')} and running tests in them {spent_s:.2f} s"
            )

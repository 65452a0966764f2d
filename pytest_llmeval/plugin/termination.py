"""SIGTERM, sent by CI time limits and preemption, ends a run like Ctrl-C: with report and recordings."""

__all__ = ("Termination",)

import os
import signal
import threading
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from pytest_llmeval.plugin.pytest_private import worker_process


class Termination:
    """Turns SIGTERM into a keyboard interrupt, in every process of a run."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._workers: dict[str, int] = {}
        self._session: pytest.Session | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Install the handler, unless there is one already or signals are not available."""
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._session = session
            signal.signal(signal.SIGTERM, self._end)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self, node: Any) -> None:
        """Note a worker on this machine."""
        process = worker_process(node)
        if process is not None:
            self._workers[node.gateway.id] = process

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Forget a worker that has ended, since another process may get its id."""
        self._workers.pop(node.gateway.id, None)

    def pytest_unconfigure(self) -> None:
        """Restore the default handler."""
        if self._session is not None:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _end(self, number: int, _frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a process that the target forked
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        assert self._session is not None
        if self._session.shouldstop == "SIGTERM":
            return  # the run ends already: a second interrupt would cut off what it writes
        # Where Python loses an exception, as in the callback of a weak reference, the run ends after this test.
        self._session.shouldstop = "SIGTERM"
        for process in self._workers.values():
            with suppress(ProcessLookupError):
                os.kill(process, number)
        raise KeyboardInterrupt("SIGTERM")

"""A progress line for suites that run as one test item."""

__all__ = ("Progress",)

import os
import time
from dataclasses import dataclass
from functools import cached_property

import pytest

from pytest_llmeval.plugin.pytest_private import without_capture

_FIRST_S, _EVERY_S, _IN_LOGS_S = 2.0, 0.2, 10.0


@dataclass
class Progress:
    """A line that is rewritten on a terminal, and a line now and then in a log; nothing with ``-q`` or in a worker.

    Attributes:
        config: Of the session.
        name: Of the suite.
        total: How many cases it has.
    """

    config: pytest.Config
    name: str
    total: int
    _next: float | None = None
    _shown: bool = False

    @cached_property
    def _reporter(self) -> "pytest.TerminalReporter | None":
        if hasattr(self.config, "workerinput"):
            return None
        reporter: pytest.TerminalReporter | None = self.config.pluginmanager.get_plugin("terminalreporter")
        return reporter if reporter is not None and reporter.verbosity >= 0 else None

    @cached_property
    def _rewrites(self) -> bool:
        reporter = self._reporter
        return reporter is not None and bool(reporter.isatty) and not os.environ.get("CI")

    def show(self, done: int) -> None:
        """Tell how many cases are done, if it is time to."""
        now = time.monotonic()
        if self._next is None:
            self._next = now + (_FIRST_S if self._rewrites else _IN_LOGS_S)
        if self._reporter is None or now < self._next:
            return
        self._next = now + (_EVERY_S if self._rewrites else _IN_LOGS_S)
        self._write(f"{self.name}: {done} of {self.total} cases")

    def end(self) -> None:
        """Take the rewritten line away."""
        if self._shown and self._rewrites:
            self._write("")

    def _write(self, text: str) -> None:
        reporter = self._reporter
        assert reporter is not None
        self._shown = True
        with without_capture(self.config):
            if self._rewrites:
                reporter.rewrite(text, erase=True)
            else:
                reporter.ensure_newline()
                reporter.write_line(text)

"""Errors that many cases share, such as a refused key: shown once on the terminal, with a count."""

__all__ = ("RepeatedErrors",)

import copy
from collections.abc import Generator, Sequence
from typing import Any

import pytest
from msgspec import Struct

from pytest_llmeval.run.payload import decode

_LISTED = 5


class RepeatedErrors(Struct, eq=False):
    """Hooks of the process to which all reports come; with ``-v`` every case shows its own message."""

    _reasons: dict[str, str] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note why a case has no score."""
        payload = report.__dict__.get("llmeval")
        if report.failed and payload:
            records = decode(payload).records
            if len(records) == 1 and records[0].outcome == "errored" and records[0].reason:
                self._reasons[report.nodeid] = records[0].reason

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, Any, Any]:
        """Keep repetitions from the terminal; the counts of the last line include them."""
        stats = terminalreporter.stats
        failed = stats.get("failed")
        if failed and terminalreporter.verbosity <= 0:
            stats["failed"] = self._once(failed)
        try:
            return (yield)
        finally:
            if failed:
                stats["failed"] = failed

    def _once(self, reports: Sequence[Any]) -> list[Any]:
        """Return the reports, one for all that share an error."""
        groups: dict[object, list[Any]] = {}
        for report in reports:
            reason = self._reasons.get(getattr(report, "nodeid", ""))
            groups.setdefault(id(report) if reason is None else reason, []).append(report)
        return [group[0] if len(group) == 1 else _counted(group) for group in groups.values()]


def _counted(reports: Sequence[Any]) -> Any:
    """Return the first report with a line about the others."""
    shown = copy.copy(reports[0])
    others = [each.nodeid.rpartition("::")[2] for each in reports[1:]]
    names = ", ".join([*others[:_LISTED], *(["..."] if len(others) > _LISTED else [])])
    line = f"the same in {len(others)} more (-v shows each): {names}"
    shown.nodeid = f"{shown.nodeid} (and {len(others)} more)"
    if isinstance(shown.longrepr, str):
        shown.longrepr = f"{shown.longrepr}\n\n{line}"
    elif hasattr(shown.longrepr, "sections"):
        shown.longrepr = copy.copy(shown.longrepr)
        shown.longrepr.sections = [*shown.longrepr.sections, (line, "", "-")]
    return shown

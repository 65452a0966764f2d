"""Failing cases on the terminal: secrets redacted, control characters escaped, shared errors shown once."""

__all__ = ("RepeatedErrors", "make_presentable")

import copy
from collections.abc import Callable, Generator, Sequence
from typing import Any

import pytest
from msgspec import Struct

from pytest_llmeval.core.wording import printable
from pytest_llmeval.plugin.payload import case_of, part_of
from pytest_llmeval.services.secrets import secret_values, without


def make_presentable(item: pytest.Item, report: pytest.TestReport) -> None:
    """Redact and escape the failure text and the captured output of a case's report."""
    loaded = case_of(item) if report.longrepr or report.sections else None
    if loaded is None:
        return
    secrets = secret_values(loaded.suite.secret_variables)
    report.longrepr = _changed(report.longrepr, lambda text: printable(without(text, secrets), lines=True))
    report.sections = [(name, without(text, secrets)) for name, text in report.sections]


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    """Return a representation of an exception with all its texts changed; pytest nests them in objects and lists."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)([_changed(each, change) for each in value])
    for name, each in getattr(value, "__dict__", {}).items():
        value.__dict__[name] = _changed(each, change)
    return value


_LISTED = 5


class RepeatedErrors(Struct, eq=False):
    """Hooks of the main process; with ``-v`` every case shows its own message."""

    _reasons: dict[str, str] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note why a case has no score."""
        part = part_of(report) if report.failed else None
        if part is not None:
            records = part.records
            if len(records) == 1 and records[0].outcome == "errored" and records[0].reason:
                self._reasons[report.nodeid] = records[0].reason

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, Any, Any]:
        """Show each shared error once; the counts of the last line include all of them."""
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
        """Return the reports, with one for all that share an error."""
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

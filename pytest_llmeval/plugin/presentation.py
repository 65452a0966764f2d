"""Output of a run: failing cases, verdicts as test reports, and the summary."""

import copy
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from msgspec import Struct

from pytest_llmeval.core.wording import printable
from pytest_llmeval.gates.contract import GateResult, SnapshotVerdict
from pytest_llmeval.plugin.payload import CARRIED_CATEGORY, CATEGORY, UNNEEDED_CATEGORY, case_of, part_of
from pytest_llmeval.plugin.pytest_private import terminal_width
from pytest_llmeval.reports.files import AGENT
from pytest_llmeval.reports.form import RunReport
from pytest_llmeval.reports.tables import Line
from pytest_llmeval.reports.terminal import render
from pytest_llmeval.services.secrets import secret_values, without
from pytest_llmeval.suite.suite import SuiteKey


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
    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> Generator[None, Any, Any]:
        """Show each shared error once; the counts of the last line include all of them."""
        stats = terminalreporter.stats
        failed = stats.get("failed")
        if failed and terminalreporter.verbosity <= 0:
            stats["failed"] = self._merged(failed)
        try:
            return (yield)
        finally:
            if failed:
                stats["failed"] = failed

    def _merged(self, reports: Sequence[Any]) -> list[Any]:
        """Return the reports, with one for all that share an error."""
        groups: dict[object, list[Any]] = {}
        for report in reports:
            reason = self._reasons.get(getattr(report, "nodeid", ""))
            groups.setdefault(id(report) if reason is None else reason, []).append(report)
        return [group[0] if len(group) == 1 else _counted(group) for group in groups.values()]


def _counted(reports: Sequence[Any]) -> Any:
    """Return the first report with a line about the others."""
    report = copy.copy(reports[0])
    others = [each.nodeid.rpartition("::")[2] for each in reports[1:]]
    names = ", ".join([*others[:_LISTED], *(["..."] if len(others) > _LISTED else [])])
    line = f"the same in {len(others)} more (-v shows each): {names}"
    report.nodeid = f"{report.nodeid} (and {len(others)} more)"
    if isinstance(report.longrepr, str):
        report.longrepr = f"{report.longrepr}\n\n{line}"
    elif hasattr(report.longrepr, "sections"):
        report.longrepr = copy.copy(report.longrepr)
        report.longrepr.sections = [*report.longrepr.sections, (line, "", "-")]
    return report


def print_summary(
    reporter: "pytest.TerminalReporter", report: RunReport | None, notes: Sequence[str], written: Sequence[Path]
) -> None:
    """Print the summary.

    Args:
        reporter: Of the terminal.
        report: The run; ``None`` if nothing could run.
        notes: Lines about what could not be judged or written.
        written: Report files.
    """
    if AGENT in reporter.config.getoption("llmeval_report"):
        from pytest_llmeval.reports.agent import agent_lines

        reporter.ensure_newline()
        for text in agent_lines(RunReport() if report is None else report, notes):
            reporter.write_line(text)
        return
    width = terminal_width(reporter)
    lines = [] if report is None else list(render(report, verbosity=reporter.verbosity, width=width))
    lines += [Line(printable(note), "yellow") for note in notes]
    if reporter.verbosity >= 0:
        lines += [Line(f"report written to {path}") for path in written]
    if not lines:
        return
    reporter.ensure_newline()
    if reporter.verbosity >= 0:
        reporter.section("llmeval")
    for line in lines:
        reporter.write_line(line.text, **({line.colour: True} if line.colour else {}))


COLLECTING = ("llmeval_controller", "llmeval_scores")
"""Our own plugins that collect what tests report. Verdicts follow from that, so they must not get them as reports."""


_KINDS = ("gate", "snapshot")
CATEGORIES = (
    *(f"{kind}{plural} passed" for kind in _KINDS for plural in ("", "s")),
    UNNEEDED_CATEGORY,
    CARRIED_CATEGORY,
)
"""What pytest's last line counts verdicts as that pass, and cases that were not needed. Those that fail are failed
tests, which pytest lists."""


class VerdictReport(NamedTuple):
    """A verdict that is no test's.

    Attributes:
        path: The file that it is about.
        display_path: The file as reports name it.
        name: Behind the file in the node id, such as ``gate[f1 >= 0.7]``.
        outcome: ``undecided`` and ``not_judged`` are reported as skipped.
        reason: One sentence for people.
        line: Where the file says it; 0 where it does not.
    """

    path: str
    display_path: str
    name: str
    outcome: Literal["passed", "failed", "undecided", "not_judged"]
    reason: str
    line: int = 0


def verdict_report(key: SuiteKey, verdict: GateResult | SnapshotVerdict) -> VerdictReport:
    """Name a verdict on a suite as the suite's items are named: the variant in brackets behind it."""
    variant = "".join(f"[{part}]" for part in (key.test, key.variant) if part)
    if isinstance(verdict, GateResult):
        kind, subject, line = "gate", verdict.gate, verdict.line
        text = f"{verdict.cause}\n{verdict.reason}" if verdict.cause else verdict.reason
    else:
        kind, subject, line, text = "snapshot", verdict.metric, 0, verdict.reason
    failed = verdict.outcome == "failed"
    place = f"{key.display_path}:{line}" if line else key.display_path
    reason = f"{place}: {kind} {subject}: {text}" if failed else text
    return VerdictReport(key.path, key.display_path, f"{kind}[{subject}]{variant}", verdict.outcome, reason, line)


def category_of(report: pytest.CollectReport | pytest.TestReport) -> str:
    """Return what pytest's last line counts a report as; nothing for what is counted as a test."""
    category: str = getattr(report, CATEGORY, "")
    return category


def _categories(verdicts: Sequence[VerdictReport]) -> list[str]:
    """Return the category of each verdict: gates and snapshots are counted apart from cases."""
    kinds = [each.name.partition("[")[0] for each in verdicts]
    words = {"passed": "passed", "undecided": "undecided", "not_judged": "not evaluated"}
    keys = [
        (kind, words.get(each.outcome, "")) if kind in _KINDS else ("", "")
        for kind, each in zip(kinds, verdicts, strict=True)
    ]
    seen = Counter(keys)
    return [f"{kind}{'s' if seen[kind, word] > 1 else ''} {word}" if word else "" for kind, word in keys]


def emit(session: pytest.Session, verdicts: Sequence[VerdictReport]) -> None:
    """Report verdicts to all plugins but our own, in the three phases of a test: pytest-html needs all of them."""
    manager = session.config.pluginmanager
    own = [manager.get_plugin(name) for name in COLLECTING if manager.has_plugin(name)]
    report_to_others = manager.subset_hook_caller("pytest_runtest_logreport", remove_plugins=own)
    for each, category in zip(verdicts, _categories(verdicts), strict=True):
        session.testscollected += 1  # all at once, they would take the percentage that pytest shows back from 100
        reason: str | tuple[str, int, str] | None = None
        outcome: Literal["passed", "failed", "skipped"] = "passed"
        if each.outcome == "failed":
            outcome, reason = "failed", each.reason
        elif each.outcome != "passed":
            outcome, reason = "skipped", (each.path, each.line, f"Skipped: {each.reason}")
        nodeid, location = f"{each.display_path}::{each.name}", (each.display_path, max(each.line, 1) - 1, each.name)
        verdict = pytest.TestReport(nodeid, location, {}, outcome, reason, "call")
        setattr(verdict, CATEGORY, category)
        for phase in (
            pytest.TestReport(nodeid, location, {}, "passed", None, "setup"),
            verdict,
            pytest.TestReport(nodeid, location, {}, "passed", None, "teardown"),
        ):
            report_to_others(report=phase)

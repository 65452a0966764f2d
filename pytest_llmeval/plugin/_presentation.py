"""Output of a run."""

import copy
import os
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import pytest

from pytest_llmeval.core import CaseRecord, GateResult, SnapshotVerdict, counted, listed, printable
from pytest_llmeval.plugin._options import AGENT
from pytest_llmeval.plugin._payload import CARRIED_CATEGORY, CATEGORY, UNNEEDED_CATEGORY, case_of
from pytest_llmeval.plugin._pytest_private import encodable, terminal_width, write_order
from pytest_llmeval.reports import FailureGroups, Line, RunReport, render
from pytest_llmeval.run import RunRecord
from pytest_llmeval.services import Secrets
from pytest_llmeval.suites import SuiteKey


def make_presentable(item: pytest.Item, report: pytest.TestReport) -> None:
    """Redact and escape the failure text and the captured output of a case's report.

    Of the report of any other test, what cannot be sent to another process is escaped.
    """
    loaded = case_of(item) if report.longrepr or report.sections else None
    if loaded is None:
        report.longrepr = _change_texts(report.longrepr, encodable)
        report.sections = [(name, encodable(text)) for name, text in report.sections]
        return
    secrets = Secrets.of_variables(loaded.suite.secret_variables)
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:  # "Failed: " is the name of pytest's exception
        crash.message = crash.message.removeprefix("Failed: ")
    report.longrepr = _change_texts(report.longrepr, lambda text: printable(secrets.without(text), lines=True))
    report.sections = [(name, encodable(secrets.without(text))) for name, text in report.sections]


def _change_texts(value: Any, change: Callable[[str], str]) -> Any:
    """The representation of a case's exception with all texts changed, such as redacted; pytest nests them."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)([_change_texts(part, change) for part in value])
    for name, part in getattr(value, "__dict__", {}).items():
        value.__dict__[name] = _change_texts(part, change)
    return value


_LISTED = 5
_MOST_BLOCKS = 10
_MOST_BLOCK_LINES = 30
"""A run of more failing cases shows the blocks that fit these, and counts the other cases."""
_MOST_KINDS = 6


class FoldedFailures(NamedTuple):
    """Hooks of the main process; with ``-v`` each of few cases shows its own message, with ``-vv`` every case.

    Attributes:
        record: Has the results of all cases.
    """

    record: RunRecord

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> Generator[None, Any, Any]:
        """Show failures that are alike once; the counts of the last line include all of them."""
        stats = terminalreporter.stats
        for error in stats.get("error", ()):
            _name_reason(error)
        failed = stats.get("failed")
        if failed and terminalreporter.verbosity <= 1:
            stats["failed"] = _fold_failures(failed, self.record, is_verbose=terminalreporter.verbosity == 1)
        try:
            return (yield)
        finally:
            if failed:
                stats["failed"] = failed


@dataclass(frozen=True, eq=False)
class BriefFailures:
    """Hooks of the main process: the short summary has a line for each failed case, also in CI and with ``-vv``.

    Attributes:
        record: Has the results of all cases.
    """

    record: RunRecord

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> Generator[None, Any, Any]:
        """Leave the reason of a case after its failure was printed whole; `FoldedFailures` restores the reports."""
        done = yield
        failed = terminalreporter.stats.get("failed")
        if failed:
            terminalreporter.stats["failed"] = [self._shorten_report(report) for report in failed]
        return done

    def _shorten_report(self, report: Any) -> Any:
        """A failed case's report with the first line of its message alone."""
        if self.record.result_of(report) is None:
            return report
        crash = getattr(report.longrepr, "reprcrash", None)
        message = report.longrepr if isinstance(report.longrepr, str) else getattr(crash, "message", "")
        report = copy.copy(report)
        report.longrepr = SimpleNamespace(reprcrash=SimpleNamespace(message=message.partition("\n")[0]))
        return report


def _name_reason(report: Any) -> None:
    """Set the first fault of a suite file that cannot be collected as reason, for pytest's short summary."""
    representation: Any = report.longrepr
    first = str(representation).partition("\n")[0]
    file = f"{report.nodeid.partition('::')[0]}:"
    if isinstance(report, pytest.CollectReport) and first.startswith(file):
        with suppress(AttributeError):  # a text, from another process
            representation.reprcrash = SimpleNamespace(message=first.removeprefix(file))


def _fold_failures(reports: Sequence[Any], run: RunRecord, *, is_verbose: bool) -> list[Any]:
    """The failure blocks to print: one for all cases with the same error, few for many failing cases.

    Args:
        reports: Of what failed.
        run: Has the results of all cases.
        is_verbose: Whether few cases are shown one by one.
    """
    cases: dict[int, tuple[SuiteKey, CaseRecord]] = {}
    for report in reports:
        result = run.result_of(report) if hasattr(report, "nodeid") else None
        if result is not None and len(result.part.records) == 1 and result.part.records[0].reason:
            cases[id(report)] = result.part.key, result.part.records[0]
    by_reason = FailureGroups(len(cases))
    if is_verbose and not by_reason.are_many:
        return list(reports)
    groups: dict[object, list[Any]] = {}
    for report in reports:
        _, record = cases.get(id(report), (None, None))
        shared_cause = "" if record is None else by_reason.shared_reason(record)
        groups.setdefault(shared_cause or id(report), []).append(report)
    if not by_reason.are_many:
        return [group[0] if len(group) == 1 else _count_alike(group, "", "-v") for group in groups.values()]
    labels = {
        (result.part.key, record.id): {
            **record.labels,
            **({"system": key.variant} if (key := result.part.key).variant else {}),
        }
        for result in run.items.values()
        for record in result.part.records
    }

    def shared(group: Sequence[Any]) -> str:
        return _find_shared_label(labels, [(key, record.id) for key, record in (cases[id(report)] for report in group)])

    listed: list[Any] = []
    lines = 0
    of_cases = sorted((group for group in groups.values() if id(group[0]) in cases), key=len, reverse=True)
    for group in of_cases[:_MOST_BLOCKS]:
        lines += group[0].longreprtext.count("\n") + 2
        if listed and lines > _MOST_BLOCK_LINES:
            break
        listed.append(group[0] if len(group) == 1 else _count_alike(group, shared(group), "-vv"))
    remaining = [report for group in of_cases[len(listed) :] for report in group]
    if remaining:
        kinds: dict[str, list[Any]] = {}
        for report in remaining:
            record = cases[id(report)][1]
            kinds.setdefault(", ".join(record.unmet) or record.reason or "", []).append(report)
        ranked = sorted(kinds.items(), key=lambda kind: -len(kind[1]))
        text = [f"{kind}: {counted(len(group), 'case')}{shared(group)}: {_names(group)}" for kind, group in ranked]
        more = [f"and {counted(len(text) - _MOST_KINDS, 'more kind')} of failures"] if len(text) > _MOST_KINDS else []
        listed.append(_remainder(remaining, "\n".join([*text[:_MOST_KINDS], *more, "-vv shows each case"])))
    return [*listed, *(group[0] for group in groups.values() if id(group[0]) not in cases)]


def _find_shared_label(
    labels: Mapping[tuple[SuiteKey, str], Mapping[str, str]], ids: Sequence[tuple[SuiteKey, str]]
) -> str:
    """The label that failed cases of a pytest run share and that explains them, with its number of cases."""
    from pytest_llmeval.numbers import explaining_label

    label, value = explaining_label(labels, set(ids))
    if not label:
        return ""
    return f", {sum(labels[id_].get(label) == value for id_ in ids)} of {len(ids)} with {label}={value}"


def _names(reports: Sequence[Any]) -> str:
    """The names of failed cases that the terminal lists behind a folded failure."""
    return listed((report.nodeid.rpartition("::")[2] for report in reports), _LISTED, ", ...")


def _count_alike(reports: Sequence[Any], shared: str, option: str) -> Any:
    """The first report of failed cases with the same error, with a line about the others."""
    report = copy.copy(reports[0])
    others = reports[1:]
    line = f"the same in {len(others)} more{shared} ({option} shows each): {_names(others)}"
    text, crash = str(report.longrepr), getattr(report.longrepr, "reprcrash", None)
    if isinstance(report.longrepr, str) or (crash is not None and text.startswith(crash.message)):
        report.longrepr = f"{counted(len(reports), 'case')}: {text.rstrip()}\n{line}"
    elif hasattr(report.longrepr, "sections"):
        report.longrepr = copy.copy(report.longrepr)
        report.longrepr.sections = [*report.longrepr.sections, (line, "", "-")]
    return report


def _remainder(reports: Sequence[Any], text: str) -> Any:
    """The pytest report on failed cases that get no block of their own."""
    report = copy.copy(reports[0])
    report.nodeid = name = f"{counted(len(reports), 'more failing case')}"
    report.location = (report.location[0], None, name)
    report.longrepr, report.sections = text, []
    return report


def print_summary(
    reporter: "pytest.TerminalReporter",
    report: RunReport | None,
    notes: Sequence[str],
    written: Sequence[Path],
    rerun: Sequence[str] = (),
) -> None:
    """Print the summary of suites, files and notes at the end of a run.

    Args:
        reporter: Of the terminal.
        report: The run; ``None`` if nothing could run.
        notes: Lines about what could not be judged or written.
        written: Report files.
        rerun: What failed, as arguments of pytest.
    """
    if AGENT in reporter.config.getoption("llmeval_report"):
        from pytest_llmeval.plugin._agent_report import agent_lines

        reporter.ensure_newline()
        for text in agent_lines(RunReport() if report is None else report, notes):
            reporter.write_line(text)
        return
    width, has_page = terminal_width(reporter), any(path.suffix == ".html" for path in written)
    lines: list[Line] = []
    if report is not None:
        lines += render(report, verbosity=reporter.verbosity, width=width, rerun=rerun, has_page=has_page)
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


@dataclass(frozen=True)
class ExitReasons:
    """Prints why the exit code is not pytest's own, below warnings and lists of tests.

    Attributes:
        lines: Filled until the session ends.
    """

    lines: Sequence[str]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> Generator[None, Any, Any]:
        """Print the reasons of the exit code."""
        done = yield
        for line in self.lines:
            terminalreporter.write_line(printable(line), yellow=True)
        return done


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
    """A verdict on a suite's gate or approved scores, as pytest reports it like a test.

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
    if failed:  # pytest's summary shows the beginning of the first line
        named = subject.partition(" ")[0]
        text = f"{text.removeprefix(f'{named} is ')}\n{place}"
    return VerdictReport(key.path, key.display_path, f"{kind}[{subject}]{variant}", verdict.outcome, text, line)


def category_of(report: pytest.CollectReport | pytest.TestReport) -> str:
    """The category under which pytest's last line counts a report; empty for what counts as a test."""
    category: str = getattr(report, CATEGORY, "")
    return category


def _categories(verdicts: Sequence[VerdictReport]) -> list[str]:
    """The category of each verdict in pytest's last line: gates and snapshots count apart from cases."""
    kinds = [verdict.name.partition("[")[0] for verdict in verdicts]
    words = {"passed": "passed", "undecided": "undecided", "not_judged": "not evaluated"}
    keys = [
        (kind, words.get(verdict.outcome, "")) if kind in _KINDS else ("", "")
        for kind, verdict in zip(kinds, verdicts, strict=True)
    ]
    seen = Counter(keys)
    return [f"{kind}{'s' if seen[kind, word] > 1 else ''} {word}" if word else "" for kind, word in keys]


def emit(session: pytest.Session, verdicts: Sequence[VerdictReport]) -> None:
    """Report verdicts on gates and scores to all plugins but our own, in the three phases that pytest-html needs."""
    manager = session.config.pluginmanager
    own = [manager.get_plugin(name) for name in COLLECTING if manager.has_plugin(name)]
    report_to_others = manager.subset_hook_caller("pytest_runtest_logreport", remove_plugins=own)
    for source, category in zip(verdicts, _categories(verdicts), strict=True):
        session.testscollected += 1  # all at once, they would take the percentage that pytest shows back from 100
        reason: str | tuple[str, int, str] | None = None
        outcome: Literal["passed", "failed", "skipped"] = "passed"
        if source.outcome == "failed":
            outcome, reason = "failed", source.reason
        elif source.outcome != "passed":
            outcome, reason = "skipped", (source.path, source.line, f"Skipped: {source.reason}")
        nodeid = f"{source.display_path}::{source.name}"
        location = (source.display_path, max(source.line, 1) - 1, source.name)
        verdict = pytest.TestReport(nodeid, location, {}, outcome, reason, "call")
        setattr(verdict, CATEGORY, category)
        for phase in (
            pytest.TestReport(nodeid, location, {}, "passed", None, "setup"),
            verdict,
            pytest.TestReport(nodeid, location, {}, "passed", None, "teardown"),
        ):
            report_to_others(report=phase)


def annotate(reporter: "pytest.TerminalReporter", report: RunReport) -> None:
    """Print the failures of a run as annotations in a GitHub job."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    from pytest_llmeval.plugin._annotations import annotation_lines

    checkout = Path(os.environ.get("GITHUB_WORKSPACE") or reporter.config.rootpath)
    root = reporter.config.rootpath
    folder = root.relative_to(checkout).as_posix() if root.is_relative_to(checkout) else ""
    reporter.ensure_newline()
    for order in annotation_lines(report, folder):
        write_order(reporter.config, order)

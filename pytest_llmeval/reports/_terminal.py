"""The summary of a run as lines."""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import structs

from pytest_llmeval.core import (
    CaseRecord,
    GateResult,
    SnapshotVerdict,
    counted,
    excerpt,
    number,
    printable,
    width_of,
)
from pytest_llmeval.data import OutputFile
from pytest_llmeval.reports._form import RunReport, SuiteReport, SystemsReport, affected_text
from pytest_llmeval.reports._overview import (
    MOST_LINES,
    asking_lines,
    case_table,
    cause_lines,
    change_lines,
    cluster_lines,
    fall_lines,
    group_table,
    legend,
    listed_metrics,
    metric_notes,
    metric_table,
    money_lines,
    not_judged,
    overview,
    rate_text,
    system_tables,
    warnings,
)
from pytest_llmeval.reports._survival import Survival
from pytest_llmeval.reports._tables import FilledTable, Line, TextTable

_FILE_WIDTH = 100
_READABLE = 160
"""Longer lines are hard to follow, however wide the terminal."""
_CUT = len("... (999 more characters)")
_METRICS = 16
_METRICS_OF_ONE = 8
"""Metrics listed without ``-v``."""
_CHANGES = 10
"""Changed scores listed without ``-vv``."""
_EVERYTHING = 2


def write_plain_text(report: RunReport, path: Path) -> None:
    """Write the terminal's summary of a run with ``-v`` to a text file, without colour."""
    lines = (line.text for line in render(report, verbosity=1, width=_FILE_WIDTH))
    OutputFile(path).write_text(["".join(f"{line}\n" for line in lines)])


def write_percentages(report: RunReport, path: Path) -> None:
    """Write the terminal's summary to a text file, with values at cut-offs such as ``@10`` in per cent."""
    suites = [structs.replace(suite, tables=[_in_per_cent(table) for table in suite.tables]) for suite in report.suites]
    write_plain_text(structs.replace(report, suites=suites), path)


def _in_per_cent(table: FilledTable) -> FilledTable:
    """A report table whose values at cut-offs, in columns such as ``@10``, are in per cent."""
    rows = [
        [
            f"{cell:.2%}" if header.startswith("@") and isinstance(cell, float) else cell
            for header, cell in zip(table.headers, row, strict=True)
        ]
        for row in table.rows
    ]
    return structs.replace(table, rows=rows)


def render(
    report: RunReport, *, verbosity: int, width: int, rerun: Sequence[str] = (), has_page: bool = False
) -> Iterator[Line]:
    """Yield the lines of a run's summary in the terminal.

    Args:
        report: The run.
        verbosity: Below 0: gates and snapshots that do not pass. 0 a line for each suite, and what failed. 1:
            the tables of all suites. Above 1: everything.
        width: Of the terminal, in columns.
        rerun: What failed, as arguments of pytest; empty if that is not known.
        has_page: Whether the run has written its page.
    """
    command = next_command(report, rerun, verbosity=verbosity, has_page=has_page)
    following = [Line(f"next: {command}")] if command else []
    if verbosity < 0:
        for suite in report.suites:
            for gate in suite.gates:
                if gate.outcome == "failed":
                    yield _gate_line(gate, suite)
                    yield from (Line(printable(line)) for line in cause_lines(suite, gate))
            yield from (_verdict(score, suite) for score in suite.broken_scores)
            yield from not_judged(suite, f"{suite.suite}: ")
        yield from _affected_line(report, least=1)
        yield from following
        return
    width = min(width, _READABLE)
    detailed = [suite for suite in report.suites if verbosity or suite.failed]
    several = not verbosity and len(detailed) > 1
    reasons = () if report.conclusion is None else report.conclusion.why
    yield from _suites(report.suites, detailed, verbosity, width, reasons, printed=bool(rerun))
    for systems in report.systems:
        if any(systems.has(suite.path, suite.base_name) for suite in detailed):
            yield from _systems(systems, verbosity, width, values=not several)
    if report.mutation:
        yield from _mutants(report.mutation)
    if detailed or report.mutation:
        yield Line("")
    if any(map(_may_be_approved, report.suites)):
        yield Line("snapshot: approve improved and new metrics with --snapshot-update")
    yield from (Line(printable(note), "yellow") for note in [report.uncalibrated_text] if note)
    yield from map(Line, money_lines(report.money))
    yield from _affected_line(report, least=2)
    yield from _answer(report)
    yield from following
    if report.suites:
        yield report.totals


def _answer(report: RunReport) -> Iterator[Line]:
    """Yield the terminal's line on whether to merge; a run that passed, or of a selection, has its counts only."""
    if report.conclusion is None and report.suites and report.verdict in ("failed", "undecided"):
        from pytest_llmeval.reports._headline import MergeAnswer

        yield Line(printable(str(MergeAnswer.of_run(report))), "red" if report.verdict == "failed" else "yellow")


class _Failed(NamedTuple):
    """A failed run, as far as the choice of the next command depends on it.

    Attributes:
        bad: Number of failing cases.
        fell: Whether a gate names the cases that fell.
        verbosity: Of the run.
        has_page: Whether the run has written its page.
    """

    bad: int
    fell: bool
    verbosity: int
    has_page: bool


_FEW: Final = 20
"""Failing cases whose messages are read one by one."""
_NEXT: Final[Sequence[tuple[Callable[[_Failed], bool], str]]] = (
    (lambda run: run.verbosity < 1 and (run.fell or 0 < run.bad <= _FEW), "--lf -v"),
    (lambda run: not run.has_page, "-v --llmeval-report=report.html"),
    (lambda run: run.verbosity < 1, "--lf -v"),
)
"""Options of the next command by cause; the first one that applies."""
_CREATE = re.compile(r"create it with (pytest .+)$")


def next_command(report: RunReport, rerun: Sequence[str], *, verbosity: int, has_page: bool) -> str:
    """The command that says more about a failed run, or fixes it; empty if there is none.

    Args:
        report: The run.
        rerun: What failed, as arguments of pytest; empty if that is not known.
        verbosity: Of the run.
        has_page: Whether the run has written its page.
    """
    if not rerun:
        return ""
    for path in report.faults:
        return f"llmeval validate {shlex.quote(path)}"
    for suite in report.suites:
        verdicts: list[GateResult | SnapshotVerdict] = [*suite.gates, *suite.snapshot]
        for verdict in verdicts:
            # Nothing was approved yet: the verdict names the command that approves.
            if verdict.outcome == "failed" and (approval := _CREATE.search(verdict.reason)):
                return approval[1]
    bad = sum(case.outcome in CaseRecord.BAD for suite in report.suites for case in suite.cases)
    fell = any(gate.fallen for suite in report.suites for gate in suite.gates)
    failed = _Failed(bad, fell, verbosity, has_page)
    options = next((options for applies, options in _NEXT if applies(failed)), "")
    return f"pytest --llmeval {shlex.join(rerun)} {options}" if options else ""


def _suites(
    suites: Sequence[SuiteReport],
    detailed: Sequence[SuiteReport],
    verbosity: int,
    width: int,
    reasons: Sequence[str],
    *,
    printed: bool,
) -> Iterator[Line]:
    """Yield the terminal's lines on suites: an overview of the short ones, then more on the detailed ones."""
    several = not verbosity and len(detailed) > 1
    short = suites if several else [suite for suite in suites if not (verbosity or suite.failed)]
    if short:
        yield from overview(short, width)
        for suite in short:
            yield from () if suite.failed else warnings(suite, reasons)
    for suite in detailed:
        lines = list(_reasons(suite, reasons) if several else _suite(suite, verbosity, width, reasons, printed=printed))
        if lines and (short or suite is not detailed[0]):
            yield Line("")
        yield from lines


def _reasons(suite: SuiteReport, concluded: Sequence[str]) -> Iterator[Line]:
    """Yield why one of several suites failed, apart from its cases; nothing if only cases failed."""
    lines = [
        *(Line(printable(line), "yellow") for line in metric_notes(suite) if line.startswith("warning")),
        *_gates(suite, concluded, details=False, passed=False),
        *not_judged(suite),
        *map(_verdict, suite.broken_scores),
    ]
    if lines:
        yield Line(printable(f"{suite.suite}  ({suite.path})"), "bold")
        yield from lines


def _affected_line(report: RunReport, least: int) -> Iterator[Line]:
    """Yield the terminal's line on cases that ran because of a change, in a run of at least so many suites."""
    if len(report.suites) >= least and (text := affected_text(report.suites)):
        yield Line(printable(text))


def _may_be_approved(suite: SuiteReport) -> bool:
    """Whether a suite has improved or new scores, and no failure that an approval would accept as well."""
    failed = any(verdict.outcome == "failed" for part in (suite.gates, suite.snapshot) for verdict in part)
    return not failed and any(verdict.kind in ("improved", "new") for verdict in suite.snapshot)


def _mutants(mutation: Sequence[Survival]) -> Iterator[Line]:
    """Yield the terminal's lines on the survival of mutants in each suite."""
    for survival in mutation:
        yield Line("")
        yield from map(Line, survival.lines())


def _systems(systems: SystemsReport, verbosity: int, width: int, *, values: bool) -> Iterator[Line]:
    """Yield the terminal's tables on the systems of a suite; the table of all their values is optional."""
    yield Line("")
    yield Line(printable(systems.title), "bold")
    tables = system_tables(systems, metrics=systems.metrics if verbosity >= _EVERYTHING else systems.compare_by)
    for table in islice(tables, 0 if values else 1, None):
        yield from _title_table(table, width, everything=verbosity >= _EVERYTHING)


def _title_table(table: TextTable, width: int, *, everything: bool) -> Iterator[Line]:
    """Yield the terminal's lines of a report table below its title."""
    if table.title:
        yield Line("")
        yield Line(printable(table.title))
    yield from table.draw(width, everything=everything)


def _suite(
    suite: SuiteReport, verbosity: int, width: int, concluded: Sequence[str], *, printed: bool
) -> Iterator[Line]:
    """Yield the terminal's lines on a suite in detail: counts, tables, metrics, gates and approved scores."""
    everything = verbosity >= _EVERYTHING
    yield Line(printable(f"{suite.suite}  ({suite.path})"), "bold")
    counts = ", ".join(
        f"{count} {name.replace('_', ' ')}" for name, count in suite.counts.items() if count and name != "total"
    )
    yield Line(f"{counted(suite.total, 'case')}: {counts}{rate_text(suite)}")
    yield from map(Line, asking_lines(suite))
    notes = (*metric_notes(suite), *cluster_lines(suite))
    yield from (Line(printable(line), "yellow" * line.startswith("warning")) for line in notes)
    for table in suite.tables:
        if not table.title:
            yield Line("")
        yield from _title_table(table.as_text(), width, everything=everything)
        if table.left_out:
            yield Line(f"and {counted(table.left_out, 'row')} more")
        if table.note:
            yield Line(printable(table.note))
    yield from _metrics(suite, verbosity, width)
    for key in suite.groups if verbosity else ():
        yield Line("")
        yield from group_table(key, suite).draw(width, everything=everything)
    if errors := _errors(suite):
        yield Line(printable(f"errors: {errors}"))
    yield from _gates(suite, concluded, details=bool(verbosity))
    yield from not_judged(suite)
    yield from (Line(printable(line)) for line in change_lines(suite))
    yield from _snapshot(suite, everything=everything)
    if verbosity:
        yield from _worst(suite, width, printed=printed)
        yield from _cases(suite, width, everything=everything)


def _metrics(suite: SuiteReport, verbosity: int, width: int) -> Iterator[Line]:
    """Yield the terminal's table of a suite's metrics, with a legend for the counts that it has."""
    everything = verbosity >= _EVERYTHING
    # One case has neither intervals nor means: its metrics would be a long list of single numbers.
    few = _METRICS_OF_ONE if suite.total == 1 else None if verbosity else _METRICS
    listed = listed_metrics(suite, most=None if everything else few, in_tables=everything)
    if listed:
        if suite.tables:
            yield Line("")
        yield from metric_table(suite, listed).draw(width, everything=everything)
        if columns := legend(listed):
            yield Line(columns)
    if more := len(listed_metrics(suite)) - len(listed):
        yield Line(f"{counted(more, 'more metric')}: -vv")


def _cases(suite: SuiteReport, width: int, *, everything: bool) -> Iterator[Line]:
    """Yield the terminal's table of a small suite's cases."""
    table = case_table(suite)
    if table is not None:
        yield Line("")
        yield from table.draw(width, everything=everything)


def _worst(suite: SuiteReport, width: int, *, printed: bool) -> Iterator[Line]:
    """Yield the terminal's lines on a suite's worst cases, with findings unless pytest has printed the failing ones."""
    if suite.worst is None:
        return
    yield Line("")
    yield Line(printable(f"worst cases by {suite.worst.metric}"))
    for case in suite.worst.cases:
        yield Line(printable(f"{number(case.score)}  {case.id}"))
        reported = suite.case(case.id)
        findings = () if printed and reported.outcome in CaseRecord.BAD else reported.findings
        for line in findings[:MOST_LINES]:
            text = f"  {printable(line)}"
            yield Line(text if width_of(text) <= width else excerpt(text, width - _CUT, count=True))
        if len(findings) > MOST_LINES:
            yield Line(f"  and {counted(len(findings) - MOST_LINES, 'line')} more")


def _errors(suite: SuiteReport) -> str:
    """Sizes of a suite's error buckets; a name that several evaluators use is prefixed with the evaluator."""
    often = Counter(bucket.name for bucket in suite.error_buckets)
    return ", ".join(
        f"{len(bucket.cases)} {f'{bucket.evaluator}.' if often[bucket.name] > 1 else ''}{bucket.name}"
        for bucket in suite.error_buckets
        if bucket.cases
    )


def _gates(suite: SuiteReport, concluded: Sequence[str], *, details: bool, passed: bool = True) -> Iterator[Line]:
    """Yield the terminal's lines on a suite's gates, with statistics of a fall or with what made a gate fail.

    Args:
        suite: The suite.
        concluded: Sentences at the end of the report, which are not repeated here.
        details: Whether there are statistics.
        passed: Whether gates that passed are listed.
    """
    explained: set[str] = set()
    for gate in suite.gates:
        if gate.outcome == "not_judged" or (gate.outcome == "passed" and not passed):
            continue
        headline = f"{gate.gate}: {gate.headline.removesuffix('.')}"
        if any(headline in sentence for sentence in concluded):
            yield Line(gate.verdict_line(why=""), _COLOURS[gate.outcome])
        else:
            yield _gate_line(gate, suite, named=False, brief=not details)
        if details and gate.cause:
            yield Line(printable(f"  {gate.reason}"))
        if not details and gate.outcome == "failed":
            causes = [printable(line) for line in cause_lines(suite, gate)]
            yield from (Line(cause) for cause in causes if cause not in explained)
            explained.update(causes)


def _snapshot(suite: SuiteReport, *, everything: bool) -> Iterator[Line]:
    """Yield the terminal's lines on scores that differ from the approved ones, failures first; others are counted."""
    unchanged = [verdict for verdict in suite.snapshot if verdict.kind == "unchanged"]
    broken = suite.broken_scores
    changed = [
        *broken,
        *(verdict for verdict in suite.snapshot if verdict.kind != "unchanged" and verdict.outcome != "failed"),
    ]
    verdicts = suite.snapshot if everything else changed[: max(_CHANGES, len(broken))]
    for verdict in verdicts:
        yield _verdict(verdict)
        yield from (Line(printable(line)) for line in fall_lines(suite, verdict))
    if everything:
        return
    if more := len(changed) - len(verdicts):
        yield Line(f"snapshot: {counted(more, 'more changed metric')}: -vv")
    if unchanged:
        yield Line(f"snapshot: {counted(len(unchanged), 'metric')} as approved", "green")


def _verdict(verdict: SnapshotVerdict, suite: SuiteReport | None = None) -> Line:
    """The terminal's line of the verdict on an approved score."""
    where = f"{suite.suite}: " if suite else ""
    if verdict.outcome == "not_judged":
        return Line(printable(f"{where}snapshot {verdict.reason}"), "yellow")
    word, colour = ("PASSED", "green") if verdict.outcome == "passed" else ("FAILED", "red")
    return Line(printable(f"snapshot {word}  {where}{verdict.metric}  ({verdict.reason})"), colour)


_COLOURS = {"passed": "green", "failed": "red", "undecided": "yellow", "not_judged": "yellow"}


def _gate_line(gate: GateResult, suite: SuiteReport, *, named: bool = True, brief: bool = False) -> Line:
    """The terminal's line of the verdict on a gate.

    Args:
        gate: The verdict.
        suite: Its suite.
        named: Whether the line names the suite.
        brief: Whether a gate that did not fail has the first clause of its reason only.
    """
    why = gate.headline.partition("; ")[0] if brief and gate.outcome != "failed" else suite.gate_cause(gate)
    return Line(gate.verdict_line(suite.suite if named else "", why), _COLOURS[gate.outcome])

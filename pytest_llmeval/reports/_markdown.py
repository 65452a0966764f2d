"""The Markdown report, for files and for GitHub's job summary."""

import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tabulate import tabulate

from pytest_llmeval.core import (
    CaseRecord,
    GateResult,
    SnapshotVerdict,
    as_line,
    counted,
    number,
    printable,
    seconds,
)
from pytest_llmeval.data import OutputFile
from pytest_llmeval.reports._failures import repeats_line
from pytest_llmeval.reports._form import CaseReport, RunReport, SuiteReport, SystemsReport, count_text
from pytest_llmeval.reports._headline import MergeAnswer
from pytest_llmeval.reports._markdown_text import text
from pytest_llmeval.reports._overview import (
    MOST_LINES,
    OverviewRow,
    asking_lines,
    brief,
    case_table,
    cause_lines,
    cluster_lines,
    fall_lines,
    group_table,
    listed_metrics,
    metric_notes,
    metric_table,
    money_lines,
    rate_text,
    rows_of,
    system_tables,
)
from pytest_llmeval.reports._survival import Survival
from pytest_llmeval.reports._tables import TextTable

_MOST_ROWS = 50
"""Rows of a table of cases or faults."""
_GLANCE = 100
"""Width in characters of the metrics in the table of all suites."""

_VERDICTS = {
    "passed": "passed",
    "failed": "**FAILED**",
    "undecided": "**undecided**",
    "not_judged": "not evaluated",
    "incomplete": "incomplete",
}


def _table(rows: Sequence[Sequence[str]], headers: Sequence[str]) -> str:
    """A table of the Markdown report in GitHub's syntax."""
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True)


def _cap_table(rows: Sequence[Sequence[str]], headers: Sequence[str]) -> list[str]:
    """A table of the Markdown report with at most `_MOST_ROWS` rows, and a line on how many are left out."""
    return [_table(rows[:_MOST_ROWS], headers), "", *_more(len(rows) - _MOST_ROWS)]


def _more(count: int) -> list[str]:
    """The line of the Markdown report on how many rows a table leaves out; no line for none."""
    return [f"... and {count} more.", ""] if count > 0 else []


def _draw_table(table: TextTable) -> list[str]:
    """A table of the Markdown report below its title."""
    title = [f"### {text(table.title)}", ""] if table.title else []
    return [*title, _table([list(map(text, row)) for row in table.rows], list(map(text, table.headers))), ""]


def _fold_lines(name: str, more: str, lines: Sequence[str]) -> list[str]:
    """Lines of the Markdown report folded below a name, as HTML, where GitHub makes no links inside code."""
    summary = f"<code>{html.escape(printable(name))}</code>{html.escape(printable(more))}"
    return ["<details>", f"<summary>{summary}</summary>", "", *lines, "</details>", ""]


def to_markdown(report: RunReport) -> str:
    """The Markdown report of a run: verdict, suites at a glance, failed suites, and the rest folded."""
    commit = f", commit `{report.run.commit[:12]}`" if report.run.commit else ""
    lines = ["# Evaluation report", "", *_verdict(report)]
    lines += [
        f"{report.run.started_at}, {seconds(report.run.duration_s)}, pytest-llmeval-suite {report.run.version}{commit}",
        "",
    ]
    notes = filter(None, [report.uncalibrated_text, *money_lines(report.money)])
    lines += [part for line in notes for part in (text(line), "")]
    suites = sorted(report.suites, key=_urgency)
    if suites:
        rows = [_at_a_glance(row) for row in rows_of(suites)]
        lines += [_table(rows, ("verdict", "suite", "cases", "gates", "metrics of gates")), ""]
    else:
        lines += ["No suite ran.", ""]
    if report.faults:
        rows = [(text(path), text(fault)) for path, faults in report.faults.items() for fault in faults]
        lines += ["## Faulty files", "", *_cap_table(rows, ("suite", "fault"))]
    for suite in suites:
        if suite.failed:
            lines += [f"## {text(suite.suite)}", "", *_suite(suite)]
    for systems in report.systems:
        lines += _systems(systems, [suite.failed for suite in suites if systems.has(suite.path, suite.base_name)])
    for survival in report.mutation:
        lines += _mutants(survival)
    for suite in suites:
        if not suite.failed:
            lines += _fold_lines(suite.suite, f" {_counts(suite)}", _suite(suite))
    return "\n".join(lines).rstrip() + "\n"


def _verdict(report: RunReport) -> list[str]:
    """The verdict on the run in the Markdown report, with its cause and the counts."""
    if not (report.suites or report.faults):
        return []
    faults = [f"{counted(len(report.faults), 'faulty file')}"] if report.faults else []
    tally = "; ".join([*faults, *([report.totals.text] if report.suites else [])])
    return [MergeAnswer.of_run(report).markdown, "", tally, ""]


def _urgency(suite: SuiteReport) -> int:
    """Sort key of suites in the Markdown report: 0 for a failure, 1 for changed scores, 2 for the others."""
    changed = any(verdict.kind != "unchanged" for verdict in suite.snapshot)
    return 0 if suite.failed else 1 if changed else 2


def _at_a_glance(row: OverviewRow) -> tuple[str, ...]:
    """Cells of a suite in the overview table of the Markdown report."""
    summary = brief(row, _GLANCE)
    _, cases, gates = row.cells
    return _VERDICTS[row.suite.verdict], text(row.suite.suite), cases, gates, text(summary)


def _counts(suite: SuiteReport) -> str:
    """A suite's cases by outcome and its pass rate, as the Markdown report words them."""
    counts = ", ".join(count_text(count, name) for name, count in suite.counts.items() if count and name != "total")
    return f"{counted(suite.total, 'case')}: {counts}{rate_text(suite)}"


def _mutants(survival: Survival) -> list[str]:
    """The survival of a suite's mutants by kind in the Markdown report, folded, with the suite's weaknesses."""
    rate = "" if survival.rate is None else f", {survival.rate:.0%} survive"
    rows = [
        (text(kind.name), text(kind.why), str(kind.mutants), str(kind.survived), str(kind.undecided))
        for kind in survival.kinds
    ]
    faults = [f"- {text(weakness)}" for weakness in survival.weaknesses(Survival.SHOWN_FROM)]
    table = _table(rows[:_MOST_ROWS], ("mutant", "why it is wrong", "made", "survive", "undecided"))
    return _fold_lines(f"Mutants of {survival.suite}", f" {survival.mutants}{rate}", [table, "", *faults, ""])


def _systems(systems: SystemsReport, failures: Iterable[bool]) -> list[str]:
    """The systems of a suite side by side in the Markdown report, folded unless one of them failed."""
    lines: list[str] = []
    for table in system_tables(systems, metrics=systems.metrics, joined=True):
        lines += _draw_table(table)
    return [f"## {text(systems.title)}", "", *lines] if any(failures) else _fold_lines(systems.title, "", lines)


def _verdict_reason(
    suite: SuiteReport, verdict: GateResult | SnapshotVerdict, before: Mapping[str, CaseReport] | None = None
) -> str:
    """The reason for the verdict on a gate or an approved score, with the worst cases if it failed.

    Args:
        suite: The suite.
        verdict: On the gate, which may name cases itself, or on the score.
        before: Cases of an earlier run by id, for a score; default: the approved ones, if the report has them.
    """
    if isinstance(verdict, SnapshotVerdict):
        reason, cases = verdict.reason, list(fall_lines(suite, verdict, before))
    else:
        reason = suite.gate_cause(verdict)
        cases = list(cause_lines(suite, verdict)) if verdict.outcome == "failed" else []
    return "; ".join([reason, *map(str.strip, cases)])


def verdict_cells(
    suite: SuiteReport, verdict: GateResult | SnapshotVerdict, before: Mapping[str, CaseReport] | None = None
) -> tuple[str, str]:
    """The outcome of a gate or an approved score and its reason, as cells of a table; see `_verdict_reason`."""
    return _VERDICTS[verdict.outcome], text(_verdict_reason(suite, verdict, before))


def _suite(suite: SuiteReport) -> list[str]:
    """A suite's section of the Markdown report: failures, changes, tables of evaluators, and the rest folded."""
    lines = [text(suite.description, cell=False), ""] if suite.description else []
    lines += [f"{text(suite.path)}: {_counts(suite)}", ""]
    for line in (*asking_lines(suite), *metric_notes(suite), *cluster_lines(suite)):
        lines += [text(line), ""]
    gates = sorted(suite.gates, key=lambda gate: gate.outcome == "passed")
    if gates:
        rows = [(_VERDICTS[gate.outcome], text(gate.gate), text(_verdict_reason(suite, gate))) for gate in gates]
        lines += ["### Gates", "", _table(rows, ("verdict", "gate", "reason")), ""]
    moved = (verdict for verdict in suite.snapshot if verdict.kind != "unchanged" and verdict.outcome != "failed")
    changed = [*suite.broken_scores, *moved]
    if changed:
        changes = [
            (_VERDICTS[verdict.outcome], text(verdict.metric), text(_verdict_reason(suite, verdict)))
            for verdict in changed
        ]
        lines += ["### Snapshot", "", _table(changes, ("verdict", "metric", "reason")), ""]
    lines += _failing_table(suite) + _notes(suite)
    for table in suite.tables:
        lines += _draw_table(table.as_text())
        lines += _more(table.left_out)
        if table.note:
            lines += [text(table.note), ""]
    if not suite.failed:
        return lines + _details(suite)
    return lines + _fold_lines(suite.suite, ": metrics, groups, kinds of errors, worst cases", _details(suite))


def _failing_table(suite: SuiteReport) -> list[str]:
    """The table of a suite's failing cases in the Markdown report."""
    bad = [case for case in suite.cases if case.outcome in CaseRecord.BAD]
    if not bad:
        return []
    rows = [(text(case.id), case.outcome, text(case.reason or "")) for case in bad]
    return ["### Failing cases", "", *_cap_table(rows, ("case", "outcome", "reason"))]


def _details(suite: SuiteReport) -> list[str]:
    """A suite's metrics, groups, error buckets and worst cases in the Markdown report."""
    lines: list[str] = []
    if metrics := listed_metrics(suite, in_tables=False):
        lines += _draw_table(metric_table(suite, metrics))
    for key in suite.groups:
        lines += [f"### By {text(key)}", "", *_draw_table(group_table(key, suite))]
    cases = case_table(suite)
    return lines + _error_analysis(suite) + _worst(suite) + (["### Cases", "", *_draw_table(cases)] if cases else [])


def _notes(suite: SuiteReport) -> list[str]:
    """Texts and findings of a suite's cases in the Markdown report, where the report has these texts."""
    noted = [case for case in suite.cases if case.has_texts]
    lines = []
    for case in noted[:_MOST_ROWS]:
        rows = [
            (name, value) for name, value in (("input", case.input), ("expected", case.expected)) if value is not None
        ]
        for answer in case.answers:
            passed = "" if answer.passed is None else f", {answer.passed} passed"
            times = f", {counted(answer.times, 'time')}{passed}" if case.several else ""
            rows.append((f"prediction{times}", answer.value))
        lines += [f"#### {text(case.id)}", "", f"- at {text(case.place(suite.path))}"]
        lines += [f"- {name}: {text(as_line(value))}" for name, value in rows]
        repeats = case.details.get("repeats", {})
        if "parts_at" in repeats:
            lines.append(f"- repeats: {text(repeats_line(repeats))}")
        lines += [f"- {text(line)}" for line in case.findings]
        lines.append("")
    return lines + _more(len(noted) - _MOST_ROWS)


def _worst(suite: SuiteReport) -> list[str]:
    """The table of a suite's worst cases in the Markdown report, with the evaluators' findings."""
    if suite.worst is None:
        return []
    rows = [
        (text(case.id), number(case.score), "; ".join(map(text, suite.case(case.id).findings[:MOST_LINES])))
        for case in suite.worst.cases
    ]
    metric = text(suite.worst.metric)
    return ["### Worst cases", "", _table(rows, ("case", metric, "what is wrong")), ""]


def _error_analysis(suite: SuiteReport) -> list[str]:
    """The table of a suite's error buckets in the Markdown report, without empty ones."""
    rows = []
    for bucket in suite.error_buckets:
        if bucket.cases:
            ids = ", ".join(bucket.cases[:_MOST_ROWS])
            more = f", and {len(bucket.cases) - _MOST_ROWS} more" if len(bucket.cases) > _MOST_ROWS else ""
            condition = f"{bucket.metric} {bucket.limit}"
            rows.append((text(bucket.name), text(condition), str(len(bucket.cases)), text(ids) + more))
    return ["### Error analysis", "", _table(rows, ("errors", "where", "cases", "which")), ""] if rows else []


def write_markdown(report: RunReport, path: Path) -> None:
    """Write the Markdown report of a run to a file."""
    OutputFile(path).write_text([to_markdown(report)])


def append_markdown(report: RunReport, path: Path) -> None:
    """Append the Markdown report to a file that other steps write to, such as GitHub's job summary."""
    OutputFile(path).append_text(to_markdown(report))

"""The systems of a suite side by side: their part of the report, and its tables."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_llmeval.core.wording import counted, interval, number
from pytest_llmeval.reports.form import SystemDifference, SystemReport, SystemsReport, SystemValue
from pytest_llmeval.reports.layout import TextTable
from pytest_llmeval.reports.tables import FilledTable

if TYPE_CHECKING:
    from pytest_llmeval.gates.statistics.compare import Against, SystemRow, SystemTable
    from pytest_llmeval.gates.statistics.strengths import Strengths


def systems_report(
    suite: str,
    path: str,
    table: "SystemTable",
    compare_by: Sequence[str],
    joined: Sequence[FilledTable] = (),
    strengths: "Sequence[Strengths]" = (),
) -> SystemsReport:
    """Return the report of systems side by side.

    Args:
        suite: Name of the suite.
        path: The file, relative to pytest's rootdir.
        table: Values and differences.
        compare_by: Metrics that reports list first, and by group.
        joined: Tables of an evaluator with a column for each system.
        strengths: Strengths of the systems, for each evaluator that compared them in pairs.
    """
    return SystemsReport(
        suite=suite,
        path=path,
        reference=table.reference,
        confidence=table.confidence,
        compare_by=compare_by,
        strengths=strengths,
        systems=[_system(row, table.metrics, compare_by) for row in table.rows],
        joined=joined,
    )


def _system(row: "SystemRow", metrics: Sequence[str], compare_by: Sequence[str]) -> SystemReport:
    values = {name: value for name in metrics if (value := row.find(name)) is not None}
    groups = {
        label: {
            name: {metric: None if (value := group.find(metric)) is None else value.value for metric in compare_by}
            for name, group in groups.items()
        }
        for label, groups in row.result.groups.items()
    }
    return SystemReport(
        row.system,
        len(row.result.records),
        {name: SystemValue(value.value, value.low, value.high) for name, value in values.items()},
        {name: _difference(each) for name, each in row.against.items()},
        groups,
    )


def _difference(against: "Against") -> SystemDifference:
    change = against.difference
    return SystemDifference(
        change.value,
        change.baseline,
        change.difference,
        change.low,
        change.high,
        change.cases,
        change.notes,
        against.p_value,
        against.wins,
        against.ties,
        against.losses,
    )


def system_tables(report: SystemsReport, *, metrics: Sequence[str], joined: bool = False) -> Iterator[TextTable]:
    """Yield the tables: values, differences to the reference, those of evaluators, and groups.

    Args:
        report: The systems.
        metrics: Metrics whose differences are wanted.
        joined: Whether differences share one table instead of one for each metric.
    """
    listed = report.metrics
    rows = [
        (each.system, str(each.cases), *(_cell(each, metric, report.confidence) for metric in listed))
        for each in report.systems
    ]
    yield TextTable("", ("system", "cases", *listed), rows, spare=_from_the_end(2 + len(listed), 3))
    between = f"{report.confidence * 100:g}% interval"
    for strengths in report.strengths:
        strong = [(each.system, number(each.value), interval(each.low, each.high)) for each in strengths.systems]
        title = f"strength by {strengths.label} (Bradley-Terry with ties, {counted(strengths.pairs, 'pair')})"
        yield TextTable(title, ("system", "strength", between), strong)
    headers = ("metric", "system", "value", between, "change", between, "p", "win/tie/loss")
    changes = {metric: [(metric, *_change(each, metric)) for each in report.systems] for metric in metrics}
    against = f"against {report.reference}, case by case (p by Holm's method)"
    if joined:
        yield TextTable(f"all {against}", headers, [row for rows in changes.values() for row in rows], (0, 1))
    for metric, changed in () if joined else changes.items():
        # The interval of the value itself is in the table of metrics.
        yield TextTable(f"{metric} {against}", headers[1:], [row[1:] for row in changed], spare=(2, 6, 4))
    yield from (each.as_text() for each in report.joined)
    for label, names in report.groups.items():
        for metric in report.compare_by:
            groups = [
                (each.system, *(number(each.groups.get(label, {}).get(name, {}).get(metric)) for name in names))
                for each in report.systems
            ]
            columns = ("system", *names)
            yield TextTable(f"{metric} by {label}", columns, groups, spare=_from_the_end(len(columns), 2))


def _from_the_end(columns: int, needed: int) -> Sequence[int]:
    """Return the positions of dispensable columns, the last first."""
    return range(columns - 1, needed - 1, -1)


def _change(system: SystemReport, metric: str) -> tuple[str, ...]:
    """Return value and difference of a system; the reference has empty cells for the difference."""
    value, change = system.metrics.get(metric, SystemValue(None)), system.differences.get(metric)
    cells = (system.system, number(value.value), interval(value.low, value.high))
    if change is None:
        return (*cells, "", "", "", "")
    numbers = number(change.difference), interval(change.low, change.high), number(change.p_value)
    return (*cells, *numbers, f"{change.wins}/{change.ties}/{change.losses}")


def _cell(system: SystemReport, metric: str, confidence: float) -> str:
    """Return the value, starred if the difference from the reference is significant."""
    value, change = system.metrics.get(metric, SystemValue(None)), system.differences.get(metric)
    is_sure = change is not None and change.p_value is not None and change.p_value <= 1 - confidence
    return f"{number(value.value)}{'*' if is_sure else ''}"

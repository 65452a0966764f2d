"""The tables of systems side by side, for all reports."""

__all__ = ("SystemsReport", "system_tables", "systems_json")

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.wording import counted, interval, number
from pytest_llmeval.reports.layout import TextTable
from pytest_llmeval.reports.tables import FilledTable

if TYPE_CHECKING:
    from pytest_llmeval.gates.statistics.compare import Against, SystemRow, SystemTable
    from pytest_llmeval.gates.statistics.strengths import Strengths


@dataclass(frozen=True, slots=True)
class SystemsReport:
    """The systems of a suite side by side.

    Attributes:
        suite: Name of the suite.
        path: The file, relative to pytest's rootdir.
        table: Values and differences.
        compare_by: Metrics shown first, and by group.
        joined: Tables of an evaluator with a column for each system.
        strengths: Strengths of the systems, for each evaluator that compared them in pairs.
    """

    suite: str
    path: str
    table: "SystemTable"
    compare_by: Sequence[str]
    joined: Sequence[FilledTable] = ()
    strengths: "Sequence[Strengths]" = ()

    def has(self, path: str, base_name: str) -> bool:
        """Return whether a path and a name without system are those of this suite."""
        return (path, base_name) == (self.path, self.suite)

    @property
    def title(self) -> str:
        """The heading of the tables."""
        return f"{self.suite}: {counted(len(self.table.rows), 'system')}, compared with {self.table.reference}"

    @property
    def metrics(self) -> list[str]:
        """All metrics, those of `compare_by` first."""
        return list(dict.fromkeys([*self.compare_by, *self.table.metrics]))


def system_tables(report: SystemsReport, *, metrics: Sequence[str], joined: bool = False) -> Iterator[TextTable]:
    """Yield the tables: values, differences to the reference, those of evaluators, and groups.

    Args:
        report: The systems.
        metrics: Metrics whose differences are wanted.
        joined: Whether differences share one table instead of one for each metric.
    """
    table, listed = report.table, report.metrics
    rows = [
        (row.system, str(len(row.result.records)), *(_cell(row, metric, table.confidence) for metric in listed))
        for row in table.rows
    ]
    yield TextTable("", ("system", "cases", *listed), rows, spare=_from_the_end(2 + len(listed), 3))
    between = f"{table.confidence * 100:g}% interval"
    for each in report.strengths:
        strong = [(one.system, number(one.value), interval(one.low, one.high)) for one in each.systems]
        title = f"strength by {each.label} (Bradley-Terry with ties, {counted(each.pairs, 'pair')})"
        yield TextTable(title, ("system", "strength", between), strong)
    headers = ("metric", "system", "value", between, "change", between, "p", "win/tie/loss")
    changes = {metric: [(metric, *_change(row, metric)) for row in table.rows] for metric in metrics}
    against = f"against {table.reference}, case by case (p by Holm's method)"
    if joined:
        yield TextTable(f"all {against}", headers, [row for rows in changes.values() for row in rows], (0, 1))
    for metric, found in () if joined else changes.items():
        # The interval of the value itself is in the table of metrics.
        yield TextTable(f"{metric} {against}", headers[1:], [row[1:] for row in found], spare=(2, 6, 4))
    yield from (each.as_text() for each in report.joined)
    for label, names in table.groups.items():
        for metric in report.compare_by:
            groups = [(row.system, *(_of_group(row, label, name, metric) for name in names)) for row in table.rows]
            columns = ("system", *names)
            yield TextTable(f"{metric} by {label}", columns, groups, spare=_from_the_end(len(columns), 2))


def _from_the_end(columns: int, needed: int) -> Sequence[int]:
    """Return the positions of dispensable columns, the last first."""
    return range(columns - 1, needed - 1, -1)


def _change(row: "SystemRow", metric: str) -> tuple[str, ...]:
    """Return value and difference of a system; the reference has empty cells for the difference."""
    found, against = row.find(metric), row.against.get(metric)
    known = (
        (number(None), interval(None, None))
        if found is None
        else (number(found.value), interval(found.low, found.high))
    )
    if against is None:
        return (row.system, *known, "", "", "", "")
    change = against.difference
    numbers = number(change.difference), interval(change.low, change.high), number(against.p_value)
    return (row.system, *known, *numbers, f"{against.wins}/{against.ties}/{against.losses}")


def _cell(row: "SystemRow", metric: str, confidence: float) -> str:
    """Return the value, starred if the difference from the reference is significant."""
    found = row.find(metric)
    against = row.against.get(metric)
    sure = against is not None and against.p_value is not None and against.p_value <= 1 - confidence
    return f"{number(None if found is None else found.value)}{'*' if sure else ''}"


def _of_group(row: "SystemRow", label: str, name: str, metric: str) -> str:
    group = row.result.groups.get(label, {}).get(name)
    found = None if group is None else group.find(metric)
    return number(None if found is None else found.value)


def systems_json(report: SystemsReport) -> dict[str, Any]:
    """Return the tables as JSON data, in full precision."""
    table = report.table
    return {
        "suite": report.suite,
        "path": report.path,
        "reference": table.reference,
        "confidence": table.confidence,
        "compare_by": list(report.compare_by),
        **({"strengths": [asdict(each) for each in report.strengths]} if report.strengths else {}),
        "systems": [
            {
                "system": row.system,
                "cases": len(row.result.records),
                "metrics": {
                    name: {"value": found.value, "low": found.low, "high": found.high}
                    for name in table.metrics
                    if (found := row.find(name)) is not None
                },
                **({"differences": {name: _json(each) for name, each in row.against.items()}} if row.against else {}),
                "groups": {
                    label: {
                        name: {
                            metric: None if (found := group.find(metric)) is None else found.value
                            for metric in report.compare_by
                        }
                        for name, group in groups.items()
                    }
                    for label, groups in row.result.groups.items()
                },
            }
            for row in table.rows
        ],
    }


def _json(each: "Against") -> dict[str, Any]:
    kept = ("value", "baseline", "difference", "low", "high", "cases", "notes")
    data = asdict(each.difference)
    return {
        **{name: data[name] for name in kept},
        "p_value": each.p_value,
        "wins": each.wins,
        "ties": each.ties,
        "losses": each.losses,
    }

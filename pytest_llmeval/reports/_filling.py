"""The tables of evaluators, filled with the numbers of a run."""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from pytest_llmeval.core import (
    CaseRecord,
    CaseResult,
    ConfusionMatrix,
    Count,
    Detail,
    LabelKey,
    LabelTable,
    Metric,
    MetricIndex,
    MetricTable,
    ReportTable,
    Result,
    Totals,
    excerpt,
)
from pytest_llmeval.reports._tables import Cell, FilledTable, TableRow

_MOST_ROWS = 50
_LONGEST = 60


def fill_declared(
    declared: Mapping[str, Sequence[ReportTable]], metrics: MetricIndex, result: Result
) -> list[FilledTable]:
    """Fill the report tables that evaluators declare with a result's numbers, leaving out tables without rows.

    Args:
        declared: Label of an evaluator to its tables.
        metrics: Of the suite.
        result: Its numbers.
    """
    filled = []
    for label, tables in declared.items():
        numbers = _ResultNumbers(metrics, label, result)
        for table in tables:
            headers, rows = _layout(table, numbers)
            if rows:
                renamed = table.title and label != metrics.evaluators[label].name
                title = f"{label}: {table.title}" if renamed else table.title
                filled.append(
                    FilledTable(
                        title=title,
                        headers=headers,
                        rows=rows[:_MOST_ROWS],
                        cases=_counted_cases(table, numbers, headers, rows)
                        if isinstance(table, ConfusionMatrix)
                        else (),
                        left_out=max(0, len(rows) - _MOST_ROWS),
                        note=_note(table, numbers),
                        metrics=numbers.in_table(table),
                        names=len(table.rows[0][0]) if isinstance(table, MetricTable) else 1,
                        is_matrix=isinstance(table, ConfusionMatrix),
                    )
                )
    return filled


def _counted_cases(
    table: ConfusionMatrix, numbers: "_ResultNumbers", headers: Sequence[str], rows: Sequence[TableRow]
) -> list[tuple[int, int, list[str]]]:
    """Ids of the cases that each cell of a confusion matrix counts, with the cell's row and column."""
    down = {row[0]: place for place, row in enumerate(rows)}
    across = {name: place for place, name in enumerate(headers) if place}
    cells: dict[tuple[int, int], list[str]] = {}
    for record in numbers.result.records:
        observation = record.observations.get(numbers.label)
        for (true, predicted), count in ConfusionMatrix.read_cells(
            observation.counts if observation else {}, table.counts
        ).items():
            if count:
                cells.setdefault((down[LabelKey(true).name], across[LabelKey(predicted).name]), []).append(record.id)
    return [(*place, ids) for place, ids in sorted(cells.items())]


def _note(table: ReportTable, numbers: "_ResultNumbers") -> str:
    """An evaluator's explanation of metrics above 1, if its report table has such a value or bound."""
    if not isinstance(table, MetricTable):
        return ""
    values = [numbers.result.metrics.get(name) for name in numbers.in_table(table)]
    above = any(max(value.value or 0.0, value.high or 0.0) > 1 for value in values if value is not None)
    return table.above_one if above else ""


class _ResultNumbers(Struct, frozen=True, dict=True):
    """One evaluator's part of a suite's result, by the evaluator's own metric names."""

    index: MetricIndex
    label: str
    result: Result

    def metric(self, name: str) -> float | None:
        value = self.result.metrics.get(self.index.full_name(self.label, name))
        return None if value is None else value.value

    def members(self, family: str) -> dict[str, str]:
        """The members of a metric family in the result: label to full name."""
        declared = self.index.find(self.index.full_name(self.label, family))
        head = len(self.index.full_name(self.label, Metric(family).family))
        return {name[head:-1]: name for name in self.result.metrics if self.index.find(name) is declared}

    def in_table(self, table: ReportTable) -> frozenset[str]:
        """The full names of the metrics whose suite values are in a report table."""
        if isinstance(table, LabelTable):
            return frozenset(name for family in table.columns.values() for name in self.members(family).values())
        if isinstance(table, MetricTable):
            return frozenset(self.index.full_name(self.label, name) for name in table.metric_names())
        if isinstance(table, ConfusionMatrix) and table.metrics:
            return frozenset(self.members(table.metrics).values())
        return frozenset()

    @cached_property
    def totals(self) -> Totals:
        return Totals.add_up(
            record.observations[self.label] for record in self.result.records if self.label in record.observations
        )

    def of_label(self, table: LabelTable, header: str, label: str) -> float | None:
        """A cell of a report table of labels."""
        value = self.metric(f"{Metric(table.columns[header]).family}{label}]")
        return _count(value) if value is not None and header in table.counts else value

    def of_all(self, cell: str | Count) -> Cell:
        """A cell of a report table of all cases."""
        return _count(self.totals[cell.name]) if isinstance(cell, Count) else self.metric(cell)

    def of_case(self, case: CaseResult, record: CaseRecord, cell: str | Count | Detail) -> Cell:
        """A cell of a report table of cases."""
        if isinstance(cell, str):
            return case.metrics.get(self.index.full_name(self.label, cell))
        observation = record.observations.get(self.label)
        if observation is None:
            return None
        if isinstance(cell, Count):
            return _count(observation.counts.get(cell.name, 0))
        return _shorten_detail(observation.details.get(cell.name, ""))


def _layout(table: ReportTable, numbers: _ResultNumbers) -> tuple[Sequence[str], list[TableRow]]:
    """Headers and rows of an evaluator's report table, filled with the numbers of a result."""
    if isinstance(table, MetricTable):
        return table.headers, [[*names, *map(numbers.of_all, cells)] for names, cells in table.rows]
    if isinstance(table, LabelTable):
        return (table.header, *table.columns), [
            [label, *(numbers.of_label(table, header, label) for header in table.columns)]
            for label in dict.fromkeys(label for family in table.columns.values() for label in numbers.members(family))
        ]
    if isinstance(table, ConfusionMatrix):
        return _confusion(table, ConfusionMatrix.read_cells(numbers.totals, table.counts))
    return ("case", *table.columns), [
        [case.id, *(numbers.of_case(case, record, cell) for cell in table.columns.values())]
        for case, record in zip(numbers.result.cases, numbers.result.records, strict=True)
    ]


def _confusion(table: ConfusionMatrix, cells: Mapping[tuple[str, str], float]) -> tuple[Sequence[str], list[TableRow]]:
    """Headers and rows of a confusion matrix in a report: true labels down, predicted labels across."""
    first = [LabelKey.of_value(label) or LabelKey.NONE for label in table.labels] if cells else []
    true, predicted = (
        list(dict.fromkeys([*first, *sorted({cell[side] for cell in cells}, key=lambda key: LabelKey(key).order)]))
        for side in (0, 1)
    )
    rows: list[TableRow] = [
        [LabelKey(row).name, *(_count(cells.get((row, column), 0)) for column in predicted)] for row in true
    ]
    return ("true / predicted", *(LabelKey(key).name for key in predicted)), rows


def _count(value: float) -> float:
    """A cell of a confusion matrix: an integer, unless it is an average over repeats or a share."""
    return int(value) if value == int(value) else value


def _shorten_detail(detail: Any) -> str:
    """A case's detail as a text short enough for a cell of a report table."""
    text = detail if isinstance(detail, str) else json.dumps(detail, ensure_ascii=False)
    return excerpt(text, _LONGEST, lines=True)

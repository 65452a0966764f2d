"""The tables that evaluators declare, filled with the numbers of a result."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, TypeAlias, assert_never

from msgspec import Struct, field, structs

from pytest_llmeval.core.codec import WrittenField
from pytest_llmeval.core.evaluator import Metric
from pytest_llmeval.core.observation import Totals
from pytest_llmeval.core.results import CaseRecord, CaseResult, MetricIndex, Result
from pytest_llmeval.core.tables import (
    NO_LABEL,
    CaseTable,
    ConfusionMatrix,
    Count,
    Detail,
    LabelTable,
    MetricTable,
    ReportTable,
    label_key,
    label_name,
    label_order,
    metric_names,
    read_cells,
)
from pytest_llmeval.core.wording import number
from pytest_llmeval.reports.layout import TextTable

Cell: TypeAlias = str | float | int | None
TableRow: TypeAlias = Sequence[Cell]

_MOST_ROWS = 50
_LONGEST = 60


class FilledTable(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A table with its numbers.

    Attributes:
        title: The line above it; may be empty.
        headers: Of all columns.
        rows: Texts and numbers; ``None`` for a number that does not exist.
        cases: Row and column of a cell of a confusion matrix, and the ids of its cases.
        left_out: Number of rows beyond the limit.
        note: The line below it; may be empty.
        metrics: Full names of the metrics that it contains.
        names: Number of leading columns that name the row.
        is_matrix: Whether it is a confusion matrix, whose metrics need no other listing.
    """

    title: Annotated[str, WrittenField.ALWAYS] = ""
    headers: Sequence[str]
    rows: Sequence[TableRow]
    cases: Sequence[tuple[int, int, Sequence[str]]] = ()
    left_out: int = 0
    note: str = ""

    metrics: frozenset[str] = field(name="(metrics)", default=frozenset())
    names: int = field(name="(names)", default=1)
    is_matrix: bool = field(name="(is matrix)", default=False)

    @property
    def text_columns(self) -> frozenset[int]:
        """Positions of the columns that hold text only."""
        columns = enumerate(zip(*self.rows, strict=True))
        return frozenset(place for place, cells in columns if all(isinstance(cell, str) for cell in cells))

    def lines(self) -> Iterator[list[str]]:
        """Yield the rows as text; what repeats the first cell of the row above is left out."""
        above: Cell = None
        for first, *others in self.rows:
            yield ["" if first == above else _text(first), *map(_text, others)]
            above = first

    def as_text(self) -> TextTable:
        """Return the table as text, whose last columns may be dropped, except for the first with numbers."""
        spare = range(len(self.headers) - 1, self.names, -1)
        return TextTable(self.title, self.headers, list(self.lines()), sorted(self.text_columns), spare)


def fill_tables(metrics: MetricIndex, result: Result) -> list[FilledTable]:
    """Fill the tables of all evaluators, leaving out those without rows.

    Args:
        metrics: Of the suite.
        result: Its numbers.
    """
    filled = []
    for label, evaluator in metrics.evaluators.items():
        numbers = _ResultNumbers(metrics, label, result)
        for table in evaluator.tables():
            headers, rows = _layout(table, numbers)
            if rows:
                renamed = table.title and label != evaluator.name
                title = f"{label}: {table.title}" if renamed else table.title
                left_out = max(0, len(rows) - _MOST_ROWS)
                note = _note(table, numbers)
                shown = numbers.shown(table)
                one = FilledTable(
                    title=title, headers=headers, rows=rows[:_MOST_ROWS], metrics=shown, left_out=left_out, note=note
                )
                if isinstance(table, ConfusionMatrix):
                    one = structs.replace(one, cases=_counted_cases(table, numbers, headers, rows), is_matrix=True)
                elif isinstance(table, MetricTable):
                    one = structs.replace(one, names=len(table.rows[0][0]))
                filled.append(one)
    return filled


def join_tables(systems: Mapping[str, Sequence[FilledTable]]) -> list[FilledTable]:
    """Return the tables that have one column of metrics, such as the scores of components, with one for each system.

    Args:
        systems: System to the tables of its results.
    """
    joined = []
    for table in next(iter(systems.values()), ()):
        if len(table.headers) != table.names + 1 or not table.metrics:
            continue
        columns = {name: _column(table, tables) for name, tables in systems.items()}
        names = [tuple(row[: table.names]) for row in table.rows]
        rows = [(*each, *(column.get(each) for column in columns.values())) for each in names]
        joined.append(structs.replace(table, headers=(*table.headers[: table.names], *columns), rows=rows))
    return joined


def _column(table: FilledTable, among: Iterable[FilledTable]) -> dict[tuple[Cell, ...], Cell]:
    """Return the numbers of a system by the names of their rows, from its table of the same title."""
    same = (each for each in among if (each.title, each.headers) == (table.title, table.headers))
    return {tuple(row[: table.names]): row[-1] for each in same for row in each.rows}


def _counted_cases(
    table: ConfusionMatrix, numbers: "_ResultNumbers", headers: Sequence[str], rows: Sequence[TableRow]
) -> list[tuple[int, int, list[str]]]:
    """Return row and column of each cell with the cases that it counts."""
    down = {row[0]: place for place, row in enumerate(rows)}
    across = {name: place for place, name in enumerate(headers) if place}
    found: dict[tuple[int, int], list[str]] = {}
    for record in numbers.result.records:
        observation = record.observations.get(numbers.label)
        for (true, predicted), count in read_cells(observation.counts if observation else {}, table.counts).items():
            if count:
                found.setdefault((down[label_name(true)], across[label_name(predicted)]), []).append(record.id)
    return [(*place, ids) for place, ids in sorted(found.items())]


def _note(table: ReportTable, numbers: "_ResultNumbers") -> str:
    """Return the explanation of metrics above 1, if the table has such a value or bound."""
    if not isinstance(table, MetricTable):
        return ""
    found = [numbers.result.metrics.get(name) for name in numbers.shown(table)]
    above = any(max(each.value or 0.0, each.high or 0.0) > 1 for each in found if each is not None)
    return table.above_one if above else ""


@dataclass(frozen=True)
class _ResultNumbers:
    """The part of a result that belongs to one evaluator, by the evaluator's own names."""

    index: MetricIndex
    label: str
    result: Result

    def metric(self, name: str) -> float | None:
        found = self.result.metrics.get(self.index.full_name(self.label, name))
        return None if found is None else found.value

    def members(self, family: str) -> dict[str, str]:
        """Return label to full name of the members that a family has in the result."""
        declared = self.index.find(self.index.full_name(self.label, family))
        head = len(self.index.full_name(self.label, Metric(family).family))
        return {name[head:-1]: name for name in self.result.metrics if self.index.find(name) is declared}

    def shown(self, table: ReportTable) -> frozenset[str]:
        """Return the full names of the metrics whose suite values are in a table."""
        if isinstance(table, LabelTable):
            return frozenset(name for family in table.columns.values() for name in self.members(family).values())
        if isinstance(table, MetricTable):
            return frozenset(self.index.full_name(self.label, name) for name in metric_names(table))
        if isinstance(table, ConfusionMatrix) and table.metrics:
            return frozenset(self.members(table.metrics).values())
        return frozenset()

    @cached_property
    def totals(self) -> Totals:
        return Totals.of(
            record.observations[self.label] for record in self.result.records if self.label in record.observations
        )

    def of_label(self, table: LabelTable, header: str, label: str) -> float | None:
        """Return a cell of a table of labels."""
        value = self.metric(f"{Metric(table.columns[header]).family}{label}]")
        return _count(value) if value is not None and header in table.counts else value

    def of_all(self, cell: str | Count) -> Cell:
        """Return a cell of a table of all cases."""
        return _count(self.totals[cell.name]) if isinstance(cell, Count) else self.metric(cell)

    def of_case(self, case: CaseResult, record: CaseRecord, cell: str | Count | Detail) -> Cell:
        """Return a cell of a table of cases."""
        if isinstance(cell, str):
            return case.metrics.get(self.index.full_name(self.label, cell))
        observation = record.observations.get(self.label)
        if observation is None:
            return None
        if isinstance(cell, Count):
            return _count(observation.counts.get(cell.name, 0))
        return _shortened(observation.details.get(cell.name, ""))


def _layout(table: ReportTable, numbers: _ResultNumbers) -> tuple[Sequence[str], list[TableRow]]:
    """Return headers and rows."""
    if isinstance(table, MetricTable):
        return table.headers, [[*names, *map(numbers.of_all, cells)] for names, cells in table.rows]
    if isinstance(table, LabelTable):
        return (table.header, *table.columns), [
            [label, *(numbers.of_label(table, header, label) for header in table.columns)]
            for label in dict.fromkeys(label for family in table.columns.values() for label in numbers.members(family))
        ]
    if isinstance(table, ConfusionMatrix):
        return _confusion(table, read_cells(numbers.totals, table.counts))
    if isinstance(table, CaseTable):
        return ("case", *table.columns), [
            [case.id, *(numbers.of_case(case, record, cell) for cell in table.columns.values())]
            for case, record in zip(numbers.result.cases, numbers.result.records, strict=True)
        ]
    assert_never(table)


def _confusion(table: ConfusionMatrix, cells: Mapping[tuple[str, str], float]) -> tuple[Sequence[str], list[TableRow]]:
    first = [label_key(label) or NO_LABEL for label in table.labels] if cells else []
    true, predicted = (
        list(dict.fromkeys([*first, *sorted({cell[side] for cell in cells}, key=label_order)])) for side in (0, 1)
    )
    rows: list[TableRow] = [
        [label_name(row), *(_count(cells.get((row, column), 0)) for column in predicted)] for row in true
    ]
    return ("true / predicted", *map(label_name, predicted)), rows


def _text(cell: Cell) -> str:
    return str(cell) if isinstance(cell, str | int) else number(cell)


def _count(value: float) -> float:
    """Return a count as an integer if it is one: averages over repeats and shares are not."""
    return int(value) if value == int(value) else value


def _shortened(detail: Any) -> str:
    text = detail if isinstance(detail, str) else json.dumps(detail, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."

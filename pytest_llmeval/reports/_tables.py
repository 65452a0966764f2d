"""Tables of reports."""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from dataclasses import field as plain_field
from datetime import datetime
from typing import Annotated, NamedTuple, TypeAlias

from msgspec import Struct, field, structs

from pytest_llmeval.core import (
    AlignedTable,
    Metric,
    WrittenField,
    counted,
    number,
    printable,
    width_of,
)

"""A number that is written again as it was read: as `float`, ``2`` would come back as ``2.0``."""

_GAP = "  "


class Line(NamedTuple):
    """A line of a terminal report and its colour: ``green``, ``red``, ``yellow``, ``bold`` or none."""

    text: str
    colour: str = ""


class TextTable(Struct, frozen=True):
    """A table of a report as text, for Markdown or the terminal.

    Attributes:
        title: The line above it; may be empty.
        headers: Of the columns.
        rows: The cells.
        texts: Positions of left-aligned columns; the others hold numbers.
        spare: Positions of columns that may be dropped for lack of room, in this order.
    """

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: Sequence[int] = (0,)
    spare: Sequence[int] = ()

    def draw(self, width: int, *, everything: bool = False) -> Iterator[Line]:
        """Yield the lines of a report table without its title.

        Args:
            width: Of the terminal, in columns.
            everything: Whether dropped columns follow in further tables; if not, they are counted.
        """
        columns = [[printable(cell) for cell in column] for column in zip(self.headers, *self.rows, strict=True)]
        widths = [max(map(width_of, column)) for column in columns]
        fixed = [place for place in range(len(columns)) if place not in self.spare]
        spare = list(self.spare)
        while True:
            fitting = _fit_columns(fixed, spare, widths, width)
            if everything and spare and len(fitting) == len(fixed):
                fitting = sorted([*fixed, spare[-1]])
            rows = list(zip(*(columns[place] for place in fitting), strict=True))
            texts = [column for column, place in enumerate(fitting) if place in self.texts]
            yield from map(Line, AlignedTable(rows, texts).lines())
            spare = [place for place in spare if place not in fitting]
            if not spare:
                return
            if not everything:
                yield Line(f"{counted(len(spare), 'more column')}: -vv or a wider terminal")
                return
            yield Line("")


def _fit_columns(fixed: Sequence[int], spare: Sequence[int], widths: Sequence[int], width: int) -> list[int]:
    """The columns of a report table that fit the terminal; spare columns are dropped in their order."""
    columns = sorted([*fixed, *spare])
    for place in spare:
        if sum(widths[column] + len(_GAP) for column in columns) - len(_GAP) <= width:
            break
        columns.remove(place)
    return columns


Cell: TypeAlias = str | float | int | None
TableRow: TypeAlias = Sequence[Cell]


class FilledTable(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A report table that an evaluator declares, filled with the numbers of a run.

    Attributes:
        title: The line above it; may be empty.
        headers: Of all columns.
        rows: Texts and numbers; ``None`` for a number that does not exist.
        cases: Row and column of a cell of a confusion matrix, and the ids of its cases.
        left_out: Number of rows beyond the limit.
        note: The line below it; may be empty.
        metrics: Full names of the metrics that it contains.
        names: Number of leading columns that name the row.
        is_matrix: Whether it is a confusion matrix, whose metrics are not listed elsewhere.
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
        """Yield the rows of the report table as text; what repeats the first cell of the row above is left out."""
        above: Cell = None
        for first, *others in self.rows:
            yield ["" if first == above else _cell_text(first), *map(_cell_text, others)]
            above = first

    def with_derived(self) -> "FilledTable":
        """The table of a JSON report with the fields that follow from others: its first columns of text name rows."""
        columns = [all(isinstance(cell, str) for cell in cells) for cells in zip(*self.rows, strict=True)]
        names = next((place for place, is_text in enumerate(columns) if not is_text), len(columns))
        return structs.replace(self, names=max(1, names), is_matrix=bool(self.cases))

    def as_text(self) -> TextTable:
        """The report table as text, whose last columns may be dropped, except for the first with numbers."""
        spare = range(len(self.headers) - 1, self.names, -1)
        return TextTable(self.title, self.headers, list(self.lines()), sorted(self.text_columns), spare)


def _cell_text(cell: Cell) -> str:
    """The text of a cell in a report table."""
    return str(cell) if isinstance(cell, str | int) else number(cell)


@dataclass(frozen=True, slots=True)
class Point:
    """A point in the reported history of a suite: a run, or an approval of one.

    Attributes:
        time: Start in UTC; for an approval, the day.
        commit: What was checked out; empty outside a repository.
        values: Metric name to value.
        intervals: Metric name to the bounds of its interval.
        gates: Gate to ``passed``, ``failed`` or ``not_judged``; ``None`` if unknown.
        cases: Number of cases; ``None`` if unknown.
        basis: ``data``, ``evaluator`` and ``judge``, which with the predictions determine the values, to their
            fingerprints, as far as known.
        approved: Whether its scores were approved.
        noted: Whether the history of runs has it; if not, only the score file does, with its day.
    """

    time: datetime
    commit: str = ""
    values: Mapping[str, float | None] = plain_field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = plain_field(default_factory=dict)
    gates: Mapping[str, str] | None = None
    cases: int | None = None
    basis: Mapping[str, str] = plain_field(default_factory=dict)
    approved: bool = False
    noted: bool = True

    @property
    def failed_gates(self) -> list[str]:
        """The gates that failed at this point of the history."""
        return [gate for gate, outcome in (self.gates or {}).items() if outcome == "failed"]

    @property
    def when(self) -> str:
        """The time of the point for display: ``2026-11-22 10:43``, or the day of an approval."""
        return f"{self.time:%Y-%m-%d %H:%M}" if self.noted else f"{self.time:%Y-%m-%d}"


@dataclass(frozen=True, slots=True)
class Timeline:
    """The history of a suite, or of one variant of it, as reports draw it.

    Attributes:
        path: The suite file as reports name it.
        variant: The Python test and the system or variant in brackets; empty without either.
        points: In the order of time.
        bridged: Fingerprints of judges before and after a change that a bridge makes comparable.
    """

    path: str
    variant: str
    points: Sequence[Point]
    bridged: AbstractSet[tuple[str, str]] = frozenset()

    @property
    def title(self) -> str:
        """Suite file and variant of the reported history."""
        return self.path + self.variant

    @property
    def metrics(self) -> list[str]:
        """Names of all metrics in the history: those with gates in the last run first, the pass rate last."""
        names = dict.fromkeys(name for point in reversed(self.points) for name in point.values)
        gates = next((" ".join(point.gates) for point in reversed(self.points) if point.gates), "")

        def last(name: str) -> tuple[bool, bool]:
            return name == Metric.PASS_RATE, re.search(rf"(?<!\w){re.escape(name)}(?!\w)", gates) is None

        return sorted(names, key=last)

    def changes(self) -> list[tuple[str, ...]]:
        """The kinds of changes at each point: ``data``, ``evaluator``, ``judge``, or ``bridged judge``."""
        known: dict[str, str] = {}
        cases: int | None = None
        changes = []
        for point in self.points:
            changed = [
                f"bridged {name}" if (known[name], value) in self.bridged else name
                for name, value in point.basis.items()
                if known.get(name, value) != value
            ]
            counts = {cases, point.cases} - {None}
            if "data" not in point.basis and len(counts) > 1:
                changed.append("data")
            known |= point.basis
            cases = point.cases if point.cases is not None else cases
            changes.append(tuple(sorted(changed)))
        return changes

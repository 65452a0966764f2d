"""Rows of any table to cases, by a map from the parts of a case to the columns of the table."""

__all__ = ("Fields", "Row", "add_rows")

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from pytest_llmeval.case import MISSING, Case
from pytest_llmeval.faults import suggest
from pytest_llmeval.sources.base import CaseFile
from pytest_llmeval.sources.values import case_id, json_text, kind

_PARTS = ("id", "input", "expected", "prediction", "labels", "tags", "thresholds")
_ABSENT: Final = object()


@dataclass(frozen=True)
class Fields:
    """Which columns feed which part of a case; a part that is not named is read from the column of its own name.

    A column is named as in the file, or by a dotted path into nested data: ``meta.type``, ``answers.0``.

    Attributes:
        id: The column of the id; where there is none, rows are counted from 1.
        input: One column, or several by the name that they get in the input: ``{question: q, context: text}``.
        expected: As `input`.
        prediction: As `input`.
        labels: A column that holds an object of labels, or label to column: ``{question_type: type}``.
        tags: A column that holds a list of tags, or a text with commas between them.
        thresholds: A column that holds an object of limits, or metric to column.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    id: str | None = None
    input: str | dict[str, str] | None = None
    expected: str | dict[str, str] | None = None
    prediction: str | dict[str, str] | None = None
    labels: str | dict[str, str] | None = None
    tags: str | None = None
    thresholds: str | dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a data file.

    Attributes:
        data: The row; an object if it is a good one.
        line: Where it stands.
        column: Where it stands.
        path: Its path in the file, such as ``[3]``.
    """

    data: Any
    line: int
    column: int = 1
    path: str = ""


def _pick(row: Mapping[str, Any], column: str) -> Any:
    """Return the value in `column`, or at the dotted path that it is; `_ABSENT` if there is none."""
    if column in row:
        return row[column]
    here: Any = row
    for step in column.split("."):
        if isinstance(here, dict) and step in here:
            here = here[step]
        elif isinstance(here, list) and step.isdecimal() and int(step) < len(here):
            here = here[int(step)]
        else:
            return _ABSENT
    return here


class _RowReader:
    """Reads rows of one file; remembers which columns it met."""

    def __init__(self, file: CaseFile, fields: Fields | None, *, cells: bool) -> None:
        self.file = file
        self.cells = cells
        self.mapped = fields is not None
        named = {part: getattr(fields, part, None) for part in _PARTS}
        self.columns: dict[str, str | dict[str, str]] = {part: named[part] or part for part in _PARTS}
        self.named = {
            column: part
            for part, columns in named.items()
            for column in (columns.values() if isinstance(columns, dict) else [columns])
            if column
        }
        self.met: set[str] = set()
        self.keys: dict[str, Row] = {}
        self.lacking: list[tuple[Row, str]] = []

    def fault(self, row: Row, path: str, message: str) -> None:
        where = f"{row.path}.{path}" if row.path and path else row.path or path
        self.file.faults.add(row.line, row.column, where, message)

    def take(self, row: Row, column: str) -> Any:
        value = _pick(row.data, column)
        if value is not _ABSENT:
            self.met.add(column)
        return value

    def value(self, row: Row, part: str) -> Any:
        """Return what a part of the case is: one column's value, or an object of several; `_ABSENT` if none."""
        columns = self.columns[part]
        if isinstance(columns, str):
            return self.take(row, columns)
        values = {name: self.take(row, column) for name, column in columns.items()}
        values = {name: value for name, value in values.items() if value is not _ABSENT}
        return values or _ABSENT

    def add(self, number: int, row: Row) -> None:
        """Add the case of a row."""
        if not isinstance(row.data, dict):
            self.fault(row, "", f"found {kind(row.data)}, expected an object")
            return
        for key in row.data:
            self.keys.setdefault(key, row)
        for part in ("id", "input"):
            column = self.columns[part]
            if isinstance(column, str) and column in self.named and _pick(row.data, column) is _ABSENT:
                self.lacking.append((row, column))
        faults_before = self.file.faults.found
        case = Case(
            id=self.id(row, number),
            input=self.present(row, "input"),
            expected=self.expected(row),
            prediction=self.prediction(row),
            labels=self.labels(row),
            tags=self.tags(row),
            thresholds=self.thresholds(row),
            line=row.line,
        )
        if self.file.faults.found == faults_before:
            column = self.columns["id"]
            self.file.add(case, f"{row.path}.{column}" if row.path else str(column), row.column)

    def present(self, row: Row, part: str) -> Any:
        value = self.value(row, part)
        return None if value is _ABSENT else value

    def id(self, row: Row, number: int) -> str:
        value = self.value(row, "id")
        if value is _ABSENT:
            return str(number)
        name = case_id(value)
        if name is None:
            self.fault(row, str(self.columns["id"]), f"found {kind(value)}, expected text or a whole number")
        return name or ""

    def expected(self, row: Row) -> Any:
        value = self.present(row, "expected")
        return None if self.cells and value == "" else value

    def prediction(self, row: Row) -> Any:
        value = self.value(row, "prediction")
        return MISSING if value is _ABSENT else value

    def object(self, row: Row, part: str) -> Iterable[tuple[str, str, Any]]:
        """Yield name, path and value of what stands in an object, or in several columns; nulls are left out."""
        columns = self.columns[part]
        found = self.present(row, part)
        if found is None or (self.cells and found == ""):
            return
        if not isinstance(found, dict):
            self.fault(row, str(columns), f"found {kind(found)}, expected an object")
            return
        for name, value in found.items():
            path = columns[name] if isinstance(columns, dict) else f"{columns}.{name}"
            if value is not None and not (self.cells and value == ""):
                yield name, path, value

    def labels(self, row: Row) -> dict[str, str]:
        labels = {}
        for name, path, value in self.object(row, "labels"):
            if isinstance(value, list | dict):
                self.fault(row, path, f"found {kind(value)}, expected text")
            else:
                labels[name] = json_text(value)
        return labels

    def tags(self, row: Row) -> tuple[str, ...]:
        value = self.present(row, "tags")
        if isinstance(value, str):
            value = [tag.strip() for tag in value.split(",") if tag.strip()]
        if value is None or (isinstance(value, list) and all(isinstance(tag, str) for tag in value)):
            return tuple(value or ())
        self.fault(row, str(self.columns["tags"]), f"found {kind(value)}, expected a list of texts")
        return ()

    def thresholds(self, row: Row) -> dict[str, Any]:
        limits = {}
        for name, path, value in self.object(row, "thresholds"):
            limit = _number(value) if self.cells else value
            if isinstance(limit, bool) or not isinstance(limit, int | float | dict):
                self.fault(row, path, f"found {kind(value)}, expected a number, or an object with `min` or `max`")
            else:
                limits[name] = limit
        return limits

    def finish(self, count: int) -> None:
        """Add the faults that only the whole table shows."""
        if not count:
            self.file.faults.add(0, 0, "", "found no row, expected at least one")
            return
        for column in sorted(self.named.keys() - self.met):
            known = ", ".join(sorted(self.keys))
            found = f"found no row with the column {column!r}, which `fields.{self.named[column]}` names"
            self.file.faults.add(0, 0, "", f"{found}, expected one of: {known}{suggest(column, self.keys)}")
        for row, column in self.lacking:
            if column in self.met:
                self.fault(row, column, f"found no value, expected one: `fields.{self.named[column]}` names it")
        if not self.mapped:
            for key in sorted(self.keys.keys() - set(_PARTS), key=lambda key: (self.keys[key].line, key)):
                expected = f"expected one of: {', '.join(_PARTS)} (or a map under `fields`){suggest(key, _PARTS)}"
                self.fault(self.keys[key], "", f"found the key {key!r}, {expected}")


def _number(cell: Any) -> Any:
    try:
        value = float(cell)
    except (TypeError, ValueError):
        return cell
    return value if math.isfinite(value) else cell


def add_rows(file: CaseFile, rows: Iterable[Row], fields: Fields | None, *, cells: bool = False) -> None:
    """Add a case for each good row.

    Args:
        file: Gets the cases and faults.
        rows: The rows.
        fields: Which columns are read; ``None`` for rows whose keys are those of a case, where others are faults.
        cells: Whether the values are cells of a text table: there an empty one stands for nothing, except that an
            empty prediction is an empty answer, and numbers are written as text.
    """
    reader = _RowReader(file, fields, cells=cells)
    count = 0
    for count, row in enumerate(rows, 1):
        reader.add(count, row)
    if count or not file.faults.found:
        reader.finish(count)

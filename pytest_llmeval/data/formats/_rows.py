"""Cases from rows."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from pytest_llmeval.core import MISSING, Case, suggest
from pytest_llmeval.data.files._places import FaultLog, render_path
from pytest_llmeval.data.formats._base import (
    ABSENT,
    CELL_CHECKS,
    PARTS,
    CaseFile,
    CaseId,
    ColumnMap,
    DataRow,
    FileSource,
    json_text,
    kind,
    pick,
)


class _RowReader:
    """A reader of the rows of one data file as cases; it remembers which columns it met."""

    def __init__(self, file: CaseFile, fields: ColumnMap | None, *, cells: bool) -> None:
        self.file = file
        self.cells = cells
        self.mapped = fields is not None
        named = {part: getattr(fields, part, None) for part in PARTS}
        self.columns: dict[str, str | dict[str, str]] = {part: named[part] or part for part in PARTS}
        self.named = {
            column: part
            for part, columns in named.items()
            for column in (columns.values() if isinstance(columns, dict) else [columns])
            if column
        }
        self.met: set[str] = set()
        self.keys: dict[str, DataRow] = {}
        self.lacking: list[tuple[DataRow, str, str, str]] = []
        self.case = ""

    def fault(
        self, row: DataRow, path: str, message: str, *, spares_case: bool = False, case: str | None = None
    ) -> None:
        """Add a fault of a row."""
        where = f"{row.path}.{path}" if row.path and path else row.path or path
        about = self.case if case is None else case
        self.file.faults.add(row.line, row.column, where, message, spares_case=spares_case, case=about)

    def take(self, row: DataRow, column: str) -> Any:
        """The value of a row in a column, which counts as met."""
        value = pick(row.data, column)
        if value is not ABSENT:
            self.met.add(column)
        return value

    def value(self, row: DataRow, part: str) -> Any:
        """The value of a part of the case: of one column, or an object of several; `ABSENT` if none."""
        columns = self.columns[part]
        if isinstance(columns, str):
            # Most rows have few of the parts; a path has dots.
            return self.take(row, columns) if columns in row.data or "." in columns else ABSENT
        values = {name: self.take(row, column) for name, column in columns.items()}
        values = {name: value for name, value in values.items() if value is not ABSENT}
        return values or ABSENT

    def add(self, number: int, row: DataRow) -> None:
        """Add the case of a row."""
        self.case = str(number)
        if not isinstance(row.data, dict):
            self.fault(row, "", f"found {kind(row.data)}, expected an object")
            return
        for key in row.data:
            self.keys.setdefault(key, row)
        faults_before = self.file.faults.count
        name = self.id(row, number)
        if name and self.is_foreign(row, name):
            return
        self.case = name or str(number)
        for part in ("id", "input"):
            column = self.columns[part]
            if isinstance(column, str) and column in self.named and pick(row.data, column) is ABSENT:
                self.lacking.append((row, part, column, name))
        messages = self.messages(row)
        case = Case(
            id=name,
            input=self.present(row, "input") if messages is None else messages,
            conversation=messages is not None,
            expected=self.expected(row),
            prediction=self.prediction(row),
            labels=self.labels(row),
            tags=self.tags(row),
            thresholds=self.thresholds(row),
            line=row.line,
            checks=self.checks(row),
            always=self.always(row),
        )
        if row.objects:
            case = self.with_objects(case, row)
        if self.file.faults.count == faults_before:
            column = self.columns["id"]
            self.file.add(case, f"{row.path}.{column}" if row.path else str(column), row.column)

    def is_foreign(self, row: DataRow, name: str) -> bool:
        """Whether another shard reads the row."""
        share = self.file.share
        if share is None:
            return False
        answered = self.value(row, "prediction") is not ABSENT
        return not share.takes(name, answered=answered, checked=self.value(row, "checks") is not ABSENT)

    def with_objects(self, case: Case, row: DataRow) -> Case:
        """The case of a row with the objects of the user's behind its parts."""
        for part in _OBJECTS:
            columns, form = self.columns[part], getattr(case, part)
            if isinstance(columns, str):
                value = row.objects.get(columns, form)
            else:
                held = {name: row.objects[column] for name, column in columns.items() if column in row.objects}
                value = {**form, **held} if held and isinstance(form, Mapping) else form
            if value is not form and form is not MISSING:
                case = case.with_object(part, form, value)
        return case

    def present(self, row: DataRow, part: str) -> Any:
        """The value of a part of a row's case; ``None`` for an absent part."""
        value = self.value(row, part)
        return None if value is ABSENT else value

    def id(self, row: DataRow, number: int) -> str:
        """The case id of a row: its own, or its number in the file."""
        value = self.value(row, "id")
        if value is ABSENT:
            return str(number)
        name = CaseId.read(value)
        if name is None:
            self.fault(row, str(self.columns["id"]), f"found {kind(value)}, expected text or a whole number")
        return name or ""

    def expected(self, row: DataRow) -> Any:
        """The expectation of a row's case; empty cells are absent."""
        value = self.present(row, "expected")
        if self.cells and isinstance(value, dict):
            value = {name: cell for name, cell in value.items() if cell != ""} or None
        return None if self.cells and value == "" else value

    def prediction(self, row: DataRow) -> Any:
        """The prediction of a row's case, or `MISSING`."""
        value = self.value(row, "prediction")
        return MISSING if value is ABSENT else value

    def object(self, row: DataRow, part: str) -> Iterator[tuple[str, str, Any]]:
        """Yield name, path and value of what an object holds, or several columns; nulls are left out."""
        columns = self.columns[part]
        content = self.present(row, part)
        if content is None or (self.cells and content == ""):
            return
        if not isinstance(content, dict):
            example = f", or columns by name: {part}={{{columns!r}: {columns!r}}}" if columns != part else ""
            self.fault(row, str(columns), f"found {kind(content)}, expected an object{example}")
            return
        for name, value in content.items():
            path = columns[name] if isinstance(columns, dict) else f"{columns}.{name}"
            if value is not None and not (self.cells and value == ""):
                yield name, path, value

    def labels(self, row: DataRow) -> dict[str, str]:
        labels = {}
        for name, path, value in self.object(row, "labels"):
            if isinstance(value, list | dict):
                self.fault(row, path, f"found {kind(value)}, expected text")
            else:
                labels[name] = json_text(value)
        return labels

    def tags(self, row: DataRow) -> tuple[str, ...]:
        value = self.present(row, "tags")
        if isinstance(value, str):
            value = [tag.strip() for tag in value.split(",") if tag.strip()]
        if value is None or (isinstance(value, list) and all(isinstance(tag, str) for tag in value)):
            return tuple(value or ())
        self.fault(row, str(self.columns["tags"]), f"found {kind(value)}, expected a list of texts")
        return ()

    def always(self, row: DataRow) -> bool:
        """Whether the case of a row always runs."""
        value = self.present(row, "always")
        if self.cells and isinstance(value, str):
            value = {"true": True, "false": False, "": False}.get(value.strip().lower(), value)
        if value is None or isinstance(value, bool):
            return bool(value)
        self.fault(row, str(self.columns["always"]), f"found {kind(value)}, expected true or false")
        return False

    def thresholds(self, row: DataRow) -> dict[str, Any]:
        limits = {}
        for name, path, value in self.object(row, "thresholds"):
            limit = _cell_number(value) if self.cells else value
            if isinstance(limit, bool) or not isinstance(limit, int | float | dict):
                expected = "a number, or an object with `min` or `max`"
                self.fault(row, path, f"found {kind(value)}, expected {expected}")
            else:
                limits[name] = limit
        return limits

    def checks(self, row: DataRow) -> tuple[Any, ...]:
        value = self.present(row, "checks")
        if value is None or (self.cells and value == ""):
            return ()
        column = str(self.columns["checks"])
        if self.cells and isinstance(value, str):
            value = self.written_checks(row, column, value)
        elif isinstance(value, dict) and (self.cells or isinstance(self.columns["checks"], dict)):
            value = [{name: self.argument(row, f"checks.{name}", cell)} for name, cell in value.items() if cell != ""]
        if not isinstance(value, list):
            self.fault(row, column, f"found {kind(value)}, expected a list of checks")
            return ()
        return tuple(value)

    def written_checks(self, row: DataRow, column: str, cell: str) -> Any:
        """The checks of a cell: a list, in YAML or JSON, or one check."""
        checks = self.yaml(row, column, cell)
        return [checks] if isinstance(checks, dict) else checks

    def argument(self, row: DataRow, column: str, cell: Any) -> Any:
        """The argument of a check: the text of a cell, unless it is true, a number, or a list or object."""
        if not self.cells or cell in ("true", "TRUE"):
            return cell if not self.cells else True
        number = _cell_number(cell)
        if number is not cell:
            return int(number) if number.is_integer() and "." not in cell else number
        return self.yaml(row, column, cell) if cell.lstrip()[:1] in ("[", "{") else cell

    def yaml(self, row: DataRow, column: str, cell: str) -> Any:
        """The value of a cell of YAML; a fault in it is one of the row."""
        from pytest_llmeval.data.files._yaml import load_yaml

        log = FaultLog(self.file.display_path)
        data, _ = load_yaml(cell, log)
        for fault in log.listed():
            self.fault(row, column, fault.message)
        return data if not log.count else []

    def messages(self, row: DataRow) -> Any:
        """The script of a row's conversation, or null; its messages are checked where the suite is read."""
        value = self.present(row, "messages")
        if value is None or (self.cells and value == ""):
            return None
        column = str(self.columns["messages"])
        if not isinstance(value, list):
            self.fault(row, column, f"found {kind(value)}, expected a list of messages")
        elif self.present(row, "input") is not None:
            self.fault(row, column, "found both an input and messages, expected one of them")
        return value

    def finish(self, count: int) -> None:
        """Add the faults that only the whole table shows; the cases of their rows have been added."""
        if not count:
            self.file.faults.add(0, 0, "", "the file has no row")
            return
        for column in sorted(self.named.keys() - self.met):
            known = ", ".join(sorted(self.keys))
            unused = f"unknown column {column!r}, which `fields.{self.named[column]}` names"
            self.file.faults.add(0, 0, "", f"{unused}, expected one of: {known}{suggest(column, self.keys)}")
        for row, part, column, case in self.lacking:
            if column in self.met:
                message = f"the value is missing: `fields.{part}` names it"
                self.fault(row, column, message, spares_case=True, case=case)
        if not self.mapped:
            for key in [key for key in self.keys if key not in PARTS]:
                self.fault(*self.unknown(key), spares_case=True, case="")

    def unknown(self, key: str) -> tuple[DataRow, str, str]:
        """Place and text of the fault of a key, or of a column, that no part of a case has."""
        row, expected = self.keys[key], f"one of: {', '.join(PARTS)}"
        if not self.cells:
            return row, "", f"found the key {key!r}, expected {expected} (or a map under `fields`){suggest(key, PARTS)}"
        header = DataRow(row.data, 1)
        if not key.strip():
            return header, "", f"found a column without a name, expected {expected}: name it, or remove it"
        part = key.lower() if key.lower() in PARTS else _USUAL.get(key.lower(), "input")
        advice = f"(or a map under `fields`, such as fields: {{{part}: {key}}}){suggest(key, PARTS)}"
        return header, "", f"found the column {key!r}, expected {expected} {advice}"


_OBJECTS: Final = ("input", "expected", "prediction")

_USUAL: Final = {"answer": "expected", "gold": "expected", "reference": "expected", "target": "expected"} | {
    "completion": "prediction",
    "output": "prediction",
    "response": "prediction",
}
"""Names of columns to the parts of a case that they usually are; others are shown as the input."""


def _cell_number(cell: Any) -> Any:
    """The number in a CSV cell, such as a threshold; the cell itself if it is no finite number."""
    try:
        value = float(cell)
    except (TypeError, ValueError):
        return cell
    return value if math.isfinite(value) else cell


def add_rows(file: CaseFile, rows: Iterable[DataRow], fields: ColumnMap | None, *, cells: bool = False) -> None:
    """Add a case for each good row.

    Args:
        file: Gets the cases and faults.
        rows: The rows.
        fields: Which columns are read; ``None`` for rows that have the keys of a case, where others are faults.
        cells: Whether the values are cells of a text table, where an empty cell means absent, except that
            an empty prediction is an empty answer, and numbers are written as text.
    """
    reader = _RowReader(file, fields, cells=cells)
    count = 0
    for count, row in enumerate(rows, 1):
        reader.add(row.number or count, row)
    if count or not file.faults.count:
        reader.finish(count)


def is_blank(row: Mapping[str, Any]) -> bool:
    """Whether a row of a table has no value: spreadsheets write such rows behind the last one."""
    return all(map(_is_blank, row.values()))


def _is_blank(value: Any) -> bool:
    """Whether a cell of a data file has no value: blank text, null or NaN."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


_NESTED = ("checks", "labels", "thresholds")


@dataclass(frozen=True)
class CsvSource(FileSource):
    """One row a case; columns such as ``labels.question_type`` and ``thresholds.f1`` make objects.

    An empty cell is an absent value, except that an empty prediction is an empty answer.

    Attributes:
        fields: Which columns feed which part of a case; without it they have the parts' names.
        delimiter: The one character between cells.
    """

    format: ClassVar[str] = "csv"
    divisible: ClassVar[bool] = True

    fields: ColumnMap | None = None
    delimiter: str = ","

    def read(self, file: CaseFile) -> None:
        """Add the cases of the rows."""
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n':
            message = f"found {kind(self.delimiter)}, expected one character other than a quote or a line break"
            file.faults.add(0, 0, "delimiter", message)
            return
        nest = _nest_columns if self.fields is None else dict
        rows = (DataRow(nest(cells), line) for line, cells in file.csv_rows(file.faults, self.delimiter))
        add_rows(file, rows, self.fields, cells=True)


def _nest_columns(cells: dict[str, str]) -> dict[str, Any]:
    """A CSV row with dotted columns as objects: ``thresholds.f1`` becomes ``{"thresholds": {"f1": ...}}``.

    A column named after a check belongs to ``checks``.
    """
    row: dict[str, Any] = {}
    for column, cell in cells.items():
        part, dot, name = column.partition(".")
        if column.removeprefix("not_") in CELL_CHECKS and "checks" not in cells:
            part, dot, name = "checks", ".", column
        if dot and part in _NESTED and part not in cells:
            row.setdefault(part, {})[name] = cell
        else:
            row[column] = cell
    return row


@dataclass(frozen=True)
class JsonSource(FileSource):
    """A list of objects.

    Attributes:
        items: Where the list is inside an object: a key, or keys with dots between them.
        fields: Which keys feed which part of a case; without it the objects have the keys of a case.
    """

    format: ClassVar[str] = "json"
    divisible: ClassVar[bool] = True

    items: str | None = None
    fields: ColumnMap | None = None

    def read(self, file: CaseFile) -> None:
        """Add the cases of the list."""
        path = self.items.split(".") if self.items is not None else []
        document = file.read_json(depth=len(path) + 1)
        data: Any = document.data
        for step in path:
            data = data.get(step) if isinstance(data, dict) else None
        if not isinstance(data, list):
            message = f"found {kind(data)}, expected a list of objects{_list_key_advice(data)}"
            file.faults.add(*document.locate(path), render_path(path), message)
            return
        places = [(index, render_path([*path, index])) for index in range(len(data))]
        rows = [DataRow(data[index], *document.locate([*path, index]), place) for index, place in places]
        add_rows(file, rows, self.fields)


def _list_key_advice(data: Any) -> str:
    """The advice for a JSON data file whose cases lie inside an object: to name their key under ``items``."""
    lists = [key for key, value in data.items() if isinstance(value, list)] if isinstance(data, dict) else []
    return f": name it under `items`, such as {lists[0]!r}" if lists else ""


@dataclass(frozen=True)
class JsonlSource(FileSource):
    """One object a line.

    Attributes:
        fields: Which keys feed which part of a case; without it the objects have the keys of a case.
    """

    format: ClassVar[str] = "jsonl"
    divisible: ClassVar[bool] = True

    fields: ColumnMap | None = None

    def read(self, file: CaseFile) -> None:
        """Add the cases of the lines."""
        add_rows(file, (DataRow(value, line) for line, value in file.jsonl_lines(file.faults)), self.fields)

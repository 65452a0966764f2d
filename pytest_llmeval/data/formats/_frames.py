"""Data frames, Arrow tables and datasets as rows of plain data."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass
from dataclasses import fields as dataclass_fields
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar, get_origin, get_type_hints, is_typeddict

from msgspec import Struct

from pytest_llmeval.core import (
    MISSING,
    Case,
    Fault,
    LlmevalError,
    MissingExtraError,
    form_of,
    is_typed,
)
from pytest_llmeval.data.formats._base import PARTS, CaseFile, CaseId, ColumnMap, DataRow, FileSource, RowShare
from pytest_llmeval.data.formats._rows import add_rows, is_blank

Input_co = TypeVar("Input_co", covariant=True)
Expected_co = TypeVar("Expected_co", covariant=True)

ColumnNames: TypeAlias = str | Sequence[str] | Mapping[str, str] | None
"""The columns that feed a part of a case: one, several under their names, or under others."""

CaseColumns: TypeAlias = ColumnNames | type
"""What feeds a part of a case: columns, or a type, by its fields."""

_FORMATS: Final = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".parquet": "arrow",
    ".pq": "arrow",
    ".arrow": "arrow",
}

_EXPECTED: Final = "a data frame, an Arrow table, a dataset, or an iterable of objects"
_ROWS_AT_ONCE: Final = 2_000
_ARROW_SUFFIXES: Final = (".arrow", ".parquet", ".pq")


def rows_of(data: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of data as JSON data; what is absent (null, NaN, NaT) is left out.

    Args:
        data: A data frame of pandas, polars or another library that narwhals knows, an Arrow table, a dataset, or an
            iterable of mappings, cases, or objects of dataclasses and pydantic models.

    Raises:
        MissingExtraError: A data frame is given, and narwhals is not installed.
        LlmevalError: The data has no rows of this form.
    """
    return _plain_rows(_native_rows(data))


def _plain_rows(rows: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield rows of a data frame or other data in memory as JSON data.

    Raises:
        LlmevalError: One cannot be.
    """
    for number, row in enumerate(rows):
        plain = _object_row(row)
        if isinstance(plain, BadCell):
            column = f", {plain.column}" if plain.column else ""
            raise LlmevalError(f"row {number}{column}: {plain.message}")
        for name, value in plain.objects.items():
            try:
                form_of(value, nan_is_absent=True, strict=True)
            except ValueError as error:
                raise LlmevalError(f"row {number}, {name}: {error}") from None
        yield dict(plain.data)


class BadCell(Struct, frozen=True):
    """The fault of a row of data in memory that cannot become JSON data.

    Attributes:
        column: Of the cell; empty for the row as a whole.
        message: What was found, and what was expected.
        cells: The row; empty if it is none.
    """

    column: str
    message: str
    cells: Mapping[str, Any] = {}


class ObjectRow(Struct, frozen=True):
    """A row of data in memory.

    Attributes:
        data: JSON data without what is absent.
        objects: Column to the object that the data has as its JSON form.
    """

    data: Mapping[str, Any]
    objects: Mapping[str, Any] = {}


def _object_row(row: Any) -> ObjectRow | BadCell:
    """A row of data in memory in its JSON form with the objects behind it, or its fault."""
    is_case = isinstance(row, Case)
    if type(row) is dict or not (is_case or is_typed(row)):
        cells = row
    else:
        cells = _case_row(row) if is_case else _fields_of_row(row)
    if not isinstance(cells, Mapping):
        return BadCell("", f"found {type(row).__name__}, expected {_EXPECTED}")
    data, objects = {}, {}
    for key, value in cells.items():
        name = str(key)
        if name not in _PART_KEYS and name in PARTS:
            try:
                form = form_of(value, nan_is_absent=True, strict=True)
            except ValueError as error:
                return BadCell(name, str(error), cells)
        else:
            form = form_of(value, nan_is_absent=not is_case)
        if form is not None:
            data[name] = form
            if form is not value:
                objects[name] = value
    return ObjectRow(data, objects)


def _fields_of_row(row: Any) -> dict[str, Any]:
    """The fields of a row of data in memory that is a typed object, under the names of their columns."""
    form = form_of(row, nan_is_absent=True)
    return {name: getattr(row, name, value) for name, value in form.items()} if isinstance(form, dict) else {}


def _native_rows(data: Any) -> Iterable[Any]:
    """The rows of a data frame, an Arrow table, a dataset or an iterable of cases, before they become JSON data."""
    if hasattr(data, "column_names") and hasattr(data, "features"):  # of the library datasets
        return list(data)
    if isinstance(data, Mapping | str | bytes):
        known = f" with the keys {', '.join(map(str, data))}: choose one" if isinstance(data, Mapping) else ""
        raise LlmevalError(f"found {type(data).__name__}{known}, expected {_EXPECTED}")
    if hasattr(data, "to_pylist"):
        listed: list[Any] = data.to_pylist()
        return listed
    if hasattr(data, "collect_schema") or hasattr(data, "columns"):
        with MissingExtraError.unless_installed("a data frame of cases", "frames"):
            import narwhals as nw
        frame = nw.from_native(data, pass_through=False)
        eager = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
        rows: Iterator[dict[str, Any]] = eager.iter_rows(named=True)
        return rows
    if isinstance(data, Iterable):
        return iter(data)
    raise LlmevalError(f"found {type(data).__name__}, expected {_EXPECTED}")


def _case_row(case: Case) -> dict[str, Any]:
    """The row of a `Case` object among data in memory, under the keys of a data file."""
    parts = {name: getattr(case, name) for name in _PART_KEYS}
    more = {name: value for name in _MORE_KEYS if (value := getattr(case, name))}
    return {"id": case.id} | {name: value for name, value in parts.items() if value is not MISSING} | more


_PART_KEYS: Final = ("input", "expected", "prediction")
_MORE_KEYS: Final = ("labels", "tags", "thresholds", "checks", "always")


@dataclass(frozen=True)
class RowSource(FileSource):
    """Rows that are there already, with the place in Python where they were given.

    Attributes:
        rows: As `rows_of` yields them, and what is wrong with the others.
        columns: Which columns feed which part of a case; ``None`` for rows with the keys of a case.
        line: Where the rows were given.
    """

    format: ClassVar[str] = "rows"

    rows: tuple[ObjectRow | BadCell, ...] = ()
    columns: ColumnMap | None = None
    line: int = 1
    _files: dict[tuple[Path, Path], CaseFile] = field(default_factory=dict, repr=False, compare=False)

    def _data(self, folder: Path, share: RowShare | None = None) -> CaseFile:
        """The cases of the rows, which are read once: when they are declared."""
        del share  # they are in memory already
        place = folder, Path.cwd()  # messages name the file relative to them
        if place not in self._files:
            self._files[place] = super()._data(folder)
        return self._files[place]

    def read(self, file: CaseFile) -> None:
        """Add the cases of the rows."""
        good = []
        for number, row in enumerate(self.rows):
            if isinstance(row, BadCell):
                path = f"[{number}].{row.column}" if row.column else f"[{number}]"
                name = CaseId.read(row.cells.get(getattr(self.columns, "id", None) or "id")) or str(number + 1)
                file.faults.add(self.line, 1, path, row.message, case=name)
            elif not is_blank(row.data):
                good.append(DataRow(dict(row.data), self.line, 1, f"[{number}]", row.objects, number + 1))
        add_rows(file, good, self.columns)

    def faulty(self, faults: Iterable[Fault]) -> int:
        """The number of rows with faults that keep their case from running."""
        return len(
            {fault.path.partition("]")[0] for fault in faults if fault.path[:1] == "[" and not fault.spares_case}
        )


@dataclass(frozen=True)
class ArrowSource(FileSource):
    """A row a case, of a Parquet or Arrow file, or of a folder in which the library ``datasets`` has saved a dataset.

    Null is an absent value.

    Attributes:
        fields: Which columns feed which part of a case; without it they have the parts' names.
        split: Of a saved dataset with several splits, the one that is read.
    """

    format: ClassVar[str] = "arrow"
    divisible: ClassVar[bool] = True

    fields: ColumnMap | None = None
    split: str | None = None

    def read(self, file: CaseFile) -> None:
        """Add the cases of the rows; the first row is line 1."""
        try:
            rows = enumerate(_plain_rows(_rows_of_table(file.path, self.split)), 1)
            add_rows(file, (DataRow(row, line) for line, row in rows if not is_blank(row)), self.fields)
        except MissingExtraError:
            raise
        except (LlmevalError, OSError, ValueError, KeyError) as error:
            file.cases.clear()
            file.faults.add(0, 0, "", f"cannot be read as Arrow or Parquet: {error}")


def _rows_of_table(path: Path, split: str | None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file, or of a folder of files, of which few are in memory at a time.

    Raises:
        MissingExtraError: pyarrow is not installed.
        LlmevalError: There is no such split, or a file has other columns than the first.
    """
    columns = None
    for file in _files_of_table(path, split):
        with _open_table(file) as (schema, batches):
            columns = columns or schema
            if not schema.equals(columns):
                raise LlmevalError(f"found other columns in {file.name} than in the first file")
            for batch in batches:
                for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
                    yield from batch.slice(start, _ROWS_AT_ONCE).to_pylist()


def _files_of_table(path: Path, split: str | None) -> list[Path]:
    """The files of a Parquet or Arrow table, in the order of its rows.

    Raises:
        LlmevalError: There is none.
    """
    if not path.is_dir():
        return [path]
    splits = path / "dataset_dict.json"
    if splits.is_file():
        names = json.loads(splits.read_text(encoding="utf-8"))["splits"]
        if split not in names:
            raise LlmevalError(f"found split {split!r}, expected one of {', '.join(names)}")
        path /= str(split)
    state = path / "state.json"
    if state.is_file():
        names = [Path(file["filename"]).name for file in json.loads(state.read_text(encoding="utf-8"))["_data_files"]]
        return [path / name for name in names]
    listed = sorted(file for file in path.glob("**/*.parquet") if split is None or file.name.startswith(split))
    if not listed:
        raise LlmevalError("the folder has neither a dataset nor a Parquet file")
    return listed


@contextmanager
def _open_table(path: Path) -> Iterator[tuple[Any, Iterable[Any]]]:
    """Open a file of Parquet, or of either of Arrow's forms: a stream, which ``datasets`` writes, or with an index.

    Yields:
        Its schema, and its batches of rows.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    with MissingExtraError.unless_installed("a file of Arrow or Parquet", "parquet"):
        import pyarrow as pa
        from pyarrow import parquet
    if path.suffix != ".arrow":
        with parquet.ParquetFile(path) as table:
            yield table.schema_arrow, table.iter_batches(_ROWS_AT_ONCE)
        return
    with pa.memory_map(str(path)) as stream:
        indexed = bytes(stream.read(6)) == b"ARROW1"
        stream.seek(0)
        if indexed:
            file = pa.ipc.open_file(stream)
            yield file.schema, map(file.get_batch, range(file.num_record_batches))
        else:
            reader = pa.ipc.open_stream(stream)
            yield reader.schema, reader


def columns_of_file(path: Path) -> list[str] | None:
    """The columns of a data file, as far as its first row shows them; ``None`` where that is not known."""
    try:
        if path.suffix == ".csv":
            with path.open(encoding="utf-8-sig", newline="") as stream:
                return next(csv.reader(stream), [])
        if path.suffix == ".jsonl":
            with path.open(encoding="utf-8") as stream:
                first = json.loads(next(islice((line for line in stream if line.strip()), 1), "{}"))
            return list(first) if isinstance(first, dict) else None
        if path.is_dir() or path.suffix in _ARROW_SUFFIXES:
            with _open_table(_files_of_table(path, None)[0]) as (schema, _):
                return list(schema.names)
    except (OSError, ValueError, LlmevalError):
        pass  # reading the cases says what is wrong with the file
    return None


class CaseData(Struct, Generic[Input_co, Expected_co], frozen=True):
    """The cases of a declared suite.

    Attributes:
        source: A source of the rows, or what a suite file says under ``source``.
        types: Part of a case to its type.
        fault: Why there are no cases; empty if there are some.
    """

    source: RowSource | Mapping[str, Any] | None
    types: Mapping[str, Any] = {}
    fault: str = ""

    @property
    def rows(self) -> RowSource | None:
        """The rows, if they are in memory."""
        return self.source if isinstance(self.source, RowSource) else None

    @property
    def file_entry(self) -> Mapping[str, Any] | None:
        """The entry ``source`` of a suite file, if the rows are in a file."""
        return None if isinstance(self.source, RowSource) else self.source

    @classmethod
    def from_data(
        cls,
        data: Any,
        caller: FrameType,
        *,
        columns: Mapping[str, CaseColumns],
        options: Mapping[str, Any] = {},
    ) -> "CaseData[Any, Any]":
        """The cases of data in memory or in a file.

        Args:
            data: As of `rows_of`, or the path of a file, relative to the caller's.
            caller: Who declares them.
            columns: Part of a case to what feeds it; parts that are not there are read from columns of their names.
            options: Of the source of a file, such as its ``format``.
        """
        file = Path(caller.f_code.co_filename)
        types = {part: column for part, column in columns.items() if _is_type(column)}
        try:
            if isinstance(data, str | Path):
                path = file.parent / data
                kind = options.get("format") or ("arrow" if path.is_dir() else _FORMATS.get(path.suffix.lower()))
                if kind is None:
                    return cls(None, types, f"found {path.name!r}, expected a name in {', '.join(_FORMATS)}")
                named = _column_map(columns, columns_of_file(path) if types else None)
                source: dict[str, Any] = {"format": kind, "path": str(data), **options}
                return cls({**source, "fields": named} if named else source, types)
            data = list(data) if isinstance(data, Iterator) else data
            rows = tuple(map(_object_row, _native_rows(data)))
            if all(isinstance(row, BadCell) for row in rows):
                list(rows_of(data))  # which says what no row is
        except LlmevalError as error:
            return cls(None, types, str(error))
        known = list(dict.fromkeys(name for row in rows if isinstance(row, ObjectRow) for name in row.data))
        named = _column_map(columns, known)
        column_map = ColumnMap(**named) if named else None
        return cls(RowSource(str(file), None, rows, column_map, caller.f_lineno), types)


def _column_map(columns: Mapping[str, CaseColumns], known: Sequence[str] | None) -> dict[str, Any]:
    """The option ``fields`` of a source of cases, from the columns and types that a suite in Python declares."""
    named: dict[str, Any] = {}
    for part, selection in columns.items():
        if selection is None:
            continue
        if isinstance(selection, str):
            named[part] = selection
        elif isinstance(selection, Mapping):
            named[part] = dict(selection)
        elif _is_type(selection):
            field_names = list(_fields_of(selection))
            if field_names and not (known is not None and part in known and part not in field_names):
                named[part] = {name: name for name in field_names if known is None or name in known} or part
        elif isinstance(selection, Sequence):
            named[part] = {name: name for name in selection}
    return named


def _fields_of(kind: Any) -> Iterable[str]:
    """The keys of a user's type for a part of a case: a pydantic model, dataclass or typed dictionary."""
    if hasattr(kind, "model_fields"):
        return (info.alias or name for name, info in kind.model_fields.items())
    if is_dataclass(kind):
        return (attribute.name for attribute in dataclass_fields(kind))
    return get_type_hints(kind) if is_typeddict(kind) else ()


def _is_type(selection: Any) -> bool:
    """Whether the column of a part of a case is given as a type, such as a model or ``dict[int, str]``."""
    return isinstance(selection, type) or is_typeddict(selection) or get_origin(selection) is not None

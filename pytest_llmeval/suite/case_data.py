"""Cases of suites declared in Python: from data frames, datasets, iterables and files, with types."""

__all__ = ("CaseColumns", "CaseData", "cases", "typed_faults")

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeAlias, get_type_hints, is_typeddict

from msgspec import Struct

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.data.files.validation import adapter, typed
from pytest_llmeval.data.formats.fields import ColumnMap
from pytest_llmeval.data.formats.frames import RowSource, columns_of_file, rows_of

CaseColumns: TypeAlias = str | Sequence[str] | Mapping[str, str] | type | None
"""What feeds a part of a case: a column, several under their names or under others, or a type, by its fields."""

_FORMATS: Final = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".parquet": "arrow",
    ".pq": "arrow",
    ".arrow": "arrow",
}
_TYPED: Final = ("input", "expected", "prediction")


class CaseData(Struct, frozen=True):
    """Cases as a suite is told about them.

    Attributes:
        source: A source of the rows, or what a suite file says under ``source``.
        types: Part of a case to its type.
        fault: Why there are no cases; empty where there are.
    """

    source: RowSource | Mapping[str, Any] | None
    types: Mapping[str, Any] = {}
    fault: str = ""


def cases(
    data: Any,
    caller: FrameType,
    *,
    columns: Mapping[str, CaseColumns],
    options: Mapping[str, Any],
) -> CaseData:
    """Return cases of data in memory or in a file.

    Args:
        data: As of `rows_of`, or the path of a file, relative to the caller's.
        caller: Who declares them.
        columns: Part of a case to what feeds it; parts that are not there are read from columns of their names.
        options: Further options of the source of a file.
    """
    file = Path(caller.f_code.co_filename)
    types = {part: each for part, each in columns.items() if isinstance(each, type) or is_typeddict(each)}
    try:
        if isinstance(data, str | Path):
            path = file.parent / data
            kind = options.get("format") or ("arrow" if path.is_dir() else _FORMATS.get(path.suffix.lower()))
            if kind is None:
                return CaseData(None, types, f"found {path.name!r}, expected a name in {', '.join(_FORMATS)}")
            named = _column_map(columns, columns_of_file(path) if types else None)
            source: dict[str, Any] = {"format": kind, "path": str(data), **options}
            return CaseData({**source, "fields": named} if named else source, types)
        rows = tuple(rows_of(data))
    except LlmevalError as error:
        return CaseData(None, types, str(error))
    known = list(dict.fromkeys(name for row in rows for name in row))
    named = _column_map(columns, known)
    kept = ColumnMap(**named) if named else None
    return CaseData(RowSource(str(file), None, rows, kept, caller.f_lineno), types)


def _column_map(columns: Mapping[str, CaseColumns], known: Sequence[str] | None) -> dict[str, Any]:
    """Return ``fields`` of a source."""
    named: dict[str, Any] = {}
    for part, given in columns.items():
        if given is None:
            continue
        if isinstance(given, str):
            named[part] = given
        elif isinstance(given, Mapping):
            named[part] = dict(given)
        elif isinstance(given, type) or is_typeddict(given):
            wanted = list(_fields_of(given))
            if wanted and not (known is not None and part in known and part not in wanted):
                named[part] = {name: name for name in wanted if known is None or name in known} or part
        else:
            named[part] = {name: name for name in given}
    return named


def _fields_of(kind: Any) -> Iterable[str]:
    if hasattr(kind, "model_fields"):
        return (each.alias or name for name, each in kind.model_fields.items())
    if is_dataclass(kind):
        return (each.name for each in dataclass_fields(kind))
    return get_type_hints(kind) if is_typeddict(kind) else ()


def typed_faults(case: Case, types: Mapping[str, Any]) -> tuple[Case, list[tuple[str, str]]]:
    """Return a case whose parts are as their types have them, and part and message of what does not fit."""
    faults: list[tuple[str, str]] = []
    fitting: dict[str, Any] = {}
    for part in _TYPED:
        value = getattr(case, part)
        value = {} if value is None and part == "input" else value  # a row without any of its columns
        absent = value is MISSING or (part == "expected" and value is None)
        if part not in types or absent:
            continue
        try:
            made = typed(types[part], value)
        except LlmevalError as error:
            faults.append((part, f"{error}, expected {types[part].__name__}"))
        else:
            fitting[part] = adapter(types[part]).dump_python(made, mode="json", exclude_unset=True, by_alias=True)
    return replace(case, **fitting) if fitting else case, faults

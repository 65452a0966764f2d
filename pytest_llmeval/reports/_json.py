"""The JSON report, which is the form in full precision.

A JSON report lacks some things that a run knows: counts of cases (so nothing can be resampled), the confidence of
intervals, which metrics the tables of evaluators show, tables with a column per system, and usage as metrics.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import field, fields, is_dataclass, make_dataclass
from functools import cache, reduce
from itertools import chain
from operator import or_
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Struct, UnsetType, structs

from pytest_llmeval.core import CaseRecord, Fault, Result, SuiteError, WrittenField, printable
from pytest_llmeval.data import DeclaredType, Document, InputFile, OutputFile, describe
from pytest_llmeval.numbers import summarize
from pytest_llmeval.reports._form import (
    FAILING,
    BucketReport,
    CaseReport,
    GroupReport,
    RunReport,
    SuiteReport,
    counts_of,
)
from pytest_llmeval.reports._tables import FilledTable

_TEXTS = ("input", "expected", "prediction", "answers")


class FormField(NamedTuple):
    """A field of the report form: its Python name, JSON key and type, and when reports write it.

    Attributes:
        name: In Python.
        key: In JSON; empty for a field that is computed, which is not read.
        type: Its type; `Any` if it is computed.
        default: `NODEFAULT` if it is required.
        written: When it is written.
    """

    name: str
    key: str
    type: Any
    default: Any
    written: WrittenField


def is_form(kind: Any) -> bool:
    """Whether a type is a class of the report form, which JSON reports write field by field."""
    return isinstance(kind, type) and (issubclass(kind, Struct) or is_dataclass(kind))


@cache
def form_fields(kind: Any) -> Mapping[str, FormField]:
    """The fields of a class of the report form by JSON key, in the order of the JSON report."""
    is_struct = issubclass(kind, Struct)
    omits = is_struct and kind.__struct_config__.omit_defaults
    hints = get_type_hints(kind, include_extras=True)
    declared: dict[str, FormField] = {}
    for member in structs.fields(kind) if is_struct else fields(kind):
        key = member.encode_name if isinstance(member, structs.FieldInfo) else member.name
        if key.startswith("("):
            continue
        hint = hints[member.name]
        marks = [part for part in getattr(hint, "__metadata__", ()) if isinstance(part, WrittenField)]
        written = marks[0] if marks else WrittenField.IF_KNOWN if omits else WrittenField.ALWAYS
        if marks and get_origin(hint) is Annotated:
            hint = hint.__origin__
        default = member.default
        if default in (NODEFAULT, NO_DEFAULT):
            default = NODEFAULT if member.default_factory in (NODEFAULT, NO_DEFAULT) else member.default_factory()
        declared[key] = FormField(member.name, key, hint, default, written)
    for name, before in getattr(kind, "COMPUTED", {}).items():
        keys = [*declared, name]
        keys.insert(keys.index(before) + 1, keys.pop())
        declared[name] = FormField(name, "", Any, (), WrittenField.IF_KNOWN if omits else WrittenField.ALWAYS)
        declared = {key: declared[key] for key in keys}
    return declared


_PLAIN: Final = frozenset({str, int, float, bool, type(None)})


def published(value: Any) -> Any:
    """A part of the report form as JSON data."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {name: published(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [published(part) for part in value]
    return published_without(value) if is_form(kind) else value


def published_without(form: Any, *keys: str) -> dict[str, Any]:
    """A part of the report form as JSON data, without some of its keys."""
    return {name: published(value) for name, value in _fields_of(form).items() if name not in keys}


class _Layout(NamedTuple):
    """The fields of a class of the report form, as JSON reports write them.

    Attributes:
        names: JSON key and Python name of each field.
        defaults: Keys of fields that are left out if they have their default, with that default.
        containers: Keys of fields that are left out if they are empty.
        together: Keys of fields that are left out if all of them have their defaults, with these.
    """

    names: Sequence[tuple[str, str]]
    defaults: Sequence[tuple[str, Any]]
    containers: Sequence[str]
    together: Sequence[tuple[str, Any]]


@cache
def _layout_of(kind: Any) -> _Layout:
    """The fields of a class of the report form, as JSON reports write them."""
    declared = form_fields(kind)
    marked: dict[WrittenField, list[tuple[str, Any]]] = {mark: [] for mark in WrittenField}
    containers = []
    for key, member in declared.items():
        if member.written is WrittenField.IF_KNOWN and isinstance(member.default, tuple | list | dict):
            containers.append(key)
        else:
            marked[member.written].append((key, member.default))
    names = [(key, member.name) for key, member in declared.items()]
    return _Layout(names, marked[WrittenField.IF_KNOWN], containers, marked[WrittenField.TOGETHER])


def _fields_of(form: Any) -> dict[str, Any]:
    """The fields of a part of the report form that a JSON report writes, by key."""
    kind: Any = type(form)
    layout = _layout_of(kind)
    fields_of = {key: getattr(form, name) for key, name in layout.names}
    for key, default in layout.defaults:
        value = fields_of[key]
        if value is default or value == default:
            del fields_of[key]
    for key in layout.containers:
        if not fields_of[key]:
            del fields_of[key]
    if layout.together and all(fields_of[key] == default for key, default in layout.together):
        for key, _ in layout.together:
            del fields_of[key]
    return fields_of


def write_data(data: Any, path: Path) -> None:
    """Stream JSON data, or a part of the report form, to a file; lone surrogates are written as escapes."""
    OutputFile(path).write_text(chain(_indent_slowly(data), ["\n"]))


_WHOLE: Final = 4
"""Levels of a report down to its cases: what is above is written piece by piece, so that it is never in memory."""
_AT_ONCE: Final = 32
"""Cases that are encoded in one go: one by one, writing takes twice as long."""


def _level(value: Any) -> Any:
    """The first level of a mapping or a report part as JSON data, for the encoder, which asks for the next level."""
    if isinstance(value, Mapping):
        return dict(value.items())
    if is_form(type(value)):
        return _fields_of(value)
    raise TypeError(f"found {describe(value)}, expected JSON data")


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_level)
_SLOW_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=1, default=_level)


def _indent_slowly(value: Any, level: int = 0) -> Iterator[str]:
    """Yield the indented text of a JSON report as `_SLOW_ENCODER` writes it, whose loops are in Python."""
    line = "\n" + " " * level
    if level < _WHOLE and (is_form(type(value)) or isinstance(value, Mapping)):
        value = _level(value)
    if level == _WHOLE or not value or not isinstance(value, dict | list | tuple):
        yield _indented_text(value).replace("\n", line)
        return
    if level == _WHOLE - 1 and not isinstance(value, dict):
        for first in range(0, len(value), _AT_ONCE):
            text = _indented_text(value[first : first + _AT_ONCE])
            yield ("," if first else "[") + text[1:-2].replace("\n", line)
        yield f"{line}]"
        return
    is_mapping = isinstance(value, dict)
    parts = value.items() if isinstance(value, dict) else (("", item) for item in value)
    start = "{" if is_mapping else "["
    for key, part in parts:
        yield f"{start}{line} {f'{visible_json(_ENCODER.encode(key))}: ' if is_mapping else ''}"
        yield from _indent_slowly(part, level + 1)
        start = ","
    yield f"{line}{'}' if is_mapping else ']'}"


def _indented_text(value: Any) -> str:
    """The indented JSON text of a part of a report; half of a surrogate pair needs the slow encoder."""
    text = visible_json(_ENCODER.encode(value))
    try:
        return msgspec.json.format(text, indent=1)
    except msgspec.DecodeError:  # half of a surrogate pair
        return visible_json(_SLOW_ENCODER.encode(value))


def to_errors(report: RunReport) -> dict[str, Any]:
    """The error analysis of a run as JSON data, with nothing that differs between two runs over the same data."""
    return {"schema_version": RunReport.SCHEMA_VERSION, "suites": [_error_analysis(suite) for suite in report.suites]}


def _error_analysis(suite: SuiteReport) -> dict[str, Any]:
    """The error analysis of a suite as JSON data: its error buckets with their cases, and errored cases."""
    by_id = {case.id: case for case in suite.cases}
    errored = [{"id": case.id, "reason": case.reason} for case in suite.cases if case.outcome == "errored"]
    buckets = [
        {
            **published(bucket),
            "count": len(bucket.cases),
            "cases": [_error_of_case(by_id[name], bucket) for name in bucket.cases],
        }
        for bucket in suite.buckets
    ]
    return {"suite": suite.suite, "path": suite.path, "buckets": buckets, "errored": errored}


def _error_of_case(case: CaseReport, bucket: BucketReport) -> dict[str, Any]:
    """A case of an error bucket as JSON data of the error analysis: score, reason, texts and findings."""
    texts = published(case.withheld or case)
    return {
        "id": case.id,
        "score": case.metrics.get(bucket.metric),
        "outcome": case.outcome,
        "reason": case.reason,
        **{name: texts[name] for name in _TEXTS if name in texts},
        **({"lines": list(lines)} if (lines := case.lines.get(bucket.evaluator)) else {}),
        "details": dict(case.details.get(bucket.evaluator, {})),
    }


def write_errors(report: RunReport, path: Path) -> None:
    """Write the error analysis of a run to a JSON file."""
    write_data(to_errors(report), path)


def read_report(path: Path) -> RunReport:
    """Read a JSON report.

    Raises:
        SuiteError: The file cannot be read, or is no report of a version known here.
    """
    if InputFile(path).looks_like_suite():
        message = "found a suite file, expected a JSON report, which --llmeval-report=report.json writes"
        raise SuiteError([Fault(str(path), 1, 1, "", message)])
    document = InputFile(path).read_json()
    data = document.data
    if not isinstance(data, Mapping) or "schema_version" not in data:
        raise SuiteError([document.fault((), f"found {describe(data)}, expected a report of --llmeval-report")])
    version = data["schema_version"]
    if version != RunReport.SCHEMA_VERSION:
        expected = f"{RunReport.SCHEMA_VERSION}, the version that this program reads"
        message = f"found {version!r}, expected {expected}: write it anew with --llmeval-report=report.json"
        raise SuiteError([document.fault(("schema_version",), message)])
    try:
        report = msgspec.convert(data, RunReport)
    except msgspec.ValidationError as error:
        _, faults = DeclaredType(_make_checked_type(RunReport)).check(data, document)
        raise SuiteError(faults or [document.fault((), str(error))]) from None
    for place, suite in enumerate(report.suites):
        for fault in _contradictions(suite, document, ("suites", place)):
            raise SuiteError([fault])
    return completed(report)


@cache
def _make_checked_type(kind: Any) -> Any:
    """A type of the report form for pydantic, whose faults state the value and what a JSON report must have."""
    if is_form(kind):
        # Required fields come first, as dataclasses want it.
        known = sorted(form_fields(kind).values(), key=lambda form_field: form_field.default is not NODEFAULT)
        return make_dataclass(
            kind.__name__, [_checked_field(form_field) for form_field in known if form_field.key], frozen=True
        )
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        bounds = [part for part in kind.__metadata__ if isinstance(part, Meta)]
        return reduce(lambda part, meta: Annotated[part, _json_limits(meta)], bounds, _make_checked_type(parts[0]))
    if origin in (Union, UnionType):
        # Of a number that is neither whole nor a float, the message says that a number is expected.
        kinds = sorted((part for part in parts if part is not UnsetType), key=_is_whole)
        return reduce(or_, map(_make_checked_type, kinds))
    if origin in (Mapping, Sequence, tuple):
        shape: Any = {Mapping: dict, Sequence: list, tuple: tuple}[origin]
        return shape[tuple(_make_checked_type(part) for part in parts)]
    return kind


def _checked_field(form_field: FormField) -> tuple[str, Any, Any]:
    """A field of the report form for `make_dataclass`: JSON key, type for pydantic, and default."""
    default: Any = {} if form_field.default is NODEFAULT else {"default_factory": lambda: form_field.default}
    return form_field.key, _make_checked_type(form_field.type), field(**default)


def _is_whole(kind: Any) -> bool:
    """Whether the type of a report field is a whole number, with or without limits."""
    return kind is int or get_args(kind)[:1] == (int,)


def _json_limits(meta: Meta) -> Any:
    """The limits of a number in the report form as a field of pydantic."""
    from pydantic import Field

    return Field(ge=meta.ge, le=meta.le)


def _contradictions(suite: SuiteReport, document: Document, place: tuple[str | int, ...]) -> Iterator[Fault]:
    """Yield faults of a JSON report that its types allow: ids that are repeated or unknown, rows of wrong length."""
    ids: set[str] = set()
    for number, case in enumerate(suite.cases):
        if case.id in ids:
            yield document.fault((*place, "cases", number, "id"), f"found {case.id!r} twice, expected it once")
        ids.add(case.id)
    for number, bucket in enumerate(suite.error_buckets):
        for row, name in enumerate(bucket.cases):
            if name not in ids:
                at = (*place, "error_buckets", number, "cases", row)
                yield document.fault(at, f"found {name!r}, expected the id of a case of the suite")
    for number, table in enumerate(suite.tables):
        for row, cells in enumerate(table.rows):
            if len(cells) != len(table.headers):
                message = f"found {len(cells)} cells, expected {len(table.headers)} as in the headers"
                yield document.fault((*place, "tables", number, "rows", row), message)


def completed(report: RunReport) -> RunReport:
    """Fill in the fields of a report that follow from others: counts, pass rates, and which texts it has."""
    texts = any(_has_texts(case) for suite in report.suites for case in suite.cases)
    suites = [_suite(suite, texts=texts) for suite in report.suites]
    return structs.replace(report, suites=suites)


def _has_texts(case: CaseReport) -> bool:
    """Whether a JSON report has texts of a case: input, expected value, prediction or judgings."""
    return not (case.input is None and case.expected is None and case.prediction is UNSET and not case.judgings)


def _suite(suite: SuiteReport, *, texts: bool) -> SuiteReport:
    """Fill in the fields of a suite in a JSON report that follow from its other fields.

    Args:
        suite: As the file has it.
        texts: Whether the report has the texts of any case; then it has those of all failing ones.
    """
    label = suite.clusters.label if suite.clusters else None
    every = any(_has_texts(case) and case.outcome not in FAILING for case in suite.cases)
    cases = [
        structs.replace(
            case,
            labels={**case.labels, label: case.cluster} if label and case.cluster is not None else case.labels,
            has_texts=_has_texts(case) or every or (texts and case.outcome in FAILING),
        )
        for case in suite.cases
    ]
    counts = {**counts_of(cases, max(suite.counts.get("total", 0), len(cases)), suite.stop), **suite.counts}
    rates = pass_rates(structs.replace(suite, cases=cases))
    groups: dict[str, dict[str, GroupReport]] = {}
    for key, members in suite.groups.items():
        rated = {name: {"pass_rate": group.pass_rate} for name, group in rates.groups[key].items()}
        groups[key] = {name: structs.replace(member, **rated.get(name, {})) for name, member in members.items()}
    return structs.replace(
        suite,
        counts=counts,
        cases=cases,
        groups=groups,
        pass_rate=rates.pass_rate,
        tables=list(map(_table, suite.tables)),
        buckets=suite.error_buckets,
    )


def pass_rates(suite: SuiteReport) -> Result:
    """Pass rates of a reported suite and its groups by the formula of a run; JSON reports leave them to readers."""
    records = [
        CaseRecord(
            case.id,
            case.labels,
            case.outcome,
            errors={"": ""} if case.ran else {},  # counts as tried
            reason=case.reason,
        )
        for case in suite.cases
    ]
    label = suite.clusters.label if suite.clusters else None
    faulty = max(0, suite.counts.get("total", 0) - len(records))
    return summarize({}, records, group_by=list(suite.groups), cluster_by=label, faulty=faulty)


def _table(table: FilledTable) -> FilledTable:
    """Fill in the fields of a table in a JSON report; its first columns of text are the names of its rows."""
    columns = [all(isinstance(cell, str) for cell in cells) for cells in zip(*table.rows, strict=True)]
    names = next((place for place, is_text in enumerate(columns) if not is_text), len(columns))
    return structs.replace(table, names=max(1, names), is_matrix=bool(table.cases))


def visible_json(text: str) -> str:
    r"""JSON text with escapes for characters that terminals obey or that people do not see.

    >>> visible_json('["a\u202eb"]\n')
    '["a\\u202eb"]\n'
    """
    if printable(text, lines=True) == text:
        return text
    return "".join(
        character if character == "\n" or printable(character) == character else json.dumps(character)[1:-1]
        for character in text
    )


def write_json(report: RunReport, path: Path) -> None:
    """Write the JSON report of a run to a file."""
    write_data(report, path)

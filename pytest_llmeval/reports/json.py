"""The JSON report, which is the form in full precision, and the error analysis."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct, structs

from pytest_llmeval.core.codec import WrittenField
from pytest_llmeval.data.files.json import visible_json
from pytest_llmeval.data.files.writing import write_text
from pytest_llmeval.reports.form import SCHEMA_VERSION, BucketReport, CaseReport, RunReport, SuiteReport

_TEXTS = ("input", "expected", "prediction", "answers")


class FormField(NamedTuple):
    """A field of a published form.

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

    def lacks(self, value: Any) -> bool:
        """Return whether a value is the default; an empty list is any empty sequence."""
        if isinstance(self.default, tuple | list | dict):
            return not value
        return bool(value is self.default or value == self.default)


def is_form(kind: Any) -> bool:
    """Return whether a type is one of the classes of the form."""
    return isinstance(kind, type) and (issubclass(kind, Struct) or is_dataclass(kind))


@cache
def form_fields(kind: Any) -> Mapping[str, FormField]:
    """Return key in JSON to field, in the order of the JSON report."""
    is_struct = issubclass(kind, Struct)
    omits = is_struct and kind.__struct_config__.omit_defaults
    hints = get_type_hints(kind, include_extras=True)
    declared: dict[str, FormField] = {}
    for each in structs.fields(kind) if is_struct else fields(kind):
        key = each.encode_name if isinstance(each, structs.FieldInfo) else each.name
        if key.startswith("("):
            continue
        hint = hints[each.name]
        marks = [part for part in getattr(hint, "__metadata__", ()) if isinstance(part, WrittenField)]
        written = marks[0] if marks else WrittenField.IF_KNOWN if omits else WrittenField.ALWAYS
        if marks and get_origin(hint) is Annotated:
            hint = hint.__origin__
        default = each.default
        if default in (NODEFAULT, NO_DEFAULT):
            default = NODEFAULT if each.default_factory in (NODEFAULT, NO_DEFAULT) else each.default_factory()
        declared[key] = FormField(each.name, key, hint, default, written)
    for name, before in getattr(kind, "COMPUTED", {}).items():
        keys = [*declared, name]
        keys.insert(keys.index(before) + 1, keys.pop())
        declared[name] = FormField(name, "", Any, (), WrittenField.IF_KNOWN if omits else WrittenField.ALWAYS)
        declared = {key: declared[key] for key in keys}
    return declared


def published(value: Any) -> Any:
    """Return a part of the form as JSON data."""
    if isinstance(value, Mapping):
        return {name: published(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [published(each) for each in value]
    return dict(_written(value)) if is_form(type(value)) else value


def published_without(form: Any, key: str) -> dict[str, Any]:
    """Return a part of the form as JSON data, without one of its keys."""
    return dict(_written(form, key))


def _written(form: Any, left_out_key: str = "") -> Iterator[tuple[str, Any]]:
    kind: Any = type(form)
    declared = form_fields(kind)
    together = [each for each in declared.values() if each.written is WrittenField.TOGETHER]
    lacks_all = all(each.lacks(getattr(form, each.name)) for each in together)
    for key, each in declared.items():
        if key == left_out_key:
            continue
        value = getattr(form, each.name)
        left_out = lacks_all if each.written is WrittenField.TOGETHER else each.written is WrittenField.IF_KNOWN
        if not left_out or not each.lacks(value):
            yield key, published(value)


def to_json(report: RunReport) -> dict[str, Any]:
    """Return the report as JSON data."""
    return dict(_written(report))


def write_json(report: RunReport, path: Path) -> None:
    """Write the report to a file."""
    write_data(to_json(report), path)


def write_data(data: Mapping[str, Any], path: Path) -> None:
    """Stream JSON data to a file; lone surrogates are written as escapes."""
    encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=1)
    write_text(path, visible_json(chain(encoder.iterencode(data), ["\n"])))


def to_errors(report: RunReport) -> dict[str, Any]:
    """Return the error analysis as JSON data. It holds nothing that differs between two runs over the same data."""
    return {"schema_version": SCHEMA_VERSION, "suites": [_errors(each) for each in report.suites]}


def _errors(suite: SuiteReport) -> dict[str, Any]:
    by_id = {case.id: case for case in suite.cases}
    errored = [{"id": case.id, "reason": case.reason} for case in suite.cases if case.outcome == "errored"]
    buckets = [
        {
            **published(each),
            "count": len(each.cases),
            "cases": [_error(by_id[name], each) for name in each.cases],
        }
        for each in suite.buckets
    ]
    return {"suite": suite.suite, "path": suite.path, "buckets": buckets, "errored": errored}


def _error(case: CaseReport, bucket: BucketReport) -> dict[str, Any]:
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
    """Write the error analysis to a file."""
    write_data(to_errors(report), path)

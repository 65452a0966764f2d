"""Write docs/report.schema.json, which describes every key of JSON reports: run it after changing their form."""

from __future__ import annotations

import inspect
import json
import re
import sys
import typing
from pathlib import Path
from typing import Any

import msgspec

from pytest_llmeval.reports import RunReport
from pytest_llmeval.reports._json import form_fields, is_form

PUBLISHED = Path(__file__).parents[1] / "docs" / "report.schema.json"
ADDRESS = "https://raw.githubusercontent.com/pytest-llmeval/pytest-llmeval-suite/main/docs/report.schema.json"
_ATTRIBUTE = re.compile(r"^ {8}(\w+): (.+(?:\n {12}.+)*)", re.MULTILINE)


def forms(kind: Any, known: dict[str, Any]) -> dict[str, Any]:
    """Add a class of the form, and those that its fields hold, by name."""
    for part in typing.get_args(kind):
        forms(part, known)
    if is_form(kind) and kind.__name__ not in known:
        known[kind.__name__] = kind
        for field in form_fields(kind).values():
            forms(field.type if field.key else computed(kind, field.name), known)
    return known


def computed(kind: Any, name: str) -> Any:
    """The type of a property that reports write."""
    return typing.get_type_hints(getattr(kind, name).fget)["return"]


def words(text: str) -> str:
    """Words of a docstring in one line, with what JSON has in place of None."""
    return " ".join(text.split()).replace("``None``", "null").replace("``", "`")


def simple(schema: Any) -> Any:
    """A schema without "or an integer" beside "a number"."""
    if isinstance(schema, list):
        kept = [simple(part) for part in schema]
        return [part for part in kept if part != {"type": "integer"}] if {"type": "number"} in kept else kept
    if not isinstance(schema, dict):
        return schema
    parts = {name: simple(part) for name, part in schema.items()}
    if len(parts.get("anyOf", "..")) == 1:
        (only,) = parts.pop("anyOf")
        return {**parts, **only}
    return parts


def described(kind: Any) -> dict[str, Any]:
    """The schema of one class of the form, with the docstrings of its fields."""
    meanings = dict(_ATTRIBUTE.findall(kind.__doc__ or ""))
    properties: dict[str, Any] = {}
    required = []
    for key, field in form_fields(kind).items():
        hint = field.type if field.key else computed(kind, field.name)
        ((schema,), _) = msgspec.json.schema_components([hint], ref_template="#/$defs/{name}")
        meaning = meanings.get(field.name) or inspect.getdoc(getattr(kind, field.name, None)) or ""
        properties[key] = {"description": words(meaning), **simple(schema)}
        if field.written.name == "ALWAYS":
            required.append(key)
    summary = (kind.__doc__ or "").partition("\n\n")[0]
    return {
        "description": words(summary),
        "type": "object",
        "properties": properties,
        "required": required,
    }


def text() -> str:
    """The file."""
    known = forms(RunReport, {})
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ADDRESS,
        "title": "JSON report of pytest-llmeval",
        "$ref": "#/$defs/RunReport",
        "$defs": {name: described(kind) for name, kind in known.items()},
    }
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(f"{PUBLISHED.write_text(text(), encoding='utf-8')} characters\n")

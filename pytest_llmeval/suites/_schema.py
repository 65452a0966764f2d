"""The JSON Schema of suite files."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin

from pydantic import TypeAdapter

from pytest_llmeval.gates import RULES
from pytest_llmeval.judges import CascadeRule, JudgeSpec
from pytest_llmeval.suites._keys import Key, keys_of, suite_entry
from pytest_llmeval.suites._loading import ENTRIES
from pytest_llmeval.suites._registry import Registry
from pytest_llmeval.targets import TargetSpec

if TYPE_CHECKING:
    from pytest_llmeval.evaluators import CheckKind

SCHEMA_URL = "https://raw.githubusercontent.com/pytest-llmeval/pytest-llmeval-suite/main/docs/suite.schema.json"
"""The address of the published schema, which covers what ships; the ``$id`` of that file."""

DIALECT = "http://json-schema.org/draft-07/schema#"


def suite_schema(registry: Registry) -> dict[str, Any]:
    """The JSON Schema of suite files, with the options of every evaluator and source.

    Args:
        registry: The evaluators and sources that suites may name.

    Returns:
        JSON Schema, draft 07, which the catalogue of schemas and editors read.
    """
    definitions: dict[str, Any] = {}
    suite = _schema(suite_entry(registry), definitions)
    definitions["Check"] = _check(registry, definitions)
    properties = suite["properties"]
    for name, key in keys_of(registry).items():
        properties[name] = {**_with_forms(properties[name], key, registry, definitions), "description": key.meaning}
    properties["$schema"] = {"type": "string", "description": "Where editors find this schema; for JSON files"}
    own = {"contains": {"required": ["checks"]}}
    branches = [{"required": ["evaluators"]}, {"required": ["checks"]}, {"properties": {"cases": own}}]
    schema = {"$schema": DIALECT, "title": "Eval suite", **suite, "anyOf": branches}
    converted: dict[str, Any] = _in_dialect({**schema, "$defs": definitions} if definitions else schema)
    return converted


_OLD_NAMES: Final = {"$defs": "definitions", "prefixItems": "items"}
"""Keywords that pydantic writes to those of draft 07."""


def _in_dialect(part: Any) -> Any:
    """A part of the suite file's schema in draft 07, converted from draft 2020-12."""
    if isinstance(part, list):
        return [_in_dialect(item) for item in part]
    if not isinstance(part, dict):
        return part
    keywords = {_OLD_NAMES.get(name, name): _in_dialect(value) for name, value in part.items()}
    if isinstance(reference := keywords.get("$ref"), str):
        keywords["$ref"] = reference.replace("#/$defs/", "#/definitions/")
    if isinstance(description := keywords.get("description"), str):
        keywords["description"] = without_links(description)
    return keywords


def without_links(text: str) -> str:
    """A line of Markdown with its links as plain text, as editors and terminals show it."""
    return _LINK.sub(r"\1", text)


_LINK = re.compile(r"(?<!\\)\[((?:[^][\\]|\\.)*+)\]\([^)[]*+\)")


def _with_forms(schema: dict[str, Any], key: Key, registry: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a suite file's key: its type, and the forms of its value or of the members of its list."""
    if not key.forms:
        return schema
    forms: list[dict[str, Any]] = []
    for form in key.forms:
        if isinstance(form, str):
            forms.append(GRAMMARS[form](registry, definitions))
        else:
            forms.append(dict(form) if isinstance(form, Mapping) else _schema(form, definitions))
    forms = [branch for form in forms for branch in (form["anyOf"] if form.keys() == {"anyOf"} else [form])]
    choice = forms[0] if len(forms) == 1 else {"anyOf": forms}
    if any(get_origin(kind) is list for kind in (key.type, *get_args(key.type))):
        return {**schema, "items": choice, **({"minItems": key.least} if key.least else {})}
    return {**choice, **({"default": key.default} if key.default else {})}


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a type of suite files; the types that it refers to are added to ``definitions``."""
    schema: dict[str, Any] = TypeAdapter(kind).json_schema()
    definitions.update(schema.pop("$defs", {}))
    return _without_titles(schema)


def _without_titles(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A part of the suite file's schema without titles that pydantic derives from names: they add nothing."""
    result = {key: value for key, value in schema.items() if key not in ("title", "properties")}
    if "properties" in schema:
        result["properties"] = {name: _without_titles(part) for name, part in schema["properties"].items()}
    return result


def _limits(_: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of ``thresholds`` in a suite file."""
    limit = {"anyOf": [{"type": "number"}, _schema(ENTRIES["limit"], definitions)]}
    return {"type": "object", "additionalProperties": limit}


def _case(registry: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a case in a suite file."""
    case = _schema(ENTRIES["case"], definitions)
    case["properties"]["thresholds"] = _limits(registry, definitions)
    case["properties"]["checks"] = {"type": "array", "items": {"$ref": "#/$defs/Check"}}
    return case


def _cascade(_: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a cascade of judges under ``judge`` in a suite file."""
    judge = {"anyOf": [{"type": "string"}, _schema(JudgeSpec, definitions)]}
    cascade = _schema(CascadeRule, definitions)
    cascade["properties"] = {"first": judge, "then": judge, **cascade["properties"]}
    cascade["required"] = ["first", "then", "when"]
    return cascade


_TARGETS: Final = [{"required": [kind]} for kind in ("python", "http", "command")]


def _target(_: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of ``target`` in a suite file: one kind of target, or ``concurrency`` alone."""
    alone = {"required": ["concurrency"], "not": {"anyOf": _TARGETS}}
    return {**_schema(TargetSpec, definitions), "oneOf": [*_TARGETS, alone]}


def _systems(_: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of ``systems`` in a suite file: targets, predictions, models, and a matrix of models."""
    target = {**_schema(TargetSpec, definitions), "oneOf": _TARGETS}
    model = {**_schema(ENTRIES["model"], definitions), "required": ["model"]}
    system = {"anyOf": [{"type": "string"}, target, _schema(ENTRIES["predictions"], definitions), model]}
    named = {"matrix": _schema(ENTRIES["matrix"], definitions)}
    return {"type": "object", "properties": named, "additionalProperties": system}


def _evaluators(registry: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of an entry of ``evaluators`` in a suite file: a name, alone or with options."""
    choices: list[dict[str, Any]] = [{"enum": list(registry)}]
    beside = {
        "as": {"type": "string", "description": "Another name, under which its metrics are reported"},
        "on": {"type": "string", "description": "The part of the prediction that it reads, or a JMESPath"},
        "turn": {
            "anyOf": [{"enum": ["last", "each"]}, {"type": "integer", "minimum": 1}],
            "description": "The turns of a conversation that it reads",
        },
    }
    for name in registry:
        options = _schema(registry.get(name), definitions)
        options["properties"] = {**options.get("properties", {}), **beside}
        choices.append(
            {
                "type": "object",
                "properties": {name: {"anyOf": [options, {"type": "null"}]}, **beside},
                "required": [name],
                "additionalProperties": False,
            }
        )
    return {"anyOf": choices}


def _check(registry: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a check in a suite file: a name, or an object with one kind of check and its modifiers."""
    some = {"type": "array", "items": {"$ref": "#/$defs/Check"}, "minItems": 1}
    several = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}, "of": some},
        "required": ["n", "of"],
        "additionalProperties": False,
    }
    kinds: dict[str, Any] = {"any_of": some, "all_of": some, "at_least": several}
    for name, kind in registry.checks.items():
        kinds[name] = {**_argument(kind, definitions), "description": kind.meaning}
    properties = {prefix + name: form for prefix in ("", "not_") for name, form in kinds.items()}
    modifiers = {
        "name": {"type": "string"},
        "on": {"type": "string"},
        "turn": {"anyOf": [{"enum": ["last", "each"]}, {"type": "integer", "minimum": 1}]},
        "weight": {"exclusiveMinimum": 0, "type": "number"},
    }
    bare = [prefix + name for prefix in ("", "not_") for name, kind in registry.checks.items() if kind.bare]
    return {
        "anyOf": [
            {"enum": bare},
            {
                "type": "object",
                "properties": {**properties, **modifiers},
                "oneOf": [{"required": [name]} for name in properties],
                "additionalProperties": False,
            },
        ]
    }


def _argument(kind: "CheckKind", definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of the argument that a kind of check has in a suite file."""
    nothing: dict[str, Any] = {"enum": [None, True]}
    if kind.argument is None:
        return nothing
    argument = {"type": ["object", "boolean", "string"]} if kind.schema else _schema(kind.argument, definitions)
    if kind.each:
        argument = {"anyOf": [argument, {"type": "array", "items": argument, "minItems": 1}]}
    return {"anyOf": [argument, nothing]} if kind.optional else argument


def _snapshot(_: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of ``snapshot`` in a suite file, in its mapping form."""
    tolerance = {"anyOf": [{"type": "number", "minimum": 0}, _schema(ENTRIES["tolerance"], definitions)]}
    mapping = _schema(ENTRIES["snapshot"], definitions)
    mapping["properties"]["tolerance"] = {
        "anyOf": [
            {"type": "number", "minimum": 0},
            {"type": "object", "additionalProperties": tolerance},
            {"type": "null"},
        ]
    }
    return mapping


def _sources(registry: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of ``source`` in a suite file, in any registered format."""
    return {"anyOf": [_source(registry, name, definitions) for name in registry.sources]}


def _source(registry: Registry, name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of ``source`` in a suite file, in one format with its options."""
    schema = _schema(registry.source(name), definitions)
    schema["properties"] = {"format": {"const": name}, **schema.get("properties", {})}
    schema["required"] = ["format", *schema.get("required", [])]
    return schema


GRAMMARS: Final[Mapping[str, Callable[[Registry, dict[str, Any]], dict[str, Any]]]] = {
    "cascade": _cascade,
    "case": _case,
    "check": lambda *_: {"$ref": "#/$defs/Check"},
    "evaluator": _evaluators,
    "gate": lambda *_: RULES.schema(),
    "limits": _limits,
    "snapshot": _snapshot,
    "source": _sources,
    "systems": _systems,
    "target": _target,
}
"""Name of a form in the table of keys to its schema."""

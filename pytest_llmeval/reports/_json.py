"""The JSON form of reports: every field in full precision."""

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
from msgspec import NODEFAULT, Meta, Struct, UnsetType, structs

from pytest_llmeval.core import WrittenField, printable
from pytest_llmeval.data import OutputFile, describe


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


@cache
def checked_type(kind: Any) -> Any:
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
        return reduce(lambda part, meta: Annotated[part, _json_limits(meta)], bounds, checked_type(parts[0]))
    if origin in (Union, UnionType):
        # Of a number that is neither whole nor a float, the message says that a number is expected.
        kinds = sorted((part for part in parts if part is not UnsetType), key=_is_whole)
        return reduce(or_, map(checked_type, kinds))
    if origin in (Mapping, Sequence, tuple):
        shape: Any = {Mapping: dict, Sequence: list, tuple: tuple}[origin]
        return shape[tuple(checked_type(part) for part in parts)]
    return kind


def _checked_field(form_field: FormField) -> tuple[str, Any, Any]:
    """A field of the report form for `make_dataclass`: JSON key, type for pydantic, and default."""
    default: Any = {} if form_field.default is NODEFAULT else {"default_factory": lambda: form_field.default}
    return form_field.key, checked_type(form_field.type), field(**default)


def _is_whole(kind: Any) -> bool:
    """Whether the type of a report field is a whole number, with or without limits."""
    return kind is int or get_args(kind)[:1] == (int,)


def _json_limits(meta: Meta) -> Any:
    """The limits of a number in the report form as a field of pydantic."""
    from pydantic import Field

    return Field(ge=meta.ge, le=meta.le)


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

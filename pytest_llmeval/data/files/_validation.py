"""JSON data read by declared types; pydantic describes what does not fit."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

import msgspec

from pytest_llmeval.core import (
    Fault,
    FieldsError,
    LlmevalError,
    excerpt,
    quotation,
    suggest,
    unknown_name,
)
from pytest_llmeval.data.files._places import render_path
from pytest_llmeval.data.files.documents import Document

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError
    from pydantic_core import ErrorDetails


_NEUTRAL = {"extra": "forbid", "arbitrary_types_allowed": True, "allow_inf_nan": False}
"""Pydantic settings without effect on data that fits."""

_DEEPEST = 50
_LARGEST = 2**53
"""Below it, a whole number is the same as a float."""


class NotPlainError(Exception):
    """JSON data for a declared type needs validation by pydantic, which loads slowly."""


def plain(kind: Any, data: Any) -> Any:
    """Data of a suite, such as a check's options, as an object of a declared type, strictly validated without pydantic.

    Args:
        kind: A type, such as a dataclass.
        data: Values as the json module reads them.

    Raises:
        NotPlainError: The data may not fit, the type may have rules of its own, or pydantic is loaded anyway.
    """
    # Only where these are loaded can a class have their validators and constraints.
    if "pydantic" in sys.modules or "annotated_types" in sys.modules:
        raise NotPlainError
    return by_types(kind, data)


def by_types(kind: Any, data: Any) -> Any:
    """Data of a suite, such as a check's options, as an object of a declared type without validators and constraints.

    Raises:
        NotPlainError: The data may not fit, or the type has settings of its own.
    """
    if not _has_no_rules(kind):
        raise NotPlainError
    try:
        value = msgspec.json.decode(msgspec.json.encode(data), type=kind)  # a copy: cases may share data
    except Exception as error:  # a type that msgspec does not know, or any exception of __post_init__
        raise NotPlainError from error
    if not _holds(value, data):
        raise NotPlainError
    return value


def _has_no_rules(kind: Any) -> bool:
    """Whether a declared type has no pydantic settings of its own, so that msgspec can validate data for it."""
    config = getattr(kind, "__pydantic_config__", {})
    return config.items() <= _NEUTRAL.items() and not hasattr(kind, "__get_pydantic_core_schema__")


def _holds(converted: Any, data: Any, depth: int = 0) -> bool:
    """Whether an object that msgspec built has exactly the values of the JSON data.

    msgspec ignores unknown keys, and accepts texts and numbers that JSON cannot express.
    """
    match data:
        case dict() | list() if depth == _DEEPEST:
            return False
        case dict():
            inside = converted
            if is_dataclass(converted):  # which may have slots, and so no dictionary
                inside = {attribute.name: getattr(converted, attribute.name) for attribute in fields(converted)}
            return isinstance(inside, dict) and all(
                key in inside and _holds(key, key) and _holds(inside[key], value, depth + 1)
                for key, value in data.items()
            )
        case list():
            same = isinstance(converted, list | tuple) and len(converted) == len(data)
            return same and all(_holds(left, other, depth + 1) for left, other in zip(converted, data, strict=True))
        case _:
            return converted == data and _is_json(data)


def _is_json(value: Any) -> bool:
    """Whether a scalar of a user's data keeps its value in JSON, unlike large numbers and halves of surrogate pairs."""
    match value:
        case str():
            return value.isascii() or _is_unicode(value)
        case None | bool():
            return True
        case int():
            return abs(value) < _LARGEST
    return isinstance(value, float) and math.isfinite(value)


def _is_unicode(text: str) -> bool:
    """Whether a text can be encoded: half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_LONGEST = 60

_TEXT_OR_INT = "text_or_int"
_EXPECTED = {
    "string_type": "text",
    "float_type": "a number",
    "int_type": "a whole number",
    _TEXT_OR_INT: "text or a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "dataclass_type": "a mapping",
    "none_required": "null",
    "finite_number": "a number below 1.8e308",
}


_BOUNDS = {
    "greater_than_equal": ("of at least", "ge"),
    "less_than_equal": ("of at most", "le"),
    "greater_than": ("above", "gt"),
    "less_than": ("under", "lt"),
}


def describe(value: Any) -> str:
    """A brief description of a value in a user's file, for the message of a fault."""
    match value:
        case None:
            return "nothing (null)"
        case bool() | int() | float():
            return f"the number {excerpt(str(value), _LONGEST)}" if not isinstance(value, bool) else json.dumps(value)
        case str():
            return f"the text {quotation(value, _LONGEST)}"
        case Mapping():
            keys = ", ".join(map(repr, list(value)[:3]))
            return f"a mapping with {keys}{', ...' if len(value) > 3 else ''}" if value else "an empty mapping"  # noqa: PLR2004 (three keys show its kind)
        case Sequence():
            return f"a list of {len(value)}"
        case _:
            return type(value).__name__


def expectation(error: "ErrorDetails") -> str:
    """The form that pydantic expected of a value in a user's file, for the message of a fault."""
    context = error.get("ctx", {})
    match error["type"]:
        case "literal_error" | "union_tag_invalid":
            return f"one of {str(context.get('expected', context.get('expected_tags'))).replace(' or ', ', ')}"
        case kind if kind in _BOUNDS:
            words, key = _BOUNDS[kind]
            return f"a number {words} {context[key]}"
        case kind if kind in _EXPECTED:
            return _EXPECTED[kind]
        case _:
            return error["msg"].removeprefix("Input should be ").removeprefix("Value error, ")


def _pydantic_message(error: "ErrorDetails", names: Sequence[str]) -> str:
    """The message of a fault in a suite file or in Python options, made from an error of pydantic."""
    key = str(error["loc"][-1]) if error["loc"] else ""
    match error["type"]:
        case "extra_forbidden" | "unexpected_keyword_argument":
            return unknown_name("key", key, names)
        case "missing" | "missing_argument":
            return f"{key} is missing"
        case "literal_error":
            choices = [part.strip("' ") for part in expectation(error).removeprefix("one of ").split(",")]
            hint = suggest(str(error["input"]), choices)
            return f"found {describe(error['input'])}{hint}, expected {expectation(error)}"
        case "union_tag_not_found" | "union_tag_invalid":
            return _tag_message(error)
        case kind:
            prefix = "" if kind == "value_error" else f"found {describe(error['input'])}, expected "
            return prefix + expectation(error)


def _tag_message(error: "ErrorDetails") -> str:
    """The message for the key of a suite file that distinguishes the branches of a union."""
    context = error["ctx"]
    key = context["discriminator"]
    if "tag" not in context:
        return f"found {describe(error['input'])}, expected a mapping with {key}"
    known = context["expected_tags"].replace("'", "").split(", ")
    return f"found {context['tag']!r} as {key}{suggest(context['tag'], known)}, expected {expectation(error)}"


def _field_names(kind: Any, location: Sequence[int | str] = ()) -> list[str]:
    """The keys that a mapping in a suite file may have, to suggest one for an unknown key.

    Args:
        kind: The type of the whole.
        location: Of the key in question; its last part is the key itself.
    """
    reached = _dataclasses(kind)
    for part in location[:-1]:
        inside = [dataclass for outer in reached for dataclass in _dataclasses(get_type_hints(outer).get(str(part)))]
        reached = inside or [branch for branch in reached if part in _literals(branch)] or reached
    return [field.name for field in fields(reached[0])] if reached else []


def _dataclasses(hint: Any) -> list[Any]:
    """The dataclasses that a declared type consists of, branches of unions and values of mappings among them."""
    if isinstance(hint, type) and is_dataclass(hint):
        return [hint]
    return [dataclass for part in get_args(hint) for dataclass in _dataclasses(part)]


def _literals(kind: Any) -> set[Any]:
    """The literal values of a dataclass's fields, by which the branches of a union in a suite file differ."""
    hints = get_type_hints(kind).values()
    return {value for hint in hints if get_origin(hint) is Literal for value in get_args(hint)}


class DeclaredType:
    """A type that users' data is read by, such as a class of options or a part of a suite file.

    Attributes:
        kind: The type, such as a dataclass, whose field names unknown keys are compared with.
    """

    STRICT: ClassVar[Mapping[str, Any]] = {"extra": "forbid", "allow_inf_nan": False}
    """Pydantic configuration of all parts of a suite file."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def read(self, data: Any) -> Any:
        """JSON data as an object of the type, strictly validated; pydantic, which loads slowly, only if needed.

        Raises:
            pydantic.ValidationError: The data does not fit.
            TypeError: It is no JSON data.
            ValueError: It is no JSON data.
        """
        try:
            return plain(self.kind, data)
        except NotPlainError:
            return self._validate(data)

    def _validate(self, data: Any) -> Any:
        return _adapter(self.kind).validate_json(json.dumps(data), strict=True)

    def check(self, data: Any, document: Document, path: Sequence[str | int] = ()) -> tuple[Any, list[Fault]]:
        """Read a part of a user's document, such as an evaluator in a suite file.

        Args:
            data: The part.
            document: Its document, for lines and columns.
            path: Where in the document.

        Returns:
            The validated value and no faults, or ``None`` and all of them.
        """
        try:
            return plain(self.kind, data), []
        except NotPlainError:
            from pydantic import ValidationError
        try:
            return self._validate(data), []
        except ValidationError as error:
            details = _most_telling(error.errors(include_url=False))
        faults = []
        for fault in details:
            place = [*path, *_inside(data, fault["loc"])]
            cause = fault.get("ctx", {}).get("error")
            if isinstance(cause, FieldsError):
                faults += [_field_fault(document, place, name, message) for name, message in cause.faults]
                continue
            unknown_key = fault["type"] in ("extra_forbidden", "unexpected_keyword_argument")
            message = _pydantic_message(fault, _field_names(self.kind, fault["loc"]))
            faults.append(document.fault(place, message, key=unknown_key))
        return None, faults

    def convert(self, value: Any) -> Any:
        """JSON data as an object of a user's own type, such as a pydantic model.

        Raises:
            LlmevalError: It does not fit; the message names every place.
        """
        from pydantic import PydanticUserError, ValidationError

        try:
            return _adapter(self.kind).validate_python(value)
        except ValidationError as error:
            raise LlmevalError("; ".join(map(_pydantic_misfit, error.errors(include_url=False)))) from None
        except PydanticUserError:  # a type such as numpy's, of which only objects fit
            raise LlmevalError(f"found {type(value).__name__}") from None

    def option_faults(self, error: "ValidationError") -> list[str]:
        """The faults of Python options that do not fit, such as ``metrics[0]: found ..., expected ...``."""
        return [self._option_fault(details) for details in _most_telling(error.errors(include_url=False))]

    def _option_fault(self, error: "ErrorDetails") -> str:
        """The fault of a Python option, with its path."""
        hints = [hint for dataclass in _dataclasses(self.kind) for hint in get_type_hints(dataclass).values()]
        branches = {dataclass.__name__ for hint in hints for dataclass in _dataclasses(hint)}
        path = render_path([part for part in _pydantic_location(error) if part not in branches])
        message = _pydantic_message(error, _field_names(self.kind, error["loc"]))
        return f"{path}: {message}" if path and error["type"] != "missing" else message

    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of the type."""
        return _adapter(self.kind).json_schema()


@lru_cache(maxsize=256)
def _adapter(kind: Any) -> "TypeAdapter[Any]":
    """The pydantic validator of a declared class."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _pydantic_misfit(error: "ErrorDetails") -> str:
    """The message for a value that does not fit a user's own type: its place, and pydantic's words."""
    place = render_path(error["loc"])
    return f"{place}: {error['msg']}" if place else error["msg"]


def _field_fault(document: Document, place: Sequence[str | int], name: str, message: str) -> Fault:
    """The fault of a field in a user's file; the name may be a path inside the field."""
    field, _, inside = name.partition(".")
    return document.fault([*place, field], f"{inside}: {message}" if inside else message)


def _is_tag(part: int | str) -> bool:
    """Whether pydantic put this part into a location to name a branch of a union, such as ``tuple[str,...]``."""
    return isinstance(part, str) and ("[" in part or part in ("str", "int", "float", "bool", "none", "constrained-str"))


def _inside(data: Any, location: Sequence[int | str]) -> list[int | str]:
    """The parts of a pydantic location that lead through a user's data; names of union branches do not."""
    place: list[int | str] = []
    for part in location:
        in_mapping = isinstance(data, Mapping) and part in data
        in_list = isinstance(data, list | tuple) and isinstance(part, int) and part < len(data)
        if in_mapping or in_list:
            data = data[part]
            place.append(part)
    return place


def _most_telling(faults: "list[ErrorDetails]") -> "list[ErrorDetails]":
    """The faults of a user's data, one per place: pydantic reports one for each branch of a union.

    Of a union of words and a mapping, a mapping has the faults of the mapping, and anything else that it is no word.
    Of a union of text and whole numbers, a value is neither.
    """
    seen: dict[tuple[int | str, ...], list[ErrorDetails]] = {}
    for fault in faults:
        if not any(_is_elsewhere(fault, other) for other in faults):
            seen.setdefault(_pydantic_location(fault), []).append(fault)
    return [
        {**first, "type": _TEXT_OR_INT}
        if [first["type"], *(other["type"] for other in others)] == ["string_type", "int_type"]
        else first
        for first, *others in seen.values()
    ]


def _is_elsewhere(fault: "ErrorDetails", other: "ErrorDetails") -> bool:
    """Whether a fault is that of a branch which a value was not meant for, as another fault shows."""
    is_mapping, place, there = isinstance(fault["input"], Mapping), _pydantic_location(fault), _pydantic_location(other)
    if fault["type"] == "literal_error":
        return is_mapping and other["type"] != "literal_error" and there[: len(place)] == place
    return (
        fault["type"] == "dataclass_type"
        and not is_mapping
        and other["type"] == "literal_error"
        and place[:-1] == there
    )


def _pydantic_location(fault: "ErrorDetails") -> tuple[int | str, ...]:
    """The path of a fault in a user's data: pydantic's location without the names of union branches."""
    return tuple(part for part in fault["loc"] if not _is_tag(part))

"""JSON data read by the types of a dataclass alone, to spare most runs pydantic, which takes long to load.

Whatever is not certain is left to pydantic, which also describes the faults.
"""

__all__ = ("STRICT", "NotPlainError", "by_types", "plain")

import math
import sys
from dataclasses import is_dataclass
from typing import Any

import msgspec

STRICT = {"extra": "forbid", "allow_inf_nan": False}
"""Pydantic configuration of all parts of a suite file."""

_NEUTRAL = {"extra": "forbid", "arbitrary_types_allowed": True, "allow_inf_nan": False}
"""Pydantic settings without effect on data that fits."""

_DEEPEST = 50
_LARGEST = 2**53
"""Below it, a whole number is the same as a float."""


class NotPlainError(Exception):
    """The data needs validation."""


def plain(kind: Any, data: Any) -> Any:
    """Return what strict validation of JSON data returns.

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
    """Return what strict validation of JSON data returns for a type without validators and constraints.

    Raises:
        NotPlainError: The data may not fit, or the type has settings of its own.
    """
    if not _has_no_rules(kind):
        raise NotPlainError
    try:
        made = msgspec.json.decode(msgspec.json.encode(data), type=kind)  # a copy: cases may share data
    except Exception as error:  # a type that msgspec does not know, or whatever __post_init__ raises
        raise NotPlainError from error
    if not _holds(made, data):
        raise NotPlainError
    return made


def _has_no_rules(kind: Any) -> bool:
    config = getattr(kind, "__pydantic_config__", {})
    return config.items() <= _NEUTRAL.items() and not hasattr(kind, "__get_pydantic_core_schema__")


def _holds(made: Any, data: Any, depth: int = 0) -> bool:
    """Return whether an object has exactly the values of the data.

    msgspec ignores unknown keys, and accepts texts and numbers that JSON cannot express.
    """
    match data:
        case dict() | list() if depth == _DEEPEST:
            return False
        case dict():
            inside = vars(made) if is_dataclass(made) else made
            return isinstance(inside, dict) and all(
                key in inside and _holds(key, key) and _holds(inside[key], value, depth + 1)
                for key, value in data.items()
            )
        case list():
            same = isinstance(made, list | tuple) and len(made) == len(data)
            return same and all(_holds(one, other, depth + 1) for one, other in zip(made, data, strict=True))
        case _:
            return made == data and _is_json(data)


def _is_json(value: Any) -> bool:
    """Return whether a scalar keeps its value in JSON, unlike some large numbers and halves of surrogate pairs."""
    match value:
        case str():
            return value.isascii() or _is_unicode(value)
        case None | bool():
            return True
        case int():
            return abs(value) < _LARGEST
    return isinstance(value, float) and math.isfinite(value)


def _is_unicode(text: str) -> bool:
    """Return whether a text can be encoded: half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

"""Scalars of YAML's core schema: the values of plain and tagged text."""

__all__ = ("plain_value", "tag_fault", "tagged_value")

import math
import re
from typing import Any

from pytest_llmeval.data.files.places import MAX_DIGITS

_CORE = "tag:yaml.org,2002:"
_CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER_STARTS = frozenset("-+.0123456789")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_SCALAR_TAGS: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
}


def _number(text: str) -> int | float | str:
    """Return the number that a plain scalar is, or the text itself.

    Raises:
        ValueError: The number is one that JSON cannot carry.
    """
    if _INTEGER.fullmatch(text):
        if len(text) > MAX_DIGITS:
            raise ValueError(f"found a number of {len(text)} digits, expected at most {MAX_DIGITS}")
        return int(text)
    if _FLOAT.fullmatch(text):
        value = float(text)
        if not math.isfinite(value):
            raise ValueError(f"found {text}, expected a number below 1.8e308")
        return value
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _NOT_FINITE.fullmatch(text):
        name = "NaN" if text[1:].lower() == "nan" else "infinity"
        raise ValueError(f"found {name}, expected a finite number (quote it to keep it as text)")
    return text


def plain_value(text: str) -> Any:
    """Return the value of an unquoted scalar (YAML 1.2.2, section 10.3.2).

    Raises:
        ValueError: It is a number that JSON cannot carry.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    return _number(text) if text[0] in _NUMBER_STARTS else text


def tagged_value(text: str, tag: str) -> Any:
    """Return the value of a scalar with an explicit tag.

    Raises:
        ValueError: The tag is not in the core schema, or the text is not of its type.
    """
    name = tag.removeprefix(_CORE)
    if name in {"str", "!"}:
        return text
    if name not in _SCALAR_TAGS or not tag.startswith(_CORE):
        raise ValueError(_unknown_tag(tag))
    value = plain_value(text)
    if type(value) not in _SCALAR_TAGS[name]:
        raise ValueError(f"found {text!r}, expected a value of the type !!{name}")
    return float(value) if name == "float" else value


def tag_fault(tag: str | None, kind: str) -> str | None:
    """Return what is wrong with the tag of a ``seq`` or ``map``; ``None`` if nothing is."""
    return None if tag in {None, "!", _CORE + kind} else _unknown_tag(str(tag))


def _unknown_tag(tag: str) -> str:
    name = "!!" + tag.removeprefix(_CORE) if tag.startswith(_CORE) else tag
    return f"found the tag {name}, expected plain data without a tag"

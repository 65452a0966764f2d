"""Typed JSON: how the plain data of a run crosses processes and lies in files."""

import json
import math
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, TypeGuard, TypeVar

import msgspec

T = TypeVar("T")

LARGEST: Final = 10**18
"""The largest whole number in the results of a run."""

JsonNumber: TypeAlias = Annotated[int, msgspec.Meta(ge=-LARGEST, le=LARGEST)] | float
"""Type of a count that is read as it was written; as `float`, ``2`` would come back as ``2.0``."""

if TYPE_CHECKING:
    AnyNumber: TypeAlias = float
else:
    AnyNumber = float | int
"""Type of a published number, a float for users; whole numbers are read as they were written."""


class WrittenField(Enum):
    """A mark of a field of a published form, in ``Annotated``: whether its default is written.

    Without a mark, the default of a field is left out if its class says ``omit_defaults``.
    """

    ALWAYS = "always"
    IF_KNOWN = "unless it is the default"
    TOGETHER = "unless that of every field with this mark is the default"


def is_finite_number(value: object) -> TypeGuard[JsonNumber]:
    """Return whether a value of JSON is a number that can be compared as a float: not true, and not too large."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def encode(value: object, *, order: Literal["deterministic"] | None = None) -> bytes:
    """Write a value as JSON on one line.

    Args:
        value: Structs, containers and plain values.
        order: ``"deterministic"`` sorts sets and the keys of mappings.

    Raises:
        TypeError: JSON has no form for a part of it.
    """
    try:
        return (_SORTED if order else _PLAIN).encode(value)
    except UnicodeEncodeError:
        # Half of a surrogate pair, which models do emit, has no bytes in UTF-8, but an escape in JSON.
        return json.dumps(msgspec.to_builtins(value, str_keys=True, order=order, enc_hook=_base)).encode()


def decode(text: bytes | str, kind: type[T]) -> T:
    """Read what `encode` wrote; the round trip is identity.

    Raises:
        ValueError: The text is no JSON, or not that of the type; the message names the field.
    """
    try:
        decoder: msgspec.json.Decoder[T] = _decoder(kind)  # type: ignore[arg-type]  # (types are hashable)
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    except msgspec.DecodeError:
        pass  # no JSON, or JSON with half of a surrogate pair, which only the standard library reads
    try:
        return msgspec.convert(json.loads(text, parse_constant=_no_number, parse_float=_finite), kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def _no_number(literal: str) -> float:
    raise ValueError(f"found {literal}, expected a finite number")


def _finite(literal: str) -> float:
    value = float(literal)
    return value if math.isfinite(value) else _no_number(literal)


def plain(value: Any) -> Any:
    """Return JSON data as it would be read from a file: lists for tuples, text for keys.

    Args:
        value: Data that `json.dumps` can write.
    """
    try:
        return msgspec.json.decode(_PLAIN.encode(value))
    except (TypeError, UnicodeEncodeError):  # keys such as `None`, or half of a surrogate pair
        return json.loads(json.dumps(value))


def is_typed(value: object) -> bool:
    """Return whether a value is an object of a dataclass or a pydantic model."""
    kind = type(value)
    return is_dataclass(kind) or hasattr(kind, "model_dump")


def untyped(value: Any) -> Any:
    """Return a value with JSON data in place of objects of dataclasses and pydantic models, at any depth.

    Args:
        value: Any value; what is none of these, such as a set or a function, is left as it is.

    Raises:
        ValueError: An object cannot be written as JSON data.
    """
    match value:
        case str() | int() | float() | None:
            return value
        case dict() if type(value) is dict:
            held = {key: untyped(each) for key, each in value.items()}
            return held if any(held[key] is not each for key, each in value.items()) else value
        case list() | tuple() if type(value) in (list, tuple):
            listed = [untyped(each) for each in value]
            return listed if any(new is not old for new, old in zip(listed, value, strict=True)) else value
    return _dumped(value) if is_typed(value) else value


def _dumped(value: Any) -> Any:
    """Return an object as JSON data."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    try:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=_dumped_inside)
    except (TypeError, UnicodeEncodeError) as error:
        raise ValueError(f"found {type(value).__name__}, expected one with JSON data only ({error})") from None


def _dumped_inside(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else _base(value)


def _base(value: object) -> object:
    """Return a value of a subclass, such as a float of numpy, as one of its built-in base."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"found {type(value).__name__}, expected JSON data")


@cache
def _decoder(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


_PLAIN = msgspec.json.Encoder(enc_hook=_base)
_SORTED = msgspec.json.Encoder(enc_hook=_base, order="deterministic")

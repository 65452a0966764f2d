"""Typed JSON: how the plain data of a run crosses processes and lies in files."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, TypeGuard, TypeVar
from uuid import UUID

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


def normalized(value: Any, *, nan_is_absent: bool = False) -> Any:
    """Return a value as JSON data: the one form in which inputs, expectations and predictions are scored.

    Scalars, arrays, series and indices (NumPy, pandas, and what else has ``tolist`` or ``to_list``), tuples and other
    sequences, mappings, enums, dates, times, UUIDs, `Decimal`, and objects of dataclasses and pydantic models become
    plain values, at any depth. Values that pandas marks as absent (``NA``, ``NaT``) become ``None``. JSON data is
    returned as it is.

    Args:
        value: Any value.
        nan_is_absent: Make ``None`` of a NaN, as data frames mean it; by default it is refused.

    Raises:
        ValueError: It holds something else, such as a set, bytes, a function or infinity; the message names place
            and type.
    """
    return value if _is_json(value) else _normalized(value, "", nan_is_absent)


def _is_json(value: Any) -> bool:
    """Return whether a value is JSON data already, which nearly all are: four times as fast as making it so."""
    kind = type(value)
    if kind is str or value is None or kind is int or kind is bool:
        return True
    if kind is dict:
        return all(type(key) is str for key in value) and all(map(_is_json, value.values()))
    if kind is list:
        return all(map(_is_json, value))
    return kind is float and math.isfinite(value)


def _normalized(value: Any, place: str, nan_is_absent: bool) -> Any:
    kind = type(value)
    if value is None or kind in (str, bool, int):
        return value
    if kind is float:
        if math.isfinite(value):
            return value
        if nan_is_absent and math.isnan(value):
            return None
        raise ValueError(f"{_at(place)}found {value}, expected a finite number")
    if kind is dict:
        held = {_key(key, place): _normalized(each, f"{place}.{key}", nan_is_absent) for key, each in value.items()}
        same = all(held.get(key) is each for key, each in value.items())
        return value if same else held
    if kind is list:
        listed = [_normalized(each, f"{place}[{index}]", nan_is_absent) for index, each in enumerate(value)]
        return listed if any(new is not old for new, old in zip(listed, value, strict=True)) else value
    return _normalized(_as_builtin(value, place), place, nan_is_absent)


def _as_builtin(value: Any, place: str) -> Any:
    """Return a value as one that is nearer to JSON."""
    kind = type(value)
    if kind.__name__ in _ABSENT:
        return None
    by_type = (convert for known, convert in _CONVERTED_FROM if isinstance(value, known))
    by_method = (convert for method, convert in _CONVERTED_BY.items() if hasattr(kind, method))
    if (convert := next(chain(by_type, by_method), None)) is None:
        raise ValueError(f"{_at(place)}found {kind.__name__}, expected JSON data")
    try:
        return convert(value)
    except Exception as error:  # a model is users' code
        raise ValueError(f"{_at(place)}found {kind.__name__}, expected JSON data ({error})") from error


def _number(value: Decimal) -> float:
    return int(value) if value.is_finite() and value == value.to_integral_value() else float(value)


def _with_numbers(written: Any, value: Any) -> Any:
    """Return what a model writes as JSON, but with numbers for `Decimal`, which it writes as text."""
    if isinstance(value, Decimal) and isinstance(written, str):
        return _number(value)
    if isinstance(value, dict) and isinstance(written, dict) and len(value) == len(written):
        return {key: _with_numbers(*both) for key, *both in zip(written, written.values(), value.values(), strict=True)}
    if isinstance(value, list | tuple) and isinstance(written, list) and len(value) == len(written):
        return [_with_numbers(*both) for both in zip(written, value, strict=True)]
    return written


_ABSENT: Final = frozenset({"NAType", "NaTType"})
"""Types of pandas that represent what is absent."""

_CONVERTED_BY: Final[Mapping[str, Callable[[Any], Any]]] = {
    "model_dump": lambda value: _with_numbers(value.model_dump(mode="json", fallback=normalized), value.model_dump()),
    "__dataclass_fields__": lambda value: {each.name: getattr(value, each.name) for each in fields(value)},
    "tolist": lambda value: value.tolist(),
    "to_list": lambda value: value.to_list(),
    "as_py": lambda value: value.as_py(),
}
"""What pydantic's models and dataclasses have, and scalars, arrays and series of NumPy, pandas, polars and Arrow."""

_CONVERTED_FROM: Final[Sequence[tuple[Any, Callable[[Any], Any] | None]]] = (
    (Enum, lambda value: value.value),
    (int, int),
    (float, float),
    (str, str),
    (date | time, lambda value: value.isoformat()),
    (timedelta | UUID, msgspec.to_builtins),
    (Decimal, _number),
    (PurePath, str),
    (bytes | bytearray | memoryview, None),
    (Mapping, dict),
    (Sequence, list),
    (msgspec.Struct, lambda value: {name: getattr(value, name) for name in value.__struct_fields__}),
)


def _key(key: Any, place: str) -> str:
    """Return the key of a mapping as text, as JSON has it."""
    if type(key) is str:
        return key
    builtin = _normalized(key, place, nan_is_absent=False)
    return builtin if isinstance(builtin, str) else json.dumps(builtin)


def _at(place: str) -> str:
    return f"{place.removeprefix('.')}: " if place else ""


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

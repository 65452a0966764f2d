"""Typed JSON: how the plain data of a run crosses processes and lies in files."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from hashlib import sha256
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias, TypeGuard, TypeVar
from uuid import UUID

import msgspec

from pytest_llmeval.core.wording import excerpt

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
    """Whether a value of JSON is a number that can be compared as a float: not true, and not too large."""
    if type(value) is float:  # as most are
        return math.isfinite(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


_LONGEST_POSITION: Final = 18
"""Digits. Python refuses to read some thousands, and nothing that is counted here has as many as these."""


def parse_digits(text: str) -> int | None:
    """The whole number in a text of decimal digits from outside; ``None`` for other texts and too many digits."""
    digits = text.lstrip("0")
    return int(digits or "0") if text.isdecimal() and len(digits) <= _LONGEST_POSITION else None


def encode(value: object, *, order: Literal["deterministic"] | None = None) -> bytes:
    """Write a record of a run as JSON on one line, for files and other processes.

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
    """Read a record of a run that `encode` wrote; the round trip is identity.

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
    """Refuse NaN and infinities in the JSON that processes and files of a run exchange; a hook of `json.loads`."""
    raise ValueError(f"found {literal}, expected a finite number")


def _finite(literal: str) -> float:
    """The float of a number in the JSON of a run; one above the range of floats, such as ``1e999``, is refused."""
    value = float(literal)
    return value if math.isfinite(value) else _no_number(literal)


def plain(value: Any) -> Any:
    """JSON data as it would be read from a file: lists for tuples, text for keys.

    Args:
        value: Data that `json.dumps` can write.
    """
    try:
        return msgspec.json.decode(_PLAIN.encode(value))
    except (TypeError, UnicodeEncodeError):  # keys such as `None`, or half of a surrogate pair
        return json.loads(json.dumps(value))


def is_typed(value: object) -> bool:
    """Whether a value of a case is a user's object of a dataclass or a pydantic model."""
    kind = type(value)
    return is_dataclass(kind) or hasattr(kind, "model_dump")


def form_of(value: Any, *, nan_is_absent: bool = False, only_set: bool = False, strict: bool = False) -> Any:
    """The JSON form of a value of the user's code or data frame, which is what evaluators that ship compare.

    Scalars, arrays, series and indices (NumPy, pandas, and what else has ``tolist`` or ``to_list``), tuples and other
    sequences, mappings, enums, dates, times, UUIDs, `Decimal`, and objects of dataclasses and pydantic models
    become plain values, at any depth. Values that pandas marks as absent (``NA``, ``NaT``) become ``None``. JSON data
    is returned as it is. Other values become `Opaque` texts, and sets become sorted lists.

    Args:
        value: Any value.
        nan_is_absent: Make ``None`` of a NaN, as data frames mean it.
        only_set: Leave out fields of models that have their defaults.
        strict: Refuse values that are no JSON data, such as a set, bytes, a function, NaN or infinity.

    Raises:
        ValueError: A value is refused; the message names place and type.
    """
    try:
        return value if is_json(value) else _FormWriter(nan_is_absent, strict, only_set).form(value, "")
    except RecursionError:  # an object that holds itself
        if strict:
            raise
        return Opaque(value)


def exact_form_of(value: Any) -> Any:
    """The JSON form of a user's value, in which decimal numbers stay `Decimal` objects."""
    try:
        return _FormWriter(nan_is_absent=False, refuses=False, keeps_decimals=True).form(value, "")
    except RecursionError:
        return None


class Opaque(str):
    """The text in place of a user's value that JSON cannot say; equal to that of an equal value only.

    Attributes:
        value: The value itself.
    """

    __slots__ = ("value",)
    value: Any

    def __new__(cls, value: Any) -> Self:
        """Describe a value, without what differs from run to run."""
        opaque = super().__new__(cls, _description(value))
        opaque.value = value
        return opaque

    def __eq__(self, other: object) -> bool:
        """Whether the values are equal, or both NaN."""
        if not isinstance(other, Opaque):
            return False
        return are_equal(self.value, other.value) or (_is_nan(self.value) and _is_nan(other.value))

    @property
    def is_exact(self) -> bool:
        """Whether values that differ have texts that differ, which the ``repr`` of a table or an own class may not."""
        return isinstance(self.value, bytes | bytearray | memoryview | float)

    def __ne__(self, other: object) -> bool:
        """Whether the values differ."""
        return not self == other

    __hash__ = str.__hash__

    def __reduce__(self) -> tuple[type, tuple[Any]]:
        return Opaque, (self.value,)


def are_equal(first: Any, second: Any) -> bool:
    """Whether two values of users' code are equal in Python; arrays and frames are if all of their elements are."""
    if first is second:
        return True
    try:
        same = first == second
        if isinstance(same, bool):
            return same
        if type(first) is not type(second) or getattr(first, "shape", None) != getattr(second, "shape", None):
            return False  # arrays of other shapes are compared after they are stretched
        compare = getattr(first, "equals", None)
        return bool(same.all() if compare is None else compare(second))
    except Exception:  # noqa: BLE001 (comparing is users' code)
        return False


def _is_nan(value: Any) -> bool:
    """Whether the value behind an `Opaque` text is NaN, which no value equals."""
    return isinstance(value, float) and math.isnan(value)


def _description(value: Any) -> str:
    """The text of an `Opaque` value in reports and cache keys: one line, cut with a digest, without secrets.

    An object without a repr of its own is described by its attributes, since its address differs in every run.
    """
    kind = type(value)
    if hasattr(kind, "get_secret_value"):
        return _SECRET
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, _BYTES):
        data = bytes(value)
        return f"<{kind.__name__} of {len(data)} B, sha256 {sha256(data).hexdigest()[:16]}>"
    try:
        text = (
            repr(value)
            if _has_own_repr(kind)
            else f"{kind.__qualname__}({form_of(vars(value)) if vars(value) else ''})"
        )
    except Exception:  # noqa: BLE001 (a description is users' code)
        text = f"<{kind.__qualname__}>"
    text = " ".join(text.split()) if "\n" in text else text
    return text if len(text) <= _LONGEST else f"{excerpt(text, _LONGEST)} sha256 {_digest(text)}"


def _digest(text: str) -> str:
    """A short digest that distinguishes long `Opaque` texts that begin alike."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _has_own_repr(kind: Any) -> bool:
    """Whether the class of an `Opaque` value defines a ``__repr__``; that of `object` is an address in memory."""
    return kind.__repr__ is not object.__repr__


_SECRET: Final = "*" * 10
_LONGEST: Final = 200


def is_json(value: Any) -> bool:
    """Whether a value of a case is JSON data already, which nearly all are: six times as fast as making it so."""
    kind = type(value)
    if kind in _LEAVES:
        return True
    if kind is dict:
        if not _TEXT_KEYS.issuperset(map(type, value)):
            return False
        value = value.values()
    elif kind is not list:
        return (kind is int and value.bit_length() <= _MOST_BITS) or (kind is float and math.isfinite(value))
    for item in value:
        kind = type(item)
        if kind in _LEAVES:  # a call for each text takes three times as long
            continue
        if kind is int:  # and for each number six times
            if item.bit_length() > _MOST_BITS:
                return False
        elif not is_json(item):
            return False
    return True


_TEXT_KEYS: Final = frozenset({str})
_LEAVES: Final = frozenset({str, bool, type(None)})
"""Types whose values are all JSON data."""


class _FormWriter(msgspec.Struct, frozen=True):
    """A writer of users' Python values as JSON data, for `form_of`.

    Attributes:
        nan_is_absent: Whether a NaN becomes ``None``.
        refuses: Whether what JSON cannot say is an error, in place of an `Opaque` text.
        only_set: Whether to leave out fields of models that have their defaults.
        keeps_decimals: Whether decimal numbers stay what they are.
    """

    nan_is_absent: bool
    refuses: bool
    only_set: bool = False
    keeps_decimals: bool = False

    def form(self, value: Any, place: str) -> Any:
        """The JSON form of a value.

        Raises:
            ValueError: It has none, and is refused.
        """
        kind = type(value)
        if value is None or kind in (str, bool, Opaque) or (kind is int and value.bit_length() <= _MOST_BITS):
            return value
        if kind is float or kind is int:
            return self._number(value, place)
        if kind is dict:
            return self._mapping(value, place)
        if kind is list:
            listed = [self.form(item, f"{place}[{index}]") for index, item in enumerate(value)]
            return listed if any(new is not old for new, old in zip(listed, value, strict=True)) else value
        medium = _medium_form(value)
        return self._convert_value(value, place) if medium is None else medium

    def _number(self, value: float, place: str) -> Any:
        is_large = isinstance(value, int)
        if not is_large and math.isfinite(value):
            return value
        if self.nan_is_absent and not is_large and math.isnan(value):
            return None
        if self.refuses:
            number = "a number with too many digits" if is_large else value
            raise ValueError(f"{_at(place)}found {number}, expected a finite number")
        return Opaque(value)

    def _mapping(self, value: dict[Any, Any], place: str) -> Any:
        held = {self._key(key, place): self.form(item, f"{place}.{key}") for key, item in value.items()}
        if len(held) < len(value):  # such as the keys 1 and "1"
            return [[self.form(key, place), self.form(item, f"{place}.{key}")] for key, item in value.items()]
        return value if all(held.get(key) is item for key, item in value.items()) else held

    def _key(self, key: Any, place: str) -> str:
        """The key of a mapping as text, as JSON has it."""
        if type(key) is str:
            return key
        builtin = _exact_number(key) if isinstance(key, Decimal) else self.form(key, place)
        return builtin if isinstance(builtin, str) else json.dumps(builtin)

    def _convert_value(self, value: Any, place: str) -> Any:
        """The JSON form of a value that is no JSON data."""
        kind = type(value)
        if kind.__name__ in _ABSENT:
            return None
        if isinstance(value, float) and not math.isfinite(value):
            return self._number(value, place)  # of NumPy
        if self.keeps_decimals and isinstance(value, Decimal) and value.is_finite():
            return value
        by_type = (convert for known, convert in _CONVERTED_FROM if isinstance(value, known))
        by_library = (_library_text for _ in range(kind.__module__.partition(".")[0] in _LIBRARIES))
        by_method = (convert for method, convert in _CONVERTED_BY.items() if hasattr(kind, method))
        convert = next(chain(by_type, by_method, by_library), None)
        if convert is None or (self.refuses and isinstance(value, AbstractSet)):
            if self.refuses:
                raise ValueError(f"{_at(place)}found {kind.__name__}, expected JSON data")
            return Opaque(value)
        try:
            nearer = _model_fields(value, self.only_set) if convert is _model_fields else convert(value)
        except Exception as error:  # a model is users' code
            if self.refuses:
                raise ValueError(f"{_at(place)}found {kind.__name__}, expected JSON data ({error})") from error
            return Opaque(value)
        form = self.form(nearer, place)
        return sorted(form, key=_SORTED.encode) if isinstance(value, AbstractSet) else form


def _medium_form(value: Any) -> Any:
    """The JSON form of an image, a sound or a document in a user's value; ``None`` for any other value."""
    if not isinstance(value, _BYTES) and type(value).__module__.partition(".")[0] not in _WITH_MEDIA:
        return None
    from pytest_llmeval.core._media import Media

    return Media.form_of(value)


def _exact_number(value: Decimal) -> Any:
    """The JSON form of a decimal number in a case: a number if that is the same number, and else its text."""
    if not value.is_finite():
        return Opaque(value)
    if value == value.to_integral_value() and value.adjusted() < _MOST_DIGITS:
        return int(value)
    return number if Decimal(repr(number := float(value))) == value else str(value)


_MOST_BITS: Final = 10_000
"""Of a whole number; Python reads and writes no number of more than 4,300 digits."""

_MOST_DIGITS: Final = 100
"""Decimal digits of a whole number; ``Decimal("1E+999999")`` is better as its text."""


def _model_fields(model: Any, only_set: bool = False) -> Any:
    """The fields of a user's pydantic model, under the keys by which it is read back."""
    kind: Any = type(model)
    if getattr(kind, "__pydantic_root_model__", False):
        return model.root
    by_alias = _by_alias(kind)
    if _has_serializers(kind):
        return model.model_dump(by_alias=by_alias, exclude_unset=only_set)
    fields_of_kind = {**kind.model_fields, **kind.model_computed_fields}
    held = {}
    for name, field in fields_of_kind.items():
        if not getattr(field, "exclude", False) and not (only_set and name not in model.model_fields_set):
            alias = getattr(field, "serialization_alias", None) or field.alias if by_alias else None
            held[alias or name] = getattr(model, name)
    return {**held, **(model.model_extra or {})}


@cache
def _has_serializers(kind: Any) -> bool:
    """Whether a pydantic model of the user's serializes some of its fields by functions of its own."""
    own = kind.__pydantic_decorators__
    annotations = (note for field in kind.model_fields.values() for note in field.metadata)
    return bool(own.field_serializers or own.model_serializers) or any(
        type(note).__name__ in ("PlainSerializer", "WrapSerializer") for note in annotations
    )


@cache
def _by_alias(kind: Any) -> bool:
    """Whether a model is written with aliases: if it asks for that, or cannot be read back without them."""
    config = kind.model_config
    if config.get("serialize_by_alias"):
        return True
    if config.get("populate_by_name") or config.get("validate_by_name"):
        return False
    return any(field.validation_alias and field.serialization_alias for field in kind.model_fields.values())


_BYTES: Final = (bytes, bytearray, memoryview)
_WITH_MEDIA: Final = frozenset({"PIL", "matplotlib", "pydantic_ai", "pytest_llmeval"})
"""Libraries that have images, sounds or documents among their types."""

_LIBRARIES: Final = frozenset({"ipaddress", "pydantic", "pydantic_core", "pydantic_extra_types"})
"""Libraries whose types pydantic writes."""


def _library_text(value: Any) -> Any:
    """A user's value of a library of types as pydantic writes it."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value)


_ABSENT: Final = frozenset({"NAType", "NaTType"})
"""Types of pandas that represent what is absent."""

_CONVERTED_BY: Final[Mapping[str, Callable[[Any], Any]]] = {
    "get_secret_value": Opaque,
    "model_dump": _model_fields,
    "__dataclass_fields__": lambda value: {
        field.name: getattr(value, field.name) for field in fields(value) if hasattr(value, field.name)
    },
    "__attrs_attrs__": lambda value: {
        attribute.name: getattr(value, attribute.name) for attribute in value.__attrs_attrs__
    },
    "tolist": lambda value: value.tolist(),
    "to_list": lambda value: value.to_list(),
    "as_py": lambda value: value.as_py(),
}
"""What objects of pydantic, dataclasses and attrs have, and arrays and series of NumPy, pandas, polars and Arrow."""

_CONVERTED_FROM: Final[Sequence[tuple[Any, Callable[[Any], Any] | None]]] = (
    (Enum, lambda value: value.value),
    (int, int),
    (float, float),
    (str, str),
    (date | time, lambda value: value.isoformat()),
    (timedelta | UUID, msgspec.to_builtins),
    (Decimal, _exact_number),
    (PurePath, str),
    (_BYTES, None),
    (Mapping, dict),
    (Sequence | AbstractSet, list),
    (msgspec.Struct, lambda value: {name: getattr(value, name) for name in value.__struct_fields__}),
)


def _at(place: str) -> str:
    """The beginning of a message about user data that is not JSON: the path to the value, empty for the whole."""
    return f"{place.removeprefix('.')}: " if place else ""


def _base(value: object) -> object:
    """A user's value of a subclass, such as a float of numpy, as one of its built-in base."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"found {type(value).__name__}, expected JSON data")


@cache
def _decoder(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    """The msgspec decoder of a type, cached: a run decodes many records of the same types."""
    return msgspec.json.Decoder(kind)


_PLAIN = msgspec.json.Encoder(enc_hook=_base)
_SORTED = msgspec.json.Encoder(enc_hook=_base, order="deterministic")

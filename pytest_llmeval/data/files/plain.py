"""Values of JSON data that fit their type as they stand, which is most: without a validator, which is slow to load.

What is not certain is left to the validator, which also says what is wrong.
"""

__all__ = ("STRICT", "NotPlainError", "plain")

import math
from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache, partial
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

Reader: TypeAlias = Callable[[Any], Any]

STRICT = {"extra": "forbid", "allow_inf_nan": False}
"""Pydantic configuration of all parts of a suite file."""

_DEEPEST = 50
_LARGEST = 2**53
"""Whole numbers below are the same as whole numbers and as floats."""

_CONFIG = {"extra": "forbid", "arbitrary_types_allowed": True, "allow_inf_nan": False}
"""Settings of the validator that say nothing about data that fits."""


class NotPlainError(Exception):
    """It takes the validator to tell what a value is."""


def plain(kind: Any, data: Any) -> Any:
    """Return what strict validation of JSON data gives.

    Args:
        kind: A type, such as a dataclass.
        data: Values as the json module reads them.

    Raises:
        NotPlainError: The data may not fit, or the type has rules of its own.
    """
    return _reader(kind)(data)


@lru_cache(maxsize=1024)
def _reader(kind: Any) -> Reader:
    if kind in _SCALARS:
        return _SCALARS[kind]
    if _is_simple(kind):
        return partial(_read_record, kind)
    make = _MAKERS.get(get_origin(kind))
    return _refuse if make is None else make(get_args(kind))


def _refuse(_data: Any) -> Any:
    raise NotPlainError


def _text(data: Any) -> str:
    if type(data) is not str or not (data.isascii() or _is_unicode(data)):
        raise NotPlainError
    return data


def _is_unicode(text: str) -> bool:
    """Return whether a text can be written: half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _whole(data: Any) -> int:
    if type(data) is not int or abs(data) >= _LARGEST:
        raise NotPlainError
    return data


def _float(data: Any) -> float:
    if type(data) is float and math.isfinite(data):
        return data
    return float(_whole(data))


def _truth(data: Any) -> bool:
    if type(data) is not bool:
        raise NotPlainError
    return data


def _nothing(data: Any) -> None:
    if data is not None:
        raise NotPlainError


def _anything(data: Any, depth: int = 0) -> Any:
    """Return a copy of any JSON data."""
    kind = type(data)
    if depth > _DEEPEST:
        raise NotPlainError
    if kind is dict:
        return {_text(key): _anything(value, depth + 1) for key, value in data.items()}
    if kind is list:
        return [_anything(each, depth + 1) for each in data]
    if kind not in _EXACT:
        raise NotPlainError
    return _EXACT[kind](data)


_EXACT: dict[Any, Reader] = {str: _text, int: _whole, float: _float, bool: _truth, NoneType: _nothing}
_SCALARS: dict[Any, Reader] = {**_EXACT, Any: _anything}


def _union(kinds: tuple[Any, ...]) -> Reader:
    """Return the reader of a union, of which one member at most can be the one for a value."""
    members: dict[Any, list[Reader]] = {}
    for kind in kinds:
        members.setdefault(_outer(kind), []).append(_reader(kind))
    uncertain = None in members
    if set(members) == {float, NoneType}:
        members[int] = members[float]

    def read(data: Any) -> Any:
        found = members.get(type(data), ())
        if uncertain or len(found) != 1:
            raise NotPlainError
        return found[0](data)

    return read


def _outer(kind: Any) -> Any:
    """Return the type of the data that a member of a union reads; ``None`` where that is not certain."""
    if kind in _EXACT:
        return kind
    origin = get_origin(kind)
    if origin in (list, tuple):
        return list
    if origin is Literal and all(type(each) is str for each in get_args(kind)):
        return str
    if origin is dict or _is_simple(kind):
        return dict
    return None


def _literal(values: tuple[Any, ...]) -> Reader:
    texts = {each for each in values if type(each) is str}

    def read(data: Any) -> Any:
        if type(data) is not str or data not in texts:
            raise NotPlainError
        return data

    return read


def _list(inside: tuple[Any, ...]) -> Reader:
    each = _reader(inside[0])

    def read(data: Any) -> Any:
        if type(data) is not list:
            raise NotPlainError
        return [each(value) for value in data]

    return read


def _tuple(inside: tuple[Any, ...]) -> Reader:
    if inside[1:] != (...,):
        return _refuse
    read = _list(inside)
    return lambda data: tuple(read(data))


def _dict(inside: tuple[Any, ...]) -> Reader:
    each = _reader(inside[1])
    if inside[0] is not str:
        return _refuse

    def read(data: Any) -> Any:
        if type(data) is not dict:
            raise NotPlainError
        return {_text(key): each(value) for key, value in data.items()}

    return read


_MAKERS: dict[Any, Callable[[tuple[Any, ...]], Reader]] = {
    Union: _union,
    UnionType: _union,
    Literal: _literal,
    list: _list,
    tuple: _tuple,
    dict: _dict,
}


def _is_simple(kind: Any) -> bool:
    """Return whether a type is a dataclass that the validator builds by the types of its fields alone."""
    if not isinstance(kind, type) or "__dataclass_fields__" not in vars(kind):
        return False
    config = getattr(kind, "__pydantic_config__", {})
    own = [value for each in kind.__mro__ for value in vars(each).values()]
    return (
        all(_CONFIG.get(key) == value for key, value in config.items())
        and all(each.init for each in fields(kind))
        and vars(kind)["__init__"].__code__.co_filename == "<string>"  # as the decorator writes it
        and not any("__new__" in vars(each) for each in kind.__mro__ if each is not object)
        and not hasattr(kind, "__get_pydantic_core_schema__")
        and not any(type(each).__module__.partition(".")[0] == "pydantic" for each in own)
    )


def _read_record(kind: Any, data: Any) -> Any:
    readers = _field_readers(kind)
    if type(data) is not dict or not data.keys() <= readers.keys():
        raise NotPlainError
    given = {name: readers[name](value) for name, value in data.items()}
    try:
        return kind(**given)
    except Exception as error:
        raise NotPlainError from error  # the validator says what a class refuses


@lru_cache(maxsize=1024)
def _field_readers(kind: Any) -> dict[str, Reader]:
    try:
        hints = get_type_hints(kind, include_extras=True)
    except NameError as error:
        raise NotPlainError from error
    return {each.name: _reader(hints[each.name]) for each in fields(kind)}

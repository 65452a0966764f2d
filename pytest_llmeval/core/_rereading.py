"""JSON data read as the type of an object that it is compared with, here or where the object was written."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from decimal import Decimal, InvalidOperation
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from pytest_llmeval.core._codec import are_equal, encode, exact_form_of, form_of, is_json, is_typed

if TYPE_CHECKING:
    from pydantic import TypeAdapter


Place: TypeAlias = list[str | int]


class WrittenObject(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is written of an object beside its JSON form, so that it is scored alike when the form is read again.

    Attributes:
        decimals: Places of decimal numbers in the form, with their exact texts.
        read_as: Digest of JSON data that the object was compared with, to the form that the data has as its type.
        typed: Whether it was an object of a dataclass or a pydantic model.
    """

    decimals: Sequence[tuple[Place, str]] = ()
    read_as: Mapping[str, Any] = {}
    typed: bool = False

    @classmethod
    def from_object(cls, value: Any, expected: Any) -> "WrittenObject":
        """The JSON form of an object.

        Args:
            value: The object.
            expected: What it is compared with.
        """
        read_as = dict(_readings(expected, value)) if is_json(expected) else {}
        return cls(tuple(_decimals(exact_form_of(value), [])), read_as, is_typed(value))

    def restored(self, form: Any) -> Any:
        """Return the form with its decimal numbers."""
        if not self.decimals:
            return form
        whole: Any = [deepcopy(form)]
        for place, text in self.decimals:
            *outer, last = [0, *place]
            with suppress(LookupError, TypeError, InvalidOperation):  # a file that was changed by hand
                holder = whole
                for key in outer:
                    holder = holder[key]
                if not isinstance(holder, dict) or last in holder:
                    holder[last] = Decimal(text)
        return whole[0]


def _decimals(form: Any, place: Place) -> Iterator[tuple[Place, str]]:
    """Yield place and exact text of each decimal number in a user's object, for its `WrittenObject`."""
    if isinstance(form, Decimal):
        yield place, str(form)
    elif isinstance(form, dict):
        for key, held in form.items():
            yield from _decimals(held, [*place, key])
    elif isinstance(form, list):
        for index, held in enumerate(form):
            yield from _decimals(held, [*place, index])


def _readings(data: Any, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield digest and form of the parts of JSON data that are read as the type of a user's object."""
    if type(value) is dict and type(data) is dict:
        for key in data:
            if key in value:
                yield from _readings(data[key], value[key])
    elif type(value) is list and type(data) is list and len(value) == len(data):
        for item, held in zip(data, value, strict=True):
            yield from _readings(item, held)
    elif (form := form_as(data, value)) is not data and is_json(form):  # else nothing could be written
        yield _digest(data), form


def _digest(data: Any) -> str:
    """The key of JSON data among the readings that a `WrittenObject` stores."""
    return sha256(encode(data, order="deterministic")).hexdigest()[:16]


def form_as(data: Any, value: Any, known: Mapping[str, Any] = {}) -> Any:
    """The JSON form that data has as an object of the type of a value.

    So ``{"fee": "1.50"}`` equals ``Route(fee=Decimal("1.5"))``, as it does for the tool that wrote it. Data that the
    type refuses, or would read only a part of, is returned as it is.

    Args:
        data: JSON data, such as an expectation in a file.
        value: What is compared with it.
        known: Digest of data to the form that it had as the type of an object of which there is but the form.
    """
    if data is None or not is_json(data) or (not known and is_json(value)):
        return data
    if known and (digest := _digest(data)) in known:
        return known[digest]
    if type(value) is dict and type(data) is dict:
        return {key: form_as(item, value[key], known) if key in value else item for key, item in data.items()}
    if type(value) is list and type(data) is list and len(value) == len(data):
        return [form_as(item, held, known) for item, held in zip(data, value, strict=True)]
    if is_json(value) or data == form_of(value):  # validators do not run again without need
        return data
    return _reread(data, value)


def _reread(data: Any, value: Any) -> Any:
    """The JSON form of data read as the type of a value; the data itself if the type reads only a part of it."""
    try:
        kind: Any = type(value)
        adapter = _adapter(kind)
        built = adapter.validate_python(data)
        dumps = (adapter.dump_python(built, mode="json", by_alias=by_alias) for by_alias in (True, False))
        forms = [form_of(built), *dumps]
    except Exception:  # noqa: BLE001 (types are users' code, and pydantic does not know all)
        return data
    if not _is_read_whole(data, forms):
        return data
    return form_of(value) if are_equal(built, value) else _drop_defaults(form_of(built, only_set=True), data)


@cache
def _adapter(kind: Any) -> "TypeAdapter[Any]":
    """The pydantic validator of the type of a user's object, cached."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _is_read_whole(data: Any, forms: list[Any]) -> bool:
    """Whether every key of JSON data is in a form of the object that a user's type made of it."""
    if isinstance(data, Mapping):
        known = [form for form in forms if isinstance(form, Mapping)]
        return all(
            bool(held := [form[key] for form in known if key in form]) and _is_read_whole(item, held)
            for key, item in data.items()
        )
    if isinstance(data, list):
        lists = [form for form in forms if isinstance(form, list) and len(form) == len(data)]
        return all(_is_read_whole(item, [form[index] for form in lists]) for index, item in enumerate(data))
    return True


def _drop_defaults(form: Any, data: Any) -> Any:
    """The form of an object made of JSON data, without defaults for keys that the data lacks."""
    if isinstance(form, Mapping) and isinstance(data, Mapping) and data.keys() <= form.keys():
        return {key: _drop_defaults(form[key], item) for key, item in data.items()}
    if isinstance(form, list) and isinstance(data, list) and len(form) == len(data):
        return [_drop_defaults(held, item) for held, item in zip(form, data, strict=True)]
    return form

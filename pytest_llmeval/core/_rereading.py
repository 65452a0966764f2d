"""JSON data read as the type of an object that it is compared with."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core._codec import are_equal, form_of, is_json

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def form_as(data: Any, value: Any) -> Any:
    """Return the JSON form that data has as an object of the type of a value.

    So ``{"fee": "1.50"}`` equals ``Route(fee=Decimal("1.5"))``, as it does for the tool that wrote it. Data that the
    type refuses, or would read only a part of, is returned as it is.

    Args:
        data: JSON data, such as an expectation in a file.
        value: What is compared with it.
    """
    if is_json(value) or not is_json(data) or data is None:
        return data
    if type(value) is dict and type(data) is dict:
        return {key: form_as(item, value[key]) if key in value else item for key, item in data.items()}
    if type(value) is list and type(data) is list and len(value) == len(data):
        return [form_as(item, held) for item, held in zip(data, value, strict=True)]
    return data if data == form_of(value) else _reread(data, value)  # validators do not run again without need


def _reread(data: Any, value: Any) -> Any:
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
    return form_of(value) if are_equal(built, value) else _limited(form_of(built, only_set=True), data)


@cache
def _adapter(kind: Any) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _is_read_whole(data: Any, forms: list[Any]) -> bool:
    """Return whether each key of the data is in one of the forms of what was built from it."""
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


def _limited(form: Any, data: Any) -> Any:
    """Return the form without the defaults of keys that the data does not have."""
    if isinstance(form, Mapping) and isinstance(data, Mapping) and data.keys() <= form.keys():
        return {key: _limited(form[key], item) for key, item in data.items()}
    if isinstance(form, list) and isinstance(data, list) and len(form) == len(data):
        return [_limited(held, item) for held, item in zip(form, data, strict=True)]
    return form

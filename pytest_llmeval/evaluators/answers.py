"""Reading answers and expected answers of a case as text."""

__all__ = ("as_references", "as_text", "describe_found", "json_in")

import json
import re
from typing import Any

from pytest_llmeval.core.case import Missing

_SHOWN = 40
"""Characters of a text that a message quotes."""


_FENCED = re.compile(r"\A\s*```\w*\s*?\n(.*)\n\s*```\s*\Z", re.DOTALL)


def json_in(text: str) -> Any:
    r"""Return the JSON data that a text is, also within a fence; the text itself if it is none.

    >>> json_in("```json\n[1, 2]\n```"), json_in("[1, 2")
    ([1, 2], '[1, 2')
    """
    fenced = _FENCED.match(text)
    try:
        return json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        return text


def as_text(value: Any) -> str | None:
    """Return a JSON scalar as text: a string unchanged, a number or boolean as its JSON text.

    Returns:
        The text; ``None`` for null, a list, an object, or a value that was not given.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return None


def as_references(value: Any) -> list[str] | None:
    """Return the acceptable answers of a case's ground truth.

    Args:
        value: A scalar (one reference), a list of scalars (several), or null.

    Returns:
        The references as texts; empty where the ground truth is absent (null or an empty list); ``None``
        where it is of the wrong form (an object, or a list that holds anything but scalars).
    """
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        texts = [text for each in value if (text := as_text(each)) is not None]
        return texts if len(texts) == len(value) else None
    text = as_text(value)
    return None if text is None else [text]


def describe_found(value: Any) -> str:
    """Say what a value is: ``null``, ``a list``, ``an object``, ``number 3``, ``text 'abc…'``."""
    match value:
        case None:
            found = "null"
        case str():
            short = value if len(value) <= _SHOWN else value[: _SHOWN - 1] + "…"
            found = f"text {short!r}"
        case bool():
            found = json.dumps(value)
        case int() | float():
            found = f"number {json.dumps(value)}"
        case list() | tuple():
            found = "a list"
        case dict():
            found = "an object"
        case Missing():
            found = "nothing"
        case _:
            found = f"a value of type {type(value).__name__}"
    return found

"""Classification labels: strings, numbers and booleans, distinguished by their JSON text."""

__all__ = ("NO_LABEL", "Label", "label_key", "label_name", "label_order")

import json
import math
import re
from typing import Any, TypeAlias

Label: TypeAlias = str | int | float | bool

NO_LABEL = "null"
"""Key of "no label was given"; no label has it, since null is no label."""

_NO_LABEL_NAME = "(none)"

_NEEDS_QUOTES = re.compile(r'-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|null|\(none\)|".*', re.DOTALL)
"""Strings that would be mistaken for another label when they are shown without quotes."""


def label_key(value: Any) -> str | None:
    """Return the JSON text of a label, by which labels are told apart: ``"1"``, ``1`` and ``1.0`` differ.

    Returns:
        The text; ``None`` for what cannot be a label (null, a list, an object, a number that is not finite).
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (str, int, float)) else None


def label_name(key: str) -> str:
    """Return a key as people read it: a string without quotes unless it looks like another JSON value."""
    if key == NO_LABEL:
        return _NO_LABEL_NAME
    value = json.loads(key)
    return value if isinstance(value, str) and not _NEEDS_QUOTES.fullmatch(value) else key


def label_order(key: str) -> tuple[int, float, str]:
    """Return what keys are sorted by: booleans, numbers by size, strings by code point, `NO_LABEL` last."""
    if key == NO_LABEL:
        return 3, 0.0, key
    value = json.loads(key)
    if isinstance(value, str):
        return 2, 0.0, value
    return (0 if isinstance(value, bool) else 1), value, key

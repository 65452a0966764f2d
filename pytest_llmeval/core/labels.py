"""Labels: strings, numbers and booleans, distinguished by their JSON text; and counts of label pairs."""

__all__ = ("NO_LABEL", "Label", "cell_name", "label_key", "label_name", "label_order", "read_cells")

import json
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeAlias

Label: TypeAlias = str | int | float | bool

NO_LABEL = "null"
"""Key of "no label was given"; no label has it, since null is no label."""

_NO_LABEL_NAME = "(none)"

_NEEDS_QUOTES = re.compile(r'-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|null|\(none\)|".*', re.DOTALL)
"""Strings that would be mistaken for another label when they are shown without quotes."""


_REMEMBERED = 1 << 12
"""Names that are remembered: formulas read the same ones for every block of resamples."""


@lru_cache(maxsize=_REMEMBERED)
def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def label_key(value: Any) -> str | None:
    """Return the JSON text of a label, which distinguishes labels: ``"1"``, ``1`` and ``1.0`` differ.

    Returns:
        The text; ``None`` for what cannot be a label (null, a list, an object, a number that is not finite).
    """
    if type(value) is str:
        return _quoted(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (str, int, float)) else None


@lru_cache(maxsize=_REMEMBERED)
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


CELL = "cell"
"""Prefix of the names of confusion counts, unless an evaluator has several kinds of them."""


@lru_cache(maxsize=_REMEMBERED)
def cell_name(gold: str, predicted: str, prefix: str = CELL) -> str:
    """Return the count name of a cell, such as ``cell["joy","anger"]``, from the keys of its two labels."""
    return f"{prefix}[{gold},{predicted}]"


def read_cells(sums: Mapping[str, Any], prefix: str = CELL) -> dict[tuple[str, str], Any]:
    """Return the cells among named sums as ``(gold key, predicted key) -> sum``; other names are left out."""
    return {_read_cell(name, prefix): value for name, value in sums.items() if name.startswith(prefix + "[")}


@lru_cache(maxsize=_REMEMBERED)
def _read_cell(name: str, prefix: str) -> tuple[str, str]:
    gold, predicted = json.loads(name.removeprefix(prefix))
    return label_key(gold) or NO_LABEL, label_key(predicted) or NO_LABEL

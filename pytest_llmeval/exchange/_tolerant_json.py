"""JSON as other tools write it."""

import json
import math
from typing import Any, Final


def _finite(literal: str) -> float | None:
    """A float literal in another tool's JSON; ``None`` if it is not finite."""
    value = float(literal)
    return value if math.isfinite(value) else None


TOLERANT: Final = json.JSONDecoder(parse_constant=lambda _: None, parse_float=_finite)
"""Reads numbers that are not finite as ``None``."""


def parse_tolerantly(text: str) -> Any:
    """Parse JSON of another tool, without non-finite numbers and halves of surrogate pairs.

    Raises:
        ValueError: It is no JSON.
        RecursionError: It is nested too deeply.
    """
    return without_half_pairs(TOLERANT.decode(text), text)


def without_half_pairs(value: Any, text: str) -> Any:
    """Data of another tool's JSON text without halves of surrogate pairs."""
    return _whole(value) if r"\ud" in text.lower() else value


def _whole(value: Any) -> Any:
    """JSON data of another tool with a replacement for each half of a surrogate pair."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_whole(name): _whole(child) for name, child in value.items()}
        case list():
            return [_whole(item) for item in value]
    return value

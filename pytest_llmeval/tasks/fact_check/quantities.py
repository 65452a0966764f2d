"""Numbers in texts, as whole tokens with scale and unit."""

__all__ = ("Quantity", "find_quantities", "is_quantity")

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cache
from typing import NamedTuple

from pytest_llmeval.data.labels import load_taxonomy

_PLAIN = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_PLUS_MINUS = "\u2212+-"
_SHORT = 4
_NARROW = {code: code - 0xFEE0 for code in (*range(0xFF10, 0xFF1A), 0xFF0E, 0xFF05, 0xFF0B, 0xFF0D)}
"""Full-width digits, point, percent and signs to their usual forms; no place moves."""
_DIGITS = 40
"""Longer numbers are compared as they are written."""


class Quantity(NamedTuple):
    """A number in a text.

    Attributes:
        key: The same for all spellings of the same number with the same unit: ``5.2%`` for ``5.20 percent``.
        start: Where it begins, sign and currency included.
        end: Where it ends, unit included.
        citable: Whether it is a percentage, or has separators of thousands.
    """

    key: str
    start: int
    end: int
    citable: bool


def find_quantities(text: str) -> Iterator[Quantity]:
    """Yield the numbers of a text.

    A number is a whole run of digits with its separators, so there is no 5.2 in 15.2 or 5.2.1, and none in a word such
    as G20. Scale and unit belong to it: 1.2 million is 1,200,000 and 5.2% is neither 5.2 nor 5.2 percentage points.

    >>> [each.key for each in find_quantities("It rose 5.2 % to 1.2 million (百分之15.20, not 5.2 percentage points).")]
    ['5.2%', '1200000', '15.2%', '5.2points']
    """
    for match in _pattern().finditer(text.translate(_NARROW)):
        sign, number, scale, unit = match["sign"], match["number"], match["scale"], match["unit"]
        signs, words = _units()
        named = signs.get(_folded(sign.lstrip(_PLUS_MINUS).strip()))
        if named and unit == "m":  # no length has a currency
            scale, unit = "million", None
        named = named or words.get(_folded(unit or ""), "")
        value = _value(number, scale)
        minus = "-" if sign.startswith(("-", "\u2212")) and value != "0" else ""
        citable = named in ("%", "\u2030") or ("," in number and _PLAIN.fullmatch(number) is not None)
        yield Quantity(f"{minus}{value}{named}", match.start(), match.end(), citable)


def is_quantity(text: str) -> bool:
    """Return whether a text is a number and nothing else."""
    first = next(find_quantities(text), None)
    return first is not None and not text[: first.start].strip() and not text[first.end :].strip()


def _value(number: str, scale: str | None) -> str:
    if not _PLAIN.fullmatch(number) or len(number) > _DIGITS:
        return f"{number}{_folded(scale or '')}"
    value = Decimal(number.replace(",", "")) * _scales().get(_folded(scale or ""), 1)
    return f"{value.normalize():f}"


@cache
def _pattern() -> re.Pattern[str]:
    """Return the pattern of a number with what belongs to it; it never looks further back than a few characters."""
    signs, words = _units()
    sign = rf"(?:(?<![A-Za-z\d_%\uff05)\]])[{_PLUS_MINUS}])?(?:(?:{_any_of(signs)})[ \u00a0]?)?"
    after = rf"(?:[ \u00a0]?(?P<scale>{_any_of(_scales())}))?+(?:[ \u00a0]?(?P<unit>{_any_of(words)}))?+"
    return re.compile(rf"(?<![A-Za-z\d_])(?<!\d[.,])(?P<sign>{sign})(?P<number>\d++(?:[.,]\d++)*+){after}")


def _any_of(names: Iterable[str]) -> str:
    """Return a pattern for any of the names, the longest that fits; one in Latin letters stands for a whole word."""
    patterns = []
    for name in sorted(names, key=len, reverse=True):
        pattern = re.escape(name) if len(name) < _SHORT else f"(?i:{re.escape(name)})"
        patterns.append(rf"{pattern}(?![A-Za-z])" if name[-1].isascii() and name[-1].isalpha() else pattern)
    return "|".join(patterns)


def _folded(name: str) -> str:
    return name if len(name) < _SHORT else name.lower()


@cache
def _units() -> tuple[dict[str, str], dict[str, str]]:
    """Return signs and words, each with its unit."""
    units = load_taxonomy("citations")["units"]
    signs = {_folded(name): unit for unit, each in units.items() for name in each.get("signs", ())}
    words = {_folded(name): unit for unit, each in units.items() for name in each["words"]}
    return signs, words


@cache
def _scales() -> dict[str, int]:
    scales = load_taxonomy("citations")["scales"]
    return {_folded(name): int(factor) for factor, names in scales.items() for name in names}

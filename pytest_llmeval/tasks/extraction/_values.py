"""Comparators of single values."""

import math
import re
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal
from functools import cached_property
from typing import Any, Literal
from unicodedata import normalize

from pytest_llmeval.evaluators import AnswerValue

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = {name[:length]: number for number, name in enumerate(_MONTHS, 1) for length in (3, len(name))} | {"sept": 9}

_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ]\d\d:?\d\d.*)?|(\d{4})(\d\d)(\d\d)")
_YEAR_FIRST = re.compile(r"(\d{4})\s*[-/.年]\s*(\d{1,2})\s*[-/.月]\s*(\d{1,2})\s*日?")
_DAY_MONTH = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?[ -]+(?:of +)?([a-z]+)\.?,?[ -]+(\d{4})", re.IGNORECASE)
_MONTH_DAY = re.compile(r"([a-z]+)\.? +(\d{1,2})(?:st|nd|rd|th)?,? +(\d{4})", re.IGNORECASE)
_NUMBERS = re.compile(r"(\d{1,2})\s*[-/.]\s*(\d{1,2})\s*[-/.]\s*(\d{4})")
_LONGEST = 64


def read_date(text: str, order: Literal["dmy", "mdy"] | None = None) -> date | None:
    """The day that an extracted text names; ``None`` if it names none.

    ISO 8601 (a time of day behind it is ignored), the year first, or the month by its English name.

    Args:
        text: The text.
        order: Of day and month where both are numbers in front of the year.

    Example:
        >>> read_date("2024-03-05"), read_date("March 5, 2024") == read_date("2024年3月5日")
        (datetime.date(2024, 3, 5), True)
        >>> read_date("05/03/2024"), read_date("05/03/2024", "dmy")
        (None, datetime.date(2024, 3, 5))
    """
    text = text.strip()
    if len(text) > _LONGEST or not text.isprintable():
        return None
    if match := _ISO.fullmatch(text):
        year, month, day = (part for part in match.groups() if part is not None)
    elif match := _YEAR_FIRST.fullmatch(text):
        year, month, day = match.groups()
    elif match := _DAY_MONTH.fullmatch(text):
        day, month, year = match.groups()
    elif match := _MONTH_DAY.fullmatch(text):
        month, day, year = match.groups()
    elif order and (match := _NUMBERS.fullmatch(text)):
        first, second, year = match.groups()
        day, month = (first, second) if order == "dmy" else (second, first)
    else:
        return None
    number = int(month) if month.isdecimal() else _MONTH.get(month.lower(), 0)
    try:
        return date(int(year), number, int(day))
    except ValueError:
        return None


SCALARS = frozenset((str, int, float))
"""Types whose equal values are the same JSON value; ``True`` equals 1."""

_NUMERAL = re.compile(r"\s*[+-]?(?:[0-9]{1,300}(?:\.[0-9]{0,300})?|\.[0-9]{1,300})(?:[eE][+-]?[0-9]{1,3})?\s*")
_DECIMAL = Context(prec=60)


def exact_key(value: Any) -> Hashable:
    """A normal form in which extracted JSON values are equal if they are the same value; ``true`` is not 1.

    Example:
        >>> exact_key([1, {"a": "x"}]) == exact_key([1.0, {"a": "x"}]), exact_key(True) == exact_key(1)
        (True, False)
    """
    if isinstance(value, dict):
        # Called for each call of each trace: a scalar needs no call of its own.
        return frozenset([(name, item if type(item) in SCALARS else exact_key(item)) for name, item in value.items()])
    if type(value) in SCALARS or value is None:
        return value  # type: ignore[no-any-return]  # one of SCALARS
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, list | tuple):
        return ("list", *map(exact_key, value))
    return value if isinstance(value, Hashable) else repr(value)


@dataclass(frozen=True)
class ValueComparator:
    """A comparator of extracted values that count as one field.

    Attributes:
        expected: What it can read, for messages.
    """

    expected = "a JSON value"

    @property
    def transitive(self) -> bool:
        """Whether values that agree with the same value agree with each other."""
        return True

    def read(self, value: Any) -> Hashable | None:
        """Return the normal form; ``None`` if the value is of another kind."""
        return exact_key(value)

    def key(self, value: Any) -> Hashable:
        """Return the normal form; of a value of another kind, one that only the same value has."""
        read = self.read(value)
        return ("other", exact_key(value)) if read is None else read

    def agrees(self, expected: Any, actual: Any) -> bool:
        """Whether what was found is right."""
        if type(expected) is type(actual) and type(expected) in SCALARS and expected == actual:
            return True
        return self.key(expected) == self.key(actual)

    def fault(self, value: Any) -> str | None:
        """Say why a value cannot be what is expected; ``None`` if it can."""
        return f"found {AnswerValue(value).kind}, expected {self.expected}" if self.read(value) is None else None


@dataclass(frozen=True)
class Exact(ValueComparator):
    """A comparator of extracted values: the same JSON value."""

    def key(self, value: Any) -> Hashable:
        """Return the value itself if it is a text or a number, else its normal form."""
        return value if type(value) in SCALARS else exact_key(value)


EXACT = Exact()


@dataclass(frozen=True)
class Folded(ValueComparator):
    """A comparator of extracted text after NFC, without letter case and spacing; other values are their JSON text."""

    expected = "text"

    def read(self, value: Any) -> Hashable | None:
        """Return the folded text."""
        text = AnswerValue(value).text
        if text is None:
            return None
        if not text.isascii():
            text = normalize("NFC", normalize("NFC", text).casefold())
        return " ".join(text.casefold().split())


@dataclass(frozen=True)
class Numeral(ValueComparator):
    """A comparator of extracted numbers, or texts that are one, within a tolerance.

    Attributes:
        tolerance: Largest difference.
        relative: Largest difference as a share of what is expected.
    """

    tolerance: float = 0.0
    relative: float = 0.0

    expected = "a number"

    @property
    def transitive(self) -> bool:
        """Only without a tolerance: 1 is close to 2, and 2 to 3."""
        return not any(self._limits)

    @cached_property
    def _limits(self) -> tuple[Decimal, Decimal]:
        return Decimal(repr(self.tolerance)), Decimal(repr(self.relative))

    def read(self, value: Any) -> Decimal | None:
        """Return the number in decimal, as it is written."""
        if isinstance(value, bool):
            return None
        if isinstance(value, int):
            return Decimal(value)
        if isinstance(value, float):
            return Decimal(repr(value)) if math.isfinite(value) else None
        return Decimal(value.strip()) if isinstance(value, str) and _NUMERAL.fullmatch(value) else None

    def agrees(self, expected: Any, actual: Any) -> bool:
        """Whether the numbers are close enough."""
        if type(expected) is type(actual) and type(expected) in SCALARS and expected == actual:
            return True
        right, number = self.read(expected), self.read(actual)
        if right is None or number is None:
            return self.key(expected) == self.key(actual)
        absolute, relative = self._limits
        return abs(_DECIMAL.subtract(right, number)) <= max(absolute, _DECIMAL.multiply(relative, abs(right)))


@dataclass(frozen=True)
class Day(ValueComparator):
    """A comparator of extracted dates, in any spelling.

    Attributes:
        order: Of day and month where both are numbers in front of the year.
    """

    order: Literal["dmy", "mdy"] | None = None

    @property
    def expected(self) -> str:  # type: ignore[override]  # depends on a field
        """Say what can be read."""
        return "a date such as 2024-03-05" + ("" if self.order else " (for 05/03/2024, set order: dmy or mdy)")

    def read(self, value: Any) -> Hashable | None:
        """Return the day."""
        return read_date(value, self.order) if isinstance(value, str) else None


@dataclass(frozen=True)
class Members(ValueComparator):
    """A comparator of extracted lists as sets, without order and repetition; a single value is a set of one.

    Attributes:
        member: Compares the members.
    """

    member: ValueComparator = EXACT

    expected = "a list"

    def read(self, value: Any) -> Hashable | None:
        """Return the members."""
        if isinstance(value, dict):
            return None
        return frozenset(map(self.member.key, value if isinstance(value, list | tuple) else [value]))

    def fault(self, value: Any) -> str | None:
        """Say why a value cannot be what is expected, members included."""
        if (fault := super().fault(value)) is not None:
            return fault
        members = value if isinstance(value, list | tuple) else [value]
        return next((fault for member in members if (fault := self.member.fault(member)) is not None), None)

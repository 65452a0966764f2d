"""Reading of dates, whatever the locale."""

__all__ = ("read_date",)

import re
from datetime import date
from typing import Literal

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
    """Return the day that a text names; ``None`` if it names none.

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

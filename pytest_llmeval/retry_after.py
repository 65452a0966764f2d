"""How long a service asks to wait before it is asked again."""

__all__ = ("LONGEST_DELAY", "delay_asked_for")

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST_DELAY: Final = 120.0
"""Seconds that a service may make us wait between two attempts."""


def delay_asked_for(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds of ``Retry-After`` (RFC 9110, section 10.2.3): a number or a date; ``None`` without it.

    OpenAI's ``retry-after-ms`` is read first.

    Example:
        >>> from datetime import UTC, datetime
        >>> delay_asked_for({"retry-after": "Thu, 01 Jan 2026 00:00:07 GMT"}, datetime(2026, 1, 1, tzinfo=UTC))
        7.0
    """
    seconds = _number(headers.get("retry-after-ms"))
    seconds = None if seconds is None else seconds / 1000
    if seconds is None:
        seconds = _number(headers.get("retry-after"))
    if seconds is None:
        seconds = _until(headers.get("retry-after", ""), now)
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_DELAY)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if value == value else None  # noqa: PLR0124 (NaN is the number that is not itself)


def _until(text: str, now: datetime) -> float | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds()

"""Which failures of a service pass, and how long to wait before it is asked again."""

__all__ = ("LONGEST_DELAY", "TransientError", "delay_asked_for", "is_transient", "retrying")

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tenacity import AsyncRetrying, RetryCallState


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


_FIRST_WAIT: Final = 0.5
_TRANSIENT: Final = frozenset({408, 425, 429})
_SERVER_ERROR: Final = 500


class TransientError(Exception):
    """An attempt failed in a way that another may not.

    Attributes:
        retry_after: Seconds that the service asks to wait; ``None`` where it does not say.
        unreachable: Whether nobody listens at the address.
    """

    def __init__(self, message: str, *, retry_after: float | None = None, unreachable: bool = False) -> None:
        self.retry_after = retry_after
        self.unreachable = unreachable
        super().__init__(message)


def is_transient(status: int) -> bool:
    """Return whether a request that got this status may succeed later."""
    return status in _TRANSIENT or status >= _SERVER_ERROR


def retrying(attempts: int, sleep: Callable[[float], Awaitable[None]]) -> "AsyncRetrying":
    """Return what calls a function again as long as it raises `TransientError`, and raises the last one.

    Args:
        attempts: Most calls.
        sleep: Waits as long as the service asks, but at most `LONGEST_DELAY` seconds; where it does not ask, twice as
            long each time, with jitter.
    """
    import tenacity

    backoff = tenacity.wait_exponential(multiplier=_FIRST_WAIT, max=LONGEST_DELAY) + tenacity.wait_random(
        0, _FIRST_WAIT
    )

    def wait(state: "RetryCallState") -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        asked = error.retry_after if isinstance(error, TransientError) else None
        return backoff(state) if asked is None else asked

    return tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(attempts),
        retry=tenacity.retry_if_exception_type(TransientError),
        wait=wait,
        sleep=sleep,
        reraise=True,
    )

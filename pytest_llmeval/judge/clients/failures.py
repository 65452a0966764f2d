"""An attempt that failed: whether another may succeed, and what a person can do about it."""

__all__ = ("FILTERED", "AttemptError", "failed_status", "message_in")

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from pytest_llmeval.judge.contract import Usage
from pytest_llmeval.retry_after import delay_asked_for

FILTERED: Final = "found a refusal: the provider filters what this case says"

_TOO_MANY = 429
_PASSING = frozenset({408, 409, 425, _TOO_MANY})
_BAD_REQUEST = 400
_SERVER_FAULT = 500


@dataclass(eq=False)
class AttemptError(Exception):
    """One attempt that gave no reply.

    Attributes:
        what: What happened, fit to be shown.
        advice: What to do about it; may be empty.
        passing: Whether another attempt may succeed.
        status: Of HTTP, if there was one.
        delay: Seconds that the server asks to wait.
        usage: What the provider charged for nevertheless.
    """

    what: str
    advice: str = ""
    passing: bool = False
    status: int | None = None
    delay: float | None = None
    usage: Usage = field(default_factory=Usage)

    @property
    def rate_limited(self) -> bool:
        """Whether there were too many requests, so that fewer at a time would help."""
        return self.status == _TOO_MANY and self.passing


def failed_status(status: int, said: str, *, raw: str, headers: Mapping[str, str], key: str) -> AttemptError:
    """Return the failure that an HTTP status is.

    Args:
        status: 300 or more.
        said: What the server said about it, fit to be shown.
        raw: The body of the answer, to tell one 429 from another.
        headers: Of the answer; names in lower case.
        key: Where the key comes from, for advice.
    """
    spent = status == _TOO_MANY and "insufficient_quota" in raw
    advice = _advice(status, key)
    if spent:
        advice = "the account's quota is spent: check its plan and billing"
    elif status == _BAD_REQUEST and "content_filter" in raw:  # of Azure and its like, for what others answer with 200
        advice = FILTERED
    return AttemptError(
        f"status {status}" + (f": {said}" if said else ""),
        advice,
        passing=not spent and (status in _PASSING or status >= _SERVER_FAULT),
        status=status,
        delay=delay_asked_for(headers, datetime.now(UTC)),
    )


def _advice(status: int, key: str) -> str:
    match status:
        case 401 | 403:
            return f"check {key}, and that it may use this model"
        case 404:
            return "check the judge's model and base_url (many servers want one that ends in /v1)"
        case 429:
            return "make fewer requests at a time, or raise the judge's retries"
        case _ if status in _PASSING or status >= _SERVER_FAULT:
            return "try again later, or raise the judge's retries"
        case _ if status >= 400:  # noqa: PLR2004 (statuses of HTTP)
            return "check the judge's model and parameters"
        case _:
            return "redirects are not followed: check the judge's base_url"


def message_in(data: Any) -> str | None:
    """Return what the JSON body of a failed call says, in the forms that servers use; ``None`` if it says nothing."""
    if isinstance(data, Mapping):
        for name in ("error", "message", "detail"):
            value = data.get(name)
            found = value if isinstance(value, str) else message_in(value)
            if found:
                return found
    if isinstance(data, list) and data:
        return message_in(data[0])
    return None

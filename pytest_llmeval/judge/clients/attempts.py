"""Attempts until one succeeds: exponential backoff with jitter, and the delay that a server asks for."""

__all__ = ("FILTERED", "AttemptError", "Patience", "Sleep", "failed_status", "message_in")

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pytest_llmeval.core.errors import JudgeError
from pytest_llmeval.judge.clients.base import OnRateLimit, added
from pytest_llmeval.judge.contract import JudgeReply, Usage
from pytest_llmeval.services.retrying import delay_asked_for

if TYPE_CHECKING:
    from tenacity import RetryCallState


FILTERED: Final = "found a refusal: the provider filtered the content of this case"

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
            return f"check {key}, and whether it may use this model"
        case 404:
            return "check the judge's model and base_url (on many servers it ends in /v1)"
        case 429:
            return "make fewer concurrent calls (--llmeval-concurrency), or raise the judge's retries"
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


Sleep: TypeAlias = Callable[[float], Awaitable[None]]

_FIRST = 0.5
_LONGEST = 30.0


@dataclass(frozen=True)
class Patience:
    """How often, and after which delays, a call is tried.

    Attributes:
        provider: For messages.
        retries: Further attempts after a failed one.
        on_rate_limit: Told of every answer "too many requests".
        sleep: Waits between attempts.
    """

    provider: str
    retries: int
    on_rate_limit: OnRateLimit | None = None
    sleep: Sleep = asyncio.sleep

    async def persist(self, attempt: Callable[[], Awaitable[JudgeReply]]) -> JudgeReply:
        """Return the first reply, its usage with that of the attempts before it.

        Raises:
            JudgeError: No attempt gave one, or further ones are pointless.
        """
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

        failures: list[AttemptError] = []

        def note(state: "RetryCallState") -> None:
            failure = _failure(state)
            failures.append(failure)
            if failure.rate_limited and self.on_rate_limit is not None:
                self.on_rate_limit(failure.delay)

        async def once() -> JudgeReply:
            # Tenacity awaits only what is declared to be async; `attempt` may be a lambda.
            return await attempt()

        retrying = AsyncRetrying(
            stop=stop_after_attempt(self.retries + 1),
            wait=_delay,
            retry=retry_if_exception(lambda error: isinstance(error, AttemptError) and error.passing),
            after=note,
            sleep=self.sleep,
            reraise=True,
        )
        try:
            reply: JudgeReply = await retrying(once)
        except AttemptError as failure:
            text, tried = _told(failure), len(failures) + (not failure.passing)
        else:
            return replace(reply, usage=_total([*(each.usage for each in failures), reply.usage]))
        # Raised out here, without the exceptions before it: those have frames that hold the key.
        raise JudgeError(f"{self.provider}: {text}" + (f" (after {tried} attempts)" if tried > 1 else ""))


def _failure(state: "RetryCallState") -> AttemptError:
    error = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(error, AttemptError)
    return error


def _delay(state: "RetryCallState") -> float:
    """Return the seconds before the next attempt; jitter keeps concurrent calls from coming back all at once."""
    from tenacity import wait_exponential, wait_random

    asked = _failure(state).delay
    if asked is None:
        return wait_exponential(multiplier=_FIRST, max=_LONGEST)(state) + wait_random(0, _FIRST)(state)
    return asked + wait_random(0, max(0.05, asked / 10))(state)


def _told(failure: AttemptError) -> str:
    return f"{failure.what}; {failure.advice}" if failure.advice else failure.what


def _total(usages: list[Usage]) -> Usage:
    total = Usage()
    for usage in usages:
        total = added(total, usage)
    return total

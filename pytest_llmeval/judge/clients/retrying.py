"""Attempts until one succeeds: exponential backoff with jitter, and the delay that a server asks for."""

__all__ = ("Patience", "Sleep")

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from pytest_llmeval.errors import JudgeError
from pytest_llmeval.judge.clients.base import OnRateLimit, added
from pytest_llmeval.judge.clients.failures import AttemptError
from pytest_llmeval.judge.contract import JudgeReply, Usage

if TYPE_CHECKING:
    from tenacity import RetryCallState

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

"""Which failures of a service pass, and how long to wait before it is asked again."""

__all__ = ("TransientError", "is_transient", "retrying")

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from pytest_llmeval.retry_after import LONGEST_DELAY

if TYPE_CHECKING:
    from tenacity import AsyncRetrying, RetryCallState

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

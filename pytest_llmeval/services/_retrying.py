"""Retries of calls that failed."""

import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct, field

from pytest_llmeval.services._background import Activity

Refused: TypeAlias = Literal["", "key", "access"]
"""What a service refuses: nothing, the key, or access, which may be because of the key or of what was sent."""

_REFUSED: Final[Mapping[int, Refused]] = {401: "key", 403: "access"}
_IN_A_ROW: Final = 5


class Notes(Protocol):
    """Notes on services, by key, that the processes of a run share."""

    def get(self, key: str) -> str | None:
        """The text of a note on a service."""

    def put(self, key: str, text: str) -> None:
        """Keep the text of a note on a service until the run ends."""


class Refusals(Struct):
    """The services that refused a key or access in a run.

    A refused key is refused for good. Access is taken as refused for good while no call has succeeded, and after five
    refusals in a row: gateways refuse single texts that look hostile.

    Attributes:
        shared: Where the other processes of the run read them; ``None`` where there is one process.
    """

    shared: Notes | None = None
    _known: dict[str, str] = {}
    _succeeded: set[str] = set()
    _in_a_row: dict[str, int] = {}

    def get(self, address: str) -> str | None:
        """The answer of an address when it refused the key, or nothing."""
        if address not in self._known and self.shared is not None:
            text = self.shared.get(_refused_note(address))
            if text is not None:
                self._known[address] = text
        return self._known.get(address)

    def succeeded(self, address: str) -> None:
        """Note that an address answered a call."""
        self._in_a_row[address] = 0
        if address not in self._succeeded:
            self._succeeded.add(address)
            if self.shared is not None:
                self.shared.put(_answered_note(address), address)

    def put(self, address: str, refused: Refused, text: str) -> None:
        """Note what an address refused; the first text stays, so that all calls fail with the same."""
        row = self._in_a_row[address] = self._in_a_row.get(address, 0) + 1
        if refused == "access" and row < _IN_A_ROW and self._has_succeeded(address):
            return
        if self.get(address) is None:
            self._known[address] = text
            if self.shared is not None:
                self.shared.put(_refused_note(address), text)

    def _has_succeeded(self, address: str) -> bool:
        if address in self._succeeded:
            return True
        return self.shared is not None and self.shared.get(_answered_note(address)) is not None


def _answered_note(address: str) -> str:
    """The key of the note, shared by the processes of a run, that a service has answered a call."""
    return f"answered {address}"


def _refused_note(address: str) -> str:
    """The key of the note, shared by the processes of a run, that a service has refused the key or access."""
    return f"refused {address}"


LONGEST_DELAY: Final = 120.0
"""Seconds that a service may make us wait between two attempts."""

_FIRST_DELAY: Final = 0.5
_LONGEST_BACKOFF: Final = 30.0
_JITTER: Final = 0.5

_T = TypeVar("_T")


def delay_asked_for(headers: Mapping[str, str], now: datetime) -> float | None:
    """The seconds of ``Retry-After`` in a service's reply (RFC 9110, section 10.2.3): a number or a date.

    OpenAI's ``retry-after-ms`` is read first.

    Example:
        >>> from datetime import UTC, datetime
        >>> delay_asked_for({"retry-after": "Thu, 01 Jan 2026 00:00:07 GMT"}, datetime(2026, 1, 1, tzinfo=UTC))
        7.0
    """
    seconds = _header_number(headers.get("retry-after-ms"))
    seconds = None if seconds is None else seconds / 1000
    if seconds is None:
        seconds = _header_number(headers.get("retry-after"))
    if seconds is None:
        seconds = _seconds_until(headers.get("retry-after", ""), now)
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_DELAY)


def _header_number(text: str | None) -> float | None:
    """The number in a reply's header on retries, such as ``Retry-After``; ``None`` if it has none."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if value == value else None  # noqa: PLR0124 (NaN is the number that is not itself)


def _seconds_until(text: str, now: datetime) -> float | None:
    """The seconds until the date in a reply's header ``Retry-After``; ``None`` if it is no date."""
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds()


_TRANSIENT: Final = frozenset({408, 409, 425, 429})
_SERVER_ERROR: Final = 500


def is_transient(status: int) -> bool:
    """Whether a request to a service that got this HTTP status may succeed later."""
    return status in _TRANSIENT or status >= _SERVER_ERROR


class AttemptError(Exception):
    """A failed attempt to call a judge or a target.

    Attributes:
        transient: Whether another attempt may succeed.
        retry_after: Seconds that the service asks to wait; ``None`` if it does not.
        brief: What happened, in two or three words; of an HTTP status, the status.
        refused: What the service refused by its HTTP status, as it may again.
        cause: Why no reply came, as `pytest_llmeval.services._http.Cause` has it; empty if one came.
        attempts: How many there were up to this one.
    """

    cause: str = ""

    def __init__(
        self,
        message: str,
        *,
        transient: bool | None = None,
        retry_after: float | None = None,
        brief: str = "",
        status: int = 0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Describe a failure.

        Args:
            message: For users.
            transient: Whether another attempt may succeed; default: by the status.
            retry_after: Seconds that the service asks to wait; default: by the headers.
            brief: What happened.
            status: Of the reply, if one came.
            headers: Of the reply; names in lower case, or in any.
        """
        self.transient = is_transient(status) if transient is None else transient
        self.retry_after = retry_after if headers is None else delay_asked_for(headers, datetime.now(UTC))
        self.brief = brief or (f"status {status}" if status else "")
        self.refused = _REFUSED.get(status, "")
        self.attempts = 1
        super().__init__(message)


class RunCalls(Struct, frozen=True):
    """The state that the judge and target calls of a run share.

    Attributes:
        activity: Of this process.
        refusals: Of the run.
    """

    activity: Activity = field(default_factory=Activity)
    refusals: Refusals = field(default_factory=Refusals)

    @classmethod
    def of_several_processes(cls, activity: Activity, notes: Notes) -> "RunCalls":
        """The state of a run whose processes read each other's notes of refusals."""
        return cls(activity, Refusals(notes))

    async def retry(
        self,
        attempt: Callable[[], Awaitable[_T]],
        retries: int,
        sleep: Callable[[float], Awaitable[None]],
        address: str,
    ) -> _T:
        """The first result of an attempt to call a service, repeated as long as its failures are transient.

        Args:
            attempt: Makes one.
            retries: Most repetitions.
            sleep: Waits between attempts: as long as the service asks, or else twice as long each time. Jitter keeps
                concurrent calls from coming back all at once.
            address: The service and its key; after it refuses the key, it is not called again in the run.

        Raises:
            AttemptError: That of the last attempt, or that of the call that was refused.
        """
        number = 1
        with self.activity.waiting() as waits:
            while True:
                if (refusal := self.refusals.get(address)) is not None:
                    error = AttemptError(refusal)
                else:
                    try:
                        result = await attempt()
                    except AttemptError as failure:
                        error = failure
                    else:
                        self.refusals.succeeded(address)
                        return result
                    if error.refused:
                        self.refusals.put(address, error.refused, str(error))
                error.attempts = number
                if not error.transient or number > retries:
                    raise error
                waits(", ".join(filter(None, (f"retrying, {ordinal(number)} of {retries}", error.brief))))
                await sleep(_retry_delay(error, number))
                self.activity.retries += 1
                number += 1


def _retry_delay(error: AttemptError, number: int) -> float:
    """The seconds to wait after a failed attempt to call a service; attempts count from 1."""
    shortest, jitter = min(_FIRST_DELAY * 2.0 ** (number - 1), _LONGEST_BACKOFF), _JITTER
    if error.retry_after is not None:
        shortest, jitter = error.retry_after, max(_JITTER / 10, error.retry_after / 10)
    return shortest + random.uniform(0, jitter)  # noqa: S311 (no secret)


def ordinal(value: int) -> str:
    """The position of an attempt at a call, or of a repeat, in words, from 1.

    Example:
        >>> [ordinal(value) for value in (1, 2, 3, 4, 11, 22)]
        ['1st', '2nd', '3rd', '4th', '11th', '22nd']
    """
    ending = {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return f"{value}{'th' if value % 100 in (11, 12, 13) else ending}"

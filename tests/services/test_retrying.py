"""Which failures pass, and how long a service is waited for."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from pytest_llmeval.services import AttemptError, RunCalls, Snapshot
from pytest_llmeval.services._retrying import Refusals, delay_asked_for, is_transient

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Shared(dict[str, str]):
    """Notes that two processes share."""

    put = dict.__setitem__


@pytest.mark.parametrize(
    ("headers", "delay"),
    [
        ({}, None),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=9), usegmt=True)}, 9),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:09 -0000"}, 9),
        ({"retry-after": format_datetime(NOW - timedelta(seconds=9), usegmt=True)}, 0),
        ({"retry-after": format_datetime(NOW + timedelta(days=9), usegmt=True)}, 120),
        ({"retry-after": "-5"}, 0),
        ({"retry-after": "inf"}, 120),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 99 Jan 2026 00:00:00 GMT"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
    ],
)
def test_retry_after_is_a_number_or_a_date(headers: dict[str, str], delay: float | None) -> None:
    assert delay_asked_for(headers, NOW) == delay


async def _ask_until_given_up(failure: AttemptError, retries: int, waits: list[float]) -> None:
    async def attempt() -> None:
        raise failure

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    await RunCalls().retry(attempt, retries, sleep, "")


def waits_for(failure: AttemptError, retries: int) -> list[float]:
    """Return how long a service is waited for that fails each time."""
    waits: list[float] = []
    with pytest.raises(AttemptError) as caught:
        asyncio.run(_ask_until_given_up(failure, retries, waits))
    assert caught.value is failure
    assert failure.attempts == len(waits) + 1
    return waits


def test_delays_double_up_to_half_a_minute_and_have_jitter() -> None:
    waits = waits_for(AttemptError("busy", transient=True), 9)
    extra = [wait - floor for floor, wait in zip([0.5, 1, 2, 4, 8, 16, 30, 30, 30], waits, strict=True)]
    assert all(0 <= each <= 0.5 for each in extra)
    assert len(set(extra)) > 1


@pytest.mark.parametrize("asked", [0, 1.5, 7, 120])
def test_the_delay_asked_for_comes_before_the_own_one(asked: float) -> None:
    waits = waits_for(AttemptError("busy", transient=True, retry_after=asked), 3)
    assert all(asked <= wait <= asked * 1.1 + 0.05 for wait in waits)
    assert len(set(waits)) == 3


def test_what_is_not_transient_is_tried_once() -> None:
    assert waits_for(AttemptError("no such index"), 5) == []


def test_an_error_that_is_no_failed_attempt_is_raised_at_once() -> None:
    async def attempt() -> None:
        raise ValueError

    async def sleep(_: float) -> None:
        pytest.fail("waited")

    with pytest.raises(ValueError, match=r"^$"):
        asyncio.run(RunCalls().retry(attempt, 5, sleep, ""))


def test_while_it_retries_a_call_says_which_of_how_many_and_why() -> None:
    calls = RunCalls()
    said: list[str] = []

    async def attempt() -> str:
        if len(said) < 3:
            raise AttemptError("busy", transient=True, brief="status 500")
        return "done"

    async def sleep(_: float) -> None:
        said.append(calls.activity.snapshot().waits)

    assert asyncio.run(calls.retry(attempt, 5, sleep, "")) == "done"
    assert said == [f"retrying, {number} of 5, status 500" for number in ("1st", "2nd", "3rd")]
    assert calls.activity.snapshot() == Snapshot(retries=3)


def test_after_a_refusal_nobody_asks_that_address_again() -> None:
    shared = Shared()
    calls = [RunCalls(refusals=Refusals(shared)) for _ in range(2)]
    asked: list[str] = []

    async def ask(calls: RunCalls, address: str) -> None:
        async def attempt() -> None:
            asked.append(address)
            raise AttemptError(f"status 401 of {address}", status=401 if address == "refused" else 0)

        with pytest.raises(AttemptError, match=f"^status 401 of {address}$"):
            await calls.retry(attempt, 5, asyncio.sleep, address)

    async def run() -> None:
        for each in (*calls, *calls):
            await ask(each, "refused")
            await ask(each, "other")

    asyncio.run(run())
    assert asked == ["refused", "other", "other", "other", "other"]


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        ("f.......", 1),
        (".f......", 8),
        (".ffff.ff", 8),
        (".fffff..", 6),
        (".f.f.f.ff.fffff.", 15),
        (".k......", 2),
    ],
)
@pytest.mark.parametrize("processes", [1, 2])
def test_forbidden_texts_cost_no_other_call_once_the_key_has_worked(answers: str, asked: int, processes: int) -> None:
    shared = Shared()
    calls = [RunCalls(refusals=Refusals(shared)) for _ in range(processes)]
    seen: list[str] = []

    async def attempt() -> None:
        seen.append(answers[len(seen)])
        if seen[-1] != ".":
            raise AttemptError("no", status=403 if seen[-1] == "f" else 401)

    async def run() -> None:
        for number in range(len(answers)):
            with suppress(AttemptError):
                # The first call is the first process's; all others are the last one's.
                await calls[0 if number == 0 else -1].retry(attempt, 5, asyncio.sleep, "here")

    asyncio.run(run())
    assert len(seen) == asked


def test_statuses_that_pass_are_those_of_load_locks_and_servers() -> None:
    assert [status for status in range(200, 500) if is_transient(status)] == [408, 409, 425, 429]
    assert all(map(is_transient, range(500, 600)))

"""How many calls are in flight: never more than allowed, fewer after a refusal, as many again after good calls."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from servers import PATIENCE

from pytest_llmeval.core import LlmevalError
from pytest_llmeval.judges import _service as module
from pytest_llmeval.judges._service import CallLimit


@dataclass
class Slots:
    """Slots that other processes could take as well."""

    size: int
    held: set[int] = field(default_factory=set)
    most: int = 0
    told: list[str] = field(default_factory=list)

    def take(self, wanted: int) -> Sequence[int]:
        taken = [slot for slot in range(self.size) if slot not in self.held][:wanted]
        self.held.update(taken)
        self.most = max(self.most, len(self.held))
        return taken

    def free(self, slots: Sequence[int]) -> None:
        for slot in slots:
            self.held.remove(slot)

    def slow_down(self) -> None:
        self.told.append("slower")

    def speed_up(self) -> None:
        self.told.append("faster")


@dataclass
class Traffic:
    """Calls that take some turns of the loop, and how many were in flight at most."""

    limit: CallLimit
    now: int = 0
    most: int = 0
    done: int = 0

    async def call(self, turns: int = 2) -> None:
        async with self.limit.slot():
            self.now += 1
            self.most = max(self.most, self.now)
            for _ in range(turns):
                await asyncio.sleep(0)
            self.now -= 1
            self.done += 1


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, PATIENCE))


@given(ceiling=st.integers(1, 6), shared=st.none() | st.integers(1, 6), turns=st.lists(st.integers(0, 4), max_size=20))
def test_no_more_calls_are_in_flight_than_allowed_and_all_get_their_turn(
    ceiling: int, shared: int | None, turns: list[int]
) -> None:
    slots = Slots(shared) if shared else None
    traffic = Traffic(CallLimit(ceiling, slots))

    async def work() -> None:
        await asyncio.gather(*(traffic.call(each) for each in turns))

    run(work())
    assert traffic.done == len(turns)
    assert traffic.most <= min(ceiling, shared or ceiling)
    if slots is not None:
        assert slots.most <= slots.size
        assert slots.held == set()


def test_the_limit_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLL_S", 0)
    for slots in (None, Slots(4)):
        traffic = Traffic(CallLimit(4, slots))

        async def work(traffic: Traffic = traffic) -> None:
            await asyncio.gather(*(traffic.call(10) for _ in range(12)))

        run(work())
        assert traffic.most == 4


@pytest.mark.parametrize("shared", [False, True])
def test_calls_are_admitted_in_the_order_in_which_they_ask(shared: bool) -> None:
    limit = CallLimit(2, Slots(2) if shared else None)
    admitted: list[int] = []

    async def work() -> None:
        async def call(number: int) -> None:
            async with limit.slot():
                admitted.append(number)
                await asyncio.sleep(0)
            # Comes at the moment at which the place is free, and before the one who waits for it has been resumed.
            if number + 6 < 30:
                calls.append(asyncio.ensure_future(call(number + 6)))

        calls = [asyncio.ensure_future(call(number)) for number in range(6)]
        while not all(each.done() for each in calls):
            await asyncio.gather(*calls)

    run(work())
    assert admitted == list(range(30))


def test_slots_of_all_processes_are_looked_for_once_for_all_calls_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLL_S", 0)
    looks = []

    class Taken(Slots):
        def take(self, wanted: int) -> Sequence[int]:
            looks.append(wanted)
            return super().take(wanted) if len(looks) > 3 else []

    limit = CallLimit(8, Taken(8))
    traffic = Traffic(limit)

    async def work() -> None:
        await asyncio.gather(*(traffic.call() for _ in range(6)))

    run(work())
    assert traffic.done == 6
    assert looks == [6] * 4


def test_nobody_looks_again_before_the_time_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLL_S", PATIENCE)
    looks = []

    class Taken(Slots):
        def take(self, wanted: int) -> Sequence[int]:
            looks.append(wanted)
            return []

    limit = CallLimit(8, Taken(8))

    async def work() -> None:
        calls = [asyncio.ensure_future(Traffic(limit).call()) for _ in range(3)]
        for _ in range(20):
            await asyncio.sleep(0)
        calls.append(asyncio.ensure_future(Traffic(limit).call()))
        for _ in range(20):
            await asyncio.sleep(0)
        for each in calls:
            each.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    run(work())
    assert looks == [3]


def test_what_is_wrong_with_the_shared_slots_is_an_error_of_the_calls_that_wait_for_one() -> None:
    class Broken(Slots):
        def take(self, wanted: int) -> Sequence[int]:
            raise LlmevalError(f"no disk for {wanted}")

    limit = CallLimit(2, Broken(2))

    async def work() -> None:
        told = await asyncio.gather(*(Traffic(limit).call() for _ in range(3)), return_exceptions=True)
        assert [str(each) for each in told] == ["no disk for 2"] * 3

    run(work())


def test_a_slot_is_handed_on_inside_a_process_without_going_back_to_the_others() -> None:
    slots = Slots(1)
    taken = []

    class Counted(Slots):
        def take(self, wanted: int) -> Sequence[int]:
            taken.append(1)
            return slots.take(wanted)

        def free(self, given: Sequence[int]) -> None:
            slots.free(given)

    limit = CallLimit(1, Counted(1))
    traffic = Traffic(limit)

    async def work() -> None:
        await asyncio.gather(*(traffic.call() for _ in range(5)))

    run(work())
    assert len(taken) <= 2  # the last one in line may find the slot given back
    assert slots.held == set()


@pytest.mark.parametrize("shared", [False, True])
def test_calls_that_are_given_up_while_they_wait_or_run_cost_no_slot(shared: bool) -> None:
    slots = Slots(2) if shared else None
    limit = CallLimit(2, slots)
    traffic = Traffic(limit)

    async def work() -> None:
        calls = [asyncio.ensure_future(traffic.call(50)) for _ in range(6)]
        for _ in range(5):
            await asyncio.sleep(0)
        for each in (calls[0], calls[2], calls[5]):  # one that runs, two that wait
            each.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await asyncio.gather(*(Traffic(limit).call() for _ in range(4)))

    run(work())
    assert traffic.done == 3
    if slots is not None:
        assert slots.held == set()


@pytest.mark.parametrize("shared", [False, True])
def test_a_closed_limit_admits_nobody_and_those_inside_end(shared: bool) -> None:
    slots = Slots(2) if shared else None
    limit = CallLimit(2, slots)
    traffic = Traffic(limit)

    async def work() -> None:
        calls = [asyncio.ensure_future(traffic.call(10)) for _ in range(5)]
        for _ in range(5):
            await asyncio.sleep(0)
        limit.close()
        done, waiting = calls[:2], calls[2:]
        await asyncio.gather(*done)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not any(call.done() for call in waiting)
        with pytest.raises(LlmevalError, match="no call is begun any more"):
            await traffic.call()
        for call in waiting:
            call.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    run(work())
    assert traffic.done == 2
    if slots is not None:
        assert slots.held == set()


def test_everybody_given_up_at_once_leaves_every_slot_free() -> None:
    slots = Slots(2)
    limit = CallLimit(2, slots)
    traffic = Traffic(limit)

    async def work() -> None:
        for turns in range(8):
            calls = [asyncio.ensure_future(traffic.call(3)) for _ in range(6)]
            for _ in range(turns):
                await asyncio.sleep(0)
            for each in calls:
                each.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            assert slots.held == set()

    run(work())


def test_a_refusal_halves_the_limit_once_for_a_burst_and_good_calls_raise_it_one_by_one() -> None:
    slots = Slots(8)
    limit = CallLimit(8, slots)

    async def work() -> None:
        clock = [100.0]
        loop = asyncio.get_running_loop()
        loop.time = lambda: clock[0]  # type: ignore[method-assign]  # time stands still between these calls
        limit.slow_down()
        limit.slow_down()
        assert (limit.current, slots.told) == (4, ["slower"])
        clock[0] += 1.0
        limit.slow_down()
        clock[0] += 1.0
        limit.slow_down()
        clock[0] += 1.0
        limit.slow_down()
        assert limit.current == 1
        for expected in (2, 2, 3):
            limit.succeeded()
            assert limit.current == expected
        for _ in range(200):
            limit.succeeded()
        assert limit.current == 8
        assert slots.told == ["slower"] * 4 + ["faster"] * 7
        del loop.time

    run(work())


def test_a_lowered_limit_holds_for_the_calls_that_come_and_those_that_wait_come_in_when_it_rises() -> None:
    limit = CallLimit(4)
    traffic = Traffic(limit)

    async def work() -> None:
        limit.slow_down()
        await asyncio.gather(*(traffic.call() for _ in range(8)))
        assert traffic.most == 2
        release = asyncio.Event()

        async def held() -> None:
            async with limit.slot():
                traffic.now += 1
                traffic.most = max(traffic.most, traffic.now)
                await release.wait()

        calls = [asyncio.ensure_future(held()) for _ in range(3)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert traffic.now == 2
        limit.succeeded()
        limit.succeeded()
        for _ in range(5):
            await asyncio.sleep(0)
        assert traffic.now == 3
        release.set()
        await asyncio.gather(*calls)

    run(work())

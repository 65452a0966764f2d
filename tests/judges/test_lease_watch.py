"""Waiting for calls of other processes: who waits is woken when a lease ends, and all share one look at the cache."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from running import Clock
from servers import PATIENCE

from pytest_llmeval.core import LlmevalError
from pytest_llmeval.judges import CachePlace
from pytest_llmeval.judges import _run_store as module
from pytest_llmeval.judges._coordination import Coordination
from pytest_llmeval.judges._run_store import LeaseWatch, WorkingCache

_NAME = "from pytest_llmeval.judges._processes import process_name; print(process_name())"


@dataclass
class World:
    """A cache, somebody who waits for leases in it, and how often they looked."""

    cache: Coordination
    clock: Clock
    watch: LeaseWatch
    looks: list[set[str]] = field(default_factory=list)

    def ends(self, key: str, end: Callable[[], object], waiting: int = 1) -> None:
        """Wait for the end of a lease; nobody is woken before it."""

        async def work() -> None:
            ended = [asyncio.ensure_future(self.watch.ended(key)) for _ in range(waiting)]
            while len(self.looks) < 3:
                await asyncio.sleep(0)
            assert not any(each.done() for each in ended)
            end()
            await asyncio.gather(*ended)

        asyncio.run(asyncio.wait_for(work(), PATIENCE))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(module, "_POLL_S", 0)
    clock = Clock()
    with Coordination(tmp_path / "cache.sqlite3", ticks=clock) as cache:
        made = World(cache, clock, LeaseWatch(WorkingCache(CachePlace(cache.path), "run", "me", _coordination=cache)))
        held = cache.held

        def looked() -> set[str]:
            made.looks.append(held())
            return made.looks[-1]

        monkeypatch.setattr(cache, "held", looked)
        cache.lease("key", "other", 30)
        cache.lease("another key", "other", 60)
        yield made


def test_a_lease_that_is_given_back_wakes_all_who_wait_for_it(world: World) -> None:
    world.ends("key", lambda: world.cache.release("key", "other"), waiting=5)
    assert world.looks[:3] == [{"key", "another key"}] * 3
    assert world.looks[-1] == {"another key"}
    assert len(world.looks) == 4


def test_a_lease_that_expires_wakes_who_waits_for_it(world: World) -> None:
    world.ends("key", lambda: setattr(world.clock, "now", world.clock.now + 30))
    world.ends("another key", lambda: setattr(world.clock, "now", world.clock.now + 30))


def test_the_death_of_the_owner_wakes_who_waits_for_it(world: World) -> None:
    dead = subprocess.check_output([sys.executable, "-c", _NAME], text=True).strip()

    def die() -> None:
        world.cache.release("key", "other")
        world.cache.lease("key", f"run gw0 {dead}", 30)

    world.ends("key", die)


def test_a_cache_that_cannot_be_read_keeps_nobody_waiting(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> set[str]:
        raise LlmevalError("no disk")

    world.ends("key", lambda: monkeypatch.setattr(world.cache, "held", broken))


def test_who_gives_up_ends_the_looks_and_the_next_one_begins_them_again(world: World) -> None:
    async def given_up() -> None:
        waiting = asyncio.ensure_future(world.watch.ended("key"))
        while not world.looks:
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.sleep(0)
        looks = len(world.looks)
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(world.looks) <= looks + 1

    asyncio.run(asyncio.wait_for(given_up(), PATIENCE))
    world.looks.clear()
    world.ends("key", lambda: world.cache.release("key", "other"))

"""An adaptive limit on concurrent calls: it drops when a service rejects calls, and recovers."""

__all__ = ("CallLimit", "RunSlots", "SharedSlots")

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pytest_llmeval.services.activity import Activity

if TYPE_CHECKING:
    from pytest_llmeval.judge.store.working import WorkingCache


_POLL_S = 0.01
_SETTLING_S = 1.0

_within: "ContextVar[CallLimit | None]" = ContextVar("_within", default=None)
"""Whose slot the current task or thread holds."""


class SharedSlots(Protocol):
    """The slots that all processes of a run share."""

    def take(self) -> int | None:
        """Return a slot, or ``None`` if all are taken."""

    def free(self, slot: int) -> None:
        """Give a slot back."""

    def slow_down(self) -> None:
        """Halve the number of slots."""

    def speed_up(self) -> None:
        """Allow one slot more, up to what the user allows."""


@dataclass
class CallLimit:
    """A limit on concurrent calls, halved on a rate limit and raised by one after a window of good calls.

    All methods but `within` run in one event loop.

    Attributes:
        ceiling: What the user allows.
        shared: The slots of all processes, where there are several.
        activity: Counts the calls in flight.
    """

    ceiling: int
    shared: SharedSlots | None = None
    activity: Activity = field(default_factory=Activity)
    current: int = 0
    _in_use: int = 0
    _good: int = 0
    _settled_at: float = 0.0
    _waiting: "deque[asyncio.Future[None]]" = field(default_factory=deque)
    _idle: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.current = self.ceiling

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold one of the calls in flight; a call that is made within another is a part of it."""
        if _within.get() is self:
            yield
            return
        slot = await self.take()
        try:
            with self.within():
                yield
        finally:
            self.give_back(slot)

    async def take(self) -> int | None:
        """Wait for one of the calls in flight; return what to give back."""
        await self._enter()
        try:
            slot = await self._take_shared()
        except BaseException:
            self._leave(None)
            raise
        self.activity.in_flight += 1
        return slot

    @contextmanager
    def within(self) -> Iterator[None]:
        """Let the calls that are made in here be parts of the one that is under way: to wait for it they would hang."""
        token = _within.set(self)
        try:
            yield
        finally:
            _within.reset(token)

    async def _enter(self) -> None:
        while self._in_use >= self.current:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._wake()  # the turn may have been this one's, and so the slot handed on for it
                while self._idle and self.shared is not None:
                    self.shared.free(self._idle.pop())
                raise
        self._in_use += 1

    async def _take_shared(self) -> int | None:
        if self.shared is None:
            return None
        while True:
            slot = self._idle.pop() if self._idle else self.shared.take()
            if slot is not None:
                return slot
            await asyncio.sleep(_POLL_S)

    def give_back(self, slot: int | None) -> None:
        """Let another call take its place."""
        self.activity.in_flight -= 1
        self._leave(slot)

    def _leave(self, slot: int | None) -> None:
        self._in_use -= 1
        self._wake()
        if slot is not None and self.shared is not None:
            # Handed on inside the process where someone waits: polling would leave the slot unused for a while.
            if self._waiting and self._in_use + len(self._idle) < self.current:
                self._idle.append(slot)
            else:
                self.shared.free(slot)

    def _wake(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def slow_down(self) -> None:
        """Halve the limit; the rate limits of calls that were under way at that time count once."""
        now = asyncio.get_running_loop().time()
        self._good = 0
        if now < self._settled_at:
            return
        self._settled_at = now + _SETTLING_S
        self.current = max(1, self.current // 2)
        if self.shared is not None:
            self.shared.slow_down()

    def succeeded(self) -> None:
        """Note a good call."""
        self._good += 1
        if self.current < self.ceiling and self._good >= self.current:
            self._good = 0
            self.current += 1
            if self.shared is not None:
                self.shared.speed_up()
            self._wake()


_TTL_S = 30.0


@dataclass(frozen=True)
class RunSlots:
    """Implements `pytest_llmeval.judge.limit.SharedSlots`.

    Attributes:
        cache: The working cache.
        run: Id of the run.
        owner: Id of the process.
        ceiling: Most calls at a time, over all processes.
    """

    cache: "WorkingCache"
    run: str
    owner: str
    ceiling: int

    def take(self) -> int | None:
        """Return a slot, or ``None`` if all are taken."""
        cache = self.cache.open()
        return cache.take_slot(self.run, self.owner, cache.limit(self.run, self.ceiling), _TTL_S)

    def free(self, slot: int) -> None:
        """Give a slot back."""
        self.cache.open().free_slot(self.run, slot, self.owner)

    def slow_down(self) -> None:
        """Halve the number of slots."""
        self.cache.open().lower_limit(self.run, self.ceiling)

    def speed_up(self) -> None:
        """Allow one slot more, up to the ceiling."""
        self.cache.open().raise_limit(self.run, self.ceiling)

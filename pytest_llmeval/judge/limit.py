"""An adaptive limit on concurrent calls: it drops when a service rejects calls, and recovers."""

__all__ = ("CallLimit", "RunSlots", "SharedSlots")

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.services.activity import Activity

if TYPE_CHECKING:
    from pytest_llmeval.judge.working import WorkingCache


_POLL_S = 0.01
_SETTLING_S = 1.0

_within: "ContextVar[CallLimit | None]" = ContextVar("_within", default=None)
"""Whose slot the current task or thread holds."""


class SharedSlots(Protocol):
    """The slots that all processes of a run share."""

    def take(self, wanted: int) -> Sequence[int]:
        """Return slots, as many of those wanted as are free."""

    def free(self, slots: Sequence[int]) -> None:
        """Give slots back."""

    def slow_down(self) -> None:
        """Halve the number of slots."""

    def speed_up(self) -> None:
        """Allow one slot more, up to what the user allows."""


@dataclass
class CallLimit:
    """A limit on concurrent calls, halved on a rate limit and raised by one after a window of good calls.

    Calls are admitted in the order in which they ask: the case in front must not wait for those that come after it.
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
    _waiting: "deque[asyncio.Future[int | None]]" = field(default_factory=deque)
    _idle: list[int] = field(default_factory=list)
    _exchange: "asyncio.Handle | None" = None

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
        turn: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._admit()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.give_back(turn.result())  # handed on before the call was given up
            raise

    @contextmanager
    def within(self) -> Iterator[None]:
        """Let the calls that are made in here be parts of the one that is under way: to wait for it they would hang."""
        token = _within.set(self)
        try:
            yield
        finally:
            _within.reset(token)

    def give_back(self, slot: int | None) -> None:
        """Let another call take its place."""
        self.activity.in_flight -= 1
        self._in_use -= 1
        if slot is not None:
            self._idle.append(slot)
        self._admit()

    def _admit(self) -> None:
        """Let those in who wait, as far as there are places, and see to it that there are slots for them."""
        self._let_in()
        if self.shared is not None and (self._idle or (self._room() and self._exchange is None)):
            self._exchange_soon(self.shared)

    def _let_in(self) -> None:
        """Let those in who wait, as far as there are places; slots of this process are handed on inside it."""
        while self._room() and (self.shared is None or self._idle):
            turn = self._waiting.popleft()
            self._in_use += 1
            self.activity.in_flight += 1
            turn.set_result(None if self.shared is None else self._idle.pop())

    def _room(self) -> int:
        """Return how many of those who wait may come in."""
        while self._waiting and self._waiting[0].done():  # given up
            self._waiting.popleft()
        return max(0, min(len(self._waiting), self.current - self._in_use))

    def _exchange_soon(self, shared: SharedSlots) -> None:
        if self._exchange is not None:
            self._exchange.cancel()
        self._exchange = asyncio.get_running_loop().call_soon(self._exchange_slots, shared)

    def _exchange_slots(self, shared: SharedSlots) -> None:
        """Give back the slots that nobody here uses, and take those that are wanted: once for many calls."""
        self._exchange = None
        spare, self._idle = self._idle, []
        try:
            if spare:
                shared.free(spare)
            if wanted := self._room():
                self._idle.extend(shared.take(wanted))
        except LlmevalError as error:
            for turn in self._waiting:
                if not turn.done():
                    turn.set_exception(error)
            return
        self._let_in()
        if self._idle:
            self._exchange_soon(shared)
        elif self._room():
            self._exchange = asyncio.get_running_loop().call_later(_POLL_S, self._exchange_slots, shared)

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
            self._admit()


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

    def take(self, wanted: int) -> Sequence[int]:
        """Return slots, as many of those wanted as are free."""
        shared = self.cache.coordination
        return shared.take_slots(self.run, self.owner, shared.limit(self.run, self.ceiling), _TTL_S, wanted)

    def free(self, slots: Sequence[int]) -> None:
        """Give slots back."""
        self.cache.coordination.free_slots(self.run, slots, self.owner)

    def slow_down(self) -> None:
        """Halve the number of slots."""
        self.cache.coordination.lower_limit(self.run, self.ceiling)

    def speed_up(self) -> None:
        """Allow one slot more, up to the ceiling."""
        self.cache.coordination.raise_limit(self.run, self.ceiling)

"""Waiting for calls that other processes make: one look at the cache for all of them."""

__all__ = ("LeaseWatch",)

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_llmeval.core.errors import LlmevalError

if TYPE_CHECKING:
    from pytest_llmeval.judge.store.working import WorkingCache

_POLL_S = 0.02


@dataclass
class LeaseWatch:
    """Looks for leases that come to an end, for as long as somebody waits for one.

    Attributes:
        working: The working cache.
    """

    working: "WorkingCache"
    _waiting: "dict[str, list[asyncio.Future[None]]]" = field(default_factory=dict)
    _look: "asyncio.TimerHandle | None" = None

    async def ended(self, key: str) -> None:
        """Wait until a lease is given back, has expired, or its owner has died; or until the cache cannot be read."""
        ended = asyncio.get_running_loop().create_future()
        if not self._waiting:
            self._look_later()
        self._waiting.setdefault(key, []).append(ended)
        try:
            await ended
        finally:
            if ended in self._waiting.get(key, ()):  # given up
                self._waiting[key].remove(ended)
                if not self._waiting[key]:
                    del self._waiting[key]

    def _look_later(self) -> None:
        if self._look is not None:
            self._look.cancel()
        self._look = asyncio.get_running_loop().call_later(_POLL_S, self._look_around)

    def _look_around(self) -> None:
        try:
            held = self.working.open().held()
        except LlmevalError:  # reported when a lease is asked for
            held = set()
        for key in [key for key in self._waiting if key not in held]:
            for ended in self._waiting.pop(key):
                if not ended.done():
                    ended.set_result(None)
        if self._waiting:
            self._look_later()

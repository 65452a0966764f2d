"""A sign of life: a process keeps what it holds, and shows what it does."""

__all__ = ("ACTIVITY", "LEASE_S", "Heartbeat")

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_llmeval.judge.limit import CallLimit
from pytest_llmeval.services.activity import Snapshot

if TYPE_CHECKING:
    from pytest_llmeval.judge.store.working import WorkingCache

LEASE_S = 30.0
ACTIVITY = "activity "
"""What the keys begin with under which the processes of a run show what they do."""

_PUBLISH_S = 0.5


@dataclass
class Heartbeat:
    """Renews the leases, slots and reservations of a process for as long as its event loop runs.

    Attributes:
        limit: On calls in flight; it counts them.
        working: The working cache.
        run: Id of the run.
        owner: Id of the process.
        lease_s: Seconds for which anything is held without being renewed.
    """

    limit: CallLimit
    working: "WorkingCache"
    run: str
    owner: str
    lease_s: float = LEASE_S
    _task: "asyncio.Task[None] | None" = None
    _published: Snapshot | None = None

    def beat(self) -> None:
        """Keep this process's leases and slots alive while it works."""
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._renew())

    async def _renew(self) -> None:
        pause = min(_PUBLISH_S, self.lease_s / 4)
        while True:
            for _ in range(int(self.lease_s / 4 / pause)):
                await asyncio.sleep(pause)
                self._publish()
            self.working.open().renew(self.owner, self.lease_s)

    def _publish(self) -> None:
        """Show the process that watches the run what this one does."""
        snapshot = self.limit.activity.snapshot()
        if self.limit.shared is not None and snapshot != self._published:
            self._published = snapshot
            self.working.open().put_answer(self.run, f"{ACTIVITY}{self.owner}", json.dumps(snapshot))

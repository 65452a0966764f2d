"""The slots that the processes of a run share, kept in the working cache."""

__all__ = ("RunSlots",)

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.judge.cache import Cache

_TTL_S = 30.0


@dataclass(frozen=True)
class RunSlots:
    """Implements `pytest_llmeval.judge.limit.SharedSlots`.

    Attributes:
        cache: Gives the working cache.
        run: Id of the run.
        owner: Id of the process.
        ceiling: Most calls at a time, over all processes.
    """

    cache: "Callable[[], Cache]"
    run: str
    owner: str
    ceiling: int

    def take(self) -> int | None:
        """Return a slot, or ``None`` if all are taken."""
        cache = self.cache()
        return cache.take_slot(self.run, self.owner, cache.limit(self.run, self.ceiling), _TTL_S)

    def free(self, slot: int) -> None:
        """Give a slot back."""
        self.cache().free_slot(self.run, slot, self.owner)

    def slow_down(self) -> None:
        """Halve the number of slots."""
        self.cache().lower_limit(self.run, self.ceiling)

    def speed_up(self) -> None:
        """Allow one slot more, up to the ceiling."""
        self.cache().raise_limit(self.run, self.ceiling)

"""The contract of targets in other processes."""

__all__ = ("BatchTarget",)

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from pytest_llmeval.core.errors import PredictionError


class BatchTarget(ABC):
    """Something that answers several inputs in one call. It belongs to the event loop that first awaits it.

    Attributes:
        batch: How many inputs one call should bring.
        concurrency: How many calls may be under way at once.
    """

    batch: int = 1
    concurrency: int = 1

    @abstractmethod
    async def answer(self, inputs: Sequence[Any]) -> list[Any | PredictionError]:
        """Return one entry for each input, in their order: the prediction, or why there is none.

        Calls may overlap.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close connections and processes; a second call does nothing."""

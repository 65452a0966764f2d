"""Targets that say how many messages they were sent, and the last of them."""

__all__ = ("Echo", "echoed")

from collections.abc import Sequence
from typing import Any

from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.targets.spec import BatchTarget


def echoed(messages: Any) -> str:
    return f"{len(messages)} {messages[-1]['content']}"


class Echo(BatchTarget):
    batch = 2

    async def answer(self, inputs: Sequence[Any]) -> list[Any | PredictionError]:
        return [echoed(each) for each in inputs]

    async def aclose(self) -> None:
        """Have nothing to close."""

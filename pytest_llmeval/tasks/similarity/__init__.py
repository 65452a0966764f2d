"""Similarity: answers compared with right ones by their meaning, by models on this machine or over HTTP."""

__all__ = ("register",)

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry


def register(registry: "Registry") -> None:
    """Add the evaluator."""
    registry.register(f"{__name__}._semantic:Semantic", name="semantic")

"""Preferences between answers."""

__all__ = ("register",)

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry


def register(registry: "Registry") -> None:
    """Register ``pairwise``, the evaluator that compares answers with those of opponents."""
    registry.register(f"{__name__}._pairwise:Pairwise", name="pairwise")

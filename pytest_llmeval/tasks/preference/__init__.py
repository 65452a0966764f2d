"""Preferences between answers."""

__all__ = ("register",)

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry


def register(registry: "Registry") -> None:
    """Add the evaluator."""
    registry.register(f"{__name__}._pairwise:Pairwise", name="pairwise")

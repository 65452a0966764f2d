"""Routing: whether a request reaches the tool or the skill that is meant for it, and no other."""

__all__ = ("register",)

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.suite.registry import Registry


def register(registry: "Registry") -> None:
    """Add the evaluator and the source."""
    registry.register(f"{__name__}.evaluator:Routing", name="routing")
    registry.register_source(f"{__name__}.evaluator:ToolsSource", name="tools")

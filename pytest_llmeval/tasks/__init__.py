"""Evaluation tasks, one package each; they register like the plugins of users."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.suites import Registry

__all__ = ("register",)

_TASKS = (
    "agents",
    "emotion_cause",
    "extraction",
    "fact_check",
    "grounding",
    "mcp",
    "memory_qa",
    "narrative",
    "preference",
    "retrieval",
    "similarity",
)


def register(registry: "Registry") -> None:
    """Register what every task adds; no module of a task is imported for that, but its package."""
    for name in _TASKS:
        import_module(f"{__name__}.{name}").register(registry)

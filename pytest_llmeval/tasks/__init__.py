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
    """Register the evaluators, sources, commands and mutators of every task; only the task's package is imported."""
    for name in _TASKS:
        import_module(f"{__name__}.{name}").register(registry)

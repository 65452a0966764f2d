"""Conversational-memory QA: LoCoMo, LongMemEval, and functions for programs with their own loop."""

__all__ = ("register",)

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry


def register(registry: "Registry") -> None:
    """Add the sources of the benchmarks, and the mutators."""
    registry.register_source(f"{__name__}.sources:LocomoSource", name="locomo")
    registry.register_source(f"{__name__}.sources:LongMemEvalSource", name="longmemeval")
    registry.register_mutator(f"{__name__}.qa:MUTATORS")

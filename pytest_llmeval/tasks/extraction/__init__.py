"""Extraction: structured output compared with what is expected, field by field.

`values` compares single values, `nodes` objects and lists of them, and `fields` has the evaluator and its options.
"""

__all__ = ("register",)

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry


def register(registry: "Registry") -> None:
    """Add the evaluator."""
    registry.register(f"{__name__}.fields:FieldsEvaluator", name="fields")

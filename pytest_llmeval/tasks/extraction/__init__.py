"""Extraction: structured output compared with what is expected, field by field.

`values` compares single values, `nodes` objects and lists of them, and `fields` has the evaluator and its options.
"""

__all__ = ("register",)

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry
    from pytest_llmeval.tasks.extraction._fields import Comparator, build_record, options_digest, wrong_details
    from pytest_llmeval.tasks.extraction._nodes import FieldsOutcome, FieldValue, Record, assign, compare
    from pytest_llmeval.tasks.extraction._values import SCALARS, exact_key


def register(registry: "Registry") -> None:
    """Register ``fields``, the evaluator of extracted structures."""
    registry.register(f"{__name__}._fields:FieldsEvaluator", name="fields")


_HOMES = {
    "_fields": (
        "Comparator",
        "build_record",
        "options_digest",
        "wrong_details",
    ),
    "_nodes": (
        "FieldValue",
        "FieldsOutcome",
        "Record",
        "assign",
        "compare",
    ),
    "_values": (
        "SCALARS",
        "exact_key",
    ),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)

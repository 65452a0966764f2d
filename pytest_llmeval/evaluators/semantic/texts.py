"""The texts of a case that are compared by meaning."""

__all__ = ("TextPair", "reference_fault", "text_pairs")

from typing import Any, TypeAlias

from pytest_llmeval.core.case import Case
from pytest_llmeval.evaluators.answers import as_references, as_text, describe_found

TextPair: TypeAlias = tuple[str, str]
"""A prediction and a reference, neither blank."""


def text_pairs(case: Case) -> list[TextPair]:
    """Pair a case's prediction with its references, leaving blank texts out."""
    prediction = as_text(case.prediction) or ""
    references = as_references(case.expected) or []
    return [(prediction, each) for each in references if prediction.strip() and each.strip()]


def reference_fault(expected: Any) -> str:
    """Say what is wrong with ground truth that is neither text nor a list of texts."""
    if isinstance(expected, (list, tuple)):
        found = next(describe_found(each) for each in expected if as_text(each) is None) + " in the list"
    else:
        found = describe_found(expected)
    return f"found {found}, expected text or a list of texts"

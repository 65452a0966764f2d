"""Checks in tests: one entry, one prediction, what came of it."""

__all__ = ("met", "observed", "unmet")

from typing import Any

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.evaluators.checks.evaluator import Checks


def observed(entry: Any, prediction: Any, **parts: Any) -> Observation:
    """Return what one check counts in a case; further keywords are fields of the case."""
    return Checks((entry,)).measure(Case("a", prediction=prediction, **parts))


def met(entry: Any, prediction: Any) -> bool | None:
    """Return whether a check is met; ``None`` where it could not be made."""
    found = observed(entry, prediction)
    return None if found.errored else found.malformed is None


def unmet(entry: Any, prediction: Any) -> str:
    """Return what is said about a check that is not met."""
    message = observed(entry, prediction).malformed
    assert message is not None
    return message

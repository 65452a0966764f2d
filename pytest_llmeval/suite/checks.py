"""Checks in Python, without a suite file."""

__all__ = ("get_checks",)

from typing import Any

from pytest_llmeval.core.errors import EvaluatorError
from pytest_llmeval.evaluators.checks.evaluator import Checks, checks_evaluator
from pytest_llmeval.evaluators.checks.reading import CheckReader, Unlocated
from pytest_llmeval.suite.registry import default_registry


def get_checks(*entries: Any) -> Checks:
    """Return the evaluator of checks.

    Args:
        entries: Checks as a suite file writes them, such as ``{"contains": "Paris"}``.

    Raises:
        EvaluatorError: An entry has faults; all of them are listed.

    Example:
        >>> get_checks({"contains": "Paris"}, {"max_words": 2}).evaluate("It is Paris.", None)["check_rate"]
        0.5
    """
    host = Unlocated()
    read = CheckReader(default_registry().checks, host).read(entries, ("checks",))
    if host.faults:
        raise EvaluatorError("; ".join(host.faults))
    return checks_evaluator(read)

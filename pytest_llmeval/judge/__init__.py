"""Judges, models that grade answers: questions, clients, stored verdicts, limits."""

__all__ = ("batch_judge", "import_cache", "is_unanswerable", "judge_answer")

from importlib import import_module
from typing import Any

from pytest_llmeval.core import CallablePackage


def __getattr__(name: str) -> Any:
    """Return a function of `pytest_llmeval.qa`, which programs may also import from here."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("pytest_llmeval.qa"), name)


CallablePackage.make(__name__, "pytest_llmeval.suite.entries:judge")

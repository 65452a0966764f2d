"""Judges, models that grade answers: questions, clients, stored verdicts, limits."""

__all__ = ("batch_judge", "import_cache", "is_unanswerable", "judge_answer")

from importlib import import_module
from typing import Any

from pytest_llmeval.core import CallablePackage


def __getattr__(name: str) -> Any:
    """Return a function for programs, which loads more of the package than its parts should."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("pytest_llmeval.judge.answers"), name)


CallablePackage.make(__name__, "pytest_llmeval.suite.entries:judge")

"""Judges, models that grade answers: questions, clients, stored verdicts, limits."""

__all__ = ("batch_judge", "import_cache", "is_unanswerable", "judge_answer")

from typing import Any

from pytest_llmeval.core import CallablePackage


def __getattr__(name: str) -> Any:
    """Give the functions for programs; they need more of the package than its parts should load."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pytest_llmeval.judge import answers as judging

    return getattr(judging, name)


CallablePackage.make(__name__, "pytest_llmeval.suite.entries:judge")

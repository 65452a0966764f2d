"""The suite file: keys, validation, loading, and the registry of evaluators and sources."""

__all__ = ("SUITE_FILES", "from_file")

from importlib import import_module
from typing import Any

from pytest_llmeval.core.callable_package import CallablePackage

SUITE_FILES = ("*.eval.yaml", "*.eval.yml", "*.eval.json")
"""Patterns of the names of suite files."""

_DECLARED = "pytest_llmeval.run.declared"

CallablePackage.make(__name__, f"{_DECLARED}:DeclaredSuite")


def from_file(path: Any) -> Any:
    """Return the suite of a file, relative to the file that calls; see `pytest_llmeval.run.declared`."""
    return import_module(_DECLARED).DeclaredSuite.from_file(path)

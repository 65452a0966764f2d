"""Suite files that ``llmeval`` reads without running them."""

__all__ = ("UNKNOWN_HERE", "open_suite")

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.suite.suite import Suite

UNKNOWN_HERE = (
    "evaluators that a conftest.py registers are not known to this command, only those of installed packages: run the "
    "suite"
)
"""What to tell besides faults of evaluators."""


def open_suite(path: Path) -> "Suite":
    """Read a suite file.

    Raises:
        SuiteError: It has faults.
    """
    from pytest_llmeval.suite.loading import load_suite
    from pytest_llmeval.suite.registry import default_registry

    here = Path.cwd()
    root = here if path.resolve().is_relative_to(here) else path.resolve().parent
    return load_suite(path, default_registry(), root=root, shown=str(path))

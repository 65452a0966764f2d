"""Finding and reading suite files without pytest, which leaves out what conftests register."""

__all__ = ("notes", "open_noted", "open_suite", "suite_files")

import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_llmeval.cli.console import say
from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.suite import SUITE_FILES

if TYPE_CHECKING:
    from pytest_llmeval.core.errors import Fault
    from pytest_llmeval.suite.suite import Suite

_PASSED_OVER = frozenset({"build", "dist", "node_modules", "venv"})
"""Folders that pytest does not search either, nor those whose names begin with a dot."""


def suite_files(folder: Path) -> Iterator[Path]:
    """Yield the suite files below a folder, sorted."""
    for parent, below, names in os.walk(folder):
        below[:] = sorted(each for each in below if each not in _PASSED_OVER and not each.startswith("."))
        for name in sorted(names):
            if any(fnmatch(name, pattern) for pattern in SUITE_FILES):
                yield Path(parent, name)


def open_suite(path: Path, shown: Path | None = None) -> "Suite":
    """Read a suite file that names evaluators and sources of this package and of installed ones.

    Args:
        path: The suite file.
        shown: Its name in messages, if that is another one.

    Raises:
        SuiteError: It has faults that concern every case.
    """
    from pytest_llmeval.suite.loading import load_suite
    from pytest_llmeval.suite.registry import default_registry

    here = Path.cwd()
    root = here if path.resolve().is_relative_to(here) else path.resolve().parent
    return load_suite(path, default_registry(), root=root, shown=str(shown or path))


def open_noted(path: Path, shown: Path | None = None) -> "Suite":
    """Read a suite file; of a faulty one, print a note if the faults may come from what a conftest registers.

    Raises:
        SuiteError: As `open_suite`.
    """
    try:
        return open_suite(path, shown)
    except SuiteError as error:
        say(notes(shown or path, error.faults), error=True)
        raise


def notes(path: Path, faults: "Iterable[Fault]") -> Iterator[str]:
    """Yield a note if faults of a suite file may come from names that a conftest registers."""
    named = any(each.path.startswith("evaluators[") or each.path == "source.format" for each in faults)
    if named and any((folder / "conftest.py").is_file() for folder in path.resolve().parents):
        yield (
            f"note: {path}: evaluators and sources that a conftest.py registers are unknown to this command: run "
            "the suite with pytest, or register them in a distribution"
        )

"""Reading suite files without pytest, which leaves out what conftests register."""

__all__ = ("notes", "open_suite")

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.core.errors import Fault
    from pytest_llmeval.suite.suite import Suite


def open_suite(path: Path) -> "Suite":
    """Read a suite file that names evaluators and sources of this package and of installed ones.

    Raises:
        SuiteError: It has faults that concern every case.
    """
    from pytest_llmeval.suite.loading import load_suite
    from pytest_llmeval.suite.registry import default_registry

    here = Path.cwd()
    root = here if path.resolve().is_relative_to(here) else path.resolve().parent
    return load_suite(path, default_registry(), root=root, shown=str(path))


def notes(path: Path, faults: "Iterable[Fault]") -> Iterator[str]:
    """Yield a note if faults of a suite file may come from names that a conftest registers."""
    named = any(each.path.startswith("evaluators[") or each.path == "source.format" for each in faults)
    if named and any((folder / "conftest.py").is_file() for folder in path.resolve().parents):
        yield (
            f"note: {path}: evaluators and sources that a conftest.py registers are unknown to this command: run "
            "the suite with pytest"
        )

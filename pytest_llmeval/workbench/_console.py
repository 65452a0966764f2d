"""The suites and notes of the commands that work on suite files."""

import os
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from pytest_llmeval.cli import SuitePatterns, say
from pytest_llmeval.core import Fault, LlmevalError, SuiteError
from pytest_llmeval.suites import LoadedSuite, load_suite


def notes(path: Path, faults: Iterable[Fault]) -> Iterator[str]:
    """Yield a note if the faults of a suite file may come from names that a conftest registers."""
    named = any(fault.path.startswith("evaluators[") or fault.path == "source.format" for fault in faults)
    if named and any((folder / "conftest.py").is_file() for folder in path.resolve().parents):
        yield (
            f"note: {path}: evaluators and sources that a conftest.py registers are unknown to this command: run "
            "the suite with pytest, or register them in a distribution"
        )


def refuse_input(output: Path | None, *inputs: Path | None) -> None:
    """Refuse an output file of a command that is one of its input files.

    Raises:
        LlmevalError: The output is one of the inputs.
    """
    for input_ in inputs:
        if output is not None and input_ is not None and output.resolve() == input_.resolve():
            raise LlmevalError(f"{output}: found the file that is read, expected another one to write to")


def table_lines(rows: Iterable[Sequence[object]], align: str, headers: Sequence[str] = ()) -> list[str]:
    """The lines of a text table on the terminal, with a rule below its headers, if any.

    Args:
        rows: The cells.
        align: A letter for each column: ``l`` or ``r``.
        headers: The names of the columns, unless the first row has them.
    """
    from tabulate import tabulate

    sides = {"l": "left", "r": "right"}
    form, columns = "simple" if headers else "plain", [sides[letter] for letter in align]
    return tabulate(rows, headers, tablefmt=form, disable_numparse=True, colalign=columns).split("\n")


_PASSED_OVER = frozenset({"build", "dist", "node_modules", "venv"})
"""Like pytest, skip these folders, and those whose names begin with a dot."""


def suite_files(folder: Path) -> Iterator[Path]:
    """Yield the suite files below a folder, sorted, without those of other tools."""
    from pytest_llmeval.suites import is_foreign

    yield from (path for path in named_files(folder) if not is_foreign(path))


def named_files(folder: Path, patterns: Iterable[str] = SuitePatterns.SHIPPED) -> Iterator[Path]:
    """Yield the files below a folder that are named like suite files, or by other patterns, sorted."""
    for parent, below, names in os.walk(folder):
        below[:] = sorted(
            subfolder for subfolder in below if subfolder not in _PASSED_OVER and not subfolder.startswith(".")
        )
        for name in sorted(names):
            if any(fnmatch(name, pattern) for pattern in patterns):
                yield Path(parent, name)


def open_noted(path: Path, display_path: str | None = None) -> "LoadedSuite":
    """Read a suite file; of a faulty one, print a note if the faults may come from what a conftest registers.

    Raises:
        SuiteError: As `load_suite`.
    """
    try:
        return load_suite(path, display_path=display_path)
    except SuiteError as error:
        say(notes(Path(display_path or path), error.faults), error=True)
        raise

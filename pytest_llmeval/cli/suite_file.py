"""Suite files without pytest, so without what conftests register; ``llmeval inputs``, ``schema``, ``validate``."""

__all__ = ("add_inputs", "add_schema", "add_validate", "notes", "open_noted", "open_suite", "suite_files")

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_llmeval.cli.console import say
from pytest_llmeval.core.errors import Fault, LlmevalError, SuiteError
from pytest_llmeval.core.wording import counted
from pytest_llmeval.gates.regression import never_decided
from pytest_llmeval.judge.panel import jurors_of
from pytest_llmeval.judge.prices import is_retired
from pytest_llmeval.suite import SUITE_FILES
from pytest_llmeval.suite.suite import CANNOT_FAIL, stop_fault

if TYPE_CHECKING:
    from pytest_llmeval.suite.suite import Suite

_PASSED_OVER = frozenset({"build", "dist", "node_modules", "venv"})
"""Like pytest, skip these folders, and those whose names begin with a dot."""


def suite_files(folder: Path) -> Iterator[Path]:
    """Yield the suite files below a folder, sorted."""
    for parent, below, names in os.walk(folder):
        below[:] = sorted(each for each in below if each not in _PASSED_OVER and not each.startswith("."))
        for name in sorted(names):
            if any(fnmatch(name, pattern) for pattern in SUITE_FILES):
                yield Path(parent, name)


def open_suite(path: Path, shown: Path | None = None) -> "Suite":
    """Read a suite file; evaluators and sources of this package and of installed ones are known.

    Args:
        path: The suite file.
        shown: Its name in messages, if different.

    Raises:
        SuiteError: It has faults that affect every case.
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


def notes(path: Path, faults: Iterable[Fault]) -> Iterator[str]:
    """Yield a note if faults of a suite file may come from names that a conftest registers."""
    named = any(each.path.startswith("evaluators[") or each.path == "source.format" for each in faults)
    if named and any((folder / "conftest.py").is_file() for folder in path.resolve().parents):
        yield (
            f"note: {path}: evaluators and sources that a conftest.py registers are unknown to this command: run "
            "the suite with pytest, or register them in a distribution"
        )


def add_validate(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval validate``."""
    parser.description = (
        "List every fault of suite files and of the files that they name, without running them. The exit code is 1 if "
        "there are faults."
    )
    parser.add_argument(
        "suites", nargs="+", type=Path, metavar="SUITE", help=f"a suite file, or a folder with {', '.join(SUITE_FILES)}"
    )
    parser.set_defaults(run=_validate)


def _validate(options: Namespace) -> int:
    number = 0
    for path in dict.fromkeys(each for place in options.suites for each in _files(place)):
        faults, suite = _faults(path)
        if faults:
            say(faults)
            say(notes(path, faults))
        elif suite is not None:
            sampled = "" if suite.sample is None else f", {suite.sample.report}"
            say([f"{path}: no fault in {counted(len(suite.cases), 'case')}{sampled}"])
        if suite is not None and not suite.can_fail and not (suite.snapshot and suite.snapshot.enabled):
            say([f"{path}: warning: {CANNOT_FAIL}"])
        if suite is not None:
            say(f"{path}: note: {each}" for each in _never_decided(suite))
            if suite.stop is not None and (fault := stop_fault(suite)):
                say([f"{path}: note: it runs to its end: {fault}"])
            say(
                f"{path}: warning: {place} is retired according to the installed genai-prices"
                for place in _retired(suite)
            )
        number += len(faults)
    if number:
        say([counted(number, "fault")])
    return 1 if number else 0


def _never_decided(suite: "Suite") -> Iterator[str]:
    """Yield the gates on drops that cannot decide with the cases that there are."""

    def units(label: str | None) -> int:
        return len({case.labels.get(label, f"case {case.id}") if label else case.id for case in suite.cases})

    return never_decided([gate for gate in suite.regressions if not gate.against], units)


def _retired(suite: "Suite") -> Iterator[str]:
    """Yield place and name of each model that is retired."""
    models = [(f"systems.{name}", each.model.spec) for name, each in suite.systems.items() if each.model is not None]
    for place, spec in [*(("judge", each) for each in jurors_of(suite.judge)), *models]:
        if is_retired(spec):
            yield f"{place}: {spec.model!r}"


def _files(place: Path) -> Iterator[Path]:
    """Yield a file, or the suite files below a folder.

    Raises:
        LlmevalError: The folder has none.
    """
    if not place.is_dir():
        yield place
        return
    found = list(suite_files(place))
    if not found:
        raise LlmevalError(f"{place}: found no suite file, expected {', '.join(SUITE_FILES)}")
    yield from found


def _faults(path: Path) -> tuple[list[Fault], "Suite | None"]:
    """Return the faults of a suite file, and the suite unless they affect all of it."""
    try:
        suite = open_suite(path)
    except SuiteError as error:
        return list(error.faults), None
    return list(suite.faults), suite


def add_inputs(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval inputs``."""
    parser.description = (
        "Print the id and the input of every case as JSONL. Your engine writes a file of predictions: lines "
        "with the same id and a prediction. Ground truth is left out."
    )
    parser.add_argument("suite", type=Path, metavar="SUITE", help="the suite file")
    parser.set_defaults(run=_inputs)


def _inputs(options: Namespace) -> int:
    suite = open_noted(options.suite)
    if suite.all_faults:
        raise SuiteError(suite.all_faults)
    # Of several systems, some may lack cases that others have.
    every = [*suite.cases, *(case for each in suite.systems.values() for case in each.cases)]
    for name, value in {case.id: case.input for case in every}.items():
        sys.stdout.write(json.dumps({"id": name, "input": value}) + "\n")
    return 0


def add_schema(parser: ArgumentParser) -> None:
    """Set up ``llmeval schema``, which has no arguments."""
    parser.set_defaults(run=_schema)


def _schema(_options: Namespace) -> int:
    from pytest_llmeval.suite.registry import default_registry
    from pytest_llmeval.suite.schema import suite_schema

    say(json.dumps(suite_schema(default_registry()), indent=2).split("\n"))
    return 0

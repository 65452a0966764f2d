"""Suite files without pytest and conftests, with the commands about them."""

import json
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from pytest_llmeval.cli.console import CommandResult, notes, say
from pytest_llmeval.core.errors import Fault, LlmevalError, SuiteError
from pytest_llmeval.core.wording import counted
from pytest_llmeval.gates.drop import never_decided
from pytest_llmeval.judge.service import is_retired
from pytest_llmeval.judge.spec import jurors_of
from pytest_llmeval.run.execute import unmet_by_expected
from pytest_llmeval.suite import SUITE_FILES, no_suite
from pytest_llmeval.suite.registry import default_registry
from pytest_llmeval.suite.suite import Suite, stop_fault

_PASSED_OVER = frozenset({"build", "dist", "node_modules", "venv"})
"""Like pytest, skip these folders, and those whose names begin with a dot."""


def suite_files(folder: Path) -> Iterator[Path]:
    """Yield the suite files below a folder, sorted."""
    for parent, below, names in os.walk(folder):
        below[:] = sorted(each for each in below if each not in _PASSED_OVER and not each.startswith("."))
        for name in sorted(names):
            if any(fnmatch(name, pattern) for pattern in SUITE_FILES):
                yield Path(parent, name)


def open_suite(path: Path, display_path: Path | None = None) -> Suite:
    """Read a suite file; evaluators and sources of this package and of installed ones are known.

    Args:
        path: The suite file.
        display_path: Its name in messages, if different.

    Raises:
        SuiteError: It has faults that affect every case.
    """
    from pytest_llmeval.suite.loading import load_suite

    here = Path.cwd()
    root = here if path.resolve().is_relative_to(here) else path.resolve().parent
    return load_suite(path, default_registry(), root=root, display_path=str(display_path or path))


def open_noted(path: Path, display_path: Path | None = None) -> Suite:
    """Read a suite file; of a faulty one, print a note if the faults may come from what a conftest registers.

    Raises:
        SuiteError: As `open_suite`.
    """
    try:
        return open_suite(path, display_path)
    except SuiteError as error:
        say(notes(display_path or path, error.faults), error=True)
        raise


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


def _validate(options: Namespace) -> CommandResult:
    suites: list[dict[str, Any]] = []
    lines: list[object] = []
    for path in dict.fromkeys(each for place in options.suites for each in _files(place)):
        faults, suite = _faults(path)
        remarks = [f"{path}: {each}" for each in _remarks(suite)] if suite is not None else []
        if faults:
            lines += [*faults, *notes(path, faults)]
        elif suite is not None:
            sampled = "" if suite.sample is None else f", {suite.sample.report}"
            lines.append(f"{path}: no fault in {counted(len(suite.cases), 'case')}{sampled}")
        lines += remarks
        cases = None if suite is None else len(suite.cases)
        suites.append({"path": path.as_posix(), "cases": cases, "faults": len(faults), "remarks": remarks})
    if number := sum(each["faults"] for each in suites):
        lines.append(counted(number, "fault"))
    return CommandResult(1 if number else 0, {"suites": suites}, lines)


def _remarks(suite: Suite) -> Iterator[str]:
    """Yield warnings and notes about a suite."""
    if not suite.can_fail and not (suite.snapshot and suite.snapshot.enabled):
        yield f"warning: {suite.cannot_fail}"
    yield from (f"note: {each}" for each in _never_decided(suite))
    yield from (f"warning: {each}" for each in unmet_by_expected(suite))
    if suite.stop is not None and (fault := stop_fault(suite)):
        yield f"note: it runs to its end: {fault}"
    yield from (f"warning: {place} is retired according to the installed genai-prices" for place in _retired(suite))


def _never_decided(suite: Suite) -> Iterator[str]:
    """Yield the gates on drops that cannot decide with the cases that there are."""

    def units(label: str | None) -> int:
        return len({case.labels.get(label, f"case {case.id}") if label else case.id for case in suite.cases})

    return never_decided([gate for gate in suite.regressions if not gate.against], units)


def _retired(suite: Suite) -> Iterator[str]:
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
    suites = list(suite_files(place))
    if not suites:
        raise LlmevalError(no_suite(place))
    yield from suites


def _faults(path: Path) -> tuple[list[Fault], Suite | None]:
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


def _inputs(options: Namespace) -> CommandResult:
    suite = open_noted(options.suite)
    if suite.all_faults:
        raise SuiteError(suite.all_faults)
    # Of several systems, some may lack cases that others have.
    every = [*suite.cases, *(case for each in suite.systems.values() for case in each.cases)]
    inputs = [{"id": name, "input": value} for name, value in {case.id: case.input for case in every}.items()]
    return CommandResult(0, {"inputs": inputs}, text="".join(f"{json.dumps(each)}\n" for each in inputs))

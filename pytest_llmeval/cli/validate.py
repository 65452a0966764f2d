"""The command ``llmeval validate``: faults of suite files, without running them."""

__all__ = ("add_arguments",)

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_llmeval.cli.console import say
from pytest_llmeval.cli.suite_file import notes, open_suite, suite_files
from pytest_llmeval.core.errors import Fault, LlmevalError, SuiteError
from pytest_llmeval.core.wording import counted
from pytest_llmeval.judge.panel import jurors_of
from pytest_llmeval.judge.prices import is_retired
from pytest_llmeval.suite import SUITE_FILES
from pytest_llmeval.suite.suite import CANNOT_FAIL

if TYPE_CHECKING:
    from pytest_llmeval.suite.suite import Suite


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
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
    for path in dict.fromkeys(each for given in options.suites for each in _files(given)):
        faults, suite = _faults(path)
        if faults:
            say(faults)
            say(notes(path, faults))
        elif suite is not None:
            say([f"{path}: no fault in {counted(len(suite.cases), 'case')}"])
        if suite is not None and not suite.can_fail and not (suite.snapshot and suite.snapshot.enabled):
            say([f"{path}: warning: {CANNOT_FAIL}"])
        if suite is not None:
            say(f"{path}: warning: {place} is retired, says the installed genai-prices" for place in _retired(suite))
        number += len(faults)
    if number:
        say([counted(number, "fault")])
    return 1 if number else 0


def _retired(suite: "Suite") -> Iterator[str]:
    """Yield place and name of each model that its provider is giving up."""
    models = [(f"systems.{name}", each.model.spec) for name, each in suite.systems.items() if each.model is not None]
    for place, spec in [*(("judge", each) for each in jurors_of(suite.judge)), *models]:
        if is_retired(spec):
            yield f"{place}: {spec.model!r}"


def _files(given: Path) -> Iterator[Path]:
    """Yield a file, or the suite files below a folder.

    Raises:
        LlmevalError: The folder has none.
    """
    if not given.is_dir():
        yield given
        return
    found = list(suite_files(given))
    if not found:
        raise LlmevalError(f"{given}: found no suite file, expected {', '.join(SUITE_FILES)}")
    yield from found


def _faults(path: Path) -> tuple[list[Fault], "Suite | None"]:
    """Return the faults of a suite file, and the suite unless they concern all of it."""
    try:
        suite = open_suite(path)
    except SuiteError as error:
        return list(error.faults), None
    return list(suite.faults), suite

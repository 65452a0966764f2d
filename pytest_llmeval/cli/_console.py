"""Shared parts of commands: types of options, suites that they read, and output to standard streams and files."""

import io
import json
import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytest_llmeval.core import Fault, LlmevalError, LogWriter, SuiteError, code_of, printable, unobeyed_json
from pytest_llmeval.data import write_text as write_parts
from pytest_llmeval.services import with_sources
from pytest_llmeval.suites import SUITE_FILES

if TYPE_CHECKING:
    from pytest_llmeval.suites import Suite


class CommandResult(NamedTuple):
    """The result of a command.

    Attributes:
        code: The exit code.
        data: For programs, as JSON data.
        lines: For people.
        errors: For people, on standard error, after the lines.
        text: Of a file that is printed as it would be written; it follows the lines.
    """

    code: int
    data: Mapping[str, Any]
    lines: Iterable[object] = ()
    errors: Iterable[object] = ()
    text: str = ""


@dataclass
class _Recorder:
    """What a command finds, while it prints JSON."""

    faults: list[Fault] = field(default_factory=list)
    result: Mapping[str, Any] | None = None


_RECORDER: ContextVar[_Recorder | None] = ContextVar("_RECORDER", default=None)


def deliver(result: CommandResult, to: bool | Path | None) -> int:
    """Print the result of a command, and return its exit code.

    Args:
        result: The result.
        to: The command's own option ``--json``: a file that gets the data as well, or true for the data alone.

    Raises:
        SuiteError: The file cannot be written.
    """
    data = {"schema_version": 1, **result.data}
    recorder = _RECORDER.get()
    if recorder is not None:
        recorder.result = result.data
        recorder.faults += [each for each in result.lines if isinstance(each, Fault)]
    elif to is True:
        sys.stdout.write(unobeyed_json(f"{json.dumps(data, ensure_ascii=False, indent=1)}\n"))
    else:
        say(result.lines, sources=True)
        LogWriter(sys.stdout).write(result.text)
    say(result.errors, error=True)
    if isinstance(to, Path):
        write_text(to, [json.dumps(data, ensure_ascii=False, indent=1), "\n"])
    return result.code


def as_json(arguments: list[str], run: Callable[[list[str]], int]) -> int:
    """Run a command, and print one JSON object in place of what it prints; return its exit code.

    The object has ``command``, ``exit_code`` and ``result``: data, or null for a command that only prints.
    ``output`` and ``errors`` are lists of lines. Each of ``faults`` has ``code``, ``file``, ``line``, ``column``,
    ``field`` and ``message``.

    Args:
        arguments: Of the command line, without ``--json``.
        run: Runs a command.
    """
    output, errors, recorder = io.StringIO(), io.StringIO(), _Recorder()
    token = _RECORDER.set(recorder)
    try:
        with redirect_stdout(output), redirect_stderr(errors):
            try:
                code = run(arguments)
            except SystemExit as error:  # argparse has written why
                code = error.code if isinstance(error.code, int) else 2
    finally:
        _RECORDER.reset(token)
    data = {
        "schema_version": 1,
        "command": arguments[0],
        "exit_code": code,
        "result": recorder.result,
        "output": output.getvalue().splitlines(),
        "errors": errors.getvalue().splitlines(),
        "faults": [_fault_data(each) for each in dict.fromkeys(recorder.faults)],
    }
    sys.stdout.write(unobeyed_json(f"{json.dumps(data, indent=1)}\n"))
    return code


def _fault_data(fault: Fault) -> dict[str, Any]:
    place = {"file": fault.file, "line": fault.line, "column": fault.column, "field": fault.path}
    return {"code": code_of(fault.message), **place, "message": fault.message}


def say(lines: Iterable[object], *, error: bool = False, sources: bool = False) -> None:
    """Print lines with control characters escaped.

    Args:
        lines: Each becomes one line; line breaks inside are escaped.
        error: Whether to print to standard error.
        sources: Whether the lines that faults are about follow these; never in JSON.
    """
    if (recorder := _RECORDER.get()) is not None:
        lines = list(lines)
        recorder.faults += [each for each in lines if isinstance(each, Fault)]
    elif sources:
        lines = with_sources(lines, Path.cwd())
    LogWriter(sys.stderr if error else sys.stdout).writelines(f"{printable(str(each))}\n" for each in lines)


_REGISTERS: Final = "pytest_llmeval_register"
"""The hook by which a conftest.py registers evaluators, sources and checks."""


def registering_conftest(path: Path) -> Path | None:
    """Return the nearest conftest.py above a suite file that registers something; ``None`` if none does."""
    for folder in path.resolve().parents:
        conftest = folder / "conftest.py"
        with suppress(OSError):
            if _REGISTERS in conftest.read_text(encoding="utf-8", errors="replace"):
                return conftest
    return None


def notes(path: Path, faults: Iterable[Fault]) -> Iterator[str]:
    """Yield a note if faults of a suite file may come from names that a conftest registers."""
    named = any(each.path.startswith("evaluators[") or each.path == "source.format" for each in faults)
    if named and any((folder / "conftest.py").is_file() for folder in path.resolve().parents):
        yield (
            f"note: {path}: evaluators and sources that a conftest.py registers are unknown to this command: run "
            "the suite with pytest, or register them in a distribution"
        )


def write_text(path: Path, parts: Iterable[str]) -> None:
    """Write a file from parts of its text; lone surrogates are escaped.

    Raises:
        SuiteError: It cannot be written.
    """
    try:
        write_parts(path, parts)
    except OSError as error:
        message = f"cannot be written ({error.strerror}), expected a file in a folder that exists"
        raise SuiteError([Fault(str(path), 0, 0, "", message)]) from None


def refuse_input(output: Path | None, *inputs: Path | None) -> None:
    """Refuse to write over what is read.

    Raises:
        LlmevalError: The output is one of the inputs.
    """
    for each in inputs:
        if output is not None and each is not None and output.resolve() == each.resolve():
            raise LlmevalError(f"{output}: found the file that is read, expected another one to write to")


def table_lines(rows: Iterable[Sequence[object]], align: str, headers: Sequence[str] = ()) -> list[str]:
    """Return a table as lines, with a rule below its headers, if any.

    Args:
        rows: The cells.
        align: A letter for each column: ``l`` or ``r``.
        headers: The names of the columns, unless the first row has them.
    """
    from tabulate import tabulate

    sides = {"l": "left", "r": "right"}
    form, columns = "simple" if headers else "plain", [sides[each] for each in align]
    return tabulate(rows, headers, tablefmt=form, disable_numparse=True, colalign=columns).split("\n")


def share(text: str) -> float:
    """Read a number between 0 and 1."""
    value = number(text)
    if not 0 < value < 1:
        raise ArgumentTypeError(f"found {text!r}, expected a number between 0 and 1, such as 0.95")
    return value


def count(text: str) -> int:
    """Read a whole number of at least 1."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ArgumentTypeError(f"found {text!r}, expected a whole number of at least 1")
    return int(text)


def amount(text: str) -> float:
    """Read a number of at least 0."""
    value = number(text)
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError(f"found {text!r}, expected a number of at least 0")
    return value


def number(text: str) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"found {text!r}, expected a number") from None


_PASSED_OVER = frozenset({"build", "dist", "node_modules", "venv"})
"""Like pytest, skip these folders, and those whose names begin with a dot."""


def suite_files(folder: Path) -> Iterator[Path]:
    """Yield the suite files below a folder, sorted, without those of other tools."""
    from pytest_llmeval.suites import is_foreign

    yield from (path for path in named_files(folder) if not is_foreign(path))


def named_files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder that have names of suites, sorted."""
    for parent, below, names in os.walk(folder):
        below[:] = sorted(each for each in below if each not in _PASSED_OVER and not each.startswith("."))
        for name in sorted(names):
            if any(fnmatch(name, pattern) for pattern in SUITE_FILES):
                yield Path(parent, name)


def open_suite(path: Path, display_path: Path | None = None) -> "Suite":
    """Read a suite file; evaluators and sources of this package and of installed ones are known.

    Args:
        path: The suite file.
        display_path: Its name in messages, if different.

    Raises:
        SuiteError: It has faults that affect every case.
    """
    from pytest_llmeval.suites import default_registry, load_suite

    here = Path.cwd()
    root = here if path.resolve().is_relative_to(here) else path.resolve().parent
    return load_suite(path, default_registry(), root=root, display_path=str(display_path or path))


def open_noted(path: Path, display_path: Path | None = None) -> "Suite":
    """Read a suite file; of a faulty one, print a note if the faults may come from what a conftest registers.

    Raises:
        SuiteError: As `open_suite`.
    """
    try:
        return open_suite(path, display_path)
    except SuiteError as error:
        say(notes(display_path or path, error.faults), error=True)
        raise

"""Shared parts of commands."""

import io
import json
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_llmeval.core import Fault, LogWriter, SuiteError, printable
from pytest_llmeval.data import OutputFile
from pytest_llmeval.services import FaultSources

if TYPE_CHECKING:
    from pytest_llmeval.suites import LoadedSuite


class CommandResult(NamedTuple):
    """The result of a command of ``llmeval``: its exit code, data for programs, and text for people.

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
    """The faults and the result of a command of ``llmeval`` that prints JSON."""

    faults: list[Fault] = field(default_factory=list)
    result: Mapping[str, Any] | None = None


_RECORDER: ContextVar[_Recorder | None] = ContextVar("_RECORDER", default=None)


def deliver(result: CommandResult, to: bool | Path | None) -> int:
    """Print the result of a command of ``llmeval``, and return its exit code.

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
        recorder.faults += [line for line in result.lines if isinstance(line, Fault)]
    elif to is True:
        sys.stdout.write(LogWriter.escape_json(f"{json.dumps(data, ensure_ascii=False, indent=1)}\n"))
    else:
        say(result.lines, sources=True)
        LogWriter(sys.stdout).write(result.text)
    say(result.errors, error=True)
    if isinstance(to, Path):
        write_text(to, [json.dumps(data, ensure_ascii=False, indent=1), "\n"])
    return result.code


def as_json(arguments: list[str], run: Callable[[list[str]], int]) -> int:
    """Run ``llmeval``, and print one JSON object in place of its text; return its exit code.

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
        "faults": [_fault_data(fault) for fault in dict.fromkeys(recorder.faults)],
    }
    sys.stdout.write(LogWriter.escape_json(f"{json.dumps(data, indent=1)}\n"))
    return code


def _fault_data(fault: Fault) -> dict[str, Any]:
    """A fault of a user's file as an object in the output of ``llmeval --json``."""
    place = {"file": fault.file, "line": fault.line, "column": fault.column, "field": fault.path}
    return {"code": Fault.code_of(fault.message), **place, "message": fault.message}


def say(lines: Iterable[object], *, error: bool = False, sources: bool = False) -> None:
    """Print lines of a command of ``llmeval`` with control characters escaped.

    Args:
        lines: Each becomes one line; line breaks inside are escaped.
        error: Whether to print to standard error.
        sources: Whether the lines that faults are about follow these; never in JSON.
    """
    if (recorder := _RECORDER.get()) is not None:
        lines = list(lines)
        recorder.faults += [line for line in lines if isinstance(line, Fault)]
    elif sources:
        lines = FaultSources(Path.cwd()).below(lines)
    LogWriter(sys.stderr if error else sys.stdout).writelines(f"{printable(str(line))}\n" for line in lines)


def write_text(path: Path, parts: Iterable[str]) -> None:
    """Write a file that a command of ``llmeval`` makes from parts of its text; lone surrogates are escaped.

    Raises:
        SuiteError: It cannot be written.
    """
    try:
        OutputFile(path).write_text(parts)
    except OSError as error:
        message = f"cannot be written ({error.strerror}), expected a file in a folder that exists"
        raise SuiteError([Fault(str(path), 0, 0, "", message)]) from None


def share(text: str) -> float:
    """The value of a command's argument that is a number between 0 and 1."""
    value = number(text)
    if not 0 < value < 1:
        raise ArgumentTypeError(f"found {text!r}, expected a number between 0 and 1, such as 0.95")
    return value


def count(text: str) -> int:
    """The value of a command's argument that is a whole number of at least 1."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ArgumentTypeError(f"found {text!r}, expected a whole number of at least 1")
    return int(text)


def amount(text: str) -> float:
    """The value of a command's argument that is a number of at least 0."""
    value = number(text)
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError(f"found {text!r}, expected a number of at least 0")
    return value


def number(text: str) -> float:
    """The value of a command's argument that is a number."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"found {text!r}, expected a number") from None


def open_suite(path: Path, display_path: Path | None = None) -> "LoadedSuite":
    """Read the suite file of a command; evaluators and sources of this package and of plugins are known.

    Args:
        path: The suite file.
        display_path: Its name in messages, if different.

    Raises:
        SuiteError: It has faults that affect every case.
    """
    from pytest_llmeval.suites import Registry, load_suite

    here = Path.cwd()
    root = here if path.resolve().is_relative_to(here) else path.resolve().parent
    return load_suite(path, Registry.installed(), root=root, display_path=str(display_path or path))

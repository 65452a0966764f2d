"""Shared parts of commands."""

import io
import json
import math
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_llmeval.core import Fault, LogWriter, printable
from pytest_llmeval.data import OutputFile
from pytest_llmeval.services import FaultSources

if TYPE_CHECKING:
    from pytest_llmeval.run import Reported


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

    @classmethod
    def of_rows(cls, name: str, rows: Sequence[Mapping[str, Any]]) -> "CommandResult":
        """The result of a command that prints rows as JSON Lines, for other programs; with ``--json`` under a name."""
        return cls(0, {name: rows}, text="".join(f"{LogWriter.escape_json(json.dumps(row))}\n" for row in rows))

    @classmethod
    def of_run(
        cls, finished: "Reported", options: Namespace, root: Path, lacking: Sequence[str] = (), head: Sequence[str] = ()
    ) -> "CommandResult":
        """The result of a command that runs suites without pytest, after its reports are written.

        Args:
            finished: The run.
            options: Of the command; ``report`` and ``verbose`` are read.
            root: Below it, contents of media are stored.
            lacking: Further reasons why the run fails.
            head: Lines before those of the run.
        """
        written, missing, notes = finished.write_files(options.report, root)
        reports = (f"report written to {path}" for path in written)
        why = [*finished.shortfalls, *lacking, *missing]
        data = {"suites": finished.report.verdict_data(), "why": why, "written": [*map(str, written)]}
        lines = [*head, *finished.lines(options.verbose), *reports, *notes]
        errors = [f"exit code 1: {reason}" for reason in why]
        return cls(1 if why or finished.failed else 0, data, lines, errors)


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
        OutputFile(to).save_text([json.dumps(data, ensure_ascii=False, indent=1), "\n"])
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


@dataclass(frozen=True)
class NumberArgument:
    """A number among the arguments of a command; argparse calls it as the ``type`` of the argument.

    Attributes:
        least: The smallest number, if there is one; infinity is too large then.
        whole: Whether it is written with digits only.
        share: Whether it lies between 0 and 1, and is neither.
    """

    least: int | None = None
    whole: bool = False
    share: bool = False

    def __call__(self, text: str) -> float:
        """The number in a text of the command line.

        Raises:
            ArgumentTypeError: There is none, or one that the argument cannot be.
        """
        if self.whole:
            number: float = int(text) if text.isascii() and text.isdigit() else math.nan
        else:
            try:
                number = float(text)
            except ValueError:
                raise ArgumentTypeError(f"found {text!r}, expected a number") from None
        if self.share and not 0 < number < 1:
            raise ArgumentTypeError(f"found {text!r}, expected a number between 0 and 1, such as 0.95")
        if self.least is not None and not self.least <= number < math.inf:
            kind = "a whole number" if self.whole else "a number"
            raise ArgumentTypeError(f"found {text!r}, expected {kind} of at least {self.least}")
        return number

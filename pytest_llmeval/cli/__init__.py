"""The ``llmeval`` command. pytest imports this package at its start for its options: nothing of ours at the top."""

import io
import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.cli._console import CommandResult, NumberArgument, say
    from pytest_llmeval.cli._options import OPTIONS, SuitePatterns, left_alone
    from pytest_llmeval.suites import Command, Registry

_USAGE = 2
"""The exit code of argparse for a command line that cannot be used."""
_INTERRUPTED = 130
"""The exit code of a shell's command that SIGINT has ended."""


COMMANDS = {
    "merge": ("_runs:add_merge", "judge the shards of a run together"),
}
"""Name of each command of the kernel to what adds its arguments, and its line in the list of commands."""


_HEADINGS = ("start", "look", "advanced", "tasks")


def register(registry: "Registry") -> None:
    """Register the commands of `COMMANDS`, such as ``llmeval merge``."""
    for name in COMMANDS:
        command = _core_command(name)
        registry.register_command(name, command.add_arguments, command.help, command.group)


def _core_command(name: str) -> "Command":
    """A command of `COMMANDS`, such as ``merge``, in the form that plugins register theirs."""
    from pytest_llmeval.suites import Command

    function, text = COMMANDS[name]
    return Command(text, f"{__name__}.{function}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the ``llmeval`` command.

    Args:
        arguments: Without the program's name; default: those of the process.

    Returns:
        The exit code.
    """
    listed = sys.argv[1:] if arguments is None else list(arguments)
    if listed[:1] == ["--json"] and len(listed) > 1:
        from pytest_llmeval.cli._console import as_json

        return as_json(listed[1:], _run_command)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Ids can be in any script; a pipe on Windows may support only a few.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            return _run_command(listed)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does. Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run_command(arguments: list[str]) -> int:
    """Run a subcommand of ``llmeval``, print its result or its error, and return the exit code."""
    from pytest_llmeval.cli._console import CommandResult, deliver, say
    from pytest_llmeval.core import LlmevalError, OptionError, SuiteError
    from pytest_llmeval.data import collector_paused
    from pytest_llmeval.suites import Registry

    options = Namespace()
    name = arguments[0] if arguments else ""
    try:
        if name in COMMANDS:
            commands = {name: _core_command(name)}
        else:
            registry = Registry.shipped()
            if name not in registry.commands:
                registry = Registry.installed()
            commands = dict(registry.commands)
            commands = {name: commands[name]} if name in commands else commands
        options = _parser(commands, arguments).parse_args(arguments, options)
        with collector_paused() if getattr(options, "bulk", False) else nullcontext():
            done: int | CommandResult = options.run(options)
        return done if isinstance(done, int) else deliver(done, getattr(options, "json", None))
    except LlmevalError as error:
        say(error.faults if isinstance(error, SuiteError) else str(error).split("\n"), error=True, sources=True)
        return _USAGE if isinstance(error, OptionError) else getattr(options, "code_of_faults", 1)
    except KeyboardInterrupt:
        say(["interrupted"], error=True)
        return _INTERRUPTED


def _parser(commands: "Mapping[str, Command]", arguments: list[str]) -> ArgumentParser:
    """The parser of the ``llmeval`` command line; only the command that is run is imported."""
    from pytest_llmeval._version import __version__

    parser = ArgumentParser(
        prog="llmeval",
        usage="llmeval [-h] [--json] [--version] COMMAND ...",
        description="Test LLM applications as you test code. To run suites, use pytest --llmeval.",
        epilog="\n".join(_list_commands(commands)),
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object: result, faults, output")
    parser.add_argument("--version", action="version", version=f"pytest-llmeval-suite {__version__}")
    parsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", help="see below", prog="llmeval")
    chosen = next((argument for argument in arguments if not argument.startswith("-")), "")
    for name, command in sorted(commands.items()):
        added = parsers.add_parser(name)
        if name == chosen:
            command.configure(added)
    return parser


def _list_commands(commands: "Mapping[str, Command]") -> Iterator[str]:
    """Yield the commands of ``llmeval`` under the headings of their groups, those of plugins among them."""
    width = max(map(len, commands))
    for heading in dict.fromkeys((*_HEADINGS, *sorted(command.group for command in commands.values()))):
        group = {name: command.help for name, command in sorted(commands.items()) if command.group == heading}
        yield from (f"{heading}:", *(f"  {name:{width}}  {text}" for name, text in group.items()), "") if group else ()


_HOMES = {
    "_console": ("CommandResult", "NumberArgument", "say"),
    "_options": ("OPTIONS", "SuitePatterns", "left_alone"),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)

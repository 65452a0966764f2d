"""The ``llmeval`` command."""

__all__ = ("main",)

import argparse
import io
import json
import os
import sys
from collections.abc import Sequence

from pytest_llmeval._version import __version__
from pytest_llmeval.cli import cache as cli_cache
from pytest_llmeval.cli import compare as cli_compare
from pytest_llmeval.cli import decide as cli_decide
from pytest_llmeval.cli import power as cli_power
from pytest_llmeval.tasks.emotion_cause import commands as cli_emotion_cause
from pytest_llmeval.tasks.retrieval import commands as cli_retrieval


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: Without the program's name; default: those of the process.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(
        prog="llmeval", description="Tools around eval suites; suites themselves run in pytest."
    )
    parser.add_argument("--version", action="version", version=f"pytest-llmeval-suite {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    schema = commands.add_parser("schema", help="print the JSON Schema of suite files, for editors")
    schema.set_defaults(run=_schema)
    evaluators = commands.add_parser("evaluators", help="list evaluators and their metrics")
    evaluators.set_defaults(run=_evaluators)
    for module in (cli_cache, cli_compare, cli_decide, cli_power, cli_emotion_cause, cli_retrieval):
        module.add_commands(commands)
    options = parser.parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Ids can be of any script; a pipe on Windows, say, knows only a few.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        result: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has read enough, as `head` does. Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return result


def _schema(_options: argparse.Namespace) -> int:
    from pytest_llmeval.suite.registry import default_registry
    from pytest_llmeval.suite.schema import suite_schema

    print(json.dumps(suite_schema(default_registry()), indent=2))
    return 0


def _evaluators(_options: argparse.Namespace) -> int:
    from tabulate import tabulate

    from pytest_llmeval.suite.registry import default_registry, get_evaluator

    rows = [
        (name, metric.name, "higher" if metric.higher_is_better else "lower", metric.signature)
        for name in default_registry()
        for metric in get_evaluator(name).describe()
    ]
    print(tabulate(rows, ("evaluator", "metric", "better", "signature"), disable_numparse=True))
    return 0

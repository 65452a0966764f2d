"""The command ``llmeval inputs``: the inputs of a suite as JSONL, for engines that predict in bulk."""

__all__ = ("add_arguments",)

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_llmeval.cli.suite_file import open_noted
from pytest_llmeval.core.errors import SuiteError


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Print the id and the input of every case as JSONL. Whatever answers them writes a file of predictions: lines "
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
    for name, given in {case.id: case.input for case in every}.items():
        sys.stdout.write(json.dumps({"id": name, "input": given}) + "\n")
    return 0

"""The command ``llmeval schema``."""

__all__ = ("add_arguments",)

import json
from argparse import ArgumentParser, Namespace

from pytest_llmeval.cli.console import say


def add_arguments(parser: ArgumentParser) -> None:
    """Set what runs; the command has no arguments."""
    parser.set_defaults(run=_schema)


def _schema(_options: Namespace) -> int:
    from pytest_llmeval.suite.registry import default_registry
    from pytest_llmeval.suite.schema import suite_schema

    say(json.dumps(suite_schema(default_registry()), indent=2).split("\n"))
    return 0

"""The command ``llmeval comment``: a run as Markdown for a pull request."""

__all__ = ("add_arguments",)

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_llmeval.cli.console import say, write_text
from pytest_llmeval.core.errors import SuiteError


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Write a JSON report as Markdown for a comment on a pull request: gates, established falls and rises, the "
        "cases that got worse, cost. No token is needed. The exit code is 2 if a report cannot be used; the comment "
        "then says why. A baseline that does not exist is only mentioned."
    )
    parser.add_argument("report", type=Path, metavar="RUN", help="JSON report of the run")
    parser.add_argument("--baseline", type=Path, metavar="BASE", help="JSON report of the run to compare with")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to this file, not to standard output")
    parser.set_defaults(run=_comment)


def _comment(options: Namespace) -> int:
    from pytest_llmeval.cli.comment_text import comment_text, failure_text
    from pytest_llmeval.cli.report_file import read_run

    code = 0
    baseline, absent = None, ""
    try:
        run = read_run(options.report)
    except SuiteError as error:
        say(error.faults, error=True)
        _write(failure_text(error.faults), options.output)
        return 2
    if options.baseline is not None and not options.baseline.exists():
        absent = f"{options.baseline} does not exist"
    elif options.baseline is not None:
        try:
            baseline = read_run(options.baseline)
        except SuiteError as error:
            absent, code = str(error.faults[0]), 2
    if absent:
        say([f"no baseline: {absent}"], error=True)
    _write(comment_text(run, baseline, absent), options.output)
    return code


def _write(comment: str, path: Path | None) -> None:
    if path is None:
        sys.stdout.write(comment)
    else:
        write_text(path, [comment])

"""The terminal summary of a run."""

__all__ = ("print_summary",)

from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_llmeval.core.wording import printable
from pytest_llmeval.plugin.pytest_private import terminal_width
from pytest_llmeval.reports.data import RunReport
from pytest_llmeval.reports.layout import Line
from pytest_llmeval.reports.terminal import render


def print_summary(
    reporter: pytest.TerminalReporter, report: RunReport | None, notes: Sequence[str], written: Sequence[Path]
) -> None:
    """Print the summary.

    Args:
        reporter: Of the terminal.
        report: The run; ``None`` if nothing could run.
        notes: Lines about what could not be judged or written.
        written: Report files.
    """
    width = terminal_width(reporter)
    lines = [] if report is None else list(render(report, verbosity=reporter.verbosity, width=width))
    lines += [Line(printable(note), "yellow") for note in notes]
    if reporter.verbosity >= 0:
        lines += [Line(f"report written to {path}") for path in written]
    if not lines:
        return
    reporter.ensure_newline()
    if reporter.verbosity >= 0:
        reporter.section("llmeval")
    for line in lines:
        reporter.write_line(line.text, **({line.colour: True} if line.colour else {}))

"""What a finished run prints."""

__all__ = ("say_finished",)

import shutil
from typing import TYPE_CHECKING

from pytest_llmeval.cli.console import say

if TYPE_CHECKING:
    from pytest_llmeval.run.finishing import FinishedRun


def say_finished(finished: "FinishedRun", verbosity: int) -> None:
    """Print the report and the notes of a run as wide as the terminal."""
    from pytest_llmeval.reports.terminal import render

    width = shutil.get_terminal_size().columns
    say(line.text for line in render(finished.report, verbosity=verbosity, width=width))
    say(finished.judged.notes)

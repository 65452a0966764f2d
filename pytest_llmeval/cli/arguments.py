"""Numbers and paths on the command line of ``llmeval``."""

__all__ = ("add_reports", "drop", "share")

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path


def share(text: str) -> float:
    """Read a number between 0 and 1."""
    value = _number(text)
    if not 0 < value < 1:
        raise ArgumentTypeError(f"found {text!r}, expected a number between 0 and 1, such as 0.95")
    return value


def drop(text: str) -> float:
    """Read a number of at least 0."""
    value = _number(text)
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError(f"found {text!r}, expected a number of at least 0")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"found {text!r}, expected a number") from None


def add_reports(parser: ArgumentParser) -> None:
    """Add the option for the reports that a command writes."""
    from pytest_llmeval.reports.files import ERROR_ANALYSIS, SUFFIXES

    parser.add_argument(
        "--report",
        action="append",
        default=[],
        type=_report_path,
        metavar="PATH",
        help=f"write a report: {', '.join(SUFFIXES)}, or {ERROR_ANALYSIS} for an error analysis; can be repeated",
    )


def _report_path(text: str) -> Path:
    """Return the path of a report whose suffix names a form."""
    from pytest_llmeval.reports.files import SUFFIXES

    if Path(text).suffix not in SUFFIXES:
        raise ArgumentTypeError(f"found suffix {Path(text).suffix!r}, expected one of {', '.join(SUFFIXES)}")
    return Path(text)

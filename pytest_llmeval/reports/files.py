"""Report files, and GitHub's job summary."""

__all__ = ("SUFFIXES", "WrittenReports", "write_reports")

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from pytest_llmeval.reports.data import RunReport

SUFFIXES = (".html", ".json", ".md", ".txt")
"""Of report files; the suffix decides the form."""


class WrittenReports(NamedTuple):
    """What came of writing reports.

    Attributes:
        written: The files.
        missing: Why one is missing.
        notes: What a file lacks, or that it is large.
    """

    written: list[Path]
    missing: list[str]
    notes: list[str]


def write_reports(report: RunReport, paths: Iterable[Path]) -> WrittenReports:
    """Write the report files, and GitHub's job summary where there is one.

    Args:
        report: The run.
        paths: Of the files; the suffix decides the form.
    """
    written: list[Path] = []
    missing: list[str] = []
    notes: list[str] = []
    for path in paths:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            note = _writer(path)(report, path)
            written.append(path)
            notes += [f"{path}: {note}"] if note else []
        except OSError as error:
            missing.append(f"report NOT written to {path}: {error.strerror}")
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary and (report.suites or report.faults):
        from pytest_llmeval.reports.markdown import append_markdown

        try:
            append_markdown(report, Path(summary))
        except OSError as error:
            missing.append(f"job summary NOT written to {summary}: {error.strerror}")
    return WrittenReports(written, missing, notes)


def _writer(path: Path) -> Callable[[RunReport, Path], str | None]:
    """Return what writes a report; each loads what it needs when it is asked for."""
    if path.suffix == ".html":
        from pytest_llmeval.reports.html.report import write_html

        return write_html
    if path.suffix == ".md":
        from pytest_llmeval.reports.markdown import write_markdown

        return write_markdown
    if path.suffix == ".txt":
        from pytest_llmeval.reports.terminal import write_plain_text

        return write_plain_text
    from pytest_llmeval.reports.errors import is_error_report, write_errors
    from pytest_llmeval.reports.json import write_json

    return write_errors if is_error_report(path) else write_json

"""Report files, and GitHub's job summary."""

__all__ = ("SUFFIXES", "WrittenReports", "write_reports")

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pytest_llmeval.reports.data import RunReport

SUFFIXES = (".html", ".json", ".md", ".txt")
"""Of report files; the suffix decides the form."""

SUITE = "{suite}"
"""Stands for the name of a suite in the path of a report."""

_NO_FILE_NAME = re.compile(r"[^\w.\[\]-]+")


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
        paths: Of the files; the suffix decides the form. ``{suite}`` in one stands for the name of a suite: each suite
            has a file of its own.
    """
    written: list[Path] = []
    missing: list[str] = []
    notes: list[str] = []
    for path, part in _files(report, paths):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            note = _writer(path)(part, path)
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


def _files(report: RunReport, paths: Iterable[Path]) -> Iterator[tuple[Path, RunReport]]:
    """Yield each file and the part of the report that it has."""
    for path in paths:
        if SUITE not in str(path):
            yield path, report
            continue
        names: Counter[str] = Counter()
        for suite in report.suites:
            name = _NO_FILE_NAME.sub("-", suite.suite)
            names[name] += 1
            name += f"-{names[name]}" if names[name] > 1 else ""
            yield Path(str(path).replace(SUITE, name)), replace(report, suites=[suite], systems=[])


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

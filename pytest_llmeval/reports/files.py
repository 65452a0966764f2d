"""Report files, and GitHub's job summary."""

# Options list the formats in their help, so every run of pytest imports this module: nothing else of ours at the top.
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pytest_llmeval.reports.form import RunReport

ERROR_ANALYSIS = "errors.json"
CTRF = "ctrf.json"
EVERY_EVAL_EVER = "every_eval_ever.json"
FORMATS = {
    ".csv": "pytest_llmeval.reports.csv:write_csv",
    ".html": "pytest_llmeval.reports.html.page:write_html",
    ".json": "pytest_llmeval.reports.json:write_json",
    ".md": "pytest_llmeval.reports.markdown:write_markdown",
    ".parquet": "pytest_llmeval.exchange.report_files:write_parquet",
    ".txt": "pytest_llmeval.reports.terminal:write_plain_text",
    ERROR_ANALYSIS: "pytest_llmeval.reports.json:write_errors",
    CTRF: "pytest_llmeval.exchange.report_files:write_ctrf",
    EVERY_EVAL_EVER: "pytest_llmeval.exchange.report_files:write_every_eval_ever",
}
"""Suffix, or end of the name, to what writes a report to a path; it returns a note on what the file lacks, or nothing.

A further format is a module with such a function, and a line here."""

SUFFIXES = tuple(name for name in FORMATS if name.startswith("."))
_ERRORS_NAME = r"(?:.*[^A-Za-z])?(?:errors|error[_-]analysis)\.json"
_NAMES = {
    _ERRORS_NAME: ERROR_ANALYSIS,
    r"(?:.*[^A-Za-z])?ctrf(?:[_-]report)?\.json": CTRF,
    r"(?:.*[^A-Za-z])?every[_-]eval[_-]ever\.json": EVERY_EVAL_EVER,
}
"""Pattern of names to what they ask for; the suffix decides about all others."""

SUITE = "{suite}"
"""Stands for the name of a suite in the path of a report."""

_NO_FILE_NAME = re.compile(r"[^\w.\[\]-]+")
_DEVICE = re.compile(r"(aux|com\d|con|lpt\d|nul|prn)(\.|$)", re.IGNORECASE)
"""Names that stand for devices on Windows, whatever their suffix."""


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


def is_error_report(path: Path) -> bool:
    """Return whether a path asks for the error analysis: its name ends in ``errors.json`` or ``error_analysis.json``.

    >>> [is_error_report(Path(name)) for name in ("out/errors.json", "my_error_analysis.json", "terrors.json")]
    [True, True, False]
    """
    return re.fullmatch(_ERRORS_NAME, path.name) is not None


def write_reports(report: "RunReport", paths: Iterable[Path]) -> WrittenReports:
    """Write the report files, and GitHub's job summary where there is one.

    Args:
        report: The run.
        paths: Of the files; the suffix determines the format. ``{suite}`` in one stands for the name of a suite: each
            suite has a file of its own.
    """
    from pytest_llmeval.core.errors import MissingExtraError

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
        except MissingExtraError as error:
            missing.append(f"report NOT written to {path}: {error}")
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary and (report.suites or report.faults):
        from pytest_llmeval.reports.markdown import append_markdown

        try:
            append_markdown(report, Path(summary))
        except OSError as error:
            missing.append(f"job summary NOT written to {summary}: {error.strerror}")
    return WrittenReports(written, missing, notes)


def _writer(path: Path) -> Callable[["RunReport", Path], str | None]:
    """Return what writes a report; only then is it imported."""
    kind = next((each for pattern, each in _NAMES.items() if re.fullmatch(pattern, path.name)), path.suffix)
    module, _, name = FORMATS[kind].partition(":")
    write: Callable[[RunReport, Path], str | None] = getattr(import_module(module), name)
    return write


def _files(report: "RunReport", paths: Iterable[Path]) -> Iterator[tuple[Path, "RunReport"]]:
    """Yield each file and the part of the report that it has."""
    from msgspec import structs

    for path in paths:
        if SUITE not in str(path):
            yield path, report
            continue
        names: Counter[str] = Counter()
        for suite in report.suites:
            name = _NO_FILE_NAME.sub("-", suite.suite)
            name = f"_{name}" if _DEVICE.match(name) else name
            names[name.casefold()] += 1  # macOS and Windows have one file for names that differ in capitals
            name += f"-{names[name.casefold()]}" if names[name.casefold()] > 1 else ""
            yield Path(str(path).replace(SUITE, name)), structs.replace(report, suites=[suite], systems=())

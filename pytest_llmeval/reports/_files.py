"""Report files, and GitHub's job summary."""

# Options list the formats in their help, so every run of pytest imports this module: nothing else of ours at the top,
# and no patterns.
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from msgspec import Struct

if TYPE_CHECKING:
    from pytest_llmeval.reports._form import RunReport

ERROR_ANALYSIS = "errors.json"
PERCENTAGES = "evaluate_summary.txt"


class ReportFormat(Struct, frozen=True):
    """A file format of ``--llmeval-report``, with the function that writes it.

    Attributes:
        writer: A function, or its import string, that writes a report to a path, and returns a note on what the file
            lacks, if anything.
        meaning: What the file holds, for the help of the option and the documentation.
        section: Of the documentation's page of reports, if it has one.
        names: Pattern of the ends of files in this format, before the suffix; empty if the suffix decides.
    """

    KNOWN: ClassVar[dict[str, "ReportFormat"]] = {}
    """Suffix, or usual name of the file, to format. `Registry.register_report_format` adds those of plugins."""

    SHARD_SUFFIX: ClassVar[str] = ".llmeval"
    """The suffix of shard files, which runs write on request like reports; `llmeval merge` reads them."""

    writer: "str | Callable[[RunReport, Path], str | None]"
    meaning: str = ""
    section: str = ""
    names: str = ""

    @classmethod
    def of_path(cls, path: Path) -> "ReportFormat":
        """The format of a report file: by the end of its name, else by its suffix.

        Raises:
            KeyError: No format has this suffix.
        """
        for key, form in cls.KNOWN.items():
            ends = rf"(?:.*[^A-Za-z])?(?:{form.names})\{Path(key).suffix}"
            if form.names and re.fullmatch(ends, path.name):
                return form
        return cls.KNOWN[path.suffix]

    def write(self, report: "RunReport", path: Path) -> str | None:
        """Write a report to a file of this format; return a note on what the file lacks, if anything."""
        from pytest_llmeval.core import resolve

        note: str | None = resolve(self.writer)(report, path)
        return note


ReportFormat.KNOWN |= {
    ".csv": ReportFormat("pytest_llmeval.reports._csv:write_csv", "the scores as CSV", "csv"),
    ".html": ReportFormat("pytest_llmeval.reports.html._page:write_html", "a page", "html"),
    ".json": ReportFormat("pytest_llmeval.reports._json:write_data", "all data", "json"),
    ".md": ReportFormat("pytest_llmeval.reports._markdown:write_markdown", "Markdown", "markdown"),
    ".parquet": ReportFormat("pytest_llmeval.reports._parquet:write_parquet", "the scores as Parquet", "csv"),
    ".txt": ReportFormat("pytest_llmeval.reports._terminal:write_plain_text", "plain text"),
    ERROR_ANALYSIS: ReportFormat(
        "pytest_llmeval.reports._errors:write_errors", "an error analysis", "error-analysis", "errors"
    ),
    "ctrf.json": ReportFormat(
        "pytest_llmeval.reports._ctrf:write_ctrf", "the Common Test Report Format", "ctrf", "ctrf(?:[_-]report)?"
    ),
    PERCENTAGES: ReportFormat(
        "pytest_llmeval.reports._terminal:write_percentages",
        "plain text in per cent, by cut-off",
        names=r"evaluate_summary(?:_\w+)?",
    ),
}


SUITE = "{suite}"
"""Stands for the name of a suite in the path of a report."""


class WrittenReports(NamedTuple):
    """The result of writing a run's report files: those written, those that failed, and notes.

    Attributes:
        written: The files.
        missing: Why a report was not written.
        notes: Parts that a file lacks, or its size if large, and why GitHub has no job summary.
    """

    written: list[Path]
    missing: list[str]
    notes: list[str]

    @classmethod
    def write(cls, report: "RunReport", paths: Iterable[Path]) -> "WrittenReports":
        """Write a run's report files, and GitHub's job summary if ``GITHUB_STEP_SUMMARY`` names its file.

        Args:
            report: The run.
            paths: Of the files; the suffix determines the format. ``{suite}`` in one represents the name of a suite:
                each suite has a file of its own.
        """
        from pytest_llmeval.core import AnyError

        written: list[Path] = []
        missing: list[str] = []
        notes: list[str] = []
        for path, part in _files(report, paths):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                note = ReportFormat.of_path(path).write(part, path)
                written.append(path)
                notes += [f"{path}: {note}"] if note else []
            except OSError as error:
                missing.append(f"report NOT written to {path}: {error.strerror}")
            except Exception as error:  # noqa: BLE001 (the writer of a plugin: the other reports are written)
                missing.append(f"report NOT written to {path}: {AnyError(error).message()}")
        summary = os.environ.get("GITHUB_STEP_SUMMARY")
        if summary and (report.suites or report.faults):
            from pytest_llmeval.reports._markdown import append_markdown

            try:
                append_markdown(report, Path(summary))
            except OSError as error:
                notes.append(f"job summary NOT written to {summary}: {error.strerror}")
        return cls(written, missing, notes)


def shows_passed_cases(paths: Sequence[Path], verbosity: int) -> bool:
    """Whether a report file, or the terminal at this verbosity, shows the findings about passed cases."""
    return bool(paths) or verbosity > 0 or "GITHUB_STEP_SUMMARY" in os.environ


def _files(report: "RunReport", paths: Iterable[Path]) -> Iterator[tuple[Path, "RunReport"]]:
    """Yield each report file with its part of the run; ``{suite}`` in a path makes one file per suite."""
    from msgspec import structs

    for path in paths:
        if SUITE not in str(path):
            yield path, report
            continue
        names: Counter[str] = Counter()
        for suite in report.suites:
            name = re.sub(r"[^\w.\[\]-]+", "-", suite.suite)
            if re.match(r"(aux|com\d|con|lpt\d|nul|prn)(\.|$)", name, re.IGNORECASE):  # a device on Windows
                name = f"_{name}"
            names[name.casefold()] += 1  # macOS and Windows have one file for names that differ in capitals
            name += f"-{names[name.casefold()]}" if names[name.casefold()] > 1 else ""
            yield Path(str(path).replace(SUITE, name)), structs.replace(report, suites=[suite], systems=())

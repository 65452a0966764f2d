"""The scores of all cases as CSV, for spreadsheets and data frames: a row for each case, a column for each metric."""

__all__ = ("csv_rows", "write_csv")

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_llmeval.data.files.writing import write_text
from pytest_llmeval.reports.data import RunReport

_COLUMNS = ("suite", "path", "variant", "case", "outcome")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Spreadsheets run a cell that begins with one of these."""


class _Echo:
    """A file that returns what is written, so that a row can be formatted without being kept."""

    def write(self, text: str) -> str:
        return text


def csv_rows(report: RunReport) -> Iterator[Sequence[str | float | None]]:
    """Yield the header and a row for each case; a case without a score, or of a suite without the metric, has none."""
    metrics = list(dict.fromkeys(name for suite in report.suites for name in suite.result.metrics))
    yield [*_COLUMNS, *(_inert(f"metric:{name}" if name in _COLUMNS else name) for name in metrics)]
    for suite in report.suites:
        first = [_inert(text) for text in (suite.base_name, suite.path, suite.variant)]
        for case in suite.result.cases:
            yield [*first, _inert(case.id), case.outcome, *(case.metrics.get(name) for name in metrics)]


def _inert(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def write_csv(report: RunReport, path: Path) -> None:
    """Write the scores to a file row by row."""
    writer = csv.writer(_Echo(), lineterminator="\n")
    write_text(path, map(writer.writerow, csv_rows(report)))

"""The scores of all cases as a CSV file."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_llmeval.data import OutputFile, csv_lines
from pytest_llmeval.reports._form import RunReport

_CSV_COLUMNS = ("suite", "path", "variant", "case", "outcome")


def csv_rows(report: RunReport) -> Iterator[Sequence[str | float | None]]:
    """Yield the CSV report's header, then a row per case; a score that a case lacks is ``None``."""
    metrics = list(dict.fromkeys(name for suite in report.suites for name in suite.metrics))
    yield [*_CSV_COLUMNS, *(f"metric:{name}" if name in _CSV_COLUMNS else name for name in metrics)]
    for suite in report.suites:
        first = (suite.base_name, suite.path, suite.variant)
        for case in suite.cases:
            yield [*first, case.id, case.outcome, *(case.metrics.get(name) for name in metrics)]


def write_csv(report: RunReport, path: Path) -> None:
    """Write the CSV report of a run, one row per case."""
    OutputFile(path).write_text(csv_lines(csv_rows(report)))

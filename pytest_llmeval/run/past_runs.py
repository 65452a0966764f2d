"""The report files of a run, with past runs and approvals on pages that draw them."""

__all__ = ("with_past", "write_run")

from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from pytest_llmeval.reports.data import RunReport
from pytest_llmeval.reports.files import WrittenReports, write_reports


def with_past(report: RunReport, root: Path) -> RunReport:
    """Return the report of a run with the history of its suites.

    Args:
        report: The report.
        root: pytest's rootdir, from which it names suites, and whose history is read.
    """
    from pytest_llmeval.reports.timeline import timeline_of
    from pytest_llmeval.snapshots.timelines import read_history

    found = {path: read_history(root / path, root).timelines for path in {each.path for each in report.suites}}
    return structs.replace(
        report, suites=[structs.replace(each, past=timeline_of(each.suite, found[each.path])) for each in report.suites]
    )


def write_run(report: RunReport, paths: Sequence[Path], root: Path) -> WrittenReports:
    """Write the report files of a run, and GitHub's job summary where there is one.

    Args:
        report: The run.
        paths: Of the files; the suffix decides the form.
        root: pytest's rootdir.
    """
    drawn = any(path.suffix == ".html" for path in paths)
    return write_reports(with_past(report, root) if drawn else report, paths)

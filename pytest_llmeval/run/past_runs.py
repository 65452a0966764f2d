"""Past runs and approvals of the suites of a report, for pages that draw them."""

__all__ = ("with_past",)

from dataclasses import replace
from pathlib import Path

from pytest_llmeval.reports.data import RunReport
from pytest_llmeval.reports.timeline import timeline_of
from pytest_llmeval.snapshots.timelines import read_history


def with_past(report: RunReport, root: Path) -> RunReport:
    """Return the report of a run with the history of its suites.

    Args:
        report: The report.
        root: pytest's rootdir, from which it names suites, and whose history is read.
    """
    found = {path: read_history(root / path, root).timelines for path in {each.path for each in report.suites}}
    return replace(
        report, suites=[replace(each, past=timeline_of(each.suite, found[each.path])) for each in report.suites]
    )

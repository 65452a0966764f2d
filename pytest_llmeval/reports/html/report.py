"""The HTML report of a run."""

__all__ = ("write_html",)

from pathlib import Path

from pytest_llmeval.data.files.writing import write_text
from pytest_llmeval.reports.data import RunReport
from pytest_llmeval.reports.html.entries import PageRun
from pytest_llmeval.reports.html.page import to_page
from pytest_llmeval.reports.html.past import past_points
from pytest_llmeval.reports.json import to_json


def write_html(report: RunReport, path: Path) -> str:
    """Write the report to a file, from the same data as the JSON report.

    Returns:
        What was left out of it, or that it is large; empty where neither is so.
    """
    data = to_json(report)
    suites = [
        {**suite, "history": past_points(each.past)} for each, suite in zip(report.suites, data["suites"], strict=True)
    ]
    page = to_page([PageRun("", {**data, "suites": suites})])
    write_text(path, [page.html])
    return page.note

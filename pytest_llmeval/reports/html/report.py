"""The HTML report of a run."""

__all__ = ("write_html",)

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_llmeval.core.results import CaseResult
from pytest_llmeval.data.files.writing import write_text
from pytest_llmeval.reports.changes import changes_json
from pytest_llmeval.reports.data import RunReport, SuiteReport
from pytest_llmeval.reports.html.entries import PageRun
from pytest_llmeval.reports.html.page import to_page
from pytest_llmeval.reports.html.past import past_points
from pytest_llmeval.reports.json import to_json

_APPROVED = "approved run"


def write_html(report: RunReport, path: Path) -> str:
    """Write the report to a file, from the same data as the JSON report.

    Returns:
        What was left out of it, or that it is large; empty where neither is so.
    """
    page = to_page(_runs(report))
    write_text(path, [page.html])
    return page.note


def _runs(report: RunReport) -> list[PageRun]:
    """Return the run, and the approved run of the suites that have one."""
    data = to_json(report)
    suites = [_shown(each, suite) for each, suite in zip(report.suites, data["suites"], strict=True)]
    approved: list[dict[str, Any]] = []
    pairs: list[int | None] = []
    for each, suite in zip(report.suites, suites, strict=True):
        cases = each.changes.cases if each.changes else ()
        pairs.append(len(suites) + len(approved) if cases else None)
        if cases:
            named: dict[str, Any] = {name: suite[name] for name in ("suite", "path", "variant") if name in suite}
            approved.append({**named, "counts": {}, "cases": _scores(cases)})
    run = PageRun("", {**data, "suites": suites}, pairs=pairs)
    return [run, PageRun(_APPROVED, {"suites": approved}, is_baseline=True)] if approved else [run]


def _shown(report: SuiteReport, suite: dict[str, Any]) -> dict[str, Any]:
    """Return a suite with what pages show beyond the JSON report."""
    changes = {"changes": changes_json(report.changes)} if report.changes else {}
    return {**suite, **changes, "history": past_points(report.past)}


def _scores(cases: Sequence[CaseResult]) -> list[dict[str, Any]]:
    return [{"id": case.id, "outcome": case.outcome, "metrics": dict(case.metrics)} for case in cases]

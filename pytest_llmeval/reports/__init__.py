"""Reports, one module per format; `files` has the table of formats. All of them read the same `RunReport`."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.reports._failures import explain
    from pytest_llmeval.reports._files import ReportFormat, WrittenReports, shows_passed_cases
    from pytest_llmeval.reports._form import (
        CaseReport,
        Changes,
        FailureGroups,
        ReportedTexts,
        RunReport,
        RunStart,
        SampleReport,
        StopReport,
        SuiteReport,
        SystemsReport,
    )
    from pytest_llmeval.reports._headline import MergeAnswer
    from pytest_llmeval.reports._json import published
    from pytest_llmeval.reports._markdown import verdict_cells
    from pytest_llmeval.reports._markdown_text import text
    from pytest_llmeval.reports._survival import GateNotice, KindOutcome, Survival
    from pytest_llmeval.reports._tables import Line, Point, TextTable, Timeline
    from pytest_llmeval.reports._terminal import render
    from pytest_llmeval.reports.html._media import PageMedia
    from pytest_llmeval.reports.html._page import PageRun, rendered_page

_HOMES = {
    "_headline": ("MergeAnswer",),
    "_failures": ("explain",),
    "_files": (
        "ReportFormat",
        "WrittenReports",
        "shows_passed_cases",
    ),
    "_form": (
        "CaseReport",
        "Changes",
        "FailureGroups",
        "ReportedTexts",
        "SystemsReport",
        "RunReport",
        "RunStart",
        "SampleReport",
        "StopReport",
        "SuiteReport",
    ),
    "_json": ("published",),
    "_markdown": ("verdict_cells",),
    "_markdown_text": ("text",),
    "_survival": ("GateNotice", "KindOutcome", "Survival"),
    "_tables": ("Line", "Point", "TextTable", "Timeline"),
    "_terminal": ("render",),
    "html._media": ("PageMedia",),
    "html._page": ("PageRun", "rendered_page"),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)

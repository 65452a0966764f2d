"""Reports, one module per format; `files` has the table of formats. All of them read the same `RunReport`."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.reports._failures import FEW_FAILURES, cause_of, explain, returned_modes, shared_reason
    from pytest_llmeval.reports._files import ReportFormat, WrittenReports, shows_passed_cases
    from pytest_llmeval.reports._form import (
        MOST,
        CaseReport,
        Changes,
        Conclusion,
        RunReport,
        RunStart,
        SampleReport,
        StopReport,
        SuiteReport,
    )
    from pytest_llmeval.reports._headline import MergeAnswer
    from pytest_llmeval.reports._json import SCHEMA_VERSION, published, read_report, write_json
    from pytest_llmeval.reports._making import ReportedTexts, complete_report, fill_tables, systems_report
    from pytest_llmeval.reports._markdown import answer_text, text, verdict_cells
    from pytest_llmeval.reports._media_paths import ReportMedia
    from pytest_llmeval.reports._overview import run_notes
    from pytest_llmeval.reports._survival import GateNotice, KindOutcome, Survival
    from pytest_llmeval.reports._tables import Line, Point, SystemsReport, TextTable, Timeline
    from pytest_llmeval.reports._terminal import agent_lines, render
    from pytest_llmeval.reports.html._data import PageRun
    from pytest_llmeval.reports.html._media import PageMedia
    from pytest_llmeval.reports.html._page import rendered_page, to_page

_HOMES = {
    "_headline": ("MergeAnswer",),
    "_failures": ("FEW_FAILURES", "cause_of", "explain", "shared_reason", "returned_modes"),
    "_files": (
        "ReportFormat",
        "WrittenReports",
        "shows_passed_cases",
    ),
    "_form": (
        "CaseReport",
        "Changes",
        "Conclusion",
        "MOST",
        "RunReport",
        "RunStart",
        "SampleReport",
        "StopReport",
        "SuiteReport",
    ),
    "_json": ("SCHEMA_VERSION", "published", "read_report", "write_json"),
    "_making": ("complete_report", "ReportedTexts", "fill_tables", "systems_report"),
    "_markdown": ("answer_text", "text", "verdict_cells"),
    "_survival": ("GateNotice", "KindOutcome", "Survival"),
    "_overview": ("run_notes",),
    "_tables": ("Line", "Point", "SystemsReport", "TextTable", "Timeline"),
    "_terminal": ("agent_lines", "render"),
    "html._data": ("PageRun",),
    "html._media": ("PageMedia",),
    "html._page": ("rendered_page", "to_page"),
    "_media_paths": ("ReportMedia",),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)

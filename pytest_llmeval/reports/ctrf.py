"""The report in the Common Test Report Format (CTRF), which dashboards and comments of other tools read."""

__all__ = ("to_ctrf", "write_ctrf")

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final

from pytest_llmeval.data.files.json import visible_json
from pytest_llmeval.data.files.writing import write_text
from pytest_llmeval.reports.form import RunReport, SuiteReport

SPECIFICATION: Final = "1.0.0"

_STATUS: Final = {
    "passed": "passed",
    "failed": "failed",
    "errored": "failed",
    "skipped": "skipped",
    "not_run": "pending",
    "undecided": "other",
    "not_judged": "pending",
    "xfailed": "other",
    "known_failure": "other",
}
"""Outcomes of cases, gates and snapshots in the words of CTRF; ``rawStatus`` has our own."""


def to_ctrf(report: RunReport) -> dict[str, Any]:
    """Return the report as the JSON data of CTRF: a test for each case, gate, snapshot and faulty file.

    Source: the JSON Schema of https://ctrf.io; durations and times are whole milliseconds.
    """
    tests = [test for suite in report.suites for test in _suite(suite)]
    tests += [
        {
            "name": path,
            "status": "failed",
            "duration": 0,
            "rawStatus": "faulty",
            "message": "\n".join(lines),
            "filePath": path,
        }
        for path, lines in report.faults.items()
    ]
    seen = Counter(test["status"] for test in tests)
    started = round(datetime.fromisoformat(report.started_at).timestamp() * 1000)
    return {
        "reportFormat": "CTRF",
        "specVersion": SPECIFICATION,
        "generatedBy": f"pytest-llmeval-suite {report.version}",
        "results": {
            "tool": {"name": "pytest-llmeval-suite", "version": report.version},
            "summary": {
                "tests": len(tests),
                **{status: seen[status] for status in ("passed", "failed", "pending", "skipped", "other")},
                "suites": len(report.suites),
                "start": started,
                "stop": started + _milliseconds(report.duration_s),
            },
            "tests": tests,
            **({"environment": {"commit": report.commit}} if report.commit else {}),
        },
    }


def _suite(suite: SuiteReport) -> Iterator[dict[str, Any]]:
    labels = {each.id: dict(each.labels) for each in suite.result.records}
    for case in suite.result.cases:
        note = suite.note(case.id)
        message = {"message": case.reason} if case.reason and case.outcome != "passed" else {}
        flaky = case.details.get("repeats", {}).get("status") == "flaky"
        yield {
            **_test(suite, case.id, case.outcome, case.duration_s),
            **message,
            **({"line": note.line} if note.line else {}),
            "filePath": note.file or suite.path,
            **({"labels": labels[case.id]} if labels.get(case.id) else {}),
            **({"flaky": True} if flaky else {}),
            "extra": {"metrics": dict(case.metrics)},
        }
    for gate in suite.gates:
        yield _verdict(suite, "gate", gate.gate, gate.outcome, gate.reason)
    for verdict in suite.snapshot:
        yield _verdict(suite, "snapshot", verdict.metric, verdict.outcome, verdict.reason)


def _verdict(suite: SuiteReport, kind: str, subject: str, outcome: str, reason: str) -> dict[str, Any]:
    message = {"message": reason} if reason else {}
    return {**_test(suite, f"{kind}[{subject}]", outcome, 0), **message, "filePath": suite.path, "tags": [kind]}


def _test(suite: SuiteReport, name: str, outcome: str, seconds: float) -> dict[str, Any]:
    return {
        "name": name,
        "status": _STATUS[outcome],
        "duration": _milliseconds(seconds),
        "suite": [suite.path, suite.suite],
        "rawStatus": outcome,
    }


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def write_ctrf(report: RunReport, path: Path) -> None:
    """Write the report to a file."""
    encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=1)
    write_text(path, visible_json(chain(encoder.iterencode(to_ctrf(report)), ["\n"])))

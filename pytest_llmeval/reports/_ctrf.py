"""The report in the Common Test Report Format."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pytest_llmeval.reports._form import RunReport, SuiteReport
from pytest_llmeval.reports._json import write_data

SPECIFICATION: Final = "1.0.0"

_STATUS: Final = {
    "passed": "passed",
    "failed": "failed",
    "errored": "failed",
    "not_scored": "skipped",
    "skipped": "skipped",
    "not_run": "pending",
    "undecided": "other",
    "not_judged": "pending",
    "xfailed": "other",
    "known_failure": "other",
}
"""Outcomes of cases, gates and snapshots in the words of CTRF; ``rawStatus`` has our own."""


def to_ctrf(report: RunReport) -> dict[str, Any]:
    """The CTRF report of a run as JSON data: a test for each case, gate, approved score and faulty file.

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
    started = round(datetime.fromisoformat(report.run.started_at).timestamp() * 1000)
    return {
        "reportFormat": "CTRF",
        "specVersion": SPECIFICATION,
        "generatedBy": f"pytest-llmeval-suite {report.run.version}",
        "results": {
            "tool": {"name": "pytest-llmeval-suite", "version": report.run.version},
            "summary": {
                "tests": len(tests),
                **{status: seen[status] for status in ("passed", "failed", "pending", "skipped", "other")},
                "suites": len(report.suites),
                "start": started,
                "stop": started + _milliseconds(report.run.duration_s),
            },
            "tests": tests,
            **({"environment": {"commit": report.run.commit}} if report.run.commit else {}),
        },
    }


def _suite(suite: SuiteReport) -> Iterator[dict[str, Any]]:
    """Yield the CTRF tests of a suite: its cases, gates and approved scores."""
    for case in suite.cases:
        message = {"message": case.reason} if case.reason and case.outcome != "passed" else {}
        flaky = case.details.get("repeats", {}).get("status") == "flaky"
        yield {
            **_test(suite, case.id, case.outcome, case.duration_s),
            **message,
            **({"line": case.line} if case.line else {}),
            "filePath": case.file or suite.path,
            **({"labels": dict(case.labels)} if case.labels else {}),
            **({"flaky": True} if flaky else {}),
            "extra": {"metrics": dict(case.metrics)},
        }
    for gate in suite.gates:
        yield _verdict(suite, "gate", gate.gate, gate.outcome, gate.reason)
    for verdict in suite.snapshot:
        yield _verdict(suite, "snapshot", verdict.metric, verdict.outcome, verdict.reason)


def _verdict(suite: SuiteReport, kind: str, subject: str, outcome: str, reason: str) -> dict[str, Any]:
    """The CTRF test for the verdict on a gate or an approved score."""
    message = {"message": reason} if reason else {}
    return {**_test(suite, f"{kind}[{subject}]", outcome, 0), **message, "filePath": suite.path, "tags": [kind]}


def _test(suite: SuiteReport, name: str, outcome: str, seconds: float) -> dict[str, Any]:
    """The fields of every CTRF test: name, status, duration and suite."""
    return {
        "name": name,
        "status": _STATUS[outcome],
        "duration": _milliseconds(seconds),
        "suite": [suite.path, suite.suite],
        "rawStatus": outcome,
    }


def _milliseconds(seconds: float) -> int:
    """A duration in whole milliseconds, the unit of CTRF."""
    return round(seconds * 1000)


def write_ctrf(report: RunReport, path: Path) -> None:
    """Write the CTRF report of a run as JSON."""
    write_data(to_ctrf(report), path)

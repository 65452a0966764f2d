"""The error analysis of a run."""

from pathlib import Path
from typing import Any

from pytest_llmeval.reports._form import BucketReport, CaseReport, RunReport, SuiteReport
from pytest_llmeval.reports._json import published, write_data

_TEXTS = ("input", "expected", "prediction", "answers")


def to_errors(report: RunReport) -> dict[str, Any]:
    """The error analysis of a run as JSON data, with nothing that differs between two runs over the same data."""
    return {"schema_version": RunReport.SCHEMA_VERSION, "suites": [_error_analysis(suite) for suite in report.suites]}


def _error_analysis(suite: SuiteReport) -> dict[str, Any]:
    """The error analysis of a suite as JSON data: its error buckets with their cases, and errored cases."""
    by_id = {case.id: case for case in suite.cases}
    errored = [{"id": case.id, "reason": case.reason} for case in suite.cases if case.outcome == "errored"]
    buckets = [
        {
            **published(bucket),
            "count": len(bucket.cases),
            "cases": [_error_of_case(by_id[name], bucket) for name in bucket.cases],
        }
        for bucket in suite.buckets
    ]
    return {"suite": suite.suite, "path": suite.path, "buckets": buckets, "errored": errored}


def _error_of_case(case: CaseReport, bucket: BucketReport) -> dict[str, Any]:
    """A case of an error bucket as JSON data of the error analysis: score, reason, texts and findings."""
    texts = published(case.withheld or case)
    return {
        "id": case.id,
        "score": case.metrics.get(bucket.metric),
        "outcome": case.outcome,
        "reason": case.reason,
        **{name: texts[name] for name in _TEXTS if name in texts},
        **({"lines": list(lines)} if (lines := case.lines.get(bucket.evaluator)) else {}),
        "details": dict(case.details.get(bucket.evaluator, {})),
    }


def write_errors(report: RunReport, path: Path) -> None:
    """Write the error analysis of a run to a JSON file."""
    write_data(to_errors(report), path)

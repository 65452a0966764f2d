"""The error analysis as JSON: the cases in each bucket."""

__all__ = ("SCHEMA_VERSION", "bucket_names", "is_error_report", "to_errors", "write_errors")

import json
import re
from itertools import chain
from pathlib import Path
from typing import Any

from pytest_llmeval.core.results import CaseResult
from pytest_llmeval.data.files.json import visible_json
from pytest_llmeval.data.files.writing import write_text
from pytest_llmeval.reports.buckets import FilledBucket
from pytest_llmeval.reports.data import RunReport, SuiteReport

SCHEMA_VERSION = 1

_NAME = re.compile(r"(?:.*[^A-Za-z])?(?:errors|error[_-]analysis)\.json")


def is_error_report(path: Path) -> bool:
    """Return whether a path asks for the error analysis: its name ends in ``errors.json`` or ``error_analysis.json``.

    >>> [is_error_report(Path(name)) for name in ("out/errors.json", "my_error_analysis.json", "terrors.json")]
    [True, True, False]
    """
    return _NAME.fullmatch(path.name) is not None


def bucket_names(bucket: FilledBucket) -> dict[str, str]:
    """Return what a bucket is about, as reports write it."""
    named = bucket.bucket
    return {"bucket": named.name, "evaluator": bucket.evaluator, "metric": named.metric, "limit": named.limit}


def to_errors(report: RunReport) -> dict[str, Any]:
    """Return the error analysis as JSON data. It holds nothing that differs between two runs over the same data."""
    return {"schema_version": SCHEMA_VERSION, "suites": [_suite(each) for each in report.suites]}


def _suite(suite: SuiteReport) -> dict[str, Any]:
    errored = [{"id": case.id, "reason": case.reason} for case in suite.result.cases if case.outcome == "errored"]
    return {
        "suite": suite.suite,
        "path": suite.path,
        "buckets": [
            {
                **bucket_names(each),
                "count": len(each.cases),
                "cases": [_case(suite, case, each) for case in each.cases],
            }
            for each in suite.buckets
        ],
        "errored": errored,
    }


def _case(suite: SuiteReport, case: CaseResult, bucket: FilledBucket) -> dict[str, Any]:
    note = suite.note(case.id)
    return {
        "id": case.id,
        "score": case.metrics.get(bucket.bucket.metric),
        "outcome": case.outcome,
        "reason": case.reason,
        **note.texts(),
        **({"lines": list(lines)} if (lines := note.lines.get(bucket.evaluator)) else {}),
        "details": dict(case.details.get(bucket.evaluator, {})),
    }


def write_errors(report: RunReport, path: Path) -> None:
    """Write the error analysis to a file."""
    encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=1)
    write_text(path, visible_json(chain(encoder.iterencode(to_errors(report)), ["\n"])))

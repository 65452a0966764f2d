"""Error analysis: cases sorted into the buckets of evaluators, and the JSON report that lists them."""

__all__ = ("SCHEMA_VERSION", "bucket_names", "fill_buckets", "to_errors", "write_errors")

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import structs

from pytest_llmeval.core.evaluator import ErrorBucket
from pytest_llmeval.core.results import CaseResult, MetricIndex
from pytest_llmeval.data.files.json import visible_json
from pytest_llmeval.data.files.writing import write_text
from pytest_llmeval.reports.form import FilledBucket, RunReport, SuiteReport

SCHEMA_VERSION = 1


def fill_buckets(metrics: MetricIndex, cases: Sequence[CaseResult]) -> list[FilledBucket]:
    """Sort cases into the buckets that evaluators define, in their order; a case may be in several.

    An evaluator that defines none has one, with the cases whose first metric is less than perfect.

    Args:
        metrics: Of the suite.
        cases: The scored cases.
    """
    filled = []
    for label, evaluator in metrics.evaluators.items():
        own = evaluator.error_buckets()
        for each in own or _imperfect(metrics, label):
            named = structs.replace(each, metric=metrics.full_name(label, each.metric))
            held = [case for case in cases if each.holds(case.metrics.get(named.metric), case.details.get(label, {}))]
            filled.append(FilledBucket(named.name, named.metric, named.limit, label, held, general=not own))
    return filled


def _imperfect(metrics: MetricIndex, label: str) -> Iterator[ErrorBucket]:
    """Yield the bucket of an evaluator that defines none: its first metric with a best value is worse."""
    for each in metrics.declared[label]:
        metric = each.metric
        best = metric.high if metric.higher_is_better else metric.low
        if best is not None and "[" not in metric.name:
            below, above = (best, None) if metric.higher_is_better else (None, best)
            yield ErrorBucket(f"imperfect_{metric.name}", metric.name, below, above)
            return


def bucket_names(bucket: FilledBucket) -> dict[str, str]:
    """Return name, evaluator and condition of a bucket as reports write them."""
    return {"bucket": bucket.name, "evaluator": bucket.evaluator, "metric": bucket.metric, "limit": bucket.limit}


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
        "score": case.metrics.get(bucket.metric),
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

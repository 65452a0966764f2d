"""The report as records of Every Eval Ever, a common format for results of evaluations."""

__all__ = ("to_every_eval_ever", "write_every_eval_ever")

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pytest_llmeval.core.results import PASS_RATE, MetricValue
from pytest_llmeval.core.wording import counted
from pytest_llmeval.reports.form import RunReport, SuiteReport
from pytest_llmeval.reports.json import write_data

SCHEMA: Final = "0.3.0"

_UNKNOWN: Final = "unknown"
_NO_FILE_NAME: Final = re.compile(r"[^\w.-]+")


def to_every_eval_ever(report: RunReport, system: str = "") -> dict[str, Any]:
    """Return the results of one system, in all suites, as a record.

    Source: eval.schema.json 0.3.0 of Every Eval Ever (https://evalevalai.com). Of the model, a report knows the name of
    the system at most; its id, and who evaluates it, are to be filled in before results are published.

    Args:
        report: The run.
        system: Name of the system; empty where there is only one.

    Returns:
        JSON data. A metric without a value is left out: a score must be a number.
    """
    suites = [each for each in report.suites if each.variant == system]
    model, began = system or _UNKNOWN, datetime.fromisoformat(report.run.started_at)
    name = suites[0].base_name if len(suites) == 1 else "llmeval"
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"{name}/{model}/{began.timestamp():.0f}",
        "evaluation_timestamp": report.run.started_at,
        "retrieved_timestamp": f"{began.timestamp():.0f}",
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": _UNKNOWN,
            "evaluator_relationship": "other",
            **({"additional_details": {"commit": report.run.commit}} if report.run.commit else {}),
        },
        "eval_library": {"name": "pytest-llmeval-suite", "version": report.run.version},
        "model_info": {
            "name": model,
            "id": model,
            "additional_details": {"deployment_type": _UNKNOWN, "model_availability": _UNKNOWN},
        },
        "evaluation_results": [each for suite in suites for each in _results(suite)],
    }


def _results(suite: SuiteReport) -> Iterator[dict[str, Any]]:
    for name, metric in _metrics(suite):
        if metric.value is None:
            continue
        low, high = suite.ranges.get(name, (None, None))
        bounds = {} if low is None else {"score_type": "continuous", "min_score": low, "max_score": high}
        details = {
            "mean_of_cases": metric.mean,
            **{each: getattr(metric, each) for each in ("scored", "undefined", "errored", "missing")},
            "signature": metric.signature or None,
        }
        yield {
            "evaluation_result_id": f"{suite.path}::{suite.suite}::{name}",
            "evaluation_name": suite.base_name,
            "source_data": {
                "dataset_name": suite.base_name,
                "source_type": "other",
                "additional_details": {"path": suite.path, "cases": str(suite.total)},
            },
            "metric_config": {
                "metric_id": name,
                "metric_name": name,
                "lower_is_better": name in suite.lower_is_better,
                **bounds,
            },
            "score_details": {
                "score": metric.value,
                "details": {each: str(value) for each, value in details.items() if value is not None},
                "uncertainty": _uncertainty(suite, metric),
            },
        }


def _metrics(suite: SuiteReport) -> Sequence[tuple[str, MetricValue]]:
    return [(PASS_RATE, suite.pass_rate), *suite.metrics.items()]


def _uncertainty(suite: SuiteReport, metric: MetricValue) -> dict[str, Any]:
    found: dict[str, Any] = {"num_samples": metric.scored}
    if metric.low is not None and metric.high is not None and suite.confidence is not None:
        interval = {"lower": metric.low, "upper": metric.high, "confidence_level": suite.confidence}
        found["confidence_interval"] = interval
    return found


def write_every_eval_ever(report: RunReport, path: Path) -> str | None:
    """Write a record to a file; of several systems, one file each, with the name of the system before the suffix.

    Returns:
        Which metrics are left out, and the files of systems.
    """
    systems = list(dict.fromkeys(suite.variant for suite in report.suites)) or [""]
    files = [path if len(systems) == 1 else _file_of(path, each) for each in systems]
    for system, file in zip(systems, files, strict=True):
        write_data(to_every_eval_ever(report, system), file)
    notes = [f"one file for each system: {', '.join(each.name for each in files)}"] if len(files) > 1 else []
    lacking = [name for suite in report.suites for name, metric in _metrics(suite) if metric.value is None]
    if lacking:
        notes.append(f"{counted(len(lacking), 'metric')} without a value left out")
    return "; ".join(notes) or None


def _file_of(path: Path, system: str) -> Path:
    return path.with_name(f"{path.stem}.{_NO_FILE_NAME.sub('-', system) or _UNKNOWN}{path.suffix}")

"""Reports for other programs."""

import io
import re
import tempfile
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pytest_llmeval.cli import CommandResult, say
from pytest_llmeval.core import PASS_RATE, LlmevalError, SuiteError, format_error, needing
from pytest_llmeval.data import csv_lines, write_bytes, write_text
from pytest_llmeval.reports import RunReport, SuiteReport, write_data
from pytest_llmeval.services import Redactor

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
    write_data(to_ctrf(report), path)


_COLUMNS = ("suite", "path", "case", "outcome", "system", "repeat", "metric", "value", "reason")


def write_parquet(report: RunReport, path: Path) -> None:
    """Write the rows of `CaseReport.to_rows` with ``suite`` and ``path``; labels are columns ``label.NAME``.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    with needing("a report in Parquet", "parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    rows = [
        {"suite": suite.base_name, "path": suite.path, **row, "system": suite.variant}
        for suite in report.suites
        for case in suite.cases
        for row in case.to_rows()
    ]
    labels = sorted({name for row in rows for name in row} - set(_COLUMNS))
    kinds = {"repeat": pa.int64(), "value": pa.float64()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in (*_COLUMNS, *labels)])
    written = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), written)
    write_bytes(path, written.getvalue())


_CSV_COLUMNS = ("suite", "path", "variant", "case", "outcome")


def csv_rows(report: RunReport) -> Iterator[Sequence[str | float | None]]:
    """Yield the header and a row for each case; a case without a score, or of a suite without the metric, has none."""
    metrics = list(dict.fromkeys(name for suite in report.suites for name in suite.metrics))
    yield [*_CSV_COLUMNS, *(f"metric:{name}" if name in _CSV_COLUMNS else name for name in metrics)]
    for suite in report.suites:
        first = (suite.base_name, suite.path, suite.variant)
        for case in suite.cases:
            yield [*first, case.id, case.outcome, *(case.metrics.get(name) for name in metrics)]


def write_csv(report: RunReport, path: Path) -> None:
    """Write the scores to a file row by row."""
    write_text(path, csv_lines(csv_rows(report)))


_NO_NAME = re.compile(r"[^\w./ -]+")
"""Characters that names of MLflow cannot have."""


def add_mlflow(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval export mlflow``."""
    parser.description = (
        "Log every suite of a report as a run of MLflow: metrics with the bounds of their intervals, gates and counts, "
        "and the report as JSON and HTML. Where it goes is MLflow's own setting (MLFLOW_TRACKING_URI)."
    )
    parser.add_argument("report", type=Path, metavar="REPORT.json", help="a JSON report")
    parser.add_argument("--experiment", required=True, metavar="NAME", help="the experiment; made if there is none")
    parser.set_defaults(run=_export, bulk=True)


def _export(options: Namespace) -> CommandResult:
    from pytest_llmeval.reports import read_report

    with needing("llmeval export mlflow", "mlflow"):
        from mlflow import MlflowClient
    try:
        report = read_report(options.report)
    except SuiteError as error:
        raise LlmevalError(str(error)) from None
    page = _page(report)
    runs: list[dict[str, str]] = []
    lines: list[str] = []
    try:
        client = MlflowClient()
        known = client.get_experiment_by_name(options.experiment)
        experiment = client.create_experiment(options.experiment) if known is None else known.experiment_id
        for suite in report.suites:
            name = _log(client, experiment, report, suite, options.report, page)
            runs.append({"suite": suite.suite, "run": name})
            lines.append(f"{suite.suite}: run {name}")
    except Exception as error:  # MLflow's own, and those of its stores
        say(lines)
        raise LlmevalError(f"MLflow did not take the report: {Redactor().line(format_error(error))}") from error
    return CommandResult(0, {"experiment": str(experiment), "runs": runs}, lines)


def _page(report: "RunReport") -> str:
    from pytest_llmeval.reports import PageRun, begin_media_of, to_page

    begin_media_of([report], Path.cwd())
    return to_page([PageRun("", report)]).html


def _log(client: Any, experiment: str, report: "RunReport", suite: "SuiteReport", file: Path, page: str) -> str:
    """Log a suite as a run, and return the run's id."""
    from mlflow.entities import Metric, Param, RunTag

    begin = round(datetime.fromisoformat(report.run.started_at).timestamp() * 1000)
    end = begin + round(report.run.duration_s * 1000)
    run = client.create_run(experiment, start_time=begin, run_name=suite.suite)
    name = run.info.run_id
    metrics = [Metric(_named(key), value, end, 0) for key, value in _logged_values(suite)]
    params = {"suite": suite.base_name, "path": suite.path, "system": suite.variant, "llmeval": report.run.version}
    tags = [RunTag(f"gate.{_named(each.gate)}", each.outcome) for each in suite.gates]
    tags += [RunTag("mlflow.source.git.commit", report.run.commit)] if report.run.commit else []
    client.log_batch(name, metrics, [Param(key, value) for key, value in params.items() if value], tags)
    with tempfile.TemporaryDirectory() as folder:
        for artifact, text in (("report.json", file.read_text(encoding="utf-8")), ("report.html", page)):
            path = Path(folder, artifact)
            path.write_text(text, encoding="utf-8")
            client.log_artifact(name, str(path))
    client.set_terminated(name, "FAILED" if suite.failed else "FINISHED", end)
    return str(name)


def _logged_values(suite: SuiteReport) -> Iterator[tuple[str, float]]:
    """Yield the numbers to log; metrics without a value are left out."""
    for name, metric in {**suite.metrics, PASS_RATE: suite.pass_rate}.items():
        for suffix, value in (("", metric.value), (".low", metric.low), (".high", metric.high)):
            if value is not None:
                yield f"{name}{suffix}", float(value)
    for outcome, count in suite.counts.items():
        yield f"cases.{outcome}", float(count)


def _named(name: str) -> str:
    """Return a name as MLflow allows it: ``check[max_words]`` is ``check/max_words``.

    >>> _named("check[max_words]"), _named("pass^3 >= 0.8")
    ('check/max_words', 'pass_3 _ 0.8')
    """
    return _NO_NAME.sub("_", name.replace("[", "/").replace("]", ""))[:250]

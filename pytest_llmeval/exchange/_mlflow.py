"""The export of a report to MLflow."""

import re
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from pytest_llmeval.cli import CommandResult, say
from pytest_llmeval.core import AnyError, LlmevalError, Metric, MissingExtraError, SuiteError
from pytest_llmeval.reports import RunReport, SuiteReport
from pytest_llmeval.services import Redactor

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
    """Run ``llmeval export mlflow``: log each suite of a report as a run of an MLflow experiment."""
    from pytest_llmeval.reports import RunReport

    with MissingExtraError.unless_installed("llmeval export mlflow", "mlflow"):
        from mlflow import MlflowClient
    try:
        report = RunReport.read(options.report)
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
        raise LlmevalError(f"MLflow did not take the report: {Redactor().line(AnyError(error).text)}") from error
    return CommandResult(0, {"experiment": str(experiment), "runs": runs}, lines)


def _page(report: "RunReport") -> str:
    """The HTML page of a report, for the artifacts of MLflow."""
    from pytest_llmeval.reports import PageRun

    report.begin_media(Path.cwd())
    return PageRun("", report).page().html


def _log(client: Any, experiment: str, report: "RunReport", suite: "SuiteReport", file: Path, page: str) -> str:
    """Log a suite of a report to MLflow as a run, and return the run's id."""
    from mlflow.entities import Metric, Param, RunTag

    begin = round(datetime.fromisoformat(report.run.started_at).timestamp() * 1000)
    end = begin + round(report.run.duration_s * 1000)
    run = client.create_run(experiment, start_time=begin, run_name=suite.suite)
    name = run.info.run_id
    metrics = [Metric(_named(key), value, end, 0) for key, value in _logged_values(suite)]
    params = {"suite": suite.base_name, "path": suite.path, "system": suite.variant, "llmeval": report.run.version}
    tags = [RunTag(f"gate.{_named(gate.gate)}", gate.outcome) for gate in suite.gates]
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
    """Yield the metrics, interval limits and case counts to log to MLflow; metrics without a value are left out."""
    for name, metric in {**suite.metrics, Metric.PASS_RATE: suite.pass_rate}.items():
        for suffix, value in (("", metric.value), (".low", metric.low), (".high", metric.high)):
            if value is not None:
                yield f"{name}{suffix}", float(value)
    for outcome, count in suite.counts.items():
        yield f"cases.{outcome}", float(count)


def _named(name: str) -> str:
    """The name of a metric as MLflow allows it: ``check[max_words]`` is ``check/max_words``.

    >>> _named("check[max_words]"), _named("pass^3 >= 0.8")
    ('check/max_words', 'pass_3 _ 0.8')
    """
    return _NO_NAME.sub("_", name.replace("[", "/").replace("]", ""))[:250]

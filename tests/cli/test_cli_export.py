"""``llmeval export mlflow``: a report as runs of a real MLflow store."""

import builtins
import json
from pathlib import Path
from typing import Any

import pytest
from builders import recorded_case, recorded_suite, write_run

from pytest_llmeval.cli import main


@pytest.fixture
def store(here: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of a store of files."""
    from mlflow import MlflowClient

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (here / "store").as_uri())
    return MlflowClient((here / "store").as_uri())


def test_a_suite_is_a_run_with_metrics_gates_and_the_report(
    here: Path, store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    value = {
        "value": 0.75,
        "mean": 0.75,
        "low": 0.5,
        "high": 1.0,
        "scored": 2,
        "undefined": 0,
        "errored": 0,
        "missing": 0,
    }
    gate = {"gate": "f1 >= 0.7", "outcome": "passed", "actual": 0.75, "expected": 0.7, "reason": ""}
    cases = [recorded_case("a", f1=1.0), recorded_case("b", f1=0.5)]
    metrics = {"f1": value | {"signature": ""}, "check[max_words]": value | {"signature": ""}}
    write_run(here / "r.json", recorded_suite(cases, metrics=metrics, gates=[gate]))
    exported = ["export", "mlflow", "r.json", "--experiment", "nightly"]
    assert main(exported) == 0
    text = capsys.readouterr().out
    assert main(["--json", *exported]) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    experiment = store.get_experiment_by_name("nightly")
    one, other = store.search_runs([experiment.experiment_id])
    assert one.data.metrics == other.data.metrics
    runs = {one.info.run_id, other.info.run_id}
    assert result["runs"] == [{"suite": "s", "run": min(runs, key=text.count)}]
    assert max(runs, key=text.count) in text
    logged = one.data.metrics
    assert (logged["f1"], logged["f1.low"], logged["f1.high"], logged["check/max_words"]) == (0.75, 0.5, 1.0, 0.75)
    assert logged["cases.passed"] == 2
    assert one.data.tags["gate.f1 _ 0.7"] == "passed"
    assert one.data.params["path"].endswith(".eval.yaml")
    assert sorted(each.path for each in store.list_artifacts(one.info.run_id)) == ["report.html", "report.json"]
    assert one.info.status == "FINISHED"


def test_what_mlflow_refuses_is_one_line(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(here / "r.json", recorded_suite([recorded_case("a", f1=1.0)]))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nonsense://x")
    assert main(["export", "mlflow", "r.json", "--experiment", "x"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("MLflow did not take the report: ")
    assert said.count("\n") == 1


def test_without_mlflow_the_extra_is_named(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(here / "r.json", recorded_suite([recorded_case("a", f1=1.0)]))
    original = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "mlflow":
            raise ImportError(name)
        return original(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert main(["export", "mlflow", "r.json", "--experiment", "x"]) == 1
    assert "pip install 'pytest-llmeval-suite[mlflow]'" in capsys.readouterr().err

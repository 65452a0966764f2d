"""Gates with ``max_drop`` in suite files: read into the suite, faults with their place."""

from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from project import load_text

from pytest_llmeval.core import SuiteError
from pytest_llmeval.data import InputFile
from pytest_llmeval.gates import DropGate
from pytest_llmeval.suites import LoadedSuite, Registry
from pytest_llmeval.suites._schema import suite_schema

Load = Callable[[str], LoadedSuite]

HEAD = (
    "evaluators: [{text: {metrics: [f1]}}]\ncases: [{id: a, expected: x, prediction: x, labels: {talk: 1, kind: q}}]\n"
)


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(gates: str) -> LoadedSuite:
        return load_text(f"{HEAD}gates: {gates}\n", tmp_path)

    return load


def test_they_stand_beside_other_gates(load: Load) -> None:
    suite = load(
        "[f1 > 0.5, {metric: f1, max_drop: 0.02, by: kind}, {metric: pass_rate, max_drop: 0, cluster_by: talk}]"
    )
    assert [str(gate) for gate in suite.score_gates] == ["f1 > 0.5"]
    assert suite.regressions == (
        DropGate("f1", 0.02, by="kind"),
        DropGate("pass_rate", 0.0, cluster_by="talk"),
    )
    assert suite.group_by == ("kind",)


def test_every_gate_knows_its_line(load: Load) -> None:
    suite = load("\n  - f1 > 0.5\n  - {metric: f1, max_drop: 0.02}")
    assert [gate.line for gate in suite.gates] == [4, 5]


@pytest.mark.parametrize(
    ("gates", "fault"),
    [
        (
            "[{metric: latency_s, max_drop: 0.1}]",
            "3:18  gates[0].metric: found 'latency_s' with a baseline, expected a metric of an evaluator",
        ),
        ("[{metric: f1, max_drop: -1}]", "3:9  gates[0]: found max_drop -1.0, expected a finite number of at least 0"),
        (
            "[{metric: f1, max_drop: a}]",
            "3:32  gates[0].max_drop: found the text 'a', expected a number",
        ),
        (
            "[{metric: f1, max_drop: 0, rule: significant_dorp}]",
            "3:41  gates[0].rule: found the text 'significant_dorp' (did you mean 'significant_drop'?), expected",
        ),
        (
            "[{metric: f1, max_drop: 0, test: t}]",
            "3:41  gates[0].test: found the text 't', expected one of 'bootstrap', 'bca', 'mcnemar'",
        ),
        ("[{metric: f2, max_drop: 0}]", "3:18  gates[0].metric: unknown metric f2"),
        ("[{metric: f1, max_drop: 0, max_dorp: 1}]", "3:35  gates[0].max_dorp: unknown key max_dorp"),
        (
            "[{metric: f1, max_drop: 0}, {metric: f1, max_drop: 0.0}]",
            "3:36  gates[1]: found the gate 'drop(f1) <= 0' twice, expected it once",
        ),
        ("[{metric: f1, rule: non_inferiority}]", "3:9  gates[0]: max_drop is missing: rule applies to drops"),
    ],
)
def test_faults_are_told_with_their_place(load: Load, gates: str, fault: str) -> None:
    with pytest.raises(SuiteError) as caught:
        load(gates)
    assert str(caught.value).startswith(f"s.eval.yaml:{fault}")


def test_clusters_need_a_label_that_cases_have(load: Load) -> None:
    (fault,) = load("[{metric: f1, max_drop: 0, cluster_by: tlak}]").faults
    assert fault.path == "gates"
    assert fault.message == "unknown label tlak, did you mean talk?"


def test_the_schema_knows_them(load: Load, tmp_path: Path) -> None:
    load("[{metric: f1, max_drop: 0.02, rule: non_inferiority, test: bca, confidence: 0.9, cluster_by: talk}]")
    data = InputFile(tmp_path / "s.eval.yaml", "s.eval.yaml").read_document().data
    validator = jsonschema.Draft202012Validator(suite_schema(Registry.installed()))
    assert validator.is_valid(data)
    data["gates"][0]["test"] = "t"
    assert not validator.is_valid(data)


def test_the_clusters_of_a_suite_are_those_of_its_gates(tmp_path: Path) -> None:
    head = HEAD.replace("talk: 1", "talk: 1, turn: 2")
    gates = "[{metric: f1, max_drop: 0}, {metric: pass_rate, max_drop: 0, cluster_by: turn}]"
    suite = load_text(f"{head}cluster_by: talk\ngates: {gates}\n", tmp_path)
    assert suite.cluster_by == "talk"
    assert [gate.cluster_by for gate in suite.regressions] == ["talk", "turn"]


def test_clusters_of_a_suite_that_cannot_be_used_are_faults(tmp_path: Path) -> None:
    (fault,) = load_text(f"{HEAD}cluster_by: tlak\n", tmp_path).faults
    assert str(fault).endswith("3:13  cluster_by: unknown label tlak, did you mean talk?")
    with pytest.raises(SuiteError, match="found cluster_by with test mcnemar, expected one of bootstrap, bca"):
        load_text(f"{HEAD}cluster_by: talk\ngates: [{{metric: f1, max_drop: 0, test: mcnemar}}]\n", tmp_path)

"""Scores as telemetry: sent where the environment says, only if asked, and never at the cost of the run."""

import json
from typing import TYPE_CHECKING

import pytest
from project import AGENT, export
from servers import Collector, collecting, values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Project

TRACE = "a" * 32
EXACT = {"evaluators": [{"text": {"metrics": ["exact_match"]}}]}
CASES = [
    {"id": "right", "expected": "x", "prediction": "x"},
    {"id": "wrong", "expected": "x", "prediction": "a secret answer", "thresholds": {"exact_match": 1}},
    {"id": "unknown", "prediction": "x"},
]


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> "Iterator[Collector]":
    with collecting() as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.url)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "evals")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield server


def test_every_score_is_an_event_and_the_run_a_span_with_its_gates(
    project: "Project", collector: Collector, workers: int
) -> None:
    project.suite("s.eval.yaml", CASES, suite="s", gates=["exact_match >= 0.4"], **EXACT)
    ran = project.run("--llmeval-otel", workers=workers)
    assert ran.code == 1
    assert "2 scores sent by --llmeval-otel" in ran.text
    sent = {values(each.attributes)["llmeval.case"]: each for each in collector.logs}
    assert set(sent) == {"right", "wrong"}, "nothing to judge is no result"
    assert {each.event_name for each in collector.logs} == {"gen_ai.evaluation.result"}
    assert values(sent["right"].attributes) == {
        "gen_ai.evaluation.name": "exact_match",
        "gen_ai.evaluation.score.value": 1.0,
        "llmeval.suite": "s",
        "llmeval.case": "right",
        "llmeval.outcome": "passed",
    }
    assert values(sent["wrong"].attributes)["gen_ai.evaluation.score.label"] == "fail"
    assert not any("secret" in str(each) for each in (*collector.logs, *collector.spans))
    (span,) = collector.spans
    assert (span.name, span.status.code) == ("llmeval run", 2)
    (gate,) = span.events
    assert values(gate.attributes)["llmeval.gate"] == "exact_match >= 0.4"
    assert values(gate.attributes)["llmeval.outcome"] == "passed"
    assert {each["service.name"] for each in collector.resources} == {"evals"}


def test_texts_are_sent_only_if_asked_for(project: "Project", collector: Collector) -> None:
    project.suite("s.eval.yaml", CASES, **EXACT)
    project.run("--llmeval-otel", "--llmeval-texts=all")
    said = [values(each.attributes).get("gen_ai.evaluation.explanation") for each in collector.logs]
    assert any("secret" in (each or "") for each in said)


def test_a_score_is_a_part_of_the_trace_that_it_judges(project: "Project", collector: Collector) -> None:
    spans = [
        {**each, "spanId": f"{number:016x}", "parentSpanId": "" if number == 1 else f"{1:016x}"}
        for number, each in enumerate(AGENT, 1)
    ]
    project.write("t.jsonl", json.dumps(export(*spans)) + "\n")
    project.suite("s.eval.yaml", [], source={"format": "traces", "path": "t.jsonl"}, checks=[{"max_words": 30}])
    for style in ("events", "annotations"):
        project.run(f"--llmeval-otel={style}")
    assert {(each.trace_id.hex(), each.span_id.hex()) for each in collector.logs} == {(TRACE, f"{1:016x}")}
    annotations = [each for each in collector.spans if each.name != "llmeval run"]
    assert {(each.trace_id.hex(), each.parent_span_id.hex()) for each in annotations} == {(TRACE, f"{1:016x}")}
    (rate,) = [values(each.attributes) for each in annotations if each.name == "evaluation check_rate"]
    assert (rate["openinference.span.kind"], rate["annotation.name"], rate["annotation.score"]) == (
        "EVALUATOR",
        "check_rate",
        1.0,
    )


def test_an_evaluator_that_failed_is_an_error_without_a_score(project: "Project", collector: Collector) -> None:
    project.write("bot.py", "def answer(word):\n    raise ValueError('no')\n")
    project.suite("s.eval.yaml", [{"id": "a", "input": "a", "expected": "a"}], target="bot:answer", **EXACT)
    project.run("--llmeval-otel")
    (record,) = collector.logs
    assert values(record.attributes)["error.type"] == "ValueError"
    assert "gen_ai.evaluation.score.value" not in values(record.attributes)


@pytest.mark.parametrize("code", [400, 0])
def test_a_collector_that_fails_is_a_note_and_no_more(
    project: "Project", collector: Collector, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    collector.status = code
    if not code:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    project.suite("s.eval.yaml", CASES[:1], **EXACT)
    ran = project.run("--llmeval-otel")
    assert ran.code == 0
    assert ran.counts == {"passed": 1}
    assert "scores NOT sent by --llmeval-otel: the collector did not take them" in ran.text


def test_nothing_is_sent_unasked(project: "Project", collector: Collector) -> None:
    project.suite("s.eval.yaml", CASES[:1], **EXACT)
    assert project.run().counts == {"passed": 1}
    assert collector.logs == collector.spans == []


def test_without_the_extra_the_run_ends_as_it_would(project: "Project") -> None:
    project.write("conftest.py", "import sys\nsys.modules['opentelemetry.sdk.resources'] = None\n")
    project.suite("s.eval.yaml", CASES[:1], **EXACT)
    ran = project.run("--llmeval-otel")
    assert ran.code == 0
    assert "scores NOT sent: --llmeval-otel needs the extra 'otel' (" in ran.text

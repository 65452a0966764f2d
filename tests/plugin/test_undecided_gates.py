"""Gates on drops that no number of falling cases could decide."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from conftest import Project, Ran

GATE = {"metric": "exact_match", "max_drop": 0.02}


def suite(
    answers: str, *gates: Mapping[str, Any], snapshot: bool = False, clusters: int = 0, beside: int = 0
) -> dict[str, Any]:
    """A suite of cases that expect ``y``, with an answer for each."""
    cases = [
        {"id": f"c{number}", "input": number, "expected": "y", "prediction": answer}
        | ({"labels": {"talk": str(number % clusters)}} if clusters else {})
        for number, answer in enumerate(answers)
    ]
    more = [{"metric": "exact_match", "max_drop": 0.5 + number / 100} for number in range(beside)]
    return {
        "evaluators": [{"text": {"metrics": ["exact_match"]}}],
        "gates": [*(gates or (GATE,)), *more],
        "snapshot": snapshot or {"tolerance": 1},
        "cases": cases,
        **({"cluster_by": "talk"} if clusters else {}),
    }


def approve_and_run(project: Project, before: dict[str, Any], after: dict[str, Any]) -> Ran:
    project.write("s.eval.yaml", json.dumps(before))
    assert project.run("--snapshot-update").code == 0
    project.write("s.eval.yaml", json.dumps(after))
    return project.run()


def outcomes(ran: Ran) -> list[str]:
    return [gate["outcome"] for gate in ran.report["suites"][0]["gates"]]


@pytest.mark.parametrize(
    ("cases", "more"), [(5, {}), (60, {"clusters": 5}), (9, {"beside": 20})], ids=["few", "clusters", "gates"]
)
def test_a_total_collapse_fails_though_no_drop_could_be_established(
    project: Project, cases: int, more: dict[str, int]
) -> None:
    ran = approve_and_run(project, suite("y" * cases, **more), suite("n" * cases, **more))
    assert ran.code == 1
    assert "the observed drop counts" in ran.text
    assert outcomes(ran)[0] == "failed"


def test_a_gate_that_cannot_decide_leaves_the_snapshot_to_speak(project: Project) -> None:
    gate = {**GATE, "undecided": "pass"}
    ran = approve_and_run(project, suite("yyyyy", gate, snapshot=True), suite("nnnnn", gate, snapshot=True))
    assert ran.code == 1
    assert "FAILED s.eval.yaml::snapshot[exact_match]" in ran.text
    assert outcomes(ran) == ["undecided"]


@pytest.mark.parametrize(("counts", "outcome"), [("observed", "undecided"), ("pass", "undecided"), ("fail", "failed")])
def test_a_gate_that_cannot_decide_is_never_shown_as_passed(project: Project, counts: str, outcome: str) -> None:
    gate = {**GATE, "undecided": counts}
    ran = approve_and_run(project, suite("yyyyy", gate), suite("yyyyy", gate))
    assert outcomes(ran) == [outcome]
    assert ran.code == (outcome == "failed")
    assert "gate PASSED" not in ran.text
    if outcome == "undecided":
        assert "1 of 1 gate undecided: too little data (5 cases)" in ran.text


def test_a_drop_that_could_have_been_established_and_is_not_is_within_chance(project: Project) -> None:
    ran = approve_and_run(project, suite("y" * 30), suite("n" + "y" * 29))
    assert ran.code == 0
    (gate,) = ran.report["suites"][0]["gates"]
    assert gate["outcome"] == "passed"
    assert gate["reason"].startswith("within chance; ")
    assert "smallest detectable drop" in gate["reason"]


def test_what_a_gate_that_wants_proof_does_is_no_option(project: Project) -> None:
    gate = {**GATE, "rule": "proven_safe", "undecided": "pass"}
    project.write("s.eval.yaml", json.dumps(suite("yyyyy", gate)))
    assert "gates[0].undecided: found the key 'undecided' in a gate with rule proven_safe" in project.run().text

"""Gates on drops that no number of falling cases could decide."""

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
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


def approve_and_run(project: "Project", before: dict[str, Any], after: dict[str, Any]) -> "Ran":
    project.write("s.eval.yaml", json.dumps(before))
    assert project.run("--snapshot-update").code == 0
    project.write("s.eval.yaml", json.dumps(after))
    return project.run()


def outcomes(ran: "Ran") -> list[str]:
    return [gate["outcome"] for gate in ran.report["suites"][0]["gates"]]


@pytest.mark.parametrize(
    ("cases", "more"), [(5, {}), (60, {"clusters": 5}), (9, {"beside": 20})], ids=["few", "clusters", "gates"]
)
def test_a_total_collapse_fails_though_no_drop_could_be_established(
    project: "Project", cases: int, more: dict[str, int]
) -> None:
    ran = approve_and_run(project, suite("y" * cases, **more), suite("n" * cases, **more))
    assert ran.code == 1
    assert re.search(r"failed without proof: (\d+) of \1 (cases|clusters) got worse", ran.text) or cases == 9
    assert outcomes(ran)[0] == "failed"


def test_a_gate_that_cannot_decide_leaves_the_snapshot_to_speak(project: "Project") -> None:
    gate = {**GATE, "undecided": "pass"}
    ran = approve_and_run(project, suite("yyyyy", gate, snapshot=True), suite("nnnnn", gate, snapshot=True))
    assert ran.code == 1
    assert "FAILED s.eval.yaml::snapshot[exact_match]" in ran.text
    assert outcomes(ran) == ["undecided"]


@pytest.mark.parametrize(("counts", "outcome"), [("observed", "undecided"), ("pass", "undecided"), ("fail", "failed")])
def test_a_gate_that_cannot_decide_is_never_shown_as_passed(project: "Project", counts: str, outcome: str) -> None:
    gate = {**GATE, "undecided": counts}
    ran = approve_and_run(project, suite("yyyyy", gate), suite("yyyyy", gate))
    assert outcomes(ran) == [outcome]
    assert ran.code == (outcome == "failed")
    assert "gate PASSED" not in ran.text
    if outcome == "undecided":
        assert "1 of 1 gate cannot tell: 5 cases" in ran.text


def test_a_drop_that_could_have_been_established_and_is_not_is_within_chance(project: "Project") -> None:
    ran = approve_and_run(project, suite("y" * 30), suite("n" + "y" * 29))
    assert ran.code == 0
    (gate,) = ran.report["suites"][0]["gates"]
    assert gate["outcome"] == "passed"
    assert gate["reason"].startswith("not significant; ")
    assert "minimum detectable drop" in gate["reason"]


def test_what_a_gate_that_wants_proof_does_is_no_option(project: "Project") -> None:
    gate = {**GATE, "rule": "non_inferiority", "undecided": "pass"}
    project.write("s.eval.yaml", json.dumps(suite("yyyyy", gate)))
    assert "gates[0].undecided: undecided does not apply to a gate with rule non_inferiority" in project.run().text


def test_a_second_gate_does_not_turn_the_first_red(project: "Project") -> None:
    alone = approve_and_run(project, suite("yyyyyy"), suite("nyyyyy"))
    assert (alone.code, outcomes(alone)) == (0, ["undecided"])
    both = approve_and_run(project, suite("yyyyyy", beside=1), suite("nyyyyy", beside=1))
    assert (both.code, outcomes(both)[0]) == (0, "undecided")


def test_a_gate_without_power_leaves_the_strict_snapshot_to_speak(project: "Project") -> None:
    ran = approve_and_run(project, suite("yyyyyy", snapshot=True), suite("nyyyyy", snapshot=True))
    assert (ran.code, outcomes(ran)) == (1, ["undecided"])
    assert "FAILED s.eval.yaml::snapshot[exact_match]" in ran.text


@pytest.mark.parametrize(("lost", "code"), [(1, 0), (2, 1), (5, 1), (6, 0)])
def test_a_gate_stands_for_a_snapshot_only_where_so_many_cases_could_show_a_drop(
    project: "Project", lost: int, code: int
) -> None:
    # One case of 64 is within max_drop. Six that fall are the fewest that establish a drop; three that rise hide it.
    before, after = "y" * 60 + "nnnn", "n" * lost + "y" * (60 - lost) + "yyyn" * (lost == 6) + "nnnn" * (lost != 6)
    ran = approve_and_run(project, suite(before, snapshot=True), suite(after, snapshot=True))
    assert ran.code == code
    assert outcomes(ran) == ["passed"]


@pytest.mark.parametrize("workers", [0, 2])
def test_half_of_few_cases_fail_without_proof(project: "Project", workers: int) -> None:
    project.write("s.eval.yaml", json.dumps(suite("yyyyy", beside=3)))
    assert project.run("--snapshot-update", workers=workers).code == 0
    project.write("s.eval.yaml", json.dumps(suite("nnnyy", beside=3)))
    ran = project.run(workers=workers)
    assert (ran.code, outcomes(ran)) == (1, ["failed"] * 4)
    assert "failed without proof: 3 of 5 cases got worse" in ran.text
    assert "p 1.0000" not in ran.text


def test_wilcoxon_cannot_prove_safety(project: "Project") -> None:
    gate = {**GATE, "rule": "non_inferiority", "test": "wilcoxon"}
    project.write("s.eval.yaml", json.dumps(suite("yyyyy", gate)))
    ran = project.run()
    assert ran.code == 1
    assert (
        "found test wilcoxon with rule non_inferiority, expected one of bootstrap, bca, permutation, or mcnemar"
        in ran.text
    )

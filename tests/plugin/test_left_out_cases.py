"""Whole runs in which cases errored, against baselines and as baselines."""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conftest import Project

WITH_SYRUPY = ("asyncio", "hypothesispytest", "rerunfailures")
SAFE = {"metric": "exact_match", "max_drop": 0.05, "rule": "non_inferiority"}


def write(project: "Project", silent: int, wrong: int, **gate: Any) -> None:
    """Write a suite of 40 cases, of which some have no prediction, which is an error, and some a wrong one."""
    cases = [
        {"id": f"c{number:02}", "expected": "red"}
        | ({} if number < silent else {"prediction": "blue" if number < silent + wrong else "red"})
        for number in range(40)
    ]
    project.suite("s.eval.yaml", cases, gates=[gate], snapshot=True, mode="bulk")


def snapshot(ran: Any) -> dict[str, dict[str, Any]]:
    return {each["metric"]: each for each in ran.suites["s"]["snapshot"]}


def test_cases_without_baseline_score_fail_a_proof_of_safety_loudly(project: "Project") -> None:
    write(project, 8, 0, **SAFE)
    project.run("--snapshot-update", without=WITH_SYRUPY)
    write(project, 0, 8, **SAFE)
    ran = project.run(without=WITH_SYRUPY)
    (gate,) = ran.suites["s"]["gates"]
    assert ran.code == 1
    assert gate["outcome"] == "failed"
    assert gate["reason"] == "8 cases left out of the comparison, errored or not run; max_left_out is 0"


def test_a_snapshot_does_not_defer_to_a_gate_that_left_cases_out(project: "Project") -> None:
    gate = {"metric": "exact_match", "max_drop": 0.05}
    write(project, 8, 0, **gate)
    project.run("--snapshot-update", without=WITH_SYRUPY)
    write(project, 0, 8, **gate)
    judged = snapshot(project.run(without=WITH_SYRUPY))["exact_match"]
    assert judged["outcome"] == "failed"
    write(project, 0, 0, **gate)
    project.run("--snapshot-update", without=WITH_SYRUPY)
    write(project, 0, 1, **gate)
    judged = snapshot(project.run(without=WITH_SYRUPY))["exact_match"]
    assert judged["outcome"] == "passed"
    assert judged["reason"].startswith("left to the gate with max_drop: ")


def test_approving_a_run_with_errors_warns_and_says_so_in_the_score_file(project: "Project") -> None:
    write(project, 2, 0, **SAFE)
    ran = project.run("--snapshot-update", without=WITH_SYRUPY)
    told = snapshot(ran)["*"]
    assert (told["kind"], told["outcome"]) == ("approved", "passed")
    assert told["reason"].startswith("approved with 2 cases that errored")
    assert told["reason"] in ran.text
    path = project.path / "__llmeval__" / "s.scores.json"
    assert json.loads(path.read_text(encoding="utf-8"))["cases"]["errored"] == 2
    write(project, 0, 0, **SAFE)
    ran = project.run("--snapshot-update", without=WITH_SYRUPY)
    assert "*" not in snapshot(ran)
    assert "errored" not in json.loads(path.read_text(encoding="utf-8"))["cases"]
    assert project.run(without=WITH_SYRUPY).code == 1  # 40 equal cases do not prove so small a drop

"""Gates in a run: what is judged, what is not, and what the user and the exit code learn of it."""

import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Project

HALF: list[dict[str, Any]] = [
    {"id": "one", "expected": "x", "prediction": "x", "labels": {"kind": "good"}},
    {"id": "two", "expected": "x", "prediction": "x", "labels": {"kind": "good"}},
    {"id": "three", "expected": "x", "prediction": "y", "labels": {"kind": "bad"}},
    {"id": "four", "expected": "x", "prediction": "y", "labels": {"kind": "bad"}},
]


@pytest.mark.parametrize(
    ("gate", "verdict"),
    [
        ("f1 > 0.5", "FAILED"),
        ("median(f1) <= 0.5", "PASSED"),
        ("pass_rate >= 0.5", "PASSED"),
    ],
)
def test_a_gate_alone_decides_the_exit_code(project: "Project", gate: str, verdict: str) -> None:
    project.suite("s.eval.yaml", HALF, gates=[gate], thresholds={} if "pass" not in gate else {"f1": 1})
    ran = project.run("-v")
    assert ran.verdicts()[f"s.eval.yaml::gate[{gate}]"] == verdict
    assert (ran.counts.get("failed", 0) == 0) == (ran.code == 0)
    assert f"gate {verdict}  {gate}  (" in ran.section("llmeval")


def test_gates_that_pass_are_counted_apart_from_cases(project: "Project", workers: int) -> None:
    project.suite("s.eval.yaml", HALF, gates=["f1 >= 0.5", "f1 <= 0.6", "f1 >= 0.9"])
    ran = project.run("--junit-xml=junit.xml", workers=workers)
    assert ran.code == 1
    assert re.search(r"= 1 failed, 4 passed, 2 gates passed in ", ran.text)
    assert "cases: 4 passed; gates: 2 passed, 1 failed" in ran.section("llmeval")
    assert "FAILED s.eval.yaml::gate[f1 >= 0.9] - " in ran.text
    assert 'failures="1" skipped="0" tests="7"' in (project.path / "junit.xml").read_text(encoding="utf-8")
    again = project.run("--lf", workers=workers)
    assert (again.code, again.counts) == (1, {"failed": 1, "passed": 6})


def test_a_green_run_is_green_and_its_gates_have_no_letters(project: "Project") -> None:
    project.suite("s.eval.yaml", HALF, gates=["f1 >= 0.5"])
    ran = project.run("--color=yes")
    last = ran.text.splitlines()[-1]
    assert "4 passed\x1b[0m, \x1b[32m\x1b[1m1 gate passed\x1b[0m" in last
    assert "\x1b[33m" not in last
    assert "\x1b[32m.\x1b[0m" * 4 + "\x1b[32m.\x1b[0m" not in ran.text


def test_gates_of_all_forms_are_judged_alike_with_and_without_workers(project: "Project", workers: int) -> None:
    gates = [
        "f1 >= 0.9",
        {"metric": "f1", "by": "kind", "min": 0.5},
        {"metric": "f1", "by": "kind", "min": 0.4, "min_cases": 3},
        {"metric": "mean(f1)", "max": 0.6},
        {"metric": "pass_rate", "by": "kind", "min": 1},
    ]
    project.suite("s.eval.yaml", HALF, gates=gates)
    ran = project.run("-v", workers=workers)
    assert ran.code == 1
    told = [tuple(value for key, value in gate.items() if key != "line") for gate in ran.suites["s"]["gates"]]
    assert told == [
        ("f1 >= 0.9", "failed", 0.5, 0.9, "f1 is 0.5000, expected >= 0.9"),
        ("f1 >= 0.5 by kind", "failed", 0.0, 0.5, "1 of 2 groups fail: bad: f1 is 0.0000, expected >= 0.5"),
        (
            "f1 >= 0.4 by kind",
            "failed",
            None,
            0.4,
            "no group by 'kind' has 3 cases; not evaluated, under 3 cases: bad, good",
        ),
        ("mean(f1) <= 0.6", "passed", 0.5, 0.6, "mean(f1) is 0.5000"),
        ("pass_rate >= 1 by kind", "passed", 1.0, 1.0, "all 2 groups pass, closest bad: pass_rate is 1.0000"),
    ]
    assert ran.gates("s") == {
        name.partition("[")[2].removesuffix("]"): verdict.lower()
        for name, verdict in ran.verdicts().items()
        if "::gate[" in name
    }


def test_quiet_output_has_the_failed_gate_its_cases_and_the_next_command(project: "Project") -> None:
    project.suite("s.eval.yaml", HALF, gates=["f1 >= 0.9", "f1 >= 0.1"])
    ran = project.run("-q")
    assert "gate FAILED  s: f1 >= 0.9  (f1 is 0.5000, expected >= 0.9)\n  worst cases: " in ran.text
    assert "\nnext: pytest --llmeval s.eval.yaml -v" in ran.text
    assert "gate PASSED" not in ran.text
    assert "scored" not in ran.text
    assert ran.counts == {"passed": 5, "failed": 1}


def test_an_errored_case_fails_the_gate_unless_it_is_allowed_for(project: "Project") -> None:
    cases = [*HALF[:2], {"id": "e", "input": "e", "expected": "x"}]
    gates = ["f1 >= 0.5", {"metric": "f1", "min": 0.4, "max_errors": 1}]
    project.suite("s.eval.yaml", cases, gates=gates, target="no_such_module:answer")
    ran = project.run()
    assert ran.gates("s") == {"f1 >= 0.5": "failed", "f1 >= 0.4": "passed"}
    assert ran.suites["s"]["gates"][0]["reason"] == "1 case errored"


@pytest.mark.parametrize(
    ("arguments", "workers"),
    [(("-k", "one or two"), 0), (("s.eval.yaml::one", "s.eval.yaml::two"), 0), (("-m", "smoke"), 2)],
    ids=["-k", "by id", "-m with workers"],
)
def test_a_part_that_was_chosen_is_not_judged(project: "Project", arguments: tuple[str, ...], workers: int) -> None:
    cases = [{**case, "tags": ["smoke"]} if case["id"] in ("one", "two") else case for case in HALF]
    project.suite("s.eval.yaml", cases, gates=["f1 >= 0.9", {"metric": "f1", "min": 0.95, "partial": True}])
    ran = project.run("-v", *arguments, workers=workers)
    assert ran.code == 0
    assert ran.counts["passed"] == 3
    assert "s.eval.yaml::gate[f1 >= 0.9]" not in ran.verdicts()
    assert ran.verdicts()["s.eval.yaml::gate[f1 >= 0.95]"] == "PASSED"
    assert "1 of 2 gates not evaluated: 2 of 4 cases ran" in ran.text
    assert ran.gates("s") == {"f1 >= 0.9": "not_judged", "f1 >= 0.95": "passed"}


def test_a_part_that_was_chosen_does_not_make_pytest_forget_a_failed_gate(project: "Project") -> None:
    project.suite("s.eval.yaml", HALF, gates=["f1 >= 0.9"])
    project.run()
    project.run("s.eval.yaml::one")
    assert "gate[f1 >= 0.9]" in (project.path / ".pytest_cache/v/cache/lastfailed").read_text(encoding="utf-8")


def test_suites_that_ran_whole_are_judged_beside_one_that_did_not(project: "Project") -> None:
    for name in ("one", "two"):
        project.suite(f"{name}.eval.yaml", HALF, gates=["f1 >= 0.5"])
    ran = project.run("one.eval.yaml", "two.eval.yaml::one")
    assert (ran.gates("one"), ran.gates("two")) == ({"f1 >= 0.5": "passed"}, {"f1 >= 0.5": "not_judged"})


def test_a_selection_of_nothing_exits_5_and_judges_nothing(project: "Project", workers: int) -> None:
    project.suite("s.eval.yaml", HALF, gates=[{"metric": "f1", "min": 0.9, "partial": True}])
    ran = project.run("-m", "nothing", workers=workers)
    assert ran.code == pytest.ExitCode.NO_TESTS_COLLECTED
    assert ran.report.get("suites") == []
    assert "gate" not in ran.text


def test_a_case_without_ground_truth_is_undefined_and_never_a_zero(project: "Project") -> None:
    project.suite("s.eval.yaml", [*HALF[:2], {"id": "e", "prediction": "x"}], gates=["f1 >= 1"])
    ran = project.run()
    assert ran.code == 0
    value = ran.suites["s"]["metrics"]["f1"]
    assert (value["value"], value["scored"], value["undefined"]) == (1.0, 2, 1)
    assert ran.suites["s"]["cases"][2]["metrics"]["f1"] is None


def test_a_gate_over_nothing_but_undefined_cases_fails(project: "Project") -> None:
    project.suite("s.eval.yaml", [{"id": "e", "prediction": "x"}], gates=["f1 >= 0"])
    ran = project.run()
    assert ran.code == 1
    assert "f1 is undefined: 0 cases scored, 1 undefined" in ran.text


@pytest.mark.parametrize(
    ("top", "told"),
    [({}, True), ({"thresholds": {"f1": 0}}, False), ({"gates": ["f1 >= 0"]}, False), ({"snapshot": True}, False)],
    ids=["nothing", "thresholds", "gates", "snapshot"],
)
def test_a_suite_in_which_nothing_can_fail_says_so_in_one_line(
    project: "Project", top: dict[str, Any], told: bool
) -> None:
    project.suite("s.eval.yaml", HALF, **top)
    ran = project.run()
    assert ran.text.count("s.eval.yaml: nothing can fail here: without thresholds, checks, gates") == told
    assert ran.suites["s"].get("can_fail", True) is not told


@pytest.mark.parametrize(("answers", "told"), [(("no", "nothing"), 2), (("no", "Paris"), 0)], ids=["all wrong", "one"])
def test_an_approval_of_the_worst_scores_is_warned_of(project: "Project", answers: tuple[str, ...], told: int) -> None:
    cases = [{"id": answer, "expected": "Paris", "prediction": answer} for answer in answers]
    project.suite("s.eval.yaml", cases, snapshot=True)
    line = "is approved at 0.0000, the worst that it can be, so no later fall can be found"
    assert project.run("--snapshot-update").text.count(line) == told
    assert line not in project.run().text

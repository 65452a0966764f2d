"""Selecting cases: by id, expression, mark, last failure; what pytest can do to tests it can do to cases."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

WEAK = [
    {"id": "paris", "expected": "Paris", "prediction": "Paris"},
    {"id": "東京", "expected": "Tokyo", "prediction": "Kyoto"},
    {"id": "new delhi [in] 🎉", "expected": "New Delhi", "prediction": "Pune"},
    {"id": "quito[1]", "expected": "Quito", "prediction": "Lima"},
    {"id": "lima", "expected": "Lima", "prediction": "Lima"},
]
LIMIT = {"f1": 0.5}


@pytest.mark.parametrize(
    ("arguments", "selected"),
    [
        (["-k", "paris"], ["paris"]),
        (["-k", "東京 or quito"], ["東京", "quito[1]"]),
        (["-k", "not delhi"], ["paris", "東京", "quito[1]"]),
        (["-m", "smoke"], ["paris", "東京"]),
        (["-m", "smoke and not far"], ["paris"]),
        (["capitals.eval.yaml::new delhi [in] 🎉"], ["new delhi [in] 🎉"]),
        (["capitals.eval.yaml::quito[1]", "capitals.eval.yaml::東京"], ["quito[1]", "東京"]),
        (["--deselect=capitals.eval.yaml::paris"], ["東京", "new delhi [in] 🎉", "quito[1]"]),
    ],
)
def test_cases_are_selected_the_way_tests_are(capitals: "Project", arguments: list[str], selected: list[str]) -> None:
    ran = capitals.run("--collect-only", "-q", "--strict-markers", *arguments)
    assert ran.ids() == [f"capitals.eval.yaml::{name}" for name in selected]


@pytest.mark.parametrize(("expression", "counts"), [("llmeval", 4), ("not llmeval", 1)])
def test_the_marker_llmeval_tells_cases_from_tests(capitals: "Project", expression: str, counts: int) -> None:
    capitals.write("test_plain.py", "def test_plain(): pass\n")
    ran = capitals.run("--collect-only", "-q", "-m", expression)
    assert len(ran.ids()) == counts


def test_selected_ids_of_any_script_run_under_xdist_too(capitals: "Project", workers: int) -> None:
    ids = ("東京", "new delhi [in] 🎉", "quito[1]")
    ran = capitals.run(*(f"capitals.eval.yaml::{name}" for name in ids), workers=workers)
    assert ran.counts == {"passed": 2, "failed": 1}
    assert ran.outcomes("capitals") == {
        "paris": "not_run",
        "東京": "passed",
        "new delhi [in] 🎉": "passed",
        "quito[1]": "failed",
    }


def test_a_folder_whose_cases_are_all_deselected_is_not_called_empty(capitals: "Project") -> None:
    ran = capitals.run("-m", "nightly")
    assert ran.code == pytest.ExitCode.NO_TESTS_COLLECTED
    assert "4 deselected" in ran.text
    assert "llmeval init" not in ran.text


def test_an_unknown_id_is_pytests_own_error(capitals: "Project") -> None:
    ran = capitals.run("capitals.eval.yaml::rome")
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert "not found: " in ran.text


def test_last_failed_runs_exactly_the_failed_cases_whatever_their_ids(project: "Project", workers: int) -> None:
    project.suite("weak.eval.yaml", WEAK, thresholds=LIMIT)
    assert project.run(workers=workers).counts == {"passed": 2, "failed": 3}
    again = project.run("--lf", workers=workers)
    assert again.counts["failed"] == 3
    assert "passed" not in again.counts
    assert [key for key, outcome in again.outcomes("weak").items() if outcome == "failed"] == [
        "東京",
        "new delhi [in] 🎉",
        "quito[1]",
    ]


def test_last_failed_after_a_failed_gate_alone_runs_and_judges_its_suite_again(project: "Project") -> None:
    project.suite("gated.eval.yaml", WEAK, gates=["f1 >= 0.9"])
    assert project.run().counts == {"passed": 5, "failed": 1}
    again = project.run("--lf")
    assert again.counts == {"passed": 5, "failed": 1}
    assert again.gates("gated") == {"f1 >= 0.9": "failed"}


def test_last_failed_leaves_suites_out_whose_gates_passed(project: "Project", workers: int) -> None:
    project.suite("gated.eval.yaml", WEAK, gates=["f1 >= 0.9"])
    project.suite("good.eval.yaml", WEAK, gates=["f1 >= 0.1"])
    project.suite("weak.eval.yaml", WEAK, thresholds=LIMIT, gates=["f1 >= 0.9"])
    project.run(workers=workers)
    again = project.run("--lf", workers=workers)
    assert {*again.suites} == {"gated", "weak"}
    assert again.gates("gated") == {"f1 >= 0.9": "failed"}
    assert again.counts["failed"] == 4  # the gate, and three cases of the weak suite, whose gate needs the others


def test_stepwise_stops_at_the_first_failure_and_goes_on_from_there(project: "Project") -> None:
    project.suite("weak.eval.yaml", WEAK, thresholds=LIMIT, gates=["pass_rate >= 0.1"])
    first = project.run("--sw")
    assert (first.code, first.counts["failed"], first.counts["passed"]) == (2, 1, 1)
    assert first.outcomes("weak")["new delhi [in] 🎉"] == "not_run"
    assert first.gates("weak") == {"pass_rate >= 0.1": "not_judged"}
    second = project.run("--sw", "--sw-skip")
    assert second.outcomes("weak") == {
        "paris": "not_run",
        "東京": "failed",
        "new delhi [in] 🎉": "failed",
        "quito[1]": "not_run",
        "lima": "not_run",
    }


def test_exit_first_stops_the_run_and_leaves_the_gates_not_judged(project: "Project") -> None:
    project.suite("weak.eval.yaml", WEAK, thresholds=LIMIT, gates=["pass_rate >= 0.1"])
    ran = project.run("-x", "-v")
    assert ran.code == 1
    assert ran.counts == {"passed": 1, "failed": 1, "skipped": 1}
    assert ran.suites["weak"]["counts"]["not_run"] == 3
    assert ran.verdicts()["weak.eval.yaml::gate[pass_rate >= 0.1]"] == "SKIPPED"
    assert "1 of 1 gates not evaluated: 2 of 5 cases ran; stopping after 1 failures" in ran.text


def test_exit_first_under_xdist_interrupts_the_run(project: "Project") -> None:
    many = [{"id": f"{number}", "expected": "x", "prediction": "y"} for number in range(40)]
    project.suite("weak.eval.yaml", many, thresholds=LIMIT, gates=["pass_rate >= 0"])
    ran = project.run("-x", workers=2)
    assert ran.code == 2
    assert ran.suites["weak"]["counts"]["not_run"] > 0
    assert ran.gates("weak") == {"pass_rate >= 0": "not_judged"}

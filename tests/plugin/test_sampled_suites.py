"""``sample``: a part of the cases runs, and everything says so."""

import os
from typing import TYPE_CHECKING, Any

import pytest
from running import run_python

if TYPE_CHECKING:
    from conftest import Project


def cases(count: int = 300, wrong: int = 10) -> list[dict[str, Any]]:
    """Return cases of two topics, of which the rare one is answered wrongly."""
    return [
        {
            "id": f"c{number}",
            "expected": "x",
            "prediction": "y" if number < wrong else "x",
            "labels": {"topic": "rare" if number < wrong else "usual"},
        }
        for number in range(count)
    ]


def test_gates_reports_and_validate_say_of_how_many_cases_it_is_a_sample(project: "Project") -> None:
    project.suite("s.eval.yaml", cases(), sample={"cases": 50, "by": "topic"}, gates=["exact_match >= 0.9"])
    ran = project.run("-v")
    assert ran.code == 0
    suite = ran.suites["s"]
    assert suite["counts"]["total"] == len(suite["cases"]) == 50
    assert suite["sample"] == {"cases": 50, "of": 300, "by": "topic", "weighted": True}
    assert suite["gates"][0]["reason"].endswith("a sample of 50 of 300 cases by topic, weighted back")
    assert "a sample of 50 of 300 cases by topic, weighted back" in ran.text
    # 10 of 300 cases are wrong; of 50 it would be 1.67, and 2 are drawn.
    assert suite["metrics"]["exact_match"]["value"] == pytest.approx(290 / 300)
    done = run_python(["-m", "pytest_llmeval", "validate", "s.eval.yaml"], os.environ, project.path)
    assert "s.eval.yaml: no fault in 50 cases, a sample of 50 of 300 cases by topic, weighted back" in done.out


def test_the_baseline_compares_on_the_same_cases(project: "Project", workers: int) -> None:
    top: dict[str, Any] = {
        "sample": {"cases": 60, "by": "topic"},
        "snapshot": True,
        "gates": [{"metric": "exact_match", "max_drop": 0.05}],
    }
    project.suite("s.eval.yaml", cases(), **top)
    assert project.run("--snapshot-update").code == 0
    again = project.run(workers=workers)
    assert again.code == 0
    assert "60 paired cases" in again.suites["s"]["gates"][0]["reason"]
    assert {each["kind"] for each in again.suites["s"]["snapshot"]} == {"unchanged"}
    project.suite("s.eval.yaml", cases(wrong=10)[:10] + [{**each, "prediction": "y"} for each in cases()[10:]], **top)
    worse = project.run(workers=workers)
    assert worse.code == pytest.ExitCode.TESTS_FAILED
    assert "a drop beyond 0.05 is significant" in worse.suites["s"]["gates"][0]["reason"]


def test_a_sample_without_weights_may_stop_when_it_is_decided(project: "Project") -> None:
    project.suite("s.eval.yaml", cases(), sample={"cases": 150}, stop="when_decided", gates=["exact_match >= 0.5"])
    suite = project.run().suites["s"]
    assert suite["stop"]["cases"] + suite["stop"]["not_needed"] == 150
    assert suite["stop"]["not_needed"] > 0
    assert "a sample of 150 of 300 cases" in suite["gates"][0]["reason"]


def test_a_weighted_sample_runs_to_its_end(project: "Project") -> None:
    sample = {"cases": 150, "by": "topic"}
    project.suite("s.eval.yaml", cases(wrong=11), sample=sample, stop="when_decided", gates=["exact_match >= 0.5"])
    ran = project.run()
    assert "runs to its end: cases of its sample have different weights" in ran.text
    assert len(ran.suites["s"]["cases"]) == 150


def test_systems_answer_the_same_sample(project: "Project") -> None:
    project.write("bot.py", "def good(n): return 'x'\ndef bad(n): return 'y'\n")
    project.ini("pythonpath = .")
    asked = [{"id": f"c{number}", "input": number, "expected": "x"} for number in range(100)]
    systems = {"good": {"python": "bot:good"}, "bad": {"python": "bot:bad"}}
    project.suite("s.eval.yaml", asked, systems=systems, sample={"cases": 20})
    ran = project.run()
    names = [[case["id"] for case in ran.suites[f"s[{name}]"]["cases"]] for name in systems]
    assert names[0] == names[1]
    assert len(names[0]) == 20

"""A judge with limits that no labels of people confirm is reported once, or fails its suite."""

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.reports import RunReport
from pytest_llmeval.reports._markdown import to_markdown

if TYPE_CHECKING:
    from conftest import Project

CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def judge_client():
    return lambda request: "yes" if "right" in str(request.messages[-1]) else "no"
"""
COUNTING = """
import sys
from pathlib import Path

def counted(event, arguments):
    if event == "open" and Path(str(arguments[0])).name == "check.scores.json":
        with Path("read.txt").open("a") as file:
            print("check.scores.json", file=file)

sys.addaudithook(counted)
"""
MODE = {"mode": "default_binary"}
COMMAND = "label answers with llmeval review REPORT.json --pick 40"


def test_a_judge_is_uncalibrated_until_labels_of_the_run_or_an_approved_suite_confirm_it(
    project: "Project", monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project.path)
    project.write("conftest.py", CONFTEST)
    cases: list[dict[str, Any]] = [
        {"id": f"c{number}", "input": "Q?", "expected": "R", "prediction": "right" if number % 2 else "wrong"}
        for number in range(12)
    ]
    judged = {"evaluators": [{"judge": MODE}], "gates": ["judge_score >= 0.4"], "judge": "openai:M"}
    people = [{**case, "expected": {"reference": "R", "human": case["prediction"] == "right"}} for case in cases]
    people = [{**case, "expected": {"reference": "R", "human": int(case["expected"]["human"])}} for case in people]
    labelled = {"evaluators": [{"judge_agreement": MODE}], "judge": "openai:M", "snapshot": True}
    project.suite("qa.eval.json", cases, **judged)
    project.suite("strict.eval.json", cases, uncalibrated="fail", **judged)
    project.suite("check.eval.json", people[:9], **labelled)

    alone = project.run("qa.eval.json", "strict.eval.json", "check.eval.json")
    line = f"uncalibrated: no human labels confirm the judge of judge_score of qa; judge_score of strict: {COMMAND}"
    assert alone.text.count(line) == 1
    assert "gate FAILED  calibrated judges" in alone.text
    report = RunReport.read(project.path / "report.json")
    assert [list(each.uncalibrated) for each in report.suites] == [[], ["judge_score"], ["judge_score"]]
    assert to_markdown(report).count("; judge") == 1
    capsys.readouterr()
    main(["comment", "report.json"])
    assert capsys.readouterr().out.count("Uncalibrated: no human labels confirm") == 1

    project.suite("check.eval.json", people, **labelled)
    together = project.run("--snapshot-update")
    assert "uncalibrated:" not in together.text
    project.write("conftest.py", CONFTEST + COUNTING)
    confirmed = project.run("strict.eval.json", "qa.eval.json")
    assert (project.path / "read.txt").read_text().splitlines().count("check.scores.json") == 1
    assert "uncalibrated:" not in confirmed.text
    assert json.loads((project.path / "report.json").read_text())["suites"][0]["gates"][0]["outcome"] == "passed"

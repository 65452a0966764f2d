"""The error analysis of a run, and fact checks as a suite."""

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

CLAIMS = [
    {
        "claim": "The bell tower has 99 steps.",
        "verdict": "Refuted",
        "justification": "It has 211.",
        "evidence_sources": [{"content": "Parish survey", "url": "https://parish.example/tower"}],
    },
    {
        "claim": "钟楼建于1820年。",
        "verdict": "Supported",
        "justification": "县志如此记载。",
        "evidence_sources": [{"content": "县志第三卷：钟楼建于1820年", "url": ""}],
    },
    {"claim": "Nobody rings it.", "verdict": "Not Enough Evidence", "justification": "", "evidence_sources": []},
]
ANSWERS = [
    {"claim": CLAIMS[0]["claim"], "verdict": "Refuted", "justification": "According to the Parish survey, 211."},
    {"claim": CLAIMS[1]["claim"], "answer": "我查不到。"},
    {"claim": CLAIMS[2]["claim"], "answer": None},
]
SUITE = """\
suite: towers
evaluators:
  - fact_check: {explanation: omit}
group_by: [verdict]
gates:
  - verdict_accuracy >= 0.5
source: {format: fact_check, path: claims.json, predictions: answers.json}
"""


@pytest.fixture
def towers(project: "Project") -> "Project":
    project.write("claims.json", json.dumps(CLAIMS))
    project.write("answers.json", json.dumps(ANSWERS))
    project.write("towers.eval.yaml", SUITE)
    return project


def test_errors_json_holds_the_cases_that_went_wrong(towers: "Project") -> None:
    ran = towers.run("--llmeval-report=out/errors.json", "--llmeval-report=r.md", workers=2)
    errors = json.loads((towers.path / "out/errors.json").read_text(encoding="utf-8"))
    (suite,) = errors["suites"]
    found = {bucket["bucket"]: [case["id"] for case in bucket["cases"]] for bucket in suite["buckets"]}
    assert found == {"verdict_errors": ["2"], "low_evidence_f1": ["2"], "low_explanation_score": []}
    assert suite["buckets"][0]["cases"][0]["details"]["unparsed"] is True
    assert [case["id"] for case in suite["errored"]] == ["3"]
    assert [each["cases"] for each in ran.suites["towers"]["error_buckets"]] == [["2"], ["2"], []]
    assert "errors: 1 verdict_errors, 1 low_evidence_f1" in ran.section("llmeval")
    assert "### Error analysis" in (towers.path / "r.md").read_text(encoding="utf-8")


def test_a_reply_that_cannot_be_read_fails_its_case_and_a_failed_call_is_an_error(towers: "Project") -> None:
    ran = towers.run()
    assert ran.outcomes("towers") == {"1": "passed", "2": "failed", "3": "errored"}
    metrics = ran.suites["towers"]["metrics"]
    assert metrics["verdict_accuracy"]["value"] == 0.5
    assert (metrics["verdict_accuracy"]["scored"], metrics["verdict_accuracy"]["errored"]) == (2, 1)
    assert metrics["explanation_score"]["value"] is None
    assert ran.suites["towers"]["groups"]["verdict"]["Refuted"]["metrics"]["evidence_f1"]["value"] == 1.0


def test_faults_of_the_ground_truth_are_told_with_their_place(towers: "Project") -> None:
    claims = [{**CLAIMS[0], "verdict": "False"}, *CLAIMS[1:]]
    towers.write("claims.json", json.dumps(claims, indent=1))
    ran = towers.run()
    assert "claims.json:2" in ran.text
    assert (
        "found text 'False', expected one of Supported, Refuted, Not Enough Evidence (did you mean 'Refuted'?"
        in ran.text
    )
    assert "Traceback" not in ran.text


def test_all_faults_of_a_claim_are_told_at_once(towers: "Project") -> None:
    claims = [{**CLAIMS[0], "justification": 7, "evidence_sources": [{"content": 5}]}, *CLAIMS[1:]]
    towers.write("claims.json", json.dumps(claims))
    text = towers.run().text
    assert "justification: found number 7, expected text; evidence_sources[0].content: found number 5" in text


JUDGE = """\
import json

import pytest

DEFECTS = ("logical_errors", "fabrication", "wrong_citation", "factual_errors", "knowledge_errors", "reasoning_errors")


@pytest.fixture
def judge_client():
    def grade(request):
        text = str(request)
        if "BROKEN" in text:
            return "no grade"
        score = 90 if "Parish survey" in text else 20
        return json.dumps({"reasoning": "", **dict.fromkeys(DEFECTS, score < 50), "score": score})

    return grade
"""
JUDGED = (
    "suite: judged\nevaluators: [fact_check]\nsource: {format: fact_check, path: claims.json, predictions: all.json}\n"
)


def test_a_judge_grades_explanations_and_its_failure_costs_those_only(project: "Project") -> None:
    answers = [
        ANSWERS[0],
        {"claim": CLAIMS[1]["claim"], "verdict": "Supported", "justification": "县志第三卷。"},
        {"claim": CLAIMS[2]["claim"], "verdict": "Not Enough Evidence", "justification": "BROKEN"},
    ]
    project.write("claims.json", json.dumps(CLAIMS))
    project.write("all.json", json.dumps(answers))
    project.write("conftest.py", JUDGE)
    project.write("judged.eval.yaml", JUDGED)
    ran = project.run()
    assert ran.outcomes("judged") == {"1": "passed", "2": "passed", "3": "errored"}
    metrics = ran.suites["judged"]["metrics"]
    assert metrics["explanation_score"]["value"] == pytest.approx((0.9 + 0.2) / 2)
    assert metrics["explanation_score"]["errored"] == metrics["overall_score"]["errored"] == 1
    assert metrics["defect[fabrication]"]["value"] == 0.5
    assert (metrics["verdict_accuracy"]["value"], metrics["verdict_accuracy"]["errored"]) == (1.0, 0)
    buckets = {each["bucket"]: each["cases"] for each in ran.suites["judged"]["error_buckets"]}
    assert buckets["low_explanation_score"] == ["2"]


def test_without_a_judge_explanations_are_undefined_and_cases_pass(project: "Project") -> None:
    project.write("claims.json", json.dumps(CLAIMS[:1]))
    project.write("all.json", json.dumps(ANSWERS[:1]))
    project.write("judged.eval.yaml", JUDGED)
    ran = project.run()
    assert ran.outcomes("judged") == {"1": "passed"}
    metrics = ran.suites["judged"]["metrics"]
    assert (metrics["explanation_score"]["value"], metrics["explanation_score"]["undefined"]) == (None, 1)
    assert metrics["evidence_f1"]["value"] == 1.0

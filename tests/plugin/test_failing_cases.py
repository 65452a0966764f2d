"""Failing cases in the terminal and in reports, in complete runs."""

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

SUITE = {
    "suite": "s",
    "evaluators": [{"text": {"metrics": ["f1"]}}],
    "thresholds": {"f1": 0.9},
    "target": {"python": "bot:answer", "concurrency": 1},
    "repeats": 3,
    "cases": [{"id": "france", "input": "capital of France", "expected": "Paris"}],
}
BOT = """\
from itertools import count

answers = iter(["Lyon", "Nice", "Lyon"])


def answer(question):
    return next(answers)
"""


@pytest.fixture
def capitals(project: "Project") -> "Project":
    project.write("bot.py", BOT)
    project.write("s.eval.json", json.dumps(SUITE))
    return project


def test_a_failing_case_of_repeats_says_where_it_is_and_how_often_each_answer_came(capitals: "Project") -> None:
    ran = capitals.run(workers=2)
    text = ran.text
    assert "s.eval.json:1: case france" in text
    assert "input:      capital of France" in text
    assert "prediction: Lyon (2 of 3 repeats)\nprediction: Nice (1 of 3 repeats)" in text
    assert "text: missing words: paris\ntext: extra words: lyon" in text
    (case,) = ran.suites["s"]["cases"]
    assert case["answers"] == [
        {"prediction": "Lyon", "times": 2, "passed": 0},
        {"prediction": "Nice", "times": 1, "passed": 0},
    ]
    assert case["lines"] == {"text": ["missing words: paris", "extra words: lyon"]}


def test_reports_keep_each_answer_of_a_flaky_case_and_the_terminal_shows_those_that_failed(capitals: "Project") -> None:
    capitals.write("bot.py", BOT.replace('"Lyon", "Nice", "Lyon"', '"Paris", "Lyon", "Paris"'))
    here, there = capitals.run("--llmeval-report=r.md"), capitals.run(workers=2)
    (case,) = here.suites["s"]["cases"]
    assert case["answers"] == [
        {"prediction": "Lyon", "times": 1, "passed": 0},
        {"prediction": "Paris", "times": 2, "passed": 2},
    ]
    assert there.suites["s"]["cases"][0]["answers"] == case["answers"]
    assert "prediction: Lyon (1 of 3 repeats)" in here.text
    assert "prediction: Paris" not in here.text
    noted = (capitals.path / "r.md").read_text(encoding="utf-8")
    assert "- prediction, 1 time, 0 passed: Lyon\n- prediction, 2 times, 2 passed: Paris\n" in noted


def test_with_vv_the_short_summary_has_a_line_for_a_failure_that_was_printed_whole(capitals: "Project") -> None:
    text = capitals.run("-vv").text
    assert text.count("missing words: paris") == 1  # the worst cases of the report do not repeat it
    summary = text.partition("short test summary info")[2].splitlines()
    assert [line for line in summary if "france" in line] == ["FAILED s.eval.json::france - f1 0.0000, limit >= 0.9"]
    assert not any(line.startswith(("input:", "prediction:", "text:")) for line in summary)


def test_a_case_of_a_data_file_names_that_file_and_its_line(project: "Project") -> None:
    rows = (
        {"id": name, "expected": "Rome", "prediction": prediction}
        for name, prediction in (("a", "Rome"), ("b", "Oslo"))
    )
    project.write("data/rows.jsonl", "\n" + "\n".join(map(json.dumps, rows)))
    suite = {
        "evaluators": ["text"],
        "thresholds": {"f1": 1},
        "source": {"format": "jsonl", "path": "../data/rows.jsonl"},
    }
    project.write(
        "evals/items.eval.json", json.dumps({**suite, "cases": [{"id": "c", "expected": 1, "prediction": 2}]})
    )
    project.write("evals/bulk.eval.json", json.dumps({**suite, "mode": "bulk"}))
    ran = project.run("--llmeval-report=r.md")
    assert ran.text.count("data/rows.jsonl:3: case b") == 2
    assert "evals/items.eval.json:1: case c" in ran.text
    assert "b: f1 0.0000, limit >= 1" in ran.text
    assert ran.text.count("text: missing words: rome") == 2
    places = {case["id"]: (case.get("file"), case["line"]) for case in ran.suites["items"]["cases"]}
    assert places == {"c": (None, 1), "a": ("data/rows.jsonl", 2), "b": ("data/rows.jsonl", 3)}
    assert "- at data/rows.jsonl:3" in (project.path / "r.md").read_text(encoding="utf-8")


def test_texts_are_left_out_of_report_files_on_request(capitals: "Project") -> None:
    ran = capitals.run("--llmeval-texts=none", "--llmeval-report=r.md")
    (case,) = ran.suites["s"]["cases"]
    assert not {"input", "expected", "prediction", "answers", "lines"} & set(case)
    assert case["details"]["repeats"]["status"] == "stable fail"
    assert "capital of France" not in (capitals.path / "r.md").read_text(encoding="utf-8")


def test_details_without_texts_have_no_claim_and_no_justification(project: "Project") -> None:
    case = {
        "id": "a",
        "input": "The tower is closed.",
        "expected": {"verdict": "Refuted", "evidence_sources": [{"content": "the keeper's log"}]},
        "prediction": '{"verdict": "Supported", "justification": "According to the keeper, it is shut."}',
    }
    suite = {"suite": "s", "evaluators": [{"fact_check": {"explanation": "omit"}}], "cases": [case]}
    project.write("s.eval.json", json.dumps(suite))
    (shown,) = project.run("--llmeval-report=e/errors.json").suites["s"]["cases"]
    assert shown["details"]["fact_check"]["justification"] == "According to the keeper, it is shut."
    ran = project.run("--llmeval-texts=none", "--llmeval-report=e/errors.json")
    (shown,) = ran.suites["s"]["cases"]
    assert shown["metrics"]["verdict_accuracy"] == 0
    written = json.dumps(ran.report) + (project.path / "e/errors.json").read_text(encoding="utf-8")
    assert not [word for word in ("tower", "keeper", "shut") if word in written]


def test_an_explanation_that_fails_is_a_line_and_the_case_keeps_its_score(project: "Project") -> None:
    project.write(
        "conftest.py",
        """
from dataclasses import dataclass

from pytest_llmeval import Evaluator, Metric, Observation


@dataclass(frozen=True)
class Own(Evaluator):
    name = "own"

    def describe(self):
        return [Metric("right")]

    def measure(self, case):
        return Observation({"right": 0, "n": 1})

    def summarize(self, sums):
        return {"right": sums["right"] / sums["n"]}

    def explain(self, case, observation):
        raise KeyError("nothing")


def pytest_llmeval_register(registry):
    registry.register(Own)
""",
    )
    own = {"evaluators": ["own"], "thresholds": {"right": 1}, "cases": [{"id": "a", "prediction": "x"}]}
    project.write("s.eval.json", json.dumps({"suite": "s", **own}))
    ran = project.run()
    assert "own: explain() failed: KeyError: 'nothing'" in ran.text
    assert ran.suites["s"]["cases"][0]["metrics"] == {"right": 0.0}

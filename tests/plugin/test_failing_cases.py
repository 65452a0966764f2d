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
    assert case["answers"] == [{"prediction": "Lyon", "times": 2}, {"prediction": "Nice", "times": 1}]
    assert case["lines"] == {"text": ["missing words: paris", "extra words: lyon"]}


def test_texts_are_left_out_of_report_files_on_request(capitals: "Project") -> None:
    ran = capitals.run("--llmeval-texts=none", "--llmeval-report=r.md")
    (case,) = ran.suites["s"]["cases"]
    assert not {"input", "expected", "prediction", "answers", "lines"} & set(case)
    assert "capital of France" not in (capitals.path / "r.md").read_text(encoding="utf-8")


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

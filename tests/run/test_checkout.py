"""Fingerprints of the suites of a checkout."""

import json
from pathlib import Path

import pytest

from pytest_llmeval.run import Checkout
from pytest_llmeval.run._checkout import print_suite

MEASURE = """\
from pytest_llmeval import Evaluator, Metric, Observation

class Loud(Evaluator):
    name = "loud"

    def describe(self):
        return (Metric("loud"),)

    def measure(self, case):
        return Observation({"loud": float(case.prediction.isupper()), "n": 1.0})

    def summarize(self, sums):
        return {"loud": sums["loud"] / sums["n"]}
"""
REGISTER = """\
from words_that_are_loud import Loud

def pytest_llmeval_register(registry):
    registry.register(Loud)
"""


def test_an_edited_module_of_an_evaluator_is_another_evaluator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "s.eval.json"
    case = {"id": "a", "prediction": "x"}
    path.write_text(json.dumps({"evaluators": ["loud"], "cases": [case]}), encoding="utf-8")
    (tmp_path / "words_that_are_loud.py").write_text(MEASURE, encoding="utf-8")
    (tmp_path / "registers_loud_words.py").write_text(REGISTER, encoding="utf-8")
    suite = Checkout(tmp_path, {path.name: ["registers_loud_words"]}).read(path)
    before = print_suite(suite, tmp_path, ["registers_loud_words"])
    assert print_suite(suite, tmp_path, ["registers_loud_words"]) == before
    (tmp_path / "words_that_are_loud.py").write_text(MEASURE.replace("isupper", "istitle"), encoding="utf-8")
    after = print_suite(suite, tmp_path, ["registers_loud_words"])
    assert after.evaluators != before.evaluators
    assert after.plugins == before.plugins

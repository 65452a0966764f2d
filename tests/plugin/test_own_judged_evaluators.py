"""Evaluators of users that ask a judge: what is wrong with one case, or one reply, stays with its case."""

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

CONFTEST = """
    from dataclasses import dataclass

    import pytest
    from pytest_llmeval import JudgedEvaluator, JudgeError, Metric, Mode, Observation, Question, Verdict

    def read(text):
        said = text.split('"answer": "')[1].split('"')[0]
        if said == "raises":
            raise KeyError("boom")
        return {"nothing": None, "not a number": Verdict(float("nan"))}.get(said, Verdict(1.0))

    MODE = Mode("polite", "1", {"en": "Is it polite?"}, ("answer",), (0, 1), read)

    @dataclass(frozen=True)
    class Polite(JudgedEvaluator):
        name = "polite"

        def describe(self):
            return [Metric("politeness")]

        def questions(self, case):
            return [Question(MODE, {"answer": {1, 2} if case.id == "set" else case.prediction})]

        def measure_judged(self, case, verdicts):
            (verdict,) = verdicts
            if isinstance(verdict, JudgeError):
                raise verdict
            return Observation({"polite": verdict.score, "n": 1})

        def summarize(self, sums):
            return {"politeness": sums["polite"] / sums["n"]}

    def pytest_llmeval_register(registry):
        registry.register(Polite)

    @pytest.fixture(scope="session")
    def judge_client():
        return lambda request: str(request)
"""


@pytest.fixture
def polite(project: "Project") -> "Project":
    project.write("conftest.py", CONFTEST)
    cases = [
        {"id": "first", "prediction": "fine"},
        {"id": "set", "prediction": "never put"},
        *({"id": word, "prediction": word} for word in ("raises", "nothing", "not a number")),
        {"id": "last", "prediction": "fine, too"},
    ]
    project.write("polite.eval.json", json.dumps({"suite": "polite", "evaluators": ["polite"], "cases": cases}))
    return project


def test_what_is_wrong_with_one_case_of_an_own_evaluator_stays_with_it(polite: "Project") -> None:
    ran = polite.run()
    reasons = {case["id"]: case["reason"] for case in ran.suites["polite"]["cases"] if case["outcome"] == "errored"}
    assert reasons.keys() == {"set", "raises", "nothing", "not a number"}
    assert reasons["set"] == "polite: TypeError: Object of type set is not JSON serializable"
    assert (
        "the mode 'polite' failed to read the reply (KeyError: 'boom'); the judge replied 'Is it" in reasons["raises"]
    )
    assert "the mode 'polite' returned None, expected a Verdict with a finite score" in reasons["nothing"]
    assert "score=nan" in reasons["not a number"]
    assert "json/encoder.py" not in ran.text
    assert ran.suites["polite"]["usage"]["calls"] == 5, "replies that cannot be read were paid for"


def test_a_changed_reader_that_fails_on_stored_replies_costs_their_cases_only(polite: "Project") -> None:
    polite.run()
    polite.write("conftest.py", CONFTEST.replace('said == "raises"', 'said == "fine, too"'))
    ran = polite.run()
    outcomes = ran.outcomes("polite")
    assert outcomes["first"] == "passed"
    assert outcomes["last"] == "errored"
    said = "the cached reply cannot be read (replace it with --llmeval-judge=refresh): the mode 'polite' failed to read"
    assert said in ran.text


def test_passages_in_another_order_are_replayed_where_each_is_asked_about_alone(polite: "Project") -> None:
    asks = 'return [Question(MODE, {"answer": {1, 2} if case.id == "set" else case.prediction})]'
    alone = 'return [Question(MODE, {"answer": each}) for each in case.prediction]'
    polite.write(
        "conftest.py", CONFTEST.replace(asks, alone).replace("(verdict,) = verdicts", "verdict, *_ = verdicts")
    )
    for mode, passages in (("record", ["one", "two", "three"]), ("replay", ["three", "one", "two"])):
        cases = [{"id": "a", "prediction": passages}]
        polite.write("polite.eval.json", json.dumps({"suite": "polite", "evaluators": ["polite"], "cases": cases}))
        ran = polite.run(f"--llmeval-judge={mode}")
        assert ran.outcomes("polite") == {"a": "passed"}
        assert ran.suites["polite"]["usage"]["verdicts"] == 3


def test_a_judge_client_that_cannot_judge_is_told_without_frames_of_the_plugin(polite: "Project") -> None:
    polite.write("conftest.py", CONFTEST.replace("return lambda request: str(request)", "return str"))
    ran = polite.run()
    assert "found the class str, expected an instance of it as the judge" in ran.text
    assert "pytest_llmeval/" not in ran.section("FAILURES")

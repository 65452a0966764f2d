"""Functions added to a suite by decorators, negated checks, and verdicts of comparisons."""

from pathlib import Path
from typing import Any

import pytest

import pytest_llmeval as ev
from pytest_llmeval.core import LlmevalError, SuiteError

CASES = [{"id": f"c{number}", "input": f"q{number}", "expected": "x"} for number in range(8)]


def suite(**keys: Any) -> Any:
    return ev.suite("s", cases=CASES, **keys)


def test_decorators_add_evaluators_and_checks_and_return_the_function() -> None:
    declared = suite(evaluators=ev.text(metrics=["f1"]))

    @declared.evaluator
    def short(case: Any) -> bool:
        return len(case.prediction) < 3

    @declared.evaluator(name="length", high=None)
    def _(case: Any) -> int:
        return len(case.prediction)

    @declared.check
    async def polite(case: Any) -> bool:
        return "please" in case.prediction

    @declared.check(name="brief")
    def _(case: Any) -> bool:
        return bool(case.prediction)

    result = declared.run(lambda _: "x")
    values = {name: each.value for name, each in result.metrics.items()}
    assert values == {
        "f1": 1,
        "short": 1,
        "length": 1,
        "check_rate": 0.5,
        "check[polite]": 0,
        "check[brief]": 1,
    }
    assert short.__name__ == "short"


def test_a_decorator_refuses_a_second_function_of_a_name_and_the_suite_of_a_file(tmp_path: Path) -> None:
    declared = suite()

    @declared.check
    def polite(_: Any) -> bool:
        return True

    with pytest.raises(LlmevalError, match="two functions or classes 'polite'"):
        declared.check(name="polite")(lambda _: True)
    file = tmp_path / "s.eval.yaml"
    file.write_text("evaluators: [text]\ncases: [{id: a, expected: x, prediction: x}]\n")
    with pytest.raises(LlmevalError, match="found a function for evaluators, expected them in"):
        ev.suite.from_file(file).evaluator(polite)


@pytest.mark.parametrize(("answer", "met"), [("please", 0), ("x", 1)])
def test_the_negation_of_a_function_is_a_check(answer: str, met: int) -> None:
    async def polite(case: Any) -> ev.Score:
        return ev.Score("please" in case.prediction, reason="why")

    for negated in (ev.not_(polite), ev.not_(ev.check(polite))):
        result = suite(checks=[negated]).run(lambda _: answer)
        assert result.metrics["check[not_polite]"].value == met


def test_labels_that_are_a_column_say_how_columns_are_named() -> None:
    cases = ev.cases([{"id": "a", "kind": "k"}], labels="kind")
    with pytest.raises(SuiteError, match=r"or columns by name: labels=\{'kind': 'kind'\}"):
        ev.suite("s", cases=cases, evaluators=["text"]).load()
    named = ev.cases([{"id": "a", "kind": "k"}], labels={"kind": "kind"})
    assert ev.suite("s", cases=named, evaluators=["text"]).load().cases[0].labels == {"kind": "k"}


def compared(now: Any, before: Any) -> ev.Comparison:
    declared = suite(evaluators=[ev.text(metrics=["f1"])])
    return ev.compare(declared.run(now), declared.run(before))


def test_latency_and_money_do_not_decide_a_comparison() -> None:
    def dear(question: str) -> Any:
        return {"answer": answered(question), "usage": {"input_tokens": 9, "output_tokens": 9, "cost_usd": 9}}

    def answered(question: str) -> str:
        return "x" if question < "q4" else "y"

    assert compared(dear, answered).verdict == "not_significant"
    assert compared(answered, answered).verdict == "not_significant"
    assert compared(lambda _: "x", lambda _: "y").verdict == "improved"
    assert compared(lambda _: "y", lambda _: "x").verdict == "declined"


def test_half_of_the_cases_errored_is_no_improvement_and_no_equality() -> None:
    def broken(question: str) -> str:
        if question < "q4":
            raise RuntimeError(question)
        return "x"

    for now, before in ((broken, lambda _: "x"), (lambda _: "x", broken), (broken, broken)):
        comparison = compared(now, before)
        f1 = comparison.metrics["f1"]
        assert (f1.difference, f1.p_value, f1.verdict, f1.errored) == (None, None, "undecided", 4)
        assert comparison.verdict == "undecided"


def test_a_gate_between_systems_of_which_one_ran_is_not_judged_with_a_reason() -> None:
    systems = {"old": {"python": "my_app:old"}, "new": {"python": "my_app:new"}}
    gate = {"metric": "f1", "system": "new", "against": "old", "min_gain": 0.0}
    declared = suite(evaluators=[ev.text(metrics=["f1"])], systems=systems, reference="old", gates=[gate])
    (verdict,) = declared.run(lambda _: "x", system="new").gates
    assert (verdict.outcome, verdict.reason) == ("not_judged", "not evaluated: no system 'old' ran")
    with pytest.raises(AssertionError, match="NOT EVALUATED"):
        declared.last_result.assert_gates()

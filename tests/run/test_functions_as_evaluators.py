"""Functions of a case as evaluators and checks, plain and async, in suites and in `score`."""

import asyncio
import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

import pytest_llmeval as ev
from pytest_llmeval.core import Metric, Observation

CASES = [
    {"id": "a", "input": "Capital of France?", "expected": "Paris", "prediction": "Paris"},
    {"id": "b", "input": "Capital of Italy?", "expected": "Rome", "prediction": "Milan, perhaps"},
]


def right(case: Any) -> bool:
    return bool(case.prediction == case.expected)


def words(case: Any) -> ev.Score:
    return ev.Score(len(case.prediction.split()), reason=f"of {case.input}", label="short")


async def kinds(case: Any) -> dict[str, float]:
    await asyncio.sleep(0)
    return {"first": 1.0, "second": 0.5} if case.id == "a" else {"first": 0}


def tone(case: Any) -> str:
    return "sure" if "perhaps" not in case.prediction else "unsure"


def run(*evaluators: Any, checks: Any = (), cases: Any = CASES) -> Any:
    return ev.suite("functions", cases=cases, evaluators=evaluators, checks=checks).run(progress=False)


def test_functions_score_in_suites() -> None:
    result = run(right, ev.evaluator(words, low=0, high=None), kinds, tone)
    values = {name: each.value for name, each in result.metrics.items()}
    assert values == {
        "right": 0.5,
        "words": 1.5,
        "words_is[short]": 1.0,
        "kinds[first]": 0.5,
        "kinds[second]": 0.5,
        "tone_is[sure]": 0.5,
        "tone_is[unsure]": 0.5,
    }
    assert result.metrics["right"].signature == f"function:{__name__}.right"
    assert result.metrics["kinds[second]"].undefined == 1
    rows = {(row["case"], row["metric"]): row for row in result.to_dicts()}
    assert rows["a", "words"]["reason"] == "of Capital of France?"
    assert result.cases[1].details["tone"] == {"label": "unsure"}


def test_functions_score_cases() -> None:
    cases = [ev.Case(**each) for each in CASES]
    result = ev.score([right, kinds, ev.get_evaluator("text", metrics=["f1"])], cases)
    assert (result.metrics["right"].value, result.metrics["kinds[first]"].value) == (0.5, 0.5)
    assert ev.score(right, cases).metrics["right"].value == 0.5
    assert ev.score(ev.evaluator(lambda _: 7, name="seven", high=10), cases).metrics["seven"].value == 7


def test_functions_read_the_answer_whatever_stands_next_to_it() -> None:
    wrapped = [{**each, "prediction": {"answer": each["prediction"], "tool_calls": []}} for each in CASES]
    assert run(right, checks=[right], cases=wrapped).metrics["right"].value == 0.5
    assert run(checks=[right], cases=wrapped).metrics["check[right]"].value == 0.5


def test_functions_as_checks() -> None:
    async def polite(case: Any) -> ev.Score:
        await asyncio.sleep(0)
        return ev.Score("perhaps" in case.prediction, reason=f"no courtesy in {case.prediction!r}")

    result = run(checks=[right, ev.any_of(polite, ev.contains("Paris")), ev.check(lambda _: True, name="fine")])
    assert {name: each.value for name, each in result.metrics.items() if "[" in name} == {
        "check[any_of]": 1.0,
        "check[fine]": 1.0,
        "check[right]": 0.5,
    }
    assert [case.outcome for case in result.cases] == ["passed", "failed"]
    result = run(checks=[polite])
    assert "no courtesy in 'Paris'" in (result.cases[0].reason or "")


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (float("nan"), "found nan"),
        (float("inf"), "found inf"),
        (None, "found None"),
        ([1.0], r"found \[1.0\]"),
        ({1, 2}, "set"),
        ({"a": "b"}, "found 'b'"),
        (1.5, "expected a number in the range 0.0000 to 1.0000"),
        ("", "found ''"),
        (ev.Score("good"), "found 'good'"),  # type: ignore[arg-type]  # what is tested
    ],
)
def test_other_values_are_errors_of_the_case(returned: Any, message: str) -> None:
    result = run(ev.evaluator(lambda _: returned, name="own"))
    assert [case.outcome for case in result.cases] == ["errored", "errored"]
    assert all(each.value is None for each in result.metrics.values())
    assert re.search(message, result.cases[0].reason or "")
    result = run(checks=[ev.check(lambda _: returned, name="own")])
    assert [case.outcome for case in result.cases] == ["errored", "errored"]


def test_errors_of_functions_are_errors_of_the_case() -> None:
    def broken(case: Any) -> float:
        return 1 / int(case.id == "a")

    result = run(broken, right)
    assert [case.outcome for case in result.cases] == ["passed", "errored"]
    assert (result.metrics["broken"].value, result.metrics["broken"].errored) == (1.0, 1)
    assert result.metrics["right"].value == 0.5


def test_a_case_may_be_left_out() -> None:
    def judged(case: Any) -> ev.Score:
        return ev.Score(None, reason="no gold") if case.id == "a" else ev.Score(True)

    result = run(judged)
    assert (result.metrics["judged"].value, result.metrics["judged"].undefined) == (1.0, 1)
    assert result.cases[0].absent == {"judged": "no gold"}


@pytest.mark.parametrize("function", [lambda _: 1.0, partial(right)])
def test_a_function_without_a_name_is_refused_with_what_to_write(function: Any) -> None:
    with pytest.raises(ev.EvaluatorError, match=r"expected ev.evaluator\(..., name='polite'\)"):
        run(function)
    with pytest.raises(ev.EvaluatorError, match=r"expected ev.check\(..., name='polite'\)"):
        run(checks=[function])
    with pytest.raises(ev.EvaluatorError, match="name='polite'"):
        ev.score([function], [])


@dataclass(frozen=True)
class Longest(ev.Evaluator):
    name = "longest"
    limit: int = 5

    def describe(self) -> list[Metric]:
        return [Metric("longest")]

    def measure(self, case: ev.Case) -> Observation:
        return Observation({"met": len(case.prediction) <= self.limit, "n": 1})

    def summarize(self, sums: Any) -> Any:
        return {"longest": sums["met"] / sums["n"]}


def test_instances_of_one_class_have_names() -> None:
    both = [ev.evaluator(Longest(5), name="short"), ev.evaluator(Longest(50), name="long")]
    expected = {"short.longest": 0.5, "long.longest": 1.0}
    assert {name: each.value for name, each in run(*both).metrics.items()} == expected
    scored = ev.score(both, [ev.Case(**each) for each in CASES])
    assert {name: each.value for name, each in scored.metrics.items()} == expected
    with pytest.raises(ev.EvaluatorError, match=r"ev.evaluator\(..., name='short'\)"):
        ev.score([Longest(5), Longest(6)], [])


def test_an_instance_that_fields_do_not_describe_is_refused() -> None:
    class Limited(Longest):
        def __init__(self, most: int = 5) -> None:
            super().__init__(most)

    with pytest.raises(ev.LlmevalError, match=r"found Limited with the parameter 'most'.*expected a dataclass"):
        run(Limited(50))


def test_a_class_without_a_name_is_refused_in_suites_and_scripts() -> None:
    class Unnamed(Longest):
        name = ""

    for call in (lambda: run(Unnamed()), lambda: ev.score(Unnamed(), [])):
        with pytest.raises(ev.EvaluatorError, match="Unnamed: found name '', expected a class attribute name = 'text'"):
            call()


def test_two_functions_of_one_name_are_refused() -> None:
    def other() -> Any:
        def right(_case: Any) -> bool:
            return True

        return right

    with pytest.raises(ev.LlmevalError, match="two functions or classes 'right'"):
        run(right, other())


def test_score_says_what_cases_are() -> None:
    with pytest.raises(ev.LlmevalError, match=r"found dict as case 1, expected a Case: Case\(id, input"):
        ev.score([right], [{"id": "a"}])  # type: ignore[list-item]  # what is tested


def test_async_functions_share_the_callers_loop() -> None:
    loops = []

    async def seen(_case: Any) -> bool:
        loops.append(asyncio.get_running_loop())
        return True

    async def main() -> None:
        suite = ev.suite("functions", cases=CASES, evaluators=[seen])
        await suite.arun(progress=False)
        assert set(loops) == {asyncio.get_running_loop()}

    asyncio.run(main())

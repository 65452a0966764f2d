"""Declared suites in scripts: results, their rows, and the way to YAML and back."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

import pytest_llmeval as ev
from pytest_llmeval.core import EvaluatorError, LlmevalError, PredictionError, SuiteError
from pytest_llmeval.targets import PythonTarget

CASES = [
    {"id": "a", "input": "France", "expected": "Paris", "labels": {"continent": "Europe"}},
    {"id": "b", "input": "Japan", "expected": "Tokyo", "labels": {"continent": "Asia"}, "thresholds": {"f1": 0.1}},
]


def answer(question: str) -> str:
    return {"France": "Paris"}.get(question, "Kyoto")


def suite(**more: Any) -> Any:
    given = {"cases": CASES, "evaluators": [ev.text(metrics=["f1"])], "checks": [ev.max_words(3)], **more}
    return ev.suite("capitals", **given)


def test_a_result_has_a_row_for_each_case_and_metric() -> None:
    result = suite(thresholds={"f1": 0.5}, target=answer).run()
    rows = result.to_dicts()
    assert [(row["case"], row["metric"], row["value"], row["outcome"]) for row in rows[:2]] == [
        ("a", "f1", 1.0, "passed"),
        ("a", "check_rate", 1.0, "passed"),
    ]
    assert {row["label.continent"] for row in rows} == {"Europe", "Asia"}
    assert (
        len(result.scores("pandas")) == len(result.scores("polars")) == result.scores("pyarrow").num_rows == len(rows)
    )
    assert result.metrics["f1"].value == 0.5


def test_repeats_have_rows_of_their_own() -> None:
    rows = suite(repeats=2).run(answer).to_dicts()
    assert [row["repeat"] for row in rows if (row["case"], row["metric"]) == ("a", "f1")] == [0, 1, 2]


def test_what_has_no_value_says_why() -> None:
    row = suite(cases=[{"input": "x"}], checks=[]).run(answer).to_dicts()[0]
    assert (row["value"], row["reason"]) == (None, "no expected answer")


def test_a_result_shows_itself_with_every_text_escaped() -> None:
    result = suite(evaluators=[{"text": {"metrics": ["f1"]}, "as": "<script>"}], cases=CASES[:1]).run(answer)
    assert "<td>&lt;script&gt;.f1</td><td>1.0000</td>" in result._repr_html_()
    assert "<script>" not in result._repr_html_()


def test_a_run_does_not_hold_up_the_event_loop() -> None:
    async def both() -> tuple[Any, bool]:
        running = asyncio.ensure_future(suite().arun(answer))
        await asyncio.sleep(0)
        return (await running).pass_rate, True

    value, went_on = asyncio.run(both())
    assert value.value == 0.5
    assert went_on


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": "b", "input": "q", "labels": {1}}, r"\[1\].labels: found set, expected JSON data"),
        ({"id": "b", "labels": {"x": object()}}, r"\[1\].labels: x: found object, expected JSON data"),
        (7, r"\[1\]: found int, expected a data frame"),
    ],
)
def test_a_row_that_is_no_data_costs_no_other(row: Any, said: str) -> None:
    cases = [{"id": name, "input": "q", "expected": "Paris"} for name in "ac"]
    declared = ev.suite("s", cases=[cases[0], row, cases[1]], evaluators=[ev.text(metrics=["f1"])])
    with pytest.warns(UserWarning, match=said):
        result = declared.run(lambda _: "Paris")
    assert (result.metrics["f1"].scored, result.metrics["f1"].missing) == (2, 1)
    with pytest.raises(ev.SuiteError, match="cases: row 0"):
        ev.suite("s", cases=[row], evaluators=[ev.text()]).run(lambda _: "Paris")


def test_a_case_with_a_fault_is_warned_of_and_counts_as_missing() -> None:
    broken = suite(cases=[*CASES, {"id": "c", "labels": [1]}])
    with pytest.warns(UserWarning, match=r"cases left out: .*test_declared\.py:\d+:1  .*found a list"):
        assert broken.run(answer).metrics["f1"].missing == 1


def test_of_several_systems_one_is_named() -> None:
    several = suite(systems={"one": {"python": f"{__name__}:answer"}, "two": {"python": f"{__name__}:answer"}})
    with pytest.raises(LlmevalError, match="found system '', expected one or two"):
        several.run()
    assert {row["system"] for row in several.run(system="two").to_dicts()} == {"two"}


def test_yaml_and_back(tmp_path: Path) -> None:
    made = suite(thresholds={"f1": {"min": 0.5}}, gates=["f1 >= 0.4"], description="Capitals")
    path = tmp_path / "capitals.eval.yaml"
    path.write_text(made.to_yaml(), encoding="utf-8")
    read = ev.suite.from_file(path)
    assert read.to_yaml() == made.to_yaml()
    assert yaml.safe_load(made.to_yaml())["cases"] == CASES
    assert read.run(answer).metrics["f1"].value == made.run(answer).metrics["f1"].value
    assert [case.id for case in read.load().cases] == [case.id for case in made.load().cases]


def test_what_json_cannot_express_is_a_fault_with_the_users_line() -> None:
    with pytest.raises(SuiteError, match=r"test_declared\.py:\d+:1  gates\[0\]: found '<object>', expected METRIC"):
        suite(gates=[object()]).load()
    with pytest.raises(SuiteError, match=r"target: found what JSON cannot express"):  # the key takes any text
        suite(target={"command": [object()]}).load()
    with pytest.raises(LlmevalError, match=r"target: found a lambda, which has no name of its own"):
        suite(target=lambda question: question)


@dataclass
class Ask:
    question: str
    number: int = 0


class Reply(BaseModel):
    total: int


def test_evaluators_read_typed_objects() -> None:
    fields = ev.get_evaluator("fields")
    assert fields.evaluate(Reply(total=1), Reply(total=2))["wrong"] == ["total: found 1, expected 2"]
    result = ev.score(fields, [ev.Case("1", Ask("q"), Reply(total=1), Reply(total=1))])
    assert result.metrics["fields_exact"].value == 1


def test_score_takes_several_evaluators_and_checks() -> None:
    both = [ev.get_evaluator("text", metrics=["f1"]), ev.get_checks({"contains": "Par"})]
    result = ev.score(both, [ev.Case("1", "q", "Paris", "Paris"), ev.Case("2", "q", None, "Rome")])
    assert (result.metrics["f1"].value, result.metrics["check_rate"].value) == (1.0, 0.5)
    assert result.cases[1].absent == {"f1": "no expected answer"}
    named = ev.score({"draft": both[0], "final": both[0]}, [ev.Case("1", "q", "Paris", "Paris")])
    assert list(named.metrics) == ["draft.f1", "final.f1"]


@pytest.mark.parametrize(
    ("evaluators", "message"),
    [
        ([], "score: an evaluator is missing"),
        ([ev.get_evaluator("text"), ev.get_evaluator("text")], "score: found two evaluators of one name"),
        (["text"], "score: found str, expected an evaluator, such as get_evaluator"),
    ],
)
def test_score_refuses_what_is_no_set_of_evaluators(evaluators: Any, message: str) -> None:
    with pytest.raises(EvaluatorError, match=message):
        ev.score(evaluators, [])


def test_a_target_gets_the_type_that_its_annotation_names() -> None:
    async def asked(question: Ask, case: Any) -> None: ...

    class Callable:
        def __call__(self, reply: Reply) -> None: ...

    def untyped(value: "Unknown") -> None: ...  # type: ignore[name-defined]  # noqa: F821 (users' annotations)

    assert PythonTarget(asked).typed_input({"question": "q", "number": "3"}) == Ask("q", 3)
    assert PythonTarget(Callable()).typed_input({"total": 3}) == Reply(total=3)
    assert PythonTarget(untyped).typed_input({"a": 1}) == {"a": 1}
    with pytest.raises(PredictionError, match="the input is no Reply, which the target takes: total: Field required"):
        PythonTarget(Callable()).typed_input({})


def test_a_named_function_answers() -> None:
    result = suite().run(ev.named(answer, name="short"), progress=False)
    assert result.metrics["f1"].value == suite().run(answer, progress=False).metrics["f1"].value

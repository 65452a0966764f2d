"""Declared types reach every caller: targets with and without annotations, and evaluators of users."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

import pytest_llmeval as ev
from pytest_llmeval.core import Metric, Observation


class Ask(BaseModel):
    question: str
    language: str = "en"


class Reply(BaseModel):
    answer: str


def bare(ask):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 (what is tested)
    return ask.question


def optional(ask: Ask | None) -> str:
    return "" if ask is None else ask.question


def second(prefix: str, ask: Any) -> str:
    return prefix + ask.question


def one_of_two(ask: Ask | str) -> str:
    return ask if isinstance(ask, str) else ask.question


def of_any_class(ask: object) -> str:
    return ask.question if isinstance(ask, Ask) else "data"


def of_a_base(ask: BaseModel) -> str:
    return ask.question if isinstance(ask, Ask) else "data"


def with_case(ask: Ask, case: ev.Case[Ask, str]) -> str:
    return case.input.question if case.input == ask else "data"


ROWS = [{"id": "a", "input": Ask(question="x"), "expected": "x"}, {"id": "b", "input": Ask(question="y")}]


@contextmanager
def world(case: ev.Case[Ask, str]) -> Iterator[str]:
    yield case.input.question


TARGETS = (bare, optional, partial(second, ""), one_of_two, of_any_class, of_a_base, with_case)


@pytest.mark.parametrize("target", [lambda ask: ask.question, *TARGETS])
@pytest.mark.parametrize("cases", [ROWS, ev.cases([{"question": "x", "expected": "x"}], input=Ask)])
def test_targets_get_objects(target: Callable[..., Any], cases: Any) -> None:
    suite = ev.suite("typed", cases=cases, evaluators=[ev.text(metrics=["exact_match"])], target={"world": world})
    result = suite.run(target, progress=False)
    assert {case.outcome for case in result.cases} <= {"passed", "not_scored"}
    assert result.metrics["exact_match"].value == 1.0


def test_a_class_of_a_function_is_a_type() -> None:
    @dataclass
    class Local:
        question: str

    def answer(ask: "Local") -> str:
        return ask.question

    suite = ev.suite("typed", cases=[{"id": "a", "input": Local("x"), "expected": "x"}], evaluators=[ev.text()])
    assert suite.run(answer, progress=False).cases[0].outcome == "passed"


def test_an_annotation_that_is_no_model_gets_data() -> None:
    def answer(ask: dict[str, str]) -> str:
        return ask["question"]

    suite = ev.suite("typed", cases=ROWS, evaluators=[ev.text(metrics=["exact_match"])])
    assert suite.run(answer, progress=False).metrics["exact_match"].value == 1.0


@dataclass(frozen=True)
class Same(ev.Evaluator):
    name = "same"

    def describe(self) -> list[Metric]:
        return [Metric("same")]

    def measure(self, case: ev.Case) -> Observation:
        assert isinstance(case.input, Ask)
        return Observation({"met": case.prediction == case.expected, "n": 1})

    def summarize(self, sums: Any) -> Any:
        return {"same": sums["met"] / sums["n"]}


def test_evaluators_and_checks_of_users_get_objects() -> None:
    def kept(case: Any) -> bool:
        return isinstance(case.input, Ask) and bool(case.prediction.answer == case.expected.answer)

    cases = [{"id": "a", "input": Ask(question="x"), "expected": Reply(answer="x")}]

    def looked_at(case: Any) -> bool:
        return isinstance(case.input, Ask) and isinstance(case.expected, Reply)

    suite = ev.suite("typed", cases=cases, evaluators=[Same(), kept, ev.fields()], checks=[looked_at])
    result = suite.run(lambda ask: Reply(answer=ask.question), progress=False)
    assert result.cases[0].reason is None
    assert (result.metrics["same"].value, result.metrics["kept"].value) == (1.0, 1.0)

"""What targets are called with, and what those are told that cannot be called so."""

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pytest

from pytest_llmeval import Case
from pytest_llmeval.core import PredictionError
from pytest_llmeval.targets import PythonTarget
from pytest_llmeval.targets._python import for_case

CASE = Case("a", input="Q", labels={"kind": "k"})


def alone(question: str) -> Any:
    return question


def named_case(case: str) -> Any:
    return case


def with_option(question: str, case: str = "lower") -> Any:
    return question, case


def two(question: str, case: Case) -> Any:
    return question, case.id


def swapped(case: Case, question: str) -> Any:
    return question, case.id


def by_keyword(*, input: str, case: Case) -> Any:  # noqa: A002 (the name under test)
    return input, case.id


async def later(question: str, case: Case) -> Any:
    return question, case.id


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        (alone, "Q"),
        (named_case, "Q"),
        (with_option, ("Q", "lower")),
        (str.lower, "q"),
        (two, ("Q", "a")),
        (swapped, ("Q", "a")),
        (by_keyword, ("Q", "a")),
        (later, ("Q", "a")),
        (functools.partial(two), ("Q", "a")),
    ],
)
def test_a_target_gets_the_input_alone_and_the_case_if_it_requires_it(target: Callable[..., Any], answer: Any) -> None:
    given = for_case(target, CASE)
    assert asyncio.run(PythonTarget(given).ask(CASE.input)) == answer


def pair(one: str, other: str) -> Any:
    return one + other


def wrong_inside(question: str) -> Any:
    return pair(question)  # type: ignore[call-arg]  # the mistake under test


def test_a_target_that_does_not_take_the_input_alone_is_told_what_targets_get() -> None:
    with pytest.raises(PredictionError) as caught:
        asyncio.run(PythonTarget(for_case(pair, CASE)).ask(CASE.input))
    text = str(caught.value)
    assert text.startswith("TypeError: pair() missing 1 required positional argument: 'other' (")
    assert f"test_arguments.py:{pair.__code__.co_firstlineno}); a target gets the `input`" in text


def test_a_type_error_inside_a_target_is_its_own() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'other'"):
        asyncio.run(PythonTarget(wrong_inside).ask("Q"))

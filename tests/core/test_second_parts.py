"""Evaluators that read lists, or another part where theirs is missing."""

import pytest

from pytest_llmeval import Case, PredictionError, get_evaluator
from pytest_llmeval.core import Parts, Reading

TOOLS = get_evaluator("tools")


def read(prediction: object, parts: Parts = Parts(), on: str | None = None) -> object:  # noqa: B008 (frozen)
    return Reading.for_evaluator(TOOLS, on, parts).view(Case("a", prediction=prediction)).prediction


def test_tools_reads_calls_and_otherwise_messages() -> None:
    assert read({"tool_calls": [1], "messages": [2]}) == [1]
    assert read({"answer": "x", "messages": [2]}) == [2]
    assert read({"log": [2]}, Parts(messages="log")) == [2]


def test_a_list_is_the_calls_unless_the_suite_names_another_place() -> None:
    assert read([1, 2]) == [1, 2]
    assert read([{"x": [1]}], Parts(tool_calls="[0].x")) == [1]
    assert read([{"x": [1]}], on="[0].x") == [1]


def test_a_prediction_without_both_says_what_it_has() -> None:
    with pytest.raises(PredictionError, match="the prediction has the keys answer; no 'tool_calls'; set parts"):
        read({"answer": "x"})
    with pytest.raises(PredictionError, match="no 'tool_calls'"):
        read({"messages": [2]}, on="tool_calls")

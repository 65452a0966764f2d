"""No silent zero: a prediction of a foreign form is malformed, or scored from content that the evaluator understood."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from examples import EXAMPLES, Example
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import Case, Evaluator, get_evaluator
from pytest_llmeval.core import PredictionError, Reading
from pytest_llmeval.evaluators import AnswerText
from pytest_llmeval.tasks.fact_check._target import read_answer


def is_scalar(value: Any) -> bool:
    return isinstance(value, (str, int, float))


def calls_nothing(value: Any) -> bool:
    return value == [] or (isinstance(value, dict) and value.get("tool_calls", value.get("messages")) == [])


def finds_nothing(value: Any) -> bool:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return False
    inner = [value.get(key) for key in ("results", "answer")] if isinstance(value, dict) else []
    return value == [] or any(map(finds_nothing, inner))


def is_whole(value: Any) -> bool:
    return type(value) is int or (isinstance(value, float) and value.is_integer())


def is_document(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("text"), str) and bool(value["text"])


def lists_ids(value: Any) -> bool:
    """Return whether a prediction is a list of which an item may be an id, or an empty one."""
    results = AnswerText(value).json_or_text() if isinstance(value, str) else value
    return isinstance(results, list) and all(isinstance(each, str | int | dict) for each in results)


def lists_documents(value: Any) -> bool:
    return finds_nothing(value) or (isinstance(answer_of(value), list) and any(map(is_document, answer_of(value))))


def reads_as_check(value: Any) -> bool:
    return not read_answer(value.get("answer", value) if isinstance(value, dict) else value).unparsed


def answer_of(value: Any) -> Any:
    return value.get("answer") if isinstance(value, dict) else value


EXCEPTIONS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "text": (lambda value: is_scalar(answer_of(value)), "any text or number is an answer in words"),
    "classification": (
        lambda value: (
            is_scalar(answer_of(value))
            or (isinstance(answer_of(value), list) and all(map(is_scalar, answer_of(value))))
        ),
        "any texts or numbers are labels, and an unknown label is a wrong one",
    ),
    "segmentation": (
        lambda value: isinstance(answer_of(value), list) and all(map(is_whole, answer_of(value))),
        "whole numbers are boundaries, and an empty list says that there are none",
    ),
    "tools": (calls_nothing, "an empty list says that no tool was called"),
    "routing": (calls_nothing, "an empty list says that no tool fired"),
    "document_ids": (lists_ids, "an empty list says that nothing was retrieved, and any text or number is an id"),
    "retrieval": (lists_documents, "an empty list says that nothing was found, and an object with a text is a result"),
    "emotion_cause": (finds_nothing, "an empty list says that there are no pairs"),
    "fields": (
        lambda value: answer_of(value) in ({}, "{}") or value in ({}, "{}"),
        "an empty object says that no field was found",
    ),
    "narrative": (
        lambda value: answer_of(value) in ({}, "{}") or value in ({}, "{}"),
        "an empty document says that the story has nothing of it",
    ),
    "fact_check": (reads_as_check, "an answer with a verdict or a justification may be wrong, and may cite nothing"),
}
"""Evaluators that give 0 to foreign predictions: which ones, and why they are understood."""

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-9, 9),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=9),
    st.sampled_from(["foreign words", "[]", "{}", "[1, 2", '{"foo": 1}', '["foo"]', "3", "null"]),
)
KEYS = st.sampled_from(["foo", "answer", "output", "text", "usage", "label", "value"])
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def of_another(name: str) -> st.SearchStrategy[Any]:
    """Return predictions of the other evaluators, as data and as a model writes them."""
    others = [each.prediction for other, each in EXAMPLES.items() if other != name]
    written = [json.dumps(each) for each in others]
    return st.sampled_from([*others, *written, *({"answer": each, "usage": {}} for each in written)])


def measured(evaluator: Evaluator, example: Example, prediction: Any) -> tuple[bool, dict[str, float | None]]:
    """Return whether a prediction is malformed, and its scores."""
    case = Case("c", input=example.input, expected=example.expected, prediction=prediction)
    try:
        (view,) = Reading.for_evaluator(evaluator).views(case)
    except PredictionError:
        return True, {}
    if evaluator.asks and evaluator.name != "fact_check":
        # What a judge is shown was understood; without a question there is no verdict and no score.
        asked = list(evaluator.questions(view))
        return not asked, {}
    observation = evaluator.measure(view)
    return observation.malformed is not None, evaluator.scores(observation)


def good(evaluator: Evaluator) -> set[str]:
    """Return the scores of which 0 is the worst."""
    return {each.name for each in evaluator.describe() if each.higher_is_better and each.low == 0}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_prediction_in_order_is_understood(name: str) -> None:
    evaluator = get_evaluator(name, **EXAMPLES[name].options)
    malformed, scores = measured(evaluator, EXAMPLES[name], EXAMPLES[name].prediction)
    assert not malformed
    assert all(scores[each] != 0 for each in good(evaluator) & scores.keys() if "near" not in each)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_wrong_prediction_is_understood_and_scores_less(name: str) -> None:
    example = EXAMPLES[name]
    evaluator = get_evaluator(name, **example.options)
    malformed, scores = measured(evaluator, example, example.wrong)
    _, best = measured(evaluator, example, example.prediction)
    assert not malformed
    if scores:  # those of judges are theirs
        assert any(
            low != high and (low < high) == metric.higher_is_better
            for metric in evaluator.describe()
            if (low := scores.get(metric.name)) is not None and (high := best.get(metric.name)) is not None
        ), (scores, best)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
@given(data=st.data())
def test_a_foreign_prediction_is_malformed_or_understood_and_never_a_bare_0(name: str, data: st.DataObject) -> None:
    evaluator = get_evaluator(name, **EXAMPLES[name].options)
    prediction = data.draw(JSON | of_another(name))
    malformed, scores = measured(evaluator, EXAMPLES[name], prediction)
    zeros = sorted(each for each in good(evaluator) & scores.keys() if scores[each] == 0)
    understands, _ = EXCEPTIONS.get(name, (lambda _: False, ""))
    assert malformed or not zeros or understands(prediction), (
        f"{name} scores {prediction!r} a bare 0 ({', '.join(zeros)}): report it as malformed, "
        "or explain in EXCEPTIONS of this file why it is understood"
    )

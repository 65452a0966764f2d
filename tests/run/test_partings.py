"""Where repeats of a case part: turn, step, and who did what."""

from typing import Any

import pytest

from pytest_llmeval.core import MISSING, Case
from pytest_llmeval.run._partings import first_parting


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str, *calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    made = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}


def parting(*predictions: Any) -> Any:
    return first_parting([Case("c", prediction=each) for each in predictions])


def talk(*messages: Any) -> dict[str, Any]:
    return {"messages": list(messages)}


LOOK, PAY = ("look", {"order": 7}), ("pay", {"order": 7, "sum": 3})


def test_the_first_step_with_another_call_is_found() -> None:
    first = talk(user("a"), said("one", LOOK), user("b"), said("", LOOK), said("", PAY), said("Paid."))
    other = talk(user("a"), said("two", LOOK), user("c"), said("", LOOK), said("Shall I?"))
    assert parting(first, other, first) == {
        "turn": 2,
        "step": 2,
        "variants": [
            {"what": 'pay("order": 7, "sum": 3)', "repeats": [1, 3]},
            {"what": "a message of the assistant", "repeats": [2]},
        ],
    }


def test_arguments_tell_calls_apart_and_their_order_does_not() -> None:
    calls = [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 3}]
    found = parting(*(talk(user("a"), said("x", ("f", each))) for each in calls))
    assert (found["turn"], found["step"]) == (1, 1)
    assert found["variants"] == [
        {"what": 'f("a": 1, "b": 2)', "repeats": [1, 2]},
        {"what": 'f("a": 1, "b": 3)', "repeats": [3]},
    ]


def test_one_that_ends_earlier_parts_there() -> None:
    whole = talk(user("a"), said("x", LOOK), user("b"), said("y"))
    assert parting(whole, talk(*whole["messages"][:2])) == {
        "turn": 1,
        "step": 2,
        "variants": [
            {"what": "a message of the user", "repeats": [1]},
            {"what": "the end", "repeats": [2]},
        ],
    }


def test_texts_beside_calls_are_not_compared() -> None:
    assert parting(talk(user("a"), said("x", LOOK), said("y")), talk(user("b"), said("", LOOK), said("z"))) is None


def test_without_any_call_texts_are_compared() -> None:
    first, other = talk(user("a"), said("x"), user("b"), said("y")), talk(user("a"), said("x"), user("b"), said("z"))
    assert parting(first, dict(first)) is None
    assert parting(first, other) == {
        "turn": 2,
        "step": 1,
        "variants": [
            {"what": "a message of the assistant: y", "repeats": [1]},
            {"what": "a message of the assistant: z", "repeats": [2]},
        ],
    }


def test_lists_of_calls_have_steps_and_no_turn() -> None:
    one, two = {"tool_calls": [{"name": "a"}, {"name": "b"}]}, {"tool_calls": [{"name": "a"}, {"name": "c"}]}
    assert parting(one, two) == {
        "turn": None,
        "step": 2,
        "variants": [{"what": "b()", "repeats": [1]}, {"what": "c()", "repeats": [2]}],
    }


@pytest.mark.parametrize(
    "predictions",
    [
        ("a", "b"),
        ({"answer": "a"}, {"answer": "b"}),
        ({"tool_calls": []}, {"tool_calls": []}),
        ({"tool_calls": [{"name": "a"}]}, {"tool_calls": "broken"}),
        (talk(user("a"), said("x")), MISSING),
    ],
)
def test_answers_without_comparable_steps_do_not_part(predictions: Any) -> None:
    assert parting(*predictions) is None


def test_a_repeat_without_prediction_is_left_out_and_the_others_keep_their_numbers() -> None:
    one, two = {"tool_calls": [{"name": "a"}]}, {"tool_calls": []}
    assert parting(MISSING, one, two)["variants"] == [
        {"what": "a()", "repeats": [2]},
        {"what": "the end", "repeats": [3]},
    ]

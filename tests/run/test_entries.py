"""Evaluators and checks as functions: the entries that they return, and their types."""

from typing import Any

import pytest

import pytest_llmeval as ev


@pytest.mark.parametrize(
    ("made", "entry"),
    [
        (ev.text(metrics=["f1"]), {"text": {"metrics": ["f1"]}}),
        (ev.text(as_="draft", on="output.text"), {"text": {}, "as": "draft", "on": "output.text"}),
        (ev.fields({"total": "number"}), {"fields": {"total": "number"}}),
        (ev.narrative_characters(match="strict"), {"narrative.characters": {"match": "strict"}}),
        (ev.evaluator("own", weight=2), {"own": {"weight": 2}}),
        (ev.max_words(30), {"max_words": 30}),
        (ev.number(min=1, max=2, weight=0.5), {"number": {"min": 1, "max": 2}, "weight": 0.5}),
        (ev.refusal(), {"refusal": True}),
        (ev.not_(ev.contains("x", name="no x")), {"not_contains": "x", "name": "no x"}),
        (ev.not_("refusal"), {"not_refusal": True}),
        (ev.any_of(ev.contains("a"), "is_json"), {"any_of": [{"contains": "a"}, "is_json"]}),
        (ev.at_least(1, ev.contains("a")), {"at_least": {"n": 1, "of": [{"contains": "a"}]}}),
        (ev.judge("Is polite."), {"judge": "Is polite."}),
        (ev.judge(mode="continuous"), {"judge": {"mode": "continuous"}}),
    ],
)
def test_an_entry_is_what_a_suite_file_says(made: dict[str, Any], entry: dict[str, Any]) -> None:
    assert made == entry


def test_a_check_takes_an_argument_or_its_parts() -> None:
    with pytest.raises(TypeError, match="number: found an argument and min, expected one or the other"):
        ev.number(3, min=1)


def test_a_name_that_is_no_evaluator_and_no_check_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="module 'pytest_llmeval' has no attribute 'textt'"):
        ev.textt  # type: ignore[attr-defined]  # noqa: B018 (as above)

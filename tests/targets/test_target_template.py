"""Requests as data: whatever an input holds, it goes into the request as it is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.data import DataPath
from pytest_llmeval.targets._spec import at, fill, has_each, has_id, input_paths

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["$input", "$each", "$id"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["$input", "$each", "$id", "a", "b.c"]), inner, max_size=3)
    ),
    max_leaves=8,
)
WHOLE = {"$input": True}


@given(st.lists(JSON, max_size=4), JSON)
def test_inputs_and_what_stands_beside_them_go_into_the_request_unchanged(inputs: list[Any], other: Any) -> None:
    numbered = [{"n": number, "in": [each]} for number, each in enumerate(inputs)]
    assert fill({"q": {"$each": WHOLE}, "k": [1, None]}, inputs) == {"q": inputs, "k": [1, None]}
    assert fill({"$each": {"n": {"$id": True}, "in": [WHOLE]}}, inputs) == numbered
    assert fill({"$each": {"$input": "x"}}, [{"x": each, "y": other} for each in inputs]) == inputs
    assert fill([WHOLE, "$input"], [other]) == [other, "$input"]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (None, {"a": [{"b": 1}], "c.d": 2, "e": "0"}),
        ("a", [{"b": 1}]),
        ("a.0.b", 1),
        ("c.d", 2),
        ("c", DataPath.ABSENT),
        ("a.1", DataPath.ABSENT),
        ("a.-1", DataPath.ABSENT),
        ("a.b", DataPath.ABSENT),
        ("e.0", DataPath.ABSENT),
    ],
)
def test_a_path_leads_through_mappings_and_lists(path: str | None, found: Any) -> None:
    value = {"a": [{"b": 1}], "c.d": 2, "e": "0"}
    assert at(value, path) == found
    assert at([value], path and f"0.{path}") == (
        [value] if path is None else DataPath.ABSENT if path == "c.d" else found
    )


@pytest.mark.parametrize("value", [None, True, 7, "0", "a"])
def test_a_path_leads_nowhere_in_a_scalar(value: Any) -> None:
    assert at(value, "0") is DataPath.ABSENT
    assert at(value, "a") is DataPath.ABSENT


def test_a_template_tells_what_it_needs() -> None:
    template = {"q": {"$each": [{"$id": True}, {"$input": "b"}, {"$input": "a.0"}, {"$input": "b"}]}}
    assert (has_each(template), has_id(template), input_paths(template)) == (True, True, ("a.0", "b"))
    assert (has_each(WHOLE), has_id(WHOLE), input_paths(WHOLE)) == (False, False, ())

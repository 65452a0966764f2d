"""Pairing of calls: as good as trying everything, and the same in any order."""

import json
from functools import cache
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import Case, Evaluator, get_evaluator
from pytest_llmeval.tasks.agents._tools import common_subsequence

ARGUMENTS = st.dictionaries(st.sampled_from("xy"), st.sampled_from((0, 1, 2, 1.0, True, None)), max_size=2)
CALL = st.fixed_dictionaries({"name": st.sampled_from("ab"), "arguments": ARGUMENTS})
OPTIONS: list[dict[str, Any]] = [
    {},
    {"arguments": "partial"},
    {"null_arguments": "value"},
    {"ignore_arguments": ["y"]},
    {"compare": {"*": {"x": {"number": {"tolerance": 1}}}}},
    {"defaults": {"a": {"x": 0}}},
]


@cache
def evaluator(options: str) -> Evaluator:
    return get_evaluator("tools", **json.loads(options))


def counts(options: Any, expected: Any, made: Any) -> dict[str, float]:
    return dict(evaluator(json.dumps(options)).measure(Case("a", expected=expected, prediction=made)).counts)


def best_agreement(options: Any, expected: list[Any], made: list[Any]) -> int:
    alone = [[counts(options, [left], [other])["arguments.agreeing"] for other in made] for left in expected]
    if len(expected) > len(made):
        alone = [list(column) for column in zip(*alone, strict=True)]
    shorter, longer = sorted((len(expected), len(made)))
    orders = permutations(range(longer), shorter)
    return int(max((sum(alone[row][column] for row, column in enumerate(order)) for order in orders), default=0))


@pytest.mark.parametrize("options", OPTIONS, ids=json.dumps)
@given(expected=st.lists(CALL, max_size=4), made=st.lists(CALL, max_size=4))
def test_as_many_arguments_agree_as_in_the_best_pairing(options: Any, expected: Any, made: Any) -> None:
    assert counts(options, expected, made)["arguments.agreeing"] == best_agreement(options, expected, made)


@pytest.mark.parametrize("options", [{**each, "order": "any_order"} for each in OPTIONS], ids=json.dumps)
@given(expected=st.lists(CALL, max_size=5), made=st.lists(CALL, max_size=5), data=st.data())
def test_the_order_of_listing_changes_no_count(options: Any, expected: Any, made: Any, data: st.DataObject) -> None:
    one = counts(options, expected, made)
    other = counts(options, *(data.draw(st.permutations(each)) for each in (expected, made)))
    for each in (one, other):
        del each["tools.in_order"]
    assert one == other


@given(st.text("abc", max_size=7), st.text("abc", max_size=7))
def test_the_common_subsequence_is_the_longest(left: str, right: str) -> None:
    def subsequences(text: str) -> set[str]:
        return {"".join(c for i, c in enumerate(text) if mask >> i & 1) for mask in range(1 << len(text))}

    assert common_subsequence(left, right) == max(map(len, subsequences(left) & subsequences(right)))

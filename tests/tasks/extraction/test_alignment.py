"""Alignment of lists: as good as trying everything, and the same in any order."""

import json
from functools import cache
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import Case, Evaluator, EvaluatorError, Observation, get_evaluator
from pytest_llmeval.tasks.extraction import assign

WEIGHTS = st.integers(0, 6).flatmap(
    lambda width: st.lists(st.lists(st.integers(0, 4), min_size=width, max_size=width), max_size=6)
)
ELEMENT = st.fixed_dictionaries(
    {}, optional={"a": st.integers(0, 2), "b": st.integers(0, 2), "c": st.sampled_from(["x", "X"])}
)
TOLERANT = {"fields": {"a": {"number": {"tolerance": 1}}, "c": "text"}}


def brute_force(rows: int, columns: int, weight: Any) -> int:
    if rows > columns:
        return brute_force(columns, rows, lambda row, column: weight(column, row))
    orders = permutations(range(columns), rows)
    return max(sum(weight(row, column) for row, column in enumerate(order)) for order in orders)


@given(WEIGHTS)
def test_the_assignment_is_as_good_as_the_best_of_all(weights: list[list[int]]) -> None:
    pairs = assign(weights)
    assert all(weights[row][column] for row, column in pairs)
    assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs)
    columns = len(weights[0]) if weights else 0
    best = brute_force(len(weights), columns, lambda row, column: weights[row][column])
    assert sum(weights[row][column] for row, column in pairs) == best


def right(options: Any, expected: Any, found: Any) -> int:
    return int(measured(options, expected, found).counts["fields.right"])


def measured(options: Any, expected: Any, found: Any) -> Observation:
    return evaluator(json.dumps(options)).measure(Case("a", expected={"i": expected}, prediction={"i": found}))


@cache
def evaluator(options: str) -> Evaluator:
    return get_evaluator("fields", i={"list": json.loads(options)})


@pytest.mark.parametrize("options", [{}, TOLERANT], ids=["exact", "tolerant"])
@given(expected=st.lists(ELEMENT, max_size=4), found=st.lists(ELEMENT, max_size=5))
def test_as_many_fields_agree_as_in_the_best_of_all_alignments(options: Any, expected: Any, found: Any) -> None:
    alone = [[right(options, [left], [other]) for other in found] for left in expected]
    best = brute_force(len(expected), len(found), lambda row, column: alone[row][column])
    assert right(options, expected, found) == best


@pytest.mark.parametrize("options", [{}, TOLERANT, {"key": "a"}, {"key": "a", **TOLERANT}], ids=json.dumps)
@given(expected=st.lists(ELEMENT, max_size=5), found=st.lists(ELEMENT, max_size=5), data=st.data())
def test_the_order_of_lists_changes_no_count(options: Any, expected: Any, found: Any, data: st.DataObject) -> None:
    one = measured(options, expected, found)
    other = measured(options, *(data.draw(st.permutations(each)) for each in (expected, found)))
    assert dict(one.counts) == dict(other.counts)
    assert one.undefined == other.undefined


@given(st.lists(ELEMENT, max_size=8), st.randoms(use_true_random=False))
def test_a_reordered_list_is_right(elements: Any, random: Any) -> None:
    reordered = random.sample(elements, len(elements))
    for options in ({}, TOLERANT, {"key": "a"}):
        observation = measured(options, elements, reordered)
        assert observation.counts["fields.exact"] == 1
        assert observation.details == {}


def test_elements_go_together_by_key_even_if_others_agree_in_more() -> None:
    expected = [{"sku": "a", "n": 1, "p": 1}, {"sku": "b", "n": 2, "p": 2}]
    found = [{"sku": "b", "n": 1, "p": 1}, {"sku": "a", "n": 2, "p": 2}]
    assert right({}, expected, found) == 4
    assert right({"key": "sku"}, expected, found) == 2


def test_a_key_is_compared_as_the_field_is() -> None:
    expected, found = [{"sku": "A b", "n": 1}, {"sku": "c", "n": 2}], [{"sku": "C", "n": 1}, {"sku": "a  B", "n": 2}]
    assert right({"key": "sku", "fields": {"sku": "text"}}, expected, found) == 2


def test_elements_that_agree_in_nothing_are_missing_and_extra() -> None:
    wrong = measured({}, [1, 2], [1, 5]).details["wrong"]
    assert wrong == ["i[1]: missing, expected 2", "i[1]: extra, found 5"]


def test_a_list_too_long_to_align_is_an_error_that_names_the_remedy() -> None:
    with pytest.raises(EvaluatorError, match=r"i: found 600 expected and 700 other elements to align, .*: set a key"):
        measured({"of": {"number": {"tolerance": 1}}}, list(range(600)), list(range(700)))


def test_a_long_list_of_equal_elements_is_aligned_without_comparing_all_pairs() -> None:
    elements = [{"sku": number, "v": number} for number in range(3000)]
    assert measured({}, elements, elements[::-1]).counts["fields.exact"] == 1

"""Observations, totals, sums and the matrix, case by case."""

import json
import math
import pickle
from typing import Any

import numpy as np
import pytest

from pytest_llmeval import Observation, Sums, Totals
from pytest_llmeval.core import LazyDetails
from pytest_llmeval.numbers._case_scores import stack


def test_empty_parts_are_left_out_of_json() -> None:
    assert Observation({"n": 1}).to_json() == {"counts": {"n": 1}}
    full = Observation({"n": 1}, {"why": "x"}, {"f1": "no gold"}, "found null")
    assert full.to_json() == {
        "counts": {"n": 1},
        "details": {"why": "x"},
        "undefined": {"f1": "no gold"},
        "malformed": "found null",
    }


def test_lazy_details_are_made_once_and_only_when_they_are_read() -> None:
    reads: list[str] = []

    def make() -> dict[str, Any]:
        reads.append("details")
        return {"pairs": [(1, 2)]}

    lazy = Observation({"n": 1}, LazyDetails(make))
    assert (lazy.fault(), lazy.has_details, reads) == (None, True, [])
    assert json.dumps(lazy.details) == json.dumps(lazy.details) == '{"pairs": [[1, 2]]}'
    assert reads == ["details"]


def test_lazy_details_are_those_of_any_observation() -> None:
    eager = Observation({"n": 1}, {"pairs": [1]})

    def lazy() -> Observation:
        return Observation({"n": 1}, LazyDetails(lambda: {"pairs": [1]}))

    assert lazy() == eager
    assert eager == lazy()
    assert repr(lazy()) == repr(eager)
    assert lazy().to_json() == eager.to_json()
    assert pickle.dumps(pickle.loads(pickle.dumps(lazy()))) == pickle.dumps(eager)
    assert (lazy().plain().lazy_details, lazy().plain()) == (None, eager)


def test_lazy_details_are_made_another_way_unless_they_have_been_read() -> None:
    unread, read = LazyDetails(lambda: {"way": 1}), LazyDetails(lambda: {"way": 1})
    assert read["way"] == 1
    unread.make_by(lambda: {"way": 2})
    read.make_by(lambda: {"way": 2})
    assert (unread, read) == ({"way": 2}, {"way": 1})


def test_an_empty_malformed_text_is_still_malformed() -> None:
    assert Observation.from_json(Observation({}, malformed="").to_json()).malformed == ""


@pytest.mark.parametrize("count", [np.int64(3), np.float32(0.5), np.float64(0.1), True])
def test_number_types_of_numpy_are_written_as_plain_numbers(count: Any) -> None:
    written = Observation({"n": count}).to_json()["counts"]["n"]
    assert type(written) in (int, float)
    assert written == count


@pytest.mark.parametrize("count", [math.nan, math.inf, -math.inf, "1", None, 10**400])
def test_a_count_that_cannot_be_added_up_is_a_fault(count: Any) -> None:
    fault = Observation({"good": 1, "bad": count}).fault()
    assert fault is not None
    assert "count 'bad', expected a finite number" in fault


@pytest.mark.parametrize("details", [{"x": math.nan}, {"x": {1, 2}}, {"x": object()}])
def test_details_that_json_cannot_carry_are_a_fault(details: dict[str, Any]) -> None:
    fault = Observation({"n": 1}, details=details).fault()
    assert fault is not None
    assert fault.startswith("found details that are not JSON data")


def test_a_sound_observation_has_no_fault() -> None:
    assert Observation({"n": np.float64(1), "x": -0.5}, {"list": [1, None, {"a": "b"}]}).fault() is None


def test_an_absent_name_reads_as_zero_and_is_not_listed() -> None:
    totals = Totals.add_up([Observation({"a": 1}), Observation({"b": 0})])
    assert totals["nobody counted this"] == 0.0
    assert list(totals) == ["a", "b"]
    assert len(totals) == 2


def test_names_are_sorted_whatever_the_order_of_counting() -> None:
    assert list(Totals.add_up([Observation({"z": 1, "a": 1}), Observation({"m": 1})])) == ["a", "m", "z"]


def test_totals_compare_with_totals_only() -> None:
    assert Totals() != {}
    assert Totals.add_up([Observation({"a": 1})]) != Totals.add_up([Observation({"a": 2})])


def test_repr_shows_the_rounded_sums() -> None:
    assert repr(Totals.add_up([Observation({"a": 0.1})] * 3)) == "Totals({'a': 0.30000000000000004})"


def test_sums_are_columns_of_length_one_and_unknown_names_zeros() -> None:
    sums = Totals.add_up([Observation({"a": 2}), Observation({"a": 3})]).sums()
    assert sums["a"].tolist() == [5.0]
    assert sums["b"].tolist() == [0.0]
    assert "b" not in sums


def test_the_zero_column_has_the_length_of_the_others() -> None:
    assert Sums({"a": np.ones(4)}, length=4)["b"].tolist() == [0.0] * 4


def test_a_case_without_observation_is_a_row_of_zeros() -> None:
    names, matrix = stack([Observation({"b": 2, "a": 1}), None, Observation({"c": 3})])
    assert names == ["a", "b", "c"]
    assert matrix.tolist() == [[1, 2, 0], [0, 0, 0], [0, 0, 3]]


def test_nothing_stacks_to_an_empty_matrix() -> None:
    names, matrix = stack([])
    assert names == []
    assert matrix.shape == (0, 0)


@pytest.mark.parametrize(
    ("count", "small"),
    [(0, True), (127, True), (1.0, True), (True, True), (128, False), (-1, False), (-0.0, False), (0.5, False)],
)
def test_small_whole_counts_may_come_as_bytes_and_are_the_same(count: float, small: bool) -> None:
    observations = [Observation({"a": 1, "b": count}), None, Observation({"c": 3, "a": 2})]
    names, matrix = stack(observations)
    again, compact = stack(observations, compact=True)
    assert names == again
    assert (matrix.dtype, compact.dtype) == (np.float64, np.int8 if small else np.float64)
    assert np.array_equal(np.signbit(compact), np.signbit(matrix))
    assert np.array_equal(compact, matrix)

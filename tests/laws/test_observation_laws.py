"""The laws that everything rests on: observations add up exactly, in any order and any split."""

import json
from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import AWKWARD, SplitAverage, counted, observations, records, totals

from pytest_llmeval import Observation, Totals
from pytest_llmeval.core import CaseRecord, MetricValue
from pytest_llmeval.numbers import summarize
from pytest_llmeval.numbers._case_scores import stack

lists = st.lists(counted, max_size=10)


def bits(sums: Totals) -> dict[str, str]:
    return {name: float(value).hex() for name, value in sums.items()}


@given(totals)
def test_zero_plus_any_totals_is_the_totals_on_both_sides(some: Totals) -> None:
    assert Totals() + some == some == some + Totals()
    assert bits(Totals() + some) == bits(some)


@given(totals, totals)
def test_addition_is_commutative(left: Totals, right: Totals) -> None:
    assert left + right == right + left
    assert bits(left + right) == bits(right + left)


@given(totals, totals, totals)
@example(*(Totals.add_up([Observation({"a": value})]) for value in (1e16, 1e-17, -1e16)))
@example(*(Totals.add_up([Observation({"a": value})]) for value in (0.1, 0.2, 0.3)))
def test_addition_is_associative(first: Totals, second: Totals, third: Totals) -> None:
    assert (first + second) + third == first + (second + third)
    assert bits((first + second) + third) == bits(first + (second + third))


@given(lists, st.integers(0, 12), st.randoms(use_true_random=False))
@example([Observation({"a": value}) for value in AWKWARD], 5, Random(0))
def test_any_split_and_any_order_give_the_same_totals_to_the_last_bit(
    every: list[Observation], cut: int, random: Random
) -> None:
    whole = Totals.add_up(every)
    shuffled = random.sample(every, len(every))
    parts = Totals.add_up(shuffled[:cut]) + Totals.add_up(shuffled[cut:])
    one_by_one = Totals()
    for each in reversed(shuffled):
        one_by_one += Totals.add_up([each])
    assert whole == parts == one_by_one
    assert bits(whole) == bits(parts) == bits(one_by_one)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.1] * 10, 1.0),
        ([1e16, 1.0, -1e16], 1.0),
        ([1e16, 1e-17, -1e16], 1e-17),
        ([1e-17] * 3 + [1.0, -1.0], 3e-17),
        ([-0.1, -0.2, 0.3], -2.7755575615628914e-17),
        ([], 0.0),
    ],
)
def test_sums_are_those_of_exact_arithmetic_rounded_once(values: list[float], expected: float) -> None:
    assert Totals.add_up([Observation({"a": value}) for value in values])["a"] == expected


@given(observations)
def test_the_json_round_trip_of_an_observation_is_identity(some: Observation) -> None:
    assert Observation.from_json(json.loads(json.dumps(some.to_json()))) == some


@given(totals)
def test_the_json_round_trip_of_totals_is_identity(some: Totals) -> None:
    again = Totals.from_json(json.loads(json.dumps(some.to_json())))
    assert again == some
    assert bits(again) == bits(some)


@given(lists)
def test_column_sums_of_the_stacked_matrix_agree_with_the_totals(every: list[Observation]) -> None:
    names, matrix = stack(every)
    sums = Totals.add_up(every)
    assert matrix.shape == (len(every), len(names))
    assert names == sorted(sums)
    scale = np.abs(matrix).sum(axis=0)
    for name, column, size in zip(names, matrix.sum(axis=0), scale, strict=True):
        assert abs(column - sums[name]) <= 1e-9 * max(1.0, size)


@given(lists, st.randoms(use_true_random=False))
def test_permuted_observations_give_a_permuted_matrix(every: list[Observation], random: Random) -> None:
    order = random.sample(range(len(every)), len(every))
    names, matrix = stack(every)
    permuted_names, permuted = stack([every[place] for place in order])
    assert permuted_names == names
    assert np.array_equal(permuted, matrix[order])


def point(metric: MetricValue) -> tuple[object, ...]:
    return (metric.value, metric.mean, metric.scored, metric.undefined, metric.errored, metric.missing)


@given(records(), st.randoms(use_true_random=False))
def test_the_order_of_records_changes_no_value_mean_or_count(some: list[CaseRecord], random: Random) -> None:
    evaluators = {"split": SplitAverage()}
    result = summarize(evaluators, some, group_by=["kind"], confidence=None)
    shuffled = summarize(evaluators, random.sample(some, len(some)), group_by=["kind"], confidence=None)
    assert {name: point(each) for name, each in result.metrics.items()} == {
        name: point(each) for name, each in shuffled.metrics.items()
    }
    assert point(result.pass_rate) == point(shuffled.pass_rate)
    assert list(result.groups["kind"]) == list(shuffled.groups["kind"])
    for name, group in result.groups["kind"].items():
        assert {each: point(value) for each, value in group.metrics.items()} == {
            each: point(value) for each, value in shuffled.groups["kind"][name].metrics.items()
        }


@given(records())
def test_every_case_is_counted_once_in_every_metric(some: list[CaseRecord]) -> None:
    result = summarize({"split": SplitAverage()}, some, confidence=None)
    for metric in result.metrics.values():
        assert metric.scored + metric.undefined + metric.errored + metric.missing == len(some)
        assert min(metric.scored, metric.undefined, metric.errored, metric.missing) >= 0

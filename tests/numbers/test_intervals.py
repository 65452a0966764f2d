"""Intervals of values: against scipy, and what few cases must not claim."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from builders import parse_gate
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_llmeval import Case, Evaluator, Metric, Observation, Result, get_evaluator, score
from pytest_llmeval.core import CaseRecord, FloatArray, Sums
from pytest_llmeval.numbers import summarize, wilson_interval
from pytest_llmeval.numbers._intervals import (
    CountedMetric,
    Resampled,
    expanded,
    nominal,
    resampled_interval,
    value_interval,
)
from pytest_llmeval.numbers._resample import resample_count, resampled_totals

SHARE = Metric("share")
confidences = st.sampled_from([0.5, 0.9, 0.95, 0.999])


def exact(answers: Sequence[str]) -> Result:
    cases = [Case(str(number), expected="a", prediction=each) for number, each in enumerate(answers)]
    return score(get_evaluator("text", metrics=["exact_match"]), cases)


@given(st.integers(1, 60), st.data(), confidences)
def test_the_interval_of_a_share_is_that_of_scipy(cases: int, data: st.DataObject, confidence: float) -> None:
    successes = data.draw(st.integers(0, cases))
    wanted = stats.binomtest(successes, cases).proportion_ci(confidence, method="wilson")
    assert wilson_interval(successes, cases, confidence) == pytest.approx((wanted.low, wanted.high), abs=1e-12)


def test_ten_of_ten_right_is_no_certainty() -> None:
    wanted = stats.binomtest(10, 10).proportion_ci(method="wilson")
    found = exact(["a"] * 10)
    for metric in (found.metrics["exact_match"], found.pass_rate):
        assert (metric.low, metric.high) == (pytest.approx(wanted.low), 1.0)
    gate = parse_gate("low(exact_match) >= 0.99").judge(exact(["a"] * 3))
    assert gate.outcome == "failed"


def test_groups_and_the_pass_rate_have_the_interval_of_a_share() -> None:
    records = [
        CaseRecord(str(number), {"kind": "x" if number < 8 else "y"}, "passed" if number else "failed", {}, {"t": ""})
        for number in range(20)
    ]
    found = summarize({}, records, group_by=["kind"])
    for metric, successes, cases in (
        (found.pass_rate, 19, 20),
        (found.groups["kind"]["x"].pass_rate, 7, 8),
        (found.groups["kind"]["y"].pass_rate, 12, 12),
    ):
        assert (metric.low, metric.high) == pytest.approx(wilson_interval(successes, cases, 0.95))


def test_a_pooled_value_that_is_no_share_of_cases_is_resampled() -> None:
    cases = [
        Case(str(n), expected=["a"] * (1 + n % 9), prediction=["a" if n % 2 else "b"] * (1 + n % 9)) for n in range(40)
    ]
    found = score(get_evaluator("classification", metrics=["accuracy"]), cases).metrics["accuracy"]
    assert found.value is not None
    assert (found.low, found.high) != pytest.approx(wilson_interval(20, 40, 0.95), abs=1e-3)


@given(st.floats(0.0005, 0.4999), st.integers(2, 400))
def test_expanding_is_undone_by_the_p_value(tail: float, units: int) -> None:
    share = expanded(tail, units)
    assert share <= tail + 1e-12
    if share > 1e-200:
        assert nominal(share, units) == pytest.approx(tail, rel=1e-6)


@pytest.mark.parametrize("size", [4, 10, 30, 200])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_expanded_interval_of_a_mean_is_about_that_of_student(size: int, confidence: float) -> None:
    data = stats.norm.ppf((np.arange(size) + 0.5) / size)
    values = resampled_totals(data[:, None], resample_count(size))[:, 0] / size
    low, high = resampled_interval(Resampled(values), confidence, size)
    half = stats.t.ppf((1 + confidence) / 2, size - 1) * stats.sem(data)
    assert high - low == pytest.approx(2 * half, rel=0.06)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95])
def test_of_many_cases_the_interval_is_that_of_quantiles(confidence: float) -> None:
    values = np.random.default_rng(3).normal(size=9_999)
    expected = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    assert resampled_interval(Resampled(values), confidence, 10**9) == pytest.approx(tuple(expected), abs=1e-6)


@pytest.mark.parametrize("at", [3.0, 4.0, 5.0, 8.0])
def test_the_tail_of_resamples_goes_on_where_no_resample_is(at: float) -> None:
    resampled = Resampled(np.random.default_rng(1).normal(size=10_000))
    for share in (resampled.tails(-at).above, resampled.tails(at).below):
        assert 0.7 * stats.norm.sf(at) < share < stats.norm.sf(at) ** 0.5
    assert resampled.quantile(stats.norm.sf(at), -1) == pytest.approx(-at, rel=0.03)


def test_two_cases_have_the_interval_of_student() -> None:
    values = np.repeat([3.0, 4.5, 4.5, 6.0], 2_500)
    wanted = stats.t.interval(0.95, 1, loc=4.5, scale=1.5)
    assert resampled_interval(Resampled(values), 0.95, 2) == pytest.approx(wanted)


def test_the_tail_of_a_skewed_distribution_is_not_taken_for_a_short_one() -> None:
    values = np.random.default_rng(1).exponential(size=10_000)
    assert Resampled(values).tails(12.0).below > 0.2 * stats.expon.sf(12.0)


@given(st.floats(-6, 6), st.floats(0.001, 1))
def test_tails_fall_with_the_distance(at: float, step: float) -> None:
    resampled = Resampled(stats.norm.ppf((np.arange(2_000) + 0.5) / 2_000))
    assert resampled.tails(at + step).below <= resampled.tails(at).below
    assert resampled.tails(at + step).above >= resampled.tails(at).above


def test_equal_cases_leave_room_for_unlike_ones_that_were_not_seen() -> None:
    same = np.full(100, 0.5)
    found = value_interval(same, 0.5, 10, SHARE, 0.95)
    unseen = wilson_interval(0, 10, 0.95)[1]
    assert found == pytest.approx((0.5 - 0.5 * unseen, 0.5 + 0.5 * unseen))
    assert value_interval(same, 0.5, 10, Metric("m", high=None), 0.95) == (0.5, 0.5)


def test_an_interval_stays_in_the_range_of_its_metric() -> None:
    scores = np.array([0.9, 1.0, 0.2])
    values = resampled_totals(scores[:, None], 10_000)[:, 0] / 3
    found = value_interval(values, 0.7, 3, SHARE, 0.95)
    assert found is not None
    assert 0 <= found[0] < found[1] <= 1
    beyond = value_interval(values * 5, 3.5, 3, SHARE, 0.95)
    assert beyond is not None
    assert beyond[0] < 3.5 < beyond[1]


@pytest.mark.parametrize(
    ("values", "exists"),
    [
        ([0.1, math.nan, 0.3], True),
        ([0.1, math.inf, 0.3], True),
        ([0.1, math.nan], False),
        ([math.nan] * 3, False),
        ([], False),
    ],
)
def test_resamples_without_value_are_left_out_and_few_left_give_no_interval(values: list[float], exists: bool) -> None:
    found = value_interval(np.array(values), 0.2, 2, SHARE, 0.95)
    assert (found is not None) is exists


def test_the_mean_of_equal_resamples_may_be_rounded_below_them() -> None:
    resampled = Resampled(np.concatenate([np.full(200, 0.7), np.linspace(-1, 0.6, 800)]))
    tails = resampled.tails(0.9)
    assert 0 <= tails.below <= 0.001


@dataclass(frozen=True)
class Hits(Evaluator):
    """Numbers of right answers, of one or two that each case has."""

    name = "hits"
    each: int = 1

    def describe(self) -> Sequence[Metric]:
        return [Metric("hits", high=None, per_case=float(self.each)), Metric("rate")]

    def measure(self, case: Case) -> Observation:
        return Observation({"hits": float(case.prediction), "of": self.each})

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        return {"hits": sums["hits"], "rate": sums["hits"] / sums["of"]}


@pytest.mark.parametrize("hits", [[0] * 6, [1] * 5 + [0], [1] * 6])
def test_a_number_of_cases_has_the_interval_of_their_share(hits: list[int]) -> None:
    cases = [Case(str(number), prediction=each) for number, each in enumerate(hits)]
    for metrics in (score(Hits(), cases).metrics, score(Hits(), cases, partial=True).result().metrics):
        share = np.array([metrics["rate"].low, metrics["rate"].high])
        assert [metrics["hits"].low, metrics["hits"].high] == pytest.approx(share * len(hits))


@pytest.mark.parametrize("hits", [[0] * 6, [2] * 6, [2, 2, 2, 2, 2, 1]])
def test_the_interval_of_a_total_stays_within_what_its_cases_can_add(hits: list[int]) -> None:
    total = score(Hits(2), [Case(str(number), prediction=each) for number, each in enumerate(hits)]).metrics["hits"]
    assert total.low is not None
    assert total.high is not None
    assert 0 <= total.low < total.high <= 2 * len(hits)


def counted(**more: Any) -> CountedMetric:
    numbers: dict[str, Any] = {"pooled": 0.5, "total": 2.0, "cases": 10, "judged": 5, "scored": 4, "errored": 1}
    return CountedMetric(metric=Metric("f1"), signature="v:1", **{**numbers, "missing": 2, **more})


def test_every_case_is_scored_undefined_errored_or_missing() -> None:
    found = counted().metric_value((0.25, 0.75))
    assert (found.scored, found.undefined, found.errored, found.missing) == (4, 3, 1, 2)
    assert (found.value, found.mean, found.low, found.high, found.signature) == (0.5, 0.5, 0.25, 0.75, "v:1")


@pytest.mark.parametrize("more", [{"judged": 0}, {"pooled": math.nan}, {"pooled": math.inf}])
def test_a_value_that_is_undefined_or_rests_on_no_case_is_none(more: dict[str, Any]) -> None:
    each = counted(**more)
    assert each.metric_value(None).value is None
    assert not each.has_interval


def test_a_mean_of_no_score_is_none() -> None:
    assert counted(scored=0, total=0.0).metric_value(None).mean is None


@pytest.mark.parametrize(("more", "drawn"), [({}, 5), ({"units": 3}, 3), ({"judged": 1}, 1), ({"units": 1}, 1)])
def test_an_interval_takes_two_independent_draws(more: dict[str, Any], drawn: int) -> None:
    each = counted(**more)
    assert each.drawn == drawn
    assert each.has_interval == (drawn > 1)

"""Normal, Student's and binomial distributions against scipy."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from pytest_llmeval.numbers import mid_p_interval
from pytest_llmeval.numbers._intervals import normal_cdf, normal_quantile, student_cdf, student_quantile

PROBABILITIES = st.floats(-30, 0, exclude_max=True).map(lambda exponent: 10.0**exponent)
FREEDOMS = st.integers(1, 100_000)


@given(st.floats(-30, 30))
def test_normal_distribution_is_that_of_scipy(z: float) -> None:
    assert normal_cdf(z) == pytest.approx(ndtr(z), rel=1e-9, abs=0)


@given(PROBABILITIES)
def test_normal_quantile_is_that_of_scipy(p: float) -> None:
    assert normal_quantile(p) == pytest.approx(ndtri(p), rel=1e-9)


def test_normal_quantiles_of_0_and_1_are_infinite() -> None:
    assert (normal_quantile(0), normal_quantile(1)) == (-math.inf, math.inf)


@given(FREEDOMS, st.floats(-30, 30))
def test_students_distribution_is_that_of_scipy(freedom: int, t: float) -> None:
    assert student_cdf(freedom, t) == pytest.approx(stdtr(freedom, t), rel=1e-6, abs=1e-300)


@given(FREEDOMS, PROBABILITIES)
def test_students_quantile_is_that_of_scipy(freedom: int, p: float) -> None:
    assert student_quantile(freedom, p) == pytest.approx(stdtrit(freedom, p), rel=1e-6, abs=1e-9)


def test_students_distribution_ends_at_0_and_1() -> None:
    assert (student_cdf(3, -math.inf), student_cdf(3, math.inf)) == (0.0, 1.0)


@given(st.integers(1, 400).flatmap(lambda cases: st.tuples(st.integers(0, cases), st.just(cases))))
def test_mid_p_intervals_end_where_what_was_seen_has_the_probability_of_the_tails(counts: tuple[int, int]) -> None:
    seen, cases = counts
    low, high = mid_p_interval(seen, cases, 0.9)
    half = [stats.binom.pmf(seen, cases, bound) / 2 for bound in (low, high)]
    assert stats.binom.sf(seen, cases, low) + half[0] == pytest.approx(0.05, abs=1e-5) or seen == 0
    assert stats.binom.cdf(seen - 1, cases, high) + half[1] == pytest.approx(0.05, abs=1e-5) or seen == cases
    assert (low == 0) == (seen == 0)
    assert (high == 1) == (seen == cases)


def test_mid_p_intervals_of_parts_lie_between_those_of_whole_counts() -> None:
    below, between, above = (mid_p_interval(seen, 20, 0.95) for seen in (17, 17.5, 18))
    assert below < between < above
    assert mid_p_interval(20 - 1e-14, 20, 0.95) == pytest.approx((*mid_p_interval(20, 20, 0.95),), abs=1e-6)

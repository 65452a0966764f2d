"""Normal and Student's distribution against scipy."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from pytest_llmeval.scoring.intervals import normal_cdf, normal_quantile, student_cdf, student_quantile

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

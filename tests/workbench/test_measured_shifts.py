"""What two judges give to the same answers: the rates or the range of a shift, and how it depends on the score."""

import numpy as np

from pytest_llmeval.numbers import Shift
from pytest_llmeval.workbench._migration import dependence, measured_on


def test_rates_are_measured_on_scores_of_0_and_1_and_a_range_on_others() -> None:
    old, new = np.array([1.0, 1.0, 0.0, 0.0, np.nan]), np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    assert measured_on(Shift(0.0, -0.5, 0.5), old, new).rates == (1, 2, 1, 2)
    assert measured_on(Shift(0.3, 0.0, 0.5), old, new).rates == ()  # no mean of the scores
    graded = measured_on(Shift(0.1, 0.0, 0.2), np.array([0.4, 0.5]), np.array([0.5, 0.6]))
    assert (graded.rates, graded.measured) == ((), (0.5, 0.6))
    assert graded.outside(np.array([0.5, 0.55, 0.6])) == ""
    assert graded.outside(np.array([0.5, 0.2, 0.1])) == (
        "2 of 3 scores lie outside 0.5000..0.6000, where the judges were compared"
    )


def test_a_difference_that_depends_on_the_score_is_named() -> None:
    old = np.linspace(0.1, 0.9, 40)
    depends = dependence(old, np.sqrt(old))
    assert depends.startswith("the difference of the judges depends on the score: +0.2")
    assert dependence(old, old + 0.05) == ""
    assert dependence(np.array([0.1, 0.9]), np.array([0.5, 0.6])) == ""
    binary = np.array([0.0, 1.0] * 20)
    assert dependence(binary, np.ones(40)) == ""


def test_noise_of_both_judges_is_no_dependence() -> None:
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(200):
        truth = rng.random(40)
        old, new = (truth + rng.normal(0, 0.2, 40) for _ in range(2))
        found += bool(dependence(old, new + 0.1))
    assert found <= 8

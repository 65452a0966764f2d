"""Evidence about a total while it grows: right whenever one looks, and certain once the rest cannot matter."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from pytest_llmeval.core import FloatArray
from pytest_llmeval.workbench.early._evidence import evidence_above, first_reached

LEVEL = 0.05
SEEDS = 400

Scores = Callable[[np.random.Generator, int], FloatArray]


def binary(rng: np.random.Generator, cases: int) -> FloatArray:
    return (rng.random(cases) < 0.7).astype(float)


def continuous(rng: np.random.Generator, cases: int) -> FloatArray:
    return rng.beta(7.0, 3.0, cases)


def skewed(rng: np.random.Generator, cases: int) -> FloatArray:
    """Scores of which nearly all are the same: a variance guessed from the first ones would be 0."""
    return np.where(rng.random(cases) < 0.03, 0.0, 0.72)


@pytest.mark.parametrize("scores", [binary, continuous, skewed])
@pytest.mark.parametrize("cases", [20, 100, pytest.param(500, marks=pytest.mark.release)])
def test_a_random_order_rarely_speaks_against_what_is_so(scores: Scores, cases: int) -> None:
    """The hardest case: the total is 0, so that evidence against either side is a mistake."""
    wrong = {1: 0, -1: 0}
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        found = scores(rng, cases)
        excess = rng.permutation(found - found.mean())
        for side in wrong:
            reach = found.mean() if side > 0 else 1 - found.mean()
            wrong[side] += bool((evidence_above(side * excess, np.ones(cases), reach)[:-1] >= 1 / LEVEL).any())
    # Of 400 orders, 32 are two standard deviations above 20.
    assert max(wrong.values()) <= 32, wrong


@pytest.mark.parametrize("finite", [True, False])
def test_clusters_of_like_cases_are_no_more_evidence_than_they_are(finite: bool) -> None:
    """In clusters of 1 to 9 cases that share their score, evidence for single cases would be wrong far more often."""
    wrong = 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(1, 10, 60).astype(float)
        shared = (rng.random(60) < 0.5) - 0.5
        if finite:
            drawn = shared * sizes
            shared = shared - drawn.sum() / sizes.sum()
        wrong += bool((evidence_above(shared * sizes, sizes, 1.0, finite=finite) >= 1 / LEVEL).any())
    assert wrong <= 32


def test_what_cannot_be_made_up_for_is_certain() -> None:
    excess = np.array([0.3] * 8)
    found = evidence_above(excess, np.ones(10), 0.7)
    assert math.isinf(found[7])
    assert not math.isinf(found[6])


def test_a_total_of_zero_is_certain_only_where_that_is_enough() -> None:
    excess = np.array([0.5, -0.5, 0.5, -0.5])
    assert not math.isinf(evidence_above(excess, np.ones(4), 0.5)[-1])
    assert math.isinf(evidence_above(excess, np.ones(4), 0.5, inclusive=True)[-1])


def test_what_is_known_of_cases_that_always_run_counts() -> None:
    excess = np.array([-0.1] * 20)
    alone, beside = (evidence_above(excess, np.ones(100), 0.5, known)[-1] for known in (0.0, 40.0))
    assert alone == 1.0
    assert beside > 100


def test_chance_in_the_choice_of_the_cases_counts_where_it_should() -> None:
    """Of half of the cases more is known about these cases than about all that there might be."""
    excess = np.random.default_rng(3).permutation(np.where(np.arange(100) < 62, 0.5, -0.5))[:70]
    here, anywhere = (evidence_above(excess, np.ones(100), 0.5, finite=each)[-1] for each in (True, False))
    assert here > anywhere > 1.0


def test_evidence_never_falls() -> None:
    found = evidence_above(np.array([0.3] * 10 + [-0.7] * 10), np.ones(40), 0.7)
    assert (np.diff(found) >= 0).all()


def test_units_are_looked_at_whole_and_groups_on_their_own() -> None:
    numbers = np.array([-1, -1, 0, 0, 1, 1, 2, 3, 4, 4])
    members = np.array([True, False, True, False, True, True, False, False, True, True])
    excess = np.array([0.5, 9.0, 0.5, 9.0, 0.5, 0.5])
    at, evidence = first_reached(excess, members, numbers, 0.5, math.inf)
    assert (at, evidence) == (6, math.inf)
    assert first_reached(-excess, members, numbers, 0.5, 20.0) == (None, 1.0)


def test_a_group_of_cases_that_always_run_is_known_as_soon_as_they_have_run() -> None:
    numbers = np.array([-1, -1, 0, 1])
    members = np.array([True, True, False, False])
    assert first_reached(np.array([0.5, -0.1, 0.0]), members, numbers, 0.5, 20.0) == (2, math.inf)

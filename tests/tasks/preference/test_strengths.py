"""Strengths of systems from pairs: the model of Davidson with a ridge."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from pytest_llmeval.core import CaseRecord
from pytest_llmeval.tasks.preference._pairwise import RIDGE, PairCounts, Strengths, strengths_of

WIN, TIE, LOSS = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def drawn(strengths: Mapping[str, float], ties: float, cases: int, seed: int = 1) -> list[PairCounts]:
    """Return cases in which each pair was drawn from the model."""
    rng = np.random.default_rng(seed)
    found: list[PairCounts] = []
    for _ in range(cases):
        pairs = {}
        for one, other in combinations(strengths, 2):
            a, b = math.exp(strengths[one]), math.exp(strengths[other])
            weights = np.array([a, ties * math.sqrt(a * b), b])
            pairs[one, other] = (WIN, TIE, LOSS)[rng.choice(3, p=weights / weights.sum())]
        found.append(pairs)
    return found


def records_of(cases: Sequence[PairCounts]) -> list[CaseRecord]:
    return [CaseRecord(str(number), {"of": str(number // 8)}) for number in range(len(cases))]


def fitted(cases: Sequence[PairCounts], confidence: float = 0.95) -> Strengths:
    found = strengths_of("pairwise", cases, records_of(cases), confidence=confidence)
    assert found is not None
    return found


def values(found: Strengths) -> dict[str, float]:
    return {each.system: each.value for each in found.systems}


def penalty(parameters: np.ndarray, names: Sequence[str], cases: Sequence[PairCounts]) -> float:
    """Return minus the penalised likelihood, written down from the definition."""
    strengths, ties = dict(zip(names, parameters, strict=False)), parameters[-1]
    total = RIDGE / 2 * float(parameters @ parameters)
    for case in cases:
        for (one, other), counts in case.items():
            a, b = strengths[one], strengths[other]
            logs = (a, ties + (a + b) / 2, b)
            total -= sum(count * (log - np.logaddexp.reduce(logs)) for count, log in zip(counts, logs, strict=True))
    return float(total)


def test_they_maximise_the_penalised_likelihood() -> None:
    names = ("a", "b", "c", "d")
    cases = drawn(dict(zip(names, (1.2, 0.3, -0.2, -1.0), strict=True)), 0.6, 40)
    best = minimize(penalty, np.zeros(5), args=(names, cases), tol=1e-12).x
    found = fitted(cases)
    assert values(found) == pytest.approx(dict(zip(names, best - best[:4].mean(), strict=False)), abs=1e-5)
    assert found.ties == pytest.approx(math.exp(best[4]), abs=1e-5)
    assert (found.pairs, found.cases) == (240, 40)


def test_what_the_data_were_drawn_from_lies_in_the_intervals() -> None:
    truth = {"a": 1.0, "b": 0.0, "c": -1.0}
    found = fitted(drawn(truth, 0.5, 400))
    assert [each.system for each in found.systems] == ["a", "b", "c"]
    for each in found.systems:
        assert each.low is not None
        assert each.high is not None
        assert each.low < truth[each.system] < each.high
        assert each.high - each.low < 0.4


@pytest.mark.parametrize("outcome", [WIN, TIE], ids=["separated", "ties only"])
def test_separated_data_have_finite_strengths_and_intervals_that_are_not_empty(
    outcome: tuple[float, float, float],
) -> None:
    cases: list[PairCounts] = [dict.fromkeys(combinations("abc", 2), outcome) for _ in range(20)]
    found = fitted(cases)
    assert math.isfinite(found.ties)
    for each in found.systems:
        assert each.low is not None
        assert each.high is not None
        assert -10 < each.low < each.value - 0.5 < each.value + 0.5 < each.high < 10
    if outcome == WIN:
        assert [each.system for each in found.systems] == ["a", "b", "c"]
    else:
        assert set(values(found).values()) == {0.0}


def test_swapping_both_systems_of_each_pair_and_the_order_of_the_cases_changes_nothing() -> None:
    cases = drawn({"a": 0.5, "b": 0.0, "c": -0.5}, 0.5, 30)
    swapped: list[PairCounts] = [
        {(other, one): (losses, ties, wins) for (one, other), (wins, ties, losses) in case.items()} for case in cases
    ]
    assert values(fitted(swapped)) == pytest.approx(values(fitted(cases)))
    assert values(fitted(cases[::-1])) == pytest.approx(values(fitted(cases)))


def test_systems_may_meet_through_others_only() -> None:
    usual: PairCounts = {("a", "b"): WIN, ("b", "c"): WIN}
    cases: list[PairCounts] = [*[usual] * 5, {("a", "b"): LOSS, ("b", "c"): TIE}]
    assert [each.system for each in fitted(cases).systems] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "pairs", [{("a", "b"): WIN}, {("a", "b"): WIN, ("c", "d"): WIN}, {}], ids=["two", "apart", "none"]
)
def test_two_systems_or_groups_that_never_meet_have_none(pairs: PairCounts) -> None:
    assert strengths_of("pairwise", [pairs, pairs], records_of([pairs, pairs])) is None


def test_one_case_has_no_interval() -> None:
    assert {(each.low, each.high) for each in fitted([{("a", "b"): WIN, ("b", "c"): WIN}]).systems} == {(None, None)}


def test_intervals_draw_clusters_together_and_widen_with_confidence() -> None:
    cases = drawn({"a": 0.5, "b": 0.0, "c": -0.5}, 0.5, 12)
    repeated = [case for case in cases for _ in range(8)]
    alone = fitted(repeated)
    together = strengths_of("pairwise", repeated, records_of(repeated), "of")
    assert together is not None
    assert values(together) == values(alone)
    assert _width(together) > 2 * _width(alone)
    assert _width(fitted(repeated, 0.99)) > 1.2 * _width(alone)


def _width(found: Strengths) -> float:
    return sum((each.high or 0.0) - (each.low or 0.0) for each in found.systems)

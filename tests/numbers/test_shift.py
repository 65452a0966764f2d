"""Comparisons across a change of judge: its shift moves the baseline, its uncertainty widens the interval."""

import numpy as np
import pytest
from builders import gate, noisy, pairing, run

from pytest_llmeval.core import GateResult, Result
from pytest_llmeval.gates import ChangeGate, GateEvidence
from pytest_llmeval.numbers import Difference, RunPairing, Shift

MILDER = Shift(0.2, 0.18, 0.22)


def across(here: Result, there: Result, **shifts: Shift) -> RunPairing:
    found = pairing(here, there)
    found.shifts = shifts
    return found


def judged(regression: ChangeGate, pairs: RunPairing) -> GateResult:
    return GateEvidence.judge_together([regression.examine(pairs)])[0]


def difference(pairs: RunPairing) -> Difference:
    return Difference.between(pairs, pairs.everything(), ["score"], confidence=0.95)["score"]


def test_a_drop_that_a_milder_judge_hides_is_found() -> None:
    scores = noisy(60, 1)
    same = run(scores)
    assert judged(gate(0.05), across(same, same)).outcome == "passed"
    found = judged(gate(0.05), across(same, same, score=MILDER))
    assert (found.outcome, found.value) == ("failed", pytest.approx(0.2))
    assert "across a change of judge, which by itself moves it by +0.2000 (95% interval 0.1800..0.2200)" in found.reason


def test_a_stricter_judge_makes_no_false_drop() -> None:
    before = noisy(60, 1)
    stricter = run([each - 0.2 for each in before])
    assert judged(gate(0.05), across(stricter, run(before))).outcome == "failed"
    found = judged(gate(0.05), across(stricter, run(before), score=Shift(-0.2, -0.22, -0.18)))
    assert (found.outcome, found.value) == ("passed", pytest.approx(0.0))


def test_the_uncertainty_of_the_shift_adds_to_that_of_the_cases() -> None:
    here, there = run(noisy(400, 2)), run(noisy(400, 3))
    plain = difference(across(here, there))
    certain = difference(across(here, there, score=Shift(0.1, 0.1, 0.1)))
    unsure = difference(across(here, there, score=Shift(0.1, 0.0, 0.2)))

    def half(found: Difference) -> float:
        assert found.low is not None
        assert found.high is not None
        return (found.high - found.low) / 2

    assert plain.difference is not None
    assert certain.difference == unsure.difference == pytest.approx(plain.difference - 0.1)
    assert half(certain) == pytest.approx(half(plain))
    assert half(unsure) == pytest.approx(np.hypot(half(plain), 0.1), rel=0.05)


def test_a_shift_that_is_too_uncertain_establishes_nothing() -> None:
    same = run(noisy(60, 1))
    assert judged(gate(0.05), across(same, same, score=Shift(0.2, -0.3, 0.7))).outcome == "undecided"
    safe = judged(gate(0.05, rule="non_inferiority"), across(same, same, score=Shift(0.0, -0.5, 0.5)))
    assert safe.outcome == "undecided"
    assert safe.reason.startswith("cannot tell: the interval of the bridge between the judges is 1.0000 wide")
    fallen = judged(gate(0.05, rule="non_inferiority"), across(run([0.0] * 60), same, score=Shift(0.0, -0.2, 0.2)))
    assert fallen.outcome == "failed"


@pytest.mark.parametrize("test", ["mcnemar", "wilcoxon", "permutation"])
def test_tests_of_single_cases_give_way_to_the_bootstrap(test: str) -> None:
    same = run([0, 1] * 30)
    found = judged(gate(0.05, test=test), across(same, same, score=MILDER))
    assert found.outcome == "failed"
    assert f"bootstrap instead of {test}, which needs one judge" in found.reason


@pytest.mark.parametrize("more", [{"by": "talk"}, {"rule": "anytime"}])
def test_what_no_shift_was_measured_for_is_not_comparable(more: dict[str, str]) -> None:
    same = run(noisy(20, 1), labels=["a", "b"] * 10)
    regression = gate(0.05, **more)
    assert "not comparable" not in judged(regression, across(same, same)).reason
    found = judged(regression, across(same, same, score=MILDER))
    assert (found.outcome, found.reason[:14]) == ("failed", "not comparable")


def test_the_mean_over_cases_has_a_shift_of_its_own() -> None:
    same = run(noisy(60, 1))
    pairs = across(same, same, **{"mean(score)": MILDER})
    assert judged(gate(0.05), pairs).outcome == "passed"
    assert judged(gate(0.05, statistic="mean"), pairs).outcome == "failed"

"""Verdicts on gates before all cases have run."""

from collections.abc import Callable

import numpy as np
import pytest
from builders import gate_of, parse_gate

from pytest_llmeval.core import FloatArray, Metric
from pytest_llmeval.gates import ChangeGate, Gate
from pytest_llmeval.workbench.early._evidence import EarlyVerdict, PartScores, decide_gate

F1 = Metric("f1", averaged=True)
LEVEL = 0.05


def part(
    scores: FloatArray, of: int, group: str = "", members: FloatArray | None = None, **flags: FloatArray
) -> PartScores:
    nothing = np.zeros(len(scores), dtype=bool)
    every = np.ones(of, dtype=bool) if members is None else members
    return PartScores(group, every, scores, flags.get("errored", nothing), flags.get("left_out", nothing))


def verdict(gate: Gate, scores: FloatArray, of: int, **flags: FloatArray) -> EarlyVerdict | None:
    return decide_gate(gate, [part(np.asarray(scores), of, **flags)], np.arange(of), F1, LEVEL)


def drop(**keys: object) -> ChangeGate:
    return gate_of({"metric": "f1", **keys})


def test_a_gate_that_is_clearly_met_passes_before_the_end() -> None:
    found = verdict(parse_gate("f1 >= 0.5"), np.full(40, 0.9), 200)
    assert found is not None
    assert (found.result.outcome, found.result.value, found.result.limit) == ("passed", pytest.approx(0.9), 0.5)
    assert 5 <= found.cases <= 40
    assert "f1 is 0.9000 in 40 of 200 cases; over all of them it meets >= 0.5, evidence" in found.result.reason


def test_a_gate_that_is_clearly_missed_fails_before_the_end() -> None:
    found = verdict(parse_gate("mean(f1) < 0.5"), np.full(40, 0.9), 200)
    assert found is not None
    assert found.result.outcome == "failed"
    assert "mean(f1) is 0.9000 in 40 of 200 cases; over all of them it misses < 0.5" in found.result.reason


def test_scores_near_the_limit_decide_nothing() -> None:
    assert verdict(parse_gate("f1 >= 0.5"), np.array([0.4, 0.6] * 50), 200) is None


def test_a_gate_with_two_limits_needs_both() -> None:
    gate = gate_of({"metric": "f1", "min": 0.2, "max": 0.95})
    near = np.array([0.95, 0.94, 0.96] * 14)
    assert verdict(gate, near, 200) is None
    found = verdict(gate, np.full(42, 0.5), 200)
    assert found is not None
    assert found.result.outcome == "passed"


def test_one_bad_group_fails_a_gate_and_all_good_ones_pass_it() -> None:
    gate = gate_of({"metric": "f1", "min": 0.5, "by": "topic"})
    first = np.arange(200) % 2 == 0
    units = np.arange(200)

    def judged(low: float) -> EarlyVerdict | None:
        scores = np.where(first, 0.9, low)[:100]
        groups = [
            part(np.where(mask[:100], scores, np.nan), 200, name, mask) for name, mask in (("a", first), ("b", ~first))
        ]
        return decide_gate(gate, groups, units, F1, LEVEL)

    bad, good = judged(0.1), judged(0.8)
    assert bad is not None
    assert good is not None
    assert (bad.result.outcome, good.result.outcome) == ("failed", "passed")
    assert bad.result.reason.startswith("b: f1 is 0.1000 in 50 of 100 cases")
    assert good.result.reason.startswith("all 2 groups pass, the last one b: ")


def test_an_error_decides_at_once_since_it_does_not_go_away() -> None:
    errored = np.arange(30) == 4
    found = verdict(parse_gate("f1 >= 0.5"), np.where(errored, np.nan, 0.9), 200, errored=errored)
    assert found is not None
    assert (found.result.outcome, found.cases) == ("failed", 5)
    assert found.result.reason.endswith("1 case errored")


def test_enough_cases_must_have_a_score() -> None:
    gate = gate_of({"metric": "f1", "min": 0.5, "min_scored": 38})
    found = verdict(gate, np.full(40, 0.9), 200)
    assert found is not None
    assert found.cases == 38
    assert verdict(gate, np.full(37, 0.9), 200) is None


def test_scores_outside_the_declared_range_decide_nothing() -> None:
    assert verdict(parse_gate("f1 >= 0.5"), np.full(40, 1.9), 200) is None


def test_drops_are_established_and_ruled_out() -> None:
    gate = drop(max_drop=0.02)
    bad, good = verdict(gate, np.full(60, 0.4), 200), verdict(gate, np.full(60, -0.2), 200)
    assert bad is not None
    assert good is not None
    assert (bad.result.outcome, good.result.outcome) == ("failed", "passed")
    assert "f1 drop 0.4000 in 60 of 200 cases; a drop beyond 0.02 is significant" in bad.result.reason
    assert "over all of them it is not beyond 0.02" in good.result.reason


def test_gains_are_established() -> None:
    gate = drop(min_gain=0.05, against="other")
    found, lost = verdict(gate, np.full(60, -0.5), 200), verdict(gate, np.full(60, 0.2), 200)
    assert found is not None
    assert lost is not None
    assert (found.result.outcome, lost.result.outcome) == ("passed", "failed")
    assert "f1 gain 0.5000 in 60 of 200 cases; a gain above 0.05 is significant" in found.result.reason
    assert found.result.value == pytest.approx(0.5)


def test_safety_is_not_proven_by_cases_that_are_left_out() -> None:
    gate = drop(max_drop=0.1, rule="non_inferiority")
    safe = np.full(60, -0.3)
    assert verdict(gate, safe, 200) is not None
    assert verdict(gate, safe, 200, left_out=np.arange(60) == 3) is None


def test_few_cases_establish_no_drop_early_that_all_of_them_could_not() -> None:
    assert verdict(drop(max_drop=0.02), np.full(9, 1.0), 10) is None


@pytest.mark.release
@pytest.mark.parametrize("cases", [20, 100, 400])
@pytest.mark.parametrize("size", [1, 5])
def test_runs_as_good_as_the_baseline_rarely_fail(cases: int, size: int) -> None:
    """Cases are drawn, and so are the answers; clusters of five share what becomes of them."""
    gate = drop(max_drop=0.0)
    units = np.arange(cases) // size
    failed = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        moved = rng.choice([-1.0, 0.0, 1.0], size=cases // size, p=[0.15, 0.7, 0.15])
        found = decide_gate(gate, [part(np.repeat(moved, size)[: cases - 1], cases)], units, F1, LEVEL)
        failed += found is not None and found.result.outcome == "failed"
    assert failed <= 300 * LEVEL + 8


@pytest.mark.parametrize(
    ("gate", "metric", "fault"),
    [
        (parse_gate("f1 >= 0.5"), F1, ""),
        (parse_gate("mean(f1) >= 0.5"), Metric("f1"), ""),
        (parse_gate("f1 >= 0.5"), Metric("f1"), "mean(f1) can be judged early"),
        (parse_gate("p10(f1) >= 0.5"), F1, "p10(f1) is no mean of scores"),
        (parse_gate("low(f1) >= 0.5"), F1, "low(f1) is no mean of scores"),
        (parse_gate("f1 == 0.5"), F1, "equality"),
        (parse_gate("mean(f1) <= 0.5"), Metric("f1", high=None), "have no bounds"),
        (parse_gate("f1 >= 3"), Metric("f1", per_case=1, averaged=True), "have no bounds"),
        (parse_gate("f1[joy] >= 0.5"), None, "have no bounds"),
        (drop(max_drop=0.1), F1, ""),
        (drop(max_drop=0.1), Metric("f1"), "mean(f1) can be judged early"),
        (drop(max_drop=0.1, rule="anytime"), F1, "weighs whole runs"),
    ],
)
def test_what_can_be_judged_early(gate: Gate, metric: Metric | None, fault: str) -> None:
    found = gate.early_fault(metric)
    assert fault in found
    assert bool(found) == bool(fault)


Draw = Callable[[np.random.Generator, int], FloatArray]


@pytest.mark.parametrize("draw", [lambda rng, n: (rng.random(n) < 0.72) * 1.0, lambda rng, n: rng.beta(5.2, 2, n)])
def test_an_early_verdict_is_nearly_always_that_of_all_cases(draw: Draw) -> None:
    gate = parse_gate("f1 >= 0.7")
    wrong = 0
    for seed in range(300):
        scores = draw(np.random.default_rng(seed), 150)
        found = verdict(gate, scores[:149], 150)
        wrong += found is not None and (found.result.outcome == "passed") != (scores.mean() >= 0.7)
    assert wrong <= 300 * LEVEL + 8

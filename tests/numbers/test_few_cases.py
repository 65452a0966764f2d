"""Gates whose difference rests on few cases, on clusters, or stands beside other gates."""

import numpy as np
import pytest
from builders import binary, gate, judge, noisy, pairing, run

from pytest_llmeval import Metric
from pytest_llmeval.gates import ChangeGate, GateEvidence
from pytest_llmeval.gates._drop import GainGate
from pytest_llmeval.numbers import Evidence, compare
from pytest_llmeval.numbers._drop_tests import DropQuestion
from pytest_llmeval.numbers._significance import (
    effective_units,
    sign_flip_tails,
    skewed_tails,
    unseen_tail,
)


def jittered(size: int, lost: int = 0, seed: int = 1) -> list[float]:
    """Scores around 0.8, of which some are 0."""
    rng = np.random.default_rng(seed)
    return [0.0] * lost + [float(each) for each in 0.8 + 0.01 * rng.standard_normal(size - lost)]


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_jitter_does_not_prove_that_no_case_in_forty_collapses(lost: int) -> None:
    safe = gate(0.02, rule="non_inferiority")
    assert judge(safe, run(jittered(60, lost)), run([0.8] * 60)).outcome == "failed"
    assert judge(safe, run(jittered(200, lost + 2)), run([0.8] * 200)).outcome == "failed"


def test_enough_cases_prove_it_and_a_wider_limit_needs_fewer() -> None:
    assert judge(gate(0.02, rule="non_inferiority"), run(jittered(200)), run([0.8] * 200)).outcome == "passed"
    assert judge(gate(0.1, rule="non_inferiority"), run(jittered(60)), run([0.8] * 60)).outcome == "passed"


def test_collapses_of_three_in_a_hundred_are_seldom_called_safe(thorough: bool) -> None:
    rng = np.random.default_rng(2)
    passed, runs = 0, 150 if thorough else 10
    for seed in range(runs):
        lost = int(rng.binomial(60, 0.03))
        passed += (
            judge(gate(0.02, rule="non_inferiority"), run(jittered(60, lost, seed)), run([0.8] * 60)).outcome
            == "passed"
        )
    assert passed / runs <= 0.06


def test_small_losses_that_rare_gains_make_up_for_are_no_drop() -> None:
    rng = np.random.default_rng(3)
    lost = [float(each) for each in 0.002 * rng.random(20)]
    assert judge(gate(undecided="pass"), run(lost), run([0.05] * 20)).outcome == "undecided"
    fallen = compare(run(lost), run([0.05] * 20)).metrics["score"]
    assert fallen.p_value is not None
    assert fallen.p_value > 0.3
    assert fallen.high is not None
    assert fallen.high > 0


def test_a_plain_drop_is_found_beside_jitter() -> None:
    fallen = [max(0.0, each - 0.1) for each in noisy(50, 1)]
    assert judge(gate(), run(fallen), run(noisy(50, 1))).outcome == "failed"


def test_the_skewness_of_a_statistic_is_taken_out() -> None:
    even = np.array([-1.0, 1.0] * 20)
    symmetric = skewed_tails(even, 0.3)
    assert symmetric.above + symmetric.below == pytest.approx(1)
    rare = np.array([0.0] * 58 + [1.0] * 2)
    # Two of 60 seen where six are expected: 0.054 by the binomial distribution, 0.003 by Student's.
    assert 0.04 < skewed_tails(rare, 0.1).below < 0.15
    assert skewed_tails(np.array([0.1, 0.1]), 0.0) == (0.0, 1.0)


def test_the_signs_of_few_values_are_counted() -> None:
    assert sign_flip_tails(np.array([1.0, 1.0, 1.0, 0.0])) == (1 / 8, 1.0)
    assert sign_flip_tails(np.array([1.0] * 30)).above < 1e-4
    assert effective_units(np.array([1.0, -1.0, 1.0, 0.0])) == 3
    assert effective_units(np.array([1.0] + [0.01] * 50)) == pytest.approx(1, abs=0.02)
    assert effective_units(np.zeros(3)) == 0


def test_the_rule_of_three() -> None:
    assert unseen_tail(0.05, 1.0, 20) == pytest.approx(0.95**20)
    assert unseen_tail(0.5, 0.5, 3) == 0
    assert unseen_tail(-0.1, 0.5, 3) == 1


def found(here: list[float], there: list[float], labels: list[str] | None = None, max_drop: float = 0.02) -> Evidence:
    both = pairing(run(here, labels or ()), run(there, labels or ()))
    question = DropQuestion(both, both.everything(), "score", "value", max_drop, 0.95, "talk" if labels else None)
    return question.evidence("bootstrap")


SCORE = Metric("score")


def test_what_a_gate_could_have_found() -> None:
    few = found([0.0] * 5, [1.0] * 5).drop_power(gate(0.02), SCORE)
    assert (few.decides, few.least, few.observed, few.smallest) == (False, 1 / 32, 1.0, None)
    assert few.level == pytest.approx(0.025)
    enough = found([0.0] * 9, [1.0] * 9).drop_power(gate(0.02), SCORE)
    assert enough.decides
    beside = found([0.0] * 9, [1.0] * 9).drop_power(gate(0.02), SCORE, 21)
    assert not beside.decides
    assert beside.level == pytest.approx(0.025 / 21)


def test_clusters_count_and_what_is_wrong_already_cannot_fall() -> None:
    labels = [str(number % 5) for number in range(60)]
    assert not found([0.0] * 60, [1.0] * 60, labels).drop_power(gate(0.02), SCORE).decides
    assert found([0.0] * 60, [1.0] * 60).drop_power(gate(0.02), SCORE).decides
    assert not found([0.0] * 60, [1.0] * 4 + [0.0] * 56).drop_power(gate(0.02), SCORE).decides
    assert not found([0.0] * 60, [0.01] * 60).drop_power(gate(0.02), SCORE).decides
    assert found([0.0] * 60, [0.01] * 60).drop_power(gate(0.02), SCORE).least == 1


def test_one_side_and_less_confidence_make_deciding_easier() -> None:
    five = found([0.0] * 5, [1.0] * 5)
    assert five.drop_power(gate(0.02, alternative="less"), SCORE).decides
    assert five.drop_power(gate(0.02, confidence=0.9), SCORE).decides


def test_reasons_count_clusters() -> None:
    labels = [str(number % 5) for number in range(500)]
    reason = judge(gate(cluster_by="talk"), run([0.0] * 500, labels), run([1.0] * 500, labels)).reason
    assert "500 paired cases in 5 clusters" in reason
    assert "no drop is detectable with 500 cases in 5 clusters" in reason


def gain(**others: object) -> ChangeGate:
    return GainGate("score", 0.0, against="other", **others)  # type: ignore[arg-type]


def test_gains_over_another_system_are_adjusted_for_being_several() -> None:
    better, same = pairing(*binary(worse=5, better=18, same=77)), pairing(*binary(worse=5, better=5, same=90))
    (alone,) = GateEvidence.judge_together([gain().examine(better)])
    assert alone.outcome == "passed"
    beside = GateEvidence.judge_together([gain().examine(each) for each in (better, *[same] * 8)])
    assert beside[0].outcome == "failed"
    assert "Holm over 9 gates" in beside[0].reason
    assert "even the largest gain possible is found in fewer" in beside[0].reason
    assert "minimum detectable gain 0.1" in alone.reason


def test_of_ten_equal_systems_none_is_better_in_most_histories(thorough: bool) -> None:
    rng = np.random.default_rng(5)
    established, histories = 0, 30 if thorough else 2
    for _ in range(histories):
        chance = 0.3 + 0.5 * rng.random(100)
        answers = [run([float(each) for each in rng.random(100) < chance]) for _ in range(10)]
        verdicts = GateEvidence.judge_together([gain().examine(pairing(each, answers[0])) for each in answers[1:]])
        established += any(each.outcome == "passed" for each in verdicts)
    assert established / histories <= 0.1

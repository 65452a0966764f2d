"""Gates against a baseline: the grammar, the tests, and verdicts given together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from builders import binary, gate, gate_of, judge, noisy, pairing, run
from scipy import stats

from pytest_llmeval import Case, Result, get_evaluator, score
from pytest_llmeval.gates import ChangeGate, DropGate, GateEvidence
from pytest_llmeval.gates._drop import SafeGate


@pytest.mark.parametrize(
    ("entry", "expected", "text"),
    [
        ({"metric": "f1", "max_drop": 0.02}, DropGate("f1", 0.02), "drop(f1) <= 0.02"),
        (
            {"metric": "mean( f1 )", "max_drop": 0, "confidence": 0.9, "test": "bca"},
            DropGate("f1", 0.0, confidence=0.9, test="bca", statistic="mean"),
            "drop(mean(f1)) <= 0, bca, confidence 0.9",
        ),
        (
            {
                "metric": "f1",
                "max_drop": 1,
                "rule": "non_inferiority",
                "cluster_by": "talk",
                "by": "kind",
                "min_cases": 3,
            },
            SafeGate("f1", 1.0, cluster_by="talk", by="kind", min_cases=3),
            "drop(f1) <= 1, non_inferiority, cluster_by talk by kind",
        ),
        (
            {"metric": "f1", "max_drop": 0.1, "max_errors": 2, "partial": True},
            DropGate("f1", 0.1, max_errors=2, partial=True),
            "drop(f1) <= 0.1",
        ),
    ],
)
def test_the_mapping_form_is_read_and_written(entry: dict[str, Any], expected: ChangeGate, text: str) -> None:
    found = gate_of(entry)
    assert found == expected
    assert str(found) == text


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"rule": "non_inferiority"}, "max_drop is missing: rule applies to drops"),
        (
            {"rule": "non_inferiority", "min": 0.2},
            "rule does not apply to a gate with a limit",
        ),
        ({"max_drop": 0.1, "min": 0.5}, "found min beside max_drop, expected only one of them"),
        ({"max_drop": 0.1, "max": 0.5}, "found max beside max_drop, expected only one of them"),
        ({"max_drop": -0.1}, "found max_drop -0.1, expected a finite number of at least 0"),
        ({"max_drop": float("inf")}, "found max_drop inf, expected a finite number of at least 0"),
        ({"max_drop": 0.1, "confidence": 95}, "found confidence 95, expected a number between 0 and 1"),
        ({"max_drop": 0.1, "metric": "p10(f1)"}, r"found 'p10\(f1\)' with max_drop, expected a metric or its mean"),
        ({"max_drop": 0.1, "test": "mcnemar", "cluster_by": "k"}, "found cluster_by with test mcnemar"),
        ({"max_drop": 0.1, "test": "wilcoxon", "cluster_by": "k"}, "found cluster_by with test wilcoxon"),
        (
            {"max_drop": 0.1, "test": "wilcoxon", "rule": "non_inferiority"},
            "found test wilcoxon with rule non_inferiority, expected one of bootstrap, bca, permutation, or mcnemar",
        ),
        ({"min_gain": 0.1, "against": "b", "test": "wilcoxon"}, "found test wilcoxon with min_gain"),
        ({"max_drop": 0.1, "min_cases": 3}, "found min_cases without by"),
        ({"max_drop": 0.1, "max_drift": 0.05}, "found max_drift 0.05, expected a finite number of at least max_drop"),
        ({"max_drift": 0.1}, "max_drop is missing: max_drift applies to drops"),
        (
            {"max_drop": 0.1, "rule": "anytime", "by": "k"},
            "by does not apply to a gate with rule anytime",
        ),
        ({"max_drop": 0.1, "rule": "anytime", "test": "bca"}, "test does not apply to a gate with rule anytime"),
        ({"max_drop": 0.1, "rule": "anytime", "partial": True}, "partial does not apply to a gate with rule anytime"),
        ({"max_drop": 0.1, "max_errors": -1}, "found max_errors -1, expected at least 0"),
    ],
)
def test_what_makes_no_sense_is_refused(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gate_of({"metric": "f1", **entry})


@pytest.mark.parametrize("test", ["bootstrap", "bca", "permutation", "wilcoxon", "mcnemar"])
def test_a_clear_drop_is_established_and_noise_is_not(test: str) -> None:
    worse = binary(worse=40, better=5, same=155)
    noise = binary(worse=12, better=10, same=178)
    assert judge(gate(test=test), *worse).outcome == "failed"
    assert judge(gate(test=test), *noise).outcome == "passed"
    assert judge(gate(test=test), worse[1], worse[0]).outcome == "passed"


@pytest.mark.parametrize("test", ["bootstrap", "bca", "permutation", "mcnemar"])
def test_safety_is_established_with_many_cases_and_not_with_few(test: str) -> None:
    many, few = binary(worse=10, better=10, same=480), binary(worse=1, better=1, same=18)
    safe = gate(0.05, test=test, rule="non_inferiority")
    assert judge(safe, *many).outcome == "passed"
    assert judge(safe, *few).outcome == "failed"


@pytest.mark.parametrize("test", ["bootstrap", "bca", "permutation", "mcnemar"])
def test_a_drop_within_the_allowance_fails_no_gate(test: str) -> None:
    runs = binary(worse=40, better=5, same=155)
    assert judge(gate(0.15, test=test), *runs).outcome == "passed"
    assert judge(gate(0.05, test=test), *runs).outcome == "failed"


def test_the_reason_is_one_sentence_with_all_that_matters() -> None:
    found = judge(gate(0.05), *binary(worse=40, better=5, same=155))
    assert (found.gate, found.outcome, found.limit) == ("drop(score) <= 0.05", "failed", 0.05)
    assert found.value == pytest.approx(0.175)
    assert found.reason == (
        "score 0.9750 -> 0.8000, drop 0.1750 (95% interval 0.1150..0.2400, 200 paired cases); "
        "a drop beyond 0.05 is significant, p 0.0001; minimum detectable drop 0.1603"
    )


def test_of_a_metric_of_which_less_is_better_a_rise_is_the_drop() -> None:
    here, there = binary(worse=40, better=5, same=155)
    for test in ("bootstrap", "bca", "permutation", "wilcoxon", "mcnemar"):
        same = judge(gate(test=test), here, there)
        mirrored = judge(gate(metric="loss", test=test), here, there)
        assert (mirrored.outcome, mirrored.value) == (same.outcome, pytest.approx(same.value))
        assert mirrored.reason.partition("drop")[2] == same.reason.partition("drop")[2]


def test_mcnemar_is_exact() -> None:
    found = judge(gate(test="mcnemar", rule="non_inferiority"), *binary(worse=3, better=9, same=40))
    wanted = stats.binomtest(3, 12, alternative="less").pvalue
    assert f"p {min(1, 2 * wanted):.4f}" in found.reason
    assert "3 worse, 9 better" in found.reason
    found = judge(gate(test="mcnemar"), *binary(worse=9, better=1, same=40))
    assert f"p {stats.binomtest(9, 10).pvalue:.4f}" in found.reason


def test_wilcoxon_is_that_of_the_case_scores() -> None:
    here, there = noisy(40, 1), noisy(40, 2)
    found = judge(gate(test="wilcoxon", metric="score"), run(here), run(there))
    wanted = stats.wilcoxon(np.array(there) - np.array(here), alternative="greater").pvalue
    assert f"p {min(1, 2 * wanted):.4f}" in found.reason


def test_permutation_agrees_with_scipy() -> None:
    here, there = noisy(40, 1, 0.05), noisy(40, 2)
    found = gate(test="permutation").examine(pairing(run(here), run(there))).examined[0]
    wanted = stats.permutation_test(
        (np.array(there), np.array(here)),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=9_999,
        alternative="greater",
        rng=np.random.default_rng(1),
    ).pvalue
    assert found.p_value == pytest.approx(2 * wanted, abs=0.02)


def pooled(hits: Sequence[int]) -> Result:
    """Cases of one or nine items: the pooled accuracy is not the mean of the cases'."""
    cases = [
        Case(f"{number:02}", expected=["a"] * size, prediction=["a" if hit else "b"] * size)
        for number, (size, hit) in enumerate(zip([1, 9] * 20, hits, strict=True))
    ]
    return score(get_evaluator("classification"), cases, confidence=None)


@pytest.mark.parametrize("test", ["wilcoxon", "mcnemar"])
def test_tests_of_case_scores_refuse_a_pooled_metric_and_say_what_to_write(test: str) -> None:
    found = judge(gate(metric="accuracy", test=test), pooled([1, 0] * 20), pooled([1, 1] * 20))
    assert found.outcome == "failed"
    assert "accuracy is not a mean of them: use mean(accuracy) or test bootstrap" in found.reason
    again = judge(gate(metric="accuracy", test=test, statistic="mean"), pooled([1, 0] * 20), pooled([1, 1] * 20))
    whose = " of the typical case" if test == "wilcoxon" else ""
    assert f"a drop{whose} beyond 0 is significant" in again.reason


def test_permutation_exchanges_counts_of_a_pooled_metric_but_cannot_shift_them() -> None:
    runs = pooled([1, 0] * 20), pooled([1, 1] * 20)
    assert judge(gate(metric="accuracy", test="permutation"), *runs).outcome == "failed"
    assert judge(gate(metric="accuracy", test="permutation"), *reversed(runs)).outcome == "passed"
    shifted = judge(gate(0.1, metric="accuracy", test="permutation"), *runs)
    assert "is not a mean of them" in shifted.reason


def test_mcnemar_refuses_scores_between_0_and_1() -> None:
    found = judge(gate(test="mcnemar"), run([0.25, 1, 0]), run([1, 1, 0]))
    assert (found.outcome, found.reason) == (
        "failed",
        "test mcnemar needs scores of 0 and 1, found 0.25: use test bootstrap or wilcoxon",
    )


def test_other_cases_are_judged_unpaired_and_said_so() -> None:
    found = judge(gate(test="wilcoxon"), run(noisy(50, 1, 0.4), start=100), run(noisy(60, 2)))
    assert found.outcome == "failed"
    assert "50 against 60 cases" in found.reason
    assert "unpaired: 0 cases in common, 50 only in this run, 60 only in the baseline" in found.reason
    assert "bootstrap instead of wilcoxon, which needs paired cases" in found.reason


def test_equal_runs_prove_no_drop_and_safety_only_if_they_are_many() -> None:
    for size, outcome in ((20, "failed"), (200, "passed")):
        result = run([1, 0] * (size // 2))
        for test in ("bootstrap", "bca", "permutation", "wilcoxon", "mcnemar"):
            assert judge(gate(0.02, test=test), result, result).outcome == ("undecided" if size == 20 else "passed")
            if test == "wilcoxon":
                continue
            safe = judge(gate(0.02, test=test, rule="non_inferiority"), result, result)
            assert safe.outcome == outcome
            assert ("p 0.0352" in safe.reason) == (size == 200)  # 2 * 0.98**200; a p of 1 is no reason to fail
            most = 1 - 0.025 ** (1 / size)
            assert f"smallest max_drop that an equally good run meets {most:.4f}" in safe.reason
            assert f"95% interval -{most:.4f}..{most:.4f}" in safe.reason


def test_a_single_case_proves_nothing() -> None:
    found = judge(gate(undecided="pass"), run([0]), run([1]))
    assert (found.outcome, found.undecided) == ("undecided", True)
    assert "drop 1.0000 (no interval, 1 paired case)" in found.reason
    assert judge(gate(rule="non_inferiority"), run([1]), run([0])).outcome == "failed"


def test_all_cases_fallen_alike_is_no_certainty_if_they_are_few() -> None:
    assert judge(gate(undecided="pass"), run([0] * 3), run([1] * 3)).outcome == "undecided"
    observed = judge(gate(), run([0] * 3), run([1] * 3))
    assert (observed.outcome, observed.undecided) == ("failed", True)
    assert judge(gate(), run([0] * 7), run([1] * 7)).outcome == "failed"


@pytest.mark.parametrize(
    ("here", "there", "reason"),
    [
        ([None] * 3, [1] * 3, "score is undefined"),
        ([None] * 3, [None] * 3, "score is undefined, in the baseline too"),
        ([1] * 3, [None] * 3, "score has no value in the baseline"),
        ([1, "error", 1], [1] * 3, "1 case errored"),
        ([None] * 3, [1] * 4, "score is undefined"),
        ([1] * 3, [None] * 4, "score has no value in the baseline"),
    ],
)
@pytest.mark.parametrize("rule", ["significant_drop", "non_inferiority"])
def test_what_cannot_be_compared_fails_with_its_reason(
    here: list[Any], there: list[Any], reason: str, rule: str
) -> None:
    found = judge(gate(0.1, rule=rule), run(here, start=100 * (len(here) != len(there))), run(there))
    assert (found.outcome, found.reason) == ("failed", reason)


def test_errored_cases_can_be_tolerated_and_are_left_out_of_the_pairs() -> None:
    found = judge(gate(0.1, max_errors=1), run(["error", *[1] * 30]), run([1] * 31))
    assert found.outcome == "passed"
    assert "30 paired cases" in found.reason
    assert "1 case left out, errored or not run" in found.reason
    assert (
        judge(gate(0.1, max_errors=1), run(["error", "error", 1]), run([1] * 3)).reason == "2 cases errored, 1 allowed"
    )


def test_without_baseline_metric_or_label_a_gate_fails() -> None:
    assert GateEvidence.judge_together([gate().examine(None, absent="no baseline: approve one")])[0].reason == (
        "no baseline: approve one"
    )
    assert GateEvidence.judge_together([gate().examine(None)])[0].outcome == "failed"
    both = run([1, 1]), run([1, 1])
    assert judge(gate(metric="f2"), *both).reason == "f2 does not occur in the results"
    assert judge(gate(cluster_by="talk"), *both).reason == "no case has the label 'talk' to cluster by"


def test_part_of_a_suite_is_not_judged_unless_the_gate_says_so() -> None:
    both = binary(worse=40, better=0, same=60)
    found = judge(gate(), *both, incomplete="3 of 9 cases ran")
    assert (found.outcome, found.reason) == ("not_judged", "not evaluated: 3 of 9 cases ran")
    assert judge(gate(partial=True), *both, incomplete="3 of 9 cases ran").outcome == "failed"


def test_groups_are_judged_one_by_one() -> None:
    kinds = ["x"] * 30 + ["y"] * 30 + ["z"] * 3
    here = run([0] * 20 + [1] * 43, kinds)
    there = run([1] * 63, kinds)
    found = judge(gate(by="talk", min_cases=10), here, there)
    assert found.outcome == "failed"
    assert found.reason.startswith("1 of 2 groups fail: x: score 1.0000 -> 0.3333, drop 0.6667")
    assert found.reason.endswith("not evaluated, under 10 cases: z")
    assert "by Hochberg over 2 groups" in found.reason
    assert judge(gate(by="talk", min_cases=10), there, there).reason.startswith("all 2 groups pass, largest drop x: ")
    assert judge(gate(by="talk", min_cases=99), here, there).reason == "no group by 'talk' has 99 cases to compare"


def test_many_gates_need_stronger_evidence_than_one() -> None:
    weak, none = pairing(*binary(worse=9, better=1, same=90)), pairing(*binary(worse=5, better=5, same=90))
    alone = GateEvidence.judge_together([gate(test="mcnemar").examine(weak)])
    assert alone[0].outcome == "failed"
    assert f"p {22 / 1024:.4f};" in alone[0].reason
    together = GateEvidence.judge_together([gate(test="mcnemar").examine(each) for each in (none, weak, none)])
    assert [each.outcome for each in together] == ["passed"] * 3
    assert f"p {3 * 22 / 1024:.4f} by Holm over 3 gates" in together[1].reason


def test_proofs_of_safety_are_not_adjusted_since_all_must_hold() -> None:
    safe = pairing(*binary(worse=10, better=10, same=480))
    findings = [gate(0.05, rule="non_inferiority", test="mcnemar").examine(safe) for _ in range(3)]
    assert len({each.reason for each in GateEvidence.judge_together(findings)}) == 1
    assert GateEvidence.judge_together(findings[:1])[0] == GateEvidence.judge_together(findings)[0]


def test_clusters_weaken_what_dependent_cases_seem_to_prove() -> None:
    talks = [str(number // 10) for number in range(60)]
    here, there = run([0] * 20 + [1] * 40, talks), run([1] * 60, talks)
    for test in ("bootstrap", "permutation"):
        assert judge(gate(test=test), here, there).outcome == "failed"
        assert judge(gate(test=test, cluster_by="talk"), here, there).outcome == "undecided"


def test_one_resampling_serves_all_gates_of_a_suite() -> None:
    both = pairing(*binary(worse=5, better=5, same=90))
    gate().examine(both)
    gate(metric="loss", test="mcnemar").examine(both)
    assert len(both.estimates) == 1


def test_of_many_groups_the_largest_drops_are_listed_and_the_others_counted() -> None:
    kinds = [f"g{number:02}" for number in range(25) for _ in range(30)]
    here = run([int(case >= number) for number in range(25) for case in range(30)], kinds)
    found = judge(gate(by="talk", min_scored=31), here, run([1] * 750, kinds))
    assert found.reason.startswith("25 of 25 groups fail: g24: ")
    assert found.reason.endswith("g05: 30 cases compared, expected at least 31 (and 5 more)")

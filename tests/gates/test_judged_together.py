"""What gates against a baseline promise: many tests, few cases, cases left out."""

from itertools import combinations_with_replacement
from typing import Any

import pytest
from builders import binary, gate, gate_of, judge, noisy, pairing, run
from scipy import stats

from pytest_llmeval import Metric
from pytest_llmeval.core import GateResult
from pytest_llmeval.gates import ChangeGate, DropGate, Gate, GateEvidence
from pytest_llmeval.numbers._significance import mcnemar_tails


def groups(*here: int, size: int = 12) -> tuple[Any, Any]:
    """As many groups as numbers; each says how many of its cases turned from right to wrong."""
    kinds = [str(number) for number in range(len(here)) for _ in range(size)]
    return run([score for wrong in here for score in [0] * wrong + [1] * (size - wrong)], kinds), run(
        [1] * len(kinds), kinds
    )


def test_however_many_groups_there_are_a_fall_of_all_cases_fails() -> None:
    found = judge(gate(by="talk"), *groups(*[12] * 260))
    assert found.outcome == "failed"
    assert found.reason.startswith("260 of 260 groups fail")
    assert "no drop is detectable with 12 cases in one group alone" in found.reason


@pytest.mark.parametrize("test", ["bootstrap", "bca", "permutation"])
def test_however_many_gates_there_are_a_plain_fall_fails(test: str) -> None:
    worse, same = pairing(*binary(worse=60, better=5, same=135)), pairing(*binary(worse=5, better=5, same=190))
    clean = gate(confidence=0.999).examine(same)
    verdicts = GateEvidence.judge_together([gate(confidence=0.999, test=test).examine(worse), *[clean] * 400])
    assert [each.outcome for each in verdicts] == ["failed", *["passed"] * 400]


def promised(result: GateResult) -> str:
    return next(part for part in result.reason.split("; ") if "detectable" in part or "possible" in part)


def test_a_drop_that_no_gate_can_find_is_not_promised() -> None:
    assert promised(judge(gate(), *binary(worse=1, better=1, same=3))) == "no drop is detectable with 5 cases"
    few = judge(gate(0.3), *binary(worse=3, better=3, same=6))
    assert promised(few) == "even the largest drop possible is found in fewer than 80 of 100 runs"
    many = [gate().examine(pairing(*binary(worse=1, better=1, same=8))) for _ in range(40)]
    assert promised(GateEvidence.judge_together(many)[0]) == "no drop is detectable with 10 cases"
    apart = judge(gate(), run([1, 0]), run([1, 0], start=5))
    assert promised(apart) == "no drop is detectable with 2 cases"


@pytest.mark.parametrize("size", [20, 100, 400])
def test_the_promised_drop_of_a_share_is_found_in_eighty_of_a_hundred_runs(size: int) -> None:
    reason = promised(judge(gate(test="mcnemar"), *binary(worse=0, better=0, same=size)))
    drop = float(reason.removeprefix("minimum detectable drop "))
    power = sum(
        stats.binom.pmf(worse, size, drop)
        for worse in range(size + 1)
        if 2 * mcnemar_tails(worse, 0, size, 0.0).above <= 0.05
    )
    assert 0.79 < power < 0.97


def test_what_an_equally_good_run_meets_is_no_less_than_few_changes_prove() -> None:
    safe = judge(gate(0.02, rule="non_inferiority"), *binary(worse=1, better=1, same=98))
    assert f"equally good run meets {stats.beta.ppf(0.975, 3, 98):.4f}" in safe.reason


def test_cases_left_out_fail_a_proof_of_safety_unless_they_are_allowed() -> None:
    here, there = run([1] * 160 + [0] * 40), run([1] * 160 + ["error"] * 40)
    safe = {"rule": "non_inferiority", "confidence": 0.9}
    assert judge(gate(0.05, **safe), here, there).reason == (
        "40 cases left out of the comparison, errored or not run; max_left_out is 0"
    )
    allowed = judge(gate(0.05, max_left_out=40, **safe), here, there)
    assert allowed.outcome == "failed"
    assert "with the cases left out at their worst, drop 0.2000" in allowed.reason
    assert judge(gate(0.25, max_left_out=40, **safe), here, there).outcome == "passed"
    assert judge(gate(0.05, max_left_out=9), here, there).outcome == "failed"
    assert judge(gate(0.05), here, there).outcome == "passed"


def test_a_case_left_out_falls_from_the_score_that_it_has() -> None:
    better = judge(gate(0.05, rule="non_inferiority", max_left_out=40), run([1] * 200), run([1] * 160 + ["error"] * 40))
    assert better.outcome == "passed"
    assert "at their worst, drop 0.0000" in better.reason
    lost = judge(
        gate(0.05, metric="loss", rule="non_inferiority", max_left_out=3, max_errors=2),
        run(["error", "error", *[1] * 198]),
        run([0.4, "error", *[1] * 198]),
    )
    assert "at their worst, drop 0.0070" in lost.reason  # (0.4 + 1) / 200


def test_cases_left_out_of_a_metric_without_range_prove_no_safety(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builders.Answers.describe", lambda _: [Metric("score", high=None), Metric("loss")])
    found = judge(gate(9.0, rule="non_inferiority", max_left_out=1), run([1] * 99 + [1]), run([1] * 99 + ["error"]))
    assert found.outcome == "failed"
    assert "with the cases left out at their worst, has no bound" in found.reason


def test_too_few_cases_fail_where_a_gate_says_how_many_it_needs() -> None:
    few = judge(gate(0.1, min_scored=30), *binary(worse=1, better=1, same=18))
    assert (few.outcome, few.reason) == ("failed", "20 cases compared, expected at least 30")
    assert judge(gate(0.1, min_scored=20), *binary(worse=1, better=1, same=18)).outcome == "undecided"
    plain = gate_of({"metric": "score", "min": 0.5, "min_scored": 5})
    found = plain.judge(run([1, 1, 1, None]))
    assert (found.outcome, found.reason) == ("failed", "score is 1.0000: 3 cases scored, expected at least 5")
    assert isinstance(plain, Gate)
    assert plain.judge(run([1] * 5)).outcome == "passed"


def test_a_primary_gate_is_judged_at_the_full_level_beside_many_others() -> None:
    weak, none = pairing(*binary(worse=9, better=1, same=90)), pairing(*binary(worse=5, better=5, same=90))
    others = [gate(test="mcnemar").examine(none) for _ in range(19)]
    for primary, outcome in ((True, "failed"), (False, "passed")):
        found = GateEvidence.judge_together([gate(test="mcnemar", primary=primary).examine(weak), *others])
        assert found[0].outcome == outcome


def test_a_one_sided_test_finds_what_two_sides_do_not() -> None:
    runs = binary(worse=5, better=0, same=95)
    assert judge(gate(test="mcnemar"), *runs).outcome == "passed"
    found = judge(gate(test="mcnemar", alternative="less"), *runs)
    assert found.outcome == "failed"
    assert f"p {0.5**5:.4f}" in found.reason
    assert "90% interval 0.0" in found.reason
    assert judge(gate(test="mcnemar", alternative="less"), *reversed(runs)).outcome == "passed"


def test_mid_p_is_less_cautious_than_the_exact_test() -> None:
    runs = binary(worse=10, better=2, same=90)
    exact, mid = (judge(gate(test=test), *runs) for test in ("mcnemar", "mcnemar_mid_p"))
    wanted = stats.binomtest(10, 12).pvalue
    assert f"p {wanted:.4f}" in exact.reason
    assert f"p {wanted - stats.binom.pmf(10, 12, 0.5):.4f}" in mid.reason


def test_the_false_discovery_rate_finds_more_groups_than_hochberg() -> None:
    runs = groups(20, 20, 20, 9, 9, 9, *[0] * 14, size=20)
    strict, loose = (judge(gate(by="talk", adjust=adjust), *runs) for adjust in ("familywise", "fdr"))
    assert strict.reason.startswith("3 of 20 groups fail")
    assert loose.reason.startswith("6 of 20 groups fail")
    assert "by Benjamini-Hochberg over 20 groups" in loose.reason


def test_scores_that_only_one_run_has_are_not_paired_by_tests_of_scores() -> None:
    here, there = run([1] * 20), run([1] * 15 + [None] * 5)
    for test in ("mcnemar", "wilcoxon"):
        found = judge(gate(test=test), here, there)
        assert found.outcome == "failed"
        assert "5 cases have score in one run only: use test bootstrap" in found.reason
    assert "20 paired cases" in judge(gate(test="permutation"), here, there).reason


@pytest.mark.parametrize("test", ["bootstrap", "bca", "permutation", "mcnemar", "mcnemar_mid_p", "wilcoxon"])
@pytest.mark.parametrize("max_drop", [0.0, 0.05])
def test_the_interval_of_a_gate_holds_what_its_test_does_not_refute(test: str, max_drop: float) -> None:
    for worse, better, same in ((5, 0, 0), (9, 0, 91), (4, 3, 13), (30, 9, 61), (2, 0, 198)):
        found = gate(max_drop, test=test).examine(pairing(*binary(worse, better, same))).examined[0].evidence
        assert found is not None
        assert found.tails is not None
        assert found.interval is not None
        assert found.tails.above <= 0.025 or found.interval[0] <= max_drop + 1e-12
        assert found.tails.below <= 0.025 or found.interval[1] >= max_drop - 1e-12


@pytest.mark.parametrize(
    ("entry", "expected", "text"),
    [
        ({"alternative": "less"}, DropGate("f1", 0.0, alternative="less"), "drop(f1) <= 0, less"),
        (
            {"by": "kind", "adjust": "fdr", "min_scored": 9},
            DropGate("f1", 0.0, by="kind", adjust="fdr", min_scored=9),
            "drop(f1) <= 0, fdr by kind",
        ),
        (
            {"primary": True, "max_left_out": 3, "test": "mcnemar_mid_p"},
            DropGate("f1", 0.0, primary=True, max_left_out=3, test="mcnemar_mid_p"),
            "drop(f1) <= 0, mcnemar_mid_p",
        ),
    ],
)
def test_what_gates_can_say_is_read_and_written(entry: dict[str, Any], expected: ChangeGate, text: str) -> None:
    found = gate_of({"metric": "f1", "max_drop": 0, **entry})
    assert found == expected
    assert str(found) == text


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"alternative": "less", "confidence": 0.5}, "found confidence 0.5 with alternative less, expected more than"),
        ({"adjust": "fdr"}, "found adjust without by, expected both"),
        ({"max_left_out": -1}, "found max_left_out -1, expected at least 0"),
        ({"min_scored": 0}, "found min_scored 0, expected at least 1"),
        ({"max_drop": None, "primary": True}, "max_drop is missing: primary applies to drops"),
    ],
)
def test_what_makes_no_sense_is_refused(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gate_of({"metric": "f1", "max_drop": 0.1, **entry})


def test_the_size_of_noise_is_no_drop() -> None:
    found = judge(gate(0.02, alternative="less"), run(noisy(20, 1)), run(noisy(20, 2)))
    assert found.outcome == "passed"


def test_no_sentence_says_that_no_drop_is_found_next_to_one_that_is_established(thorough: bool) -> None:
    """A drop that was found is possible, also where even the largest is found in fewer than 80 of 100 runs."""
    established = []
    for size in (6, 9, 12) if thorough else (6,):
        for left, good in combinations_with_replacement(range(size + 1), 2):
            there = [1] * good + [0] * (size - good)
            here = [1] * left + [0] * (size - left)
            found = judge(gate(0), run(here), run(there))
            established += [found.reason] if " is significant" in found.reason else []
    assert established
    assert [reason for reason in established if "no drop" in reason] == []

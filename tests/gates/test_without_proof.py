"""Gates that fail without proof, cannot tell, or stand for a snapshot: rules, rates and words."""

import re
from math import comb

import numpy as np
import pytest
from builders import binary, gate, judge, noisy, pairing, run
from project import ROOT

from pytest_llmeval.gates import GateEvidence
from pytest_llmeval.numbers._inference import FarChanges
from pytest_llmeval.numbers._significance import net_fall_tail, sign_tail


def fallen(cases: int, worse: int, better: int = 0) -> tuple[list[int], list[int]]:
    """Scores of a run and its baseline, in which these many cases changed."""
    same = cases - worse - better
    return [0] * worse + [1] * (better + same), [1] * worse + [0] * better + [1] * same


@pytest.mark.parametrize("cases", [*range(3, 13), 20, 50])
@pytest.mark.parametrize("quiet", [0, 1, 99])
def test_a_collapse_of_half_of_the_cases_fails_whatever_stands_next_to_it(cases: int, quiet: int) -> None:
    here, there = fallen(cases, (cases + 1) // 2)
    same = gate(0.02).examine(pairing(run([1] * cases), run([1] * cases)))
    verdict = GateEvidence.judge_together([gate(0.02).examine(pairing(run(here), run(there))), *[same] * quiet])[0]
    assert verdict.outcome == "failed"


def test_the_page_says_where_no_rule_can_fail_on_collapses_and_seldom_err() -> None:
    """The chance of a collapse of half of the cases between equally good runs, which a gate must fail on."""
    one_way = 0.67 * 0.33

    def errs(n: int) -> float:
        return sum(comb(n, k) * one_way**k * (1 - 2 * one_way) ** (n - k) for k in range((n + 1) // 2, n + 1))

    page = (ROOT / "benchmarks/calibration.md").read_text(encoding="utf-8")
    shown = ", ".join(f"{errs(n):.3f} for {n}" for n in range(3, 7)).replace("for 3", "for 3 cases")
    assert f"{shown}, and at most {max(map(errs, range(7, 60))):.3f} for" in " ".join(page.split())


def test_half_of_the_score_of_all_cases_is_a_collapse() -> None:
    assert judge(gate(), run([0.4] * 5), run([0.8] * 5)).outcome == "failed"
    found = judge(gate(), run([0.3, 0.2, 0.1, 0.8, 0.8]), run([0.8] * 5))
    assert found.reason.startswith("failed without proof: 3 of 5 cases got worse by half of the score or more; ")
    assert judge(gate(metric="loss"), run([0.9] * 5), run([0.1] * 5)).outcome == "undecided"  # its score is 0.1
    assert judge(gate(metric="loss"), run([0, 0, 0, 1, 1]), run([1] * 5)).outcome == "failed"


def test_small_losses_that_an_unseen_gain_could_make_up_for_are_no_collapse() -> None:
    assert judge(gate(), run([0.0] * 20), run([0.05] * 20)).outcome == "undecided"
    assert judge(gate(), run([0.0] * 5), run([0.5] * 5)).outcome == "failed"


def test_clusters_collapse_as_one() -> None:
    talks = [str(number // 12) for number in range(60)]
    found = judge(gate(cluster_by="talk"), run([0] * 36 + [1] * 24, talks), run([1] * 60, talks))
    assert found.reason.startswith("failed without proof: 3 of 5 clusters got worse by half of the score or more; ")
    assert judge(gate(cluster_by="talk"), run([0] * 24 + [1] * 36, talks), run([1] * 60, talks)).outcome == "undecided"


def test_cases_that_rise_measure_luck() -> None:
    assert judge(gate(), *binary(worse=3, better=0, same=2)).outcome == "failed"
    assert judge(gate(), *binary(worse=4, better=1, same=0)).outcome == "undecided"
    assert judge(gate(), *binary(worse=2, better=0, same=3)).outcome == "undecided"
    found = judge(gate(), *binary(worse=9, better=1, same=6))
    assert found.reason.startswith(("failed without proof: 9 of 16 cases got worse, 1 better", "score"))


def test_other_gates_whose_cases_rise_make_falls_luck_and_never_the_reverse() -> None:
    fell = FarChanges(5, 3, 0)
    assert fell.is_collapse([], 0.05)
    assert fell.is_collapse([FarChanges(5, 0, 0)] * 99, 0.05)
    assert not fell.is_collapse([FarChanges(5, 2, 2)], 0.05)
    # Cases that never change do not take the luck of others back.
    assert not fell.is_collapse([FarChanges(5, 2, 2), *[FarChanges(50, 0, 0)] * 99], 0.05)


def test_the_tail_of_net_falls_is_that_of_the_trinomial_distribution() -> None:
    rng = np.random.default_rng(1)
    draws = rng.choice([-1, 0, 1], p=[0.2, 0.6, 0.2], size=(200_000, 7)).sum(axis=1)
    assert net_fall_tail(3, 7, 0.2) == pytest.approx(float((draws >= 3).mean()), abs=0.004)
    assert net_fall_tail(3, 3, 0.25) == pytest.approx(0.25**3)
    assert net_fall_tail(1, 2, 0.9) == pytest.approx(net_fall_tail(1, 2, 0.5))


@pytest.mark.parametrize(
    ("undecided", "outcome"), [("observed", "undecided"), ("pass", "undecided"), ("fail", "failed")]
)
def test_what_counts_without_proof_is_an_option(undecided: str, outcome: str) -> None:
    assert judge(gate(undecided=undecided), *binary(worse=1, better=0, same=5)).outcome == outcome
    collapsed = judge(gate(undecided=undecided), *binary(worse=4, better=0, same=1))
    assert collapsed.outcome == ("undecided" if undecided == "pass" else "failed")


@pytest.mark.parametrize(
    ("runs", "more", "reason"),
    [
        (
            (1, 0, 5),
            {},
            (
                "cannot tell: 6 cases. 33 more would be enough to find a drop of 0.5 in 9 of 10 runs; "
                "or set max_drop to 0.3; or `undecided: pass`"
            ),
        ),
        (
            (0, 0, 1),
            {},
            "cannot tell: 1 case. 51 more would be enough to find a drop of 0.5 in 9 of 10 runs; or `undecided: pass`",
        ),
        (
            (1, 0, 5),
            {"undecided": "pass"},
            "cannot tell: 6 cases. 33 more would be enough to find a drop of 0.5 in 9 of 10 runs",
        ),
        (
            (1, 0, 5),
            {"undecided": "fail"},
            (
                "failed without proof: cannot tell: 6 cases. 33 more would be enough to find a drop of 0.5 in 9 of 10 "
                "runs; or set max_drop to 0.3; or"
            ),
        ),
        ((3, 0, 2), {}, "failed without proof: 3 of 5 cases got worse"),
        ((4, 1, 45), {}, "not significant"),
    ],
)
def test_a_reason_begins_with_the_verdict_and_goes_on_with_the_next_step(
    runs: tuple[int, int, int], more: dict[str, str], reason: str
) -> None:
    found = judge(gate(0.02, **more), *binary(*runs))
    assert found.reason.startswith(reason if reason.endswith(" or") else f"{reason}; score ")


@pytest.mark.parametrize("cases", [2, 5, 6, 10, 15, 50])
def test_the_next_steps_do_what_they_promise(cases: int) -> None:
    runs = fallen(cases, 1, 1) if cases == 50 else fallen(cases, 1)
    if cases == 50:
        rng = np.random.default_rng(1)
        runs = [int(each) for each in rng.random(50) < 0.67], [int(each) for each in rng.random(50) < 0.67]
    found = judge(gate(0.02), *map(run, runs))
    assert found.outcome == "undecided"
    more = re.search(r"\. (\d+) more would be enough", found.reason)
    wider = re.search(r"set max_drop to ([\d.]+);", found.reason)
    assert more is not None
    assert wider is not None
    times = -(-(int(more[1]) + cases) // cases)
    assert judge(gate(0.02), *(run(each * times) for each in runs)).outcome != "undecided"
    assert judge(gate(float(wider[1])), *map(run, runs)).outcome == "passed"


def test_a_test_that_is_not_about_the_mean_names_the_typical_case() -> None:
    here, there = [0.0 if number % 7 == 0 else 0.99 for number in range(200)], [1.0] * 200
    found = judge(gate(0.02, test="wilcoxon"), run(here), run(there))
    assert "a drop of the typical case beyond 0.02 is not significant" in found.reason
    apart = judge(gate(test="wilcoxon"), run(noisy(50, 1, 0.4), start=100), run(noisy(60, 2)))
    assert "a drop beyond 0 is significant" in apart.reason  # by bootstrap, which is about the mean


@pytest.mark.parametrize("units", range(7, 21))
def test_both_rules_that_fail_a_gate_share_its_level(units: int) -> None:
    changes = [FarChanges(units, worse, better) for worse in range(1, units + 1) for better in range(units + 1 - worse)]
    red = [
        change for change in changes if sign_tail(change.worse, change.better) <= 0.025 or change.is_collapse([], 0.05)
    ]

    def errs(share: float) -> float:
        """The chance that equally good runs are red, if each unit falls, or rises, with this probability."""
        return sum(
            comb(units, change.worse)
            * comb(units - change.worse, change.better)
            * share ** (change.worse + change.better)
            * (1 - 2 * share) ** (units - change.worse - change.better)
            for change in red
        )

    assert max(map(errs, np.linspace(0.01, 0.5, 50))) <= (0.03 if units < 9 else 0.0251)

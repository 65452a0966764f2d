"""Comparing two runs: what is paired with what, and what the numbers say."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from builders import Answers, gate, judge, noisy, run
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from scipy import stats
from strategies import SplitAverage

from pytest_llmeval import Case, Observation, Result, compare, get_evaluator, score
from pytest_llmeval.core import CaseOutcome, CaseRecord
from pytest_llmeval.numbers import CaseStatistics, summarize
from pytest_llmeval.numbers._significance import mcnemar_interval


def test_values_and_difference_are_those_of_the_runs() -> None:
    here, there = run([1, 0, 0.5, 1] * 10), run([1, 1, 0.5, 1] * 10)
    found = compare(here, there).metrics["score"]
    assert (found.value, found.baseline) == (here.metrics["score"].value, there.metrics["score"].value)
    assert found.difference == pytest.approx(-0.25)
    assert found.drop == pytest.approx(0.25)
    assert found.low is not None
    assert found.high is not None
    assert found.low < -0.25 < found.high < 0
    assert found.drop_interval == (-found.high, -found.low)
    assert found.cases == found.baseline_cases == 40


def test_of_a_metric_of_which_less_is_better_a_rise_is_the_drop() -> None:
    found = compare(run([0] * 20 + [1] * 20), run([1] * 40)).metrics
    assert found["loss"].difference == pytest.approx(0.5)
    assert found["loss"].drop == found["score"].drop == pytest.approx(0.5)
    assert found["loss"].drop_interval == pytest.approx(found["score"].drop_interval)


def test_the_interval_of_a_mean_is_about_that_of_normal_theory() -> None:
    here, there = noisy(400, 1, 0.03), noisy(400, 2)
    found = compare(run(here), run(there)).metrics["score"]
    paired = np.array(here) - np.array(there)
    half = 1.96 * paired.std() / 20
    assert found.low == pytest.approx(paired.mean() - half, abs=0.002)
    assert found.high == pytest.approx(paired.mean() + half, abs=0.002)
    assert found.p_value == pytest.approx(stats.ttest_1samp(paired, 0).pvalue, abs=0.02)
    assert found.detectable == pytest.approx((1.96 + 0.8416) * paired.std() / 20, rel=0.05)


def test_pairing_sees_what_unpaired_runs_do_not() -> None:
    base = noisy(100, 3)
    worse = [max(0.0, each - 0.02) for each in base]
    paired = compare(run(worse), run(base))
    apart = compare(run(worse, start=500), run(base))
    assert paired.paired
    assert not apart.paired
    assert (apart.common, apart.only_current, apart.only_baseline) == (0, 100, 100)
    assert paired.metrics["score"].p_value is not None
    assert paired.metrics["score"].p_value < 0.02  # less, were it not for gains that a hundred cases may not show
    assert apart.metrics["score"].p_value is not None
    assert apart.metrics["score"].p_value > 0.2
    assert "unpaired: 0 cases in common, 100 only in this run, 100 only in the baseline" in apart.metrics["score"].notes


def test_common_cases_are_compared_in_pairs_and_the_others_left_out() -> None:
    found = compare(run([1.0] * 50), run([1.0] * 50 + [0.0] * 10))
    assert (found.paired, found.common, found.only_current, found.only_baseline) == (True, 50, 0, 10)
    metric = found.metrics["score"]
    assert (metric.cases, metric.baseline_cases, metric.difference) == (50, 50, 0)
    assert "50 unchanged cases compared; 10 gone (c050, c051, c052, c053, c054 and 5 more)" in metric.notes


def test_runs_without_a_common_case_are_compared_with_all_their_cases() -> None:
    found = compare(run(noisy(50, 1), start=100), run(noisy(60, 2)))
    assert (found.paired, found.common, found.only_current, found.only_baseline) == (False, 0, 50, 60)
    metric = found.metrics["score"]
    assert (metric.cases, metric.baseline_cases) == (50, 60)
    both = [noisy(50, 1), noisy(60, 2)]
    assert metric.difference == pytest.approx(np.mean(both[0]) - np.mean(both[1]))
    half = 1.96 * math.sqrt(sum(np.var(each) / len(each) for each in both))
    assert metric.high is not None
    assert metric.low is not None
    assert metric.high - metric.low == pytest.approx(2 * half, rel=0.05)


def test_equal_runs_have_no_difference_and_say_that_nothing_changed() -> None:
    result = run(noisy(40, 1))
    for method in ("percentile", "bca"):
        found = compare(result, result, method=method).metrics["score"]  # type: ignore[arg-type]  # both are methods
        assert (found.difference, found.p_value) == (0, 1)
        assert (found.low, found.high) == pytest.approx((0.025 ** (1 / 40) - 1, 1 - 0.025 ** (1 / 40)))
        assert f"minimum detectable drop {found.detectable:.4f}" in judge(gate(), result, result).reason
        assert found.notes == ("no case changed, too few to estimate how much the difference varies",)


def test_the_kept_statistics_of_a_run_are_as_good_as_the_run() -> None:
    here, there = run(noisy(40, 1)), run(noisy(40, 2))
    kept = CaseStatistics.from_lines(CaseStatistics.from_records(there.records).to_lines())
    found, wanted = compare(here, kept).metrics["score"], compare(here, there).metrics["score"]
    assert found.difference == pytest.approx(wanted.difference, abs=1e-11)
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), abs=1e-11)
    assert compare(there, kept).metrics["score"].difference == 0


@given(st.randoms(use_true_random=False))
def test_the_order_of_the_cases_changes_nothing(rng: random.Random) -> None:
    here, there = run(noisy(30, 1)), run(noisy(30, 2))
    shuffled = [replace(each, records=rng.sample(list(each.records), 30)) for each in (here, there)]
    assert compare(*shuffled).metrics == compare(here, there).metrics


def test_a_single_case_has_a_difference_but_no_interval() -> None:
    found = compare(run([0.2]), run([0.7])).metrics["score"]
    assert found.difference == pytest.approx(-0.5)
    assert (found.low, found.high, found.p_value, found.detectable) == (None, None, None, None)
    assert "only 1 case, too few to rely on the interval" in found.notes


def test_a_difference_beyond_the_range_of_a_metric_is_not_detectable() -> None:
    found = compare(run([0.0, 1.0, 1.0]), run([1.0, 0.0, 1.0])).metrics["score"]
    assert found.p_value is not None
    assert found.detectable is None


def labels_of(wrong: int, guess: str, size: int = 120) -> Result:
    """Score a classifier of three labels that gives one answer to its first cases."""
    cases = []
    for number in range(size):
        label = ("yes", "no", "maybe")[number % 3]
        cases.append(Case(f"{number:03}", expected=label, prediction=guess if number < wrong else label))
    return score(get_evaluator("classification"), cases, confidence=None)


@pytest.mark.parametrize("metric", ["accuracy", "f1_macro", "f1[maybe]", "mcc", "cohen_kappa"])
def test_cases_have_changed_where_their_counts_change_the_metric(metric: str) -> None:
    """Of one case alone, the correlation is undefined or 0 whatever was answered."""
    found = compare(labels_of(40, "yes"), labels_of(6, "yes")).metrics[metric]
    assert found.drop is not None
    assert found.drop > 0.1
    assert found.p_value is not None
    assert found.p_value < 0.002
    assert not found.notes


def test_a_change_that_a_metric_does_not_see_is_none_of_it() -> None:
    found = compare(labels_of(60, "yes"), labels_of(60, "no")).metrics
    assert any("no case changed" in note for note in found["f1[maybe]"].notes)
    assert not found["f1[yes]"].notes


def test_of_a_metric_that_no_case_has_nothing_is_said_about_the_interval() -> None:
    assert compare(run([]), run([])).metrics["score"].notes == ("no case to compare",)


@pytest.mark.parametrize("changed", [1, 4, 5, 6, 7, 11])
@pytest.mark.parametrize("same", [0, 30])
def test_the_interval_excludes_no_difference_exactly_where_the_p_value_does(changed: int, same: int) -> None:
    for better in (0, changed // 4):
        here = run([0] * (changed - better) + [1] * (better + same))
        there = run([1] * (changed - better) + [0] * better + [1] * same)
        for method in ("percentile", "bca"):
            found = compare(here, there, method=method).metrics["score"]  # type: ignore[arg-type]  # both are methods
            if found.p_value is not None and found.low is not None and found.high is not None:
                assert (found.low > 0 or found.high < 0) == (found.p_value <= 0.05), (found, method)


@given(st.lists(st.tuples(*[st.sampled_from([0, 0.25, 0.5, 1])] * 2), min_size=1, max_size=40))
def test_exchanged_runs_have_the_mirrored_difference_and_never_the_opposite_verdict(
    scores: list[tuple[float, float]],
) -> None:
    here, there = (run(list(each)) for each in zip(*scores, strict=True))
    found, mirrored = (compare(*pair).metrics["score"] for pair in ((here, there), (there, here)))
    assert found.difference == pytest.approx(-(mirrored.difference or 0.0), abs=1e-12)
    assert {found.verdict, mirrored.verdict} != {"declined"}
    assert {found.verdict, mirrored.verdict} != {"improved"}


def test_the_room_for_unseen_cases_is_that_of_the_current_value() -> None:
    low, high = run([0.5] * 40), run([0.95] * 40)
    fall, rise = compare(low, high).metrics["score"], compare(high, low).metrics["score"]
    assert (fall.verdict, rise.verdict) == ("declined", "improved")
    assert fall.drop_interval is not None
    assert rise.low is not None
    # An unseen case can fall from 0.95 to 0, which takes more of a rise back than a case from 0.5 to 1 takes of a fall.
    assert rise.low < fall.drop_interval[0] < 0.45


def test_five_of_five_changed_cases_leave_room_for_no_change() -> None:
    found = compare(run([0] * 5), run([1] * 5)).metrics["score"]
    assert (found.p_value, found.drop_interval) == (0.0625, (0, 1))
    sure = compare(run([0] * 9), run([1] * 9)).metrics["score"]
    assert sure.drop_interval == pytest.approx(mcnemar_interval(9, 0, 9, 0.95))


def test_few_changed_cases_cannot_be_significant() -> None:
    found = compare(run([0] * 4 + [1] * 96), run([1] * 100)).metrics["score"]
    assert found.p_value == 2 * 0.5**4
    assert "only 4 cases changed, too few to estimate how much the difference varies" in found.notes
    sure = compare(run([0] * 12 + [1] * 88), run([1] * 100)).metrics["score"]
    assert sure.p_value == pytest.approx(2 * 0.5**12, rel=0.2)
    assert sure.notes == ()


def test_two_unpaired_cases_cannot_be_significant() -> None:
    found = compare(run([0, 0], start=5), run([1, 1, 1])).metrics["score"]
    assert found.p_value == pytest.approx(2 / math.comb(4, 2))


def test_cases_that_errored_in_one_run_are_left_out_of_both() -> None:
    found = compare(run([1, 1, 0, "error", None, 1] * 6), run([1, 0, 0, 0, 0, "error"] * 6)).metrics["score"]
    assert (found.value, found.baseline) == (pytest.approx(2 / 3), pytest.approx(1 / 4))
    assert found.cases == found.baseline_cases == 24
    assert "12 cases left out, errored or not run" in found.notes


def test_a_metric_without_value_has_no_difference() -> None:
    for here, there, baseline in (
        ([None] * 3, [1] * 3, 1),
        ([1] * 3, ["error"] * 3, None),
        ([None] * 3,) * 2 + (None,),
    ):
        found = compare(run(here), run(there)).metrics["score"]
        assert (found.value, found.baseline, found.difference, found.p_value) == (None, baseline, None, None)


def test_no_case_at_all_gives_no_value() -> None:
    found = compare(run([]), run([])).metrics["score"]
    assert (found.value, found.difference, found.low, found.cases) == (None, None, None, 0)


def test_infinite_and_undefined_formulas_stay_inside() -> None:
    cases = [Case(str(number), expected="x", prediction=[number - 2.0, 0]) for number in range(5)]
    result = score(SplitAverage(), cases, confidence=None)
    found = compare(result, result).metrics
    assert found["ratio"].value is None
    assert found["ratio"].difference is None
    assert found["sum"].difference == 0


def test_the_mean_of_the_scores_can_be_compared_instead_of_the_pooled_value() -> None:
    def answers(hits: Sequence[int]) -> Result:
        sizes = [1, 9] * 20
        cases = [
            Case(f"{number:02}", expected=["a"] * size, prediction=["a" if hit else "b"] * size)
            for number, (size, hit) in enumerate(zip(sizes, hits, strict=True))
        ]
        return score(get_evaluator("classification"), cases, confidence=None)

    here, there = answers([1, 0] * 20), answers([1, 1] * 20)
    assert compare(here, there).metrics["accuracy"].difference == pytest.approx(-0.9)
    assert compare(here, there, statistic="mean").metrics["accuracy"].difference == pytest.approx(-0.5)


def test_clusters_are_drawn_as_a_whole() -> None:
    talks = [str(number // 10) for number in range(100)]
    effect = np.random.default_rng(1).choice([-0.2, 0.0, 0.2], 10)
    base = noisy(100, 2)
    here = [each + effect[number // 10] for number, each in enumerate(base)]
    alone = compare(run(here, talks), run(base, talks)).metrics["score"]
    together = compare(run(here, talks), run(base, talks), cluster_by="talk").metrics["score"]
    assert together.difference == alone.difference
    assert alone.low is not None
    assert alone.high is not None
    assert together.low is not None
    assert together.high is not None
    assert together.high - together.low > 2.5 * (alone.high - alone.low)
    assert not any("only 10 clusters" in note for note in together.notes)
    few = compare(run(here[:90], talks[:90]), run(base[:90], talks[:90]), cluster_by="talk").metrics["score"]
    assert "only 9 clusters, too few to rely on the interval" in few.notes


def test_clusters_of_one_case_are_cases() -> None:
    names = [f"{number:03}" for number in range(40)]
    here, there = run(noisy(40, 1), names), run(noisy(40, 2), names)
    assert compare(here, there, cluster_by="talk").metrics["score"].low == compare(here, there).metrics["score"].low


def test_cases_without_the_label_are_clusters_of_their_own() -> None:
    def records(seed: int) -> list[CaseRecord]:
        scores = noisy(40, seed)
        return [
            CaseRecord(
                f"{number:02}",
                {"talk": "x"} if number < 2 else {},
                observations={"answers": Observation({"score": each, "n": 1})},
            )
            for number, each in enumerate(scores)
        ]

    here, there = (summarize({"answers": Answers()}, records(seed), confidence=None) for seed in (1, 2))
    assert not any("cluster" in note for note in compare(here, there, cluster_by="talk").metrics["score"].notes)


def test_bca_leans_where_a_difference_is_skewed() -> None:
    base = [0.5] * 60
    here = [0.5] * 48 + [0.45] * 9 + [0.0] * 3
    plain = compare(run(here), run(base)).metrics["score"]
    bent = compare(run(here), run(base), method="bca").metrics["score"]
    assert plain.low is not None
    assert bent.low is not None
    assert bent.low < plain.low


def test_pass_rate_is_compared_like_any_metric() -> None:
    def outcomes(*listed: CaseOutcome) -> Result:
        seen = {"answers": Observation({"score": 1, "n": 1})}
        records = [CaseRecord(str(number), {}, each, seen) for number, each in enumerate(listed)]
        return summarize({"answers": Answers()}, records, confidence=None)

    here, there = outcomes(*["passed", "failed"] * 20), outcomes(*["passed"] * 40)
    assert compare(here, there).metrics["pass_rate"].difference == -0.5


def test_another_signature_is_told() -> None:
    found = compare(run([1.0] * 3, signed="v:2"), run([1.0] * 3, signed="v:1")).metrics
    assert "measured in different ways: 'v:2', baseline 'v:1'" in found["score"].notes
    assert not any("different ways" in note for note in found["loss"].notes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"confidence": 1.0}, "found confidence 1.0, expected a number between 0 and 1"),
        ({"method": "bcA"}, "found method 'bcA', expected 'percentile' or 'bca'"),
        ({"statistic": "median"}, "found statistic 'median', expected 'value' or 'mean'"),
        ({"cluster_by": "tlak"}, "found cluster_by 'tlak', expected a label of the cases"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare(run([1], ["a"]), run([1], ["a"]), **arguments)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_more_confidence_gives_a_wider_interval(confidence: float, method: Any) -> None:
    here, there = run(noisy(80, 1)), run(noisy(80, 2))
    narrow = compare(here, there, confidence=confidence, method=method).metrics["score"]
    wide = compare(here, there, confidence=0.995, method=method).metrics["score"]
    assert None not in (narrow.low, narrow.high, wide.low, wide.high)
    assert wide.low < narrow.low < narrow.high < wide.high  # type: ignore[operator]  # none is None


def test_an_evaluator_of_the_baseline_alone_costs_nothing_though_some_of_its_metrics_were_undefined() -> None:
    here, there = run([1, 0, 1, 1]), run([1, 1, 1, 0])
    gone = Observation({}, undefined={"left": "no gold"})
    records = [structs.replace(each, observations={**each.observations, "gone": gone}) for each in there.records]
    found = compare(here, CaseStatistics.exact(records)).metrics
    assert found.keys() == compare(here, there).metrics.keys()
    assert found["score"].difference == 0


def _with_errors(count: int) -> Result:
    """Return a run of 20 right answers, of which some could not be computed."""
    cases = [Case(str(n), expected="yes", prediction={"reply": "yes"} if n < count else "yes") for n in range(20)]
    return score(get_evaluator("text", metrics=["exact_match"]), cases)


def test_errored_cases_leave_no_difference_and_no_verdict_of_equality() -> None:
    comparison = compare(_with_errors(10), _with_errors(0))
    found = comparison.metrics["exact_match"]
    assert (found.errored, found.difference, found.p_value, found.verdict) == (10, None, None, "undecided")
    assert "no difference: 10 cases errored, expected at most 0 (max_errors)" in found.notes
    assert comparison.metrics["pass_rate"].verdict == comparison.verdict == "declined"


def test_errors_that_are_allowed_are_counted() -> None:
    found = compare(_with_errors(1), _with_errors(0), max_errors=1).metrics["exact_match"]
    assert (found.errored, found.difference, found.verdict) == (1, 0.0, "not_significant")


def test_verdicts_of_comparisons() -> None:
    right, wrong = run([1.0] * 30), run([0.0] * 15 + [1.0] * 15)
    assert compare(wrong, right).verdict == "declined"
    assert compare(right, wrong).metrics["score"].verdict == "improved"
    assert compare(right, wrong).metrics["loss"].verdict == "improved"
    assert compare(right, right).verdict == "not_significant"

"""Tests and intervals of differences, against scipy and against arithmetic by hand."""

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from builders import run
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from pytest_llmeval.numbers import ChangedShares, NormalTest, compare
from pytest_llmeval.numbers._intervals import Resampled
from pytest_llmeval.numbers._significance import (
    acceleration,
    bca_interval,
    bca_share,
    bias,
    few_changes_tail,
    mcnemar_interval,
    mcnemar_tails,
    sign_tails,
    two_sided,
    wilcoxon_tails,
)

few = st.integers(min_value=0, max_value=12)


@given(few, few)
def test_mcnemar_at_zero_is_the_exact_binomial_test(worse: int, better: int) -> None:
    found = mcnemar_tails(worse, better, 100, 0.0)
    if worse + better:
        wanted = stats.binomtest(worse, worse + better).pvalue
        assert two_sided(min(found)) == pytest.approx(wanted)
    else:
        assert two_sided(min(found)) == 1.0


@given(few, few)
def test_mid_p_counts_what_was_seen_by_half(worse: int, better: int) -> None:
    found = two_sided(min(mcnemar_tails(worse, better, 100, 0.0, mid_p=True)))
    if worse + better:
        seen = stats.binom.pmf(worse, worse + better, 0.5)
        assert found == pytest.approx(
            min(1.0, stats.binomtest(worse, worse + better).pvalue - (worse != better) * seen)
        )
    low, high = mcnemar_interval(worse, better, 100, 0.95, mid_p=True)
    assert (low > 1e-12 or high < -1e-12) == (found < 0.05 - 1e-12)


@given(few, few, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_interval_of_mcnemar_excludes_zero_where_the_test_does(worse: int, better: int, confidence: float) -> None:
    low, high = mcnemar_interval(worse, better, 100, confidence)
    p_value = two_sided(min(mcnemar_tails(worse, better, 100, 0.0)))
    assert (low > 1e-12 or high < -1e-12) == (p_value < 1 - confidence - 1e-12)
    assert low <= (worse - better) / 100 <= high


def test_equal_runs_leave_room_for_the_changes_that_were_not_seen() -> None:
    low, high = mcnemar_interval(0, 0, 100, 0.95)
    assert high == -low == pytest.approx(1 - 0.025 ** (1 / 100))
    assert mcnemar_tails(0, 0, 100, 0.02) == (1.0, pytest.approx(0.98**100))
    assert mcnemar_tails(0, 0, 100, 1.5) == (1.0, 0.0)


@given(few, few, st.floats(0, 0.3))
def test_a_larger_drop_is_harder_to_establish_and_easier_to_rule_out(worse: int, better: int, at: float) -> None:
    zero, found = mcnemar_tails(worse, better, 40, 0.0), mcnemar_tails(worse, better, 40, at)
    assert found.above >= zero.above - 1e-12
    assert 0 <= found.above <= 1
    assert 0 <= found.below <= 1


def _chances(pairs: int, worse: float, better: float) -> Iterator[tuple[int, int, float]]:
    """Yield how many pairs become worse and better, with the chance of it where that is not negligible."""
    for first, outer in enumerate(stats.binom.pmf(np.arange(pairs + 1), pairs, worse)):
        left = pairs - first
        for second, inner in enumerate(stats.binom.pmf(np.arange(left + 1), left, better / (1 - worse))):
            if outer * inner > 1e-9:
                yield first, second, float(outer * inner)


@pytest.mark.parametrize(("pairs", "worse", "better"), [(200, 0.05, 0.0), (200, 0.07, 0.02), (60, 0.3, 0.25)])
def test_mcnemar_seldom_errs_about_a_drop_that_is_just_as_large_as_tested(
    pairs: int, worse: float, better: float
) -> None:
    drop = worse - better
    established = ruled_out = covered = 0.0
    for first, second, chance in _chances(pairs, worse, better):
        found = mcnemar_tails(first, second, pairs, drop)
        low, high = mcnemar_interval(first, second, pairs, 0.95)
        established += chance * (found.above <= 0.025)
        ruled_out += chance * (found.below <= 0.025)
        covered += chance * (low <= drop <= high)
    assert established < 0.03
    assert ruled_out < 0.03
    assert covered > 0.94


@pytest.mark.parametrize(("worse", "better", "pairs"), [(12, 3, 80), (9, 0, 60), (30, 41, 200)])
@pytest.mark.parametrize("at", [0.01, 0.05, 0.2])
def test_mcnemar_beyond_zero_is_a_score_test_at_the_most_likely_shares(
    worse: int, better: int, pairs: int, at: float
) -> None:
    same = pairs - worse - better

    def unlikely(share: float) -> float:
        return -float(stats.multinomial.logpmf([worse, better, same], pairs, [share + at, share, 1 - 2 * share - at]))

    share = optimize.minimize_scalar(unlikely, bounds=(0, (1 - at) / 2), options={"xatol": 1e-12}).x
    score = (worse - better - pairs * at) / math.sqrt(pairs * (2 * share + at - at * at))
    found = mcnemar_tails(worse, better, pairs, at)
    assert found.below == pytest.approx(stats.norm.cdf(score), rel=1e-3)
    assert found.above == pytest.approx(max(stats.norm.sf(score), mcnemar_tails(worse, better, pairs, 0).above), 1e-3)


@given(few, few, st.sampled_from([0.5, 0.95]))
def test_the_interval_of_mcnemar_holds_what_the_test_does_not_refute(
    worse: int, better: int, confidence: float
) -> None:
    low, high = mcnemar_interval(worse, better, 40, confidence)
    assert mcnemar_interval(better, worse, 40, confidence) == pytest.approx((-high, -low))
    for bound, inside in ((low, 1e-6), (high, -1e-6)):
        if bound + inside > 0:
            assert two_sided(min(mcnemar_tails(worse, better, 40, bound + inside))) > 1 - confidence
        if bound - inside > 0:
            assert two_sided(min(mcnemar_tails(worse, better, 40, bound - inside))) < 1 - confidence


@pytest.mark.parametrize(("worse", "better"), [(5, 0), (0, 5), (4, 1), (1, 0)])
def test_the_interval_of_mcnemar_stays_among_differences_of_shares(worse: int, better: int) -> None:
    low, high = mcnemar_interval(worse, better, worse + better, 0.95)
    assert -1 <= low <= (worse - better) / (worse + better) <= high <= 1


@pytest.mark.parametrize("decimals", [9, 1])
@pytest.mark.parametrize("size", [1, 7, 30, 60])
def test_wilcoxon_is_that_of_scipy(size: int, decimals: int) -> None:
    values = np.round(np.random.default_rng(size).normal(0.1, 1, size), decimals)
    ties = np.unique(np.abs(values[values != 0])).size < np.count_nonzero(values)
    method = "approx" if ties or size > 50 else "exact"
    found = wilcoxon_tails(values, 0.0)
    assert found.above == pytest.approx(stats.wilcoxon(values, alternative="greater", method=method).pvalue)
    assert found.below == pytest.approx(stats.wilcoxon(values, alternative="less", method=method).pvalue)


def test_wilcoxon_of_cases_that_do_not_differ_says_nothing() -> None:
    assert wilcoxon_tails(np.full(9, 0.25), 0.25) == (1.0, 1.0)


def test_wilcoxon_takes_rounding_for_ties() -> None:
    values = np.array([0.1 + 0.2 - 0.3, 0.5, -0.5, 0.25])
    assert wilcoxon_tails(values, 0.0) == wilcoxon_tails(np.array([0.0, 0.5, -0.5, 0.25]), 0.0)


def test_tails_count_the_resamples_on_either_side() -> None:
    resampled = Resampled(np.repeat([-1.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 11))
    assert resampled.tails(0.0) == (34 / 100, 89 / 100)
    assert resampled.tails(-2.0).below == 1.0


@pytest.mark.parametrize("kind", ["expon", "norm"])
def test_bca_is_that_of_scipy(kind: str) -> None:
    data = getattr(stats, kind).rvs(size=60, random_state=3)
    rng = np.random.default_rng(5)
    resampled = data[rng.integers(0, 60, (4_000, 60))].mean(axis=1)
    without = (data.sum() - data) / 59
    wanted = stats.bootstrap(
        (data,), np.mean, method="BCa", n_resamples=0, bootstrap_result=_Resamples(resampled), confidence_level=0.9
    ).confidence_interval
    found = bca_interval(Resampled(resampled), bias(resampled, float(data.mean())), acceleration([without]), 0.9)
    assert found == pytest.approx(tuple(wanted), abs=2e-3)


class _Resamples:
    def __init__(self, resampled: np.ndarray) -> None:
        self.bootstrap_distribution = resampled


def test_bca_of_two_samples_has_the_acceleration_of_scipy() -> None:
    first, second = (stats.expon.rvs(size=size, random_state=size) for size in (40, 25))
    jackknives = [(sample.sum() - sample) / (len(sample) - 1) for sample in (first, second)]
    here = [jackknives[0] - second.mean(), first.mean() - jackknives[1]]
    influence = [(each.mean() - each) * (len(each) - 1) for each in here]
    top = sum(float(np.sum(each**3)) / len(each) ** 3 for each in influence)
    bottom = sum(float(np.sum(each**2)) / len(each) ** 2 for each in influence)
    assert acceleration(here) == pytest.approx(top / (6 * bottom**1.5))


def test_without_influence_there_is_no_acceleration() -> None:
    assert acceleration([np.full(9, 0.3), np.array([math.nan, 0.1, 0.1])]) == 0.0


@given(st.floats(0.001, 0.999), st.floats(-0.5, 0.5), st.floats(-0.1, 0.1))
def test_the_p_value_of_bca_inverts_its_interval(share: float, z0: float, a: float) -> None:
    nominal = bca_share(share, z0, a)
    level = stats.norm.ppf(nominal)
    back = stats.norm.cdf(z0 + (z0 + level) / (1 - a * (z0 + level)))
    assert back == pytest.approx(share, abs=1e-6)
    assert bca_share(share, 0.0, 0.0) == pytest.approx(share)


def test_the_detectable_shift_is_found_with_its_power() -> None:
    shift = NormalTest(0.95).detectable(0.02)
    assert stats.norm.sf(stats.norm.ppf(0.975) - shift / 0.02) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("units", "changed", "room"), [(12, 0.4, 0.7), (20, 0.05, 0.95), (60, 0.3, 0.6), (150, 0.1, 0.9)]
)
def test_the_power_of_answers_of_0_and_1_is_that_of_the_test_which_decides(
    units: int, changed: float, room: float
) -> None:
    shares = ChangedShares(changed, room, units, 0.025)
    drop = shares.detectable()
    assert drop is not None
    rises = max(0.0, changed / 2 - drop * (1 - room))
    drawn = np.random.default_rng(units).multinomial(units, [drop + rises, rises, 1 - drop - 2 * rises], 4000)
    found = [sign_tails(int(rose), int(fell)).below <= 0.025 for fell, rose, _ in drawn]
    assert shares.power(drop) == pytest.approx(0.8, abs=0.005)
    assert np.mean(found) == pytest.approx(0.8, abs=0.03)


def test_few_changes_are_unlikely_where_many_are_needed() -> None:
    assert few_changes_tail(0, 100, 0.05) == pytest.approx(0.95**100)
    assert few_changes_tail(3, 10, 0.0) == 1.0


def found(cases: int, change: float, falls: float) -> float:
    """How often a sign test of equal changes is significant, by the shares of cases that change, and fall then."""
    least = [
        next((fell for fell in range(changed + 1) if sign_tails(fell, changed - fell).above <= 0.025), changed + 1)
        for changed in range(cases + 1)
    ]
    changed = np.arange(cases + 1)
    return float(stats.binom.pmf(changed, cases, change) @ stats.binom.sf(np.array(least) - 1, changed, falls))


@pytest.mark.parametrize("cases", [6, 8, 12, 20, 50, 100])
def test_the_sign_test_of_equal_changes_keeps_its_level_for_independent_answers(cases: int) -> None:
    assert max(found(cases, change, 0.5) for change in np.linspace(0.02, 0.5, 25)) <= 0.025


def test_the_sign_test_of_equal_changes_finds_more_than_the_exact_one() -> None:
    """A fall from 0.95 to 0.85 of 50 cases, which the exact test finds in 0.26."""
    fall, rise = 0.95 * 0.15, 0.85 * 0.05
    assert found(50, fall + rise, fall / (fall + rise)) > 0.32


def test_interval_and_test_of_equal_changes_agree() -> None:
    for fell, rose in product(range(12), range(4)):
        now = [0.0] * fell + [1.0] * rose + [1.0] * 30
        then = [1.0] * fell + [0.0] * rose + [1.0] * 30
        changed = compare(run(now), run(then)).metrics["score"]
        assert changed.low is not None
        assert changed.high is not None
        assert changed.p_value is not None
        assert (changed.high < 0 or changed.low > 0) == (changed.p_value <= 0.05), (fell, rose)

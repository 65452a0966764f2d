"""Tests and intervals for differences."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar, NamedTuple

from msgspec import Struct

from pytest_llmeval.core import FloatArray
from pytest_llmeval.numbers._intervals import (
    Resampled,
    Tails,
    normal_cdf,
    normal_quantile,
    student_cdf,
    student_quantile,
)
from pytest_llmeval.numbers._resample import IntArray, resample_count, swapped_totals

_EXACT_CASES = 50
_LEAST_OF_SKEWNESS = 2
_STRAIGHT = 1e-6
_MOST = 300.0
"""The largest argument of `expm1`."""

_ENUMERATED = 14
"""Values whose signs are turned in every way; of more, some ways are drawn."""

_TINY = 1e-12

_DECIMALS = 12
"""Differences that agree to so many decimals are ties: the rest is rounding."""


def two_sided(one_sided: float) -> float:
    """A one-sided p-value doubled, so that 0.05 corresponds to the bound of a 95 % interval."""
    return min(1.0, 2 * one_sided)


def bias(resampled: FloatArray, estimate: float) -> float:
    """The bias correction z0 of BCa; ties with the estimate count half."""
    import numpy as np

    slack = 10.0**-_DECIMALS
    below = np.count_nonzero(resampled < estimate - slack)
    ties = np.count_nonzero(np.abs(resampled - estimate) <= slack)
    share = (below + ties / 2) / resampled.size
    edge = 1 / (resampled.size + 1)
    return normal_quantile(min(max(share, edge), 1 - edge))


def acceleration(jackknives: Sequence[FloatArray]) -> float:
    """The acceleration of BCa from leave-one-out values.

    Args:
        jackknives: One array per independent sample; values that are not finite are left out.

    Returns:
        The third moment of the influence of single cases (Efron 1987; several samples: DiCiccio and Efron 1996); 0
        where no case has any.
    """
    import numpy as np

    cubes = squares = 0.0
    for values in jackknives:
        finite = values[np.isfinite(values)]
        if finite.size:
            influence = (finite.mean() - finite) * (finite.size - 1) / finite.size
            cubes += float(np.sum(influence**3))
            squares += float(np.sum(influence**2))
    return cubes / (6 * squares**1.5) if squares > 10.0 ** (-2 * _DECIMALS) else 0.0


def bca_interval(resampled: Resampled, z0: float, a: float, confidence: float) -> tuple[float, float]:
    """The bias-corrected and accelerated interval (Efron and Tibshirani 1993, section 14.3)."""

    def adjusted(z: float) -> float:
        return z0 + (z0 + z) / (1 - a * (z0 + z))

    z = normal_quantile((1 + confidence) / 2)
    return resampled.quantile(normal_cdf(adjusted(-z)), -1), resampled.quantile(normal_cdf(-adjusted(z)), 1)


def bca_share(share: float, z0: float, a: float) -> float:
    """The one-sided p-value that belongs to a share of resamples under BCa."""
    shifted = normal_quantile(share) - z0
    return normal_cdf(shifted / (1 + a * shifted) - z0) if math.isfinite(shifted) else share


def few_changes_tail(changed: int, cases: int, share: float) -> float:
    """The chance that so few of the cases change if each does with probability `share`."""
    from scipy.special import bdtr

    return float(bdtr(changed, cases, share))


def sign_tail(worse: int, better: int) -> float:
    """The probability of so many falls among the changed units if each rises as easily, by the exact sign test."""
    from scipy.special import bdtrc

    return float(bdtrc(worse - 1, worse + better, 0.5)) if worse else 1.0


def sign_tails(rises: int, falls: int) -> Tails:
    """Test changes that are all of one size around 0, by the sign test whose p-value counts what was seen by half.

    Two independent answers of 0 and 1 differ with a probability of at most one half. Of equally good runs whose cases
    change no more often, it refutes no more than its level, for any number of cases. Given the number of
    changes, it may (Fagerland et al. 2013): so it never finds what the fewest changes that its level takes all show.
    """
    from scipy.special import bdtr

    changed = rises + falls
    if not changed:
        return Tails(1.0, 1.0)
    least = 0.5**changed
    up, down = sign_tail(rises, falls), float(bdtr(rises, changed, 0.5))
    seen = up + down - 1
    return Tails(max(least, up - seen / 2), max(least, down - seen / 2))


def net_fall_tail(net: int, units: int, share: float) -> float:
    """The probability that falls exceed rises by `net` or more if each unit falls, or rises, with probability `share`.

    Args:
        net: Falls minus rises, at least 1.
        units: Cases, or clusters of them.
        share: Above 0; more than 0.5 counts as 0.5.
    """
    import numpy as np
    from scipy.special import bdtrc, gammaln, xlog1py, xlogy  # loading scipy.stats takes longer than a run

    share = min(share, 0.5)
    rises = np.arange((units - net) // 2 + 1)
    # Given the rises, each of the other units falls with this probability.
    falls = bdtrc(net + rises - 1, units - rises, share / (1 - share))
    ways = gammaln(units + 1) - gammaln(rises + 1) - gammaln(units - rises + 1)
    chances = np.exp(ways + xlogy(rises, share) + xlog1py(units - rises, -share))
    return float(np.sum(chances * falls))


def skewed_tails(values: FloatArray, at: float) -> Tails:
    """Test the mean of skewed values around a number, by Student's statistic with its skewness removed.

    The statistic of skewed values is skewed the other way, because mean and deviation then err together: a sample with
    few of the rare large values has both too small. The transformations of Hall (1992, "On the removal of skewness by
    transformation") take that out to the order of 1 / n, like the bootstrap-t interval, and need no resamples. The
    cubic one is too cautious near the number, the exponential one far from it, so the more certain of them is taken: of
    0 and 1, that is still more cautious than the binomial distribution.

    Args:
        values: Independent, at least two.
        at: The number.
    """
    freedom = len(values) - 1
    excess = float(values.mean()) - at
    error, lean = _error_and_lean(values)
    if not error:
        return Tails(float(excess <= 0), float(excess >= 0))
    t = excess / error
    cubic = t + lean * t**2 / 3 + lean**2 * t**3 / 27 + lean / 6
    exponential = cubic if abs(lean) <= _STRAIGHT else math.expm1(min(_MOST, 2 * lean * t / 3)) * 1.5 / lean + lean / 6
    return Tails(
        student_cdf(freedom, -max(cubic, exponential)),
        student_cdf(freedom, min(cubic, exponential)),
    )


def _error_and_lean(values: FloatArray) -> tuple[float, float]:
    """The standard error of a mean, 0 if all values are equal, and the skewness of its estimate."""
    import numpy as np

    size = len(values)
    centred = values - values.mean()
    deviation = float(np.sqrt(np.mean(centred**2)))
    if deviation <= 10.0**-_DECIMALS:
        return 0.0, 0.0
    skewness = float(np.mean((centred / deviation) ** 3))
    if size > _LEAST_OF_SKEWNESS:
        skewness *= math.sqrt(size * (size - 1)) / (size - 2)  # few values show too little of it (Joanes and Gill 1998)
    return deviation / math.sqrt(size - 1), skewness / math.sqrt(size)


def sign_flip_tails(values: FloatArray) -> Tails:
    """Test the mean of values around 0 by turning signs (Fisher 1935): exact if what changed might as well be reversed.

    It sees how few values a mean rests on: `k` of them alone can have the same sign in one of ``2 ** k`` ways.
    """
    return _flip_signs(values.tobytes())


@lru_cache(maxsize=256)
def _flip_signs(data: bytes) -> Tails:
    """The result of `sign_flip_tails` for values as bytes, cached: gate, interval and report ask the same."""
    import numpy as np

    values = np.frombuffer(data)
    moved = values[np.abs(values) > 10.0**-_DECIMALS]
    total = math.fsum(moved)
    if len(moved) <= _ENUMERATED:
        signs = 1 - 2.0 * (np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved)) & 1)
        slack = 10.0**-_DECIMALS * max(1.0, abs(total))
        every = signs @ moved
        return Tails(float(np.mean(every >= total - slack)), float(np.mean(every <= total + slack)))
    below, above = Resampled(swapped_totals(moved[:, None], resample_count(len(moved)))[:, 0]).tails(total)
    return Tails(above, below)


def unseen_tail(excess: float, room: float, units: int) -> float:
    """The probability that no case shows an effect that hides a difference that is not there.

    Of a bounded score, no test of a mean holds for every distribution (Bahadur and Savage 1956): a few cases that
    none of the sample is like can take back all that the others show. As many as that takes are missing from a sample
    with the probability of the rule of three (Hanley and Lippman-Hand 1983).

    Args:
        excess: How far the difference is beyond what is to be refuted.
        room: How far a case that is unlike the others can be on the other side of them.
        units: Cases, or clusters of them.
    """
    if excess <= 0:
        return 1.0
    return float((1 - excess / room) ** units) if excess < room else 0.0


def unseen_rest(room: float, units: int, tail: float) -> float:
    """The largest part of a difference that `unseen_tail` does not refute."""
    return float(room * (1 - tail ** (1 / units))) if units else room


def effective_units(values: FloatArray) -> float:
    """The number of values on which a sum of squares rests: all if they are alike, `k` if all others are 0."""
    import numpy as np

    squares = values**2
    total = float(np.sum(squares**2))
    return float(np.sum(squares)) ** 2 / total if total else 0.0


def mcnemar_tails(worse: int, better: int, pairs: int, at: float, *, mid_p: bool = False) -> Tails:
    """The tails of a share's drop: McNemar's exact test at 0, Tango's score test (1998) elsewhere.

    The exact test is about the share of changes that are worse, given their number. Which share a drop of `at` means
    depends on how many change in truth, which Tango's test estimates.

    Args:
        worse: Pairs that changed from success to failure.
        better: Pairs that changed from failure to success.
        pairs: All pairs, at least 1.
        at: The drop to test, 0 or more.
        mid_p: Whether the exact test counts what was seen by half (Fagerland et al. 2013): less cautious.

    Returns:
        p-values. A drop beyond `at` is never significant more easily than one beyond 0. Without a changed pair nothing
        speaks for a drop, and against it that each pair would have become worse with probability `at`.
    """
    from scipy.special import bdtr

    changed = worse + better
    if not changed:
        return Tails(1.0, few_changes_tail(0, pairs, min(at, 1.0)))
    exact = Tails(sign_tail(worse, better), float(bdtr(worse, changed, 0.5)))
    if mid_p:
        seen = exact.above + exact.below - 1
        exact = Tails(exact.above - seen / 2, exact.below - seen / 2)
    if not at:
        return exact
    score = _drop_score(worse, better, pairs, min(at, 1.0))
    return Tails(max(exact.above, normal_cdf(-score)), normal_cdf(score))


def mcnemar_interval(
    worse: int, better: int, pairs: int, confidence: float, *, mid_p: bool = False
) -> tuple[float, float]:
    """The interval of the drop of a share that holds what `mcnemar_tails` does not refute.

    It excludes 0 exactly where McNemar's test does. Without a changed pair it is what the true share of changes
    may still be.
    """
    tail = (1 - confidence) / 2
    if not worse + better:
        most = float(1 - tail ** (1 / pairs))
        return -most, most
    low, high = -_largest_drop(better, worse, pairs, tail), _largest_drop(worse, better, pairs, tail)
    exact = mcnemar_tails(worse, better, pairs, 0.0, mid_p=mid_p)
    return low if exact.above < tail else min(low, 0.0), high if exact.below < tail else max(high, 0.0)


def _largest_drop(worse: int, better: int, pairs: int, tail: float) -> float:
    """The largest drop in a share of successes that Tango's test does not refute."""
    from scipy.optimize import bisect

    if worse == pairs:
        return 1.0
    level = normal_quantile(tail)
    return float(bisect(lambda at: _drop_score(worse, better, pairs, at) - level, (worse - better) / pairs, 1.0))


def _drop_score(worse: int, better: int, pairs: int, at: float) -> float:
    """The distance of the drop from `at` in standard deviations, if `at` is the true drop (Tango 1998, equation 7).

    Args:
        worse: Pairs that became worse.
        better: Pairs that became better.
        pairs: All pairs.
        at: From -1 to 1.
    """
    linear = (2 * pairs - worse + better) * at - worse - better
    # The most likely share of pairs that become better, if the drop is `at`: the larger root of a quadratic equation.
    root = math.sqrt(max(0.0, linear * linear + 8 * pairs * better * at * (1 - at)))  # rounding may fall below 0
    share = (root - linear) / (4 * pairs)
    excess = worse - better - pairs * at
    variance = pairs * (2 * share + at * (1 - at))
    return excess / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, excess)


def wilcoxon_tails(drops: FloatArray, at: float) -> Tails:
    """Wilcoxon's signed-rank test of the drops of single cases around `at`; cases at it are left out.

    Exact for up to 50 cases without ties, else by the normal approximation with the correction for ties.
    """
    import numpy as np
    from scipy.stats import wilcoxon

    around = np.round(drops - at, _DECIMALS)
    around = around[around != 0]
    if not around.size:
        return Tails(1.0, 1.0)
    exact = around.size <= _EXACT_CASES and np.unique(np.abs(around)).size == around.size
    # Not "auto", which for few cases with ties enumerates all signs, for most of a second.
    method = "exact" if exact else "approx"
    above, below = (float(wilcoxon(around, alternative=side, method=method).pvalue) for side in ("greater", "less"))
    return Tails(above, below)


class NormalTest(Struct, frozen=True):
    """A two-sided test of a difference by normal theory, in standard deviations of the difference.

    Attributes:
        confidence: Of the test.
        units: What was drawn independently; with few, the test asks for more.
    """

    POWER: ClassVar = 0.8
    """The power with which a difference counts as detectable."""

    confidence: float
    units: float = math.inf

    def detectable(self, deviation: float = 1.0, *, binary: bool = False) -> float:
        """The smallest true difference that the test finds with `POWER`.

        Args:
            deviation: Standard deviation of the difference, where there is none in truth.
            binary: Whether it is a difference of shares: cases that make one then add to its scatter.
        """
        level = (1 + self.confidence) / 2
        critical = normal_quantile(level)
        if math.isfinite(self.units):
            freedom = max(self.units, 2) - 1
            critical = student_quantile(freedom, level) * math.sqrt(1 + 1 / freedom)
        factor = critical + normal_quantile(self.POWER)
        if not binary:
            return deviation * factor
        scatter = factor**2 / self.units
        return (scatter + math.sqrt(scatter**2 + 4 * (factor * deviation) ** 2)) / 2

    def power(self, shift: float) -> float:
        """The chance that the test finds a true difference of so many deviations."""
        return normal_cdf(shift - self.detectable() + normal_quantile(self.POWER))


_COUNTED = 100
"""With more cases, the power of McNemar's test is that of a normal distribution."""

_HALVINGS = 24


class ChangedShares(NamedTuple):
    """Pairs of answers of 0 and 1, which McNemar's test is to tell apart.

    Attributes:
        changed: The share of the cases that change if nothing is worse in truth.
        room: The share of the cases that can fall.
        units: The number of cases.
        tail: The one-sided level.
        mid_p: Whether the test counts what was seen by half.
    """

    changed: float
    room: float
    units: int
    tail: float
    mid_p: bool = True

    def power(self, drop: float) -> float:
        """The chance that McNemar's test finds a drop, by which right answers fall alike, and luck raises fewer."""
        rises = max(0.0, self.changed / 2 - drop * (1 - self.room))
        share = min(1.0, drop + 2 * rises)
        if share <= 0:
            return 0.0
        if self.units > _COUNTED:
            critical = normal_quantile(1 - self.tail) * math.sqrt(share)
            return normal_cdf((drop * math.sqrt(self.units) - critical) / math.sqrt(max(share - drop**2, _TINY)))
        import numpy as np
        from scipy.special import bdtr, bdtrc

        changes = np.arange(1, self.units + 1)
        often = np.diff(bdtr(np.arange(self.units + 1), self.units, share)) if share < 1 else changes == self.units
        least = _least_falls(self.units, self.tail, self.mid_p)
        power = np.where(least <= changes, bdtrc(least - 1, changes, (drop + rises) / share), 0.0)
        return float((often * power).sum())

    def detectable(self) -> float | None:
        """The smallest drop that is found with `NormalTest.POWER`; ``None`` if none that is possible is."""
        low, high = 0.0, self.room
        if self.power(high) < NormalTest.POWER:
            return None
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.power(middle) >= NormalTest.POWER else (middle, high)
        return high


@lru_cache
def _least_falls(most: int, tail: float, mid_p: bool) -> IntArray:
    """The falls that McNemar's test finds significant, of 1 to `most` changed cases; more than these if none are."""
    import numpy as np
    from scipy.special import bdtr

    least = []
    for changes in range(1, most + 1):
        below = bdtr(np.arange(changes + 1), changes, 0.5)
        at_least = 1 - np.concatenate([[0.0], below[:-1]])
        p_values = (at_least + 1 - below) / 2 if mid_p else at_least
        # A test never finds what the fewest changes that its level takes all show: see `sign_tails`.
        significant = np.flatnonzero(np.maximum(p_values, 0.5**changes) <= tail)
        least.append(int(significant[0]) if significant.size else changes + 1)
    return np.array(least)

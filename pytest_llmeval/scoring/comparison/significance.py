"""Tests and intervals for differences: bootstrap inversion, BCa, McNemar, Wilcoxon, Holm."""

__all__ = (
    "acceleration",
    "bca_interval",
    "bca_share",
    "bias",
    "detectable_shift",
    "few_changes_tail",
    "holm",
    "mcnemar_interval",
    "mcnemar_tails",
    "tails",
    "two_sided",
    "wilcoxon_tails",
)

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    FloatArray: TypeAlias = npt.NDArray[np.float64]
else:
    FloatArray: TypeAlias = Any

POWER = 0.8
"""The power that `detectable_shift` is about."""

_EXACT_CASES = 50

_DECIMALS = 12
"""Differences that agree to so many decimals are ties: the rest is rounding."""


class Tails(NamedTuple):
    """One-sided p-values about a number `at`.

    Attributes:
        above: Of the hypothesis that the true value is at most `at`; small where it is larger.
        below: Of the hypothesis that the true value is at least `at`; small where it is smaller.
    """

    above: float
    below: float


def two_sided(one_sided: float) -> float:
    """Double a one-sided p-value, so that 0.05 corresponds to the bound of a 95 % interval."""
    return min(1.0, 2 * one_sided)


def tails(resampled: FloatArray, at: float) -> Tails:
    """Invert the percentile interval of resampled values (Efron and Tibshirani 1993, section 15.4).

    Args:
        resampled: Finite, at least one.
        at: The number to test.

    Returns:
        p-values, at least ``1 / (len(resampled) + 1)``.
    """
    import numpy as np

    size = resampled.size + 1
    slack = 10.0**-_DECIMALS
    return Tails(
        float(1 + np.count_nonzero(resampled <= at + slack)) / size,
        float(1 + np.count_nonzero(resampled >= at - slack)) / size,
    )


def bias(resampled: FloatArray, estimate: float) -> float:
    """Return the bias correction z0 of BCa; ties with the estimate count half."""
    import numpy as np
    from scipy.special import ndtri

    slack = 10.0**-_DECIMALS
    below = np.count_nonzero(resampled < estimate - slack)
    ties = np.count_nonzero(np.abs(resampled - estimate) <= slack)
    share = (below + ties / 2) / resampled.size
    edge = 1 / (resampled.size + 1)
    return float(ndtri(min(max(share, edge), 1 - edge)))


def acceleration(jackknives: Sequence[FloatArray]) -> float:
    """Return the acceleration of BCa from leave-one-out values.

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


def bca_interval(resampled: FloatArray, z0: float, a: float, confidence: float) -> tuple[float, float]:
    """Return the bias-corrected and accelerated interval (Efron and Tibshirani 1993, section 14.3)."""
    import numpy as np
    from scipy.special import ndtr, ndtri

    nominal = ndtri(np.array([(1 - confidence) / 2, (1 + confidence) / 2]))
    low, high = np.quantile(resampled, ndtr(z0 + (z0 + nominal) / (1 - a * (z0 + nominal))))
    return float(low), float(high)


def bca_share(share: float, z0: float, a: float) -> float:
    """Turn a share of resamples into the one-sided p-value that belongs to it under BCa."""
    from scipy.special import ndtr, ndtri

    shifted = float(ndtri(share)) - z0
    return float(ndtr(shifted / (1 + a * shifted) - z0)) if math.isfinite(shifted) else share


def few_changes_tail(changed: int, cases: int, share: float) -> float:
    """Return the chance that so few of the cases change if each does with probability `share`."""
    from scipy.special import bdtr

    return float(bdtr(changed, cases, share))


def mcnemar_tails(worse: int, better: int, pairs: int, at: float) -> Tails:
    """Test the drop of a share of successes: McNemar's exact test at 0, Tango's score test (1998) elsewhere.

    The exact test is about the share of changes that are worse, given their number. Which share a drop of `at` means
    depends on how many change in truth, which Tango's test estimates.

    Args:
        worse: Pairs that changed from success to failure.
        better: Pairs that changed from failure to success.
        pairs: All pairs, at least 1.
        at: The drop to test, 0 or more.

    Returns:
        p-values. A drop beyond `at` is never established more easily than one beyond 0. Without a changed pair nothing
        speaks for a drop, and against it that each pair would have become worse with probability `at`.
    """
    from scipy.special import bdtr, bdtrc, ndtr

    changed = worse + better
    if not changed:
        return Tails(1.0, few_changes_tail(0, pairs, min(at, 1.0)))
    exact = Tails(float(bdtrc(worse - 1, changed, 0.5)) if worse else 1.0, float(bdtr(worse, changed, 0.5)))
    if not at:
        return exact
    score = _drop_score(worse, better, pairs, min(at, 1.0))
    return Tails(max(exact.above, float(ndtr(-score))), float(ndtr(score)))


def mcnemar_interval(worse: int, better: int, pairs: int, confidence: float) -> tuple[float, float]:
    """Return the interval of the drop of a share that holds what `mcnemar_tails` does not refute.

    It excludes 0 exactly where McNemar's exact test does. Without a changed pair it is what the true share of changes
    may still be.
    """
    tail = (1 - confidence) / 2
    if not worse + better:
        most = float(1 - tail ** (1 / pairs))
        return -most, most
    low, high = -_largest_drop(better, worse, pairs, tail), _largest_drop(worse, better, pairs, tail)
    exact = mcnemar_tails(worse, better, pairs, 0.0)
    return low if exact.above < tail else min(low, 0.0), high if exact.below < tail else max(high, 0.0)


def _largest_drop(worse: int, better: int, pairs: int, tail: float) -> float:
    """Return the largest drop that Tango's test does not refute."""
    from scipy.optimize import bisect
    from scipy.special import ndtri

    if worse == pairs:
        return 1.0
    level = float(ndtri(tail))
    return float(bisect(lambda at: _drop_score(worse, better, pairs, at) - level, (worse - better) / pairs, 1.0))


def _drop_score(worse: int, better: int, pairs: int, at: float) -> float:
    """Return how many standard deviations the drop is above `at`, if `at` is the true one (Tango 1998, equation 7).

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


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for being several (Holm 1979): all errors together stay under the level.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda each: p_values[each])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def detectable_shift(deviation: float, confidence: float, power: float = POWER) -> float:
    """Return the smallest true difference that a two-sided test finds with this power, by normal theory.

    Args:
        deviation: Standard deviation of the difference.
        confidence: Of the test.
        power: Chance to find it.
    """
    from scipy.special import ndtri

    return deviation * float(ndtri((1 + confidence) / 2) + ndtri(power))

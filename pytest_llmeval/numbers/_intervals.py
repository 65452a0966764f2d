"""Metric values and their intervals: Wilson's for shares of cases, expanded percentiles of resamples for the rest."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct, structs

from pytest_llmeval.core import Basis, FloatArray, Metric, MetricValue

# Normal, Student's and beta distributions are computed here, since loading scipy.special takes longer than a small run.
_CONVERGED = 1e-16
_TINY = 1e-300


def normal_cdf(z: float) -> float:
    """The probability of at most `z` in the normal distribution, precise in both tails."""
    return math.erfc(-z / math.sqrt(2)) / 2


def normal_quantile(p: float) -> float:
    """The value below which a share `p` of the normal distribution lies; infinite at 0 and 1."""
    from statistics import NormalDist

    if p in (0, 1):
        return math.copysign(math.inf, p - 0.5)
    return NormalDist().inv_cdf(p)


def student_cdf(freedom: float, t: float) -> float:
    """The probability of at most `t` in Student's distribution, precise in both tails."""
    if t > 0:
        return 1 - student_cdf(freedom, -t)
    return _beta_share(freedom / 2, freedom / (freedom + t * t)) / 2 if math.isfinite(t) else 0.0


@lru_cache(maxsize=1024)
def student_quantile(freedom: float, p: float) -> float:
    """The value below which a share `p`, between 0 and 1, of Student's distribution lies."""
    if p > 1 / 2:
        return -student_quantile(freedom, 1 - p)
    # Below 0 the probability is convex, and Student's quantile is below the normal one: Newton's steps stay above it.
    t = normal_quantile(p)
    while (excess := student_cdf(freedom, t) - p) > 0 and (density := _student_density(freedom, t)) > 0:
        if (following := t - excess / density) == t:
            break
        t = following
    return t


def _student_density(freedom: float, t: float) -> float:
    """The density of Student's distribution, the slope by which its quantiles are found."""
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    return math.exp(scale - (freedom + 1) / 2 * math.log1p(t * t / freedom))


def _beta_share(a: float, x: float, b: float = 0.5) -> float:
    """The regularised incomplete beta function (DLMF 8.17.22, by Lentz's method)."""
    if x in (0, 1):
        return x
    scale = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x > (a + 1) / (a + b + 2):
        return 1 - scale * _fraction(b, a, 1 - x) / b
    return scale * _fraction(a, b, x) / a


def _nonzero_deviation(value: float) -> float:
    """Replace a zero denominator of the continued fraction by a tiny number, as Lentz's method does."""
    return _TINY if value == 0 else value


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function; about the root of `a` steps make it exact."""
    c = 1.0
    total = d = 1 / _nonzero_deviation(1 - (a + b) * x / (a + 1))
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _nonzero_deviation(1 + term * d)
            c = _nonzero_deviation(1 + term / c)
            total *= c * d
        if abs(c * d - 1) < _CONVERGED * 4:
            break
    return total


_SAME = 1e-9
"""Tolerance for a pooled value to count as the mean of the scores."""

_ROUNDING = 1e-12
"""Values that differ by no more are equal: the rest is rounding."""

_RESOLUTION = 1e-9
"""Of a bound that is searched for."""

_RESOLVED = 25
"""Fewer resamples beyond a number are too few to estimate its probability."""

_LEAST_UNITS = 2
_LEAST_LEVEL = 1e-300


def present(value: float) -> float | None:
    """A metric's number as users see it: ``None`` if it is not finite."""
    return float(value) if math.isfinite(value) else None


class CountedMetric(Struct, frozen=True, kw_only=True):
    """All numbers behind one metric over a set of cases, except its interval.

    The only way to a `MetricValue`: tables of cases and merged statistics count in their own ways, and agree on
    everything that follows from the counts.

    Attributes:
        metric: Its declaration.
        signature: How it is computed.
        pooled: The formula over summed counts; not finite if it is undefined.
        total: Sum of the cases' own scores.
        cases: All of them.
        judged: Cases with a part in the value.
        scored: Cases with a score of their own.
        errored: Cases that could not be measured.
        missing: Cases that did not run.
        abstained: Cases whose answers leave nothing to score.
        units: Clusters of the judged cases; ``None`` if each case is drawn alone.
        basis: What the value rests on, if only a part of the cases.
    """

    metric: Metric
    signature: str
    pooled: float
    total: float
    cases: int
    judged: int
    scored: int
    errored: int
    missing: int
    abstained: int = 0
    units: int | None = None
    basis: Basis | None = None

    @property
    def value(self) -> float | None:
        """The metric's formula over summed counts; ``None`` if it is undefined, or no case has a part in it."""
        if not self.judged or (self.basis and self.basis.fault):
            return None
        return present(self.pooled) if self.basis is None else present(in_range(self.pooled, self.ranged))

    @property
    def drawn(self) -> int:
        """The number of independent draws behind the metric."""
        drawn = self.judged if self.units is None else self.units
        return drawn if self.basis is None else min(drawn, int(self.basis.cases))

    @property
    def ranged(self) -> Metric:
        """The metric with the range that it has over so many cases."""
        return self.metric.over(self.judged)

    @property
    def has_interval(self) -> bool:
        """True if there are enough cases for an interval."""
        return self.value is not None and self.drawn >= _LEAST_UNITS

    def closed_interval(self, confidence: float) -> tuple[float, float] | None:
        """The interval that the evaluator computes itself, if it does."""
        if self.basis is None or self.basis.interval is None:
            return None
        return self.basis.interval(confidence, 1.0 if self.units is None else self.units / self.judged)

    def metric_value(self, bounds: tuple[float, float] | None) -> MetricValue:
        """The metric as users get it, with the bounds of its interval, if any."""
        low, high = bounds or (None, None)
        return MetricValue(
            value=self.value,
            mean=self.total / self.scored if self.scored else None,
            low=low,
            high=high,
            scored=self.scored,
            undefined=self.cases - self.scored - self.abstained - self.errored - self.missing,
            errored=self.errored,
            missing=self.missing,
            signature=self.signature,
            reason=(self.basis.fault or self.basis.note) if self.basis else "",
            abstained=self.abstained,
        )


def corrected(metric: MetricValue, sampled: float) -> MetricValue:
    """A metric with an interval about all of a finite number of cases (Cochran 1977, section 2.6).

    Args:
        metric: With an interval about infinitely many.
        sampled: The share of them that was drawn, from 0 to 1.
    """
    if metric.value is None or metric.low is None or metric.high is None:
        return metric
    factor = math.sqrt(1 - sampled)
    low, high = (metric.value + factor * (bound - metric.value) for bound in (metric.low, metric.high))
    return structs.replace(metric, low=low, high=high)


class Tails(NamedTuple):
    """One-sided p-values of a difference about a number `at`.

    Attributes:
        above: Of the hypothesis that the true value is at most `at`; small if it is larger.
        below: Of the hypothesis that the true value is at least `at`; small if it is smaller.
    """

    above: float
    below: float


class Resampled(Struct, frozen=True):
    """Resampled values as a distribution whose tails continue beyond the resamples.

    Beyond the outermost 25 resamples, p-values have an exponential tail with their mean excess, or a normal one with
    the standard deviation of all, whichever is heavier. An exponential tail is heavier than that of any log-concave
    density, so that they err towards caution.

    Attributes:
        values: Finite, at least one.
    """

    values: FloatArray

    @property
    def constant(self) -> bool:
        """True if all resamples agree, so that they carry no information on the spread."""
        return float(self.values.max() - self.values.min()) <= _ROUNDING

    @property
    def deviation(self) -> float:
        """The standard deviation of the resamples; 0 if all agree."""
        return 0.0 if self.constant else float(self.values.std())

    def resolves(self, tail: float) -> bool:
        """Whether there are enough resamples to read a quantile from them."""
        return tail * self.values.size >= _RESOLVED or self.constant

    def quantile(self, tail: float, side: int) -> float:
        """The value beyond which a share of the distribution lies, on the lower (-1) or the upper side (1)."""
        if self.resolves(tail):
            return quantiles(self.values, [tail if side < 0 else 1 - tail])[0]
        # Normal, so that expanded levels give Student's interval; a heavier tail is for p-values.
        normal = side * float(self.values.mean()) - self.deviation * normal_quantile(max(tail, _LEAST_LEVEL))
        return side * max(self._edge(side)[0], normal)

    def tails(self, at: float) -> Tails:
        """The shares of the distribution at or below a number, and at or above it."""
        return Tails(self._share(at, -1), self._share(at, 1))

    def _share(self, at: float, side: int) -> float:
        """The share of the distribution at or beyond a number on a side, continued beyond the resamples."""
        import numpy as np

        beyond = int(np.count_nonzero(side * (self.values - at) >= -_ROUNDING))
        share = (1 + beyond) / (1 + self.values.size)
        if beyond >= _RESOLVED or (self.constant and beyond):
            return share
        if self.constant:
            return 0.0
        edge, excess = self._edge(side)
        normal = normal_cdf(side * (float(self.values.mean()) - at) / self.deviation)
        if excess <= 0:  # equal values, but for rounding
            return min(share, normal)
        return min(share, max(normal, _RESOLVED / self.values.size * math.exp((edge - side * at) / excess)))

    def _edge(self, side: int) -> tuple[float, float]:
        """The value at which the resamples of a side end, and the mean excess beyond; of the lower, mirrored."""
        import numpy as np

        count = min(_RESOLVED, self.values.size)
        outermost = -np.partition(-side * self.values, count - 1)[:count]
        edge = float(outermost.min())
        return edge, float(outermost.mean()) - edge


def expanded(tail: float, units: int) -> float:
    """The share of resamples to cut off so that an interval of few cases is wide enough.

    A resample of n cases scatters by the factor ``sqrt((n - 1) / n)`` too little, and its quantiles are those of a
    normal distribution where a mean of few cases needs Student's (Hesterberg 2015, section 4).

    Args:
        tail: The probability outside the interval, on one side.
        units: What was drawn independently: cases, or clusters of them.
    """
    freedom = max(units, _LEAST_UNITS) - 1
    return normal_cdf(math.sqrt(1 + 1 / freedom) * student_quantile(freedom, tail))


def nominal(share: float, units: int) -> float:
    """The one-sided p-value that belongs to a share of resamples; the inverse of `expanded`."""
    freedom = max(units, _LEAST_UNITS) - 1
    return student_cdf(freedom, normal_quantile(share) / math.sqrt(1 + 1 / freedom))


def quantiles(values: "FloatArray", levels: Sequence[float]) -> list[float]:
    """Quantiles by linear interpolation, as of `numpy.quantile`, which loads masked arrays at its first call.

    Args:
        values: Shape ``(n,)``, at least one; without NaN.
        levels: Between 0 and 1.
    """
    import numpy as np

    places = [level * (values.size - 1) for level in levels]
    below = [min(int(place), values.size - 1) for place in places]
    ordered = np.partition(values, [*below, *(min(lower + 1, values.size - 1) for lower in below)])
    out = []
    for place, lower in zip(places, below, strict=True):
        low, high, part = float(ordered[lower]), float(ordered[min(lower + 1, values.size - 1)]), place - lower
        out.append(low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part))  # noqa: PLR2004
    return out


def resampled_interval(values: Resampled, confidence: float, units: int) -> tuple[float, float]:
    """The expanded percentile interval of a metric's resampled values."""
    level = expanded((1 - confidence) / 2, units)
    if values.resolves(level):
        low, high = quantiles(values.values, (level, 1 - level))
        return low, high
    return values.quantile(level, -1), values.quantile(level, 1)


def _squared_quantile(confidence: float) -> float:
    """The squared normal quantile of a confidence level, as Wilson's interval uses it."""
    return normal_quantile((1 + confidence) / 2) ** 2


def wilson_interval(successes: float, cases: float, confidence: float) -> tuple[float, float]:
    """The score interval of a share (Wilson 1927)."""
    z2 = _squared_quantile(confidence)
    middle = (successes + z2 / 2) / (cases + z2)
    half = math.sqrt(z2 * (successes * (cases - successes) / cases + z2 / 4)) / (cases + z2)
    return 0.0 if successes <= 0 else middle - half, 1.0 if successes >= cases else middle + half


def mid_p_interval(successes: float, cases: float, confidence: float) -> tuple[float, float]:
    """The exact interval of a share with half the probability of what was seen (Lancaster 1961).

    Counts need not be whole: binomial probabilities are those of beta distributions.
    """
    failures = cases - successes

    def share_seen(chance: float) -> float:
        """Return the probability of fewer failures than were seen, and half of that of as many."""
        fewer = _beta_share(successes + 1, chance, failures) if failures > 0 else 0.0
        return (fewer + (_beta_share(successes, chance, failures + 1) if successes > 0 else 1.0)) / 2

    def bound(level: float) -> float:
        low, high = 0.0, 1.0
        while low < (middle := (low + high) / 2) < high and high - low > _RESOLUTION:
            low, high = (low, middle) if share_seen(middle) > level else (middle, high)
        return middle

    low, high = (1 - confidence) / 2, (1 + confidence) / 2
    return bound(low) if successes > 0 else 0.0, bound(high) if failures > 0 else 1.0


def unseen_share(cases: int, confidence: float) -> float:
    """The share of other cases that there may be where none has been seen: Wilson's bound for 0 of them."""
    z2 = _squared_quantile(confidence)
    return z2 / (cases + z2)


def share_interval(
    value: float, scores: FloatArray, units: int, metric: Metric, confidence: float
) -> tuple[float, float] | None:
    """Wilson's interval of a value that is the share of cases that score 1, among cases that score 0 or 1.

    A value that is the number of such cases has that interval times the number of cases.

    Args:
        value: Of the data.
        scores: Of the cases that have one.
        units: What was drawn independently, of the cases that have a part in the value.
        metric: Its range.
        confidence: Between 0 and 1, such as 0.95.

    Returns:
        Lower and upper bound, or ``None`` if the value is no such share.
    """
    import numpy as np

    if not np.isin(scores, (0.0, 1.0)).all():
        return None
    return binary_interval(value, int(scores.sum()), scores.size, units, metric, confidence)


def binary_interval(
    value: float, ones: int, scored: int, units: int, metric: Metric, confidence: float
) -> tuple[float, float] | None:
    """The `share_interval` of so many cases that score 1 among `scored` that score 0 or 1."""
    if scored != units:
        return None
    if (metric.low, metric.high, metric.per_case) == (0, 1, None) and abs(ones / scored - value) <= _SAME:
        return wilson_interval(ones, units, confidence)
    if metric.per_case == 1 and abs(ones - value) <= _SAME:
        low, high = wilson_interval(ones, units, confidence)
        return low * scored, high * scored
    return None


def value_interval(
    resampled: FloatArray, value: float, units: int, metric: Metric, confidence: float
) -> tuple[float, float] | None:
    """The interval of a metric's value by its resamples.

    If cases are so alike that all resamples agree, the interval leaves room for as many unlike cases as may have gone
    unseen.

    Args:
        resampled: One value per resample; not finite if the metric is undefined.
        value: Of the data.
        units: What was drawn independently, of the cases that have a part in the value.
        metric: Its range.
        confidence: Between 0 and 1, such as 0.95.

    Returns:
        Lower and upper bound, or ``None`` if half of the resamples or more have no value.
    """
    import numpy as np

    low, high = _metric_range(metric, value)
    finite = resampled[np.isfinite(resampled)]
    if finite.size * 2 <= resampled.size:
        return None
    distribution = Resampled(finite)
    if distribution.constant and math.isfinite(high - low):
        return _alike_interval(value, low, high, units, confidence)
    bounds = resampled_interval(distribution, confidence, units)
    return max(bounds[0], low), min(bounds[1], high)


def _metric_range(metric: Metric, value: float) -> tuple[float, float]:
    """The declared range of a metric for its interval; infinite if the metric's own value lies outside."""
    low = -math.inf if metric.low is None else metric.low
    high = math.inf if metric.high is None else metric.high
    # An evaluator may declare a range that it does not keep.
    return (low, high) if low <= value <= high else (-math.inf, math.inf)


def _alike_interval(value: float, low: float, high: float, units: int, confidence: float) -> tuple[float, float]:
    """The interval of a value in a range if all cases are alike: as many unlike cases may have gone unseen."""
    unseen = unseen_share(units, confidence)
    return value - (value - low) * unseen, value + (high - value) * unseen


def in_range(value: float, metric: Metric) -> float:
    """The number in the range of a metric that is nearest to a corrected value.

    Corrected values may leave the range, in which the truth lies: the nearest number in it is never farther from the
    truth, so that an interval about it holds the truth at least as often.
    """
    if metric.low is not None and value < metric.low:
        return metric.low
    return metric.high if metric.high is not None and value > metric.high else value


def delta_interval(
    deviation: float, value: float, units: int, metric: Metric, confidence: float
) -> tuple[float, float] | None:
    """Student's interval of a metric's value by its standard deviation.

    Args:
        deviation: Of the value over samples, as resamples of the data have it; 0 if all cases are alike.
        value: Of the data.
        units: What was drawn independently, of the cases that have a part in the value.
        metric: Its range.
        confidence: Between 0 and 1, such as 0.95.

    Returns:
        Lower and upper bound, or ``None`` if the deviation is not finite.
    """
    if not math.isfinite(deviation):
        return None
    low, high = _metric_range(metric, value)
    freedom = max(units, _LEAST_UNITS) - 1
    half = deviation * math.sqrt(1 + 1 / freedom) * student_quantile(freedom, (1 + confidence) / 2)
    if half <= _ROUNDING and math.isfinite(high - low):
        return _alike_interval(value, low, high, units, confidence)
    return max(value - half, low), min(value + half, high)


def partial_interval(
    deviation: float, basis: Basis, value: float, units: int, metric: Metric, confidence: float
) -> tuple[float, float] | None:
    """Student's interval of a value that rests on a part of the cases, within the range of the metric.

    Args:
        deviation: Of the value over samples.
        basis: The part, whose degrees of freedom it has.
        value: Of the data; it may be outside the range.
        units: What was drawn independently, of the part.
        metric: Its range.
        confidence: Between 0 and 1, such as 0.95.

    Returns:
        Lower and upper bound, or ``None`` if the deviation is not finite.
    """
    unlimited = structs.replace(metric, low=None, high=None, per_case=None)
    centre = in_range(value, metric)
    bounds = delta_interval(math.hypot(deviation, basis.floor), centre, units, unlimited, confidence)
    if bounds is None:
        return None
    low, high = bounds
    if basis.unknown and metric.low is not None and metric.high is not None:
        high += basis.unknown * (metric.high - metric.low)
    return in_range(low, metric), in_range(high, metric)


def resampled_deviation(resampled: FloatArray) -> float:
    """The standard deviation of a metric's resamples; NaN if half of them or more have no value."""
    import numpy as np

    finite = resampled[np.isfinite(resampled)]
    return Resampled(finite).deviation if finite.size * 2 > resampled.size else math.nan

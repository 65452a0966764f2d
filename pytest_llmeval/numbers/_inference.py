"""Intervals, p-values and warnings from resampled differences."""

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from msgspec.structs import replace

from pytest_llmeval.core import Metric, counted, listed
from pytest_llmeval.numbers._case_scores import TOLERANCE
from pytest_llmeval.numbers._estimation import UNITS_OF_SCALE, Estimate, scaled_ends
from pytest_llmeval.numbers._intervals import Resampled, Tails, nominal, resampled_interval, unseen_share
from pytest_llmeval.numbers._pairing import PairedRows, RunPairing
from pytest_llmeval.numbers._significance import (
    acceleration,
    bca_interval,
    bca_share,
    bias,
    effective_units,
    net_fall_tail,
    sign_flip_tails,
    sign_tail,
    sign_tails,
    skewed_tails,
    unseen_rest,
    unseen_tail,
)

Method: TypeAlias = Literal["percentile", "bca"]

FEW_CHANGED = 10
"""With fewer changed cases, resamples do not show how much a difference varies."""

_FEW_UNITS = 10

_WITNESSED = 50
"""With fewer units, a sign-flip test is the second witness of a difference."""

_CONCENTRATED = 20
"""So it is if the squares of a difference rest on fewer units than this, however many others move by a hair."""

_LEAST_WITNESSES = 2
_MANY_LOST = 0.05
_ROUNDING = 1e-12

_LEAST_GROUPS = 5
"""Of fewer groups of cases it is not seen whether they change alike."""

_SURE = 3
"""Deviations of a design effect that are no luck."""

_NO_DOUBT = 0.005
"""The p-value of a sign test from which on rises without any fall are no luck: eight of eight are."""

_SLACK = 1e-9
"""How exactly pseudo-values are known."""

_PRIOR_RISES = 0.4
"""Rises, and as many units without one, that luck is measured with before any case ran: with less, a fall of two in
four among quiet gates would be beyond luck too easily; with more, never."""


_LISTED = 7
"""Worse cases that a sentence names."""

_BY_CHANCE = 0.05


class Worsened(NamedTuple):
    """The cases that got worse between two runs, with the label that explains most of them.

    Attributes:
        ids: Of the cases; those with the label first, then the largest drop first.
        label: The label; empty if none explains them.
        value: Its value.
        inside: Number of worse cases with this value.
        total: Number of compared cases with this value.
        better: Number of cases that got better.
    """

    ids: tuple[str, ...] = ()
    label: str = ""
    value: str = ""
    inside: int = 0
    total: int = 0
    better: int = 0

    @property
    def tally(self) -> str:
        """How many paired cases got worse, and how many better."""
        return f"{counted(len(self.ids), 'case')} worse, {self.better} better"

    def __str__(self) -> str:
        if not self.ids:
            return ""
        shared = f", {self.inside} of {self.total} with {self.label}={self.value}" if self.label else ""
        return f"{counted(len(self.ids), 'case')} worse{shared}: {listed(self.ids, _LISTED, ' and {} more')}"


def worsened(pairing: RunPairing, rows: PairedRows, metric: str) -> Worsened:
    """The paired cases that have a worse score of a metric, with the label that explains most of them."""
    table = pairing.table
    if not pairing.paired or metric not in table.scores:
        return Worsened()
    change = table.scores[metric][rows.current] - table.scores[metric][rows.baseline]
    drops = -change if table.metric(metric).higher_is_better else change
    cases = [table.records[row] for row in rows.current]
    labels = {case.id: case.labels for case in cases}
    worse = {case.id: float(drop) for case, drop in zip(cases, drops, strict=True) if drop > TOLERANCE}
    ids = sorted(worse, key=lambda case: (-worse[case], case))
    label, value = explaining_label(labels, worse)
    better = int((drops < -TOLERANCE).sum())
    if not label:
        return Worsened(tuple(ids), better=better)
    alike = {case for case, own in labels.items() if own.get(label) == value}
    ids.sort(key=lambda case: case not in alike)
    return Worsened(tuple(ids), label, value, len(alike & worse.keys()), len(alike), better)


_Key = TypeVar("_Key", bound=Hashable)


def explaining_label(labels: Mapping[_Key, Mapping[str, str]], worse: Collection[_Key]) -> tuple[str, str]:
    """The label and value that explain most worse cases, by Fisher's exact test over all; empty for none.

    They explain if at least half of the worse cases have them, and chance would hardly put so many there.

    Args:
        labels: Case to its labels.
        worse: Some of the cases.

    >>> topics = {f"{topic}-{n}": {"topic": topic} for topic in ("billing", "returns") for n in range(20)}
    >>> explaining_label(topics, [f"billing-{n}" for n in range(8)])
    ('topic', 'billing')
    """
    every = Counter(pair for own in labels.values() for pair in own.items())
    inside = Counter(pair for case in worse for pair in labels[case].items())
    draws = _log_comb(len(labels), len(worse))
    tails = []
    for pair, count in inside.items():
        if count > 1 and 2 * count >= len(worse):
            size, most = every[pair], min(every[pair], len(worse))
            others = len(labels) - size
            counts = range(max(count, len(worse) - others), most + 1)
            ways = (_log_comb(size, n) + _log_comb(others, len(worse) - n) for n in counts)
            tails.append((math.fsum(math.exp(way - draws) for way in ways), pair))
    tail, pair = min(tails, default=(1.0, ("", "")))
    return pair if tail * len(every) <= _BY_CHANCE else ("", "")


def _log_comb(items: int, drawn: int) -> float:
    """The logarithm of a binomial coefficient, for the exact test of labels that explain worse cases."""
    return math.lgamma(items + 1) - math.lgamma(drawn + 1) - math.lgamma(items - drawn + 1)


class FarChanges(NamedTuple):
    """Units, cases or clusters, that changed by half of the baseline's score or more.

    Attributes:
        units: All units.
        worse: Those that lost so much.
        better: Those that gained so much.
    """

    units: int
    worse: int
    better: int

    @property
    def net(self) -> int:
        """How many more units lost than gained."""
        return self.worse - self.better

    def is_collapse(self, others: Iterable["FarChanges"], level: float) -> bool:
        """Whether half of the units fell, net of those that rose, and luck does not explain it.

        Had nothing changed in truth, units would rise as often as they fall, so luck is measured by those that rose.
        If some did, a sign test must find the falls at the level of one side, which both rules then share.
        The falls must be improbable by the rises of these units, and by those of any number of others together, in
        each of which such a fall might have been seen: the others with the most rises first, so that more others
        never make it more of a collapse.

        Args:
            others: Of the tests that are judged together with this one.
            level: The probability of luck that counts as none; half of it for several tests together.
        """
        if 2 * self.net < max(self.units, 1) or net_fall_tail(self.net, self.units, _rises([self])) > level:
            return False
        if self.better and sign_tail(self.worse, self.better) > level / 2:
            return False
        pool = [self]
        for other in sorted(others, key=lambda changes: (-changes.better / changes.units, changes.units)):
            pool.append(other)
            if len(pool) * net_fall_tail(self.net, self.units, _rises(pool)) > level / 2:
                return False
        return True


def fallen_units(data: Estimate, metric: Metric) -> int | None:
    """The number of units, cases or clusters, that fell in a metric; ``None`` if it is not known."""
    import numpy as np

    if not len(data.contributions):
        return None
    drops = -data.contributions if metric.higher_is_better else data.contributions
    return int(np.sum(drops > _SLACK))


def made_up_tail(data: Estimate, metric: Metric) -> float:
    """The probability that no unit shows gains that make up for the drop; 0 if the metric is unbounded."""
    difference, value = data.difference, data.value
    if difference is None or value is None or metric.low is None or metric.high is None:
        return 0.0
    room = metric.high - value if metric.higher_is_better else value - metric.low
    return unseen_tail(abs(difference), room, data.units)


def _rises(pool: Sequence[FarChanges]) -> float:
    """The share of units that rise by luck, estimated from the far changes of one or more tests."""
    return (sum(changes.better for changes in pool) + _PRIOR_RISES) / (
        sum(changes.units for changes in pool) + 2 * _PRIOR_RISES
    )


def far_changes(data: Estimate, metric: Metric) -> FarChanges | None:
    """The units that changed by half of the baseline's score or more.

    Returns:
        ``None`` if runs are not paired, or the metric has no scale to tell what half is.
    """
    import numpy as np

    if not len(data.contributions) or data.baseline is None:
        return None
    end = metric.worst
    if end is None:
        return None  # what half of the score is, is not known
    half = abs(data.baseline - end) / 2
    drops = -data.contributions if metric.higher_is_better else data.contributions
    far = max(half - _SLACK, _SLACK)
    return FarChanges(len(drops), int(np.sum(drops >= far)), int(np.sum(drops <= -far)))


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The bootstrap distribution of a metric's difference between two runs.

    Attributes:
        estimate: The metric in both runs.
        resampled: Finite values, at least one.
        reach: The largest difference that there can be; ``None`` if the metric is unbounded.
        z0: Bias correction; 0 for percentiles.
        a: Acceleration; 0 for percentiles.
        corrected: Whether the interval is BCa.
    """

    estimate: Estimate
    resampled: Resampled
    reach: float | None
    z0: float = 0.0
    a: float = 0.0
    corrected: bool = False

    @classmethod
    def from_estimate(cls, estimate: Estimate, method: Method, metric: Metric) -> "Bootstrap | None":
        """The inference from an estimate's resamples; ``None`` if it has none."""
        difference = estimate.difference
        if difference is None or not estimate.resampled.size:
            return None
        resampled, reach = Resampled(estimate.resampled), span(metric)
        if reach is not None and abs(difference) > reach:  # the evaluator declares a range that it does not keep
            reach = None
        if method == "percentile":
            return cls(estimate, resampled, reach)
        z0 = bias(estimate.resampled, difference)
        return cls(estimate, resampled, reach, z0, acceleration(estimate.jackknives), corrected=True)

    def interval(self, confidence: float) -> tuple[float, float]:
        """The interval of the difference; see `agreeing` for how it goes with a test."""
        if self.resampled.constant:
            return self._of_equal_resamples(confidence)
        if self.corrected:
            low, high = bca_interval(self.resampled, self.z0, self.a, confidence)
        else:
            low, high = resampled_interval(self.resampled, confidence, self.estimate.units)
        reach = math.inf if self.reach is None else self.reach
        low, high = max(low, -reach), min(high, reach)
        if self.corrected or (equal := equal_changes(self.estimate)) is None:
            return low, high
        tails, tail = sign_tails(*equal), (1 - confidence) / 2
        return max(low, _SLACK) if tails.above <= tail else low, min(high, -_SLACK) if tails.below <= tail else high

    def _of_equal_resamples(self, confidence: float) -> tuple[float, float]:
        """Tango's interval (1998) of paired shares, if all cases changed alike, or none did."""
        value, reach, units = float(self.resampled.values[0]), self.reach, self.estimate.units
        if reach is None:
            return value, value
        if abs(value) <= _ROUNDING:
            most = reach * (1 - ((1 - confidence) / 2) ** (1 / units))
            return -most, most
        if abs(abs(value) - reach) > _ROUNDING:
            return value, value
        inner = reach - 2 * reach * unseen_share(units, confidence)
        return (inner, reach) if value > 0 else (-reach, -inner)

    def tails(self, at: float) -> Tails:
        """One-sided p-values of the difference around a number, by the same method as the interval.

        Around 0, those of changes of one size are counted: see `sign_tails`.
        """
        if not at and not self.corrected and (equal := equal_changes(self.estimate)) is not None:
            return sign_tails(*equal)
        shares = self.resampled.tails(at)
        if self.corrected:
            return Tails(bca_share(shares.above, self.z0, self.a), bca_share(shares.below, -self.z0, -self.a))
        return Tails(*(nominal(share, self.estimate.units) for share in shares))

    @property
    def deviation(self) -> float:
        """The standard deviation of the difference; 0 if no case differs."""
        return self.resampled.deviation


def scaled(metric: Metric, data: Estimate) -> Metric:
    """A metric with ends, those of the baseline's scores if it declares none; see `scaled_ends`."""
    low, high = scaled_ends(metric, data.extent, data.units)
    return replace(metric, low=low, high=high)


def lacks_scale(data: Estimate) -> bool:
    """Whether a metric's estimate does not say how far unseen cases may lie: no declared ends, and few units."""
    return not data.bounded and data.units < UNITS_OF_SCALE


def span(metric: Metric) -> float | None:
    """The largest distance of two values of a metric; ``None`` if unbounded."""
    return None if metric.low is None or metric.high is None else metric.high - metric.low


def agreeing(interval: tuple[float, float], tails: Tails, at: float, tail: float) -> tuple[float, float]:
    """Widen an interval to hold a number that the test does not refute.

    Where few cases changed, p-values are held to what so few can prove; the interval then says no more than they do.

    Args:
        interval: The interval.
        tails: p-values about the number.
        at: The number.
        tail: The one-sided level of test and interval.
    """
    low, high = interval
    return min(low, at) if tails.above > tail else low, max(high, at) if tails.below > tail else high


def held_tails(data: Estimate, metric: Metric, tails: Tails, at: float) -> Tails:
    """Raise p-values of a difference to what few cases can hide; a p-value becomes no smaller.

    Resamples know the cases that there are. If the difference rests on few of them, or would be another one with a few
    that are unlike all others, they promise too much: they are limited by a test for skewed values, and against the
    probability that the cases that would refute them have gone unseen.

    Args:
        data: The difference, current run minus baseline.
        metric: Its range.
        tails: Around a number.
        at: The number.
    """
    difference, value, values = data.difference, data.value, data.contributions
    if difference is None or value is None or not _is_witnessed(data):
        return tails
    above, below = tails
    if not (
        data.binary and data.units == data.cases
    ):  # how few of those cases changed is what limits them, and that is counted exactly
        skewed = skewed_tails(values, at)
        above, below = max(above, skewed.above), max(below, skewed.below)
    if metric.low is not None and metric.high is not None and metric.low <= value <= metric.high:
        unanimous = not at and _only_rises(data, metric)
        if not (unanimous and metric.higher_is_better):
            above = max(above, unseen_tail(difference - at, value - metric.low, data.units))
        if not (unanimous and not metric.higher_is_better):
            below = max(below, unseen_tail(at - difference, metric.high - value, data.units))
    return Tails(above, below)


def _only_rises(data: Estimate, metric: Metric) -> bool:
    """Whether so many cases rose in a metric, and none fell, that a sign test leaves next to no doubt.

    It asks whether a case rises as often as it falls, and needs no unseen ones. That says something of the mean only if
    a single result rises as far as it falls: graded scores may rise a little often, and fall far now and then.
    """
    if not data.two_valued or data.units != data.cases:
        return False
    gains = data.contributions if metric.higher_is_better else -data.contributions
    rises = int((gains > _SLACK).sum())
    return not (gains < -_SLACK).any() and 0.5**rises <= _NO_DOUBT


def held_interval(
    data: Estimate, metric: Metric, interval: tuple[float, float], confidence: float
) -> tuple[float, float]:
    """Widen the interval of a difference to leave room for unseen cases, and for no difference where few changed."""
    difference, value, tail = data.difference, data.value, (1 - confidence) / 2
    if difference is None or value is None or not _is_witnessed(data):
        return interval
    low, high = interval
    if metric.low is not None and metric.high is not None and metric.low <= value <= metric.high:
        reach = metric.high - metric.low
        least = difference - unseen_rest(value - metric.low, data.units, tail)
        most = difference + unseen_rest(metric.high - value, data.units, tail)
        if _only_rises(data, metric):
            # What is not known then is how much better they are, and not whether.
            least, most = (max(least, _SLACK), most) if metric.higher_is_better else (least, min(most, -_SLACK))
        low, high = max(-reach, min(low, least)), min(reach, max(high, most))
    witnessed = witnessed_tail(data)
    return min(low, 0.0) if witnessed.above > tail else low, max(high, 0.0) if witnessed.below > tail else high


def _is_witnessed(data: Estimate) -> bool:
    """Whether a metric's estimate knows what single cases contribute to the difference."""
    return data.changed is not None and len(data.contributions) >= _LEAST_WITNESSES


def witnessed_tail(data: Estimate) -> Tails:
    """The smallest p-values of a difference from 0 that so few cases, or so few that matter, can have."""
    least = least_tail(data)
    values = data.contributions
    if not _is_witnessed(data):
        return Tails(least, least)
    if (equal := equal_changes(data)) is not None:
        return sign_tails(*equal)
    if len(values) >= _WITNESSED and effective_units(values) >= _CONCENTRATED:
        return Tails(least, least)
    flipped = sign_flip_tails(values)
    return Tails(max(least, flipped.above), max(least, flipped.below))


def equal_changes(data: Estimate) -> tuple[int, int] | None:
    """The number of cases that rise and fall, if each has a score of 0 or 1 and the difference is the mean of these.

    ``None`` for others.
    """
    import numpy as np

    if not data.binary or data.units != data.cases or not _is_witnessed(data):
        return None
    values = data.contributions
    moved = np.abs(values[np.abs(values) > _SLACK])
    if len(moved) and float(np.ptp(moved)) > _SLACK:
        return None
    return int((values > _SLACK).sum()), int((values < -_SLACK).sum())


def least_tail(estimate: Estimate) -> float:
    """The smallest one-sided p-value that a test of no difference can have with so few cases.

    If nothing changed in truth, every changed case might as well have changed the other way round: `k` changed cases
    look all worse in one of ``2 ** k`` equally likely ways. Unpaired, every case might be of the other run.
    """
    if estimate.changed is not None:
        return 0.5**estimate.changed
    return 1 / math.comb(2 * estimate.units, estimate.units)


def doubts(estimate: Estimate, pairing: RunPairing, cluster_by: str | None) -> Iterator[str]:
    """Yield the notes to keep in mind when reading a metric's estimate."""
    noun = "case" if cluster_by is None else "cluster"
    if estimate.falls:
        yield estimate.falls
    if not pairing.paired:
        yield (
            f"unpaired: {counted(pairing.common, 'case')} in common, {pairing.only_current} only in this run, "
            f"{pairing.only_baseline} only in the baseline"
        )
    elif pairing.only_current or pairing.only_baseline:
        yield str(pairing.matching) if estimate.chain is None else f"in the last step, {pairing.matching}"
    elif pairing.matching.by_content:
        yield pairing.matching.content_note
    if estimate.shift is not None:
        if rates := estimate.shift.rates:
            yield (
                f"across a change of judge, on the scale of the former one: the new one passes {rates[0]} of "
                f"{rates[1]} answers that it passed, and {rates[2]} of {rates[3]} others"
            )
        else:
            yield f"across a change of judge, which by itself moves it by {estimate.shift}"
    if estimate.left_out:
        yield f"{counted(estimate.left_out, 'case')} left out, errored or not run"
    if estimate.changed is not None and estimate.cases and estimate.changed < FEW_CHANGED:
        few = f"only {counted(estimate.changed, noun)} changed" if estimate.changed else f"no {noun} changed"
        yield f"{few}, too few to estimate how much the difference varies"
    if not estimate.units:
        yield f"no {noun} to compare"
    elif estimate.units < _FEW_UNITS:
        yield f"only {counted(estimate.units, noun)}, too few to rely on the interval"
    if estimate.resampled.size and estimate.lost_resamples > _MANY_LOST:
        yield f"undefined in {estimate.lost_resamples:.0%} of the resamples"


class AlikeCases(NamedTuple):
    """Cases that change alike with those of the same label, although each counts as one that was drawn by itself.

    Attributes:
        label: The label.
        units: The cases.
        effect: By how much more the difference scatters if cases with the same value are drawn together: the design
            effect of the totals (Kish 1965).
    """

    label: str
    units: int
    effect: float

    def __str__(self) -> str:
        return f"cases with the same {self.label} change alike, and {self.worth}: set cluster_by: {self.label}"

    @property
    def worth(self) -> str:
        """The number of independent cases that tell as much."""
        return f"{self.units} are worth {round(self.units / self.effect)}"


def alike_cases(data: Estimate, pairing: RunPairing, rows: PairedRows, cluster_by: str | None) -> Iterator[AlikeCases]:
    """Yield the labels whose cases change alike, unless cases are drawn by one."""
    import numpy as np

    if cluster_by is not None or not pairing.paired or not 0 < len(data.contributions) == len(data.contributing):
        return
    values = data.contributions - data.contributions.mean()
    total = float((values**2).sum())
    chosen = rows.current[np.asarray(data.contributing, dtype=int)]
    labels = {name for row in chosen.tolist() for name in pairing.table.records[row].labels}
    for label in sorted(labels) if total > _ROUNDING else ():
        clusters = pairing.units(chosen, label)
        groups = int((np.bincount(clusters) > 1).sum())
        effect = float((np.bincount(clusters, weights=values) ** 2).sum()) / total
        if groups >= _LEAST_GROUPS and effect > 1 + _SURE * math.sqrt(2 / groups):
            yield AlikeCases(label, len(values), effect)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values of several tests, adjusted (Holm 1979): all errors together stay under the level.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def holm_of_tested(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values as `holm` has them, over those that exist; what was not tested stays ``None``."""
    adjusted = iter(holm([value for value in p_values if value is not None]))
    return [None if value is None else next(adjusted) for value in p_values]


def hochberg(p_values: Sequence[float]) -> list[float]:
    """The p-values of several independent tests, adjusted by Hochberg's step-up method (1988).

    It finds what all tests show alike, however many they are.

    >>> hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    return _step_up(p_values, [float(rank) for rank in range(1, len(p_values) + 1)])


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values: the expected share of errors among what is found stays under the level (1995).

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    size = len(p_values)
    return _step_up(p_values, [size / (size - rank) for rank in range(size)])


def _step_up(p_values: Sequence[float], factors: Sequence[float]) -> list[float]:
    """Multiply p-values of several tests by factors, that of the largest first; none exceeds a larger one's result."""
    adjusted = [1.0] * len(p_values)
    smallest = 1.0
    ordered = sorted(range(len(p_values)), key=lambda index: -p_values[index])
    for place, factor in zip(ordered, factors, strict=True):
        smallest = min(smallest, factor * p_values[place])
        adjusted[place] = smallest
    return adjusted


def adjusted_gates(gates: Sequence[Sequence[float]]) -> list[list[float]]:
    """Adjust the p-values of gates for being several, where each gate has been adjusted for its own tests.

    Holm's method over gates: the level is divided by the number of gates of which a test has not been rejected yet.

    Args:
        gates: Of each gate, the p-values of its tests, at least one.
    """
    wholly = sorted(holm([max(gate) for gate in gates]))
    steps = [(len(gates) - rejected, at) for rejected, at in enumerate([0.0, *wholly[:-1]])]
    return [[min(1.0, *(max(factor * p_value, at) for factor, at in steps), 1.0) for p_value in gate] for gate in gates]


def adjust_families(families: Sequence[tuple[Literal["familywise", "fdr"], Sequence[float]]]) -> list[list[float]]:
    """Adjust the p-values of gates, first each for its own tests, then all for being several gates.

    Args:
        families: Of each gate, how its own tests are adjusted, and their p-values, at least one: by Hochberg's method,
            or that of Benjamini and Hochberg.
    """
    within = [(benjamini_hochberg if method == "fdr" else hochberg)(p_values) for method, p_values in families]
    return adjusted_gates(within)

"""Statistical tests of regression gates: is the drop larger, or smaller, than allowed?"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from pytest_llmeval.core import (
    ChangeWord,
    FloatArray,
    Metric,
    SignificanceTest,
    Statistic,
    counted,
    interval,
    limit,
    number,
)
from pytest_llmeval.numbers._estimation import Columns, Estimate, columns_of, estimate
from pytest_llmeval.numbers._inference import (
    FEW_CHANGED,
    AlikeCases,
    Bootstrap,
    FarChanges,
    Worsened,
    agreeing,
    alike_cases,
    doubts,
    fallen_units,
    far_changes,
    held_interval,
    held_tails,
    lacks_scale,
    least_tail,
    made_up_tail,
    scaled,
    span,
    witnessed_tail,
    worsened,
)
from pytest_llmeval.numbers._intervals import Resampled, Tails, normal_cdf, normal_quantile, student_quantile
from pytest_llmeval.numbers._pairing import PairedRows, RunPairing
from pytest_llmeval.numbers._resample import IntArray, resample_count, swapped_totals
from pytest_llmeval.numbers._significance import (
    NormalTest,
    effective_units,
    few_changes_tail,
    mcnemar_interval,
    mcnemar_tails,
    unseen_rest,
    unseen_tail,
    wilcoxon_tails,
)

_SAME = 1e-9
"""A pooled value that differs from the mean of the scores by no more is that mean."""


class Untestable(ValueError):  # noqa: N818 (a verdict for the gate's reason, not a failure)
    """The error of a significance test that does not apply to the scores of a metric."""


class TestedChange(Protocol):
    """A change between two runs with the settings of its significance test, as gates have them."""

    @property
    def max_drop(self) -> float:
        """The drop that the test allows; negative if a gain is required."""

    @property
    def confidence(self) -> float:
        """Confidence level of the significance test."""

    @property
    def sides(self) -> int:
        """The number of sides of the difference on which the test may err."""

    @property
    def test(self) -> SignificanceTest:
        """The name of the statistical test."""


class WatchedChange(TestedChange, Protocol):
    """A tested change with the size that matters, by which a gate says what is known about it."""

    @property
    def matters(self) -> float | None:
        """The size of a drop that matters; ``None``: `max_drop`, or a share of the range if that is 0."""


class GatedChange(TestedChange, Protocol):
    """A tested change with the metric that it is about, and the cases that count as one."""

    @property
    def metric(self) -> str:
        """The name of the metric."""

    @property
    def statistic(self) -> str:
        """The statistic of the metric; all but ``mean`` are its value."""

    @property
    def interval_confidence(self) -> float:
        """The confidence of the interval whose bound says the same as the test."""

    @property
    def cluster_by(self) -> str | None:
        """A label; cases with the same value of it count as one."""

    @property
    def proves_safety(self) -> bool:
        """Whether cases that are left out count as fallen as far as they can."""

    @property
    def explains_falls(self) -> bool:
        """Whether a drop beyond the allowed one is explained by the cases that fell."""


class AnyDrop(NamedTuple):
    """The tested change of a comparison without a gate: any drop."""

    confidence: float
    max_drop: float = 0.0
    sides: int = 2
    test: SignificanceTest = "bootstrap"


class KnownChange(NamedTuple):
    """The knowledge of a gate about a change, as a word and as a sentence."""

    word: ChangeWord
    sentence: str


class DropQuestion(NamedTuple):
    """The question whether a metric dropped between two runs, and the cases to test it on.

    Attributes:
        pairing: The two runs.
        rows: The cases.
        metric: Its name.
        statistic: Of the metric.
        max_drop: The drop to test.
        confidence: Of the interval.
        cluster_by: A label; cases with the same value of it count as one.
    """

    pairing: RunPairing
    rows: PairedRows
    metric: str
    statistic: Statistic
    max_drop: float
    confidence: float
    cluster_by: str | None

    def evidence(self, test: SignificanceTest, *, worst_case: bool = False) -> "Evidence":
        """The evidence of a significance test of the drop.

        Args:
            test: ``bootstrap`` and ``bca`` work for every metric. The others test paired cases; if the runs do not have
                the same cases, ``bootstrap`` replaces them.
            worst_case: Whether cases that are left out count as fallen as far as they can.

        Raises:
            Untestable: The test does not apply to the metric.
        """
        if worst_case:
            data = _estimate(self)
            if data.left_out:
                return _test_largest_drop(self, data, test)
        return _test_drop(self, test)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for or against a drop between two runs: its estimate, interval and p-values.

    Attributes:
        estimate: The metric in both runs.
        drop: How much worse the current run is; ``None`` if unknown.
        interval: Of the drop; ``None`` if there is none.
        tails: One-sided p-values of the drop around the one that is allowed; ``None`` if nothing can be tested.
        deviation: Standard deviation of the drop; 0 if it is unknown.
        notes: What to keep in mind.
        worst: The drop if every case that is left out fell as far as it can; ``None`` if that was not requested, or
            has no bound.
        typical: Whether the test is about the typical case, and not about the mean.
        alike: The cases that change alike by the label that tells most of it; ``None`` if none does.
        worsened: The paired cases with a worse score, if they explain a drop beyond the allowed one.
    """

    estimate: Estimate
    drop: float | None
    interval: tuple[float, float] | None
    tails: Tails | None
    deviation: float
    notes: tuple[str, ...]
    worst: float | None = None
    typical: bool = False
    alike: AlikeCases | None = None
    worsened: Worsened | None = None

    @classmethod
    def of_change(cls, change: GatedChange, pairing: RunPairing, rows: PairedRows) -> "Evidence | str":
        """The evidence for a change of some cases, or why its test does not apply to the metric."""
        name = change.metric
        statistic: Statistic = "mean" if change.statistic == "mean" else "value"
        level, cluster_by = change.interval_confidence, change.cluster_by
        question = DropQuestion(pairing, rows, name, statistic, change.max_drop, level, cluster_by)
        try:
            evidence = question.evidence(change.test, worst_case=change.proves_safety)
        except Untestable as error:
            return str(error)
        if change.explains_falls and evidence.drop is not None and evidence.drop > change.max_drop:
            evidence = replace(evidence, worsened=worsened(pairing, rows, name))
        return evidence

    @staticmethod
    def find_collapses(tested: Sequence[tuple["Evidence", Metric, float]]) -> list[bool]:
        """Which of the changes that are tested together are collapses; see `FarChanges.is_collapse`.

        Args:
            tested: The evidence for each, its metric, and the level of its test.
        """
        far = [evidence.far_changes(metric) for evidence, metric, _ in tested]
        return [
            own is not None
            and own.is_collapse([other for at, other in enumerate(far) if other is not None and at != place], level)
            for place, (own, (_, _, level)) in enumerate(zip(far, tested, strict=True))
        ]

    @property
    def lacks_scale(self) -> bool:
        """Whether nothing says how far unseen cases may lie: no declared ends, and few units."""
        return lacks_scale(self.estimate)

    @property
    def units_text(self) -> str:
        """What was drawn independently: the cases, or the clusters that they come in."""
        return units_of(self.estimate)

    def scaled(self, metric: Metric) -> Metric:
        """The metric with ends, those of the baseline's scores where it declares none."""
        return scaled(metric, self.estimate)

    def far_changes(self, metric: Metric) -> FarChanges | None:
        """The units that changed by half of the baseline's score or more.

        Returns:
            ``None`` if runs are not paired, or the metric has no scale to tell what half is.
        """
        return far_changes(self.estimate, metric)

    def made_up_tail(self, metric: Metric) -> float:
        """The probability that no unit shows gains that make up for a drop; 0 if the metric is unbounded."""
        return made_up_tail(self.estimate, metric)

    def could_find(self, gate: TestedChange, metric: Metric) -> bool:
        """Whether so many units fell that, had none risen, the test alone would find a drop."""
        fallen = fallen_units(self.estimate, metric)
        return fallen is None or fallen >= units_needed(gate)

    def detectable_drop(self, gate: TestedChange, metric: Metric, tests: int) -> str:
        """The true drop that the test finds in 80 of 100 runs, in words; see `drop_power`."""
        if self.typical:
            return f"the power of test {gate.test}, which is about the typical case, is not computed"
        power = self.drop_power(gate, metric, tests)
        if not power.decides:
            return f"no drop is detectable with {units_of(self.estimate)}"
        if not power.scatters:
            return "minimum detectable drop unknown"
        if power.smallest is None:
            return f"even the largest drop possible is found {_POWER_SAID}"
        return f"minimum detectable drop {number(power.smallest)}"

    def detectable_gain(self, gate: TestedChange, metric: Metric, tests: int) -> str:
        """The true gain over another system that the test finds in 80 of 100 runs, in words."""
        data = self.estimate
        level = (1 - gate.confidence) / gate.sides / tests
        if least_tail(replace(data, changed=None if data.changed is None else data.units)) > level:
            return f"no gain is detectable with {units_of(data)}"
        shift = _shift_of_gain(self, gate, metric, level)
        if shift is None:
            return "minimum detectable gain unknown"
        end = metric.high if metric.higher_is_better else metric.low
        if end is not None and data.baseline is not None and abs(gate.max_drop) + shift > abs(end - data.baseline):
            return f"even the largest gain possible is found {_POWER_SAID}"
        return f"minimum detectable gain {number(abs(gate.max_drop) + shift)}"

    def drop_power(self, gate: TestedChange, metric: Metric, tests: int = 1) -> "DropPower":
        """The drops that the test can find with the cases of both runs.

        Args:
            gate: A gate with the rule ``significant_drop``.
            metric: Its metric.
            tests: By how much the level is divided: the gates that are judged together, times the groups of this one.
        """
        data = self.estimate
        level = (1 - gate.confidence) / gate.sides / tests
        end = metric.worst
        room = math.inf if end is None or data.baseline is None else abs(data.baseline - end)
        shift = _shift(self, metric, level, _falls_needed(level, gate))
        if shift is not None and data.changed is not None and (reach := span(metric)) and room <= reach:
            # So large that the cases which would take it back could not all have gone unseen.
            unseen = 1 - level ** (1 / max(1, data.units))
            shift = max(shift, unseen * (reach - room + gate.max_drop) / (1 - unseen))
        possible = room if data.bounded else math.inf
        smallest = None if shift is None or gate.max_drop + shift > possible else gate.max_drop + shift
        least = _least(data, gate, room, span(metric))
        if least > level:
            smallest = None
        return DropPower(level, least, self.drop, room, possible, smallest, shift is not None)

    def found_drop(self, gate: TestedChange, metric: Metric, *, collapses: bool) -> float | None:
        """The smallest true drop that the test, judged by itself, finds in 80 of 100 runs.

        Args:
            gate: A gate with the rule ``significant_drop``.
            metric: Its metric.
            collapses: Whether the gate also fails by a collapse of half of the units.

        Returns:
            ``None`` if no possible drop is found, or how much the difference scatters is not known.
        """
        data, power = self.estimate, self.drop_power(gate, metric)
        drops = [] if power.smallest is None else [power.smallest]
        if collapses and data.changed is not None and data.units and (reach := span(metric)):
            least = (data.units + 1) // 2
            while least <= data.units and not FarChanges(data.units, least, 0).is_collapse((), 1 - gate.confidence):
                least += 1
            collapse = reach * _falling_share(least, data.units)
            if least <= data.units and gate.max_drop < collapse <= power.room:
                drops.append(collapse)
        return min(drops, default=None)

    def gain_guard(self, gate: TestedChange, metric: Metric) -> str:
        """The guard that keeps an observed gain from being significant, with the number of units that it needs."""
        data, level = self.estimate, (1 - gate.confidence) / gate.sides
        noun = "cluster" if data.units < data.cases else "case"
        if self.drop is None or self.tails is None or data.changed is None:
            return ""
        if least_tail(data) > level:
            return (
                f"{counted(data.changed, noun)} changed, and a sign test needs {_falls_needed(level, gate)} that rise"
            )
        end = metric.worst
        if end is None or data.value is None:
            return ""
        excess, room = gate.max_drop - self.drop, abs(data.value - end)
        unseen = unseen_tail(excess, room, data.units)
        if not 0 < excess < room or not level < unseen <= self.tails.below:
            return ""
        needed = math.ceil(math.log(level) / math.log1p(-excess / room))
        return f"unseen cases could take the gain back, which {needed} {noun}s would rule out"

    def known_change(self, gate: WatchedChange, metric: Metric, *, fell: bool, tests: int = 1) -> KnownChange:
        """The knowledge of a change: a fall, a rise, no drop that matters, or nothing that is clear.

        Args:
            gate: The gate.
            metric: Its metric.
            fell: Whether a fall is significant.
            tests: By how much the level of a rise is divided.
        """
        data, bounds = self.estimate, self.interval if fell else self._interval_of_alike()
        falls = metric.higher_is_better
        drop, gain = ("drop", "rise") if falls else ("rise", "drop")
        by_label = f" by {self.alike.label}" if self.alike is not None and not fell else ""
        between = _within(bounds, drop, gate) + by_label
        if fell:
            return KnownChange("worse", f"a {'fall' if falls else 'rise'} ({between}, {units_of(data)})")
        if bounds is None or self.tails is None or lacks_scale(data):
            return KnownChange("cannot tell", f"nothing is known about its change ({units_of(data)})")
        level = (1 - gate.confidence) / gate.sides
        if self.drop is not None and bounds[1] < 0 and tests * _rise_tail(self, gate) <= level:
            between = _within((-bounds[1], -bounds[0]), gain, gate) + by_label
            return KnownChange("better", f"a {'rise' if falls else 'fall'} ({between}, {units_of(data)})")
        size, named = _size_that_matters(gate, metric)
        if size is None:
            return KnownChange("cannot tell", f"{metric.name} has no range, which says what {drop} matters ({between})")
        if bounds[1] <= size:
            return KnownChange("no drop", f"a {drop} of {named} is ruled out ({between}, {units_of(data)})")
        why = self._unseen_drop(size, gate, metric, tests) if self.alike is None else str(self.alike)
        return KnownChange("cannot tell", f"a {drop} of {named} is not ruled out ({between}): {why}")

    def _unseen_drop(self, size: float, gate: WatchedChange, metric: Metric, tests: int) -> str:
        """The drop that would have been found, and how many units rule one out, in words."""
        data, smallest = self.estimate, self.drop_power(gate, metric, tests).smallest
        drop = "drop" if metric.higher_is_better else "rise"
        power = f"find a {drop} of {number(smallest)}" if smallest is not None else f"find no {drop} that is possible"
        text = f"{units_of(data)} {power} in {100 * NormalTest.POWER:.0f} of 100 runs"
        text += f" as 1 of {tests} tests that are judged together" if tests > 1 else ""
        needed = units_to_rule_out(size, self, gate, metric)
        clusters = " clusters" if data.units < data.cases else ""
        if needed is not None and needed > data.units:
            text += f", {needed - data.units} more{clusters} would rule it out if there is none"
        return text

    def _interval_of_alike(self) -> tuple[float, float] | None:
        """The interval of the drop, as wide as it is if cases that change alike are drawn together."""
        if self.interval is None or self.drop is None or self.alike is None:
            return self.interval
        low, high = self.interval
        wider = math.sqrt(self.alike.effect)
        return self.drop - wider * (self.drop - low), self.drop + wider * (high - self.drop)

    def safe_drop(self, gate: TestedChange, metric: Metric) -> str:
        """The `max_drop` of which a run as good as the baseline proves itself safe in 80 of 100 runs, in words."""
        data, reach = self.estimate, span(metric)
        tail = (1 - gate.confidence) / gate.sides
        shift = NormalTest(1 - 2 * tail, data.units).detectable(self.deviation)
        if data.changed is not None and reach and data.units and data.value is not None:
            from scipy.special import bdtri

            few = data.changed < FEW_CHANGED
            end = metric.worst
            room = reach if few or end is None else min(reach, abs(data.value - end))
            changed = data.changed if few else 0
            shift = max(shift, room * (float(bdtri(changed, data.units, tail)) if changed < data.units else 1.0))
        return f"smallest max_drop that an equally good run meets {number(shift) if shift else 'unknown'}"

    def units_to_find(self, drop: float, gate: TestedChange, metric: Metric, *, collapses: bool) -> int | None:
        """The number of units, scattering as these do, that finds a drop; ``None`` if more than 20,000."""

        def finds(units: int) -> bool:
            smallest = _predict_evidence(self, units, metric).found_drop(gate, metric, collapses=collapses)
            return smallest is not None and smallest <= drop

        return _fewest(finds, self.estimate.units)

    def units_to_decide(self, gate: TestedChange, metric: Metric, *, collapses: bool) -> int | None:
        """The number of units that decide a test in 9 of 10 equally good runs; ``None`` if more than 20,000.

        What more units show may also move the score, and with it half of what it can fall.
        """
        data, reach, room = self.estimate, span(metric), self.drop_power(gate, metric).room
        spread = math.sqrt(room * (reach - room)) if reach and room < reach else 0.0

        def decides(units: int) -> bool:
            luck = normal_quantile(_EQUAL_RUNS) * spread * math.sqrt(max(0.0, 1 / data.units - 1 / units))
            predicted = _predict_evidence(self, units, metric)
            power = replace(predicted.drop_power(gate, metric), room=max(room / 2, room - luck))
            smallest = predicted.found_drop(gate, metric, collapses=collapses)
            return smallest is not None and smallest <= power.far_limit(gate)

        return _fewest(decides, data.units)

    def units_to_gain(self, gain: float, gate: TestedChange, metric: Metric) -> int | None:
        """The number of units that the test needs to find a gain, scattering as these do; ``None`` as above."""
        level = (1 - gate.confidence) / gate.sides

        def finds(units: int) -> bool:
            scaled = _predict_evidence(self, units, metric)
            every = replace(scaled.estimate, changed=None if scaled.estimate.changed is None else units)
            shift = _shift_of_gain(scaled, gate, metric, level)
            return least_tail(every) <= level and shift is not None and abs(gate.max_drop) + shift <= gain

        return _fewest(finds, self.estimate.units)


def _test_largest_drop(question: DropQuestion, data: Estimate, test: SignificanceTest) -> Evidence:
    """The test of the largest possible drop: cases left out count as having lost all they can."""
    every = data.cases + data.left_out
    allowed = -1.0
    if data.left_out_drop is not None and data.cases:
        allowed = (question.max_drop * every - data.left_out_drop) / data.cases
    testable = allowed >= 0 or (question.max_drop < 0 and data.left_out_drop is not None)
    evidence = _test_drop(question._replace(max_drop=allowed if testable else 0.0), test)
    if data.left_out_drop is None or evidence.drop is None:
        return replace(evidence, tails=None)
    worst = (evidence.drop * data.cases + data.left_out_drop) / every
    return replace(evidence, tails=evidence.tails if testable else Tails(1.0, 1.0), worst=worst)


def _test_drop(question: DropQuestion, test: SignificanceTest) -> Evidence:
    """The significance test of a drop, or the bootstrap and a note if that test does not apply to the runs."""
    evidence = _bootstrap(question, corrected=test == "bca")
    if evidence.drop is None:
        return evidence
    if test not in ("bootstrap", "bca") and not question.pairing.paired:
        evidence = replace(evidence, notes=(*evidence.notes, f"bootstrap instead of {test}, which needs paired cases"))
    elif test not in ("bootstrap", "bca") and evidence.estimate.shift is not None:
        evidence = replace(evidence, notes=(*evidence.notes, f"bootstrap instead of {test}, which needs one judge"))
    elif test not in ("bootstrap", "bca") and evidence.estimate.chain is not None:
        evidence = replace(evidence, notes=(*evidence.notes, f"bootstrap instead of {test}, which needs a single step"))
    elif test in ("mcnemar", "mcnemar_mid_p"):
        evidence = _mcnemar(question, evidence, mid_p=test == "mcnemar_mid_p")
    elif test == "wilcoxon":
        evidence = _guard_tails(question, replace(evidence, tails=_wilcoxon(question), typical=True), means=False)
    elif test == "permutation":
        evidence = _guard_tails(question, replace(evidence, tails=_permutation(question)))
    else:
        evidence = _guard_tails(question, evidence)
    if evidence.interval is None or evidence.tails is None:
        return evidence
    tail = (1 - question.confidence) / 2
    return replace(evidence, interval=agreeing(evidence.interval, evidence.tails, question.max_drop, tail))


def _estimate(question: DropQuestion, *, jackknife: bool = False) -> Estimate:
    """The estimate of a metric's drop in both runs, with resamples."""
    pairing, rows, name, statistic = question[:4]
    estimates = estimate(
        pairing, rows, [name], statistic=statistic, cluster_by=question.cluster_by, jackknife=jackknife
    )
    return estimates[name]


def _bootstrap(question: DropQuestion, *, corrected: bool) -> Evidence:
    """The test of a drop by resampled cases, with percentiles or, if `corrected`, BCa."""
    pairing, name = question.pairing, question.metric
    data = _estimate(question, jackknife=corrected)
    alike = list(alike_cases(data, pairing, question.rows, question.cluster_by))
    notes = (*doubts(data, pairing, question.cluster_by), *map(str, alike))
    difference = data.difference
    if difference is None:
        return Evidence(data, None, None, None, 0.0, notes)
    metric = scaled(pairing.table.metric(name), data)
    falls = metric.higher_is_better
    drop = -difference if falls else difference
    bootstrap = Bootstrap.from_estimate(data, "bca" if corrected else "percentile", metric)
    if bootstrap is None:
        return Evidence(data, drop, None, None, 0.0, notes)
    low, high = held_interval(data, metric, bootstrap.interval(question.confidence), question.confidence)
    above, below = bootstrap.tails(-question.max_drop if falls else question.max_drop)
    return Evidence(
        data,
        drop,
        (-high, -low) if falls else (low, high),
        Tails(below, above) if falls else Tails(above, below),
        bootstrap.deviation,
        notes,
        alike=max(alike, key=lambda cases: cases.effect, default=None),
    )


def _guard_tails(question: DropQuestion, evidence: Evidence, *, means: bool = True) -> Evidence:
    """The p-values of a drop, raised to what so few cases can prove: resamples of equal cases are equal.

    What speaks against a drop where next to no case changed is just that: had the share of the cases that the drop
    needs lost all that they can lose, so few changes would be unlikely.

    Args:
        question: What is tested.
        evidence: What the test says.
        means: Whether it is about the mean of the cases, and not about the typical one.
    """
    if evidence.tails is None:
        return evidence
    data = evidence.estimate
    if lacks_scale(data):
        return replace(evidence, tails=Tails(1.0, 1.0))
    metric = scaled(question.pairing.table.metric(question.metric), data)
    falls = metric.higher_is_better
    above, below = evidence.tails
    if means:
        at = -question.max_drop if falls else question.max_drop
        held = held_tails(data, metric, Tails(below, above) if falls else Tails(above, below), at)
        above, below = (held.below, held.above) if falls else held
    least = witnessed_tail(data) if means else Tails(least_tail(data), least_tail(data))
    for_drop, for_gain = (least.below, least.above) if falls else least
    reach = span(metric)
    if question.max_drop <= 0:
        below = max(below, for_gain)  # a gain refutes that nothing changed, as a drop does
    elif data.changed is not None and data.changed < FEW_CHANGED:
        share = min(1.0, question.max_drop / reach) if reach else 0.0
        below = max(below, few_changes_tail(data.changed, data.units, share))
    return replace(evidence, tails=Tails(max(above, for_drop), below))


def _mcnemar(question: DropQuestion, evidence: Evidence, *, mid_p: bool) -> Evidence:
    """McNemar's test of a drop of two-valued case scores; `Untestable` for other scores."""
    import numpy as np

    here, there = _case_scores(question, "mcnemar")
    metric = scaled(question.pairing.table.metric(question.metric), evidence.estimate)
    low, high = metric.low, metric.high
    if low is None or high is None or low == high:
        raise Untestable(f"test mcnemar needs scores of two values, and {metric.name} declares no range")
    strange = [score for score in (*here, *there) if score not in (low, high)]
    if strange:
        raise Untestable(
            f"test mcnemar needs scores of {low:g} and {high:g}, found {strange[0]:.4g}: use test bootstrap or wilcoxon"
        )
    max_drop, reach = question.max_drop / (high - low), high - low
    drops = _drops(question, here, there)
    worse, better, pairs = int(np.sum(drops > 0)), int(np.sum(drops < 0)), len(drops)
    if max_drop < 0:
        mirrored = mcnemar_tails(better, worse, pairs, -max_drop, mid_p=mid_p)
        tails = Tails(mirrored.below, mirrored.above)
    else:
        tails = mcnemar_tails(worse, better, pairs, max_drop, mid_p=mid_p)
    least, most = mcnemar_interval(worse, better, pairs, question.confidence, mid_p=mid_p)
    return replace(
        evidence,
        interval=(reach * least, reach * most),
        tails=tails,
        notes=(*evidence.notes, f"{worse} worse, {better} better"),
    )


def _wilcoxon(question: DropQuestion) -> Tails:
    """Wilcoxon's signed-rank test of the drops of paired cases."""
    return wilcoxon_tails(_drops(question, *_case_scores(question, "wilcoxon")), question.max_drop)


def _drops(question: DropQuestion, here: FloatArray, there: FloatArray) -> FloatArray:
    """The drop of each paired case in a metric; positive if the current run is worse."""
    return there - here if question.pairing.table.metric(question.metric).higher_is_better else here - there


def _find_compared_rows(question: DropQuestion, columns: Columns) -> PairedRows:
    """The paired cases that both runs have measured, and that have a score in one of them at least."""
    pairing, rows, name = question[:3]
    lost = pairing.table.failed[name] | pairing.table.missing
    judged = columns.judged[name]
    here, there = (judged[part] & ~lost[part] for part in rows)
    measured = (here | there) & ~lost[rows.current] & ~lost[rows.baseline] & ~pairing.silent_in_one(name, rows)
    return PairedRows(rows.current[measured], rows.baseline[measured])


def _case_scores(question: DropQuestion, test: str) -> tuple[FloatArray, FloatArray]:
    """The case scores of both runs for a significance test that pairs them.

    Raises:
        Untestable: The metric is more than the mean of its cases' scores, or cases have one in one run only.
    """
    import numpy as np

    pairing, _, name, statistic = question[:4]
    columns = columns_of(pairing.table, statistic, [name])
    rows = _find_compared_rows(question, columns)
    here, there = (pairing.table.scores[name][part] for part in rows)
    single = int(np.sum(np.isfinite(here) != np.isfinite(there)))
    if single:
        raise Untestable(
            f"test {test} compares the scores of cases, and {counted(single, 'case')} have {name} in one run only: "
            "use test bootstrap"
        )
    if statistic == "value" and not (
        _is_mean(columns, name, rows.current, here) and _is_mean(columns, name, rows.baseline, there)
    ):
        raise Untestable(
            f"test {test} compares the scores of cases, and {name} is not a mean of them: "
            f"use mean({name}) or test bootstrap"
        )
    return here, there


def _is_mean(columns: Columns, name: str, rows: IntArray, scores: FloatArray) -> bool:
    """Whether a metric's value over cases is the mean of their scores, which tests of case scores need."""
    import numpy as np

    if not np.isfinite(scores).all():
        return False
    value = columns.formula(columns.matrix[rows].sum(axis=0, keepdims=True))[name][0]
    return abs(float(value) - float(scores.mean())) <= _SAME


def _permutation(question: DropQuestion) -> Tails:
    """The permutation test of a drop: both runs of random cases are swapped, larger drops counted (Good 2005).

    With a drop to test other than 0, the scores of the current run are raised by it first.
    """
    import numpy as np

    pairing, _, name, statistic = question[:4]
    try:
        drops = _drops(question, *_case_scores(question, "permutation")) - question.max_drop
        rows = _find_compared_rows(question, columns_of(pairing.table, statistic, [name]))
        units = pairing.units(rows.current, question.cluster_by)
        shares = np.bincount(units, weights=drops)[:, None] / len(drops)
        observed = float(shares.sum())
        exchanged = swapped_totals(shares, resample_count(len(shares)))[:, 0]
    except Untestable:
        if question.max_drop:
            raise
        observed, exchanged = _exchange_counts(question)
    finite = exchanged[np.isfinite(exchanged)]
    below, above = Resampled(finite).tails(observed)
    return Tails(above, below)


def _exchange_counts(question: DropQuestion) -> tuple[float, FloatArray]:
    """The drop, and the drops with the counts of random cases exchanged, for a permutation test."""
    import numpy as np

    pairing, _, name, statistic = question[:4]
    columns = columns_of(pairing.table, statistic, [name])
    rows = _find_compared_rows(question, columns)
    here, there = columns.matrix[rows.current], columns.matrix[rows.baseline]
    units = pairing.units(rows.current, question.cluster_by)
    apart = np.zeros((int(units.max()) + 1, here.shape[1]))
    np.add.at(apart, units, here - there)
    half = (here + there).sum(axis=0) / 2
    swapped = swapped_totals(apart, resample_count(len(apart))) / 2
    sign = -1.0 if pairing.table.metric(name).higher_is_better else 1.0

    def drop(shift: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            return sign * (columns.formula(half + shift)[name] - columns.formula(half - shift)[name])

    return float(drop(apart.sum(axis=0, keepdims=True) / 2)[0]), drop(swapped)


_POWER_SAID = f"in fewer than {100 * NormalTest.POWER:.0f} of 100 runs"


@dataclass(frozen=True, slots=True)
class DropPower:
    """The drops that a significance test can find with the cases, clusters and gates of a run.

    Attributes:
        level: The one-sided level at which the gate is judged, divided by the number of tests that are judged together.
        least: The smallest one-sided p-value that a drop can have, were every case to fall as far as it can.
        observed: The drop; ``None`` if it is not known.
        room: The largest drop that is possible, or that the baseline's scores suggest; infinite if none is known.
        possible: The largest drop that is possible; infinite if the metric declares no end.
        smallest: The smallest true drop that is found in 80 of 100 runs; ``None`` if no possible one is, or how
            much the difference scatters is not known.
        scatters: Whether the scatter is known.
    """

    level: float
    least: float
    observed: float | None
    room: float
    possible: float
    smallest: float | None
    scatters: bool

    @property
    def decides(self) -> bool:
        """True if some possible drop could have been significant."""
        return self.least <= self.level

    def far_limit(
        self,
        gate: TestedChange,
    ) -> float:
        """The largest drop that a test which can decide may fail to find: the larger of two limits.

        One is twice `max_drop`, the other half of what the score can fall.
        """
        return max(_FAR * gate.max_drop, _FAR_SHARE * self.room if math.isfinite(self.room) else 0.0)


def _least(data: Estimate, gate: TestedChange, room: float, reach: float | None) -> float:
    """The smallest p-value that the test has for any drop that is possible."""
    if data.bounded and room <= gate.max_drop:
        return 1.0
    if data.changed is None:
        return least_tail(data)
    can_fall = data.units
    if data.binary and reach and data.units == data.cases:
        can_fall = round(room / reach * data.cases)  # the others are wrong already
    sign = 0.5 ** (can_fall + (gate.test == "mcnemar_mid_p"))
    if data.binary or reach is None or room > reach:
        return float(sign)
    return max(float(sign), unseen_tail(room - gate.max_drop, reach, data.units))


def _falls_needed(level: float, gate: TestedChange) -> int:
    """The number of cases that must fall, with none rising, for a drop to be significant."""
    return math.ceil(-math.log2(level)) - (gate.test == "mcnemar_mid_p")


def units_needed(gate: TestedChange) -> int:
    """The number of units that must fall, with none rising, for a drop to be significant by one test alone."""
    return _falls_needed((1 - gate.confidence) / gate.sides, gate)


def units_of(data: Estimate) -> str:
    """The name of the units that a metric's estimate draws independently: cases, or the clusters that they come in."""
    if data.units == min(data.cases, data.baseline_cases):
        return counted(data.units, "case")
    return f"{counted(data.cases, 'case')} in {counted(data.units, 'cluster')}"


def _shift(evidence: Evidence, metric: Metric, tail: float, needed: int) -> float | None:
    """The smallest drop beyond the allowed one that the test finds; ``None`` if its scatter is unknown."""
    data = evidence.estimate
    paired = data.changed is not None
    reach, binary = span(metric), data.binary and paired
    scale = reach if binary and reach else 1.0
    shift = scale * NormalTest(1 - 2 * tail, data.units).detectable(evidence.deviation / scale, binary=binary)
    if reach and data.changed is not None and (data.binary or data.changed < needed):
        # How much the difference varies is not known from so few: the cases that have to fall are counted.
        shift = max(shift, reach * _falling_share(needed, data.units))
    return shift or None


def _shift_of_gain(evidence: Evidence, gate: TestedChange, metric: Metric, level: float) -> float | None:
    """The smallest gain beyond the required one that the test finds; ``None`` if its scatter is unknown.

    It is so large that the cases which would take it back could not all have gone unseen; see `unseen_tail`.
    """
    data, end = evidence.estimate, metric.worst
    shift = _shift(evidence, metric, level, _falls_needed(level, gate))
    if shift is None or end is None or data.baseline is None or data.changed is None:
        return shift
    unseen = 1 - level ** (1 / max(1, data.units))
    return max(shift, float(unseen * (abs(data.baseline - end) + abs(gate.max_drop)) / (1 - unseen)))


def _falling_share(needed: int, units: int) -> float:
    """The true share of falling units with which the test sees enough of them fall in 80 of 100 runs."""
    from scipy.special import bdtri

    return float(bdtri(needed - 1, units, 1 - NormalTest.POWER)) if needed <= units else 1.0


_FAR = 2
"""A detectable drop of so many times `max_drop` is far above it, if it is also beyond this share of the score."""

_FAR_SHARE = 0.5
_MOST_UNITS = 20_000


_MATTERS = 0.05
"""A drop by this share of the metric's range matters, unless the user says which does."""

_EQUAL_RUNS = 0.9
"""The share of equally good runs for which a number of cases is to suffice."""


def _within(bounds: tuple[float, float] | None, change: str, gate: TestedChange) -> str:
    """The interval of a tested change in words, with its confidence."""
    if bounds is None:
        return "no interval"
    return f"{100 * (1 - 2 * (1 - gate.confidence) / gate.sides):.6g}% interval of the {change} {interval(*bounds)}"


def _rise_tail(evidence: Evidence, gate: TestedChange) -> float:
    """The one-sided p-value of no rise, for what is known of a change."""
    if evidence.tails is None or evidence.drop is None:
        return 1.0
    if not gate.max_drop:
        return evidence.tails.below
    least = 1.0 if evidence.estimate.changed is None else 0.5**evidence.estimate.changed
    return max(least, normal_cdf(evidence.drop / evidence.deviation)) if evidence.deviation else least


def _size_that_matters(gate: WatchedChange, metric: Metric) -> tuple[float | None, str]:
    """The drop that matters, and its text with the unit or share."""
    size = gate.matters if gate.matters is not None else gate.max_drop
    if size > 0:
        return size, limit(size)
    reach = span(metric)
    if not reach:
        return None, ""
    return _MATTERS * reach, f"{_MATTERS * reach:.3g} ({_MATTERS:.0%} of the range)"


def units_to_rule_out(size: float, evidence: Evidence, gate: TestedChange, metric: Metric) -> int | None:
    """The number of units that rule out a drop in 9 of 10 equally good runs; ``None`` if more than 20,000."""
    data, tail = evidence.estimate, (1 - gate.confidence) / gate.sides
    end, reach = metric.worst, span(metric) or 0.0
    room = reach if end is None or data.value is None or not data.changed else abs(data.value - end)

    def rules_out(units: int) -> bool:
        deviation = _predict_evidence(evidence, units, metric).deviation
        if data.changed == 0:
            deviation = reach * math.sqrt(_most_changed(0, data.units) / units)
        luck = normal_quantile(_EQUAL_RUNS) * deviation
        width = -student_quantile(max(units, 2) - 1, tail) * deviation
        return luck + max(width, unseen_rest(room, units, tail)) <= size

    return _fewest(rules_out, data.units)


_MOST_CHANGED = 0.05
"""The probability that more cases change than is planned for."""


def _predict_evidence(evidence: Evidence, units: int, metric: Metric) -> Evidence:
    """The evidence as more units would give it, with the scatter that nine of ten such runs stay below.

    A deviation is an estimate itself, which rests on as many units as its squares do, now and then. That of yes and no
    is one of the share of cases that change, of which few cases may have shown none.
    """
    data, reach = evidence.estimate, span(metric)
    scaled, values = _scale_evidence(evidence, units), data.contributions
    if data.binary and reach and data.changed is not None and data.units == data.cases:
        return replace(scaled, deviation=reach * math.sqrt(_most_changed(data.changed, data.units) / units))
    rests_on = effective_units(values - values.mean()) if len(values) else 0.0
    if not rests_on:
        return scaled
    error = 0.5 * math.sqrt(1 / rests_on + data.units / (rests_on * units))
    deviation = scaled.deviation * (1 + normal_quantile(_EQUAL_RUNS) * error)
    if data.changed and data.changed < FEW_CHANGED and data.units == data.cases:
        size = math.sqrt(float((values**2).sum()) / data.changed)
        deviation = max(deviation, size * math.sqrt(_most_changed(data.changed, data.units) / units))
    return replace(scaled, deviation=deviation)


def _most_changed(changed: int, units: int) -> float:
    """An upper bound of the true share of units that change between runs, given how many did."""
    from scipy.special import bdtri

    return float(bdtri(changed, units, _MOST_CHANGED)) if changed < units else 1.0


def _scale_evidence(evidence: Evidence, units: int) -> Evidence:
    """The evidence as more units, scattering like these, would give it."""
    data = evidence.estimate
    more = units / data.units
    cases, others = round(more * data.cases), round(more * data.baseline_cases)
    changed = None if data.changed is None else round(more * data.changed)
    scaled = replace(data, units=units, cases=cases, baseline_cases=others, changed=changed)
    return replace(evidence, estimate=scaled, deviation=evidence.deviation / math.sqrt(more))


def _fewest(finds: Callable[[int], bool], units: int) -> int | None:
    """The fewest units with which a test decides, by doubling and bisection; ``None`` if too many."""
    few, many = 0, max(1, units)
    while not finds(many):
        few, many = many, 2 * many
        if many > _MOST_UNITS:
            return None
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if finds(middle) else (middle, many)
    return many

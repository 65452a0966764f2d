"""Comparison of a run with a baseline: differences of metrics, intervals and p-values."""

__all__ = ("Comparison", "Difference", "compare", "differences")

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_llmeval.core.results import Result
from pytest_llmeval.scoring.comparison.case_statistics import CaseStatistics
from pytest_llmeval.scoring.comparison.estimation import Estimate, estimate
from pytest_llmeval.scoring.comparison.inference import (
    Bootstrap,
    Method,
    agreeing,
    doubts,
    held_interval,
    held_tails,
    witnessed_tail,
)
from pytest_llmeval.scoring.comparison.pairing import PairedRows, RunPairing
from pytest_llmeval.scoring.comparison.significance import detectable_shift, two_sided
from pytest_llmeval.scoring.intervals import Tails
from pytest_llmeval.scoring.regression import Statistic


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric in both runs.

    Attributes:
        value: Of the current run, over the cases compared; ``None`` where it has none.
        baseline: Of the baseline.
        difference: `value` minus `baseline`.
        low: Lower bound of the interval of `difference`; ``None`` where there is no interval.
        high: Upper bound.
        p_value: Two-sided, of the hypothesis that there is no difference, by the same resamples as the interval; with
            fewer than six changed cases never below 0.05.
        cases: Cases compared: paired, those with a part in the metric in either run; else those of the current run.
        baseline_cases: Cases of the baseline.
        higher_is_better: The metric's direction.
        detectable: The smallest true difference that such a comparison finds in 80 of 100 runs, by normal theory;
            ``None`` where the results of no case differ, so that the scatter is unknown.
        notes: What to keep in mind when reading the numbers.
    """

    value: float | None
    baseline: float | None
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None
    cases: int
    baseline_cases: int
    higher_is_better: bool
    detectable: float | None
    notes: tuple[str, ...] = ()

    @property
    def drop(self) -> float | None:
        """How much worse the current run is; negative where it is better."""
        if self.difference is None:
            return None
        return -self.difference if self.higher_is_better else self.difference

    @property
    def drop_interval(self) -> tuple[float, float] | None:
        """The interval of `drop`."""
        if self.low is None or self.high is None:
            return None
        return (-self.high, -self.low) if self.higher_is_better else (self.low, self.high)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All metrics of a run against a baseline.

    Attributes:
        metrics: Metric name to difference; metrics of only one of the runs have no difference. ``pass_rate`` is last.
        paired: Whether the runs share cases; these were then compared case by case, and the others not at all.
        common: How many cases they share.
        only_current: How many only the current run has; an edited case is another one.
        only_baseline: How many only the baseline has.
        confidence: Of the intervals.
        method: ``percentile`` or ``bca``.
        cluster_by: The label whose cases were drawn together.
    """

    metrics: Mapping[str, Difference]
    paired: bool
    common: int
    only_current: int
    only_baseline: int
    confidence: float
    method: Method
    cluster_by: str | None = None


def compare(
    result: Result,
    baseline: Result | CaseStatistics,
    *,
    confidence: float = 0.95,
    method: Method = "percentile",
    statistic: Statistic = "value",
    cluster_by: str | None = None,
) -> Comparison:
    """Compare two runs metric by metric.

    Both runs are resampled with the same weights, and every resample gives a difference (paired bootstrap). Cases
    that only one run has are left out. Where the runs have no case in common, each is resampled on its own, which sees
    less.

    Args:
        result: The current run.
        baseline: The earlier one, or what was kept of it. Its counts enter the formulas of the current evaluators.
        confidence: Of the intervals, between 0 and 1.
        method: Of the intervals: percentiles, or bias-corrected and accelerated ones.
        statistic: ``value``, over summed counts, or ``mean``, over the scores of the cases.
        cluster_by: A label; cases with the same value of it are drawn together, such as those of one conversation.
            Default: the clusters of the current run.

    Returns:
        The differences. Equal data give equal numbers, in any order of the cases.

    Raises:
        ValueError: An argument is not one of the above, or no case has the label.
    """
    pairing = RunPairing(*_runs(result, baseline), result.evaluators)
    if cluster_by is None and result.clusters is not None:
        cluster_by = result.clusters.label
    if not 0 < confidence < 1:
        raise ValueError(f"found confidence {confidence!r}, expected a number between 0 and 1, such as 0.95")
    if method not in ("percentile", "bca"):
        raise ValueError(f"found method {method!r}, expected 'percentile' or 'bca'")
    if statistic not in ("value", "mean"):
        raise ValueError(f"found statistic {statistic!r}, expected 'value' or 'mean'")
    if cluster_by is not None and not pairing.has_label(cluster_by):
        raise ValueError(f"found cluster_by {cluster_by!r}, expected a label of the cases")
    found = differences(
        pairing,
        pairing.everything(),
        list(pairing.table.owner),
        confidence=confidence,
        method=method,
        statistic=statistic,
        cluster_by=cluster_by,
    )
    if isinstance(baseline, Result):
        found = {name: _with_signature_note(name, each, result, baseline) for name, each in found.items()}
    return Comparison(
        found,
        pairing.paired,
        pairing.common,
        pairing.only_current,
        pairing.only_baseline,
        confidence,
        method,
        cluster_by,
    )


def _runs(result: Result, baseline: Result | CaseStatistics) -> tuple[CaseStatistics, CaseStatistics]:
    """Return both runs in the precision that both have."""
    if isinstance(baseline, CaseStatistics):
        return CaseStatistics.of(result.records), baseline
    return CaseStatistics.exact(result.records), CaseStatistics.exact(baseline.records)


def _with_signature_note(name: str, difference: Difference, result: Result, baseline: Result) -> Difference:
    here, there = result.metrics.get(name), baseline.metrics.get(name)
    if here is None or there is None or here.signature == there.signature:
        return difference
    note = f"measured in different ways: {here.signature!r}, baseline {there.signature!r}"
    return replace(difference, notes=(*difference.notes, note))


def differences(
    pairing: RunPairing,
    rows: PairedRows,
    names: Sequence[str],
    *,
    confidence: float,
    method: Method = "percentile",
    statistic: Statistic = "value",
    cluster_by: str | None = None,
) -> dict[str, Difference]:
    """Compare metrics over some of the cases; see `compare`."""
    estimates = estimate(pairing, rows, names, statistic=statistic, cluster_by=cluster_by, jackknife=method == "bca")
    return {name: _difference(each, pairing, name, confidence, method, cluster_by) for name, each in estimates.items()}


def _difference(
    found: Estimate, pairing: RunPairing, name: str, confidence: float, method: Method, cluster_by: str | None
) -> Difference:
    low = high = p_value = detectable = None
    metric = pairing.table.metric(name)
    if bootstrap := Bootstrap.of(found, method, metric):
        held = zip(held_tails(found, metric, bootstrap.tails(0.0), 0.0), witnessed_tail(found), strict=True)
        tails = Tails(*map(max, held))
        interval = held_interval(found, metric, bootstrap.interval(confidence), confidence)
        low, high = agreeing(interval, tails, 0.0, (1 - confidence) / 2)
        p_value = two_sided(min(tails))
        detectable = detectable_shift(bootstrap.deviation, confidence, units=found.units) or None
    return Difference(
        found.value,
        found.baseline,
        found.difference,
        low,
        high,
        p_value,
        found.cases,
        found.baseline_cases,
        metric.higher_is_better,
        detectable,
        tuple(doubts(found, pairing, cluster_by)),
    )

"""Comparison of a run with a baseline."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, NamedTuple

from msgspec import structs

from pytest_llmeval.core import (
    Abstention,
    AlignedTable,
    ChangeVerdict,
    Metric,
    MetricChange,
    MetricIndex,
    Result,
    Statistic,
    SystemDifference,
    counted,
    interval,
    number,
)
from pytest_llmeval.numbers._case_statistics import CaseStatistics
from pytest_llmeval.numbers._drop_tests import AnyDrop, Evidence
from pytest_llmeval.numbers._estimation import Estimate, estimate
from pytest_llmeval.numbers._inference import (
    Bootstrap,
    Method,
    agreeing,
    doubts,
    held_interval,
    held_tails,
    holm_of_tested,
    scaled,
    witnessed_tail,
)
from pytest_llmeval.numbers._intervals import Tails
from pytest_llmeval.numbers._pairing import PairedRows, RunPairing
from pytest_llmeval.numbers._significance import two_sided
from pytest_llmeval.numbers._usage import UsageEvaluator

_USAGE: Final = frozenset(metric.name for metric in UsageEvaluator().describe())


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric in both runs.

    Attributes:
        value: Of the current run, over the cases compared; ``None`` if it has none.
        baseline: Of the baseline.
        difference: `value` minus `baseline`.
        low: Lower bound of the interval of `difference`; ``None`` if there is no interval.
        high: Upper bound.
        p_value: Two-sided, of the hypothesis that there is no difference, by the same resamples as the interval; with
            fewer than six changed cases never below 0.05.
        cases: Cases compared: paired, those with a part in the metric in either run; else those of the current run.
        baseline_cases: Cases of the baseline.
        higher_is_better: The metric's direction.
        detectable: The smallest true drop that such a comparison finds in 80 of 100 runs; ``None`` if no drop that is
            possible is found, or how much the difference scatters is not known.
        notes: What to keep in mind when reading the numbers.
        errored: Cases that errored in either run, and so are not among `cases`.
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
    errored: int = 0

    STATISTICS: ClassVar[tuple[Statistic, ...]] = ("value", "mean")
    """The statistics of a metric that two runs can be compared by."""

    @property
    def verdict(self) -> ChangeVerdict:
        """``improved`` or ``declined`` if the interval excludes 0; ``undecided`` if there is none."""
        if self.drop_interval is None:
            return "undecided"
        least, most = self.drop_interval
        return "declined" if least > 0 else "improved" if most < 0 else "not_significant"

    @property
    def drop(self) -> float | None:
        """The difference as a drop; negative if the current run is better."""
        if self.difference is None:
            return None
        return -self.difference if self.higher_is_better else self.difference

    @property
    def drop_interval(self) -> tuple[float, float] | None:
        """The interval of `drop`."""
        if self.low is None or self.high is None:
            return None
        return (-self.high, -self.low) if self.higher_is_better else (self.low, self.high)

    @staticmethod
    def between(
        pairing: RunPairing,
        rows: PairedRows,
        names: Sequence[str],
        *,
        confidence: float,
        method: Method = "percentile",
        statistic: Statistic = "value",
        cluster_by: str | None = None,
        tests: int = 1,
    ) -> "dict[str, Difference]":
        """Return the differences of metrics between two runs over some of the cases; see `compare`.

        Args:
            pairing: The runs.
            rows: The cases.
            names: The metrics.
            confidence: Of the intervals.
            method: Of the intervals.
            statistic: Of the metrics.
            cluster_by: The label whose cases are drawn together.
            tests: By how much the level of a drop that is found is divided.
        """
        estimates = estimate(
            pairing, rows, names, statistic=statistic, cluster_by=cluster_by, jackknife=method == "bca"
        )
        gate = AnyDrop(confidence)
        return {
            name: _metric_difference(data, pairing, name, method, cluster_by, gate, tests)
            for name, data in estimates.items()
        }

    @staticmethod
    def judge_family(
        pairing: RunPairing,
        rows: PairedRows,
        names: Sequence[str],
        decided: Mapping[str, ChangeVerdict] = {},
        *,
        confidence: float,
        means: Collection[str] = (),
        cluster_by: str | None = None,
    ) -> dict[str, MetricChange]:
        """Compare the metrics of a family and judge their changes: the only place that does.

        Args:
            pairing: The runs.
            rows: The cases to compare.
            names: The family, by whose size p-values are adjusted.
            decided: Metric to the verdict of its gate on a drop.
            confidence: Of the intervals and verdicts.
            means: Metrics of which the mean of case scores is compared, not the value.
            cluster_by: The label whose cases are drawn together.
        """
        compared = Difference.between(
            pairing, rows, names, confidence=confidence, cluster_by=cluster_by, tests=len(names)
        )
        adjusted = holm_of_tested([difference.p_value for difference in compared.values()])
        changes = {}
        for (name, difference), p_value in zip(compared.items(), adjusted, strict=True):
            verdict = difference.verdict
            if difference.difference is None:
                verdict = "undecided"
            elif not difference.difference or (
                verdict != "undecided" and (p_value is None or p_value > 1 - confidence)
            ):
                verdict = "not_significant"
            changes[name] = MetricChange(
                decided.get(name, verdict),
                difference.baseline,
                difference.value,
                difference.difference,
                difference.low,
                difference.high,
                p_value,
                difference.cases,
                "mean" if name in means else "value",
                difference.detectable,
                difference.notes,
            )
        return changes


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

    def __str__(self) -> str:
        return "\n".join((self._summary, *AlignedTable(self._cells).lines()))

    def _repr_html_(self) -> str:
        """The compared metrics as a table, for notebooks."""
        return f"<p>{self._summary}</p>{AlignedTable(self._cells).html()}"

    @property
    def _summary(self) -> str:
        """The verdict and the numbers of cases of both runs, for the text form of a comparison."""
        others = ((self.only_current, "only in the current run"), (self.only_baseline, "only in the baseline"))
        apart = [f"{counted(count, 'case')} {where}" for count, where in others if count]
        return "; ".join([f"{self.verdict.replace('_', ' ')}: {counted(self.common, 'case')} in both runs", *apart])

    @property
    def _cells(self) -> list[tuple[str, ...]]:
        """A header, and a row for each metric that has a value in one of the runs."""
        return [
            ("metric", "value", "baseline", "difference", "interval", "p", "verdict"),
            *(
                (
                    name,
                    number(metric.value),
                    number(metric.baseline),
                    number(metric.difference),
                    interval(metric.low, metric.high),
                    number(metric.p_value),
                    metric.verdict.replace("_", " "),
                )
                for name, metric in self.metrics.items()
                if not metric.value is metric.baseline is None
            ),
        ]

    @property
    def verdict(self) -> ChangeVerdict:
        """``declined`` if any metric declined, else ``undecided`` or ``improved`` if any metric is.

        P-values are adjusted for the number of metrics by Holm's method, at the level that `confidence` leaves. Calls,
        tokens, money and latency decide nothing: they differ between equally good runs. Metrics without a value in
        either run have no part.
        """
        decisive = [
            metric
            for name, metric in self.metrics.items()
            if name not in _USAGE and (metric.errored or not metric.value is metric.baseline is None)
        ]
        adjusted = holm_of_tested([difference.p_value for difference in decisive])
        tested = [
            (difference, p_value) for difference, p_value in zip(decisive, adjusted, strict=True) if p_value is not None
        ]
        verdicts = {difference.verdict for difference, p_value in tested if p_value <= 1 - self.confidence}
        if "declined" in verdicts:
            return "declined"
        if not tested or len(tested) < len(decisive):
            return "undecided"
        return "improved" if "improved" in verdicts else "not_significant"


def compare(
    result: Result,
    baseline: Result | CaseStatistics,
    *,
    confidence: float = 0.95,
    method: Method = "percentile",
    statistic: Statistic = "value",
    cluster_by: str | None = None,
    abstained: Abstention = "fell",
    max_errors: int = 0,
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
        abstained: ``fell``: a case that had a score in the baseline, and whose answer leaves nothing to score now, has
            the worst value of the metric. ``allowed``: it has no part in the current value.
        max_errors: How many cases may have errored in either run; with more, a metric has no difference, since the
            cases that are left need not be like the others. The pass rate counts them as failed.

    Returns:
        The differences. Equal data give equal numbers, in any order of the cases.

    Raises:
        TypeError: Something else than results is compared.
        ValueError: An argument is not one of the above, or no case has the label.
    """
    if not all(isinstance(run, Result | CaseStatistics) for run in (result, baseline)):
        raise TypeError("what is compared is no result of a run; pass what ev.score(...) or suite.run(...) returned")
    pairing = RunPairing(*_runs(result, baseline), result.evaluators, abstained=abstained)
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
    rows = pairing.everything()
    changes = Difference.between(
        pairing,
        rows,
        list(pairing.table.owner),
        confidence=confidence,
        method=method,
        statistic=statistic,
        cluster_by=cluster_by,
    )
    changes = {
        name: _without_errored(change, _errored_pairs(pairing, rows, name), max_errors)
        for name, change in changes.items()
    }
    if isinstance(baseline, Result):
        changes = {name: _with_signature_note(name, change, result, baseline) for name, change in changes.items()}
    return Comparison(
        changes,
        pairing.paired,
        pairing.common,
        pairing.only_current,
        pairing.only_baseline,
        confidence,
        method,
        cluster_by,
    )


def _runs(result: Result, baseline: Result | CaseStatistics) -> tuple[CaseStatistics, CaseStatistics]:
    """The case statistics of a run and its baseline, in the precision that both have."""
    if isinstance(baseline, CaseStatistics):
        return CaseStatistics.from_records(result.records), baseline
    return CaseStatistics.exact(result.records), CaseStatistics.exact(baseline.records)


def _errored_pairs(pairing: RunPairing, rows: PairedRows, name: str) -> int:
    """The number of errored cases in a metric's comparison of two runs; a pair counts once."""
    here, there = (pairing.table.failed[name][part] for part in rows)
    return int((here | there).sum()) if pairing.paired else int(here.sum() + there.sum())


def _without_errored(difference: Difference, errored: int, most: int) -> Difference:
    """A metric's difference with the count of errored cases, without numbers if these are too many."""
    if errored <= most:
        return replace(difference, errored=errored)
    note = f"no difference: {counted(errored, 'case')} errored, expected at most {most} (max_errors)"
    return replace(
        difference,
        difference=None,
        low=None,
        high=None,
        p_value=None,
        detectable=None,
        errored=errored,
        notes=(*difference.notes, note),
    )


def _with_signature_note(name: str, difference: Difference, result: Result, baseline: Result) -> Difference:
    """Add a note to a metric's difference if both runs computed it differently."""
    here, there = result.metrics.get(name), baseline.metrics.get(name)
    if here is None or there is None or here.signature == there.signature:
        return difference
    note = f"measured in different ways: {here.signature!r}, baseline {there.signature!r}"
    return replace(difference, notes=(*difference.notes, note))


def _metric_difference(
    data: Estimate, pairing: RunPairing, name: str, method: Method, cluster_by: str | None, gate: AnyDrop, tests: int
) -> Difference:
    """A metric's difference between two runs, with interval, p-value and detectable drop."""
    low = high = p_value = detectable = None
    metric, confidence = pairing.table.metric(name), gate.confidence
    if bootstrap := Bootstrap.from_estimate(data, method, metric):
        held = zip(held_tails(data, metric, bootstrap.tails(0.0), 0.0), witnessed_tail(data), strict=True)
        tails = Tails(*map(max, held))
        interval = held_interval(data, metric, bootstrap.interval(confidence), confidence)
        low, high = agreeing(interval, tails, 0.0, (1 - confidence) / 2)
        p_value = two_sided(min(tails))
        evidence = Evidence(data, None, None, None, bootstrap.deviation, ())
        detectable = evidence.drop_power(gate, scaled(metric, data), tests).smallest
    return Difference(
        data.value,
        data.baseline,
        data.difference,
        low,
        high,
        p_value,
        data.cases,
        data.baseline_cases,
        metric.higher_is_better,
        detectable,
        tuple(doubts(data, pairing, cluster_by)),
    )


_SAME = 1e-12
"""Scores of a case that differ by no more are a tie."""


class SystemTable(NamedTuple):
    """The metrics of a suite's systems, with significance tests of each against the reference system.

    Attributes:
        reference: The system that the others are compared with.
        metrics: Those of any system, ``pass_rate`` last.
        results: System to result, over all its cases.
        differences: System to metric to difference; without the reference, and empty without a common case.
        confidence: Of the intervals of differences.
    """

    reference: str
    metrics: Sequence[str]
    results: Mapping[str, Result]
    differences: Mapping[str, Mapping[str, SystemDifference]]
    confidence: float

    @staticmethod
    def of_results(
        results: Mapping[str, Result],
        reference: str,
        metrics: MetricIndex,
        *,
        family: Collection[str] = (),
        confidence: float = 0.95,
        cluster_by: str | None = None,
        abstained: Abstention = "fell",
    ) -> "SystemTable":
        """Compare systems that answered the same cases.

        Args:
            results: System to result, in the order of the table.
            reference: One of the systems.
            metrics: What they were measured with.
            family: The metrics that systems are compared by: their p-values are adjusted together, over all systems,
                and other metrics have none. Default: all.
            confidence: Of the intervals of differences.
            cluster_by: A label; cases with the same value of it are drawn together.
            abstained: As of `compare`, about cases of which the reference has a score.
        """
        baseline = CaseStatistics.exact(results[reference].records)
        names = [*dict.fromkeys(name for result in results.values() for name in result.metrics), Metric.PASS_RATE]
        against: dict[str, dict[str, SystemDifference]] = {}
        for system, result in results.items():
            if system != reference:
                pairing = RunPairing(CaseStatistics.exact(result.records), baseline, metrics, abstained=abstained)
                against[system] = _against(pairing, names, confidence, cluster_by)
        cells = [(row, name) for row in against.values() for name in row if not family or name in family]
        adjusted = holm_of_tested([row[name].p_value for row, name in cells])
        for row in against.values():
            row.update({name: structs.replace(difference, p_value=None) for name, difference in row.items()})
        for (row, name), p_value in zip(cells, adjusted, strict=True):
            row[name] = _adjust_difference(row[name], p_value, confidence)
        return SystemTable(reference, names, results, against, confidence)


def _adjust_difference(difference: SystemDifference, p_value: float | None, confidence: float) -> SystemDifference:
    """A system difference with its adjusted p-value; if that is not significant, the interval holds 0."""
    low, high = difference.low, difference.high
    if p_value is not None and p_value > 1 - confidence and low is not None and high is not None:
        low, high = min(low, 0.0), max(high, 0.0)
    return structs.replace(difference, p_value=p_value, low=low, high=high)


def _against(
    pairing: RunPairing, names: Sequence[str], confidence: float, cluster_by: str | None
) -> dict[str, SystemDifference]:
    """A system's metric differences from the reference, with unadjusted p-values; empty without shared cases."""
    import numpy as np

    if not pairing.paired:
        return {}
    rows = pairing.everything()
    clusters = pairing.clusters_by(cluster_by)
    measured = [name for name in names if name in pairing.table.owner]
    compared = Difference.between(pairing, rows, measured, confidence=confidence, cluster_by=clusters)
    out = {}
    for name, difference in compared.items():
        scores = pairing.table.scores[name]
        better = scores[rows.current] - scores[rows.baseline]
        better = better[np.isfinite(better)] * (1 if difference.higher_is_better else -1)
        wins, losses = int((better > _SAME).sum()), int((better < -_SAME).sum())
        out[name] = SystemDifference(
            difference.value,
            difference.baseline,
            difference.difference,
            difference.low,
            difference.high,
            difference.cases,
            difference.notes,
            difference.p_value,
            wins,
            len(better) - wins - losses,
            losses,
        )
    return out

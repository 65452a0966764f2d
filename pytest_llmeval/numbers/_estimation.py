"""Differences of metrics between two runs, and their resamples."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from pytest_llmeval.core import FloatArray, Metric, Statistic
from pytest_llmeval.numbers._case_statistics import Chain
from pytest_llmeval.numbers._intervals import in_range, present
from pytest_llmeval.numbers._pairing import PairedRows, RunPairing, Shift
from pytest_llmeval.numbers._resample import SEED, BoolArray, IntArray, by_unit, resample_count, resampled_totals
from pytest_llmeval.numbers._table import Table

if TYPE_CHECKING:
    from pytest_llmeval.numbers._mergeable import Formula

_LEAST_UNITS = 2
_LEAST_SHARE = 0.5
_ROUNDING = 1e-12

_SAME_VARIANCE = 1.25
"""By how much more resamples may scatter than what units contribute."""

_APART = 11
"""Keeps noise apart from the draws of cases, which begin with the same seed."""

UNITS_OF_SCALE = 12
"""Without declared ends, the scores of so many units show the scale of a metric; fewer decide nothing."""

MANY_UNITS = 5_000
"""With more, what a few cases do to a difference is seen by resamples."""


def _no_resamples() -> FloatArray:
    """The empty array of an estimate without resamples; NumPy is imported only when needed."""
    import numpy as np

    return np.empty(0)


@dataclass(frozen=True)
class Estimate:
    """One metric in both runs, and how its difference scatters.

    Attributes:
        value: In the current run, over the cases compared; ``None`` if it has none.
        baseline: In the baseline.
        resampled: Differences of the resamples, finite ones only; empty if there is no interval.
        jackknives: Differences without one case each; one array per independent sample.
        contributions: What each unit, a case or a cluster, contributes to the difference, whose mean they are nearly
            (pseudo-values, Tukey 1958); empty if runs are not paired or too many units make them needless.
        contributing: The numbers of these units.
        cases: Cases with a part in the value of the current run; paired: in that of either run.
        baseline_cases: Cases with a part in the value of the baseline; paired: the same.
        units: Cases, or clusters of them, of the smaller run.
        changed: Paired cases, or clusters of them, whose results differ; ``None`` if runs are not paired.
        left_out: Cases that are not compared because they errored, or ran in one of the runs only.
        left_out_drop: How far these would have fallen at most, added up; ``None`` if the metric is unbounded.
        binary: Whether every case has one of the two ends of the metric as its score, in both runs.
        two_valued: Whether every result has one of the two ends as its score, repeats of a case each for itself.
        bounded: Whether the metric declares both its ends.
        extent: The smallest and the largest score of a case in the baseline; ``None`` if cases have none.
        errored: Cases of the current run that could not be measured.
        lost_resamples: Share of the resamples in which the metric has no value.
        fault: Why one of the runs has no value, if its cases do not say so.
        apart: Why the runs cannot be compared by the metric.
        shift: How far a change of judge moves the metric, which values and resamples take into account.
        bridge: Width of the interval of that; 0 if both runs have the same judge.
        current: Resampled values of the current run; empty unless a bridge needs them.
        falls: How many cases abstain in one run and have a score in the other, in words; empty for none.
        chain: The steps whose sum the difference is; ``None`` if it is the one between the two runs.
    """

    value: float | None
    baseline: float | None
    resampled: FloatArray = field(repr=False)
    jackknives: Sequence[FloatArray] = field(repr=False)
    contributions: FloatArray = field(repr=False)
    cases: int
    baseline_cases: int
    units: int
    changed: int | None
    left_out: int
    left_out_drop: float | None
    binary: bool
    errored: int
    lost_resamples: float
    two_valued: bool = False
    bounded: bool = True
    extent: tuple[float, float] | None = None
    fault: str = ""
    apart: str = ""
    shift: Shift | None = None
    falls: str = ""
    bridge: float = 0.0
    current: FloatArray = field(default_factory=_no_resamples, repr=False)
    contributing: Sequence[int] = field(default=(), repr=False)
    chain: Chain | None = None

    @property
    def difference(self) -> float | None:
        """The current value of the metric minus that of the baseline."""
        return None if self.value is None or self.baseline is None else self.value - self.baseline

    @staticmethod
    def step_between(pairing: RunPairing, metric: str, statistic: Statistic, cluster_by: str | None) -> Chain | None:
        """The step of a metric from the baseline to the current run, over all cases of both; ``None`` without one.

        Args:
            pairing: The two runs.
            metric: Its name.
            statistic: Of the metric.
            cluster_by: A label; cases with the same value of it are one unit.
        """
        if metric not in pairing.table.owner or (cluster_by and not pairing.has_label(cluster_by)):
            return None
        rows = pairing.everything()
        data = estimate(pairing, rows, [metric], statistic=statistic, cluster_by=cluster_by)[metric]
        return chain_step(data, pairing, rows, cluster_by)

    @staticmethod
    def chain_name(metric: str, statistic: Statistic, cluster_by: str | None) -> str:
        """The name in a score file of the chain of a statistic of a metric."""
        subject = Shift.subject_of(metric, statistic)
        return f"{subject} by {cluster_by}" if cluster_by else subject


class Columns(NamedTuple):
    """The count columns to add up for metrics, the formula over their sums, and the cases that give a metric a value.

    The other cases enter the sums all the same, as they do in the report: they may lower a value without having one.
    """

    matrix: FloatArray
    formula: "Formula"
    judged: Mapping[str, BoolArray]


def columns_of(table: Table, statistic: Statistic, names: Sequence[str]) -> Columns:
    """The count columns of a table from which a statistic of metrics is computed."""
    import numpy as np

    if statistic == "value":
        judged = {name: table.judged(name) for name in table.owner}
        return Columns(table.matrix, table.summarize, judged)
    scores = np.column_stack([table.scores[name] for name in names])
    exists = np.isfinite(scores)
    # Most metrics have a score in the same cases, which are then counted once.
    patterns: dict[bytes, int] = {}
    counted = [patterns.setdefault(mask.tobytes(), len(patterns)) for mask in exists.T]
    counts = exists[:, [counted.index(place) for place in range(len(patterns))]]
    width = len(names)

    def means(totals: FloatArray) -> dict[str, FloatArray]:
        with np.errstate(all="ignore"):
            quotients = totals[:, :width] / totals[:, width:][:, counted]
        return dict(zip(names, quotients.T, strict=True))

    matrix = np.hstack([np.where(exists, scores, 0.0), counts.astype(float)])
    if table.weights is not None:
        matrix *= table.weights[:, None]
    return Columns(matrix, means, dict(zip(names, exists.T, strict=True)))


def estimate(
    pairing: RunPairing,
    rows: PairedRows,
    names: Sequence[str],
    *,
    statistic: Statistic = "value",
    cluster_by: str | None = None,
    jackknife: bool = False,
) -> dict[str, Estimate]:
    """The estimates of the differences of metrics between two runs, with resamples.

    Args:
        pairing: The two runs.
        rows: The cases.
        names: The metrics.
        statistic: Of the metric: the formula over summed counts, or the mean of the cases' scores.
        cluster_by: A label; cases with the same value of it are drawn together.
        jackknife: Whether leave-one-out values are wanted.

    Returns:
        Metric to estimate.
    """
    # All metrics come from the same resamples, so several gates on one suite cost hardly more than one.
    known = (rows.current.tobytes(), rows.baseline.tobytes(), statistic, cluster_by, jackknife)
    if known not in pairing.estimates:
        every = list(pairing.table.owner)
        pairing.estimates[known] = _estimate(pairing, rows, every, statistic, cluster_by, jackknife=jackknife)
    estimates: dict[str, Estimate] = pairing.estimates[known]
    out = {name: _across(estimates[name], pairing.shifts.get(Shift.subject_of(name, statistic))) for name in names}
    for name in names:
        earlier = pairing.chains.get(Estimate.chain_name(name, statistic, cluster_by))
        step = None if earlier is None else chain_step(out[name], pairing, rows, cluster_by)
        if earlier is not None and step is not None:
            previous = {} if cluster_by else pairing.matching.by_content
            out[name] = _chain_estimate(out[name], earlier.extended(step, previous), pairing.table.metric(name))
    return out


def chain_step(data: Estimate, pairing: RunPairing, rows: PairedRows, cluster_by: str | None) -> Chain | None:
    """The step of a metric's chain from the baseline to the run; ``None`` if its units' errors are not known."""
    import numpy as np

    values, difference = data.contributions, data.difference
    if difference is None or not len(values) or len(values) != len(data.contributing) or data.chain is not None:
        return None
    units = pairing.units(rows.current, cluster_by).tolist()
    records = [pairing.table.records[row] for row in rows.current]
    names = {unit: record.labels.get(cluster_by or "", record.id) for unit, record in zip(units, records, strict=True)}
    errors = (values - values.mean()) / len(values)
    known, scatter = math.fsum(errors**2), float(np.var(data.resampled))
    # What single cases do not show, such as the error of a correction, is in the resamples.
    remainder = scatter - known if scatter > _SAME_VARIANCE * known + _ROUNDING else 0.0
    named = dict(zip((names[unit] for unit in data.contributing), errors.tolist(), strict=True))
    return Chain(difference, 1, data.units, data.changed or 0, named, remainder)


def _chain_estimate(data: Estimate, chain: Chain, metric: Metric) -> Estimate:
    """The estimate of the difference from the first run of a chain, of which two runs are the last step.

    Of the first run's cases none may be left, so the baseline is what the steps say that it would be with the current
    ones. A sum may say what is out of the metric's range, to which it is then cut.
    """
    import numpy as np

    noise = np.random.default_rng(SEED + _APART).standard_normal(data.resampled.size)
    value = data.value or 0.0  # which there is, if there are steps
    baseline = in_range(value - chain.moved, metric)
    return replace(
        data,
        chain=chain,
        baseline=baseline,
        resampled=value - baseline + math.sqrt(chain.variance) * noise,
        jackknives=(),
        contributions=data.contributions[:0],
        contributing=(),
        units=chain.units,
        changed=chain.changed,
        binary=False,
    )


def _across(data: Estimate, shift: Shift | None) -> Estimate:
    """A metric's estimate across a change of judge, whose uncertainty adds to that of the difference.

    How many cases changed is not known then: what the old judge said is no measure of what the new one would have said.
    """
    if shift is None:
        return data
    data = replace(data, shift=shift, contributions=data.resampled[:0], changed=None)
    if data.value is not None:
        data = replace(data, bridge=shift.width(data.value))
    if shift.rates and data.value is not None:
        # A difference was measured with as many right answers as there were then; now there may be others.
        before = data.current - data.resampled
        return replace(data, value=shift.former_value(data.value), resampled=shift.former(data.current) - before)
    baseline = None if data.baseline is None else data.baseline + shift.value
    resampled = data.resampled - shift.draws(data.resampled.size)
    return replace(data, baseline=baseline, resampled=resampled)


def _estimate(
    pairing: RunPairing,
    rows: PairedRows,
    names: Sequence[str],
    statistic: Statistic,
    cluster_by: str | None,
    *,
    jackknife: bool,
) -> dict[str, Estimate]:
    """Estimate metric differences between two runs; metrics that leave out the same cases share resamples."""
    columns = columns_of(pairing.table, statistic, names)
    patterns: dict[bytes, tuple[BoolArray, list[str]]] = {}
    for name in names:
        dropped = _find_dropped(pairing, name, rows)
        patterns.setdefault(dropped.tobytes(), (dropped, []))[1].append(name)
    out: dict[str, Estimate] = {}
    for dropped, members in patterns.values():
        out |= _Resampling(pairing, columns, rows, dropped, cluster_by).estimates(members, jackknife=jackknife)
    return out


def _find_dropped(pairing: RunPairing, name: str, rows: PairedRows) -> BoolArray:
    """The paired cases that are not compared: one run could not measure them, or abstains and may do so."""
    import numpy as np

    if not pairing.paired:
        return np.zeros(len(rows.current), dtype=bool)
    lost = pairing.table.failed[name] | pairing.table.missing
    dropped: BoolArray = np.not_equal(lost[rows.current], lost[rows.baseline])
    return dropped | pairing.silent_in_one(name, rows)


class _Resampling:
    """The cases of two runs, resampled together if they are paired and each on its own if not."""

    def __init__(
        self, pairing: RunPairing, columns: Columns, rows: PairedRows, dropped: BoolArray, cluster_by: str | None
    ) -> None:
        import numpy as np

        self.pairing, self.columns, self.rows, self.dropped = pairing, columns, rows, dropped
        here, there = columns.matrix[rows.current], columns.matrix[rows.baseline]
        if dropped.any():
            here, there = (np.where(dropped[:, None], 0.0, part) for part in (here, there))
        drawn = (rows.current,) if pairing.paired else rows
        self.units = [pairing.units(part, cluster_by) for part in drawn]
        blocks = [np.hstack([here, there])] if pairing.paired else [here, there]
        self.blocks = [by_unit(block, unit) for block, unit in zip(blocks, self.units, strict=True)]
        totals = _total(here), _total(there)
        # Means of scores rest on the scores of the cases that have one, unlike pooled values.
        pooled = columns.formula == pairing.table.summarize
        self.rests = [pairing.table.basis(total) if pooled else {} for total in totals]
        self.values = columns.formula(totals[0]), columns.formula(totals[1])
        with np.errstate(all="ignore"):
            self.exchanged = columns.formula(totals[1] - there + here) if pairing.paired else {}
        self.formula = _difference(columns.formula, here.shape[1]) if pairing.paired else columns.formula

    def estimates(self, names: Sequence[str], *, jackknife: bool) -> dict[str, Estimate]:
        """The estimates of metric differences, by name."""
        import numpy as np

        with np.errstate(all="ignore"):
            resampled = self._resample_differences(names)
            current = self._current(names) if any(shift.rates for shift in self.pairing.shifts.values()) else {}
            few = self.pairing.paired and len(self.blocks[0]) <= MANY_UNITS
            without = self._without_one(names) if jackknife or few else {}
        return {
            name: self._estimate(name, resampled[name], current.get(name), without.get(name, ()), jackknife=jackknife)
            for name in names
        }

    def _estimate(
        self,
        name: str,
        resampled: FloatArray,
        current: FloatArray | None,
        without: Sequence[FloatArray],
        *,
        jackknife: bool,
    ) -> Estimate:
        """The estimate of one metric's difference from resamples."""
        import numpy as np

        rows, table = self.rows, self.pairing.table
        judged = [self.columns.judged[name][part] for part in rows]
        units_of, changed = self.units, None
        if self.pairing.paired:
            judged = [part & ~self.dropped for part in judged]
        exists = [bool(part.any()) for part in judged]
        if self.pairing.paired:
            either = judged[0] | judged[1]
            judged, units_of = [either, either], [self.units[0], self.units[0]]
            changed = _distinct_units(self.units[0], either & self._changed(name))
        cases = [int(part.sum()) for part in judged]
        units = min(_distinct_units(unit, part) for unit, part in zip(units_of, judged, strict=True))
        value, baseline = (
            present(column[name][0]) if measured else None for column, measured in zip(self.values, exists, strict=True)
        )
        metric = table.metric(name)
        rests = [basis[name] for basis in self.rests if name in basis]
        faults = [
            f"{where}{basis.fault}"
            for basis, where in zip(rests, ("", "in the baseline "), strict=False)
            if basis.fault
        ]
        if rests:
            value, baseline = (
                None if basis.fault or number is None else in_range(number, metric)
                for basis, number in zip(rests, (value, baseline), strict=True)
            )
            units = min(units, *(int(basis.cases) for basis in rests))
            resampled = resampled + _unseen(math.hypot(*(basis.floor for basis in rests)), resampled.size)
        judged_rows = [own[part] for own, part in zip(rows, judged, strict=True)]
        scores = [table.scores[name][own] for own in judged_rows]
        extent = _score_extent(scores[1])
        ends = scaled_ends(metric, extent, units)
        left_out = self.pairing.count_left_out(name, rows)
        finite = resampled[np.isfinite(resampled)]
        lost = 1 - finite.size / resampled.size
        usable = value is not None and baseline is not None and units >= _LEAST_UNITS and lost < _LEAST_SHARE
        return Estimate(
            value=value,
            baseline=baseline,
            resampled=finite if usable else np.empty(0),
            jackknives=without if usable and jackknife else (),
            contributions=self._contributions(judged[0], value, baseline, without) if usable else np.empty(0),
            cases=cases[0],
            baseline_cases=cases[1],
            units=units,
            changed=changed,
            left_out=left_out.cases,
            left_out_drop=left_out.drop,
            binary=table.weights is None and _are_ends(scores, ends),
            two_valued=table.weights is None and all(self._has_ends(name, own, ends) for own in judged_rows),
            bounded=is_bounded(metric),
            extent=extent,
            errored=int(table.failed[name][rows.current].sum()),
            lost_resamples=lost,
            fault="; ".join(faults),
            apart=next((basis.apart for basis in rests if basis.apart), ""),
            falls=self.pairing.describe_falls(name, rows),
            contributing=np.flatnonzero(np.bincount(self.units[0][judged[0]])).tolist(),
            current=current[np.isfinite(resampled)] if usable and current is not None else np.empty(0),
        )

    def _contributions(
        self, judged: BoolArray, value: float | None, baseline: float | None, without: Sequence[FloatArray]
    ) -> FloatArray:
        """The pseudo-values of the units that have a part in the metric."""
        import numpy as np

        if not self.pairing.paired or len(without) != 1 or value is None or baseline is None:
            return np.empty(0)
        left = without[0][np.flatnonzero(np.bincount(self.units[0][judged]))]
        values = len(left) * (value - baseline) - (len(left) - 1) * left
        finite: FloatArray = values[np.isfinite(values)]
        return finite

    def _has_ends(self, name: str, rows: IntArray, ends: tuple[float | None, float | None]) -> bool:
        """Whether every result of some cases is one of two scores."""
        table = self.pairing.table
        for row in rows[~_at_ends(table.scores[name][rows], ends)].tolist():
            spread = (table.records[row].repeats or {}).get("spread", {}).get(name)
            if spread is None or any(score not in ends for score in spread["scores"]):
                return False
        return None not in ends

    def _changed(self, name: str) -> BoolArray:
        """The cases that matter to the difference: their counts of this run change the metric of the baseline."""
        import numpy as np

        before = float(self.values[1][name][0])
        with np.errstate(invalid="ignore"):  # without a success, a success costs infinitely much
            same: BoolArray = np.abs(self.exchanged[name] - before) <= _ROUNDING * max(1.0, abs(before))
        return ~same

    def _resample_differences(self, names: Sequence[str]) -> dict[str, FloatArray]:
        """The differences of resamples: one weight for both runs if they are paired."""
        import numpy as np

        count = min(resample_count(len(block)) for block in self.blocks)
        if not all(len(block) for block in self.blocks):
            return {name: np.full(count, np.nan) for name in names}
        draws = [
            self.formula(resampled_totals(block, count, SEED + number)) for number, block in enumerate(self.blocks)
        ]
        if len(draws) == 1:
            return dict(draws[0])
        return {name: draws[0][name] - draws[1][name] for name in names}

    def _current(self, names: Sequence[str]) -> dict[str, FloatArray]:
        """The values of the current run in the resamples of `_resample_differences`."""
        import numpy as np

        count = min(resample_count(len(block)) for block in self.blocks)
        if not all(len(block) for block in self.blocks):
            return {name: np.full(count, np.nan) for name in names}
        totals = resampled_totals(self.blocks[0], count, SEED)
        return dict(self.columns.formula(totals[:, : self.columns.matrix.shape[1]]))

    def _without_one(self, names: Sequence[str]) -> dict[str, tuple[FloatArray, ...]]:
        """Differences without one unit each; of unpaired runs, without one unit of either."""
        without = [self.formula(_total(block) - block) for block in self.blocks]
        if len(without) == 1:
            return {name: (without[0][name],) for name in names}
        here, there = self.values
        return {name: (without[0][name] - there[name], here[name] - without[1][name]) for name in names}


def is_bounded(metric: Metric) -> bool:
    """Whether a metric declares its ends, or what a case adds to it."""
    return metric.per_case is not None or (metric.low is not None and metric.high is not None)


def scaled_ends(metric: Metric, extent: tuple[float, float] | None, units: int) -> tuple[float | None, float | None]:
    """The ends of a metric; where it declares none, those of the baseline's scores if enough units show them."""
    if is_bounded(metric) or extent is None or extent[0] == extent[1] or units < UNITS_OF_SCALE:
        return metric.low, metric.high
    low, high = extent
    return low if metric.low is None else metric.low, high if metric.high is None else metric.high


def _are_ends(scores: Sequence[FloatArray], ends: tuple[float | None, float | None]) -> bool:
    """Whether all case scores of both runs lie at an end of the metric's range, as for pass or fail."""
    import numpy as np

    return None not in ends and all(bool(_at_ends(part, ends).all()) for part in map(np.asarray, scores))


def _at_ends(scores: FloatArray, ends: tuple[float | None, float | None]) -> BoolArray:
    """A mask of the case scores that lie at an end of the metric's range."""
    at_ends: BoolArray = (scores == ends[0]) | (scores == ends[1])
    return at_ends


def _score_extent(scores: FloatArray) -> tuple[float, float] | None:
    """The smallest and largest case score, the observed range of a metric; ``None`` without finite scores."""
    import numpy as np

    finite = scores[np.isfinite(scores)]
    return (float(finite.min()), float(finite.max())) if finite.size else None


def _unseen(floor: float, count: int) -> FloatArray:
    """Noise with the deviation that a metric's cases cannot have shown; the same in every process."""
    import numpy as np

    noise: FloatArray = floor * np.random.default_rng(SEED + _APART).standard_normal(count)
    return noise


def _total(block: FloatArray) -> FloatArray:
    """Add up the count rows of cases, correctly rounded."""
    import numpy as np

    return np.array([[math.fsum(column) for column in block.T]])


def _distinct_units(units: IntArray, chosen: BoolArray) -> int:
    """The number of independent units, cases or clusters, among the chosen cases."""
    import numpy as np

    return int(np.count_nonzero(np.bincount(units[chosen])))  # a tenth of the time of `np.unique`


def _difference(formula: "Formula", width: int) -> "Formula":
    """The formula of a metric difference between the left and the right part of the count columns."""

    def difference(totals: FloatArray) -> dict[str, FloatArray]:
        here, there = formula(totals[:, :width]), formula(totals[:, width:])
        return {name: here[name] - there[name] for name in here}

    return difference

"""The spread of the scores of a suite."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmeval.baselines import ApprovedCases
from pytest_llmeval.core import CaseLabels, Fault, FloatArray, Metric, SuiteError, counted
from pytest_llmeval.gates import ChangeGate, Gate
from pytest_llmeval.numbers import (
    CaseStatistics,
    ChangedShares,
    NormalTest,
    Table,
    WatchedRun,
)
from pytest_llmeval.reports import SuiteReport
from pytest_llmeval.suites import LoadedSuite, SuiteKey
from pytest_llmeval.workbench._report_pair import with_ids_of
from pytest_llmeval.workbench._reports import read_suites, results_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    IntArray = npt.NDArray[np.intp]


_MOST_REPEATS = 1000
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class ScoreSpread:
    """The variance of the difference of one case between two runs (Miller 2024, "Adding Error Bars to Evals").

    Attributes:
        between: Variance over cases of what the change does to a case; where cases come in clusters, that of
            independent cases whose mean would scatter as much.
        within: Variance of a single answer's score when a case is repeated; ``None`` where it is not known, and is
            then a part of `between`.
    """

    between: float
    within: float | None = None

    def of_case(self, repeats: int) -> float:
        """Return the variance of one case's difference, if both runs repeat it so often."""
        return self.between + 2 * (self.within or 0.0) / repeats


@dataclass(frozen=True, slots=True)
class Plan:
    """The test of a gate that is to find drops of a metric, with its power.

    Attributes:
        spread: Of the differences of cases.
        confidence: Of the test, which is two-sided.
        allowed: The drop that is tolerated; only what goes beyond it can be significant.
        runs: Within how many runs that have the drop a gate with ``rule: anytime`` is to find it; 0: one test does.
        tests: By how much the level is divided: gates that are judged together, times the groups of this one.
        room: The largest drop that is possible.
        share: Of the cases, that of the smallest group that is judged on its own.
        cluster: Mean number of cases of a cluster.
        safe: Whether safety is to be proven, so that drops are limits that an equally good run is to meet.
        reach: The range of the metric if each case has one of its ends as its score, which McNemar's test counts.
        mid_p: Whether that counts what was seen by half.
    """

    spread: ScoreSpread
    confidence: float = 0.95
    allowed: float = 0.0
    runs: int = 0
    tests: int = 1
    room: float = math.inf
    share: float = 1.0
    cluster: float = 1.0
    safe: bool = False
    reach: float | None = None
    mid_p: bool = True

    def detectable(self, cases: int, repeats: int = 1) -> float | None:
        """Return the smallest true drop that is found in 80 of 100 runs; ``None`` where no possible one is."""
        if self.reach and (answers := self._answers(cases, repeats)):
            share = answers.detectable() if cases >= self._fewest else None
            return None if share is None else self.reach * share
        return self._possible(cases, self._deviation(cases, repeats))

    def limit(self, cases: int) -> float | None:
        """The value that `detectable` approaches with ever more repeats."""
        return self._possible(cases, math.sqrt(self.spread.between / (self.share * cases)))

    def _answers(self, cases: int, repeats: int) -> ChangedShares | None:
        """Return the pairs that McNemar's test counts; ``None`` if another test decides."""
        if self.reach is None or repeats > 1 or self.allowed or self.runs or self.safe or self.cluster > 1:
            return None
        changed = min(1.0, self.spread.of_case(repeats) / self.reach**2)
        room = min(1.0, self.room / self.reach)
        return ChangedShares(changed, room, round(self.share * cases), self._tail, self.mid_p)

    def _possible(self, cases: int, deviation: float) -> float | None:
        """The smallest drop that is found with this deviation; ``None`` if it is larger than any possible one."""
        drop = self.allowed + self._needed(cases) * deviation
        if self.safe and math.isfinite(self.room):
            # What none of the cases is like is not ruled out by them, even if they are alike.
            drop = max(drop, self.room * (1 - self._tail ** (1 / self._units(cases))))
        return drop if drop <= self.room and cases >= self._fewest else None

    @property
    def _confidence(self) -> float:
        return 1 - (1 - self.confidence) / self.tests

    @property
    def _tail(self) -> float:
        return (1 - self._confidence) / 2

    def _units(self, cases: int) -> float:
        return max(1.0, self.share * cases / self.cluster)

    @property
    def _fewest(self) -> int:
        """The fewest cases: fewer than so many clusters cannot show that all of them fell."""
        if self.safe or self.runs:
            return 1
        units = math.ceil(-math.log2(self._tail) - _ROUNDING)
        return math.ceil(units * self.cluster / self.share - _ROUNDING)

    def chance(self, drop: float, cases: int, repeats: int = 1) -> float:
        """Return the chance that a true drop is found."""
        if drop > self.room or cases < self._fewest:
            return 0.0
        if self.reach and (answers := self._answers(cases, repeats)):
            return answers.power(drop / self.reach)
        deviation = self._deviation(cases, repeats)
        if not deviation:
            return float(drop > self.allowed)
        if self.runs:
            shifts = watch_shifts(self._confidence, self.runs)
            return float(shifts.searchsorted((drop - self.allowed) / deviation, "right")) / len(shifts)
        return NormalTest(self._confidence, self._units(cases)).power((drop - self.allowed) / deviation)

    def cases(self, drop: float, repeats: int = 1) -> int | None:
        """The number of cases that finds a true drop in 80 of 100 runs; ``None`` if it is tolerated, or impossible."""
        if drop <= self.allowed or drop > self.room:
            return None
        few, many = self._fewest - 1, self._fewest
        while not self._finds(drop, many, repeats):
            few, many = many, 2 * many
        while many - few > 1:
            middle = (few + many) // 2
            few, many = (few, middle) if self._finds(drop, middle, repeats) else (middle, many)
        return many

    def _finds(self, drop: float, cases: int, repeats: int) -> bool:
        """Whether so many cases and repeats find a true drop in 80 of 100 runs."""
        detectable = self.detectable(cases, repeats)
        return detectable is not None and detectable <= drop + _ROUNDING

    def repeats(self, drop: float, cases: int) -> int | None:
        """The number of repeats that finds a true drop in 80 of 100 runs; ``None`` if no number does."""
        for repeats in range(1, _MOST_REPEATS + 1):
            if self._finds(drop, cases, repeats):
                return repeats
        return None

    def _needed(self, cases: int) -> float:
        """The number of deviations beyond the tolerated drop at which a drop is found in 80 of 100 runs."""
        import numpy as np

        if self.runs:
            return float(np.quantile(watch_shifts(self._confidence, self.runs), NormalTest.POWER))
        return NormalTest(self._confidence, self._units(cases)).detectable()

    def _deviation(self, cases: int, repeats: int) -> float:
        return math.sqrt(self.spread.of_case(repeats) / (self.share * cases))


def measured_spread(
    here: FloatArray,
    there: FloatArray,
    units: "IntArray",
    *,
    within: float | None = None,
    repeats: tuple[int, int] = (1, 1),
) -> ScoreSpread:
    """Measure the spread of a metric's scores from two runs of the same cases.

    Args:
        here: One score per case, of the one run.
        there: Of the other.
        units: For every case the number of its cluster.
        within: Variance of single answers, if repeats have shown it.
        repeats: How many answers stand behind a score of either run.
    """
    total = _variance(here - there, units)
    if within is None:
        return ScoreSpread(total)
    return ScoreSpread(max(0.0, total - within / repeats[0] - within / repeats[1]), within)


def run_spread(scores: FloatArray, units: "IntArray") -> ScoreSpread:
    """Bound the spread of a metric's scores from a single run."""
    return ScoreSpread(2 * _variance(scores, units))


def _variance(values: FloatArray, units: "IntArray") -> float:
    """The variance of a metric's case scores, where cases of one cluster share part of it."""
    import numpy as np

    sums = np.bincount(units, weights=values - values.mean())
    clusters = np.unique(units).size
    return float(np.sum(sums**2)) / len(values) * clusters / (clusters - 1)


def pseudo_values(table: Table, metric: str, rows: "IntArray") -> FloatArray:
    """The contribution of each case to a pooled metric (Tukey 1958); of a mean, the scores of the cases.

    Args:
        table: The cases.
        metric: Its name.
        rows: The cases that the metric is computed from.
    """
    import numpy as np

    part = table.matrix[rows]
    total = part.sum(axis=0, keepdims=True)
    whole = table.summarize(total)[metric][0]
    without = table.summarize(total - part)[metric]
    with np.errstate(invalid="ignore"):  # a metric may be undefined without one of the cases
        values: FloatArray = np.asarray(len(rows) * whole - (len(rows) - 1) * without)
    return values


_LEAST = 2
"""Fewest cases or clusters that have a spread."""


@dataclass(frozen=True)
class Planned:
    """The power plan for one metric of a suite.

    Attributes:
        metric: As a gate names it.
        gate: On its drop; ``None`` if there is none.
        plan: The test of its drop; ``None`` if the spread is unknown.
        basis: Source of the spread, or why it is unknown.
        confidence: Of the test; ``None``: that of the gate.
        cluster_by: The label of clusters.
        cluster: Mean number of cases of a cluster; 1 without clusters.
        groups: How many groups its gate judges on their own; 0 if it judges all cases together.
        gates: How many gates are judged together with it.
    """

    metric: str
    gate: ChangeGate | None
    plan: Plan | None
    basis: str
    confidence: float | None = None
    cluster_by: str | None = None
    cluster: float = 1.0
    groups: int = 0
    gates: int = 1

    @property
    def name(self) -> str:
        """The metric, and the label of the groups that its gate judges."""
        return f"{self.metric} by {self.gate.by}" if self.gate is not None and self.gate.by else self.metric


@dataclass(frozen=True)
class ScoredRun:
    """The scores of one metric in one run of a suite, for power plans.

    Attributes:
        name: For people.
        scores: Case id to score.
        repeats: Number of answers behind a score.
        variances: Variance of the scores of each case that has several repeats.
    """

    name: str
    scores: Mapping[str, float]
    repeats: int = 1
    variances: Sequence[float] = ()


@dataclass(frozen=True)
class Sources:
    """The runs from which the spread of a suite's scores is known: the approved run, and reports.

    Attributes:
        suite: The suite.
        approved: Statistics of the approved run; ``None`` without one.
        reports: Name and content of reports, with the case ids of the first one.
        system: The system of the approved run; empty if the suite has none.
    """

    suite: LoadedSuite
    approved: CaseStatistics | None
    reports: Sequence[tuple[str, SuiteReport]]
    system: str = ""

    @classmethod
    def read(cls, suite: LoadedSuite, path: Path, reports: Sequence[Path]) -> "Sources":
        """Read all sources that exist.

        Raises:
            SuiteError: A file cannot be used, or a report knows nothing of the suite.
        """
        recorded: list[tuple[str, SuiteReport]] = []
        for report in reports:
            results = results_of(read_suites(str(report)), path)
            if len(results) != 1:
                named = " (name a system: FILE#NAME)" if results else ""
                message = f"found {counted(len(results), 'result')} of {path}, expected one{named}"
                raise SuiteError([Fault(str(report), 0, 0, "", message)])
            renamed = with_ids_of(recorded[0][1], results[0])[0] if recorded else results[0]
            recorded.append((str(report), renamed))
        system, approved = _approved(path, suite)
        return cls(suite, approved, recorded, system)

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics that approved run and reports have, without those of families."""
        every = [
            *(self._table.owner if self._table else ()),
            *(name for _, suite in self.reports for name in suite.metrics),
        ]
        return tuple(name for name in dict.fromkeys(every) if "[" not in name and name != Metric.PASS_RATE)

    @property
    def gated(self) -> tuple[str, ...]:
        """Names of the metrics of gates against a baseline."""
        return tuple(dict.fromkeys(gate.subject for gate in self.suite.regressions))

    def gates(self, name: str) -> Sequence[ChangeGate | None]:
        """Return the gates on the drop of a metric that test different things; ``None`` for a metric without any."""
        gates = {(type(gate), gate.by): gate for gate in reversed(self.suite.regressions) if gate.subject == name}
        return list(reversed(gates.values())) or [None]

    def together(self, gate: ChangeGate) -> int:
        """The number of gates that are judged together with a gate, itself included."""
        if not gate.claims:
            return 1
        return sum(regression.claims and regression.primary is gate.primary for regression in self.suite.regressions)

    def groups(self, gate: ChangeGate) -> Sequence[int]:
        """Return the sizes of the groups that a gate judges on their own."""
        from collections import Counter

        if gate.by is None:
            return ()
        sizes = Counter(group for case in self.suite.cases for group in CaseLabels(case.labels).groups(gate.by))
        return [size for size in sizes.values() if size >= gate.min_cases]

    def room(self, name: str) -> float:
        """Return the largest drop of a metric that is possible."""
        statistic, metric = Gate.split_statistic(name)
        declared = self._declared(metric)
        end = None if declared is None else declared.low if declared.higher_is_better else declared.high
        runs = self.runs(name)
        if end is None or not runs:
            return math.inf
        value = None
        if statistic == "value" and self._table is not None and metric in self._table.owner and len(runs) == 1:
            totals = self._table.matrix.sum(axis=0, keepdims=True)
            value = float(self._table.summarize(totals)[metric][0])
        if value is None or not math.isfinite(value):
            *_, last = runs
            value = math.fsum(last.scores.values()) / len(last.scores)
        return abs(value - end)

    def reach(self, name: str) -> float | None:
        """Return the range of a metric if each case has one of its ends as its score, in all runs; else ``None``."""
        declared = self._declared(Gate.split_statistic(name)[1])
        if declared is None or declared.low is None or declared.high is None:
            return None
        scores = {score for run in self.runs(name) for score in run.scores.values()}
        is_binary = bool(scores) and scores <= {declared.low, declared.high}
        return declared.high - declared.low if is_binary and declared.low < declared.high else None

    def _declared(self, metric: str) -> Metric | None:
        owned = self.suite.metrics.find(metric)
        return Metric(Metric.PASS_RATE) if metric == Metric.PASS_RATE else None if owned is None else owned.metric

    @cached_property
    def _table(self) -> Table | None:
        return None if self.approved is None else self.approved.table(self.suite.reported)

    def reported(self, name: str) -> list[ScoredRun]:
        """Return the scores of a metric in each report."""
        metric = Gate.split_statistic(name)[1]
        return [_recorded(report, recorded, metric) for report, recorded in self.reports]

    def runs(self, name: str) -> list[ScoredRun]:
        """Return the runs that have scores of a metric, the approved one first."""
        statistic, metric = Gate.split_statistic(name)
        runs = self.reported(name)
        if self.approved is not None and self._table is not None and metric in self._table.owner:
            # Reports have no counts, so runs are compared by what both have: the scores of cases.
            pooled = statistic == "value" and not runs
            scores = _approved_scores(self.approved, self._table, metric, pooled=pooled)
            name = f"approved run of {self.system}" if self.system else "approved run"
            runs.insert(0, ScoredRun(name, scores, self.suite.repeats.times))
        return [run for run in runs if len(run.scores) >= _LEAST]

    def units(self, ids: Sequence[str], cluster_by: str | None) -> "npt.NDArray[np.intp]":
        """Return for every case the number of its cluster; a case without the label is one of its own."""
        import numpy as np

        labels = {case.id: case.labels.get(cluster_by or "") for case in self.suite.cases}
        keys = [(labels.get(name) is None, labels.get(name) or name) for name in ids]
        return np.unique([f"{alone:d}{key}" for alone, key in keys], return_inverse=True)[1]


def planned(
    sources: Sources,
    name: str,
    *,
    confidence: float | None,
    cluster_by: str | None,
    stated: tuple[float | None, float | None] | None,
    gate: ChangeGate | None = None,
) -> Planned:
    """Plan the test of one metric of a suite, for ``llmeval power``.

    Args:
        sources: Sources of its scores.
        name: As a gate names it.
        confidence: Of the test; ``None``: that of its gate.
        cluster_by: A label; ``None``: that of its gate.
        stated: Standard deviations within and between cases, instead of those of the sources.
        gate: On its drop; ``None`` if there is none.
    """
    cluster_by = cluster_by or (gate.cluster_by if gate else None)
    units = sources.units([case.id for case in sources.suite.cases], cluster_by)
    cluster = len(units) / max(1, len(set(units)))
    if stated is not None:
        spread: ScoreSpread | None = ScoreSpread((stated[1] or 0.0) ** 2, None if stated[0] is None else stated[0] ** 2)
        basis = "as stated"
    else:
        spread, basis = _spread(sources, name, cluster_by)
    if spread is None:
        return Planned(name, gate, None, basis, confidence, cluster_by)
    room = sources.room(name)
    reach = sources.reach(name) if stated is None and spread.within is None else None
    if gate is None:
        plan = Plan(spread, 0.95 if confidence is None else confidence, room=room, cluster=cluster, reach=reach)
        return Planned(name, None, plan, basis, confidence, cluster_by, cluster)
    sizes = sources.groups(gate)
    plan = Plan(
        spread,
        confidence or gate.interval_confidence,
        gate.tolerated,
        max(gate.watched_runs, default=0),
        tests=sources.together(gate) * (max(1, len(sizes)) if gate.claims else 1),
        room=room,
        share=min(sizes) / len(sources.suite.cases) if sizes else 1.0,
        cluster=cluster,
        safe=gate.proves_safety,
        reach=reach,
        mid_p=gate.test != "mcnemar",
    )
    beside = sources.together(gate)
    return Planned(name, gate, plan, basis, confidence, cluster_by, cluster, groups=len(sizes), gates=beside)


def _spread(sources: Sources, name: str, cluster_by: str | None) -> tuple[ScoreSpread | None, str]:
    """The spread of a metric's scores from reports or the approved run, with its source in words."""
    import numpy as np

    runs = sources.runs(name)
    if not runs:
        return None, "no run has two scores of it"
    averaged = sources.suite.repeats.reduce == "mean"  # only a mean of n scores has 1/n of their variance
    variances = [variance for run in runs if averaged for variance in run.variances]
    within = math.fsum(variances) / len(variances) if variances else None
    *_, last = runs
    if len(runs) > 1 and (common := sorted(last.scores.keys() & runs[-2].scores.keys())):
        here, there = (np.array([run.scores[name] for name in common]) for run in (last, runs[-2]))
        units = sources.units(common, cluster_by)
        if len(set(units)) >= _LEAST:
            repeats = last.repeats, runs[-2].repeats
            basis = f"differences of {counted(len(common), 'case')} between {runs[-2].name} and {last.name}"
            return measured_spread(here, there, units, within=within, repeats=repeats), basis
    if within is not None:
        return ScoreSpread(0.0, within), f"repeats of {last.name}; a change is taken to move all cases alike"
    ids = sorted(last.scores)
    units = sources.units(ids, cluster_by)
    if len(set(units)) < _LEAST:
        return None, f"the cases of {last.name} are one cluster"
    return (
        run_spread(np.array([last.scores[id_] for id_ in ids]), units),
        f"scores of {last.name}, an upper bound: give --report of a second run, or of one with repeats",
    )


def _approved(path: Path, suite: LoadedSuite) -> tuple[str, CaseStatistics | None]:
    """The statistics of a suite's approved run, of the first system that has one, with the system's name."""
    for system in ("", *suite.systems):
        key = SuiteKey(str(path), str(path), variant=system)
        with suppress(FileNotFoundError):
            if approval := ApprovedCases.read(key):
                return system, approval.statistics
    return "", None


def _approved_scores(statistics: CaseStatistics, table: Table, metric: str, *, pooled: bool) -> dict[str, float]:
    """The scores of an approved run's cases on one metric by case id, or what they add to a pooled one."""
    import numpy as np

    rows = np.flatnonzero(table.judged(metric))
    scores = pseudo_values(table, metric, rows) if pooled and len(rows) >= _LEAST else table.scores[metric][rows]
    named = zip(rows, scores, strict=True)
    return {statistics.records[row].id: float(score) for row, score in named if math.isfinite(score)}


def _recorded(report: str, recorded: SuiteReport, metric: str) -> ScoredRun:
    """The scores of the cases of a report on one metric, with the variance of their repeats."""
    scores: dict[str, float] = {}
    variances: list[float] = []
    times = 1
    for case in recorded.cases:
        score = float(case.outcome == "passed") if metric == Metric.PASS_RATE else case.metrics.get(metric)
        if score is None or not case.ran:
            continue
        scores[case.id] = score
        repeated = list(_repeats(case.details, metric))
        if len(repeated) >= _LEAST:
            times = max(times, len(repeated))
            mean = math.fsum(repeated) / len(repeated)
            variances.append(math.fsum((repeat - mean) ** 2 for repeat in repeated) / (len(repeated) - 1))
    return ScoredRun(report, scores, times, variances)


def _repeats(details: Mapping[str, Any], metric: str) -> Iterator[float]:
    """Yield the scores of the repeats of a case in a report."""
    try:
        yield from (float(score) for score in details["repeats"]["spread"][metric]["scores"] if score is not None)
    except (KeyError, TypeError, ValueError):
        return


EARLIER_RUNS = 9
"""Equally good runs before the drop begins; they tell how lucky the baseline was."""

_HISTORIES = 1000
_SEED = 20
_LARGEST = 40.0
_STEPS = 14


@lru_cache
def watch_shifts(confidence: float, runs: int) -> FloatArray:
    """The size of drop that is found within so many runs, sorted, one number for each simulated history.

    Args:
        confidence: Of the gate.
        runs: How many of them have the drop.

    Returns:
        Drops beyond what is allowed, in standard deviations of the drop of a single run.
    """
    import numpy as np

    rng = np.random.default_rng(_SEED)
    # The noise of the baseline is shared by all runs, and as large as theirs.
    noise = (rng.normal(size=(_HISTORIES, 1)) + rng.normal(size=(EARLIER_RUNS + runs, _HISTORIES)).T) / np.sqrt(2)
    low, high = np.full(_HISTORIES, -_LARGEST), np.full(_HISTORIES, _LARGEST)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        alarmed = _alarms(noise, middle, confidence)
        low, high = np.where(alarmed, low, middle), np.where(alarmed, middle, high)
    return np.sort(high)


def _alarms(noise: FloatArray, shift: FloatArray, confidence: float) -> FloatArray:
    """A mask of the simulated histories of runs that raise an alarm if their last runs are worse by so much."""
    from statistics import NormalDist

    import numpy as np

    alone, needed = NormalDist().inv_cdf((1 + confidence) / 2), 1 / (1 - confidence)
    drops = noise.copy()
    drops[:, EARLIER_RUNS:] += shift[:, None]
    alarms = np.zeros(len(drops), dtype=bool)
    for end in range(EARLIER_RUNS + 1, drops.shape[1] + 1):
        ratios, unbegun = WatchedRun.weighted_ratios(drops[:, :end], 0.0, 1.0)
        alarms |= (ratios.sum(axis=-1) + unbegun >= needed) & (drops[:, end - 1] >= alone)
    return alarms

"""The matrix of a suite, one row per case and one column per count, and the summary of its cases."""

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_llmeval.core import (
    Basis,
    CaseLabels,
    CaseRecord,
    Clusters,
    Evaluator,
    EvaluatorError,
    FloatArray,
    GroupResult,
    Metric,
    MetricIndex,
    MetricValue,
    Observation,
    RecordedCounts,
    Result,
    Sums,
)
from pytest_llmeval.numbers._case_scores import CaseResults, PackedColumns, ScoreColumns, stack
from pytest_llmeval.numbers._intervals import (
    CountedMetric,
    corrected,
    partial_interval,
    resampled_deviation,
    share_interval,
    value_interval,
)
from pytest_llmeval.numbers._repeats import FALLEN, SCORED, WithFalls, case_weights, measured_counts
from pytest_llmeval.numbers._usage import UsageEvaluator, successes_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_MOST_VALUES = 500_000
"""Values to compute at once: a thousand labels have thousands of metrics."""
_MOST_KEPT = 2_000_000
"""Resampled values to keep at once."""

OUTCOME = "\x00outcome"
"""Label of the outcomes of cases; no evaluator of a suite can have it."""

_NOT_RUN, _PASSED, _NOT_PASSED = (
    Observation(counts) for counts in ({}, {"ran": 1, "passed": 1}, {"ran": 1, "passed": 0})
)


@dataclass(frozen=True)
class _PassRate(RecordedCounts):
    """The share of passed cases, as one more pair of counts, so that it gets groups and intervals like any metric."""

    name = OUTCOME
    origin = "outcomes are recorded"

    def describe(self) -> Sequence[Metric]:
        return (Metric.of_pass_rate(),)

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        return {Metric.PASS_RATE: sums["passed"] / sums["ran"]}

    @staticmethod
    def observation_of(record: CaseRecord) -> Observation:
        """The counts of a case for the pass rate; those of several runs as one are in its `observations`."""
        if not record.ran or record.outcome in ("skipped", "not_run", "not_scored"):
            return _NOT_RUN
        return _PASSED if record.outcome == "passed" else _NOT_PASSED


OUTCOME_EVALUATOR = _PassRate()


class Table:
    """The counts of a suite's run: one row per case, one column per count, for all evaluators.

    A case that fell weighs what it did `former` rows further on, if that is not 0.

    Attributes:
        weights: How many cases each case represents, by which its counts are multiplied; ``None`` if that is 1.
    """

    def __init__(
        self, evaluators: Mapping[str, Evaluator] | MetricIndex, records: Sequence[CaseRecord], former: int = 0
    ) -> None:
        import numpy as np

        of_run: dict[str, Evaluator] = {OUTCOME: OUTCOME_EVALUATOR}
        if any(record.calls or record.target_seconds or record.target_usage for record in records):
            of_run[UsageEvaluator.name] = UsageEvaluator()
        self.index = MetricIndex.from_evaluators(evaluators).extended(of_run)
        self.evaluators = dict(self.index.evaluators)
        self.names: dict[str, list[str]] = {}
        blocks = []
        seen = {label: _Seen.from_records(records, label) for label in self.evaluators}
        for label, of_label in seen.items():
            names, block = stack(of_label.observations, compact=True)
            block = of_label.by_case(block)
            if any(name.startswith(FALLEN) for name in names):
                counts = dict(zip(names, block.T.astype(float), strict=True))
                observations = [_observation_of(record, label) for record in records]
                self.evaluators[label], numbers = self._with_falls(label, observations, counts, former)
                names, block = [*(counts | numbers)], np.column_stack([*(counts | numbers).values()])
            self.names[label] = names
            blocks.append(block)
        self._starts = dict(zip(self.names, accumulate(map(len, self.names.values()), initial=0), strict=False))
        self._counts: npt.NDArray[Any] = np.hstack(blocks)
        self.records = records
        self._digests: dict[tuple[str, str], str] = {}
        ran = np.array([record.ran for record in records], dtype=bool)
        self.missing = ~ran
        self.errored = {
            label: ran
            & of_label.by_case(np.array([observation is None for observation in of_label.observations], dtype=bool))
            for label, of_label in seen.items()
        }
        self.scores = PackedColumns(len(records))
        for start, columns in self._summarize_rows(self._counts):
            for name, column in columns.items():
                self.scores.fill(name, start, column)
        weights = np.array([record.weight for record in records], dtype=float)
        self.weights = weights if (weights != 1).any() else None
        if self.weights is not None:
            self._counts = self._counts * self.weights[:, None]
        self.owned = {name: owned for name in self.scores if (owned := self.index.find(name)) is not None}
        self.owner = {name: owned.label for name, owned in self.owned.items()}
        self.absent = {
            label: of_label.by_case(
                np.array([_is_absent(observation) for observation in of_label.observations], dtype=bool)
            )
            for label, of_label in seen.items()
        }
        self.failed = {name: self.errored[label] for name, label in self.owner.items()}
        self.abstained: dict[str, npt.NDArray[np.bool_]] = {}
        self.undefined = self._leave_out(records)
        self.of_family = {name for name, owned in self.owned.items() if "[" in owned.metric.name}

    def _with_falls(
        self, label: str, observations: Sequence[Observation | None], counts: Mapping[str, FloatArray], former: int
    ) -> tuple[WithFalls, dict[str, FloatArray]]:
        """An evaluator by which cases that fell count as the worst value or score, and the counts it needs."""
        import numpy as np

        worst: dict[str, float] = {}
        numbers: dict[str, FloatArray] = {}
        measured = measured_counts(Sums(counts, len(observations)))
        with np.errstate(all="ignore"):
            values = _summarize_sums(self.evaluators[label], measured)
        for name in (name.removeprefix(FALLEN) for name in counts if name.startswith(FALLEN)):
            owned = self.index.find(self.index.full_name(label, name))
            if owned is None:
                continue
            silent = [_is_absent(observation, name) for observation in observations]
            scores = np.where(silent, np.nan, values.get(name, np.nan))
            share = counts[FALLEN + name]
            pooled = None if owned.metric.averaged else self.evaluators[label]
            weights = case_weights(pooled, measured, name, scores, share, former)
            scored = numbers[SCORED + name] = np.where(np.isfinite(scores), weights * (1 - share), 0.0)
            numbers[FALLEN + name] = weights * share
            known = scores[scored > 0]
            extreme = known.min if owned.metric.higher_is_better else known.max
            bound = owned.metric.worst
            worst[name] = bound if bound is not None else float(extreme()) if known.size else math.nan
        return WithFalls(self.evaluators[label], worst), numbers

    def worst(self, name: str) -> float:
        """The value of a metric that cases have which fell."""
        label = self.owner[name]
        evaluator = self.evaluators[label]
        assert isinstance(evaluator, WithFalls)
        return evaluator.worst[name.removeprefix(self.index.full_name(label, ""))]

    def summarize(self, matrix: FloatArray, names: Collection[str] | None = None) -> dict[str, FloatArray]:
        """Apply every evaluator's formula to rows of totals.

        Args:
            matrix: The rows.
            names: Metrics that are read; evaluators of no other are left out. Default: all.
        """
        import numpy as np

        out: dict[str, FloatArray] = {}
        with np.errstate(all="ignore"):
            for label, evaluator in self.evaluators.items():
                if names is None:
                    names_read = None
                else:
                    prefix = self.index.full_name(label, "")
                    names_read = frozenset(name.removeprefix(prefix) for name in names if self.owner[name] == label)
                    if not names_read:
                        continue
                columns = self._columns(label, matrix)
                values = _summarize_sums(evaluator, Sums(columns, len(matrix), names_read))
                out.update(_yield_declared(self.index, label, values))
        return out

    def _summarize_rows(
        self, matrix: "npt.NDArray[Any]", names: Collection[str] | None = None
    ) -> Iterator[tuple[int, dict[str, FloatArray]]]:
        """Apply the formulas to rows of totals, to some rows at a time if there are many metrics.

        Args:
            matrix: The rows.
            names: Metrics that are read; default: all.

        Yields:
            The first of some rows, and their metrics.
        """
        import numpy as np

        # Members of families need the counts of their own labels alone.
        width = len(names) if names and self.of_family.issuperset(names) else max(1, self._counts.shape[1])
        parts = max(1, -(-len(matrix) * width // _MOST_VALUES))
        start = 0
        for part in np.array_split(matrix, min(parts, max(1, len(matrix) // 2))):
            yield start, self.summarize(part.astype(float, copy=False), names)
            start += len(part)

    def basis(self, totals: FloatArray) -> dict[str, Basis]:
        """The number of cases on which values rest, for metrics of a part of the cases; default: none.

        Args:
            totals: One row.
        """
        return {
            self.index.full_name(label, name): basis
            for label, evaluator in self.evaluators.items()
            for name, basis in evaluator.basis(Sums(self._columns(label, totals), 1)).items()
        }

    def _columns(self, label: str, matrix: FloatArray) -> dict[str, FloatArray]:
        """The columns of one evaluator by the names of its counts."""
        start = self._starts[label]
        return {name: matrix[:, start + place] for place, name in enumerate(self.names[label])}

    @property
    def matrix(self) -> FloatArray:
        """The counts, one row per case."""
        return self._counts.astype(float, copy=False)

    def columns(self, label: str) -> FloatArray:
        """The counts of one evaluator, one row per case."""
        start = self._starts[label]
        return self._counts[:, start : start + len(self.names[label])].astype(float, copy=False)

    def judged(self, name: str) -> "npt.NDArray[np.bool_]":
        """Whether each case has a part in a metric."""
        return ~(self.absent[self.owner[name]] | self.undefined[name])

    def metric(self, name: str) -> Metric:
        """The declaration of a metric in the table, of a member of a family that of the family."""
        return self.owned[name].metric

    def _signature(self, name: str) -> str:
        """The signature of a metric in the table, with the part that depends on the cases."""
        metric = self.metric(name)
        return f"{metric.signature}|{self._digest_learned(name)}" if metric.learned else metric.signature

    def _digest_learned(self, name: str) -> str:
        """The digest of the texts, such as a judge's steps, on which a metric of the cases depends."""
        detail, label = self.metric(name).learned, self.owner[name]
        key = label, detail
        if key not in self._digests:
            observations = (_observation_of(record, label) for record in self.records)
            texts = {
                json.dumps(observation.details[detail])
                for observation in observations
                if observation is not None and detail in observation.details
            }
            self._digests[key] = sha256("\n".join(sorted(texts)).encode()).hexdigest()[:8] if texts else "none"
        return f"{detail}:{self._digests[key]}"

    def _leave_out(self, records: Sequence[CaseRecord]) -> "dict[str, npt.NDArray[np.bool_]]":
        """Erase the scores of cases that have none: many formulas give 0 where nothing was counted.

        Returns:
            Metric name to the cases that add nothing to a value, according to their evaluator.
        """
        import numpy as np

        nowhere = np.zeros(len(records), dtype=bool)
        undefined = dict.fromkeys(self.owner, nowhere)  # those of thousands of labels share what they do not change
        for name, label in self.owner.items():
            if self.absent[label].any():
                self.scores.erase(name, self.absent[label])
        for row, record in enumerate(records):
            for label, observation in record.observations.items():
                if not observation.undefined and not observation.errored:
                    continue  # as of most
                # The approved run may have had an evaluator that the suite has no more.
                for name in (*observation.undefined, *observation.errored) if label in self.evaluators else ():
                    full = self.index.full_name(label, name)
                    if full not in undefined:
                        continue
                    if undefined[full] is nowhere:
                        undefined[full], self.failed[full] = nowhere.copy(), self.failed[full].copy()
                    self.scores.erase(full, row)
                    if name in observation.abstained:
                        self.abstained.setdefault(full, nowhere.copy())[row] = True
                    if name in observation.errored:
                        undefined[full][row] = self.failed[full][row] = True
                    else:
                        undefined[full][row] = not self.evaluators[label].pools_undefined
        return undefined

    def design_effects(self, cluster_by: str) -> dict[str, float]:
        """The design effects of the values over all cases, if any."""
        from pytest_llmeval.numbers._resample import design_effect

        units = unit_numbers(self.records, cluster_by)
        totals = self._totals(self._counts)
        value, without = self.summarize(totals), self.summarize(totals - self._counts)
        effects = {name: design_effect(value[name] - without[name], units) for name in self.owner}
        return {name: effect for name, effect in effects.items() if effect is not None}

    def _totals(self, part: "npt.NDArray[Any]") -> FloatArray:
        """The exact totals of some columns of counts."""
        import numpy as np

        if part.dtype == np.int8 or not part.size:
            total: FloatArray = part.sum(axis=0, dtype=float, keepdims=True)
            return total
        return np.array([[math.fsum(column) for column in part.T]])

    def metrics(
        self, members: Sequence[int], confidence: float | None, cluster_by: str | None = None, faulty: int = 0
    ) -> dict[str, MetricValue]:
        """The metrics over some of the cases.

        Args:
            members: The cases.
            confidence: Of the intervals; ``None`` leaves them out.
            cluster_by: A label; intervals draw cases with the same value of it together.
            faulty: Further cases that have no row because they could not be read; they are missing.
        """
        import numpy as np

        rows = np.array(members, dtype=np.intp)
        part = self._counts[rows]
        totals = self._totals(part)
        values, rests = self.summarize(totals), self.basis(totals)
        units = unit_numbers([self.records[row] for row in members], cluster_by)

        missing = int(self.missing[rows].sum())
        counted: dict[str, CountedMetric] = {}
        bounds: dict[str, tuple[float, float]] = {}
        undecided: dict[str, CountedMetric] = {}
        for name, label in self.owner.items():
            scores = self.scores[name][rows]
            finite = scores[np.isfinite(scores)]
            judged = np.logical_not(self.absent[label] | self.undefined[name])
            measured = counted[name] = CountedMetric(
                metric=self.metric(name),
                signature=self._signature(name),
                pooled=float(values[name][0]),
                total=math.fsum(finite) if self.weights is None else self._weighted_total(scores, rows),
                cases=len(rows) + faulty,
                judged=int(judged[rows].sum()),
                scored=int(finite.size),
                errored=int(self.failed[name][rows].sum()),
                missing=missing + faulty,
                abstained=int(self.abstained[name][rows].sum()) if name in self.abstained else 0,
                basis=rests.get(name),
                units=None if cluster_by is None else len(set(units[judged[rows]].tolist())),
            )
            if confidence is not None and measured.value is not None and measured.has_interval:
                known = measured.drawn, measured.ranged, confidence
                alike = measured.basis is None and self.weights is None
                share = (
                    share_interval(measured.value, finite, *known) if alike else measured.closed_interval(confidence)
                )
                if share is None:
                    undecided[name] = measured
                else:
                    bounds[name] = share
        if undecided and confidence is not None:
            from pytest_llmeval.numbers._resample import by_unit

            bounds.update(self._resampled_intervals(by_unit(part, units), undecided, confidence))
        return {name: metric.metric_value(bounds.get(name)) for name, metric in counted.items()}

    def _weighted_total(self, scores: FloatArray, rows: "npt.NDArray[np.intp]") -> float:
        """The weighted mean of scores, times their number."""
        import numpy as np

        assert self.weights is not None
        exists = np.isfinite(scores)
        weights = self.weights[rows][exists]
        known = math.fsum(weights)
        return math.fsum(scores[exists] * weights) / known * len(weights) if known else 0.0

    def _resampled_intervals(
        self, block: "npt.NDArray[Any]", undecided: Mapping[str, CountedMetric], confidence: float
    ) -> Iterator[tuple[str, tuple[float, float]]]:
        """Yield the metrics that have an interval by resamples.

        Args:
            block: Totals of what is drawn together.
            undecided: Metrics with a value.
            confidence: Of the intervals.
        """
        import numpy as np

        from pytest_llmeval.numbers._resample import resample_count, resampled_totals

        totals = resampled_totals(block, resample_count(len(block)), compact=True)
        size = max(1, _MOST_KEPT // len(totals))
        members = sorted(self.of_family & undecided.keys(), key=lambda name: (name.partition("[")[2], name))
        fixed = [name for name in undecided if name not in self.of_family]
        for names in (fixed, *(members[start : start + size] for start in range(0, len(members), size))):
            columns = {name: np.full(len(totals), np.nan) for name in names}
            for start, part in self._summarize_rows(totals, frozenset(names)):
                for name in part.keys() & columns.keys():
                    columns[name][start : start + len(part[name])] = part[name]
            for name, column in columns.items():
                measured = undecided[name]
                known = measured.pooled, measured.drawn, measured.ranged, confidence
                if measured.basis is None:
                    bounds = value_interval(column, *known)
                else:
                    bounds = partial_interval(resampled_deviation(column), measured.basis, *known)
                if bounds is not None:
                    yield name, bounds

    def summarize_rows(
        self,
        rows: Sequence[int],
        metric: str,
        *,
        group_by: Sequence[str] = (),
        confidence: float | None = 0.95,
        cluster_by: str | None = None,
    ) -> Result:
        """Summarise some rows of a table as `summarize` does their records, for what is asked of many mixtures of rows.

        Args:
            rows: Which of them, in order.
            metric: Of which scores are wanted.
            group_by: As of `summarize`, like the rest.
            confidence: Of the intervals.
            cluster_by: A label.

        Returns:
            Metrics of these rows and their groups, without cases, and with the scores of one metric.
        """
        metrics, pass_rate, usage = _split(self, self.metrics(rows, confidence, cluster_by))
        groups = _groups(self, rows, group_by, confidence, cluster_by)
        scores = {metric: self.scores[metric][list(rows)]} if metric in self.scores else {}
        return Result(metrics, groups, (), pass_rate, scores, usage, self.evaluators)


def unit_numbers(records: Sequence[CaseRecord], cluster_by: str | None) -> "npt.NDArray[np.intp]":
    """The number of each case's resampled unit: its cluster, or without the label the case itself."""
    import numpy as np

    if cluster_by is None:
        return np.arange(len(records))
    keys = []
    for record in records:
        name = record.labels.get(cluster_by)
        keys.append((1, record.id) if name is None else (0, name))
    place = {key: number for number, key in enumerate(sorted(set(keys)))}
    return np.array([place[key] for key in keys], dtype=np.intp)


def cluster_totals(matrix: FloatArray, records: Sequence[CaseRecord], cluster_by: str | None, most: int) -> FloatArray:
    """Bootstrap totals of the rows of a matrix, those of a cluster drawn together; none for a single unit.

    Args:
        matrix: Shape ``(cases, counts)``.
        records: The cases.
        cluster_by: A label; cases with the same value of it are drawn together.
        most: Most resamples.
    """
    from pytest_llmeval.numbers._resample import by_unit, resample_count, resampled_totals

    drawn = by_unit(matrix, unit_numbers(records, cluster_by))
    return resampled_totals(drawn, min(most, resample_count(len(drawn)))) if len(drawn) > 1 else drawn[:0]


def _observation_of(record: CaseRecord, label: str) -> Observation | None:
    """The observation of a case by one evaluator; usage, and an outcome not stored, are derived from the record."""
    if label == UsageEvaluator.name:
        return UsageEvaluator.observation_of(
            record.calls, record.target_seconds, record.target_usage, successes_of(record)
        )
    if label == OUTCOME and label not in record.observations:
        return OUTCOME_EVALUATOR.observation_of(record)
    return record.observations.get(label)


class _Seen(NamedTuple):
    """The observations of cases by one evaluator of a table.

    Attributes:
        observations: One per case; or, of what is derived from records and equal for most cases, each once.
        places: The place of each case's observation; ``None`` if each case has its own.
    """

    observations: Sequence[Observation | None]
    places: "npt.NDArray[np.intp] | None"

    @classmethod
    def from_records(cls, records: Sequence[CaseRecord], label: str) -> "_Seen":
        """The observations of recorded cases."""
        import numpy as np

        if label not in (OUTCOME, UsageEvaluator.name):
            return cls([record.observations.get(label) for record in records], None)
        alike = [_alike_by(record, label) for record in records]
        kinds = {kind: place for place, kind in enumerate(dict.fromkeys(alike))}
        if None in kinds:
            return cls([_observation_of(record, label) for record in records], None)
        first = dict(zip(reversed(alike), reversed(records), strict=True))
        observations = [_observation_of(first[kind], label) for kind in kinds]
        return cls(observations, np.fromiter(map(kinds.__getitem__, alike), np.intp, len(records)))

    def by_case(self, values: "npt.NDArray[Any]") -> "npt.NDArray[Any]":
        """The values of observations as those of the cases."""
        return values if self.places is None else values[self.places]


def _alike_by(record: CaseRecord, label: str) -> object:
    """What cases have in common whose usage or outcome is the same; ``None`` for a case of its own."""
    if label == OUTCOME:
        return None if label in record.observations else (bool(record.observations or record.errors), record.outcome)
    if record.calls or record.target_seconds:
        return None
    return (successes_of(record), *record.target_usage)


def _is_absent(observation: Observation | None, name: str = "") -> bool:
    """Whether a case adds nothing to a metric: it was not measured, or it is undefined and has no counts."""
    if observation is None or (observation.undefined and not observation.counts):
        return True
    return name in observation.undefined or name in observation.errored


def _summarize_sums(evaluator: Evaluator, sums: Sums) -> Mapping[str, FloatArray]:
    """Apply an evaluator's formula to summed counts; its exceptions become an `EvaluatorError`."""
    try:
        columns = dict(evaluator.summarize(sums))
    except Exception as error:
        raise EvaluatorError(
            f"evaluator {evaluator.name!r}: summarize failed: {type(error).__name__}: {error}"
        ) from error
    return {name: _column(evaluator, name, values, sums.length) for name, values in columns.items()}


def _column(evaluator: Evaluator, name: str, values: object, length: int) -> FloatArray:
    """A column of a metric from a user's formula as floats."""
    import numpy as np

    try:
        column = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        column = np.empty(0)
    if column.shape != (length,):
        raise EvaluatorError(
            f"evaluator {evaluator.name!r}: summarize gave {type(values).__name__} for {name!r}, "
            f"expected a column of {length} numbers"
        )
    return column


def _yield_declared(
    index: MetricIndex, label: str, values: Mapping[str, FloatArray]
) -> Iterable[tuple[str, FloatArray]]:
    """Yield an evaluator's metric columns as declared, members of a family in the order of their labels."""
    columns = {index.full_name(label, name): column for name, column in values.items()}
    owners = {name: index.find(name) for name in columns}
    if undeclared := [name for name in values if owners[index.full_name(label, name)] is None]:
        raise EvaluatorError(
            f"evaluator {index.evaluators[label].name!r} returned metrics that describe() does not list: "
            f"{', '.join(map(repr, undeclared))}"
        )
    for declared in index.declared[label]:
        for name in sorted(name for name, owner in owners.items() if owner is declared):
            yield name, columns[name]


def summarize(
    evaluators: Mapping[str, Evaluator] | MetricIndex,
    records: Sequence[CaseRecord],
    *,
    group_by: Sequence[str] = (),
    confidence: float | None = 0.95,
    faulty: int = 0,
    cluster_by: str | None = None,
    sampled: float = 0.0,
) -> Result:
    """The result of a suite: its metrics over recorded cases, with groups and intervals.

    Args:
        evaluators: Label to evaluator, in the order of the report; or the index of their metrics.
        records: One per case of the suite, those that did not run included.
        group_by: Label names; each gives a partition of the cases, those without the label under ``(none)``.
        confidence: Of the intervals; ``None`` leaves them out.
        faulty: Number of cases that could not be read; they count as missing.
        cluster_by: A label; intervals draw cases with the same value of it together.
        sampled: Share of all cases that these are, if they are a sample: intervals are about all of them, so they
            are narrower by the finite-population correction; 0 if they are about all similar cases.

    Returns:
        Metrics of suite, groups and cases. Independent of the order in which cases ran.

    Raises:
        EvaluatorError: An evaluator returned a metric that it does not declare.
    """
    index = MetricIndex.from_evaluators(evaluators)
    table = Table(index, records)
    groups = _groups(table, range(len(records)), group_by, confidence, cluster_by, sampled)
    metrics, pass_rate, usage = _split(
        table, table.metrics(range(len(records)), confidence, cluster_by, faulty), sampled
    )
    columns = ScoreColumns(table.scores, table.owner, table.of_family)
    return Result(
        metrics,
        groups,
        CaseResults(records, columns, index),
        pass_rate,
        table.scores,
        usage,
        index.evaluators,
        records,
        None if cluster_by is None else _clusters_of_table(table, cluster_by),
    )


def _groups(
    table: Table,
    rows: Sequence[int],
    group_by: Sequence[str],
    confidence: float | None,
    cluster_by: str | None,
    sampled: float = 0.0,
) -> dict[str, dict[str, GroupResult]]:
    """The groups of a table's cases by label, summarised; their members are places among `rows`."""
    groups: dict[str, dict[str, GroupResult]] = {}
    for key in group_by:
        members: dict[str, list[int]] = {}
        for place, row in enumerate(rows):
            for group in CaseLabels(table.records[row].labels).groups(key):
                members.setdefault(group, []).append(place)
        results: dict[str, GroupResult] = {}
        # By size: resamples of one size are drawn once.
        for name, places in sorted(members.items(), key=lambda member: len(member[1])):
            picked = [rows[place] for place in places]
            metrics, pass_rate, usage = _split(table, table.metrics(picked, confidence, cluster_by), sampled)
            results[name] = GroupResult(len(places), metrics, pass_rate, places, usage)
        groups[key] = dict(sorted(results.items()))
    return groups


def _clusters_of_table(table: Table, label: str) -> Clusters:
    """The clusters of a table's cases by a label, with the design effect of each metric."""
    return Clusters(label, len(set(unit_numbers(table.records, label).tolist())), table.design_effects(label))


def _split(
    table: Table, metrics: Mapping[str, MetricValue], sampled: float = 0.0
) -> tuple[dict[str, MetricValue], MetricValue, dict[str, MetricValue]]:
    """The pass rate and usage, apart from the metrics of a table's evaluators."""
    own = {name: corrected(metric, sampled) for name, metric in metrics.items()} if sampled else dict(metrics)
    pass_rate = own.pop(Metric.PASS_RATE)
    usage = {name: own.pop(name) for name in metrics if table.owner[name] == UsageEvaluator.name}
    return own, pass_rate, {name: value for name, value in usage.items() if value.scored}

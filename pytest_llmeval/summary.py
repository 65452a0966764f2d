"""From records of cases to metrics of suite, groups and cases, with honest denominators."""

__all__ = (
    "CaseRecord",
    "CaseResult",
    "GroupResult",
    "MetricValue",
    "Result",
    "metric_prefix",
    "score",
    "summarize",
)

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pytest_llmeval.case import Case
from pytest_llmeval.errors import EvaluatorError, MissingDataError, MissingExtraError
from pytest_llmeval.evaluator import Evaluator, Metric
from pytest_llmeval.observation import Observation, Sums, stack
from pytest_llmeval.resample import percentile_interval, resample_count, resampled_totals

if TYPE_CHECKING:
    from pytest_llmeval.observation import FloatArray

Outcome = Literal["passed", "failed", "errored", "skipped", "not_run"]

UNLABELLED = "(none)"
"""The group of the cases that lack the label."""

_INTERVAL_CASES = 2


@dataclass(slots=True)
class CaseRecord:
    """What happened to one case: the input of every summary.

    Attributes:
        id: The case's id.
        labels: Its labels.
        outcome: What became of it.
        observations: Evaluator label to observation; absent where that evaluator could not measure.
        errors: Evaluator label to why it could not measure; ``""`` stands for all of them (no prediction).
        reason: Why the case failed, was skipped or did not run.
        duration_s: Seconds that the case took.
    """

    id: str
    labels: Mapping[str, str] = field(default_factory=dict)
    outcome: Outcome = "passed"
    observations: Mapping[str, Observation] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    reason: str | None = None
    duration_s: float = 0.0

    @property
    def ran(self) -> bool:
        """Whether anything was measured or tried."""
        return bool(self.observations or self.errors)


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One metric over a set of cases.

    Attributes:
        value: The formula over summed counts; ``None`` where it is undefined.
        mean: Mean over the cases that have a value of their own.
        low: Lower bound of the interval of `value`.
        high: Upper bound.
        scored: Cases with a value.
        undefined: Cases measured that have none (ground truth absent, nothing to judge).
        errored: Cases that could not be measured.
        missing: Cases that did not run.
        signature: How the metric is computed.
    """

    value: float | None
    mean: float | None
    low: float | None
    high: float | None
    scored: int
    undefined: int
    errored: int
    missing: int
    signature: str = ""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case's scores."""

    id: str
    outcome: Outcome
    metrics: Mapping[str, float | None]
    details: Mapping[str, Any]
    reason: str | None
    duration_s: float


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The metrics of one group of cases."""

    cases: int
    metrics: Mapping[str, MetricValue]
    pass_rate: MetricValue
    rows: "Sequence[int]" = field(repr=False, default=())


@dataclass(frozen=True, slots=True)
class Result:
    """All metrics of a suite.

    Attributes:
        metrics: Metric name to value.
        groups: Label name, label value to metrics.
        cases: One result per case.
        pass_rate: Share of the cases that passed among those that ran.
        scores: Metric name to the cases' own values (NaN where there is none), shape ``(cases,)``.
    """

    metrics: Mapping[str, MetricValue]
    groups: Mapping[str, Mapping[str, GroupResult]]
    cases: Sequence[CaseResult]
    pass_rate: MetricValue
    scores: "Mapping[str, FloatArray]" = field(repr=False, default_factory=dict)


@dataclass(frozen=True)
class _PassRate(Evaluator):
    """The share of passed cases, as one more pair of counts, so that it gets groups and intervals like any metric."""

    name = "pass_rate"

    def describe(self) -> Sequence[Metric]:
        return (Metric("pass_rate"),)

    def measure(self, case: Case) -> Observation:
        raise EvaluatorError(f"case {case.id!r}: outcomes are recorded, not measured")

    def summarize(self, sums: Sums) -> "Mapping[str, FloatArray]":
        return {"pass_rate": sums["passed"] / sums["ran"]}


_OUTCOME = "\x00outcome"  # no evaluator label can be this, so the names cannot clash


def metric_prefix(label: str, evaluator: Evaluator) -> str:
    """Return what stands before the metric names of an evaluator: nothing, or ``alias.`` where the suite renamed it."""
    return "" if label in (evaluator.name, _OUTCOME) else f"{label}."


class _Table:
    """One row per case, one column per count, for all evaluators of a suite."""

    def __init__(self, evaluators: Mapping[str, Evaluator], records: Sequence[CaseRecord]) -> None:
        import numpy as np

        self.evaluators = {**evaluators, _OUTCOME: _PassRate()}
        self.names: dict[str, list[str]] = {}
        blocks = []
        for label in self.evaluators:
            names, block = stack([_observation(record, label) for record in records])
            self.names[label] = names
            blocks.append(block)
        self.matrix = np.hstack(blocks)
        ran = np.array([record.ran for record in records], dtype=bool)
        self.missing = ~ran
        self.errored = {
            label: ran & np.array([_observation(record, label) is None for record in records], dtype=bool)
            for label in self.evaluators
        }
        self.scores = self.summarize(self.matrix)
        self.owner = {name: label for label in self.evaluators for name in self._own(label)}
        self.absent = {
            label: np.array([_is_absent(_observation(record, label)) for record in records], dtype=bool)
            for label in self.evaluators
        }
        self._leave_out(records)
        self.signature = {name: self._metric(name).signature for name in self.owner}

    def summarize(self, matrix: "FloatArray") -> "dict[str, FloatArray]":
        """Apply every evaluator's formula to rows of totals."""
        import numpy as np

        out: dict[str, FloatArray] = {}
        start = 0
        with np.errstate(all="ignore"):
            for label, evaluator in self.evaluators.items():
                names = self.names[label]
                columns = {name: matrix[:, start + place] for place, name in enumerate(names)}
                start += len(names)
                prefix = metric_prefix(label, evaluator)
                values = _formula(evaluator, Sums(columns, length=len(matrix)))
                out.update(_declared(evaluator, prefix, values))
        return out

    def _leave_out(self, records: Sequence[CaseRecord]) -> None:
        """Take the scores away from cases that have none: many formulas give 0 where nothing was counted."""
        import numpy as np

        for name, label in self.owner.items():
            self.scores[name] = np.where(self.absent[label], np.nan, self.scores[name])
        for row, record in enumerate(records):
            for label, observation in record.observations.items():
                for name in observation.undefined:
                    column = self.scores.get(metric_prefix(label, self.evaluators[label]) + name)
                    if column is not None:
                        column[row] = np.nan

    def _own(self, label: str) -> list[str]:
        prefix = metric_prefix(label, self.evaluators[label])
        families = {metric.family for metric in self.evaluators[label].describe()}
        return [
            name for name in self.scores if name.startswith(prefix) and _family(name.removeprefix(prefix)) in families
        ]

    def _metric(self, name: str) -> Metric:
        label = self.owner[name]
        evaluator = self.evaluators[label]
        bare = name.removeprefix(metric_prefix(label, evaluator))
        return next(metric for metric in evaluator.describe() if metric.family == _family(bare))

    def metrics(self, rows: Sequence[int], confidence: float | None) -> dict[str, MetricValue]:
        """Summarise some of the cases."""
        import numpy as np

        part = self.matrix[rows]
        totals = (
            np.array([[math.fsum(column) for column in part.T]]) if part.size else np.zeros((1, self.matrix.shape[1]))
        )
        values = self.summarize(totals)
        resampled: dict[str, FloatArray] = {}
        if confidence is not None and len(rows) >= _INTERVAL_CASES:
            resampled = self.summarize(resampled_totals(part, resample_count(len(rows))))
        missing = int(self.missing[rows].sum())
        out = {}
        for name, label in self.owner.items():
            scores = self.scores[name][rows]
            finite = scores[np.isfinite(scores)]
            errored = int(self.errored[label][rows].sum())
            value = None if self.absent[label][rows].all() else _present(values[name][0])
            bounds = None
            if value is not None and confidence is not None and name in resampled and finite.size >= _INTERVAL_CASES:
                bounds = percentile_interval(resampled[name], confidence)
            out[name] = MetricValue(
                value=value,
                mean=math.fsum(finite) / finite.size if finite.size else None,
                low=bounds[0] if bounds else None,
                high=bounds[1] if bounds else None,
                scored=int(finite.size),
                undefined=len(rows) - int(finite.size) - errored - missing,
                errored=errored,
                missing=missing,
                signature=self.signature[name],
            )
        return out


def _observation(record: CaseRecord, label: str) -> Observation | None:
    if label != _OUTCOME:
        return record.observations.get(label)
    if not record.ran or record.outcome in ("skipped", "not_run"):
        return Observation({})
    return Observation({"ran": 1, "passed": record.outcome == "passed"})


def _is_absent(observation: Observation | None) -> bool:
    """Whether a case adds nothing to a metric: it was not measured, or it says so and counted nothing."""
    return observation is None or bool(observation.undefined and not observation.counts)


def _family(name: str) -> str:
    head, bracket, _ = name.partition("[")
    return head + bracket


def _formula(evaluator: Evaluator, sums: Sums) -> "Mapping[str, FloatArray]":
    try:
        return evaluator.summarize(sums)
    except Exception as error:
        raise EvaluatorError(
            f"evaluator {evaluator.name!r}: summarize failed: {type(error).__name__}: {error}"
        ) from error


def _declared(
    evaluator: Evaluator, prefix: str, values: "Mapping[str, FloatArray]"
) -> "Iterable[tuple[str, FloatArray]]":
    """Yield metrics in the order of their declaration, members of a family in the order of their labels."""
    left = dict(values)
    declared = evaluator.describe()
    single = {metric.name for metric in declared}
    for metric in declared:
        members = [name for name in left if _family(name) == metric.family and name not in single - {metric.name}]
        for name in sorted(members):
            yield prefix + name, left.pop(name)
    if left:
        undeclared = ", ".join(map(repr, left))
        raise EvaluatorError(
            f"evaluator {evaluator.name!r} returned metrics that describe() does not name: {undeclared}"
        )


def _present(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def summarize(
    evaluators: Mapping[str, Evaluator],
    records: Sequence[CaseRecord],
    *,
    group_by: Sequence[str] = (),
    confidence: float | None = 0.95,
) -> Result:
    """Summarise recorded cases.

    Args:
        evaluators: Label to evaluator, in the order of the report.
        records: One per case of the suite, those that did not run included.
        group_by: Label names; each gives a partition of the cases, those without the label under ``(none)``.
        confidence: Of the intervals; ``None`` leaves them out.

    Returns:
        Metrics of suite, groups and cases. Independent of the order in which cases ran.

    Raises:
        EvaluatorError: An evaluator returned a metric that it does not declare.
    """
    table = _Table(evaluators, records)
    everything = range(len(records))
    groups: dict[str, dict[str, GroupResult]] = {}
    for key in group_by:
        members: dict[str, list[int]] = {}
        for row, record in enumerate(records):
            members.setdefault(record.labels.get(key, UNLABELLED), []).append(row)
        groups[key] = {
            name: GroupResult(len(rows), *_split(table.metrics(rows, confidence)), rows)
            for name, rows in sorted(members.items())
        }
    metrics, pass_rate = _split(table.metrics(everything, confidence))
    return Result(
        metrics,
        groups,
        [_case(table, row, each) for row, each in enumerate(records)],
        pass_rate,
        table.scores,
    )


def _split(metrics: dict[str, MetricValue]) -> tuple[dict[str, MetricValue], MetricValue]:
    pass_rate = metrics.pop("pass_rate")
    return metrics, pass_rate


def _case(table: _Table, row: int, record: CaseRecord) -> CaseResult:
    names = [name for name, label in table.owner.items() if label in record.observations]
    details: dict[str, Any] = {}
    undefined: dict[str, str] = {}
    for label, observation in record.observations.items():
        if observation.details:
            details[label] = observation.details
        prefix = metric_prefix(label, table.evaluators[label])
        undefined.update({prefix + name: why for name, why in observation.undefined.items()})
    if undefined:
        details["undefined"] = undefined
    if record.errors:
        details["errors"] = {label or "prediction": why for label, why in record.errors.items()}
    metrics = {name: _present(table.scores[name][row]) for name in names}
    return CaseResult(record.id, record.outcome, metrics, details, record.reason, record.duration_s)


def score(
    evaluator: Evaluator,
    cases: Iterable[Case],
    group_by: Sequence[str] = (),
    confidence: float | None = 0.95,
) -> Result:
    """Score cases that carry their predictions.

    Args:
        evaluator: From `get_evaluator`, or one of your own.
        cases: The cases; ids must be unique.
        group_by: Names of labels to group by.
        confidence: Of the intervals; ``None`` leaves them out and is faster.

    Returns:
        Metrics of the set, its groups and every case. A case that the evaluator could not measure counts as errored.

    Raises:
        MissingExtraError: An optional dependency is not installed.
        MissingDataError: Language data is not installed.
    """
    listed = list(cases)
    records = []
    for case, measured in zip(listed, measure_each(evaluator, listed), strict=True):
        if isinstance(measured, MissingDataError | MissingExtraError):
            raise measured
        if isinstance(measured, Observation):
            outcome: Outcome = "passed" if measured.malformed is None else "failed"
            observed = {evaluator.name: measured}
            records.append(CaseRecord(case.id, case.labels, outcome, observed, reason=measured.malformed))
        else:
            reason = f"{type(measured).__name__}: {measured}"
            records.append(CaseRecord(case.id, case.labels, "errored", errors={evaluator.name: reason}, reason=reason))
    return summarize({evaluator.name: evaluator}, records, group_by=group_by, confidence=confidence)


def measure_each(evaluator: Evaluator, cases: Sequence[Case]) -> list[Observation | Exception]:
    """Measure cases in the evaluator's batches; a case that cannot be measured gives its error and costs no other."""
    out: list[Observation | Exception] = []
    size = evaluator.batch
    for start in range(0, len(cases), size):
        batch = cases[start : start + size]
        if len(batch) == 1:
            out.append(_measure_alone(evaluator, batch[0]))
            continue
        try:
            measured = [_usable(each) for each in evaluator.measure_many(batch)]
        except Exception:  # noqa: BLE001 (one bad case must not cost the others theirs)
            measured = []
        out.extend(measured if len(measured) == len(batch) else [_measure_alone(evaluator, case) for case in batch])
    return out


def _measure_alone(evaluator: Evaluator, case: Case) -> Observation | Exception:
    try:
        return _usable(evaluator.measure(case))
    except Exception as error:  # noqa: BLE001 (whatever an evaluator raises concerns this case only)
        return error


def _usable(measured: Any) -> Observation | Exception:
    """Return an observation that can be added up, or why it is none: evaluators are users' code."""
    if not isinstance(measured, Observation):
        return EvaluatorError(f"measure returned {type(measured).__name__}, expected an Observation")
    fault = measured.fault()
    return measured if fault is None else EvaluatorError(fault)

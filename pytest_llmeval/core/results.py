"""The input and output of summaries: case records, metrics and their index by name, groups, results."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from pytest_llmeval.core.codec import AnyNumber, JsonNumber, WrittenField
from pytest_llmeval.core.evaluator import Evaluator, Metric
from pytest_llmeval.core.observation import Observation

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray

CaseOutcome: TypeAlias = Literal["passed", "failed", "errored", "xfailed", "known_failure", "skipped", "not_run"]
"""The outcome of a case. One that failed as expected (``xfailed``), or as was approved (``known_failure``), counts in
every score as any other; only its own verdict is excused."""

AnswerOrigin: TypeAlias = Literal["run", "recorded", "given"]
"""The origin of a prediction: the target in this run, or in an earlier one; or it came with the case."""

IntervalMethod: TypeAlias = Literal["wilson", "bootstrap", "delta"]

PASS_RATE = "pass_rate"  # noqa: S105 (a metric, no password)
"""The metric that every suite has: cases that passed among those that ran."""

UNLABELLED = "(none)"
"""The group of the cases that lack the label."""


class TargetUsage(NamedTuple):
    """The tokens and the cost of one prediction.

    Attributes:
        input_tokens: ``None`` if it does not say so.
        output_tokens: ``None`` if it does not say so.
        cost_usd: ``None`` where no price is known.
        origin: Where the prediction comes from.
    """

    input_tokens: JsonNumber | None = None
    output_tokens: JsonNumber | None = None
    cost_usd: JsonNumber | None = None
    origin: AnswerOrigin = "given"

    @property
    def says_nothing(self) -> bool:
        """Whether nothing is known of it."""
        return self.input_tokens is None and self.output_tokens is None and self.cost_usd is None


class AnswerShown(NamedTuple):
    """An answer to a case.

    Attributes:
        value: The prediction.
        times: How many repeats gave it.
        passed: How many of these passed; ``None`` if there are no repeats, or that is not known.
    """

    value: Any
    times: int = 1
    passed: int | None = None

    @property
    def failed(self) -> int:
        """The number of repeats that gave it and did not pass, as far as known."""
        return self.times - (self.passed or 0)


class JudgingShown(NamedTuple):
    """A question to a judge with its reply.

    Attributes:
        evaluator: Label of the evaluator that asks.
        mode: How it is judged.
        question: Field name to text, as the judge is shown them.
        reply: What the judge replied, or why there is no verdict.
        score: ``None`` if there is no verdict.
        cost_usd: Of the call, now or when it was made; ``None`` where that is not known.
        judge: The juror, where a panel judges.
    """

    evaluator: str
    mode: str
    question: Mapping[str, str]
    reply: str
    score: JsonNumber | None = None
    cost_usd: JsonNumber | None = None
    judge: str = ""


class JudgeCall(NamedTuple):
    """One question to a judge, asked now or answered from a store.

    Attributes:
        id: The same for all cases that share the call.
        fresh: Whether it was made in this run.
        input_tokens: ``None`` if the provider does not report them.
        output_tokens: ``None`` if the provider does not report them.
        cost_usd: ``None`` where no price is known.
        seconds: How long it took when it was made; ``None`` where that is not recorded.
        judge: The juror, where a panel judges.
        user: Whether the model plays the user of a conversation.
    """

    id: str
    fresh: bool
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: JsonNumber | None = None
    seconds: JsonNumber | None = None
    judge: str = ""
    user: bool = False


class CaseRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one case: the input of every summary, and what processes and files exchange.

    Attributes:
        id: The case's id.
        labels: Its labels.
        outcome: What became of it.
        observations: Evaluator label to observation; absent where that evaluator could not measure.
        errors: Evaluator label to the reason why it could not measure; ``""`` applies to all of them (no prediction).
        reason: Why the case failed, was skipped or did not run.
        duration_s: Seconds that the case took.
        calls: What judges were asked about it.
        target_seconds: Latency of each call of the target that was made for it, in this run or when it was recorded.
        target_usage: What each of its predictions took, where they say so.
        repeats: The results of its repeats, if there are several.
        lines: Evaluator label to what it says is wrong.
        answers: Its prediction; of several repeats each different one, those that failed most often first.
        judgings: What judges were asked about it, and what they replied.
        recordings: Its predictions as later runs replay them, where they are recorded.
        unmet: Limits and checks that it did not meet, by name.
        answered: Fingerprint of what judges judged: its prediction, or those of its repeats.
        weight: How many cases it stands for, in means of all cases of a sample.
    """

    id: str
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    outcome: CaseOutcome = "passed"
    observations: Mapping[str, Observation] = msgspec.field(name="obs", default_factory=dict)
    errors: Mapping[str, str] = msgspec.field(default_factory=dict)
    reason: str | None = None
    duration_s: JsonNumber = msgspec.field(name="s", default=0.0)
    calls: Sequence[JudgeCall] = ()
    target_seconds: Sequence[JsonNumber] = msgspec.field(name="target_s", default=())
    target_usage: Sequence[TargetUsage] = ()
    repeats: Mapping[str, Any] | None = None
    lines: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)
    answers: Sequence[AnswerShown] = ()
    judgings: Sequence[JudgingShown] = ()
    recordings: Sequence[Mapping[str, Any]] = ()
    unmet: Sequence[str] = ()
    answered: str = ""
    weight: JsonNumber = 1.0

    @property
    def ran(self) -> bool:
        """Whether anything was measured or tried."""
        return bool(self.observations or self.errors)


class MetricValue(Struct, frozen=True):
    """One metric over a set of cases.

    Attributes:
        value: The formula over summed counts; ``None`` where it is undefined.
        mean: Mean over the cases that have a value of their own.
        low: Lower bound of the interval of `value`.
        high: Upper bound.
        scored: Cases with a value.
        undefined: Cases measured that have none whatever is answered (ground truth absent).
        errored: Cases that could not be measured.
        missing: Cases that did not run.
        signature: How the metric is computed.
        reason: Why there is no value, or what it leaves out; empty where cases alone say so.
        abstained: Cases measured that have none because their answers leave nothing to score.
    """

    value: AnyNumber | None
    mean: AnyNumber | None
    low: AnyNumber | None
    high: AnyNumber | None
    scored: int
    undefined: int
    errored: int
    missing: int
    signature: str = ""
    reason: Annotated[str, WrittenField.IF_KNOWN] = ""
    abstained: Annotated[int, WrittenField.IF_KNOWN] = 0


class CaseResult(msgspec.Struct, frozen=True):
    """One case's scores.

    Attributes:
        id: The case's id.
        outcome: What became of it.
        metrics: Metric name to score; ``None`` if there is none.
        details: Evaluator label to what it reports besides.
        reason: Why the case failed, was skipped or did not run.
        duration_s: Seconds from its first call to its scores.
        unmet: Limits and checks that it did not meet, by name.
        latency_s: Mean seconds of a call of its target, as ``target_latency_s`` of the report; ``None`` if unknown.
        tokens: Tokens of its prediction, as ``target_tokens``; of several repeats, their mean.
        cost_usd: Its cost, as ``target_cost_usd``.
    """

    id: str
    outcome: CaseOutcome
    metrics: Mapping[str, float | None]
    details: Mapping[str, Any]
    reason: str | None
    duration_s: float
    unmet: Sequence[str] = ()
    latency_s: float | None = None
    tokens: float | None = None
    cost_usd: float | None = None

    @property
    def absent(self) -> Mapping[str, str]:
        """Metric to why the case has no value of it; an evaluator's name to why it gave none at all."""
        return {**self.details.get("undefined", {}), **self.details.get("errors", {})}

    def why(self, metric: "OwnedMetric | None") -> str | None:
        """Return the reason that the evaluator of a metric gives for its score, such as a function with a `Score`."""
        details = self.details.get(metric.label) if metric is not None else None
        return details.get("reason") if isinstance(details, Mapping) else None


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The metrics of one group of cases."""

    cases: int
    metrics: Mapping[str, MetricValue]
    pass_rate: MetricValue
    rows: "Sequence[int]" = field(repr=False, default=())
    usage: Mapping[str, MetricValue] = field(default_factory=dict)
    intervals: Mapping[str, IntervalMethod] = field(default_factory=dict)

    def find(self, metric: str) -> MetricValue | None:
        """Return a metric of the group, its pass rate or a figure of its usage."""
        return self.pass_rate if metric == PASS_RATE else self.metrics.get(metric) or self.usage.get(metric)


class Clusters(Struct, frozen=True):
    """Cases that belong together, such as the questions of one conversation.

    Attributes:
        label: Cases with the same value of it belong together; a case without it is on its own.
        count: How many clusters there are.
        design_effects: Metric name to the factor by which clusters raise the variance of its value.
    """

    label: str
    count: int = 0
    design_effects: Mapping[str, AnyNumber] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """All metrics of a suite.

    Attributes:
        metrics: Metric name to value.
        groups: Label name, label value to metrics.
        cases: One result per case.
        pass_rate: Share of the cases that passed among those that ran.
        scores: Metric name to the cases' own values (NaN if there is none), shape ``(cases,)``.
        usage: Calls, tokens, cost and latencies by name; empty where nothing was asked.
        evaluators: Label to evaluator.
        records: What the metrics were computed from.
        clusters: Of cases that intervals draw together; ``None`` where every case is drawn alone.
        intervals: Metric name to how its interval was computed, in results of merged statistics.
        system: Which of several systems answered.
    """

    metrics: Mapping[str, MetricValue]
    groups: Mapping[str, Mapping[str, GroupResult]]
    cases: Sequence[CaseResult]
    pass_rate: MetricValue
    scores: "Mapping[str, FloatArray]" = field(repr=False, default_factory=dict)
    usage: Mapping[str, MetricValue] = field(default_factory=dict)

    evaluators: "Mapping[str, Evaluator]" = field(repr=False, default_factory=dict)
    records: Sequence[CaseRecord] = field(repr=False, default=())
    clusters: Clusters | None = None
    intervals: Mapping[str, IntervalMethod] = field(default_factory=dict)
    system: str = ""

    def find(self, metric: str) -> MetricValue | None:
        """Return a metric of the suite, its pass rate or a figure of its usage."""
        return self.pass_rate if metric == PASS_RATE else self.metrics.get(metric) or self.usage.get(metric)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a row for each case, metric and repeat; a case without scores has one for each metric.

        Returns:
            Keys ``case``, ``outcome``, ``system``, ``repeat`` (counted from 1; 0 for the value over all repeats),
            ``metric``, ``value``, ``reason`` (of the value, or of its absence), ``latency_s``, ``tokens``
            and ``cost_usd`` of the case, and ``label.NAME`` for each of its labels.
        """
        rows = []
        names = [name for name in self.metrics if name in self.scores] or list(self.metrics) or [""]
        index = MetricIndex.from_evaluators(self.evaluators)
        for case, record in zip(self.cases, self.records, strict=True):
            labels = {f"label.{name}": value for name, value in sorted(record.labels.items())}
            spread = (record.repeats or {}).get("spread", {})
            absent = case.absent
            figures = {"latency_s": case.latency_s, "tokens": case.tokens, "cost_usd": case.cost_usd}
            missing = [] if record.observations and not record.errors else names
            for metric in dict.fromkeys((*case.metrics, *missing)):
                values = [case.metrics.get(metric), *spread.get(metric, {}).get("scores", ())]
                for repeat, each in enumerate(values):
                    reason = absent.get(metric, case.reason) if each is None else case.why(index.find(metric))
                    row = {"case": case.id, "outcome": case.outcome, "system": self.system, "repeat": repeat}
                    rows.append({**row, "metric": metric, "value": each, "reason": reason, **figures, **labels})
        return rows

    def to_pandas(self) -> Any:
        """Return `to_dicts` as a data frame of pandas.

        Raises:
            ImportError: pandas is not installed.
        """
        import pandas as pd

        return pd.DataFrame(self.to_dicts())

    def to_polars(self) -> Any:
        """Return `to_dicts` as a data frame of polars.

        Raises:
            ImportError: polars is not installed.
        """
        import polars as pl

        return pl.DataFrame(self.to_dicts(), infer_schema_length=None)

    def to_arrow(self) -> Any:
        """Return `to_dicts` as a table of Apache Arrow.

        Raises:
            ImportError: pyarrow is not installed.
        """
        import pyarrow as pa

        return pa.Table.from_pylist(self.to_dicts())

    def _repr_html_(self) -> str:
        """Return the metrics as a table, for notebooks; every text in it is escaped."""
        metrics = {**self.metrics, PASS_RATE: self.pass_rate}
        head = "".join(f"<th>{name}</th>" for name in _HTML_COLUMNS)
        rows = "".join(f"<tr>{_html_cells(name, each)}</tr>" for name, each in metrics.items())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


_HTML_COLUMNS = ("metric", "value", "interval", "scored", "abstained", "undefined", "errored")


def _html_cells(name: str, each: MetricValue) -> str:
    interval = "" if each.low is None or each.high is None else f"{each.low:.4f}..{each.high:.4f}"
    value = "-" if each.value is None else f"{each.value:.4f}"
    cells = (name, value, interval, each.scored, each.abstained, each.undefined, each.errored)
    return "".join(f"<td>{escape(str(cell))}</td>" for cell in cells)


class OwnedMetric(NamedTuple):
    """A metric that a suite reports.

    Attributes:
        name: Its name in the suite; of a family as declared, such as ``draft.f1[label]``.
        label: The evaluator's name in the suite.
        evaluator: The evaluator.
        metric: Its declaration, with the evaluator's own name for it, its direction, range and signature.
    """

    name: str
    label: str
    evaluator: Evaluator
    metric: Metric


class MetricIndex(Struct, frozen=True, dict=True):
    """The metrics of some evaluators. Asks each evaluator once what it reports.

    Where a suite renames an evaluator, its metrics have the new name before their own: ``draft.f1``.

    Attributes:
        evaluators: Label to evaluator.
        declared: Label to the metrics of the evaluator, in its order.

    Example:
        >>> from pytest_llmeval import get_evaluator
        >>> evaluators = {"text": get_evaluator("text"), "draft": get_evaluator("classification")}
        >>> metrics = MetricIndex.from_evaluators(evaluators)
        >>> metrics.full_name("text", "f1"), metrics.full_name("draft", "f1[joy]")
        ('f1', 'draft.f1[joy]')
        >>> found = metrics.find("draft.f1[joy]")
        >>> found.label, found.metric.name, found.metric.higher_is_better
        ('draft', 'f1[label]', True)
    """

    evaluators: Mapping[str, Evaluator]
    declared: Mapping[str, Sequence[OwnedMetric]]

    @classmethod
    def from_evaluators(cls, evaluators: "Mapping[str, Evaluator] | MetricIndex") -> "MetricIndex":
        """Return the index of evaluators by label; one that exists already as it is."""
        if isinstance(evaluators, MetricIndex):
            return evaluators
        return cls(evaluators, {label: _declared(label, evaluator) for label, evaluator in evaluators.items()})

    def extended(self, evaluators: "Mapping[str, Evaluator] | MetricIndex") -> "MetricIndex":
        """Return an index of more evaluators."""
        more = MetricIndex.from_evaluators(evaluators)
        return MetricIndex({**self.evaluators, **more.evaluators}, {**self.declared, **more.declared})

    def full_name(self, label: str, name: str) -> str:
        """Return the name in the suite of what an evaluator calls `name`."""
        return _prefix(label, self.evaluators[label]) + name

    def find(self, name: str) -> OwnedMetric | None:
        """Return the metric of a name; of a member of a family, such as ``f1[joy]``, the declaration of the family."""
        if exact := self._by_name.get(name):
            return exact
        if not name.endswith("]"):
            return None
        return next((each for family, each in self._families.items() if name.startswith(family)), None)

    def lower_is_better(self, name: str) -> bool:
        """Return whether less of a metric is better; not so for a name that no evaluator reports."""
        owned = self.find(name)
        return owned is not None and not owned.metric.higher_is_better

    def ranges(self, names: Iterable[str]) -> dict[str, tuple[float, float]]:
        """Return the smallest and the largest value of metrics that have both, for any cases."""
        metrics = {name: owned.metric for name in names if (owned := self.find(name)) is not None}
        return {
            name: (each.low, each.high)
            for name, each in metrics.items()
            if each.low is not None and each.high is not None and each.per_case is None
        }

    @cached_property
    def _by_name(self) -> Mapping[str, OwnedMetric]:
        return {each.name: each for declared in self.declared.values() for each in declared}

    @cached_property
    def _families(self) -> Mapping[str, OwnedMetric]:
        families = (each for each in self._by_name.values() if "[" in each.metric.name)
        return {self.full_name(each.label, each.metric.family): each for each in families}


def _prefix(label: str, evaluator: Evaluator) -> str:
    return "" if label == evaluator.name else f"{label}."


def _declared(label: str, evaluator: Evaluator) -> list[OwnedMetric]:
    prefix = _prefix(label, evaluator)
    return [OwnedMetric(prefix + metric.name, label, evaluator, metric) for metric in evaluator.describe()]

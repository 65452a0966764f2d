"""Results of cases and of suites."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, overload

import msgspec
from msgspec import Struct

from pytest_llmeval.core._case import MISSING, Case
from pytest_llmeval.core._codec import AnyNumber, JsonNumber, WrittenField
from pytest_llmeval.core._evaluator import Evaluator, Metric
from pytest_llmeval.core._observation import FloatArray, Observation
from pytest_llmeval.core.wording import AlignedTable, counted, excerpt, interval, number, printable

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from pytest_llmeval.core._frames import FrameLibrary

CaseOutcome: TypeAlias = Literal[
    "passed", "scored", "failed", "errored", "xfailed", "known_failure", "not_scored", "skipped", "not_run"
]
"""The outcome of a case. ``scored`` is one that another runner scored, with no limit to pass. ``not_scored`` is one
whose evaluators had nothing to score, or no judge. One that failed as expected (``xfailed``), or as was approved
(``known_failure``), counts in every score as any other; only its own verdict is excused."""

IntervalMethod: TypeAlias = Literal["wilson", "closed_form", "bootstrap", "delta"]


class TargetUsage(NamedTuple):
    """The tokens and the cost of one prediction.

    Attributes:
        input_tokens: ``None`` if it does not say so.
        output_tokens: ``None`` if it does not say so.
        cost_usd: ``None`` where no price is known.
        origin: Where the prediction comes from: the target in this run, or in an earlier one; or it came with the case.
    """

    input_tokens: JsonNumber | None = None
    output_tokens: JsonNumber | None = None
    cost_usd: JsonNumber | None = None
    origin: Literal["run", "recorded", "given"] = "given"

    @property
    def says_nothing(self) -> bool:
        """Whether neither tokens nor cost of the prediction are known."""
        return self.input_tokens is None and self.output_tokens is None and self.cost_usd is None


class AnswerShown(NamedTuple):
    """An answer to a case, as reports show it.

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
    """A question to a judge with its reply, as reports show it.

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

    @property
    def subject(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        """The question without its reply, to compare what two judges replied to it."""
        return self.evaluator, self.mode, tuple(sorted(self.question.items()))


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


class Selection(NamedTuple):
    """How a run of affected cases came to the record of a case.

    Attributes:
        since: What the case was compared with: the commit of an approved run.
        carried: Whether the record is that of the approved run.
        replayed: Whether the answer, and what judges say of it, would have been replayed if the case had run.
        cause: Why the case ran.
        saved_usd: What running it would have cost, by the mean of its suite; ``None`` where that is not known.
    """

    since: str
    carried: bool = False
    replayed: bool = False
    cause: str = ""
    saved_usd: JsonNumber | None = None


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
        weight: How many cases it represents, in means of all cases of a sample.
        selection: How it came about in a run of affected cases; ``None`` in other runs.
    """

    BAD: ClassVar[tuple[CaseOutcome, ...]] = ("failed", "errored")
    """Outcomes of cases that make a run fail."""

    UNFAILED: ClassVar[tuple[CaseOutcome, ...]] = ("passed", "not_scored")
    """Outcomes of cases in which nothing is wrong."""

    NOT_NEEDED: ClassVar[str] = "not needed: all gates were decided"
    """The reason of a case that has not run because its suite stopped early."""

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
    selection: Selection | None = None

    @property
    def carried(self) -> str:
        """The commit of the approved run that the record is from; empty if the case ran."""
        return self.selection.since if self.selection is not None and self.selection.carried else ""

    @staticmethod
    def claim_calls(records: "Iterable[CaseRecord]") -> "Iterator[CaseRecord]":
        """Yield records in which a judge call that several questions share, of one case or of several, counts once."""
        seen: set[str] = set()
        for record in records:
            claimed = []
            for call in record.calls:
                claimed.append(call._replace(fresh=call.fresh and call.id not in seen))
                if call.fresh:
                    seen.add(call.id)
            yield msgspec.structs.replace(record, calls=claimed) if claimed else record

    @property
    def ran(self) -> bool:
        """Whether anything of the case was measured or tried."""
        return bool(self.observations or self.errors)


class CaseChoice(Struct, frozen=True):
    """The decision on a case in a run of affected cases: it runs, or its record is carried over.

    Attributes:
        selection: For its record.
        record: Its record, if it is carried over; ``None`` if it runs.
    """

    selection: Selection
    record: CaseRecord | None = None

    @classmethod
    def run(cls, since: str, cause: str) -> Self:
        """The decision to run a case that cannot be carried over from the approved run of a commit."""
        return cls(Selection(since, cause=cause))

    @classmethod
    def carry(cls, since: str, record: CaseRecord, *, replayed: bool, saved_usd: float | None) -> Self:
        """The decision to carry over the record of the approved run of a commit.

        Args:
            since: The commit.
            record: The record.
            replayed: Whether answer and verdicts would have been replayed.
            saved_usd: What running the case would have cost.
        """
        selection = Selection(since, carried=True, replayed=replayed, saved_usd=saved_usd)
        why = f"carried from {since}" + (", where it failed" if record.outcome == "failed" else "")
        return cls(selection, msgspec.structs.replace(record, reason=why, selection=selection))


class MetricValue(Struct, frozen=True):
    """One metric over a set of cases.

    Attributes:
        value: The formula over summed counts; ``None`` where it is undefined.
        mean: Mean over the cases that have a value of their own.
        low: Lower bound of the interval of `value`.
        high: Upper bound.
        scored: Cases with a value.
        undefined: Cases measured that have none with any answer (ground truth absent).
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

    @staticmethod
    def list_cells(metrics: "Mapping[str, MetricValue]", interval_name: str) -> list[tuple[str, ...]]:
        """The table of metrics with intervals, means and counts as texts: its header, and a row for each.

        Counts of cases without a score have a column only if there are any.
        """
        counts = [
            name for name in _COUNTS if name == "scored" or any(getattr(metric, name) for metric in metrics.values())
        ]
        header = ("metric", "value", interval_name, "mean", *(_COUNTS[count] for count in counts))
        rows = (
            (
                name,
                number(metric.value),
                interval(metric.low, metric.high),
                number(metric.mean),
                *(str(getattr(metric, count)) for count in counts),
            )
            for name, metric in metrics.items()
        )
        return [header, *rows]


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
    """The part of a `Result` about one group: the cases of a suite that share the value of a label.

    Attributes:
        cases: How many there are.
        metrics: Name to value over these cases.
        pass_rate: The share of them that passed.
        rows: Their places among the cases of the result.
        usage: Figures of their targets and judges.
        intervals: Metric name to how its interval was found.
    """

    cases: int
    metrics: Mapping[str, MetricValue]
    pass_rate: MetricValue
    rows: Sequence[int] = field(repr=False, default=())
    usage: Mapping[str, MetricValue] = field(default_factory=dict)
    intervals: Mapping[str, IntervalMethod] = field(default_factory=dict)

    def find(self, metric: str) -> MetricValue | None:
        """Return a metric of the group, its pass rate or a figure of its usage."""
        return self.pass_rate if metric == Metric.PASS_RATE else self.metrics.get(metric) or self.usage.get(metric)


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
        case_scores: Metric name to the cases' own values (NaN if there is none), shape ``(cases,)``.
        usage: Calls, tokens, cost and latencies by name; empty where nothing was asked.
        evaluators: Label to evaluator.
        records: What the metrics were computed from.
        clusters: Of cases that intervals draw together; ``None`` where every case is drawn alone.
        intervals: Metric name to how its interval was computed, in results of merged statistics.
        system: Which of several systems answered.
        answered: The cases with their predictions, in the order of `cases`; empty where they are not in memory.
        repeats: The result of which each repeat of a case is a case, if the suite repeats its cases.
    """

    metrics: Mapping[str, MetricValue]
    groups: Mapping[str, Mapping[str, GroupResult]]
    cases: Sequence[CaseResult]
    pass_rate: MetricValue
    case_scores: Mapping[str, FloatArray] = field(repr=False, default_factory=dict)
    usage: Mapping[str, MetricValue] = field(default_factory=dict)

    evaluators: Mapping[str, Evaluator] = field(repr=False, default_factory=dict)
    records: Sequence[CaseRecord] = field(repr=False, default=())
    clusters: Clusters | None = None
    intervals: Mapping[str, IntervalMethod] = field(default_factory=dict)
    system: str = ""
    answered: Sequence[Case] = field(repr=False, default=())
    repeats: "Result | None" = field(repr=False, default=None)

    def find(self, metric: str) -> MetricValue | None:
        """Return a metric of the suite, its pass rate or a figure of its usage."""
        return self.pass_rate if metric == Metric.PASS_RATE else self.metrics.get(metric) or self.usage.get(metric)

    @overload
    def frame(self, library: 'Literal["pandas"] | None' = None) -> "pandas.DataFrame": ...
    @overload
    def frame(self, library: Literal["polars"]) -> "polars.DataFrame": ...
    @overload
    def frame(self, library: Literal["pyarrow"]) -> "pyarrow.Table": ...
    def frame(self, library: "FrameLibrary | None" = None) -> Any:
        """Return a data frame with one row for each case, or for each repeat of a case.

        Args:
            library: Of the frame; default: the first of the three that is installed.

        Returns:
            Columns ``id``, ``system``, ``repeat`` (counted from 1; 0 without repeats), ``outcome``, ``reason`` (why
            the case failed, was skipped or did not run), ``input``, ``expected``, ``prediction``, ``latency_s``,
            ``tokens``, ``cost_usd``, ``label.NAME`` for each label, and for each metric ``NAME`` and ``reason.NAME``
            (of the score, or of its absence). A metric with the name of another column is ``metric.NAME``. Columns
            that mix texts with other data, and columns of objects and lists, have their values as JSON.

        Raises:
            MissingExtraError: narwhals is not installed.
            ImportError: The library is not installed.
        """
        from pytest_llmeval.core._frames import data_frame

        return data_frame(_wide_columns(self.repeats or self, repeated=self.repeats is not None), library)

    @overload
    def scores(self, library: 'Literal["pandas"] | None' = None) -> "pandas.DataFrame": ...
    @overload
    def scores(self, library: Literal["polars"]) -> "polars.DataFrame": ...
    @overload
    def scores(self, library: Literal["pyarrow"]) -> "pyarrow.Table": ...
    def scores(self, library: "FrameLibrary | None" = None) -> Any:
        """Return a data frame of `to_dicts`: one row for each case, metric and repeat.

        Args:
            library: As of `frame`.

        Raises:
            MissingExtraError: narwhals is not installed.
            ImportError: The library is not installed.
        """
        from pytest_llmeval.core._frames import data_frame

        rows = self.to_dicts()
        columns = dict.fromkeys((*_SCORE_COLUMNS, *(name for row in rows for name in row)))
        return data_frame({name: [row.get(name) for row in rows] for name in columns}, library)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Rows of the result, one for each case, metric and repeat; one for each metric of a case without scores.

        Returns:
            Keys ``case``, ``outcome``, ``system``, ``repeat`` (counted from 1; 0 for the value over all repeats),
            ``metric``, ``value``, ``reason`` (of the value, or of its absence), ``latency_s``, ``tokens``
            and ``cost_usd`` of the case, and ``label.NAME`` for each of its labels.
        """
        rows = []
        names = [name for name in self.metrics if name in self.case_scores] or list(self.metrics) or [""]
        index = MetricIndex.from_evaluators(self.evaluators)
        for case, record in zip(self.cases, self.records, strict=True):
            labels = {f"label.{name}": value for name, value in sorted(record.labels.items())}
            spread = (record.repeats or {}).get("spread", {})
            absent = case.absent
            figures = {name: getattr(case, name) for name in _FIGURES}
            missing = [] if record.observations and not record.errors else names
            for metric in dict.fromkeys((*case.metrics, *missing)):
                values = [case.metrics.get(metric), *spread.get(metric, {}).get("scores", ())]
                for repeat, score in enumerate(values):
                    reason = absent.get(metric, case.reason) if score is None else case.why(index.find(metric))
                    row = {"case": case.id, "outcome": case.outcome, "system": self.system, "repeat": repeat}
                    rows.append({**row, "metric": metric, "value": score, "reason": reason, **figures, **labels})
        return rows

    def __repr__(self) -> str:
        scores = (f"{name}={number(value.value)}" for name, value in [*self.metrics.items()][:_MOST_IN_REPR])
        more = ["..."] if len(self.metrics) > _MOST_IN_REPR else []
        parts = [counted(len(self.cases), "case"), f"{Metric.PASS_RATE}={number(self.pass_rate.value)}", *scores, *more]
        return f"{type(self).__name__}({', '.join(parts)})"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """Yield what `print` shows of the result: counts of cases, the table of metrics, cases that did not pass."""
        outcomes = Counter(record.outcome for record in self.records)
        counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in outcomes.items())
        total = f"{counted(len(self.cases), 'case')}{f': {counts}' if counts else ''}"
        yield f"{total}; pass rate {number(self.pass_rate.value)}"
        listed = [*self.metrics.items()][:_MOST_METRICS]
        table = [[excerpt(cell, _WIDEST) for cell in row] for row in MetricValue.list_cells(dict(listed), "interval")]
        yield from AlignedTable(table).lines() if listed else ()
        if more := len(self.metrics) - len(listed):
            yield f"and {counted(more, 'more metric')} in metrics"
        failed = self._shown_records()
        for record in failed[:_MOST_CASES]:
            yield excerpt(printable(f"{record.outcome} {record.id}: {record.reason}"), _LONGEST_LINE, count=True)
        if len(failed) > _MOST_CASES:
            yield f"and {counted(len(failed) - _MOST_CASES, 'more case')} that did not pass, in cases"

    def _shown_records(self) -> list[CaseRecord]:
        """Return the cases that did not pass, and those that did not run behind them."""
        return [
            record
            for outcomes in (CaseRecord.BAD, ("not_run",))
            for record in self.records
            if record.outcome in outcomes
        ]

    def _repr_html_(self) -> str:
        """Return metrics, and the first cases that did not pass, as tables for notebooks; every text is escaped."""
        listed = {**dict([*self.metrics.items()][:_MOST_METRICS]), Metric.PASS_RATE: self.pass_rate}
        table = AlignedTable(MetricValue.list_cells(listed, "interval")).html()
        more = len(self.metrics) - _MOST_METRICS
        note = f"<p>and {counted(more, 'more metric')} in <code>metrics</code></p>" if more > 0 else ""
        return f"{table}{note}{self._cases_as_html()}"

    def _cases_as_html(self) -> str:
        """Return the first cases that did not pass as a table; empty if all did."""
        failed = self._shown_records()
        if not failed:
            return ""
        lines = [
            (record.id, record.outcome.replace("_", " "), excerpt(record.reason or "", _LONGEST_REASON))
            for record in failed[:_MOST_CASES]
        ]
        table = AlignedTable([("case", "outcome", "reason"), *lines]).html()
        more = len(failed) - _MOST_CASES
        note = f"<p>and {counted(more, 'more case')} that did not pass, in <code>cases</code></p>" if more > 0 else ""
        return f"{table}{note}"


_FIGURES = ("latency_s", "tokens", "cost_usd")
_CASE_COLUMNS = ("id", "system", "repeat", "outcome", "reason", "input", "expected", "prediction", *_FIGURES)
_SCORE_COLUMNS = ("case", "outcome", "system", "repeat", "metric", "value", "reason", *_FIGURES)
_COUNTS = {"scored": "scored", "abstained": "abstained"}
_COUNTS |= {"undefined": "no score", "errored": "errors", "missing": "not run"}
"""Counts of cases to the headers of their columns."""
_MOST_IN_REPR = 3
_MOST_METRICS = 24
_MOST_CASES = 5
_WIDEST = 48
_LONGEST_LINE = 160
_LONGEST_REASON = 400


def _wide_columns(result: Result, *, repeated: bool) -> dict[str, list[Any]]:
    """The columns of a result's wide data frame: a row for each case, a column for each metric and its reason."""
    labels = sorted({f"label.{name}" for record in result.records for name in record.labels})
    fixed = {*_CASE_COLUMNS, *labels}
    columns = {name: f"metric.{name}" if name in fixed else name for name in result.metrics}
    index = MetricIndex.from_evaluators(result.evaluators)
    frame: dict[str, list[Any]] = {name: [] for name in (*_CASE_COLUMNS, *labels)}
    for column in columns.values():
        frame |= {column: [], f"reason.{column}": []}
    times: dict[str, int] = {}
    for place, (scores, record) in enumerate(zip(result.cases, result.records, strict=True)):
        case = result.answered[place] if result.answered else Case(scores.id)
        times[scores.id] = times.get(scores.id, 0) + 1
        row = {name: getattr(scores, name) for name in ("id", "outcome", "reason", *_FIGURES)}
        row |= {"system": result.system, "repeat": times[scores.id] if repeated else 0}
        row |= {"input": case.input, "expected": case.expected}
        row["prediction"] = None if case.prediction is MISSING else case.prediction
        row |= {f"label.{name}": value for name, value in record.labels.items()}
        metrics, absent = scores.metrics, scores.absent
        for metric, column in columns.items():
            row[column] = value = metrics.get(metric)
            why = absent.get(metric, scores.reason) if value is None else scores.why(index.find(metric))
            row[f"reason.{column}"] = why
        for name, cells in frame.items():
            cells.append(row.get(name))
    return frame


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
        return cls(evaluators, {label: _declared_metrics(label, evaluator) for label, evaluator in evaluators.items()})

    def extended(self, evaluators: "Mapping[str, Evaluator] | MetricIndex") -> "MetricIndex":
        """The index with more evaluators."""
        more = MetricIndex.from_evaluators(evaluators)
        return MetricIndex({**self.evaluators, **more.evaluators}, {**self.declared, **more.declared})

    def full_name(self, label: str, name: str) -> str:
        """The name in the suite of what an evaluator calls `name`."""
        return _metric_prefix(label, self.evaluators[label]) + name

    def find(self, name: str) -> OwnedMetric | None:
        """The metric of a name; of a member of a family, such as ``f1[joy]``, the declaration of the family."""
        if exact := self._by_name.get(name):
            return exact
        if not name.endswith("]"):
            return None
        return next((metric for family, metric in self._families.items() if name.startswith(family)), None)

    def lower_is_better(self, name: str) -> bool:
        """Whether less of a metric is better; not so for a name that no evaluator reports."""
        owned = self.find(name)
        return owned is not None and not owned.metric.higher_is_better

    def ranges(self, names: Iterable[str]) -> dict[str, tuple[float, float]]:
        """The smallest and the largest value of metrics that have both, for any cases."""
        metrics = {name: owned.metric for name in names if (owned := self.find(name)) is not None}
        return {
            name: (metric.low, metric.high)
            for name, metric in metrics.items()
            if metric.low is not None and metric.high is not None and metric.per_case is None
        }

    @cached_property
    def _by_name(self) -> Mapping[str, OwnedMetric]:
        return {metric.name: metric for declared in self.declared.values() for metric in declared}

    @cached_property
    def _families(self) -> Mapping[str, OwnedMetric]:
        families = (owned for owned in self._by_name.values() if "[" in owned.metric.name)
        return {self.full_name(family.label, family.metric.family): family for family in families}


def _metric_prefix(label: str, evaluator: Evaluator) -> str:
    """The prefix of an evaluator's metrics in a suite, such as ``draft.``; empty unless the suite renames it."""
    return "" if label == evaluator.name else f"{label}."


def _declared_metrics(label: str, evaluator: Evaluator) -> list[OwnedMetric]:
    """The metrics that an evaluator of a suite declares, under their names in the suite."""
    prefix = _metric_prefix(label, evaluator)
    return [OwnedMetric(prefix + metric.name, label, evaluator, metric) for metric in evaluator.describe()]

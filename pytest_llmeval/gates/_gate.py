"""A gate: its keys, its text form and its verdict."""

import math
import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from numbers import Real
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
)

from pytest_llmeval.core import (
    AnyError,
    FloatArray,
    GateOutcome,
    GateResult,
    LlmevalError,
    Metric,
    MetricIndex,
    MetricValue,
    Result,
    counted,
    limit,
)
from pytest_llmeval.numbers import UsageEvaluator

_Rule = TypeVar("_Rule")
Undecided: TypeAlias = Literal["observed", "pass", "fail"]
Alternative: TypeAlias = Literal["two_sided", "less"]
Adjustment: TypeAlias = Literal["familywise", "fdr"]
GateSource: TypeAlias = Literal["scores", "baseline", "systems"]
ScoreVerdict: TypeAlias = tuple[GateOutcome, float | None, str]
"""Outcome, value and reason of a gate."""

VALUE = "value"
"""The statistic of a metric that is named alone: its value over summed counts."""

STATISTICS = ("mean", "median", "min", "max", "low", "high")
PERCENTILES = tuple(f"p{percent}" for percent in range(101))
OPERATORS = (">=", ">", "<=", "<", "==")
GRAMMAR = (
    "METRIC OPERATOR NUMBER such as 'f1 >= 0.7' or 'mean(f1) >= 0.7' "
    f"(operators {' '.join(OPERATORS)}; statistics {', '.join(STATISTICS)}, p0 to p100)"
)
FIGURES = frozenset(metric.name for metric in UsageEvaluator().describe())
"""Metrics of usage: costs, tokens and latencies."""

_CALL = re.compile(r"(?P<call>\w+)\((?P<inner>.+)\)")
_PERCENTILE = re.compile(r"p(\d{1,3})")
_COMPARISON = re.compile(
    r"(?P<left>.+?)(?P<operator>>=|<=|==|>|<)\s*(?P<number>[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?)"
)


KeyUnit: TypeAlias = Literal["", "score", "change"]


class TextForm(NamedTuple):
    """A text form ``CALL(METRIC) OPERATOR NUMBER``, such as ``drop(f1) <= 0.05``.

    Attributes:
        call: The word before the parenthesis.
        operator: The operator.
        key: The key of the mapping form that the number sets.
    """

    call: str
    operator: str
    key: str


class GateKey(NamedTuple):
    """A key of a gate's mapping form.

    Attributes:
        kind: The type of its value.
        meaning: Its value in one phrase of Markdown, for the documentation and the JSON Schema.
        otherwise: The value without the key, for the documentation; empty if it is the default of the field.
        least: The smallest whole number; ``None`` for other values.
        looser: The change of its value by which the gate fails less often: ``more`` or ``less`` of a number, or the
            values of a choice, the strictest first. Empty if any change may be such a change.
        unit: The unit of its number: a ``score`` of the metric, or a ``change`` of one. Such a number must be possible
            for the metric, and a gate with it means the same if all scores have another unit.
    """

    kind: Any
    meaning: str
    otherwise: str = ""
    least: int | None = None
    looser: "Literal['', 'more', 'less'] | tuple[str, ...]" = ""
    unit: KeyUnit = ""

    def asks_less(self, early: Any, late: Any) -> bool:
        """Whether a gate may fail less often with another value of the key; no number is no limit."""
        if isinstance(self.looser, tuple):
            return self.looser.index(late) > self.looser.index(early)
        if not self.looser:
            return bool(early != late)
        if None in (early, late):
            return late is None and early is not None
        return bool(late > early if self.looser == "more" else late < early)


_ANY = GateKey(object, "")
"""Of a field that no key sets, any change of which may be looser."""


class GateFault(ValueError):  # noqa: N818 (a fault of a user's file)
    """The faults of a gate in a suite file.

    Attributes:
        faults: Key and message; the key is empty for the gate as a whole.
        at_key: Whether they are about keys and not about their values.
    """

    def __init__(self, *faults: tuple[str, str], at_key: bool = False) -> None:
        super().__init__("; ".join(message for _, message in faults))
        self.faults = faults
        self.at_key = at_key


def owned(*, default: Any = MISSING, kw_only: bool = True, **keys: GateKey) -> Any:
    """A field of a gate rule with the keys of the mapping form that set it."""
    return field(default=default, kw_only=kw_only, metadata={"keys": keys})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(owned, field))
def gate_rule(cls: type[_Rule]) -> type[_Rule]:
    """Make a class a gate rule: a frozen dataclass whose fields name the keys that it owns.

    A rule with tags of its own has a title, by default one that names them.
    """
    declared: Any = cls
    if "title" not in vars(cls) and isinstance(vars(cls).get("tags"), tuple):
        declared.title = f"a gate with {' or '.join(map(str, declared.tags))}"
    return dataclass(frozen=True, kw_only=True)(cls)


BY = GateKey(str, "a label: every group of cases with the same value must pass", "the whole suite")
MIN_CASES = GateKey(int, "with `by`: smaller groups are listed, not evaluated", least=1, looser="more")
PARTIAL = GateKey(bool, "judge the gate even if some cases did not run", looser="more")
MIN_SCORED = GateKey(
    int,
    "fewest cases with a score, or compared; with 30, three lucky answers cannot pass the gate",
    "none",
    least=1,
    looser="less",
)
MAX_ERRORS = GateKey(int, "errored cases that are tolerated", least=0, looser="more")
MOST_GROUPS = 20
"""Most groups that the reason of a verdict lists."""
_MAX_SKIPPED = "cases that may be skipped at run time; cases tagged `skip` do not count"


class ScoreSide(NamedTuple):
    """One comparison of a gate as a question: do scores times `sign`, beyond `at`, add up to more than 0?

    Attributes:
        at: The limit.
        sign: 1 if scores are to be above it, -1 if they are to be below.
        below: How far a case may be on the wrong side.
        above: How far it may be on the right side.
        inclusive: Whether a total of 0 is right, and whether it is wrong.
        finite: Whether what is right is asked of these cases only, and likewise what is wrong.
        bound: The comparison as text and its number; ``None`` for gates on a change.
    """

    at: float
    sign: int
    below: float
    above: float
    inclusive: tuple[bool, bool]
    finite: tuple[bool, bool] = (True, True)
    bound: tuple[str, float] | None = None


class EarlyWords(NamedTuple):
    """The words of a gate's verdict before all cases have run: the score so far, its limit, and what is known."""

    state: str
    value: float | None
    limit: float
    claim: str


class GateScore(NamedTuple):
    """The score that a gate judges.

    Attributes:
        value: The gate's statistic of its metric, such as the median of ``median(f1)``.
        cases: The scores of single cases, without cases that have none.
        result: All metrics of the suite. The value that it has of the gate's metric is not that of a statistic.
    """

    value: float
    cases: FloatArray
    result: Result


@gate_rule
class Gate:
    """A condition on one statistic of one metric of a suite; each rule is a class.

    The text of a gate (``__str__``) is its identity, and begins with its metric, or with a call about it, before the
    operator: there reports find the metric of a verdict.

    Attributes:
        metric: A metric of the suite, or ``pass_rate``.
        statistic: ``value`` (over summed counts) or one of the cases' own scores, such as ``mean``.
        by: Judge every group of this label on its own.
        min_cases: Groups of which fewer cases ran, or can be compared, are not evaluated.
        min_scored: How many cases must have a score; with fewer, the gate fails.
        max_errors: How many errored cases are tolerated.
        max_skipped: How many cases may be skipped at run time, by a target, a fixture or a mark; tags are free.
        partial: Judge even if some cases did not run.
        cluster_by: A label; cases with the same value of it count as one.
        system: The system that the gate is about; empty for every one.
        against: The system that it is compared with; empty for none.
        line: In its file; 0 if it has none.
    """

    metric: str = owned(kw_only=False, metric=GateKey(str, "metric, or a statistic such as `mean(f1)`"))
    statistic: str = owned(default="value")
    by: str | None = owned(default=None)
    min_cases: int = owned(default=1)
    min_scored: int = owned(default=0)
    max_errors: int = owned(default=0)
    max_skipped: int = owned(default=0, max_skipped=GateKey(int, _MAX_SKIPPED, least=0, looser="more"))
    partial: bool = owned(default=False)
    cluster_by: str | None = owned(default=None)
    system: str = owned(default="", system=GateKey(str, "[system](systems.md#gates) to judge", "every one"))
    against: str = owned(default="")
    line: int = field(default=0, repr=False, compare=False, kw_only=True)

    tags: ClassVar[tuple[str, ...]] = ()
    """Keys by which the rule is known; one of them at least is in its mapping form."""

    rule: ClassVar[str] = ""
    """The value of the key `rule`; the first rule of the table with the same tags may leave it out."""

    meaning: ClassVar[str] = ""
    """The rule in one phrase of Markdown, for the documentation and the JSON Schema."""

    title: ClassVar[str] = ""
    """The kind of gate, for messages; by default ``a gate with`` its tags."""

    statistics: ClassVar[tuple[str, ...]] = (VALUE,)
    """The statistics of a metric that the rule understands; it refuses a gate on another one."""

    form: ClassVar[TextForm | None] = None
    """The text form, by which suites write the gate and reports recognise it; without it, only a mapping is read."""

    claims: ClassVar[bool] = False
    """True if the gate makes a claim of its own, which is adjusted with those of other gates."""

    proves_safety: ClassVar[bool] = False
    """True if cases that are left out count as fallen as far as they can."""

    fewest_units: ClassVar[int] = 0
    """With fewer cases or clusters, the gate is not evaluated before all cases have run."""

    def __str__(self) -> str:
        return self.condition

    @staticmethod
    def split_statistic(text: str) -> tuple[str, str]:
        """Split a gate's ``mean(f1)`` into statistic and metric; a bare metric has the statistic ``value``."""
        call, inner = split_call(text) or ("", "")
        percentile = _PERCENTILE.fullmatch(call)
        statistic = f"p{int(percentile[1])}" if percentile else call
        return (statistic, inner) if statistic in (*STATISTICS, *PERCENTILES) else (VALUE, text.strip())

    @property
    def subject(self) -> str:
        """The metric as the gate names it."""
        return self.metric if self.statistic == VALUE else f"{self.statistic}({self.metric})"

    @property
    def condition(self) -> str:
        """The comparison that the gate makes, as text."""
        if self.form is None:
            raise NotImplementedError
        return f"{self.form.call}({self.subject}) {self.form.operator} {limit(self.allowed)}"

    @property
    def source(self) -> GateSource:
        """The source of what the gate is about: scores of the run, a baseline, or another system."""
        raise NotImplementedError

    @property
    def allowed(self) -> float:
        """The number that the gate compares the value with."""
        raise NotImplementedError

    @property
    def names_system(self) -> bool:
        """True if the gate names one system, or two."""
        return bool(self.system or self.against)

    @property
    def left_out_limit(self) -> float:
        """The number of cases that a gate may leave out."""
        return math.inf

    @classmethod
    def keys(cls) -> dict[str, GateKey]:
        """The keys that the rule owns, those by which it is known first."""
        declared = {name: key for attribute in fields(cls) for name, key in attribute.metadata.get("keys", {}).items()}
        rule = {"rule": GateKey(Literal[cls.rule], cls.meaning)} if cls.rule else {}
        return {name: declared[name] for name in ("metric", *cls.tags)} | rule | declared

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """The gate of a mapping form, whose keys are owned and whose types have been checked.

        Raises:
            ValueError: A number is out of range, or keys exclude each other.
        """
        cls.check_values(values)
        statistic, metric = Gate.split_statistic(values["metric"])
        return cls(metric=metric, statistic=statistic, **cls.arguments(values))

    @classmethod
    def from_text(cls, text: str, reference: str = "") -> Self | None:
        """The gate of a text form; ``None`` for other texts.

        Args:
            text: The gate.
            reference: The system that a rule which needs another one compares with.

        Raises:
            ValueError: The number is out of range, or the rule does not understand the statistic.
        """
        comparison = split_comparison(text)
        if cls.form is None or comparison is None:
            return None
        subject, operator, number = comparison
        call, metric = split_call(subject) or ("", "")
        if (call, operator) != (cls.form.call, cls.form.operator):
            return None
        return cls.read({"metric": metric, cls.form.key: number} | cls.text_defaults(reference))

    @classmethod
    def text_defaults(cls, reference: str) -> dict[str, Any]:
        """The keys that the text form leaves out and the mapping form needs."""
        del reference
        return {}

    @classmethod
    def arguments(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the gate that keys of the same name set."""
        names = {
            attribute.name for attribute in fields(cls) if attribute.name in attribute.metadata.get("keys", {})
        } - {"metric"}
        return {name: values[name] for name in names if values.get(name) is not None}

    @classmethod
    def check_values(cls, values: Mapping[str, Any]) -> None:
        """Check what the types of values do not say.

        Raises:
            ValueError: A number is too small, or has no meaning without another key.
        """
        for name, key in cls.keys().items():
            value = values.get(name)
            if value is not None and key.least is not None and value < key.least:
                raise ValueError(f"found {name} {value}, expected at least {key.least}")
        fewest = values.get("min_cases")
        if values.get("by") is None and fewest is not None and fewest > 1:
            raise ValueError("found min_cases without by, expected both: min_cases applies to groups")
        if Gate.split_statistic(values["metric"])[0] not in cls.statistics:
            raise ValueError(f"found {values['metric']!r} with {cls.tags[0]}, expected {cls._subjects()}")

    @classmethod
    def _subjects(cls) -> str:
        """The forms of a metric that the rule understands, for messages."""
        own = [statistic for statistic in cls.statistics if statistic != VALUE]
        if not own:
            return "a metric"
        *first, last = own
        names = f"{', '.join(first)} or {last}" if first else last
        metric = f"a metric or its {names}" if VALUE in cls.statistics else f"{names} of a metric"
        return f"{metric}, such as {own[0]}(f1)"

    def value_of(self, key: str) -> Any:
        """The value of a key of the mapping form; ``None`` if the gate has none."""
        return self.allowed if key in self.tags else getattr(self, key)

    def loosenings(self, later: "Gate") -> list[tuple[str, object, object]]:
        """The keys by which a later state of the gate fails less often, or may, with old and new value.

        The key is empty where the limits as a whole are wider.
        """
        changes: list[tuple[str, object, object]] = []
        if type(self) is not type(later) and (self.proves_safety or not later.proves_safety):
            changes.append(("rule", self.rule, later.rule))
        if self.has_wider(later):
            changes.append(("", self, later))
        shared = {attribute.name: attribute for attribute in fields(later)}
        for attribute in fields(self):
            if not attribute.compare or attribute.name not in shared or attribute.name == "bounds":
                continue
            keys = attribute.metadata.get("keys") or shared[attribute.name].metadata.get("keys") or {}
            name, key = next(iter(keys.items()), (attribute.name, _ANY))
            early, late = (
                state.allowed if name in state.tags else getattr(state, attribute.name) for state in (self, later)
            )
            if early != late and key.asks_less(early, late):
                changes.append((name, early, late))
        return changes

    def has_wider(self, later: "Gate") -> bool:
        """Whether a later state of the gate has wider limits; only gates with two limits know."""
        del later
        return False

    def clustered(self, cluster_by: str | None) -> Self:
        """The gate with the clusters of its suite, if it uses any and names no others.

        Raises:
            ValueError: Its test supports no clusters.
        """
        del cluster_by
        return self

    def misfits(self, metrics: MetricIndex, text: str) -> Iterator[tuple[str, str]]:
        """Yield key and fault of what does not fit the gate's metric, besides numbers that it cannot reach.

        Args:
            metrics: Those of the suite.
            text: The gate as its user wrote it; empty for the mapping form.
        """
        del metrics, text
        yield from ()

    def shortfalls(self, score: float, best: float | None) -> Sequence[float]:
        """The numbers of the gate that a case's score is on the wrong side of; by default none.

        Args:
            score: Of the case.
            best: The best score of the metric; ``None`` if it has no range.
        """
        del score, best
        return ()

    def result(self, outcome: GateOutcome, value: float | None, reason: str) -> GateResult:
        """A verdict on the gate."""
        return GateResult(str(self), outcome, value, self.allowed, reason, line=self.line)

    def early_fault(self, metric: Metric | None) -> str:
        """The reason why the gate cannot be judged before all cases have run; empty if it can.

        Args:
            metric: The declaration of its metric; ``None`` if it has none, as a member of a family.
        """
        del metric
        return f"{self.title} is judged over all cases"

    def mean_fault(self, metric: Metric | None) -> str:
        """The reason why the gate is not about a bounded mean over cases; empty if it is."""
        if metric is None or metric.per_case is not None or metric.low is None or metric.high is None:
            return f"the scores of single cases in {self.metric} have no bounds"
        if self.statistic == "value" and not metric.averaged:
            return f"{self.metric} is not declared to be a mean over cases; mean({self.metric}) can be judged early"
        return ""

    def early_range(self, low: float, high: float) -> tuple[float, float]:
        """The range of what the gate compares of one case, where scores have a range."""
        return low, high

    def early_sides(self, low: float, high: float) -> Iterator[ScoreSide]:
        """Yield the comparisons of the gate, where what is compared of one case has a range."""
        raise NotImplementedError

    def early_words(self, value: float | None, bound: tuple[str, float] | None, outcome: GateOutcome) -> EarlyWords:
        """The words of the gate's verdict before all cases have run.

        Args:
            value: Of its metric so far.
            bound: Of the comparison that decided it, from its `ScoreSide`.
            outcome: What was decided.
        """
        raise NotImplementedError

    @staticmethod
    def waiting_cases(waiting: int) -> str:
        """The reason why a gate cannot be judged yet: cases with pending verdicts.

        >>> Gate.waiting_cases(1), Gate.waiting_cases(12)
        ('1 case waits for pending verdicts', '12 cases wait for pending verdicts')
        """
        return f"{counted(waiting, 'case')} {'waits' if waiting == 1 else 'wait'} for pending verdicts"


@gate_rule
class ScoreGate(Gate):
    """A gate on the scores of one run; a rule defines a text form, `allowed` and `verdict`."""

    judges_errors: ClassVar[bool] = False
    """Whether `verdict` decides what errored cases mean. A gate that does not passes only where no case errored."""

    partial: bool = owned(default=False, partial=PARTIAL)

    @property
    def source(self) -> GateSource:
        """The scores of the run, which the gate is about."""
        return "scores"

    @classmethod
    def check_values(cls, values: Mapping[str, Any]) -> None:
        super().check_values(values)
        for name, key in cls.keys().items():
            value = values.get(name)
            if key.unit and isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"found {name} {value}, expected a finite number")

    def judge(
        self, result: Result, incomplete: str = "", unjudged: str = "", counted_as: Metric | None = None
    ) -> GateResult:
        """Judge a suite by the gate.

        Args:
            result: The suite's metrics.
            incomplete: Why the suite is incomplete; a gate is then judged only if it is ``partial``.
            unjudged: Why this run cannot judge the gate's metric.
            counted_as: The metric as whose worst value answers that abstain count; ``None`` if they do not.
        """
        if why := unjudged or ("" if self.partial else incomplete):
            return self.result("not_judged", None, f"not evaluated: {why}")
        try:
            outcome, value, reason = self.decide(result, counted_as)
        except Exception as error:  # noqa: BLE001 (a rule of a plugin: its error is that of one gate)
            return self.result("failed", None, f"not evaluated: {type(self).__name__}: {AnyError(error).message()}")
        if value is not None and not math.isfinite(value):
            reason, value = f"cannot tell: its value is {value}; {reason}", None
            outcome = "undecided" if outcome == "passed" else outcome
        elif outcome == "passed" and (errored := self._count_errored(result)):
            outcome, reason = "failed", f"{counted(errored, 'case')} errored; {reason}"
        return self.result(outcome, value, reason)

    def _count_errored(self, result: Result) -> int:
        """The number of cases without a score because of an error, if the rule allows none and looks at none."""
        scored = result.find(self.metric)
        return 0 if scored is None or self.judges_errors else scored.errored

    def judge_pending(self, result: Result, waiting: int, metric: Metric | None) -> GateResult:
        """Judge a suite by the gate while some of its cases wait for the verdicts of judges.

        Args:
            result: The suite's metrics.
            waiting: How many cases wait.
            metric: The declaration of the gate's metric; ``None`` if it has none, as a member of a family.
        """
        decided = self.verdict_of_any(result, waiting, metric)
        if decided is not None:
            return self.result(*decided)
        scored = result.find(self.metric)
        value = None if scored is None else self.statistic_of(scored, result.case_scores.get(self.metric))
        return self.result("undecided", value, f"cannot tell: {Gate.waiting_cases(waiting)}")

    def verdict_of_any(self, result: Result, waiting: int, metric: Metric | None) -> ScoreVerdict | None:
        """The verdict that no missing score can change; ``None`` if one can."""
        del result, waiting, metric
        return None

    def decide(self, result: Result, counted_as: Metric | None) -> ScoreVerdict:
        """The rule's verdict on the gate's statistic, if it has a value.

        Raises:
            LlmevalError: The rule returned no verdict.
        """
        metric, scores = result.find(self.metric), result.case_scores.get(self.metric)
        if metric is None:
            return "failed", None, f"{self.metric} does not occur in the results"
        value = self.statistic_of(metric, scores)
        if value is None:
            why = metric.reason or f"{counted(metric.scored, 'case')} scored, {metric.undefined} undefined"
            return "failed", None, f"{self.subject} is undefined: {why}"
        outcome, judged, reason = self._judge_value(value, scores, result)
        if outcome == "passed" and counted_as is not None and metric.abstained:
            worst = self.value_at_worst(value, metric, scores, counted_as)
            absent = [counted_as.worst or 0.0] * metric.abstained
            if worst is None or self._judge_value(worst, scores, result, absent)[0] != "passed":
                return "undecided", judged, f"cannot tell: {reason}; {self.abstained_doubt(metric)}"
        return outcome, judged, reason

    def _judge_value(
        self, value: float, scores: FloatArray | None, result: Result, absent: Sequence[float] = ()
    ) -> ScoreVerdict:
        """The rule's verdict on a value and the scores of cases, with scores for those that abstained."""
        import numpy as np

        finite = np.empty(0) if scores is None else scores[np.isfinite(scores)]
        verdict: Any = self.verdict(GateScore(value, np.append(finite, absent), result))
        match verdict:
            case (outcome, judged, str() as reason) if outcome in get_args(GateOutcome) and (
                judged is None or (isinstance(judged, Real) and not isinstance(judged, bool))
            ):
                return cast("GateOutcome", outcome), None if judged is None else float(judged), reason
        outcomes = ", ".join(map(repr, get_args(GateOutcome)))
        raise LlmevalError(
            f"verdict returned {reprlib.repr(verdict)}, expected an outcome ({outcomes}), a number or None, and a text"
        )

    def verdict(self, score: GateScore) -> ScoreVerdict:
        """Outcome, value and reason of the gate for a score.

        It is called if the gate's statistic has a value. Where answers that abstain count, a score that passes is
        judged once more with the worst value for them.
        """
        raise NotImplementedError(f"define {type(self).__name__}.verdict(self, score)")

    def statistic_of(self, metric: MetricValue, scores: FloatArray | None) -> float | None:
        """The gate's statistic of a metric, from its value over cases or from the scores of single cases."""
        match self.statistic:
            case "value":
                return metric.value
            case "mean":
                return metric.mean
            case "low":
                return metric.low
            case "high":
                return metric.high
            case percentile:
                return _percentile(scores, percentile)

    def value_at_worst(
        self, value: float, metric: MetricValue, scores: FloatArray | None, counted_as: Metric
    ) -> float | None:
        """The gate's statistic if answers that abstain have the worst score; ``None`` if the metric has none."""
        worst = counted_as.worst
        if worst is None:
            return None
        if self.statistic in ("value", "mean", "low", "high"):
            return (value * metric.scored + worst * metric.abstained) / (metric.scored + metric.abstained)
        import numpy as np

        at_worst = _percentile(
            np.append(np.empty(0) if scores is None else scores, [worst] * metric.abstained), self.statistic
        )
        return worst if at_worst is None else at_worst

    @staticmethod
    def abstained_doubt(metric: MetricValue) -> str:
        """The reason why a gate that passes is undecided: cases that abstained."""
        total = counted(metric.scored + metric.abstained, "case")
        return f"{metric.scored} of {total} scored, and it fails if the others have the worst score"


def _percentile(scores: FloatArray | None, statistic: str) -> float | None:
    """A percentile of the cases' scores, for limits on ``min``, ``median`` or ``p95``; ``None`` without scores."""
    import numpy as np

    finite = scores[np.isfinite(scores)] if scores is not None else None
    if finite is None or not finite.size:
        return None
    percent = {"min": 0.0, "median": 50.0, "max": 100.0}.get(statistic)
    return float(np.percentile(finite, float(statistic[1:]) if percent is None else percent))


def split_comparison(text: str) -> tuple[str, str, float] | None:
    """Split a gate's text such as ``mean(f1) >= 0.7`` at its operator; ``None`` if it compares with no number."""
    match = _COMPARISON.fullmatch(text.strip())
    left = match["left"].rstrip() if match else ""
    if match is None or left[-1] in "=<>!":
        return None
    return left, match["operator"], float(match["number"])


def split_call(text: str) -> tuple[str, str] | None:
    """Split a gate's ``drop(f1)`` into the word and the text in its parentheses; ``None`` for texts without a call."""
    match = _CALL.fullmatch(text.strip())
    return None if match is None else (match["call"], match["inner"].strip())

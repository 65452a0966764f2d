"""Gates with a limit on one statistic of one metric."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

from msgspec import Struct

from pytest_llmeval.core import (
    FloatArray,
    GateOutcome,
    GateResult,
    GroupResult,
    Metric,
    MetricIndex,
    MetricValue,
    MissingExtraError,
    Result,
    closest,
    counted,
    limit,
    listed,
    number,
    suggest,
)
from pytest_llmeval.data import describe
from pytest_llmeval.gates._gate import (
    BY,
    FIGURES,
    GRAMMAR,
    MAX_ERRORS,
    MIN_CASES,
    MIN_SCORED,
    MOST_GROUPS,
    PERCENTILES,
    STATISTICS,
    VALUE,
    EarlyWords,
    Gate,
    GateKey,
    ScoreGate,
    ScoreSide,
    ScoreVerdict,
    gate_rule,
    owned,
    split_comparison,
)
from pytest_llmeval.numbers import TOLERANCE, UsageEvaluator

_OWN = {metric.name: metric for metric in (Metric(Metric.PASS_RATE, averaged=True), *UsageEvaluator().describe())}
"""Metrics of every suite."""

_PERCENT = 100

_TOKEN = re.compile(
    r"""(?P<number>[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?\s*%?)
    |(?P<operator>at\ least|at\ most|[<>=\u2264\u2265]+(?:\s*=)?)
    |(?P<name>[A-Za-z_][\w.-]*(?:\[[^][]*+\])?)
    |[\s():,]+""",
    re.VERBOSE,
)
_OPERATORS = {
    **dict.fromkeys((">=", "=>", "> =", ">==", "≥", "at least"), ">="),
    **dict.fromkeys(("<=", "=<", "< =", "<==", "≤", "at most"), "<="),
    **{spelling: spelling for spelling in (">", "<", "==")},
    "=": "==",
}
_MIRRORED = {">=": "<=", "<=": ">=", ">": "<", "<": ">", "==": "=="}
_ALIASES = {**{name: name for name in STATISTICS}, "avg": "mean", "average": "mean"}
_NO_NAME = re.compile(r"[()<>=%,:\s]")
"""Characters that no name of a metric has outside its label."""
_LABEL = re.compile(r"(?<![^][])[^][]*+\]")


class _Parts:
    """The parts of a malformed gate: at most one operator, number, statistic and metric."""

    def __init__(self, text: str, metrics: MetricIndex) -> None:
        self.metrics = metrics
        tokens = list(_TOKEN.finditer(text))
        self.readable = "".join(token[0] for token in tokens) == text
        self.numbers = [token["number"] for token in tokens if token["number"]]
        self.operators = [_OPERATORS.get(token["operator"], "") for token in tokens if token["operator"]]
        names = [token["name"] for token in tokens if token["name"]]
        self.statistics = [name for name in names if _statistic(name)]
        self.names = [name for name in names if not _statistic(name)]
        kinds = [token.lastgroup for token in tokens if token.lastgroup]
        self.number_first = kinds[:1] == ["number"]

    def subject(self) -> str | None:
        """The metric, or its statistic, that a malformed gate probably means; ``None`` if that is not clear."""
        if not self.readable or len(self.names) != 1 or len(self.statistics) > 1:
            return None
        name = self.names[0]
        near = name if declared_metric(name, self.metrics) else closest(name, metric_names(self.metrics))
        if near is None or not self.statistics:
            return near
        return f"{_statistic(self.statistics[0])}({near})"

    def gate(self) -> str | None:
        """The gate that a malformed one probably means; ``None`` if that is not clear."""
        subject = self.subject()
        if subject is None or len(self.numbers) != 1 or len(self.operators) > 1 or "" in self.operators:
            return None
        metric = declared_metric(subject.partition("(")[2].removesuffix(")") or subject, self.metrics)
        lower = metric is not None and not metric.higher_is_better
        operator = self.operators[0] if self.operators else "<=" if lower else ">="
        return f"{subject} {_MIRRORED[operator] if self.number_first else operator} {_value(self.numbers[0], metric)}"


def _statistic(name: str) -> str | None:
    """The statistic that a word in a malformed gate probably means."""
    name = name.lower()
    return name if name in PERCENTILES else _ALIASES.get(name)


def _value(text: str, metric: Metric | None = None) -> str:
    """A number in a gate as a limit: a share for a percentage, and for a number that is probably one."""
    value = float(text.rstrip("% "))
    if "%" in text:
        return limit(value / _PERCENT)
    share = None if metric is None else _share(value, metric)
    return limit(value if share is None else share)


def _share(value: float, metric: Metric) -> float | None:
    """The share that a percentage in a gate represents; ``None`` for numbers that are no percentage."""
    return value / _PERCENT if metric.high == 1 and 1 < value <= _PERCENT else None


def _hint(meant: str | None, *, quoted: bool = True) -> str:
    """The "did you mean" at the end of a gate's fault; empty without a suggestion."""
    return "" if meant is None else f" (did you mean {meant!r}?)" if quoted else f" (did you mean {meant}?)"


def is_plain_limit(text: str) -> bool:
    """Whether the text of a gate can only be a limit: on a metric, or on a call of a statistic."""
    call, parenthesis, _ = text.partition("(")
    return not parenthesis or _statistic(call.strip()) is not None


def metric_names(metrics: MetricIndex) -> list[str]:
    """The metric names that gates of a suite can use, without those of usage."""
    return [Metric.PASS_RATE, *(metric.name for declared in metrics.declared.values() for metric in declared)]


def declared_metric(name: str, metrics: MetricIndex) -> Metric | None:
    """The declaration of a metric that a gate can name, those that every suite has among them."""
    owned = metrics.find(name)
    return owned.metric if owned is not None else _OWN.get(name)


def _share_hint(value: float, metric: Metric, text: str = "") -> str:
    """The hint for a percentage in place of a share; the limit is the last number of a gate."""
    share = _share(value, metric)
    if share is None:
        return ""
    if not text:
        return _hint(limit(share), quoted=False)
    return _hint(re.sub(r"(?<![-+.\w])[-+.\w]++$", "", text.strip("'\"")) + limit(share))


def change_fault(key: str, name: str, allowed: float, metrics: MetricIndex) -> str | None:
    """The fault of a gate by whose metric no change can be as large as the allowed one; ``None`` if it can."""
    metric = declared_metric(name, metrics)
    if metric is None or metric.low is None or metric.high is None:
        return None
    most = metric.high - metric.low
    if abs(allowed) <= most + TOLERANCE:
        return None
    expected = f"at most {limit(most)}" if allowed > 0 else f"at least {limit(-most)}"
    reason = f"{name} lies from {limit(metric.low)} to {limit(metric.high)}"
    return f"found {key} {limit(allowed)}, expected {expected}: {reason}{_share_hint(allowed, metric)}"


def gate_form_fault(text: str, metrics: MetricIndex, near: str | None) -> str:
    """The fault of a malformed gate, with the gate that is probably meant: a limit, or else `near`."""
    if text.strip().startswith("{"):
        return f"found {text!r} as a text, expected a mapping: write it without quotes"
    return f"found {text!r}, expected {GRAMMAR}{_hint(_Parts(text, metrics).gate() or near)}"


def mapping_form_fault(entry: Mapping[str, Any], keys: Sequence[str], metrics: MetricIndex) -> str | None:
    """The fault of a mapping of a metric to its limit, such as ``f1: 0.5``; ``None`` for other mappings."""
    if len(entry) != 1:
        return None
    ((subject, value),) = entry.items()
    if subject in keys:
        return None
    hint = ""
    if isinstance(value, Mapping):
        meant = _Parts(subject, metrics).subject()
        inner = ", ".join(f"{key}: {limit}" for key, limit in value.items())
        hint = _hint(f"{{metric: {meant}, {inner}}}", quoted=False) if meant is not None else ""
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        hint = _hint(_Parts(f"{subject} {value}", metrics).gate())
    return f"found {describe(entry)}, expected {GRAMMAR}, or a mapping with 'metric'{hint}"


_UNKNOWN = {
    "judge_tokens": "a provider did not report tokens",
    "total_cost_usd": "a call has no known price",
    "judge_cost_usd": "a call has no known price",
    "latency_s": "the stored verdicts have no latency",
    "target_latency_s": "no target was called",
    "target_tokens": "not every prediction reports its usage",
    "cost_per_success_usd": "no answer passed, or not every prediction reports its cost",
    "target_cost_usd": "not every prediction reports its cost, or the tokens of a model with a known price",
}
"""The reason for a missing figure; for those of judges, although there are verdicts."""

_UNREPORTED = "not every answer of the target reports its cost; judge_cost_usd leaves the target out"
"""The reason for unknown money of a run if that of its judges is known."""


class ScoreLimit(Struct, frozen=True):
    """One comparison of a metric's value in a limit gate: an operator and a number."""

    operator: str
    limit: float

    def holds(self, value: float) -> bool:
        """Whether a value meets the limit; ``>=``, ``<=`` and ``==`` have a slack of 1e-12."""
        match self.operator:
            case ">=":
                return value >= self.limit - TOLERANCE
            case "<=":
                return value <= self.limit + TOLERANCE
            case ">":
                return value > self.limit
            case "<":
                return value < self.limit
            case _:
                return math.isclose(value, self.limit, rel_tol=0, abs_tol=TOLERANCE)

    def __str__(self) -> str:
        return f"{self.operator} {limit(self.limit)}"


@gate_rule
class LimitGate(ScoreGate):
    """A limit on one statistic of one metric of a suite, or of each of its groups.

    `statistic` is ``value`` (over summed counts), ``mean``, ``median``, ``min``, ``max``, ``p0`` to ``p100`` over the
    cases' own scores, or ``low`` and ``high``, the bounds of the interval.

    Attributes:
        bounds: All must hold.
    """

    bounds: tuple[ScoreLimit, ...] = owned(
        kw_only=False,
        min=GateKey(float, "minimum, inclusive", "none (`min` or `max` is required)", unit="score"),
        max=GateKey(float, "maximum, inclusive", "none", unit="score"),
    )
    by: str | None = owned(default=None, by=BY)
    min_cases: int = owned(default=1, min_cases=MIN_CASES)
    judges_errors: ClassVar[bool] = True
    min_scored: int = owned(default=0, min_scored=MIN_SCORED)
    max_errors: int = owned(default=0, max_errors=MAX_ERRORS)

    tags: ClassVar = ("min", "max")
    title: ClassVar = "a gate with a limit"
    statistics: ClassVar = (VALUE, *STATISTICS, *PERCENTILES)

    def __str__(self) -> str:
        text = " and ".join(f"{self.subject} {bound}" for bound in self.bounds)
        return f"{text} by {self.by}" if self.by else text

    @classmethod
    def check_values(cls, values: Mapping[str, Any]) -> None:
        low, high = values.get("min"), values.get("max")
        if low is not None and high is not None and low > high:
            raise ValueError(f"found min {low} above max {high}, expected min <= max")
        super().check_values(values)

    @classmethod
    def from_text(cls, text: str, reference: str = "") -> Self | None:
        del reference
        comparison = split_comparison(text)
        if comparison is None:
            return None
        subject, operator, number = comparison
        if not math.isfinite(number):
            raise ValueError(f"found {text!r}, expected a limit below 1.8e308")
        statistic, metric = Gate.split_statistic(subject)
        return cls(metric, (ScoreLimit(operator, number),), statistic=statistic)

    @classmethod
    def arguments(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        operators = (("min", ">="), ("max", "<="))
        bounds = [ScoreLimit(sign, float(values[key])) for key, sign in operators if values.get(key) is not None]
        return {**super().arguments(values), "bounds": tuple(bounds)}

    def value_of(self, key: str) -> Any:
        if key not in self.tags:
            return super().value_of(key)
        bounds = (bound.limit for bound in self.bounds if (">" in bound.operator) == (key == "min"))
        return next(bounds, None)

    def has_wider(self, later: Gate) -> bool:
        """Whether an end of the values that pass is further out in a later state of the gate."""
        if not isinstance(later, LimitGate):
            return False
        return any(late < early for early, late in zip(self.ends, later.ends, strict=True))

    @property
    def ends(self) -> tuple[tuple[float, bool], tuple[float, bool]]:
        """The lower and upper end of the values that pass, each larger for a stricter gate."""
        low = high = (float("-inf"), False)
        for bound in self.bounds:
            strict = bound.operator in (">", "<")
            if bound.operator in (">=", ">", "=="):
                low = max(low, (bound.limit, strict))
            if bound.operator in ("<=", "<", "=="):
                high = max(high, (-bound.limit, strict))
        return low, high

    def shortfalls(self, score: float, best: float | None) -> Sequence[float]:
        del best
        return [bound.limit for bound in self.bounds if not bound.holds(score)]

    def early_fault(self, metric: Metric | None) -> str:
        if self.statistic not in ("value", "mean"):
            return f"{self.subject} is no mean of scores"
        if any(bound.operator == "==" for bound in self.bounds):
            return "a mean of some cases says nothing about equality"
        return self.mean_fault(metric)

    def early_sides(self, low: float, high: float) -> Iterator[ScoreSide]:
        for bound in self.bounds:
            strict = bound.operator in ("<", ">")
            at, sign = bound.limit, 1 if ">" in bound.operator else -1
            below, above = (at - low, high - at) if sign > 0 else (high - at, at - low)
            yield ScoreSide(at, sign, below, above, (not strict, strict), bound=(str(bound), at))

    def early_words(self, value: float | None, bound: tuple[str, float] | None, outcome: GateOutcome) -> EarlyWords:
        first = str(self.bounds[0]), self.bounds[0].limit
        text, at = bound or first
        claim = f"over all of them it {'meets' if outcome == 'passed' else 'misses'} {text}"
        return EarlyWords(f"{self.subject} is {self._number_of(value)}", value, at, claim)

    def decide(self, result: Result, counted_as: Metric | None) -> ScoreVerdict:
        if self.by is not None:
            return self._groups(result, self.by, counted_as)
        metric = result.find(self.metric)
        if metric is None:
            return "failed", None, self._absent(result)
        return self._verdict(result, metric, result.case_scores.get(self.metric), counted_as)

    def verdict_of_any(self, result: Result, waiting: int, metric: Metric | None) -> ScoreVerdict | None:
        scored = result.find(self.metric)
        if scored is None or self.by is not None:
            return None
        if scored.errored > self.max_errors:
            return self.decide(result, None)
        if self.early_fault(metric) or self.statistic not in ("value", "mean") or scored.abstained:
            return None
        assert metric is not None
        value = self.statistic_of(scored, result.case_scores.get(self.metric))
        total = scored.scored + waiting
        ends = [((value or 0.0) * scored.scored + (end or 0.0) * waiting) / total for end in (metric.low, metric.high)]
        holds = {all(bound.holds(end) for bound in self.bounds) for end in ends}
        never = any(not bound.holds(ends[0]) and not bound.holds(ends[1]) for bound in self.bounds)
        if len(holds) > 1 or (False in holds and not never) or scored.scored < self.min_scored:
            return None
        low, high = map(self._number_of, ends)
        outcome: GateOutcome = "passed" if holds == {True} else "failed"
        reason = f"{self.subject} is between {low} and {high} with any pending verdicts"
        return outcome, value, f"{reason}: {Gate.waiting_cases(waiting)}"

    def _groups(self, result: Result, by: str, counted_as: Metric | None) -> ScoreVerdict:
        judged: list[tuple[float, str, GateOutcome, float | None, str]] = []
        small = []
        scores = result.case_scores.get(self.metric)
        for name, group in result.groups[by].items():
            metric = group.find(self.metric)
            if metric is None or group.cases - metric.missing < self.min_cases:
                small.append(name)
                continue
            own = None if scores is None else scores[group.rows]
            outcome, value, reason = self._verdict(group, metric, own, counted_as)
            judged.append((self._slack(value), name, outcome, value, reason))
        note = (
            f"; not evaluated, under {counted(self.min_cases, 'case')}: {listed(small, MOST_GROUPS)}" if small else ""
        )
        if not judged:
            return "failed", None, f"no group by {by!r} has {counted(self.min_cases, 'case')}{note}"
        failed = [judgement for judgement in judged if judgement[2] == "failed"]
        _, name, outcome, value, reason = min(failed or judged)
        if failed:
            ordered = sorted(failed) if len(failed) > MOST_GROUPS else failed
            failures = listed((f"{judgement[1]}: {judgement[4]}" for judgement in ordered), MOST_GROUPS, separator="; ")
            return outcome, value, f"{len(failed)} of {len(judged)} groups fail: {failures}{note}"
        if open_ := [judgement for judgement in judged if judgement[2] == "undecided"]:
            _, name, outcome, value, reason = min(open_)
            return outcome, value, f"{len(open_)} of {len(judged)} groups undecided, closest {name}: {reason}{note}"
        return outcome, value, f"all {counted(len(judged), 'group')} pass, closest {name}: {reason}{note}"

    def _absent(self, result: Result) -> str:
        if self.metric in FIGURES:
            return f"{self.metric} is unknown: {self._unknown(result)}"
        return f"{self.metric} does not occur in the results{suggest(self.metric, result.metrics)}"

    def _unknown(self, among: Result | GroupResult) -> str:
        """The reason why a figure of the usage has no value."""
        if self.metric in (*UsageEvaluator.TARGET_FIGURES, "cost_per_success_usd"):
            return _unknown(self.metric)
        verdicts, target = among.find("judge_calls"), among.find("target_latency_s")
        judged = verdicts is not None and verdicts.value is not None
        judges = among.find("judge_cost_usd")
        if self.metric == "total_cost_usd" and (
            (judges is not None and judges.value is not None) or (not judged and target is not None and target.scored)
        ):
            return _UNREPORTED
        if not judged:
            return "no judge was used"
        return _unknown(self.metric)

    def _verdict(
        self,
        among: Result | GroupResult,
        metric: MetricValue,
        scores: FloatArray | None,
        counted_as: Metric | None,
    ) -> ScoreVerdict:
        if metric.errored > self.max_errors:
            allowed = f", {self.max_errors} allowed" if self.max_errors else ""
            return "failed", self.statistic_of(metric, scores), f"{counted(metric.errored, 'case')} errored{allowed}"
        value = self.statistic_of(metric, scores)
        # Skipped cases do not prevent judging, but the reader should see them.
        absent = f"; {counted(metric.abstained, 'case')} abstained" if metric.abstained else ""
        absent += f"; {counted(metric.missing, 'case')} not run" if metric.missing else ""
        noted = f"{absent}; {metric.reason}" if metric.reason else absent
        if value is None:
            scored = f"undefined: {counted(metric.scored, 'case')} scored, {metric.undefined} undefined{absent}"
            why = f"undefined: {metric.reason}" if metric.reason else scored
            if self.metric in FIGURES and metric.value is None:
                why = f"unknown: {self._unknown(among)}"
            return "failed", None, f"{self.subject} is {why}"
        if metric.scored < self.min_scored:
            few = f"{counted(metric.scored, 'case')} scored, expected at least {self.min_scored}{absent}"
            return "failed", value, f"{self.subject} is {self._number_of(value)}: {few}"
        missed = [bound for bound in self.bounds if not bound.holds(value)]
        if missed:
            expected = " and ".join(map(str, missed))
            more = self._more_cases(metric, missed[0].limit) if len(missed) == 1 else 0
            planned = f"; {counted(more, 'more scored case')} would show it at {number(metric.value)}" if more else ""
            return "failed", value, f"{self.subject} is {self._number_of(value)}, expected {expected}{noted}{planned}"
        if counted_as is not None and metric.abstained:
            worst = self.value_at_worst(value, metric, scores, counted_as)
            if worst is None or not all(bound.holds(worst) for bound in self.bounds):
                why = f"{self.abstained_doubt(metric)}{noted}"
                return "undecided", value, f"cannot tell: {self.subject} is {self._number_of(value)}; {why}"
        return "passed", value, f"{self.subject} is {self._number_of(value)}{noted}"

    def _more_cases(self, metric: MetricValue, limit: float) -> int:
        """The number of cases that take the bound of a share past a limit that its value meets; 0 if unknown."""
        value, low, high = metric.value, metric.low, metric.high
        if value is None or low is None or high is None or self.statistic not in ("low", "high"):
            return 0
        bound, other = (low, high) if self.statistic == "low" else (high, low)
        return max(0, cases_for_bound(value, bound, other, limit, metric.scored) - metric.scored)

    def _number_of(self, value: float | None) -> str:
        """A value with the digits that tell it from the gate's bounds."""
        return number(value, *(bound.limit for bound in self.bounds))

    def _slack(self, value: float | None) -> float:
        """The distance of a value from its bounds; the smallest one names the closest group."""
        if value is None:
            return -math.inf
        return min(
            -abs(value - bound.limit)
            if bound.operator == "=="
            else (value - bound.limit) * (1 if ">" in bound.operator else -1)
            for bound in self.bounds
        )

    def result(self, outcome: GateOutcome, value: float | None, reason: str) -> GateResult:
        bound = next((b for b in self.bounds if value is not None and not b.holds(value)), self.bounds[0])
        return GateResult(str(self), outcome, value, bound.limit, reason, line=self.line)

    @staticmethod
    def range_fault(name: str, value: float, metrics: MetricIndex, text: str = "") -> str | None:
        """The fault of a limit that a metric can never reach, or never miss; ``None`` if it can.

        Args:
            name: The metric; nothing is wrong with the limit of an unknown one.
            value: The limit.
            metrics: Those of the suite.
            text: The text of the limit, as the user wrote it; default: the number.
        """
        metric = declared_metric(name, metrics)
        if metric is None:
            return None
        low, high = metric.low, metric.high
        if (low is None or value >= low - TOLERANCE) and (high is None or value <= high + TOLERANCE):
            return None
        if low is None or high is None:
            expected = f"of at most {limit(high or 0)}" if low is None else f"of at least {limit(low)}"
        else:
            expected = f"from {limit(low)} to {limit(high)}"
        hint = _share_hint(value, metric, text)
        return f"found {text or limit(value)}, expected a number {expected}, the range of {name}{hint}"

    @staticmethod
    def form_fault(entry: Any) -> str:
        """The fault of a threshold that is neither a number nor a mapping, such as ``80%`` or ``>= 0.5``."""
        parts = _Parts(entry, MetricIndex.from_evaluators({})) if isinstance(entry, str) else None
        meant = None
        if (
            parts is not None
            and parts.readable
            and len(parts.numbers) == 1
            and not parts.names
            and not parts.statistics
        ):
            value = _value(parts.numbers[0])
            forms = {(): value, (">=",): f"{{min: {value}}}", ("<=",): f"{{max: {value}}}"}
            meant = forms.get(tuple(parts.operators))
        return f"found {describe(entry)}, expected a number or {{min, max}}{_hint(meant, quoted=False)}"

    @staticmethod
    def subject_fault(text: str, metric: str, metrics: MetricIndex, near: str | None) -> str | None:
        """The fault of a gate whose metric is no name, such as ``avg(f1)``; ``None`` if it may be one.

        Args:
            text: The gate, or its key ``metric``.
            metric: The metric in it, as it was parsed.
            metrics: Those of the suite.
            near: The gate of another rule that is most like it, if any.
        """
        if not _NO_NAME.search(_LABEL.sub("", metric)):
            return None
        if text != metric:
            return gate_form_fault(text, metrics, near)
        known = f"{', '.join(STATISTICS)}, p0 to p100"
        hint = _hint(_Parts(metric, metrics).subject())
        return f"found {metric!r}, expected a metric, or one of its statistics such as 'mean(f1)' ({known}){hint}"


def _unknown(figure: str) -> str:
    """The reason why a usage figure of a gate, such as its cost, is unknown, with a hint on prices for costs."""
    priced = figure in ("judge_cost_usd", "total_cost_usd", "target_cost_usd")
    return f"{_UNKNOWN[figure]}{MissingExtraError.price_hint()}" if priced else _UNKNOWN[figure]


def cases_for_bound(share: float, bound: float, other: float, limit: float, cases: int) -> int:
    """The number of cases that move a bound of Wilson's interval to a limit between it and the share; 0 for none.

    A bound b is where ``(share - b)² = z² b (1 - b) / cases``. So bounds need cases in the proportion of
    ``b (1 - b) / (share - b)²`` at any confidence.

    Args:
        share: The value.
        bound: The bound that has to move.
        other: The other one, by which intervals of other values are known.
        limit: Where the bound is to be.
        cases: How many there are.
    """

    def size(at: float) -> float:
        return at * (1 - at) / (share - at) ** 2 if at != share else 0.0

    is_wilson = other == share or math.isclose(size(bound), size(other), rel_tol=1e-6)
    if not (is_wilson and size(bound) and min(bound, share) < limit < max(bound, share)):
        return 0
    return math.ceil(cases * size(limit) / size(bound))

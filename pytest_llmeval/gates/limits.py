"""Gates, the limits on a suite: grammar and verdicts."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from msgspec import Struct

from pytest_llmeval.core.codec import WrittenField
from pytest_llmeval.core.errors import price_hint
from pytest_llmeval.core.results import GroupResult, MetricValue, Result
from pytest_llmeval.core.wording import MOST_LISTED, counted, limit, number, several, suggest
from pytest_llmeval.scoring.case_scores import TOLERANCE
from pytest_llmeval.scoring.usage import TARGET_FIGURES, UsageEvaluator

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray


GateOutcome = Literal["passed", "failed", "undecided", "not_judged"]

_FIGURES = frozenset(metric.name for metric in UsageEvaluator().describe())
STATISTICS = ("mean", "median", "min", "max", "low", "high")
GRAMMAR = (
    "METRIC OPERATOR NUMBER such as 'f1 >= 0.7' or 'mean(f1) >= 0.7' "
    f"(operators >= > <= < ==; statistics {', '.join(STATISTICS)}, p0 to p100)"
)
_UNKNOWN = {
    "judge_tokens": "a provider did not report tokens",
    "total_cost_usd": "a call has no known price",
    "cost_usd": "a call has no known price",
    "latency_s": "the stored verdicts have no latency",
    "target_latency_s": "no target was called",
    "target_tokens": "not every prediction reports its usage",
    "cost_per_success_usd": "no answer passed, or not every prediction reports its cost",
    "target_cost_usd": "not every prediction reports its cost, or the tokens of a model with a known price",
}
"""Why a figure is missing; for those of judges, although there are verdicts."""

_UNREPORTED = "not every answer of the target reports its cost; cost_usd leaves the target out"
"""Why the money of a run is unknown where that of its judges is known."""

_CALL = re.compile(r"^(?P<statistic>mean|median|min|max|low|high|p(?:\d{1,2}|100))\((?P<metric>.+)\)$")
_COMPARISON = re.compile(
    r"^(?P<left>.+?)\s*(?P<operator>>=|<=|==|>|<)\s*(?P<limit>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)$"
)


class GateFormError(ValueError):
    """A text is no gate."""


class ScoreLimit(Struct, frozen=True):
    """One comparison: an operator and a number."""

    operator: str
    limit: float

    def holds(self, value: float) -> bool:
        """Return whether a value meets it; ``>=``, ``<=`` and ``==`` have a slack of 1e-12."""
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


@dataclass(frozen=True, slots=True)
class GateResult:
    """The verdict on a gate.

    Attributes:
        gate: The gate as text.
        outcome: ``passed``, ``failed``, ``undecided`` (no drop that is possible could have been established) or
            ``not_judged`` (part of the suite did not run).
        value: What was compared; with ``by``, the group that is furthest from its limit.
        limit: The number that it was compared with.
        reason: One sentence for people.
        line: Of the gate in its file; 0 where it has none.
        undecided: Whether nothing could have been established, whatever counts then: such a gate may have failed by
            what was observed.
        low: Lower bound of the interval of `value`, where that is a change against another run; else the interval is
            that of the metric.
        high: Upper bound.
    """

    gate: str
    outcome: GateOutcome
    value: float | int | None = None
    limit: float | int | None = None
    reason: str = ""
    line: int = 0
    undecided: Annotated[bool, WrittenField.IF_KNOWN] = False
    low: Annotated[float | int | None, WrittenField.IF_KNOWN] = None
    high: Annotated[float | int | None, WrittenField.IF_KNOWN] = None


@dataclass(frozen=True, slots=True)
class Gate:
    """A limit on one statistic of one metric of a suite, or of each of its groups.

    Attributes:
        metric: A metric of the suite, or ``pass_rate``.
        bounds: All must hold.
        statistic: ``value`` (over summed counts), ``mean``, ``median``, ``min``, ``max``, ``p0`` to ``p100`` over the
            cases' own scores, or ``low`` and ``high``, the bounds of the interval.
        by: Judge every group of this label on its own.
        min_cases: Groups of which fewer cases ran are not judged.
        max_errors: How many errored cases are tolerated.
        max_skipped: How many cases may be skipped at run time, by a target, a fixture or a mark; tags are free.
        partial: Judge even if some cases did not run.
        min_scored: How many cases must have a score; with fewer, the gate fails.
        system: The system that the gate is about; empty for every one.
        line: In its file; 0 where it has none.
    """

    metric: str
    bounds: tuple[ScoreLimit, ...]
    statistic: str = "value"
    by: str | None = None
    min_cases: int = 1
    max_errors: int = 0
    max_skipped: int = 0
    partial: bool = False
    min_scored: int = 0
    system: str = ""
    line: int = field(default=0, repr=False, compare=False)

    def __str__(self) -> str:
        subject = self.metric if self.statistic == "value" else f"{self.statistic}({self.metric})"
        text = " and ".join(f"{subject} {bound}" for bound in self.bounds)
        return f"{text} by {self.by}" if self.by else text

    def judge(self, result: Result, incomplete: str = "", unjudged: str = "") -> GateResult:
        """Judge the suite.

        Args:
            result: The suite's metrics.
            incomplete: Why the suite is incomplete; a gate is then judged only if it is ``partial``.
            unjudged: Why this run cannot judge the gate's metric.
        """
        if why := unjudged or ("" if self.partial else incomplete):
            return self._verdict("not_judged", None, f"not judged: {why}")
        if self.by is None:
            metric = result.find(self.metric)
            if metric is None:
                return self._verdict("failed", None, self._absent(result))
            return self._verdict(*self._one(result, metric, self._scores(result, None)))
        return self._groups(result)

    def _groups(self, result: Result) -> GateResult:
        judged: list[tuple[float, str, GateOutcome, float | None, str]] = []
        small = []
        for name, group in result.groups[self.by or ""].items():
            metric = group.find(self.metric)
            if metric is None or group.cases - metric.missing < self.min_cases:
                small.append(name)
                continue
            outcome, value, reason = self._one(group, metric, self._scores(result, group.rows))
            judged.append((self._slack(value), name, outcome, value, reason))
        note = f"; not judged, under {counted(self.min_cases, 'case')}: {several(small)}" if small else ""
        if not judged:
            return self._verdict("failed", None, f"no group by {self.by!r} has {counted(self.min_cases, 'case')}{note}")
        failed = [each for each in judged if each[2] == "failed"]
        _, name, outcome, value, reason = min(failed or judged)
        if failed:
            ordered = sorted(failed) if len(failed) > MOST_LISTED else failed
            listed = several([f"{each[1]}: {each[4]}" for each in ordered], "; ")
            return self._verdict(outcome, value, f"{len(failed)} of {len(judged)} groups fail: {listed}{note}")
        return self._verdict(
            outcome, value, f"all {counted(len(judged), 'group')} pass, closest {name}: {reason}{note}"
        )

    def _absent(self, result: Result) -> str:
        if self.metric in _FIGURES:
            return f"{self.metric} is unknown: {self._unknown(result)}"
        return f"{self.metric} does not occur in the results{suggest(self.metric, result.metrics)}"

    def _unknown(self, among: Result | GroupResult) -> str:
        """Return why a figure of the usage has no value."""
        if self.metric in (*TARGET_FIGURES, "cost_per_success_usd"):
            return _unknown(self.metric)
        verdicts, target = among.find("judge_calls"), among.find("target_latency_s")
        judged = verdicts is not None and verdicts.value is not None
        judges = among.find("cost_usd")
        if self.metric == "total_cost_usd" and (
            (judges is not None and judges.value is not None) or (not judged and target is not None and target.scored)
        ):
            return _UNREPORTED
        if not judged:
            return "no judge was used"
        return _unknown(self.metric)

    def _one(
        self, among: Result | GroupResult, metric: MetricValue, scores: "FloatArray | None"
    ) -> tuple[GateOutcome, float | None, str]:
        if metric.errored > self.max_errors:
            allowed = f", {self.max_errors} allowed" if self.max_errors else ""
            return "failed", self._statistic(metric, scores), f"{counted(metric.errored, 'case')} errored{allowed}"
        value = self._statistic(metric, scores)
        # Skipped cases do not prevent judging, but the reader should see them.
        absent = f"; {counted(metric.missing, 'case')} not run" if metric.missing else ""
        if value is None:
            scored = f"undefined: {counted(metric.scored, 'case')} scored, {metric.undefined} undefined{absent}"
            unknown = self.metric in _FIGURES and metric.value is None
            why = (
                f"unknown: {self._unknown(among)}"
                if unknown
                else f"undefined: {metric.reason}"
                if metric.reason
                else scored
            )
            return "failed", None, f"{self._subject()} is {why}"
        if metric.scored < self.min_scored:
            few = f"{counted(metric.scored, 'case')} scored, expected at least {self.min_scored}{absent}"
            return "failed", value, f"{self._subject()} is {number(value)}: {few}"
        missed = [bound for bound in self.bounds if not bound.holds(value)]
        if missed:
            expected = " and ".join(map(str, missed))
            return "failed", value, f"{self._subject()} is {number(value)}, expected {expected}{absent}"
        return "passed", value, f"{self._subject()} is {number(value)}{absent}"

    def _subject(self) -> str:
        return self.metric if self.statistic == "value" else f"{self.statistic}({self.metric})"

    def _scores(self, result: Result, rows: Sequence[int] | None) -> "FloatArray | None":
        scores = result.scores.get(self.metric)
        return scores if scores is None or rows is None else scores[rows]

    def _statistic(self, metric: MetricValue, scores: "FloatArray | None") -> float | None:
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

    def _slack(self, value: float | None) -> float:
        """Return how far a value is inside its bounds; the smallest one names the closest group."""
        if value is None:
            return -math.inf
        return min(
            -abs(value - bound.limit)
            if bound.operator == "=="
            else (value - bound.limit) * (1 if ">" in bound.operator else -1)
            for bound in self.bounds
        )

    def _verdict(self, outcome: GateOutcome, value: float | None, reason: str) -> GateResult:
        bound = next((b for b in self.bounds if value is not None and not b.holds(value)), self.bounds[0])
        return GateResult(str(self), outcome, value, bound.limit, reason, line=self.line)


def _percentile(scores: "FloatArray | None", statistic: str) -> float | None:
    import numpy as np

    finite = scores[np.isfinite(scores)] if scores is not None else None
    if finite is None or not finite.size:
        return None
    percent = {"min": 0.0, "median": 50.0, "max": 100.0}.get(statistic)
    return float(np.percentile(finite, float(statistic[1:]) if percent is None else percent))


def split_statistic(text: str) -> tuple[str, str]:
    """Split ``mean(f1)`` into statistic and metric; a bare metric has the statistic ``value``."""
    if call := _CALL.match(text.strip()):
        return call["statistic"], call["metric"].strip()
    return "value", text.strip()


def parse_gate(text: str) -> Gate:
    """Read a gate such as ``f1 >= 0.7``, ``mean(rougeL) >= 0.6`` or ``p10(f1) > 0.2``.

    Raises:
        GateFormError: The text is no comparison of a metric with a number.
        ValueError: The number is too large.
    """
    comparison = _COMPARISON.match(text.strip())
    if comparison is None or comparison["left"][-1] in "=<>!":
        raise GateFormError(f"found {text!r}, expected {GRAMMAR}")
    bound = ScoreLimit(comparison["operator"], float(comparison["limit"]))
    if not math.isfinite(bound.limit):
        raise ValueError(f"found {text!r}, expected a limit below 1.8e308")
    statistic, metric = split_statistic(comparison["left"])
    return Gate(metric, (bound,), statistic)


def check_counts(data: Mapping[str, Any]) -> None:
    """Check the numbers of cases in the mapping form of a gate.

    Raises:
        ValueError: One is too small, or has no meaning without another key.
    """
    for name, least in (
        ("min_cases", 1),
        ("min_scored", 1),
        ("max_errors", 0),
        ("max_skipped", 0),
        ("max_left_out", 0),
    ):
        count = data.get(name)
        if count is not None and int(count) < least:
            raise ValueError(f"found {name} {count}, expected at least {least}")
    if data.get("by") is None and int(data.get("min_cases") or 1) > 1:
        raise ValueError("found min_cases without by, expected both: min_cases applies to groups")


def gate_from_mapping(data: Mapping[str, float | int | str | bool | None]) -> Gate:
    """Build a gate from the mapping form, whose types have been checked.

    Raises:
        ValueError: Neither ``min`` nor ``max`` is given, they exclude each other, or a number of cases is too small.
    """
    low, high = data.get("min"), data.get("max")
    if low is None and high is None:
        raise ValueError("found neither min nor max, expected at least one of them")
    if low is not None and high is not None and float(low) > float(high):
        raise ValueError(f"found min {low} above max {high}, expected min <= max")
    check_counts(data)
    bounds = []
    if low is not None:
        bounds.append(ScoreLimit(">=", float(low)))
    if high is not None:
        bounds.append(ScoreLimit("<=", float(high)))
    statistic, metric = split_statistic(str(data["metric"]))
    by = data.get("by")
    return Gate(
        metric,
        tuple(bounds),
        statistic,
        by=None if by is None else str(by),
        min_cases=int(data.get("min_cases") or 1),
        max_errors=int(data.get("max_errors") or 0),
        max_skipped=int(data.get("max_skipped") or 0),
        partial=bool(data.get("partial")),
        min_scored=int(data.get("min_scored") or 0),
        system=str(data.get("system") or ""),
    )


EVERYTHING = "*"
"""Stands for all metrics where a verdict concerns the whole snapshot."""

ChangeKind: TypeAlias = Literal[
    "unchanged",
    "improved",
    "rose_within",
    "fell_within",
    "fell_beyond",
    "new",
    "vanished",
    "not_comparable",
    "missing",
    "unreadable",
    "not_written",
    "approved",
    "not_judged",
]


@dataclass(frozen=True, slots=True)
class SnapshotVerdict:
    """The verdict on one metric, or on the whole snapshot.

    Attributes:
        metric: The metric, or ``*``.
        kind: The change, one of `ChangeKind`; reports of other versions may have other kinds, or none.
        outcome: ``passed``, ``failed`` or ``not_judged`` (part of the suite did not run).
        value: In this run.
        approved: In the snapshot.
        reason: One sentence for people.
    """

    metric: str
    kind: str = ""
    outcome: Literal["passed", "failed", "not_judged"] = "not_judged"
    value: float | int | None = None
    approved: float | int | None = None
    reason: str = ""


def _unknown(figure: str) -> str:
    return (
        f"{_UNKNOWN[figure]}{price_hint()}"
        if figure in ("cost_usd", "total_cost_usd", "target_cost_usd")
        else _UNKNOWN[figure]
    )

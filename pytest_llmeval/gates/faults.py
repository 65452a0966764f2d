"""Faults of thresholds and gates: limits outside a metric's range, and malformed gates, each with one suggestion."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_llmeval.core.evaluator import Metric
from pytest_llmeval.core.results import PASS_RATE, MetricIndex
from pytest_llmeval.core.wording import closest, limit
from pytest_llmeval.data.files.validation import describe
from pytest_llmeval.gates.contract import GRAMMAR, STATISTICS
from pytest_llmeval.scoring.case_scores import TOLERANCE
from pytest_llmeval.scoring.usage import UsageEvaluator

_OWN = {metric.name: metric for metric in (Metric(PASS_RATE, averaged=True), *UsageEvaluator().describe())}
"""Metrics of every suite."""

_PERCENT = 100

_TOKEN = re.compile(
    r"""(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*%?)
    |(?P<operator>at\ least|at\ most|[<>=\u2264\u2265]+(?:\s*=)?)
    |(?P<name>[A-Za-z_][\w.-]*(?:\[[^]]*\])?)
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
_PERCENTILE = re.compile(r"p(?:100|\d{1,2})")
_NO_NAME = re.compile(r"[()<>=%,:\s](?![^\[]*\])")
"""Characters that no name of a metric has outside its label."""


class _Parts:
    """The parts of a malformed gate: at most one operator, number, statistic and metric."""

    def __init__(self, text: str, metrics: MetricIndex) -> None:
        self.metrics = metrics
        tokens = list(_TOKEN.finditer(text))
        self.readable = "".join(each[0] for each in tokens) == text
        self.numbers = [each["number"] for each in tokens if each["number"]]
        self.operators = [_OPERATORS.get(each["operator"], "") for each in tokens if each["operator"]]
        names = [each["name"] for each in tokens if each["name"]]
        self.statistics = [each for each in names if _statistic(each)]
        self.names = [each for each in names if not _statistic(each)]
        kinds = [each.lastgroup for each in tokens if each.lastgroup]
        self.number_first = kinds[:1] == ["number"]

    def subject(self) -> str | None:
        """Return the metric, or its statistic, that is probably meant; ``None`` if that is not clear."""
        if not self.readable or len(self.names) != 1 or len(self.statistics) > 1:
            return None
        name = self.names[0]
        near = name if declared_metric(name, self.metrics) else closest(name, metric_names(self.metrics))
        if near is None or not self.statistics:
            return near
        return f"{_statistic(self.statistics[0])}({near})"

    def gate(self) -> str | None:
        """Return the gate that is probably meant; ``None`` if that is not clear."""
        subject = self.subject()
        if subject is None or len(self.numbers) != 1 or len(self.operators) > 1 or "" in self.operators:
            return None
        metric = declared_metric(subject.partition("(")[2].removesuffix(")") or subject, self.metrics)
        lower = metric is not None and not metric.higher_is_better
        operator = self.operators[0] if self.operators else "<=" if lower else ">="
        return f"{subject} {_MIRRORED[operator] if self.number_first else operator} {_value(self.numbers[0], metric)}"


def _statistic(name: str) -> str | None:
    """Return the statistic that a word names."""
    name = name.lower()
    return name if _PERCENTILE.fullmatch(name) else _ALIASES.get(name)


def _value(text: str, metric: Metric | None = None) -> str:
    """Return a number as a limit: a share for a percentage, and for a number that is probably one."""
    value = float(text.rstrip("% "))
    if "%" in text:
        return limit(value / _PERCENT)
    share = None if metric is None else _share(value, metric)
    return limit(value if share is None else share)


def _share(value: float, metric: Metric) -> float | None:
    """Return the share that a percentage stands for; ``None`` for numbers that are no percentage of the metric."""
    return value / _PERCENT if metric.high == 1 and 1 < value <= _PERCENT else None


def _hint(meant: str | None, *, quoted: bool = True) -> str:
    return "" if meant is None else f" (did you mean {meant!r}?)" if quoted else f" (did you mean {meant}?)"


def metric_names(metrics: MetricIndex) -> list[str]:
    """Return the names of metrics that a gate of a suite may have, besides those of usage."""
    return [PASS_RATE, *(each.name for declared in metrics.declared.values() for each in declared)]


def declared_metric(name: str, metrics: MetricIndex) -> Metric | None:
    """Return the declaration of a metric of a suite, those that every suite has among them."""
    owned = metrics.find(name)
    return owned.metric if owned is not None else _OWN.get(name)


def range_fault(name: str, value: float, metrics: MetricIndex, text: str = "") -> str | None:
    """Return why a metric can never reach a limit, or never miss it; ``None`` if it can.

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


def _share_hint(value: float, metric: Metric, text: str = "") -> str:
    """Return the hint for a percentage where a share is wanted; the limit is the last number of a gate."""
    share = _share(value, metric)
    if share is None:
        return ""
    if not text:
        return _hint(limit(share), quoted=False)
    return _hint(re.sub(r"[-+.\w]+$", "", text.strip("'\"")) + limit(share))


def drop_fault(key: str, name: str, allowed: float, metrics: MetricIndex) -> str | None:
    """Return why a metric can never fall by more than is allowed; ``None`` if it can."""
    metric = declared_metric(name, metrics)
    if metric is None or metric.low is None or metric.high is None or allowed <= metric.high - metric.low + TOLERANCE:
        return None
    most = f"at most {limit(metric.high - metric.low)}: {name} lies from {limit(metric.low)} to {limit(metric.high)}"
    return f"found {key} {limit(allowed)}, expected {most}{_share_hint(allowed, metric)}"


def limit_form_fault(entry: Any) -> str:
    """Return the fault of a threshold that is neither a number nor a mapping, such as ``80%`` or ``>= 0.5``."""
    parts = _Parts(entry, MetricIndex.from_evaluators({})) if isinstance(entry, str) else None
    meant = None
    if parts is not None and parts.readable and len(parts.numbers) == 1 and not parts.names and not parts.statistics:
        value = _value(parts.numbers[0])
        forms = {(): value, (">=",): f"{{min: {value}}}", ("<=",): f"{{max: {value}}}"}
        meant = forms.get(tuple(parts.operators))
    return f"found {describe(entry)}, expected a number or {{min, max}}{_hint(meant, quoted=False)}"


def gate_form_fault(text: str, metrics: MetricIndex) -> str:
    """Return the fault of a malformed gate, with the gate that is probably meant."""
    return f"found {text!r}, expected {GRAMMAR}{_hint(_Parts(text, metrics).gate())}"


def subject_fault(text: str, metric: str, metrics: MetricIndex) -> str | None:
    """Return the fault of a gate whose metric is no name, such as ``avg(f1)``; ``None`` if it may be one.

    Args:
        text: The gate, or its key ``metric``.
        metric: The metric in it, as it was parsed.
        metrics: Those of the suite.
    """
    if not _NO_NAME.search(metric):
        return None
    if text != metric:
        return gate_form_fault(text, metrics)
    known = f"{', '.join(STATISTICS)}, p0 to p100"
    hint = _hint(_Parts(metric, metrics).subject())
    return f"found {metric!r}, expected a metric, or one of its statistics such as 'mean(f1)' ({known}){hint}"


def mapping_form_fault(entry: Mapping[str, Any], keys: Sequence[str], metrics: MetricIndex) -> str | None:
    """Return the fault of a mapping of a metric to its limit, such as ``f1: 0.5``; ``None`` for other mappings."""
    if len(entry) != 1:
        return None
    ((subject, value),) = entry.items()
    if subject in keys:
        return None
    hint = ""
    if isinstance(value, Mapping):
        meant = _Parts(subject, metrics).subject()
        inner = ", ".join(f"{key}: {each}" for key, each in value.items())
        hint = _hint(f"{{metric: {meant}, {inner}}}", quoted=False) if meant is not None else ""
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        hint = _hint(_Parts(f"{subject} {value}", metrics).gate())
    return f"found {describe(entry)}, expected {GRAMMAR}, or a mapping with 'metric'{hint}"

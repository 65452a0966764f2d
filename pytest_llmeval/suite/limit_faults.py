"""Faults of thresholds and gates: limits outside a metric's range, and forms that are no gate."""

__all__ = (
    "check_name_faults",
    "declared_metric",
    "drop_fault",
    "gate_form_fault",
    "mapping_form_fault",
    "range_fault",
    "subject_fault",
)

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.evaluator import Metric
from pytest_llmeval.core.metrics import MetricIndex
from pytest_llmeval.core.results import PASS_RATE
from pytest_llmeval.core.wording import limit, suggest
from pytest_llmeval.data.files.validation import describe
from pytest_llmeval.scoring.gate_forms import MetricNames, as_share, nearest_gate, nearest_subject
from pytest_llmeval.scoring.gates import GRAMMAR, STATISTICS, Gate
from pytest_llmeval.scoring.limits import TOLERANCE
from pytest_llmeval.scoring.regression import RegressionGate
from pytest_llmeval.scoring.usage import UsageEvaluator
from pytest_llmeval.suite.suite import SuiteEntry

if TYPE_CHECKING:
    from pytest_llmeval.evaluators.checks.evaluator import Checks

_OWN = {metric.name: metric for metric in (Metric(PASS_RATE), *UsageEvaluator().describe())}
"""Metrics of every suite."""

_ODD = re.compile(r"[()<>=%,:\s](?![^\[]*\])")
"""What no name of a metric has outside a label, so that a text with it was meant as something else."""


def declared_metric(name: str, metrics: MetricIndex) -> Metric | None:
    """Return the declaration of a metric of a suite, those that every suite has among them."""
    found = metrics.find(name)
    return found.metric if found is not None else _OWN.get(name)


def range_fault(name: str, value: float, metrics: MetricIndex, found: str = "") -> str | None:
    """Return why a metric can never reach a limit, or never miss it; ``None`` if it can.

    Args:
        name: The metric; nothing is wrong with the limit of an unknown one.
        value: The limit.
        metrics: Those of the suite.
        found: The text of the limit, as the user wrote it; default: the number.
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
    hint = _as_share(value, metric, found)
    return f"found {found or limit(value)}, expected a number {expected}, the range of {name}{hint}"


def _as_share(value: float, metric: Metric, found: str = "") -> str:
    """Return the hint for a percentage where a share is wanted; the limit is the last number of a gate."""
    share = as_share(value, metric)
    if share is None:
        return ""
    meant = repr(re.sub(r"[-+.\w]+$", "", found.strip("'\"")) + limit(share)) if found else limit(share)
    return f" (did you mean {meant}?)"


def drop_fault(key: str, name: str, allowed: float, metrics: MetricIndex) -> str | None:
    """Return why a metric can never fall by more than is allowed; ``None`` if it can."""
    metric = declared_metric(name, metrics)
    if metric is None or metric.low is None or metric.high is None or allowed <= metric.high - metric.low + TOLERANCE:
        return None
    most = f"at most {limit(metric.high - metric.low)}: {name} lies from {limit(metric.low)} to {limit(metric.high)}"
    return f"found {key} {limit(allowed)}, expected {most}{_as_share(allowed, metric)}"


def gate_form_fault(text: str, names: MetricNames) -> str:
    """Return the fault of a text that is no gate, with the nearest one."""
    return f"found {text!r}, expected {GRAMMAR}{nearest_gate(text, names)}"


def subject_fault(text: str, metric: str, names: MetricNames) -> str | None:
    """Return the fault of a gate of a wrong form, in which no metric was found; ``None`` if its form is right.

    Args:
        text: The gate, or its key ``metric``.
        metric: The metric in it, as it was read.
        names: The metrics of the suite.
    """
    near = nearest_subject(metric, names)
    if not _ODD.search(metric) and not (near and near.endswith(")")):
        return None
    if text != metric:
        return gate_form_fault(text, names)
    hint = f" (did you mean {near!r}?)" if near else ""
    known = f"{', '.join(STATISTICS)}, p0 to p100"
    return f"found {metric!r}, expected a metric, or one of its statistics such as 'mean(f1)' ({known}){hint}"


def mapping_form_fault(entry: Mapping[str, Any], keys: "list[str]", names: MetricNames) -> str | None:
    """Return the fault of a mapping of a metric to its limit, such as ``f1: 0.5``; ``None`` for other mappings."""
    if len(entry) != 1:
        return None
    ((subject, value),) = entry.items()
    if subject in keys:
        return None
    hint = ""
    near = nearest_subject(subject, names)
    if isinstance(value, Mapping) and near is not None:
        inner = ", ".join(f"{key}: {each}" for key, each in value.items())
        hint = f" (did you mean {{metric: {near}, {inner}}}?)"
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        hint = nearest_gate(f"{subject} {value}", names)
    return f"found {describe(entry)}, expected {GRAMMAR}, or a mapping with 'metric'{hint}"


def check_name_faults(
    entry: SuiteEntry, gates: Sequence[Gate | RegressionGate], checks: "Checks"
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield place and message of each limit on ``check[NAME]`` for a name that no check has: nothing would miss it.

    Args:
        entry: A suite file without faults.
        gates: Its gates.
        checks: The evaluator of its checks.
    """
    known = [checks.metric_of(name) for name in sorted(checks.names)]
    limited: dict[tuple[str | int, ...], str] = {}
    for number, gate in enumerate(gates):
        form = ("metric",) if isinstance(entry.gates[number], Mapping) else ()
        limited["gates", number, *form] = gate.metric
    limited |= {("thresholds", metric): metric for metric in entry.thresholds}
    for number, case in enumerate(entry.cases):
        limited |= {("cases", number, "thresholds", metric): metric for metric in case.get("thresholds") or ()}
    for place, metric in limited.items():
        if metric.startswith("check[") and metric not in known:
            expected = f"expected one of {', '.join(known)}{suggest(metric, known)}"
            yield place, f"found the unknown metric {metric!r}, {expected}"

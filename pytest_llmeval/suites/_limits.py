"""Thresholds and gates of a suite file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_llmeval.core import Metric, unknown_name
from pytest_llmeval.data import DeclaredType
from pytest_llmeval.gates import Gate
from pytest_llmeval.numbers import Threshold, UsageEvaluator
from pytest_llmeval.suites._reading import SUITE_METRICS, SuiteReading

if TYPE_CHECKING:
    from pytest_llmeval.evaluators import Checks
    from pytest_llmeval.gates import GateReader

_REFERENCE = "without"


@dataclass(frozen=True)
class LimitEntry:
    """A threshold of a suite file in its mapping form, with ``min`` or ``max``."""

    __pydantic_config__: ClassVar = DeclaredType.STRICT

    min: float | None = None
    max: float | None = None


def read_limits(reading: SuiteReading, entries: Mapping[str, Any], path: tuple[str | int, ...]) -> dict[str, Threshold]:
    """Read ``thresholds`` of a suite file or of a case: metric to its limits."""
    limits = {}
    for metric, entry in entries.items():
        place = (*path, metric)
        if metric not in UsageEvaluator.TARGET_FIGURES and (
            fault := reading.metric_fault(metric, after=UsageEvaluator.TARGET_FIGURES)
        ):
            reading.fault(place, fault, key=True)
        limit = _read_limit(reading, entry, place)
        if limit is None:
            continue
        for key, value in (("min", limit.min), ("max", limit.max)):
            if value is not None and (fault := _range_fault(reading, metric, value)):
                reading.fault((*place, key), fault)
        if not isinstance(entry, Mapping) and _lower_is_better(reading, metric):
            reading.fault(
                place,
                f"found a bare number, which is a minimum, but lower is better here, expected {{max: {entry}}}",
            )
        limits[metric] = limit
    return limits


def _range_fault(reading: SuiteReading, metric: str, value: float) -> str | None:
    """The fault of a threshold outside the range of its metric."""
    from pytest_llmeval.gates import LimitGate

    return LimitGate.range_fault(metric, value, reading.metrics)


def _lower_is_better(reading: SuiteReading, metric: str) -> bool:
    """Whether lower is better for a threshold's metric, so that a bare number cannot be its minimum."""
    return metric in UsageEvaluator.TARGET_FIGURES or reading.metrics.lower_is_better(metric)


def _read_limit(reading: SuiteReading, entry: Any, place: tuple[str | int, ...]) -> Threshold | None:
    """Read a threshold: a number, which is a minimum, or a mapping with ``min`` and ``max``."""
    if isinstance(entry, int | float) and not isinstance(entry, bool):
        entry = {"min": entry}
    if not isinstance(entry, Mapping):
        from pytest_llmeval.gates import LimitGate

        reading.fault(place, LimitGate.form_fault(entry))
        return None
    checked = reading.check(LimitEntry, entry, place)
    if checked is None:
        return None
    if checked.min is None and checked.max is None:
        reading.fault(place, "min or max is missing")
    elif checked.min is not None and checked.max is not None and checked.min > checked.max:
        reading.fault(place, f"found min {checked.min} above max {checked.max}, expected min <= max")
    return Threshold(checked.min, checked.max)


def read_gates(reading: SuiteReading, entries: Sequence[Any]) -> tuple[Gate, ...]:
    """Read ``gates`` of a suite file; those against a baseline have the clusters of the suite."""
    gates: dict[str, Gate] = {}
    for number, entry in enumerate(entries):
        place: tuple[str | int, ...] = ("gates", number)
        reader = _gate_reader(reading, place)
        gate = reader.read(entry)
        if gate is None:
            continue
        _check_gate(reading, reader, gate, entry, place)
        name = f"{gate}[{gate.system}]" if gate.system else str(gate)
        if name in gates:
            reading.fault(place, f"found the gate {name!r} twice, expected it once")
        gates[name] = replace(gate, line=reading.document.locate(place)[0])
    return tuple(gates.values())


def _check_gate(
    reading: SuiteReading, reader: "GateReader", gate: Gate, entry: Any, place: tuple[str | int, ...]
) -> None:
    """Refuse a suite's gate on an unknown metric, or with a limit that its metric cannot reach."""
    subject = (*place, "metric") if isinstance(entry, Mapping) else place
    judged = any(evaluator.asks for evaluator in reading.metrics.evaluators.values())
    extra = SUITE_METRICS if judged or gate.metric in SUITE_METRICS else (Metric.PASS_RATE,)
    if fault := reading.metric_fault(gate.metric, extra):
        text = gate.metric if isinstance(entry, Mapping) else entry
        reading.fault(subject, reader.subject_fault(text, gate.metric) or fault)
        return
    for key, fault in reader.misfits(gate, entry):
        reading.fault((*place, key) if key else place, fault)


def _gate_reader(reading: SuiteReading, place: tuple[str | int, ...]) -> "GateReader":
    """The reader of an entry under ``gates`` that adds its faults to those of the suite file."""
    from pytest_llmeval.gates import GateReader

    def report(key: str, fault: str, at_key: bool) -> None:
        reading.fault((*place, key) if key else place, fault, key=at_key)

    return GateReader(
        reading.metrics,
        lambda kind, values: reading.check(kind, values, place),
        report,
        reference=_reference(reading),
        cluster_by=reading.entry.cluster_by,
    )


def _reference(reading: SuiteReading) -> str:
    """The system that a suite's gates on a lift compare with: the named reference, or ``without``."""
    named = reading.document.data.get("reference") if isinstance(reading.document.data, Mapping) else None
    return named if isinstance(named, str) else _REFERENCE


def read_groups(reading: SuiteReading, labels: tuple[str, ...]) -> tuple[str, ...]:
    """Read ``group_by`` of a suite file, adding the labels of gates on groups."""
    return tuple(dict.fromkeys([*labels, *(gate.by for gate in reading.values["gates"] if gate.by)]))


def check_limited_checks(reading: SuiteReading, gates: Sequence[Gate], checks: "Checks") -> None:
    """Refuse a suite's limit on ``check[NAME]`` for a name that no check has: nothing would miss it.

    Args:
        reading: Of a suite file without faults.
        gates: Its gates.
        checks: The evaluator of its checks.
    """
    entry = reading.entry
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
            fault = unknown_name("metric", metric, known)
            reading.fault(place, fault, key="thresholds" in place)

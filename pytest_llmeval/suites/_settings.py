"""Settings of a suite file that stand on their own."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core import PASS_RATE, MetricIndex, Parts
from pytest_llmeval.data import describe, input_files, searching_within
from pytest_llmeval.numbers import RELIABILITY, Reliability, Repeats
from pytest_llmeval.suites._reading import SuiteReading

if TYPE_CHECKING:
    from pytest_llmeval.targets import TargetSpec

_MOST_REPEATS = 1000


def read_target(reading: SuiteReading, entry: Any) -> "TargetSpec | None":
    """Read ``target``."""
    if entry is None:
        return None
    from pytest_llmeval.targets import TargetSpec

    spec = TargetSpec(entry) if isinstance(entry, str) else reading.check(TargetSpec, entry, ("target",))
    if spec is None:
        return None
    for path, message in spec.faults(reading.document.objects):
        reading.fault(("target", *path), message)
    return spec


def read_repeats(reading: SuiteReading, entry: Any) -> Repeats:
    """Read ``repeats``: a number, or a mapping. Repeated cases have metrics of their own."""
    repeats = _repeats(reading, entry)
    if repeats.times > 1:
        reading.add_metrics(MetricIndex.from_evaluators({RELIABILITY: Reliability(repeats.times)}), ("repeats",))
    return repeats


def _repeats(reading: SuiteReading, entry: Any) -> Repeats:
    if isinstance(entry, int) and not isinstance(entry, bool):
        if not 1 <= entry <= _MOST_REPEATS:
            reading.fault(("repeats",), f"found {entry}, expected 1 to {_MOST_REPEATS}")
            return Repeats()
        return Repeats(entry)
    if not isinstance(entry, Mapping):
        reading.fault(("repeats",), f"found {describe(entry)}, expected a whole number or a mapping with 'times'")
        return Repeats()
    repeats: Repeats | None = reading.check(Repeats, entry, ("repeats",))
    if repeats is not None and repeats.times > _MOST_REPEATS:
        reading.fault(("repeats", "times"), f"found {repeats.times}, expected 1 to {_MOST_REPEATS}")
    return repeats or Repeats()


def read_confidence(reading: SuiteReading, value: float | None) -> float | None:
    """Read ``confidence``."""
    if value is not None and not 0 < value < 1:
        reading.fault(("confidence",), f"found {value}, expected a number between 0 and 1, such as 0.95")
    return value


def read_compared(reading: SuiteReading, metrics: tuple[str, ...]) -> tuple[str, ...]:
    """Read ``compare_by``."""
    for number, name in enumerate(metrics):
        if fault := reading.metric_fault(name, (PASS_RATE,)):
            reading.fault(("compare_by", number), fault)
    return metrics


def read_inputs(reading: SuiteReading, patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Read ``inputs``, each of which must match a file."""
    for number, pattern in enumerate(patterns):
        try:
            with searching_within(reading.root):
                files = input_files(reading.path.parent, pattern)
        except ValueError as error:
            reading.fault(("inputs", number), str(error))
            continue
        if Path(pattern).is_absolute() or not files:
            reading.fault(("inputs", number), f"found {pattern!r}, expected a relative pattern that matches a file")
    return patterns


def read_parts(reading: SuiteReading, entry: Any) -> Parts:
    """Read ``parts``: a JMESPath for each part."""
    if entry is None:
        return Parts()
    parts: Parts | None = reading.check(Parts, entry, ("parts",))
    if parts is None:
        return Parts()
    for name, path in vars(parts).items():
        if path is not None:
            reading.is_expression(path, ("parts", name))
    return parts

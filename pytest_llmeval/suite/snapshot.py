"""The snapshot settings of a suite, checked: tolerances, metrics, handling of incomparable runs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from msgspec import Struct

from pytest_llmeval.core.results import PASS_RATE
from pytest_llmeval.core.wording import limit

if TYPE_CHECKING:
    from pytest_llmeval.suite.settings import SettingsReader

Policy: TypeAlias = Literal["fail", "warn"]
AnchorPolicy: TypeAlias = Literal["best", "keep"]

_MOST_APPROVALS = 1000
_MOST_POOLED = 100


class Tolerance(Struct, frozen=True):
    """The allowed fall of a metric: the larger of two allowances.

    Attributes:
        absolute: In units of the metric.
        relative: As a share of the approved value.
    """

    absolute: float = 0.0
    relative: float = 0.0

    def at(self, approved: float) -> float:
        """Return the allowance at an approved value."""
        return max(self.absolute, self.relative * abs(approved))

    def __str__(self) -> str:
        return f"{limit(self.relative * 100)}% of the approved value" if self.relative else limit(self.absolute)


EXACT = Tolerance()


@dataclass(frozen=True)
class ToleranceEntry:
    """A tolerance in its mapping form."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    relative: float


@dataclass(frozen=True)
class SnapshotEntry:
    """``snapshot`` as a suite file writes it, if it is not just ``true`` or ``false``.

    Attributes:
        tolerance: Of all metrics, or of each by name.
        metrics: Which metrics; ``None`` for all.
        not_comparable: What happens if the approved scores are of other data or another evaluator.
        history: How many approvals the file remembers.
        anchor: Whether a run that is established to be better becomes the anchor, or only one that the user names.
        pool: How many of the last approved runs of equal data are the baseline of gates together.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    tolerance: Any = None
    metrics: tuple[str, ...] | None = None
    not_comparable: Policy = "fail"
    history: int = 20
    anchor: AnchorPolicy = "best"
    pool: int = 1


@dataclass(frozen=True)
class SnapshotSettings(SnapshotEntry):
    """Settings for storing and comparing the scores of a suite.

    Attributes:
        enabled: Whether they are; overrides the ini option ``llmeval_snapshots``.
        tolerance: Default for metrics without their own; ``None`` if the file sets none.
        tolerances: Metric name to tolerance.
        excluded: Metrics that are never part of it, as declared.
    """

    tolerance: Tolerance | None = None
    enabled: bool = True
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)
    excluded: tuple[str, ...] = ()

    def tolerance_of(self, metric: str) -> Tolerance:
        """Return how far a metric may fall."""
        return self.tolerances.get(metric, self.tolerance or EXACT)

    def leaves(self, metric: str) -> bool:
        """Return whether a metric has no tolerance, so that a gate with ``max_drop`` may decide."""
        return self.tolerance is None and metric not in self.tolerances

    def keeps(self, metric: str) -> bool:
        """Return whether a metric is part of the snapshot."""
        families = tuple(each.partition("[")[0] + "[" for each in self.excluded if "[" in each)
        if metric in self.excluded or metric.startswith(families):
            return False
        return self.metrics is None or metric in self.metrics


def read_snapshot(reader: "SettingsReader", entry: Any) -> SnapshotSettings | None:
    """Read ``snapshot``; without it the ini option decides."""
    if entry is None:
        return None
    if isinstance(entry, bool):
        return SnapshotSettings(enabled=entry)
    path = ("snapshot",)
    checked = reader.check(SnapshotEntry, entry, path)
    if checked is None:
        return None
    for key, count, most in (("history", checked.history, _MOST_APPROVALS), ("pool", checked.pool, _MOST_POOLED)):
        if not 1 <= count <= most:
            reader.fault((*path, key), f"found {count}, expected 1 to {most}")
    if checked.metrics == ():
        reader.fault((*path, "metrics"), "found an empty list, expected at least one metric")
    for number, name in enumerate(checked.metrics or ()):
        if wrong := reader.metric_fault(name, extra=(PASS_RATE,)):
            reader.fault((*path, "metrics", number), wrong)
    place = (*path, "tolerance")
    shared: Tolerance | None = None
    own: dict[str, Tolerance] = {}
    if isinstance(checked.tolerance, Mapping):
        for name, each in checked.tolerance.items():
            if wrong := reader.metric_fault(name, extra=(PASS_RATE,)):
                reader.fault((*place, name), wrong, key=True)
            own[name] = _tolerance(reader, each, (*place, name))
    elif checked.tolerance is not None:
        shared = _tolerance(reader, checked.tolerance, place)
    return SnapshotSettings(**{**vars(checked), "tolerance": shared}, tolerances=own)


def _tolerance(reader: "SettingsReader", entry: Any, place: Sequence[str | int]) -> Tolerance:
    relative = isinstance(entry, Mapping)
    if relative:
        checked = reader.check(ToleranceEntry, entry, place)
        number = None if checked is None else checked.relative
        place = (*place, "relative")
    else:
        number = reader.check(float, entry, place)
    if number is None:
        return EXACT
    if not (math.isfinite(number) and number >= 0):
        reader.fault(place, f"found {number}, expected a number of at least 0")
    return Tolerance(relative=number) if relative else Tolerance(absolute=number)

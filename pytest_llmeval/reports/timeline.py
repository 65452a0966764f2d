"""The history of a suite as data: runs and approvals with values, intervals, gates, and what changed between them."""

__all__ = ("Point", "Timeline", "timeline_of")

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime

from pytest_llmeval.core.results import PASS_RATE


@dataclass(frozen=True, slots=True)
class Point:
    """A run of a suite, or an approval of one.

    Attributes:
        time: When it started, in UTC; of an approval the day.
        commit: What was checked out; empty outside a repository.
        values: Metric name to value.
        intervals: Metric name to the bounds of its interval.
        gates: Gate to ``passed``, ``failed`` or ``not_judged``; ``None`` where that is not known.
        cases: How many; ``None`` where that is not known.
        basis: What decides the values besides the predictions (``data``, ``evaluator``, ``judge``) to its fingerprint;
            what is not known is left out.
        approved: Whether its scores were approved.
        noted: Whether the history of runs has it; else only the score file does, which dates with days.
    """

    time: datetime
    commit: str = ""
    values: Mapping[str, float | None] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    gates: Mapping[str, str] | None = None
    cases: int | None = None
    basis: Mapping[str, str] = field(default_factory=dict)
    approved: bool = False
    noted: bool = True

    @property
    def failed_gates(self) -> list[str]:
        """Gates that failed."""
        return [gate for gate, outcome in (self.gates or {}).items() if outcome == "failed"]

    @property
    def when(self) -> str:
        """Its time as people read it: ``2026-11-22 10:43``, or the day of an approval."""
        return f"{self.time:%Y-%m-%d %H:%M}" if self.noted else f"{self.time:%Y-%m-%d}"


@dataclass(frozen=True, slots=True)
class Timeline:
    """The history of a suite, or of one variant of it.

    Attributes:
        path: The suite file as reports name it.
        variant: The Python test and the system or variant in brackets; empty where there is neither.
        points: In the order of time.
        bridged: Fingerprints of judges before and after changes across which scores are compared.
    """

    path: str
    variant: str
    points: Sequence[Point]
    bridged: AbstractSet[tuple[str, str]] = frozenset()

    @property
    def title(self) -> str:
        """Suite file and variant."""
        return self.path + self.variant

    @property
    def metrics(self) -> list[str]:
        """Names of all metrics: those that gates of the last run name first, the pass rate last."""
        names = dict.fromkeys(name for point in reversed(self.points) for name in point.values)
        gates = next((" ".join(point.gates) for point in reversed(self.points) if point.gates), "")

        def last(name: str) -> tuple[bool, bool]:
            return name == PASS_RATE, re.search(rf"(?<!\w){re.escape(name)}(?!\w)", gates) is None

        return sorted(names, key=last)

    def changes(self) -> list[tuple[str, ...]]:
        """Return for each point what is not as it was at the points before: ``data``, ``evaluator``, ``judge``.

        A change of judge that is bridged is a ``bridged judge``.
        """
        known: dict[str, str] = {}
        cases: int | None = None
        found = []
        for point in self.points:
            changed = [
                f"bridged {name}" if (known[name], value) in self.bridged else name
                for name, value in point.basis.items()
                if known.get(name, value) != value
            ]
            counts = {cases, point.cases} - {None}
            if "data" not in point.basis and len(counts) > 1:
                changed.append("data")
            known |= point.basis
            cases = point.cases if point.cases is not None else cases
            found.append(tuple(sorted(changed)))
        return found


def timeline_of(suite: str, timelines: Iterable[Timeline]) -> Timeline | None:
    """Return the history of a suite, or of a variant of it, by its name with the variant in brackets."""
    named = [each for each in timelines if suite.endswith(each.variant)]
    return max(named, key=lambda each: len(each.variant), default=None)

"""The report of a run, before it is written in any form."""

__all__ = ("OUTCOMES", "RunReport", "SuiteReport")

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_llmeval.gates import GateResult
from pytest_llmeval.results import Result

OUTCOMES = ("passed", "failed", "errored", "skipped", "not_run")


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """One suite, or one variant of it.

    Attributes:
        suite: Name, with the variant in brackets.
        path: The file, relative to pytest's rootdir.
        result: Its metrics.
        gates: The verdicts.
        total: How many cases the file has.
        confidence: Of the intervals.
    """

    suite: str
    path: str
    result: Result
    gates: Sequence[GateResult]
    total: int
    confidence: float | None = 0.95

    @property
    def interval_name(self) -> str:
        """What tables call the column of intervals, such as ``95% interval``."""
        return "interval" if self.confidence is None else f"{self.confidence * 100:g}% interval"

    @property
    def counts(self) -> dict[str, int]:
        """Cases by outcome; ``not_run`` holds the faulty ones too."""
        seen: Counter[str] = Counter(case.outcome for case in self.result.cases)
        counts = {"total": self.total, **{outcome: seen[outcome] for outcome in OUTCOMES}}
        counts["not_run"] += self.total - len(self.result.cases)
        return counts

    @property
    def run(self) -> int:
        """How many cases ran."""
        return self.total - self.counts["not_run"]


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run of pytest.

    Attributes:
        started_at: ISO 8601, UTC.
        duration_s: Seconds.
        version: Of this package.
        commit: Of the repository, if it is one.
        suites: Sorted by path and variant.
    """

    started_at: str
    duration_s: float
    version: str
    commit: str | None
    suites: Sequence[SuiteReport] = field(default_factory=tuple)

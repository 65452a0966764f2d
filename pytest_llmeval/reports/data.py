"""The report of a run as data, independent of its format."""

__all__ = ("OUTCOMES", "RunReport", "SuiteReport")

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_llmeval.core.results import Result
from pytest_llmeval.reports.buckets import FilledBucket
from pytest_llmeval.reports.notes import CaseNote, WorstCases
from pytest_llmeval.reports.tables import FilledTable
from pytest_llmeval.scoring.gates import GateResult, SnapshotVerdict
from pytest_llmeval.scoring.usage import UsageReport

if TYPE_CHECKING:
    from pytest_llmeval.reports.changes import Changes
    from pytest_llmeval.reports.systems import SystemsReport
    from pytest_llmeval.reports.timeline import Timeline

_COMPARED = re.compile(r" (?:>=|<=|==|>|<) ")
_SUBJECT = re.compile(r"(?:\w+\()*(?P<metric>.+?)\)*")
"""What a gate is about: a metric, or a statistic or drop of it such as ``drop(mean(f1))``."""

OUTCOMES = ("passed", "failed", "errored", "skipped", "not_run")
STATUSES = ("stable pass", "flaky", "stable fail", "error")


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
        usage: Calls of judges and targets; ``None`` if there were none.
        snapshot: The verdicts on its scores against those that were approved.
        buckets: The cases that went wrong, by the ways that evaluators name.
        tables: Those that evaluators declare, with the numbers of this result.
        lower_is_better: Metrics of which less is better.
        ranges: Metric to its smallest and its largest value, where it has both.
        shared_inputs: How many cases have the input of an earlier one, where these are many and in no named cluster.
        notes: Case id to what reports say of the case besides its scores.
        worst: The worst cases; ``None`` where all are as good as can be.
        left_out: How many cases are left out because they have no prediction and only predicted ones are wanted.
        variant: The system, or the variant of the target, in the name of the suite; empty where it has none.
        changes: What changed since its scores were approved; ``None`` where no report shows it.
        past: Its runs and approvals up to this one; ``None`` where no report draws them.
    """

    suite: str
    path: str
    result: Result
    gates: Sequence[GateResult]
    total: int
    confidence: float | None = 0.95
    usage: UsageReport | None = None
    snapshot: Sequence[SnapshotVerdict] = ()
    buckets: Sequence[FilledBucket] = ()
    tables: Sequence[FilledTable] = ()
    lower_is_better: Sequence[str] = ()
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    shared_inputs: int = 0
    notes: Mapping[str, CaseNote] = field(default_factory=dict)
    worst: WorstCases | None = None
    left_out: int = 0
    variant: str = ""
    changes: "Changes | None" = None
    past: "Timeline | None" = None

    @property
    def base_name(self) -> str:
        """The name without the system or variant."""
        return self.suite.removesuffix(f"[{self.variant}]")

    @property
    def failed(self) -> bool:
        """Whether a case, a gate or a score against the approved ones failed."""
        outcomes = {
            *(each.outcome for each in self.result.cases),
            *(each.outcome for each in self.gates),
            *(each.outcome for each in self.snapshot),
        }
        return bool(outcomes & {"failed", "errored"})

    @property
    def gated(self) -> list[str]:
        """The metrics that gates judge, each once, in the order of the gates."""
        judged = (_SUBJECT.fullmatch(_COMPARED.split(each.gate, maxsplit=1)[0]) for each in self.gates)
        names = dict.fromkeys(found["metric"] for found in judged if found is not None)
        return [name for name in names if self.result.find(name) is not None]

    @property
    def named_buckets(self) -> list[FilledBucket]:
        """The buckets that evaluators name themselves."""
        return [each for each in self.buckets if not each.general]

    def note(self, case: str) -> CaseNote:
        """Return what reports say of a case besides its scores."""
        return self.notes.get(case) or CaseNote()

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
    def stability(self) -> dict[str, int]:
        """Cases by how their repeats went; empty where every case ran once."""
        seen = Counter(each.details["repeats"]["status"] for each in self.result.cases if "repeats" in each.details)
        return {status: seen[status] for status in STATUSES if seen[status]}

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
        faults: Suite file, relative to pytest's rootdir, to what is wrong with it, a line each; sorted by file.
        systems: Of suites that several systems answered, side by side.
    """

    started_at: str
    duration_s: float
    version: str
    commit: str | None
    suites: Sequence[SuiteReport] = field(default_factory=tuple)
    faults: Mapping[str, Sequence[str]] = field(default_factory=dict)
    systems: "Sequence[SystemsReport]" = ()

"""A suite at the stages of a run: collected, measured, judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_llmeval.baselines.comparable import Comparable, comparable_of, digests_of
from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.core.results import CaseRecord, Result
from pytest_llmeval.suite.suite import Suite, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.baselines.files import PendingFile
    from pytest_llmeval.baselines.scores import SuiteScores
    from pytest_llmeval.gates.contract import GateResult, SnapshotVerdict
    from pytest_llmeval.gates.statistics.anytime import WatchedRun
    from pytest_llmeval.gates.statistics.case_statistics import CaseStatistics
    from pytest_llmeval.gates.statistics.pairing import RunPairing, Shift
    from pytest_llmeval.reports.form import BucketReport, StopReport
    from pytest_llmeval.reports.tables import FilledTable


@dataclass(frozen=True)
class RunWatch:
    """The part of a run in gates that weigh all runs since an approval.

    Attributes:
        baseline: Fingerprint of the approved statistics.
        statistics: Fingerprint of those of the run.
        looks: Gate to the evidence of the run.
    """

    baseline: str
    statistics: str
    looks: "Mapping[str, WatchedRun]" = field(default_factory=dict)


class ApprovedRun(NamedTuple):
    """The approved run of a suite, compared with the current one.

    Attributes:
        statistics: Counts of its cases.
        pairing: Both runs.
    """

    statistics: "CaseStatistics"
    pairing: "RunPairing"


@dataclass(frozen=True)
class EarlyStop:
    """The end of a suite that stopped because its gates were decided.

    Attributes:
        report: Counts and savings, for reports.
        gates: The verdicts on its gates.
        ran_ahead: Records of cases that were not needed and had run by then; they count nowhere, but cost.
    """

    report: "StopReport"
    gates: "Sequence[GateResult]" = ()
    ran_ahead: Sequence[CaseRecord] = ()


@dataclass(frozen=True)
class CollectedSuite:
    """A suite with the records of its cases: the first stage.

    Attributes:
        key: The key of its results.
        suite: The suite; that of another system, or of a Python test, if the key names one.
        records: A record for each case.
        total: Number of cases in the suite, faulty ones included.
        judges: Label of an evaluator to what decides its verdicts.
        known: Case id to limits and checks that the case is approved not to meet.
        reruns: Number of its items that failed and ran again.
        stop: Its early end; ``None`` if it ran to its end.
    """

    key: SuiteKey
    suite: Suite
    records: Sequence[CaseRecord] = ()
    total: int = 0
    judges: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    known: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reruns: int = 0
    stop: EarlyStop | None = None


@dataclass(frozen=True)
class MeasuredSuite:
    """A collected suite with its metrics, and its comparison with the approved run.

    Attributes:
        collected: The suite and its records.
        result: Its metrics.
    """

    collected: CollectedSuite
    result: Result

    @property
    def key(self) -> SuiteKey:
        """The key of its results."""
        return self.collected.key

    @property
    def suite(self) -> Suite:
        """The suite."""
        return self.collected.suite

    @property
    def records(self) -> Sequence[CaseRecord]:
        """A record for each case."""
        return self.collected.records

    @property
    def ran(self) -> int:
        """Number of cases that ran."""
        return sum(case.outcome != "not_run" for case in self.result.cases)

    @cached_property
    def comparable(self) -> Comparable:
        """The properties that decide whether it can be compared with other runs."""
        return comparable_of(self.suite, self.collected.judges)

    @cached_property
    def statistics(self) -> "CaseStatistics":
        """Counts of its cases, as they are stored."""
        from pytest_llmeval.gates.statistics.case_statistics import CaseStatistics

        return CaseStatistics.from_records(self.records, digests=digests_of(self.suite))

    def shifts(self, scores: "SuiteScores") -> "dict[str, Shift]":
        """Return how far changes of judges since the approved scores move metrics, where that was approved."""
        from pytest_llmeval.baselines.bridges import shifts_between

        return shifts_between(scores.bridges, scores.comparable, self.comparable)

    @cached_property
    def approved_scores(self) -> "SuiteScores | None":
        """The approved scores; ``None`` if there are none.

        Raises:
            SuiteError: Their file cannot be read.
        """
        from pytest_llmeval.baselines.files import approved_scores, score_file

        path = score_file(self.key)
        return approved_scores(path, shown_beside(self.key, path))

    @cached_property
    def approved(self) -> ApprovedRun | None:
        """The approved run; ``None`` if no scores are approved.

        Raises:
            OSError: The statistics of its cases cannot be read.
            UnicodeDecodeError: As above.
            SuiteError: They, or the scores, are damaged.
        """
        from pytest_llmeval.gates.statistics.pairing import RunPairing

        scores = self.approved_scores
        if scores is None:
            return None
        statistics = approved_statistics(self.key, scores)
        return ApprovedRun(statistics, RunPairing(self.statistics, statistics, self.suite.metrics, self.shifts(scores)))

    @property
    def pairing(self) -> "RunPairing | None":
        """The run paired with the approved one; ``None`` if the cases of that one are unknown."""
        try:
            return None if self.approved is None else self.approved.pairing
        except (OSError, UnicodeDecodeError, SuiteError):
            return None


@dataclass(frozen=True)
class SnapshotJudgement:
    """The outcome of comparing a suite with its approved scores.

    Attributes:
        verdicts: One per metric, or on the file; empty if the suite has no snapshot.
        remembered: Whether the history of runs gets a line about the suite.
        moved_limits: Metric to its limits when the scores were approved, and now, where they differ.
        pending: The score file, before it is written; ``None`` if it stays as it is.
    """

    verdicts: "Sequence[SnapshotVerdict]" = ()
    remembered: bool = False
    moved_limits: Mapping[str, str] = field(default_factory=dict)
    pending: "PendingFile | None" = field(default=None, compare=False)


@dataclass(frozen=True)
class JudgedSuite:
    """A collected suite with the verdicts on it: the second stage.

    Attributes:
        measured: The suite, its records and its metrics.
        incomplete: Why the metrics are not those of the whole suite, or nothing.
        off: The metrics, as declared, that a run without judges cannot compute completely.
        snapshot: The comparison with its approved scores.
        gates: The verdicts on its gates.
        watch: Its part in gates that weigh many runs; ``None`` if there is none.
        tables: Tables that its evaluators declare, filled in.
        buckets: Cases that went wrong, by kind of error.
    """

    measured: MeasuredSuite
    incomplete: str = ""
    off: frozenset[str] = frozenset()
    snapshot: SnapshotJudgement = SnapshotJudgement()
    gates: "Sequence[GateResult]" = ()
    watch: RunWatch | None = None
    tables: "Sequence[FilledTable]" = ()
    buckets: "Sequence[tuple[BucketReport, bool]]" = ()

    @property
    def collected(self) -> CollectedSuite:
        """The suite and its records."""
        return self.measured.collected

    @property
    def key(self) -> SuiteKey:
        """The key of its results."""
        return self.collected.key

    @property
    def suite(self) -> Suite:
        """The suite."""
        return self.collected.suite

    @property
    def records(self) -> Sequence[CaseRecord]:
        """A record for each case."""
        return self.collected.records

    @property
    def result(self) -> Result:
        """Its metrics."""
        return self.measured.result


def approved_statistics(key: SuiteKey, scores: "SuiteScores") -> "CaseStatistics":
    """Return the counts of the cases of an approved run.

    Raises:
        OSError: Their file cannot be read.
        UnicodeDecodeError: As above.
        SuiteError: They are not what was approved.
    """
    from pytest_llmeval.baselines.files import read_statistics, score_file, statistics_file
    from pytest_llmeval.gates.statistics.case_statistics import CaseStatistics

    path = statistics_file(score_file(key))
    return CaseStatistics.from_lines(StringIO(read_statistics(path, scores)), shown_beside(key, path))


def shown_beside(key: SuiteKey, path: Path) -> str:
    """Return how messages name a file that belongs to a suite."""
    return (Path(key.display_path).parent / path.parent.name / path.name).as_posix()

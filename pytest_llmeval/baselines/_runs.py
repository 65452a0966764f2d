"""Runs of suites, each beside its approved run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from pytest_llmeval.baselines._comparable import Comparable, comparable_of, digests_of, shown_beside
from pytest_llmeval.core import CaseRecord, Result, SnapshotVerdict, SuiteError
from pytest_llmeval.suites import Suite, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.baselines._files import PendingFile
    from pytest_llmeval.baselines._scores import SuiteScores
    from pytest_llmeval.numbers import CaseDigest, CaseStatistics, RunPairing, Shift, WatchedRun


class RunWatch(Struct, frozen=True):
    """The part of a run in gates that weigh all runs since an approval.

    Attributes:
        baseline: Fingerprint of the approved statistics.
        statistics: Fingerprint of those of the run.
        looks: Gate to the evidence of the run.
    """

    baseline: str
    statistics: str
    looks: "Mapping[str, WatchedRun]" = {}


class ApprovedRun(NamedTuple):
    """The approved run of a suite, compared with the current one.

    Attributes:
        statistics: Counts of its cases.
        pairing: Both runs.
    """

    statistics: "CaseStatistics"
    pairing: "RunPairing"


class SuiteRun(Struct, frozen=True, dict=True):
    """A run of a suite, beside its approved run.

    Attributes:
        key: The key of its results.
        suite: The suite; that of another system, or of a Python test, if the key names one.
        records: A record for each case.
        result: Its metrics.
        judges: Label of an evaluator to what decides its verdicts.
        baseline: The records of the run that it is compared with, in place of the approved one.
    """

    key: SuiteKey
    suite: Suite
    records: Sequence[CaseRecord]
    result: Result
    judges: Mapping[str, Mapping[str, str]] = {}
    baseline: Sequence[CaseRecord] | None = None

    @cached_property
    def comparable(self) -> Comparable:
        """The properties that decide whether it can be compared with other runs."""
        return comparable_of(self.suite, self.judges)

    @cached_property
    def digests(self) -> "Mapping[str, CaseDigest]":
        """The fingerprints of its cases, by id, which statistics, reports and known failures have in common."""
        return digests_of(self.suite)

    @property
    def contents(self) -> Mapping[str, str]:
        """The fingerprint of the content of each case, by id."""
        return {case: each.data for case, each in self.digests.items()}

    @cached_property
    def statistics(self) -> "CaseStatistics":
        """Counts of its cases, as stored."""
        from pytest_llmeval.numbers import CaseStatistics

        return CaseStatistics.from_records(self.records, digests=self.digests)

    def shifts(self, scores: "SuiteScores") -> "dict[str, Shift]":
        """Return how far changes of judges since the approved scores move metrics, where that was approved."""
        from pytest_llmeval.baselines._scores import shifts_between

        return shifts_between(scores.bridges, scores.comparable, self.comparable)

    @cached_property
    def approved_scores(self) -> "SuiteScores | None":
        """The approved scores; ``None`` if there are none.

        Raises:
            SuiteError: Their file cannot be read.
        """
        from pytest_llmeval.baselines._files import approved_scores, score_file

        path = score_file(self.key)
        return approved_scores(path, shown_beside(self.key, path))

    @cached_property
    def approved(self) -> ApprovedRun | None:
        """The approved run, or the baseline in its place; ``None`` if no scores are approved.

        Raises:
            OSError: The statistics of its cases cannot be read.
            UnicodeDecodeError: As above.
            SuiteError: They, or the scores, are damaged.
        """
        if self.baseline is not None:
            from pytest_llmeval.numbers import CaseStatistics

            baseline = CaseStatistics.exact(self.baseline)
            return ApprovedRun(baseline, self.pair(baseline))
        scores = self.approved_scores
        if scores is None:
            return None
        statistics = approved_statistics(self.key, scores)
        return ApprovedRun(statistics, self.pair(statistics, self.shifts(scores)))

    @cached_property
    def carried(self) -> frozenset[str]:
        """The cases that have the record of the approved run."""
        return frozenset(each.id for each in self.records if each.carried)

    @cached_property
    def silent(self) -> frozenset[str]:
        """The carried cases that say nothing of a change: had they run, their answers could be others."""
        replayed = {each.id for each in self.records if each.selection is not None and each.selection.replayed}
        return self.carried - replayed

    @property
    def is_unchanged(self) -> bool:
        """Whether no case ran, nor would replay its answer, since nothing that the suite depends on has changed."""
        return bool(self.silent) and all(each.carried or each.outcome == "not_run" for each in self.records)

    def pair(self, baseline: "CaseStatistics", shifts: "Mapping[str, Shift] | None" = None) -> "RunPairing":
        """Return the run with another, by the metrics of the suite, without the cases that say nothing of a change."""
        from pytest_llmeval.numbers import RunPairing

        run = self.statistics
        if self.silent:
            run, baseline = (
                each.only({record.id for record in each.records} - self.silent) for each in (run, baseline)
            )
        return RunPairing(run, baseline, self.suite.metrics, shifts, self.suite.abstained)

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

    verdicts: Sequence[SnapshotVerdict] = ()
    remembered: bool = False
    moved_limits: Mapping[str, str] = field(default_factory=dict)
    pending: "PendingFile | None" = field(default=None, compare=False)


def approved_statistics(key: SuiteKey, scores: "SuiteScores") -> "CaseStatistics":
    """Return the counts of the cases of an approved run.

    Raises:
        OSError: Their file cannot be read.
        UnicodeDecodeError: As above.
        SuiteError: They are not what was approved.
    """
    from pytest_llmeval.baselines._files import read_statistics, score_file, statistics_file
    from pytest_llmeval.numbers import CaseStatistics

    path = statistics_file(score_file(key))
    return CaseStatistics.from_lines(StringIO(read_statistics(path, scores)), shown_beside(key, path))

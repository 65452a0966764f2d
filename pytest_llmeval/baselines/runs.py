"""A suite in a run: its records, the verdicts on it, and the approved run beside it."""

__all__ = (
    "ApprovedRun",
    "RunWatch",
    "SuiteRun",
    "shown_beside",
)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_llmeval.baselines.comparable import Comparable, comparable_of, digests_of
from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.core.results import CaseRecord, Result
from pytest_llmeval.suite.suite import Suite, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.baselines.files import PendingFile
    from pytest_llmeval.baselines.scores import SuiteScores
    from pytest_llmeval.gates.limits import GateResult
    from pytest_llmeval.gates.statistics.anytime import Look
    from pytest_llmeval.gates.statistics.case_statistics import CaseStatistics
    from pytest_llmeval.gates.statistics.pairing import RunPairing, Shift
    from pytest_llmeval.reports.form import StopReport, SuiteReport


@dataclass(frozen=True)
class RunWatch:
    """A run's part in gates that weigh all runs since an approval.

    Attributes:
        baseline: Fingerprint of the approved statistics.
        statistics: Fingerprint of those of the run.
        looks: Gate to what the run says of it.
    """

    baseline: str
    statistics: str
    looks: "dict[str, Look]" = field(default_factory=dict)


class ApprovedRun(NamedTuple):
    """The approved run of a suite beside the current one.

    Attributes:
        statistics: What was counted in its cases.
        pairing: Both runs.
    """

    statistics: "CaseStatistics"
    pairing: "RunPairing"


@dataclass(eq=False)
class SuiteRun:
    """A suite with the records of its cases and, once it is judged, with the verdicts on it.

    Each stage of a run fills in its own part, and reads those of the stages before it.

    Attributes:
        key: What its results were gathered under.
        suite: The suite; that of another system, or of a Python test, if the key names one.
        records: One per case.
        total: How many cases the suite has, faulty ones included.
        judges: Label of an evaluator to what is known of its judge.
        reruns: How many of its items failed and ran again.
        known: Case id to limits and checks that the case is approved not to meet.
        result: Its metrics.
        incomplete: Why these are not those of the whole suite, or nothing.
        off: The metrics, as declared, that a run without judges cannot compute completely.
        report: What is reported of it, with the verdicts of gates and snapshot.
        remembered: Whether the history of runs gets a line about it.
        moved_limits: Metric to its limits when the scores were approved, and now, where they differ.
        watch: Its part in gates that weigh many runs; ``None`` if there is none.
        pending: Its score file, before it is written; ``None`` if it stays as it is.
        stop: What it left out because its gates were decided; ``None`` if it did not stop.
        ran_ahead: Records of cases that were not needed and had run by then; they count nowhere, but cost.
        stopped: The verdicts on its gates then.
    """

    # collected
    key: SuiteKey
    suite: Suite
    records: Sequence[CaseRecord] = ()
    total: int = 0
    judges: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    known: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reruns: int = 0
    # judged
    result: Result = field(init=False)
    incomplete: str = ""
    off: frozenset[str] = frozenset()
    report: "SuiteReport" = field(init=False)
    remembered: bool = False
    moved_limits: Mapping[str, str] = field(default_factory=dict)
    watch: RunWatch | None = None
    pending: "PendingFile | None" = None
    stop: "StopReport | None" = None
    ran_ahead: Sequence[CaseRecord] = ()
    stopped: "list[GateResult]" = field(default_factory=list)
    _approved: dict[str, ApprovedRun] = field(default_factory=dict, repr=False)

    @property
    def recordings(self) -> list[Mapping[str, Any]]:
        """Its predictions as later runs replay them, where they are recorded."""
        return [row for record in self.records for row in record.recordings]

    @cached_property
    def comparable(self) -> Comparable:
        """What makes it comparable with other runs."""
        return comparable_of(self.suite, self.judges)

    @cached_property
    def statistics(self) -> "CaseStatistics":
        """What is kept of its cases."""
        from pytest_llmeval.gates.statistics.case_statistics import CaseStatistics

        return CaseStatistics.of(self.records, digests=digests_of(self.suite))

    def shifts(self, scores: "SuiteScores") -> "dict[str, Shift]":
        """Return how far changes of judges since the approved scores move metrics, where that was approved."""
        from pytest_llmeval.baselines.bridges import shifts_between

        return shifts_between(scores.bridges, scores.comparable, self.comparable)

    def approved(self, scores: "SuiteScores") -> ApprovedRun:
        """Return the approved run, read once.

        Raises:
            OSError: What was counted in its cases cannot be read.
            UnicodeDecodeError: As above.
            SuiteError: It is not what was approved.
        """
        from pytest_llmeval.baselines.files import read_statistics, score_file, statistics_file
        from pytest_llmeval.gates.statistics.case_statistics import CaseStatistics
        from pytest_llmeval.gates.statistics.pairing import RunPairing

        digest = scores.cases.statistics
        if digest not in self._approved:
            path = statistics_file(score_file(self.key))
            lines = StringIO(read_statistics(path, scores))
            statistics = CaseStatistics.from_lines(lines, shown_beside(self.key, path))
            pairing = RunPairing(self.statistics, statistics, self.suite.metrics, self.shifts(scores))
            self._approved[digest] = ApprovedRun(statistics, pairing)
        return self._approved[digest]

    def compared(self, scores: "SuiteScores") -> "RunPairing | None":
        """Return the run beside the approved one; ``None`` where nothing is known of that one's cases."""
        try:
            return self.approved(scores).pairing
        except (OSError, UnicodeDecodeError, SuiteError):
            return None


def shown_beside(key: SuiteKey, path: Path) -> str:
    """Return how messages name a file that belongs to a suite."""
    return (Path(key.shown).parent / path.parent.name / path.name).as_posix()

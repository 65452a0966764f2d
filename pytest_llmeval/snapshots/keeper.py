"""The snapshots of a run: comparison, approval, and notes for the history."""

__all__ = ("Keeper",)

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from pytest_llmeval.scoring.gates import EVERYTHING, SnapshotVerdict
from pytest_llmeval.snapshots.mode import SnapshotMode
from pytest_llmeval.snapshots.runs import RunWatch, SuiteRun
from pytest_llmeval.snapshots.stamp import Stamp
from pytest_llmeval.suite.snapshot import SnapshotSettings
from pytest_llmeval.suite.suite import Suite, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.snapshots.files import PendingFile


@dataclass
class Keeper:
    """The snapshots of one run.

    Attributes:
        mode: What the command line asks for.
        always: Whether suites without the key ``snapshot`` have one: the ini option ``llmeval_snapshots``.
        files: What was judged, in order.
        judged: Suites that were, for the history of runs.
        root: The folder of that history; ``None`` if there is none.
    """

    mode: SnapshotMode
    always: bool = False
    files: "list[tuple[SuiteKey, PendingFile]]" = field(default_factory=list)
    judged: list[SuiteRun] = field(default_factory=list)
    root: Path | None = None

    def settings(self, suite: Suite) -> SnapshotSettings | None:
        """Return the snapshot settings of a suite; ``None`` if it has no snapshot."""
        settings = suite.snapshot or SnapshotSettings(enabled=self.always)
        return structs.replace(settings, excluded=suite.against_approved) if settings.enabled else None

    def judge(self, suite_run: SuiteRun, incomplete: str, stamp: Stamp) -> list[SnapshotVerdict]:
        """Judge the scores of a suite against the approved ones.

        Args:
            suite_run: What was measured.
            incomplete: Why that is not the whole suite; then nothing is compared.
            stamp: Of the approval, if the scores are approved.

        Returns:
            The verdicts; empty if the suite has no snapshot.
        """
        settings = self.settings(suite_run.suite)
        if settings is None:
            return []
        if incomplete:
            from pytest_llmeval.snapshots.verdicts import not_judged

            return [not_judged(incomplete)]
        from pytest_llmeval.snapshots.judged_scores import judge_snapshot

        self.judged.append(suite_run)
        verdicts, file = judge_snapshot(suite_run, settings, self.mode, stamp)
        if file is not None:
            self.files.append((suite_run.key, file))
        return verdicts

    def note(self, suite_run: SuiteRun, watch: RunWatch) -> None:
        """Have a run's part in gates that weigh many runs written into the history."""
        self.judged = [replace(each, watch=watch) if each.key == suite_run.key else each for each in self.judged]

    def settle(self, *, whole: bool) -> list[tuple[SuiteKey, SnapshotVerdict]]:
        """Let the files be counted, and written where they are approved.

        Args:
            whole: Whether the run left nothing out, so that files without a suite can be recognised.

        Returns:
            Verdicts on files that could not be written.
        """
        self.mode.account([file for _, file in self.files], orphans=whole)
        return [
            (key, SnapshotVerdict(EVERYTHING, "not_written", "failed", reason=file.fault))
            for key, file in self.files
            if file.fault
        ]

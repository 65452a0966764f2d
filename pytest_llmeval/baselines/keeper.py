"""How a run treats snapshots: comparison and approval."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from pytest_llmeval.baselines.mode import SnapshotMode
from pytest_llmeval.baselines.runs import JudgedSuite, MeasuredSuite, SnapshotJudgement
from pytest_llmeval.baselines.stamp import Stamp
from pytest_llmeval.gates.contract import EVERYTHING, SnapshotVerdict
from pytest_llmeval.suite.run_settings import SnapshotSettings
from pytest_llmeval.suite.suite import Suite, SuiteKey


class Keeper(Struct, frozen=True):
    """How a run treats snapshots.

    Attributes:
        mode: What the command line asks for.
        always: Whether suites without the key ``snapshot`` have one: the ini option ``llmeval_snapshots``.
        root: The folder of the history of runs; ``None`` if there is none.
    """

    mode: SnapshotMode
    always: bool = False
    root: Path | None = None

    def settings(self, suite: Suite) -> SnapshotSettings | None:
        """Return the snapshot settings of a suite; ``None`` if it has no snapshot."""
        settings = suite.snapshot or SnapshotSettings(enabled=self.always)
        return replace(settings, excluded=suite.against_approved) if settings.enabled else None

    def judge(self, measured: MeasuredSuite, unjudged: str, stamp: Stamp) -> SnapshotJudgement:
        """Judge the scores of a suite against the approved ones.

        Args:
            measured: The suite with its metrics.
            unjudged: Why nothing is compared: that is not the whole suite, or judges are off.
            stamp: Of the approval, if the scores are approved.
        """
        settings = self.settings(measured.suite)
        if settings is None:
            return SnapshotJudgement()
        if unjudged:
            from pytest_llmeval.baselines.verdicts import not_judged

            return SnapshotJudgement([not_judged(unjudged)])
        from pytest_llmeval.baselines.judged_scores import judge_snapshot

        return judge_snapshot(measured, settings, self.mode, stamp)

    def settle(self, suites: Iterable[JudgedSuite], *, whole: bool) -> list[tuple[SuiteKey, SnapshotVerdict]]:
        """Let the files of suites be counted, and written where they are approved.

        Args:
            suites: The suites.
            whole: Whether the run left nothing out, so that files without a suite can be recognised.

        Returns:
            Verdicts on files that could not be written.
        """
        files = [(each.key, file) for each in suites if (file := each.snapshot.pending) is not None]
        self.mode.account([file for _, file in files], orphans=whole)
        return [
            (key, SnapshotVerdict(EVERYTHING, "not_written", "failed", reason=file.fault))
            for key, file in files
            if file.fault
        ]

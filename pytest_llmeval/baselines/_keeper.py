"""The treatment of snapshots by a run: what the command line asks for, and which suites have one."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, structs

from pytest_llmeval.core import EVERYTHING, SnapshotVerdict, SuiteError
from pytest_llmeval.suites import SnapshotSettings, Suite, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.baselines._files import PendingFile
    from pytest_llmeval.baselines._runs import SnapshotJudgement

SELECTING = ("keyword", "markexpr", "deselect", "lf", "stepwise")
"""Options of pytest with which a run may leave out what another one has."""


class SnapshotMode(Struct, frozen=True):
    """What is asked for.

    Attributes:
        update: Whether scores that differ from the approved ones are approved.
        anchor: Whether an approved run becomes the anchor.
        new_only: Whether scores without approved ones are approved.
        warn_unused: Whether scores that vanished are only reported.
        keep_unused: Whether scores that vanished stay approved.
        selects: Whether options choose among the items.
        refused: Whether nothing may be written, because the run has not ended as it should.
        syrupy: The session of syrupy, which counts and writes; ``None`` without syrupy.
    """

    update: bool = False
    anchor: bool = False
    new_only: bool = False
    warn_unused: bool = False
    keep_unused: bool = False
    selects: bool = False
    refused: bool = False
    syrupy: Any = None

    @classmethod
    def from_config(cls, config: Any) -> "SnapshotMode":
        """Return the mode of pytest's configuration; syrupy's session exists once pytest's has started."""

        def is_set(*names: str) -> bool:
            return any(getattr(config.option, name, False) for name in names)

        return cls(
            update=is_set("update_snapshots"),
            anchor=is_set("llmeval_snapshot_anchor"),
            new_only=is_set("update_new_snapshots_only"),
            warn_unused=is_set("warn_unused_snapshots", "disable_unused_snapshots"),
            keep_unused=is_set("no_cleanup", "disable_unused_snapshots"),
            selects=is_set(*SELECTING),
            syrupy=getattr(config, "_syrupy", None),  # where syrupy keeps it; it has no public name
        )

    def read_only(self) -> "SnapshotMode":
        """Return a mode that compares and writes nothing."""
        return structs.replace(self, update=False, new_only=False, refused=True)

    def command(self, argument: str, *, suites: bool = True) -> str:
        """Return the command that approves what is named."""
        quoted = f'"{argument}"' if " " in argument or "[" in argument else argument
        return f"pytest {'--llmeval ' if suites else ''}--snapshot-update {quoted}"

    def account(self, files: "Sequence[PendingFile]", *, orphans: bool) -> None:
        """Have files counted by syrupy, and written; without syrupy, write them."""
        if not files:
            return
        if self.syrupy is not None:
            from pytest_llmeval.baselines._syrupy_bridge import account

            if self.refused:
                # syrupy would report that it deletes unused snapshots, and rely on it.
                orphans = False
                for file in files:
                    file.before = {name: text for name, text in file.before.items() if name in file.after}
            account(
                self.syrupy,
                files,
                update=self.update,
                new_only=self.new_only,
                orphans=orphans and not self.selects,
            )
            return
        for file in files:
            with suppress(OSError, SuiteError):  # reported when the file is compared
                file.write()


class ApprovableRun(Protocol):
    """The run of a suite whose scores may be approved."""

    @property
    def key(self) -> SuiteKey:
        """The key of its results."""

    @property
    def suite(self) -> Suite:
        """The suite."""

    @property
    def snapshot(self) -> "SnapshotJudgement":
        """The comparison with its approved scores."""


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

    def settle(self, suites: Iterable[ApprovableRun], *, whole: bool) -> list[tuple[SuiteKey, SnapshotVerdict]]:
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

    def nothing_approved(self, suites: Sequence[ApprovableRun]) -> Iterator[tuple[str, str]]:
        """Yield a note if scores are to be approved, and no suite has any."""
        no_failures = all(not each.suite.approve.failures for each in suites)
        if self.mode.update and suites and no_failures and all(self.settings(each.suite) is None for each in suites):
            yield "", "no scores were approved: no suite has 'snapshot: true'"

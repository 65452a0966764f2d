"""The snapshot options of the command line: syrupy's, or ours if syrupy is missing or disabled."""

__all__ = ("SELECTING", "SnapshotMode")

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from pytest_llmeval.core.errors import SuiteError

if TYPE_CHECKING:
    from pytest_llmeval.baselines.files import PendingFile

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
    def of(cls, config: Any) -> "SnapshotMode":
        """Return the mode of pytest's configuration; syrupy's session exists once pytest's has started."""

        def asked(*names: str) -> bool:
            return any(getattr(config.option, name, False) for name in names)

        return cls(
            update=asked("update_snapshots"),
            anchor=asked("llmeval_snapshot_anchor"),
            new_only=asked("update_new_snapshots_only"),
            warn_unused=asked("warn_unused_snapshots", "disable_unused_snapshots"),
            keep_unused=asked("no_cleanup", "disable_unused_snapshots"),
            selects=asked(*SELECTING),
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
            from pytest_llmeval.baselines.syrupy_bridge import account

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

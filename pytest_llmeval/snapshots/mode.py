"""What the command line asks of snapshots: syrupy's own options, or ours where syrupy is absent or switched off."""

__all__ = ("Mode", "add_option")

from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_llmeval.snapshots.files import PendingFile

_SELECTING = ("keyword", "markexpr", "deselect", "lf", "stepwise")
"""Options of pytest with which a run may leave out what another one has."""


def add_option(group: Any, manager: Any) -> None:
    """Add ``--snapshot-update`` to a run in which syrupy will not."""
    if manager.is_blocked("syrupy") or find_spec("syrupy") is None:
        group.addoption(
            "--snapshot-update",
            action="store_true",
            default=False,
            dest="update_snapshots",
            help="approve the scores of this run",
        )


class Mode:
    """What is asked for; `config` is pytest's."""

    def __init__(self, config: Any) -> None:
        self._config = config
        self._refused = False
        self.update = self._asked("update_snapshots")
        self.new_only = self._asked("update_new_snapshots_only")
        self.warn_unused = self._asked("warn_unused_snapshots") or self._asked("disable_unused_snapshots")
        self.keep_unused = self._asked("no_cleanup") or self._asked("disable_unused_snapshots")

    def _asked(self, name: str) -> bool:
        return bool(getattr(self._config.option, name, False))

    @property
    def selects(self) -> bool:
        """Whether options choose among the items."""
        return any(self._asked(name) for name in _SELECTING)

    def refuse_to_write(self) -> None:
        """Compare only: the run has not ended as it should."""
        self.update = self.new_only = False
        self._refused = True

    def command(self, argument: str, *, suites: bool = True) -> str:
        """Return the command that approves what is named."""
        quoted = f'"{argument}"' if " " in argument or "[" in argument else argument
        return f"pytest {'--llmeval ' if suites else ''}--snapshot-update {quoted}"

    def account(self, files: "Sequence[PendingFile]", *, orphans: bool) -> None:
        """Have files counted by syrupy, and written; without syrupy, write them."""
        if hasattr(self._config, "_syrupy"):
            from pytest_llmeval.snapshots.syrupy_bridge import account

            if self._refused:
                # syrupy would say, and believe, that it deletes what is not used.
                orphans = False
                for file in files:
                    file.before = {name: text for name, text in file.before.items() if name in file.after}
            account(
                self._config,
                files,
                update=self.update,
                new_only=self.new_only,
                orphans=orphans and not self.selects,
            )
            return
        for file in files:
            with suppress(OSError):  # the file says so itself
                file.write()

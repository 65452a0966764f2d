"""Stores of replies: the verdicts obtained so far, in the place that one setting names."""

__all__ = ("DEFAULT_PLACE", "STORES", "CachePlace", "ReplyStore")

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pytest_llmeval.core.wording import unknown_name
from pytest_llmeval.data.files.folders import WORKING_FOLDER

if TYPE_CHECKING:
    from pytest_llmeval.judge.stored_judgement import StoredJudgement


class ReplyStore(Protocol):
    """A store of judgements by key, used by any number of processes and threads at the same time.

    A damaged judgement is never returned; `verify` lists it. Methods raise `LlmevalError` if the store cannot be used.
    """

    def get(self, key: str) -> "StoredJudgement | None":
        """Return the judgement stored under a key."""

    def put(self, entries: "Sequence[StoredJudgement]") -> None:
        """Store judgements; each replaces an older one of its key."""

    def entries(self) -> "Iterator[StoredJudgement]":
        """Yield all judgements that can be read."""

    def verify(self) -> list[str]:
        """Return the faults of the store, each with the name of what is damaged."""

    def prune(self, older_than_s: float | None = None, model: str | None = None) -> int:
        """Delete judgements that fulfil all conditions; return how many.

        Args:
            older_than_s: Stored longer ago than this.
            model: Of this ``PROVIDER:NAME``.
        """

    def close(self) -> None:
        """Release files and connections; the next use opens them again."""


class _Store(NamedTuple):
    """A kind of store.

    Attributes:
        module: Has the class.
        name: Of the class, which is called with the path.
        coordination: The database of the processes of a run, by the path of the store.
    """

    module: str
    name: str
    coordination: str


STORES: Final[Mapping[str, _Store]] = {
    "sqlite": _Store("pytest_llmeval.judge.replies.sqlite", "SqliteReplies", ""),
    "directory": _Store(
        "pytest_llmeval.judge.replies.directory", "DirectoryReplies", f"{WORKING_FOLDER}/cache.sqlite3"
    ),
}
"""The stores by the name that precedes a path in ``llmeval_cache``."""

_PREFIX = re.compile("([a-z]{2,}):(.+)", re.DOTALL)


class CachePlace(NamedTuple):
    """The place of a store, as the setting ``llmeval_cache`` names it.

    Attributes:
        path: A file or directory.
        store: A name in `STORES`.
    """

    path: Path
    store: str = "sqlite"

    @classmethod
    def parse(cls, text: str) -> "CachePlace":
        """Read ``PATH`` or ``STORE:PATH``.

        Raises:
            ValueError: There is no such store.
        """
        if (parts := _PREFIX.fullmatch(text)) is None:
            return cls(Path(text))
        if parts[1] not in STORES:
            raise ValueError(unknown_name("store", parts[1], STORES))
        return cls(Path(parts[2]), parts[1])

    def within(self, folder: Path) -> "CachePlace":
        """Return the place for a relative path in a folder."""
        return self._replace(path=folder / self.path)

    def exists(self) -> bool:
        """Return whether anything has been stored."""
        return self.path.exists()

    def size(self) -> int:
        """Return the bytes of the stored verdicts."""
        files = self.path.glob("*.json") if self.path.is_dir() else [self.path]
        return sum(each.stat().st_size for each in files)

    def __str__(self) -> str:
        return str(self.path) if self.store == "sqlite" else f"{self.store}:{self.path}"

    @property
    def coordination(self) -> Path:
        """The database of the processes of a run, which is never committed."""
        return self.path / STORES[self.store].coordination

    def open(self) -> ReplyStore:
        """Open the store, and create it first if it is absent.

        Raises:
            LlmevalError: It cannot be created or opened.
        """
        kind = STORES[self.store]
        opened: ReplyStore = getattr(import_module(kind.module), kind.name)(self.path)
        return opened


DEFAULT_PLACE: Final = CachePlace(Path(WORKING_FOLDER, "cache.sqlite3"))
"""The place of a configuration without one."""

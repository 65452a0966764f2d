"""The working cache of a run, opened on first use."""

__all__ = ("RunNotes", "WorkingCache")

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_llmeval.core.errors import LlmevalError

if TYPE_CHECKING:
    from pytest_llmeval.judge.store.cache import Cache


@dataclass
class WorkingCache:
    """The cache of a process.

    Attributes:
        path: The file.
        opened: The cache, once it has been needed.
    """

    path: Path
    opened: "Cache | None" = None

    def open(self) -> "Cache":
        """Return the cache.

        Raises:
            LlmevalError: It cannot be used.
        """
        if self.opened is None:
            from pytest_llmeval.judge.store.cache import Cache

            try:
                self.opened = Cache(self.path)
            except LlmevalError as error:
                raise LlmevalError(f"{error} (--llmeval-cache=PATH)") from error
        return self.opened

    def close(self) -> None:
        """Close the cache if it is open."""
        if self.opened is not None:
            self.opened.close()


@dataclass(frozen=True)
class RunNotes:
    """Implements `pytest_llmeval.services.retrying.Notes` by the cache, for the length of a run.

    Attributes:
        cache: The cache.
        run: Id of the run.
    """

    cache: WorkingCache
    run: str

    def get(self, key: str) -> str | None:
        """Return a text that a process of the run has put."""
        return self.cache.open().get_answer(self.run, key)

    def put(self, key: str, text: str) -> None:
        """Keep a text until the run ends."""
        self.cache.open().put_answer(self.run, key, text)

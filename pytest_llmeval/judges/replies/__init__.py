"""Stores of replies, the verdicts obtained so far; `pytest_llmeval.judges._options.STORES` lists them."""

__all__ = ("ReplyStore",)

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pytest_llmeval.judges._stored_judgement import StoredJudgement


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

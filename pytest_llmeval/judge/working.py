"""The working cache of a process: stored replies, and what the processes of a run share."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.judge.replies import CachePlace, ReplyStore

if TYPE_CHECKING:
    from pytest_llmeval.judge.coordination import Coordination


@dataclass
class WorkingCache:
    """The stored replies and the coordination of a process; each is opened on first use.

    Attributes:
        place: The place of both.
    """

    place: CachePlace
    _replies: ReplyStore | None = None
    _coordination: "Coordination | None" = None

    @property
    def replies(self) -> ReplyStore:
        """The stored replies.

        Raises:
            LlmevalError: They cannot be used.
        """
        if self._replies is None:
            try:
                self._replies = self.place.open()
            except LlmevalError as error:
                raise _with_option(error) from error
        return self._replies

    @property
    def coordination(self) -> "Coordination":
        """What the processes of a run share.

        Raises:
            LlmevalError: It cannot be used.
        """
        if self._coordination is None:
            from pytest_llmeval.judge.coordination import Coordination

            try:
                self._coordination = Coordination(self.place.coordination)
            except LlmevalError as error:
                raise _with_option(error) from error
        return self._coordination

    @property
    def is_coordinated(self) -> bool:
        """Whether this process has shared anything with others of a run."""
        return self._coordination is not None

    def close(self) -> None:
        """Close what is open."""
        for each in (self._replies, self._coordination):
            if each is not None:
                each.close()


def _with_option(error: LlmevalError) -> LlmevalError:
    return LlmevalError(f"{error} (--llmeval-cache=PATH)")


@dataclass(frozen=True)
class RunNotes:
    """Implements `pytest_llmeval.services.retrying.Notes` by the coordination of a run.

    Attributes:
        cache: The working cache.
        run: Id of the run.
    """

    cache: WorkingCache
    run: str

    def get(self, key: str) -> str | None:
        """Return a text that a process of the run has put."""
        return self.cache.coordination.get_answer(self.run, key)

    def put(self, key: str, text: str) -> None:
        """Store a text until the run ends."""
        self.cache.coordination.put_answer(self.run, key, text)

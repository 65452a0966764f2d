"""Questions that got no verdict: each is asked once per run, unless its case is rerun."""

__all__ = ("Failures",)

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_llmeval.core.errors import JudgeError
from pytest_llmeval.core.results import JudgeCall

if TYPE_CHECKING:
    from pytest_llmeval.judge.store.working import WorkingCache


@dataclass
class Failures:
    """What went wrong in this run, by the key of the judgement and the way to the judge. Forgotten with the run.

    Attributes:
        run: Id of the run.
        cache: The cache that the run's processes share; ``None`` where there is one process.
    """

    run: str
    cache: "WorkingCache | None" = None
    _known: dict[str, tuple[JudgeError, JudgeCall | None]] = field(default_factory=dict)

    def get(self, key: str) -> tuple[JudgeError, JudgeCall | None] | None:
        """Return why there is no verdict, and what the call cost if a reply came."""
        if self.cache is None:
            return self._known.get(key)
        text = self.cache.open().get_answer(self.run, _shared(key))
        if text is None:
            return None
        message, reply, call = json.loads(text)
        return JudgeError(message, reply), JudgeCall(*call) if call is not None else None

    def put(self, key: str, error: JudgeError, call: JudgeCall | None) -> None:
        """Keep why there is no verdict."""
        if self.cache is None:
            self._known[key] = error, call
        else:
            self.cache.open().put_answer(self.run, _shared(key), json.dumps((str(error), error.reply, call)))


def _shared(key: str) -> str:
    return f"no verdict {key}"

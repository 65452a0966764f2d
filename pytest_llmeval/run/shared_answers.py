"""Predictions shared by the processes of a run: one calls the target, the others read its answer."""

__all__ = ("OrphanedError", "Sharing")

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import LlmevalError, PredictionError
from pytest_llmeval.run.job import Job
from pytest_llmeval.targets.python import input_digest

if TYPE_CHECKING:
    from pytest_llmeval.judge.service import JudgeService


class OrphanedError(LlmevalError):
    """A process died while it asked for this answer, maybe because of it."""


@dataclass(frozen=True)
class Sharing:
    """Answers in the working cache, for the length of a run.

    Attributes:
        judges: Has that cache; ``None`` where a process is alone.
    """

    judges: "JudgeService | None"
    _given: set[str] = field(default_factory=set)

    async def once(self, job: Job, first: Case, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Return what `ask` gives, JSON data, or what it gave in another process of the run.

        A missing prediction, for example because of a time limit, is shared too. Other exceptions of the target stay
        in its process, where its type and traceback are known: the process whose turn it is asks again.

        Args:
            job: What it is asked for.
            first: The case, or the first one of a batch, which identifies the request.
            ask: Asks.

        Raises:
            PredictionError: There is none.
            OrphanedError: The process that asked has died. What killed it may kill this one, so it is asked for again
                only when its case's turn comes: a crash then costs that case, and no other.
        """
        judges = self.judges
        if not job.shared or judges is None:
            return await ask()
        parts = (judges.run, job.key.shown, job.key.variant, first.id, str(job.repeat), input_digest(first.input))
        key = " ".join(("answer", *parts))
        if key in self._given:
            return await ask()  # the case runs again, to get another answer
        told = await self._once(judges, key, ask)
        self._given.add(key)
        if "error" in told:
            raise PredictionError(told["error"])
        return told["given"]

    async def _once(self, judges: "JudgeService", key: str, ask: Callable[[], Awaitable[Any]]) -> dict[str, Any]:
        judges.heart.beat()
        cache = judges.cache
        while not cache.lease(key, judges.owner, judges.lease_s, inherit=False):
            if (known := cache.get_answer(judges.run, key)) is not None:
                return _told(known)
            if cache.is_orphaned(key):
                raise OrphanedError("the process that asked for this prediction has died")
            await judges.leases.ended(key)
        try:
            if (known := cache.get_answer(judges.run, key)) is not None:  # kept since we looked
                return _told(known)
            try:
                told = {"given": await ask()}
            except PredictionError as error:
                told = {"error": str(error)}
            cache.put_answer(judges.run, key, json.dumps(told))
            return told
        finally:
            cache.release(key, judges.owner)


def _told(text: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(text)
    return told

"""A user's own judge, whatever its shape, as a client."""

__all__ = ("as_client",)

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.background import in_thread
from pytest_llmeval.errors import JudgeError, LlmevalError, said
from pytest_llmeval.judge.clients.base import AsyncJudge
from pytest_llmeval.judge.clients.masking import presentable
from pytest_llmeval.judge.contract import JudgeReply, JudgeRequest


def as_client(judge: Any, *, timeout: float | None = None) -> AsyncJudge:
    """Return a client that asks a user's object.

    Args:
        judge: Has a method ``complete``, or can be called; either gets the request and returns, or awaits, text or a
            `JudgeReply`. What is not async runs in a thread of its own.
        timeout: Seconds that one call may take; ``None`` waits for ever.

    Raises:
        JudgeError: It is neither.
    """
    __tracebackhide__ = True
    if isinstance(judge, type):
        raise JudgeError(f"found the class {judge.__name__}, expected an instance of it as the judge")
    complete = getattr(judge, "complete", None)
    ask = complete if callable(complete) else judge
    if not callable(ask):
        raise JudgeError(
            f"found {type(judge).__name__} as the judge, expected an object with a method 'complete', or a callable"
        )
    return _CallableJudge(ask, getattr(judge, "aclose", None), timeout)


@dataclass(frozen=True)
class _CallableJudge:
    ask: Callable[[JudgeRequest], Any]
    close: Callable[[], Any] | None
    timeout: float | None

    async def complete(self, request: JudgeRequest) -> JudgeReply:
        """Return what the user's object answers.

        Raises:
            JudgeError: It raised, took too long, or returned neither text nor a reply.
        """
        try:
            async with asyncio.timeout(self.timeout) as limit:
                answer = await self._answer(request)
        except LlmevalError:
            raise
        except TimeoutError as error:
            if not limit.expired():
                raise JudgeError(f"the judge raised {presentable(said(error))}") from error
            raise JudgeError(f"the judge took longer than {self.timeout:g} s") from None
        except (Exception, SystemExit) as error:
            raise JudgeError(f"the judge raised {presentable(said(error))}") from error
        if isinstance(answer, str):
            return JudgeReply(answer)
        if not isinstance(answer, JudgeReply):
            raise JudgeError(f"the judge returned {type(answer).__name__}, expected text or a JudgeReply")
        return answer

    async def aclose(self) -> None:
        """Close the user's object, if it can be closed."""
        if callable(self.close):
            closed = self.close()
            if inspect.isawaitable(closed):
                await closed

    async def _answer(self, request: JudgeRequest) -> Any:
        if inspect.iscoroutinefunction(self.ask) or inspect.iscoroutinefunction(getattr(self.ask, "__call__", None)):  # noqa: B004 (the method itself is looked at, not whether there is one)
            return await self.ask(request)
        answer = await in_thread(lambda: self.ask(request), "llmeval-judge")
        return await answer if inspect.isawaitable(answer) else answer

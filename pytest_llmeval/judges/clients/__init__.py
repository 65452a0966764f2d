"""Clients that call the models of judges: connected by a spec, or made of an object of the user."""

__all__ = ("AsyncJudge", "JudgeConnection", "as_client")

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

from pytest_llmeval.core import AnyError, JudgeError, LlmevalError, excerpt, resolve
from pytest_llmeval.judges._evaluators import JudgedEvaluator
from pytest_llmeval.judges._protocol import JudgeReply, JudgeRequest, Stopped, Usage, are_probabilities
from pytest_llmeval.judges._spec import JudgeSpec
from pytest_llmeval.judges.clients._base import AsyncJudge, OnRateLimit, Patience, is_count
from pytest_llmeval.services import Redactor, RunCalls, UsersLoop, in_thread


def as_client(judge: Any, *, timeout: float | None = None) -> AsyncJudge:
    """Return a judge client that asks a user's object.

    Args:
        judge: Has a method ``complete``, or can be called; either gets the request and returns, or awaits, text or a
            `JudgeReply`. Or it has a method ``chat``, which gets a list of ``{"role": ..., "content": ...}``, in which
            media are parts as OpenAI has them. Functions that are not async run in threads.
        timeout: Seconds that one call may take; ``None`` waits for ever.

    Raises:
        JudgeError: It is neither.
    """
    __tracebackhide__ = True
    if isinstance(judge, type):
        raise JudgeError(f"found the class {judge.__name__}, expected an instance of it as the judge")
    complete, chat = getattr(judge, "complete", None), getattr(judge, "chat", None)
    ask = complete if callable(complete) else _make_chat_call(chat) if callable(chat) else judge
    if not callable(ask):
        several = isinstance(judge, list | tuple | dict) or hasattr(judge, "judges")
        hint = "; a panel is 'judges' of a suite, or Panel in Python" if several else ""
        expected = "expected an object with a method 'complete', or a callable, or one with a method 'chat'"
        raise JudgeError(f"found {type(judge).__name__} as the judge, {expected}{hint}")
    return _CallableJudge(ask, getattr(judge, "aclose", None), timeout)


def _make_chat_call(chat: Callable[[list[dict[str, Any]]], Any]) -> Callable[[JudgeRequest], Any]:
    """Return a function that asks a user's ``chat`` method to complete a judge request."""
    if inspect.iscoroutinefunction(chat):

        async def chat_once(request: JudgeRequest) -> Any:
            return await chat(_messages(request))

        return chat_once
    return lambda request: chat(_messages(request))


def _messages(request: JudgeRequest) -> list[dict[str, Any]]:
    """Return the messages of a judge request for a user's ``chat`` method, with media as parts of OpenAI."""
    if not any(message.media for message in request.messages):
        return [{"role": message.role, "content": message.content} for message in request.messages]
    from pytest_llmeval.judges.clients._media_parts import openai_content

    return [{"role": message.role, "content": openai_content(message)} for message in request.messages]


@dataclass(frozen=True)
class _CallableJudge:
    """A judge client that calls a user's function, with a time limit."""

    ask: Callable[[JudgeRequest], Any]
    close: Callable[[], Any] | None
    timeout: float | None

    async def complete(self, request: JudgeRequest) -> JudgeReply:
        """The answer of the user's object.

        Raises:
            JudgeError: It raised, took too long, or returned neither text nor a sound reply.
        """
        try:
            async with asyncio.timeout(self.timeout) as limit:
                answer = await self._answer(request)
        except LlmevalError:
            raise
        except TimeoutError as error:
            if not limit.expired():
                raise JudgeError(f"the judge raised {Redactor().line(AnyError(error).text)}") from error
            raise JudgeError(f"the judge took longer than {self.timeout:g} s") from None
        except (Exception, SystemExit) as error:
            raise JudgeError(f"the judge raised {Redactor().line(AnyError(error).text)}") from error
        if isinstance(answer, str):
            return JudgeReply(answer)
        if not isinstance(answer, JudgeReply):
            raise JudgeError(f"the judge returned {type(answer).__name__}, expected text or a JudgeReply")
        for fault in _faults(answer):
            raise JudgeError(f"the judge returned a JudgeReply with {fault}")
        return answer

    async def aclose(self) -> None:
        """Close the user's object, if it can be closed."""
        if callable(self.close):
            closed = self.close()
            if inspect.isawaitable(closed):
                await closed

    async def _answer(self, request: JudgeRequest) -> Any:
        if inspect.iscoroutinefunction(self.ask) or inspect.iscoroutinefunction(getattr(self.ask, "__call__", None)):  # noqa: B004 (the method itself is looked at, not whether there is one)
            return await UsersLoop.current().result(self.ask(request))
        answer = await in_thread(lambda: self.ask(request), "llmeval-judge")
        return await UsersLoop.current().result(answer) if inspect.isawaitable(answer) else answer


def _faults(reply: JudgeReply) -> Iterator[str]:
    """Yield the faults of a `JudgeReply` from a user's judge, whose types are unchecked."""
    if not isinstance(reply.text, str):
        yield f"{type(reply.text).__name__} as text, expected text"
    if reply.stopped not in get_args(Stopped):
        yield f"stopped {reply.stopped!r}, expected one of {', '.join(get_args(Stopped))}"
    if reply.probabilities is not None and not are_probabilities(reply.probabilities):
        yield f"probabilities {excerpt(repr(reply.probabilities), 60)}, expected digits with numbers from 0 to 1"
    if not isinstance(reply.usage, Usage):
        yield f"{type(reply.usage).__name__} as usage, expected a Usage"
        return
    for name in ("input_tokens", "output_tokens"):
        value = getattr(reply.usage, name)
        if value is not None and not is_count(value):
            yield f"{name} {excerpt(repr(value), 60)}, expected a whole number from 0, or None"


@dataclass(frozen=True)
class JudgeConnection:
    """The connection to the model of a judge.

    Attributes:
        spec: Which model, and where.
    """

    spec: JudgeSpec

    @staticmethod
    def client_of(judge: Any) -> AsyncJudge:
        """The client of a model, or of a user's own judge.

        Args:
            judge: A spec, or what `as_client` takes.

        Raises:
            JudgeError: It cannot judge.
        """
        return JudgeConnection(judge).open() if isinstance(judge, JudgeSpec) else as_client(judge)

    def open_embeddings(self, patience: Patience) -> AsyncJudge:
        """The client of an embedding model; its reply is the vectors of the request's messages as JSON."""
        from pytest_llmeval.judges.clients._embeddings import OpenAIEmbeddings
        from pytest_llmeval.judges.clients._http import HttpJudge

        return HttpJudge(self.spec, OpenAIEmbeddings(), patience)

    @property
    def key_variable(self) -> str | None:
        """The environment variable that must hold the API key.

        ``None`` for a server of one's own without `api_key_env`, for a fixture, and where a library looks for the key.
        """
        from pytest_llmeval.judges.clients._http import DIALECTS

        spec, dialect = self.spec, DIALECTS.get(self.spec.provider or "")
        if spec.api_key_env is not None or dialect is None or (spec.base_url is not None and not dialect.needs_key):
            return spec.api_key_env
        return dialect.key_variable

    def open(
        self,
        *,
        own: JudgedEvaluator | None = None,
        on_rate_limit: OnRateLimit | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        calls: RunCalls | None = None,
    ) -> AsyncJudge:
        """Return the client of the judge; nothing is opened, looked up or sent before its first call.

        Args:
            own: The evaluator that asks this model in place of the judge, and makes the client itself.
            on_rate_limit: Called for each answer "too many requests" that another attempt may follow, with the seconds
                that the server asks to wait, or ``None``; in the event loop, so it must not block.
            sleep: Waits between attempts.
            calls: Of the run; ``None`` for those of this client alone.

        Raises:
            JudgeError: The spec names no model, or one that a fixture provides.
        """
        __tracebackhide__ = True
        spec = self.spec
        patience = Patience(spec.provider or "", spec.retries, on_rate_limit, sleep, calls or RunCalls())
        if own is not None:
            return own.own_client(spec, patience)
        if spec.provider is None:
            raise JudgeError("judge has no model: set one, such as 'judge: {model: openai:NAME}'")
        client: AsyncJudge = resolve(JudgeSpec.PROVIDERS[spec.provider])(spec, patience)
        return client


def refuse_fixture(spec: JudgeSpec, _patience: Patience) -> AsyncJudge:
    """Refuse a judge ``fixture:NAME`` where no fixture provides its model.

    Raises:
        JudgeError: Always.
    """
    raise JudgeError(
        f"found the judge {spec.model!r} without a fixture judge_client: define the fixture in conftest.py"
    )

"""The contract of clients."""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final, Protocol, TypeAlias

from msgspec.structs import replace

from pytest_llmeval.core import JudgeError
from pytest_llmeval.judges._protocol import JudgeReply, JudgeRequest, Usage
from pytest_llmeval.judges._spec import JudgeSpec
from pytest_llmeval.judges.questions._replies import TokenChoice
from pytest_llmeval.services import AttemptError, RunCalls

_MOST_TOKENS: Final = 1 << 53
"""The largest plausible count; databases and JSON of other programs cannot store more."""

OnRateLimit: TypeAlias = Callable[[float | None], None]
"""Called for every reply "too many requests", with the seconds to wait if the server asks for a delay."""


class AsyncJudge(Protocol):
    """A judge client that is awaited and must be closed."""

    async def complete(self, request: JudgeRequest) -> JudgeReply:
        """Return the model's reply.

        Raises:
            JudgeError: There is none, after all retries.
        """

    async def aclose(self) -> None:
        """Give connections back; the client may be used again afterwards."""


def added(usage: Usage, other: Usage) -> Usage:
    """Return the tokens of two attempts at a judge call; a number that neither reports stays unknown.

    Example:
        >>> from pytest_llmeval.judges._protocol import Usage
        >>> added(Usage(10, None), Usage(5, None))
        Usage(input_tokens=15, output_tokens=None)
    """

    def total(first: int | None, second: int | None) -> int | None:
        return None if first is None and second is None else (first or 0) + (second or 0)

    return Usage(
        total(usage.input_tokens, other.input_tokens),
        total(usage.output_tokens, other.output_tokens),
    )


def is_count(value: Any) -> bool:
    """Whether a value in a judge's reply can be a number of tokens.

    Example:
        >>> is_count(5), is_count(-5), is_count(5.0), is_count(True)
        (True, False, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS


class Dialect(ABC):
    """A model provider's HTTP interface for judge calls.

    Attributes:
        provider: Its name.
        base_url: Its own address.
        key_variable: The environment variable that usually holds its key.
        needs_key: Whether it needs a key at an address of the user's own as well.
    """

    provider: ClassVar[str]
    base_url: ClassVar[str]
    key_variable: ClassVar[str]
    needs_key: ClassVar[bool] = False

    @abstractmethod
    def url(self, base: str, spec: JudgeSpec) -> str:
        """Return the address to call.

        Args:
            base: Where the interface is served.
            spec: Which model.
        """

    @abstractmethod
    def headers(self, key: str) -> dict[str, str]:
        """Return the headers that carry a key and the interface's version."""

    @abstractmethod
    def body(self, request: JudgeRequest, *, structured: bool, base: str) -> dict[str, Any]:
        """The body to send; `structured` asks for a reply that follows the request's schema."""

    @abstractmethod
    def usage(self, data: Mapping[str, Any]) -> Usage:
        """Return the tokens that a reply reports."""

    @abstractmethod
    def read(self, data: Mapping[str, Any]) -> JudgeReply | None:
        """Return the reply in an answer; ``None`` if the answer has none."""

    def tokens(self, data: Mapping[str, Any]) -> Sequence[TokenChoice]:  # noqa: ARG002 (not every interface has them)
        """Return the tokens of the reply with their alternatives; empty where the answer has none."""
        return ()

    @abstractmethod
    def refuses_form(self, text: str) -> bool:
        """Whether a 400 or 422 complains about the form that `structured` asked for."""

    @abstractmethod
    def batch_line(self, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the line of a batch file that asks for what a call with a body would.

        Args:
            name: Comes back with the reply.
            body: Of the call.
        """

    @abstractmethod
    def batch_body(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the body of the reply in a line of a result file.

        Raises:
            BatchFailure: The provider gave none, or the line has another form.
        """


def count(data: Any, name: str) -> int | None:
    """Return a number of tokens from a provider's untrusted reply; ``None`` if it is not one."""
    value = data.get(name) if isinstance(data, Mapping) else None
    return value if is_count(value) else None


FILTERED: Final = "found a refusal: the provider filtered the content of this case"
TOO_SLOW: Final = "raise the judge's timeout, or make fewer concurrent calls (--llmeval-concurrency)"

_TOO_MANY = 429
_BAD_REQUEST = 400
FORM_REFUSED: Final = (_BAD_REQUEST, 422)
"""The statuses with which servers refuse a reply schema."""
_REJECTED: Final = frozenset({_BAD_REQUEST, 413, 422})
_NOTHING_USED: Final = Usage()


class CallError(AttemptError):
    """One attempt at a judge call that gave no reply.

    Attributes:
        advice: What to do about it; may be empty.
        rate_limited: Whether there were too many requests, so that fewer at a time would help.
        usage: What the provider charged for nevertheless.
        rejected: Whether the server rejects what was sent.
    """

    def __init__(
        self,
        what: str,
        advice: str = "",
        *,
        transient: bool | None = None,
        headers: Mapping[str, str] | None = None,
        rate_limited: bool = False,
        usage: Usage = _NOTHING_USED,
        brief: str = "",
        status: int = 0,
        rejected: bool = False,
    ) -> None:
        self.advice = advice
        self.rejected = rejected
        self.rate_limited = rate_limited
        self.usage = usage
        super().__init__(what, transient=transient, brief=brief, status=status, headers=headers)

    def __str__(self) -> str:
        what = super().__str__()
        return f"{what}; {self.advice}" if self.advice else what


def failed_status(
    status: int, message: str, *, raw: str, headers: Mapping[str, str], key: str, where: str = ""
) -> CallError:
    """Return the error of a judge call that failed with an HTTP status.

    Args:
        status: 300 or more.
        message: The server's message, redacted.
        raw: The body of the reply, to distinguish the kinds of 429.
        headers: Of the answer; names in lower case, or in any.
        key: Where the key comes from, for advice.
        where: What the message begins with.
    """
    spent = status == _TOO_MANY and "insufficient_quota" in raw
    error = CallError(
        f"{where}status {status}" + (f": {message}" if message else ""),
        transient=False if spent else None,
        headers=headers,
        rate_limited=status == _TOO_MANY and not spent,
        status=status,
        rejected=status in _REJECTED,
    )
    if spent:
        error.advice = "the account's quota is spent: check its plan and billing"
    elif status == _BAD_REQUEST and "content_filter" in raw:  # of Azure and its like, for what others answer with 200
        error.advice = FILTERED
    else:
        error.advice = _advice(status, key, transient=error.transient)
    return error


def _advice(status: int, key: str, *, transient: bool) -> str:
    """The advice to users on a judge call that failed with an HTTP status."""
    match status:
        case 401 | 403:
            return f"check {key}, and whether it may use this model"
        case 404:
            return "check the judge's model and base_url (on many servers it ends in /v1)"
        case 429:
            return "make fewer concurrent calls (--llmeval-concurrency), or raise the judge's retries"
        case _ if transient:
            return "try again later, or raise the judge's retries"
        case _ if status >= 400:  # noqa: PLR2004 (statuses of HTTP)
            return "check the judge's model and parameters"
        case _:
            return "redirects are not followed: check the judge's base_url"


def message_in(data: Any) -> str | None:
    """Return the message in the JSON body of a failed judge call, in any usual form; ``None`` if there is none."""
    if isinstance(data, Mapping):
        for name in ("error", "message", "detail"):
            value = data.get(name)
            message = value if isinstance(value, str) else message_in(value)
            if message:
                return message
    if isinstance(data, list) and data:
        return message_in(data[0])
    return None


class BatchFailure(Exception):  # noqa: N818 (what a provider says of a request, not what went wrong here)
    """The reason for which a line of a provider's batch result file holds no judge reply."""


class FormRefusedError(Exception):
    """A judge's server does not support a reply schema."""


@dataclass(frozen=True)
class Patience:
    """The attempts of a judge call and the delays between them.

    Attributes:
        provider: For messages.
        retries: Further attempts after a failed one.
        on_rate_limit: Called for every answer "too many requests".
        sleep: Waits between attempts.
        calls: Of the run.
    """

    provider: str
    retries: int
    on_rate_limit: OnRateLimit | None = None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    calls: RunCalls = field(default_factory=RunCalls)
    _refused_forms: set[str] = field(default_factory=set)

    async def complete(
        self, request: JudgeRequest, attempt: Callable[..., Awaitable[JudgeReply]], address: str, *, structured: bool
    ) -> JudgeReply:
        """Return the reply to a request, with its schema first, if the server supports it.

        Args:
            request: The request.
            attempt: Makes one call; its keyword ``structured`` says whether the schema is sent.
            address: Of the server.
            structured: Whether schemas may be sent.

        Raises:
            JudgeError: There is no reply.
        """
        form = json.dumps(request.reply_schema, sort_keys=True)
        if structured and request.reply_schema is not None and form not in self._refused_forms:
            try:
                return await self.persist(partial(attempt, structured=True), address)
            except FormRefusedError:
                self._refused_forms.add(form)
        return await self.persist(partial(attempt, structured=False), address)

    async def persist(self, attempt: Callable[[], Awaitable[JudgeReply]], address: str) -> JudgeReply:
        """Return the first reply, its usage with that of the attempts before it.

        Args:
            attempt: Makes one call.
            address: What is asked, and with which key.

        Raises:
            JudgeError: No attempt gave one, or further ones are pointless.
        """
        wasted = _NOTHING_USED

        async def counted() -> JudgeReply:
            nonlocal wasted
            try:
                return await attempt()
            except CallError as failure:
                wasted = added(wasted, failure.usage)
                if failure.rate_limited and self.on_rate_limit is not None:
                    self.on_rate_limit(failure.retry_after)
                raise

        try:
            reply = await self.calls.retry(counted, self.retries, self.sleep, f"{self.provider} {address}")
        except AttemptError as failure:
            text, attempts = str(failure), failure.attempts
            rejected = isinstance(failure, CallError) and failure.rejected
        else:
            return replace(reply, usage=added(wasted, reply.usage))
        # Raised out here, without the exceptions before it: those have frames that hold the key.
        tried = f" (after {attempts} attempts)" if attempts > 1 else ""
        raise JudgeError(f"{self.provider}: {text}{tried}", rejected=rejected)

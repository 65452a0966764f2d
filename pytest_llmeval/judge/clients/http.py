"""Judges behind HTTP interfaces: one call, its attempts, and what can go wrong with them."""

__all__ = ("HttpJudge",)

import asyncio
import json
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.errors import JudgeError
from pytest_llmeval.judge.clients.attempts import AttemptError, Patience, failed_status, message_in
from pytest_llmeval.judge.clients.base import Dialect
from pytest_llmeval.judge.contract import JudgeReply, JudgeRequest
from pytest_llmeval.judge.spec import JudgeSpec
from pytest_llmeval.services.addresses import proxy_for, shown_url, why_no_answer
from pytest_llmeval.services.secrets import presentable, without_key

if TYPE_CHECKING:
    import aiohttp

_LARGEST_BODY = 10 * 1024 * 1024
_FIRST_FAILING = 300
_FORM_REFUSED = (400, 422)


@dataclass
class HttpJudge:
    """Asks a model over HTTP.

    Attributes:
        spec: Which model, and where.
        dialect: How it is talked to.
        patience: How often a call is tried.
    """

    spec: JudgeSpec
    dialect: Dialect
    patience: Patience
    _session: "aiohttp.ClientSession | None" = None
    _loop: asyncio.AbstractEventLoop | None = None
    _proxy: str | None = None
    _refused_forms: set[str] = field(default_factory=set)

    async def complete(self, request: JudgeRequest) -> JudgeReply:
        """Return the model's reply; one that was refused or cut off says so in ``stopped``.

        Raises:
            JudgeError: There is none: the key is missing, the server refused the call, or no attempt succeeded.
        """
        self._key()  # a key that is missing is told at once, outside the attempts
        form = json.dumps(request.reply_schema, sort_keys=True)
        wants_form = request.reply_schema is not None and self.spec.structured == "auto"
        if wants_form and form not in self._refused_forms:
            try:
                return await self.patience.persist(lambda: self._attempt(request, structured=True))
            except _FormRefusedError:
                self._refused_forms.add(form)
        return await self.patience.persist(lambda: self._attempt(request, structured=False))

    async def aclose(self) -> None:
        """Close the connections; the next call opens new ones."""
        session, self._session = self._session, None
        if session is not None and self._loop is asyncio.get_running_loop():
            await session.close()

    @property
    def _base(self) -> str:
        return (self.spec.base_url or self.dialect.base_url).rstrip("/")

    @property
    def _variable(self) -> str:
        return self.spec.api_key_env or self.dialect.key_variable

    def _key(self) -> str:
        """Return the key from the environment, empty where a server of one's own needs none."""
        key = os.environ.get(self._variable, "").strip()
        if not key and (self.spec.base_url is None or self.spec.api_key_env is not None):
            raise JudgeError(
                f"{self.dialect.provider}: found no key in the environment variable {self._variable}, expected the key "
                f"of the judge {self.spec.model}: set it, or replay recorded verdicts"
            )
        if not (key.isascii() and key.isprintable()):
            raise JudgeError(
                f"{self.dialect.provider}: found characters in the environment variable {self._variable} that no HTTP "
                "header can carry, expected a key"
            )
        return key

    def _connected(self) -> "aiohttp.ClientSession":
        """Return the session of the running loop; connections belong to the loop that opened them."""
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            # Callers limit concurrency.
            connector = aiohttp.TCPConnector(limit=0)
            jar = aiohttp.DummyCookieJar()
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=jar)
            self._loop = loop
            self._proxy = proxy_for(self._base)
        return self._session

    async def _attempt(self, request: JudgeRequest, *, structured: bool) -> JudgeReply:
        status, headers, raw = await self._answer(self.dialect.body(request, structured=structured, base=self._base))
        data = _parsed(raw)
        text = raw.decode("utf-8", "replace")
        if status >= _FIRST_FAILING:
            if structured and status in _FORM_REFUSED and self.dialect.refuses_form(text):
                raise _FormRefusedError
            raise self._failed(status, headers, text, data)
        if not isinstance(data, dict):
            snippet = presentable(text, self._key())
            raise self._malformed(f"found a body that is not a JSON object ({snippet or 'empty body'})")
        reply = self.dialect.read(data)
        if reply is None:
            message = presentable(message_in(data) or "", self._key())
            failure = self._malformed(f"found a body without a reply ({message or 'no error message'})")
            failure.usage = self.dialect.usage(data)
            raise failure
        return replace(reply, text=without_key(reply.text, self._key()))

    async def _answer(self, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        """Send one request; return status, headers and body of the answer."""
        import aiohttp

        url = self.dialect.url(self._base)
        headers = {"content-type": "application/json", "accept-encoding": "identity"} | self.dialect.headers(
            self._key()
        )
        # UTF-8 has no bytes for half a surrogate pair, which a case may hold; ASCII escapes carry it.
        content = json.dumps(body, allow_nan=False).encode("ascii")
        limit = aiohttp.ClientTimeout(total=self.spec.timeout)
        session = self._connected()
        try:
            async with session.post(
                url, data=content, headers=headers, allow_redirects=False, timeout=limit, proxy=self._proxy
            ) as response:
                chunks, size = [], 0
                async for chunk in response.content.iter_any():
                    chunks.append(chunk)
                    size += len(chunk)
                    if size > _LARGEST_BODY:
                        raise AttemptError(
                            f"{shown_url(url)}: found a response above 10 MB", "check the judge's base_url"
                        )
                return (
                    response.status,
                    {name.lower(): each for name, each in response.headers.items()},
                    b"".join(chunks),
                )
        except TimeoutError:
            raise AttemptError(
                f"no response from {shown_url(url)} within {self.spec.timeout:g} s",
                "raise the judge's timeout, or make fewer concurrent calls (--llmeval-concurrency)",
                passing=True,
            ) from None
        except (aiohttp.ClientError, ValueError) as error:
            # A ValueError tells of an address or a header that cannot be sent.
            raise AttemptError(
                f"no response from {shown_url(url)}: {presentable(why_no_answer(error), self._key())}",
                "check the judge's base_url and the network",
                passing=not isinstance(error, ValueError),
            ) from None

    def _failed(self, status: int, headers: dict[str, str], text: str, data: Any) -> AttemptError:
        key = f"the key in {self._variable}"
        message = presentable(message_in(data) or text, self._key())
        failure = failed_status(status, message, raw=text, headers=headers, key=key)
        failure.what = f"{shown_url(self.dialect.url(self._base))}: {failure.what}"
        return failure

    def _malformed(self, what: str) -> AttemptError:
        url = shown_url(self.dialect.url(self._base))
        return AttemptError(f"{url}: {what}", "check that the judge's base_url supports this API", passing=True)


class _FormRefusedError(Exception):
    """The server will not enforce the form of the reply."""


def _parsed(raw: bytes) -> Any:
    """Return the JSON in a body; ``None`` where there is none."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None

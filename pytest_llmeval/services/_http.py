"""One HTTP exchange for judges and targets."""

import asyncio
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct

from pytest_llmeval._version import __version__
from pytest_llmeval.core import AnyError, quotation
from pytest_llmeval.services._background import Stopwatch, in_thread
from pytest_llmeval.services._retrying import AttemptError
from pytest_llmeval.services._secrets import MASK, Redactor, ServiceAddress
from pytest_llmeval.services._uses import our_call

if TYPE_CHECKING:
    import aiohttp

_FIRST_SUCCESS: Final = 200
_FIRST_REDIRECTION: Final = 300

Cause: TypeAlias = Literal["slow", "unreachable", "dropped", "untrusted", "unusable", "too large", "packed"]
_TRANSIENT: Final = frozenset[Cause]({"slow", "unreachable", "dropped"})
_ENCODINGS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""What servers compress by unasked, and the window of zlib that unpacks it."""
_LONGEST_EXCERPT: Final = 40
_BRIEFLY: Final[dict[Cause, str]] = {"slow": "too slow", "dropped": "connection lost"}


class NoReplyError(AttemptError):
    """A request to a judge or a target that got no reply; its text follows the address.

    Attributes:
        cause: ``untrusted`` is a certificate, ``unusable`` an address, a proxy or headers, ``packed`` a compression.
    """

    def __init__(self, message: str, cause: Cause) -> None:
        self.cause = cause
        super().__init__(message, transient=cause in _TRANSIENT, brief=_BRIEFLY.get(cause, cause))


class Reply(Struct, frozen=True):
    """A reply of a judge's or target's server over HTTP.

    Attributes:
        status: Of HTTP.
        reason: The words for it.
        headers: Their names in any case.
        body: The whole.
    """

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        """Whether the HTTP status says success."""
        return _FIRST_SUCCESS <= self.status < _FIRST_REDIRECTION

    @property
    def leads_to(self) -> str | None:
        """The target of a redirection, without user, password and query, which may be secret."""
        location = self.headers.get("Location")
        if location is None:
            return None
        user, at, place = re.split("[?#]", location, maxsplit=1)[0].rpartition("@")
        scheme, slashes, _ = user.partition("//")
        prefix = f"{scheme}//" if slashes and scheme in ("", "http:", "https:") else ""
        return f"{prefix}{MASK}@{place}" if at else place


class Exchange:
    """HTTP requests to one address of a judge or a target, over connections that are kept.

    Redirects are not followed, cookies not kept, and passwords of a netrc file not sent. Callers limit concurrency.

    Args:
        url: The address.
        timeout: Seconds from the connection to the end of a reply.
        largest: Most bytes of a reply that are read.
    """

    def __init__(self, url: str, *, timeout: float, largest: int) -> None:
        self._url = url
        self._timeout = timeout
        self._largest = largest
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._proxy: str | None = None

    async def send(
        self,
        method: str,
        headers: Mapping[str, str],
        redactor: Redactor,
        *,
        content: bytes | None = None,
        parameters: Sequence[tuple[str, str]] = (),
    ) -> Reply:
        """Send one request.

        Args:
            method: Of HTTP.
            headers: Those that no request has by itself, or other values of those.
            redactor: Knows the secrets that are sent.
            content: The body, as JSON.
            parameters: Of the query string.

        Raises:
            NoReplyError: There is no reply, or too much of it.
        """
        import aiohttp

        if content is not None and "content-type" not in map(str.lower, headers):
            headers = {"Content-Type": "application/json", **headers}
        exchange = self._connect_session().request(
            method,
            self._url,
            params=parameters or None,
            data=content,
            headers=headers,
            allow_redirects=False,
            proxy=self._proxy,
        )
        try:
            with our_call(), Stopwatch.current().call():
                async with exchange as response:
                    reason = (response.reason or "").encode(errors="surrogateescape").decode(errors="replace")
                    return Reply(response.status, reason, response.headers, await self._read(response))
        except TimeoutError:
            raise NoReplyError(f"took longer than {self._timeout:g} s", "slow") from None
        except aiohttp.ClientConnectorCertificateError as error:  # a ValueError, too
            raise NoReplyError(f"failed: {redactor.line(_why_no_answer(error))}", "untrusted") from None
        except ValueError:
            # Its message would show the whole address, which may contain secrets.
            raise NoReplyError("failed: the address, the proxy or the headers are not valid", "unusable") from None
        except aiohttp.ClientError as error:
            cause: Cause = "unreachable" if isinstance(error, aiohttp.ClientConnectorError) else "dropped"
            raise NoReplyError(f"failed: {redactor.line(_why_no_answer(error))}", cause) from None

    async def aclose(self) -> None:
        """Close the connections; the next request opens new ones."""
        session, self._session = self._session, None
        if session is not None and self._loop is asyncio.get_running_loop():
            await session.close()

    async def _read(self, response: "aiohttp.ClientResponse") -> bytes:
        """The body of a reply, read no further than to the limit."""
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > self._largest:
                raise self._too_large()
        encoding = response.headers.get("Content-Encoding", "").strip().lower()
        if encoding in ("", "identity") or not body:
            return bytes(body)
        if encoding not in _ENCODINGS:
            raise NoReplyError(
                f"returned Content-Encoding {quotation(encoding, _LONGEST_EXCERPT)}, which was not asked for", "packed"
            )
        return await in_thread(lambda: self._unpack_body(body, encoding), "llmeval-unpacking")

    def _unpack_body(self, body: bytes | bytearray, encoding: str) -> bytes:
        """The body of a reply as it was before compression, read no further than to the limit."""
        unpacker = zlib.decompressobj(_ENCODINGS[encoding])
        try:
            content = unpacker.decompress(body, self._largest + 1)
        except zlib.error:
            raise NoReplyError(
                f"returned a body that is no {encoding}, expected its Content-Encoding", "packed"
            ) from None
        if len(content) > self._largest:
            raise self._too_large()
        if not unpacker.eof:
            raise NoReplyError("returned a compressed body that is cut", "dropped")
        return content

    def _too_large(self) -> NoReplyError:
        """The error for a reply above the limit."""
        return NoReplyError(f"returned more than {self._largest} bytes, expected fewer", "too large")

    def _connect_session(self) -> "aiohttp.ClientSession":
        """The session of the running loop; connections belong to the loop that opened them."""
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            self._session = aiohttp.ClientSession(
                headers={
                    "Accept": "application/json",
                    "Accept-Encoding": "identity",
                    "User-Agent": f"pytest-llmeval/{__version__}",
                },
                auto_decompress=False,  # its limit is none of ours, and it unpacks in the event loop
                timeout=aiohttp.ClientTimeout(total=self._timeout),
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
            self._loop = loop
            self._proxy = ServiceAddress(self._url).proxy
        return self._session


def _why_no_answer(error: Exception) -> str:
    """Say on one line what kept a client of aiohttp from an answer, without the address, which may hold secrets."""
    import aiohttp

    text = AnyError(error).text
    indirect = (aiohttp.ClientProxyConnectionError, aiohttp.ClientSSLError)  # their text names the proxy, or the fault
    if isinstance(error, aiohttp.ClientResponseError):
        text = f"{type(error).__name__}: {error.message}"
    elif isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, indirect):
        number = error.os_error.errno or 0
        # Unresolved names have numbers below 0 and their own message.
        text = f"no connection ({os.strerror(number) if number > 0 else error.os_error.strerror or error.os_error})"
    return " ".join(text.split())

"""A service over HTTP as a target: batches in, predictions out; a failure costs the cases of its batch."""

__all__ = ("HttpTarget",)

import asyncio
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pytest_llmeval._version import __version__
from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.data.formats.fields import ABSENT
from pytest_llmeval.services.addresses import proxy_for, shown_url, why_no_answer
from pytest_llmeval.services.retrying import TransientError, delay_asked_for, is_transient, retrying
from pytest_llmeval.services.secrets import Shown, kind
from pytest_llmeval.targets.contract import BatchTarget
from pytest_llmeval.targets.faults import url_fault
from pytest_llmeval.targets.replies import WrongCountError, parse_reply, predictions_in
from pytest_llmeval.targets.spec import HttpSpec, ResponseSpec
from pytest_llmeval.targets.template import at, fill, has_each, input_paths

if TYPE_CHECKING:
    import aiohttp

LARGEST_REPLY: Final = 64 << 20
_REDIRECTION: Final = 300


class HttpTarget(BatchTarget):
    """A service over HTTP.

    Args:
        spec: Where it is and how it is asked; free of faults.
        environment: Read at the first call.
        sleep: Waits between attempts.
        largest_reply: Most bytes of a reply that are read.
    """

    def __init__(
        self,
        spec: HttpSpec,
        *,
        environment: Mapping[str, str] = os.environ,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        largest_reply: int = LARGEST_REPLY,
    ) -> None:
        self.batch = spec.batch
        self.concurrency = spec.concurrency
        self._spec = spec
        self._environment = environment
        self._sleep = sleep
        self._largest_reply = largest_reply
        self._listed = has_each(spec.request)
        self._paths = input_paths(spec.request)
        self._response = ResponseSpec.of(spec.response, listed=self._listed)
        self._slots = asyncio.Semaphore(spec.concurrency)
        self._url = spec.url
        self._shown = Shown()
        self._proxy: str | None = None
        self._session: aiohttp.ClientSession | None = None
        self._unreachable = False

    async def answer(self, inputs: Sequence[Any]) -> list[Any | PredictionError]:
        """Return one entry for each input; see `BatchTarget`."""
        faults = [self._input_fault(each) for each in inputs]
        asked = [each for each, fault in zip(inputs, faults, strict=True) if fault is None]
        answers = iter(await self._answers(asked) if asked else ())
        return [next(answers) if fault is None else fault for fault in faults]

    async def aclose(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _input_fault(self, value: Any) -> PredictionError | None:
        for path in self._paths:
            if at(value, path) is ABSENT:
                return PredictionError(
                    f"found {kind(value)} as input, expected one with {path!r}, which the request uses"
                )
        return None

    async def _answers(self, inputs: Sequence[Any]) -> list[Any | PredictionError]:
        try:
            return await self._ask(inputs)
        except WrongCountError as error:
            if len(inputs) == 1:
                return [error]
        except PredictionError as error:
            return [error] * len(inputs)
        # Alone, each gets its own answer or none: to guess which results are missing would score wrong ones.
        alone = await asyncio.gather(*(self._answers([each]) for each in inputs))
        return [answer for answers in alone for answer in answers]

    async def _ask(self, inputs: Sequence[Any]) -> list[Any | PredictionError]:
        async with self._slots:
            body = await self._reply(fill(self._spec.request, inputs))
        try:
            reply = parse_reply(body)
            found = predictions_in(reply, self._response, len(inputs), self._shown, listed=self._listed)
        except PredictionError as error:
            raise type(error)(f"{self._name}: {self._shown.masked(str(error))}: {self._shown.excerpt(body)}") from None
        return [
            PredictionError(f"{self._name}: {each}") if isinstance(each, PredictionError) else each for each in found
        ]

    @property
    def _name(self) -> str:
        return f"{self._spec.method} {self._shown.masked(shown_url(self._url))}"

    async def _reply(self, request: Any) -> bytes:
        """Return the body of a reply, after as many attempts as it takes and the user allows.

        Raises:
            PredictionError: There was none.
        """
        session = self._connected()
        # A service that nobody has started is not waited for again with every batch.
        attempts = 1 if self._unreachable else 1 + self._spec.retries
        ask = retrying(attempts, self._sleep)
        try:
            body: bytes = await ask(self._attempt, session, request)
        except TransientError as error:
            self._unreachable = error.unreachable
            tried = f" ({attempts} attempts)" if attempts > 1 else ""
            raise PredictionError(f"{self._name} {error}{tried}") from None
        self._unreachable = False
        return body

    async def _attempt(self, session: "aiohttp.ClientSession", request: Any) -> bytes:
        import aiohttp

        # JSON in ASCII: half of a surrogate pair has no other spelling.
        body = json.dumps(request).encode("ascii") if self._spec.method != "GET" else None
        parameters = self._parameters(request) if body is None else None
        asked = session.request(
            self._spec.method, self._url, params=parameters, data=body, allow_redirects=False, proxy=self._proxy
        )
        try:
            async with asked as response:
                content = await self._read(response)
        except TimeoutError:
            raise TransientError(f"took longer than {self._spec.timeout:g} s") from None
        except aiohttp.ClientConnectorCertificateError as error:  # a ValueError, too
            raise PredictionError(f"{self._name} failed: {self._shown.masked(why_no_answer(error))}") from None
        except ValueError:
            # Its text would show the whole address, and what stands there may be secret.
            raise PredictionError(f"{self._name} failed: the address, the proxy or the headers are not valid") from None
        except aiohttp.ClientError as error:
            refused = isinstance(error, aiohttp.ClientConnectorError)
            raise TransientError(f"failed: {self._shown.masked(why_no_answer(error))}", unreachable=refused) from None
        if response.ok and response.status < _REDIRECTION:
            return content
        status = f"{response.status} {response.reason or ''}".rstrip()
        what = f"answered {status}: {self._shown.excerpt(content)}"
        if "Location" in response.headers:
            where = self._shown.excerpt(re.split("[?#]", response.headers["Location"], maxsplit=1)[0])
            what += f"; redirects are not followed: this one leads to {where}"
        if is_transient(response.status):
            raise TransientError(what, retry_after=delay_asked_for(response.headers, datetime.now(UTC)))
        raise PredictionError(f"{self._name} {what}")

    def _parameters(self, request: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return what a GET request sends in the query string."""
        parameters = []
        for name, value in request.items():
            parts = value if isinstance(value, list) else [value]
            if any(isinstance(part, Mapping | list) for part in parts):
                raise PredictionError(
                    f"found {kind(value)} for the parameter {name!r} of a GET request, "
                    "expected text, a number or a list of them"
                )
            parameters += [(name, _spelt(part)) for part in parts]
        return parameters

    async def _read(self, response: "aiohttp.ClientResponse") -> bytes:
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > self._largest_reply:
                raise PredictionError(f"{self._name} returned more than {self._largest_reply} bytes, expected fewer")
        return bytes(body)

    def _connected(self) -> "aiohttp.ClientSession":
        """Return the session, which is made at the first call, when secrets and address must be in the environment.

        Raises:
            PredictionError: They are not, or cannot be used.
        """
        if self._session is None:
            import aiohttp

            secrets = {name: self._secret(name, variable) for name, variable in self._spec.headers_from_env.items()}
            self._shown = Shown(secrets.values())
            self._url = self._address()
            self._proxy = proxy_for(self._url)
            self._session = aiohttp.ClientSession(
                headers=self._headers(secrets),
                timeout=aiohttp.ClientTimeout(total=self._spec.timeout),
                connector=aiohttp.TCPConnector(limit=0),  # callers limit concurrency
                cookie_jar=aiohttp.DummyCookieJar(),  # an answer must not depend on those before it
            )
        return self._session

    def _headers(self, secrets: Mapping[str, str]) -> dict[str, str]:
        usual = {"Accept": "application/json", "User-Agent": f"pytest-llmeval/{__version__}"}
        if self._spec.method != "GET":
            usual["Content-Type"] = "application/json"
        given = {**self._spec.headers, **secrets}
        names = {name.lower() for name in given}
        return {**{name: value for name, value in usual.items() if name.lower() not in names}, **given}

    def _secret(self, header: str, variable: str) -> str:
        value = self._environment.get(variable, "")
        if not value:
            raise PredictionError(
                f"environment variable {variable} is not set, expected the header {header!r} for {self._name}"
            )
        if not (value.isascii() and value.isprintable()):
            raise PredictionError(
                f"environment variable {variable} is not a valid header value, expected one line of printable ASCII"
            )
        return value

    def _address(self) -> str:
        variable = self._spec.url_from_env
        url = self._environment.get(variable, "") if variable is not None else ""
        if url and (wrong := url_fault(url)):
            raise PredictionError(f"environment variable {variable}: {wrong}")
        return url or self._spec.url


def _spelt(value: Any) -> str:
    """Return the text that stands for a value in a query string."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)

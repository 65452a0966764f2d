"""HTTP services and commands as targets."""

import asyncio
import json
import os
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pytest_llmeval.core import Media, MediaError, MediaForm, PredictionError
from pytest_llmeval.data import DataPath, JsonText
from pytest_llmeval.services import (
    MEDIA_FORMS,
    AttemptError,
    Exchange,
    Program,
    Redactor,
    RunCalls,
    ServiceAddress,
    Stopwatch,
)
from pytest_llmeval.targets._spec import (
    BatchTarget,
    HttpSpec,
    ResponseSpec,
    TargetSpec,
    WrongCountError,
    at,
    fill,
    has_each,
    input_paths,
    kind,
    predictions_in,
    url_fault,
)

LARGEST_REPLY: Final = 64 << 20


class HttpTarget(BatchTarget):
    """A target that gets predictions from a service over HTTP.

    Args:
        spec: Its address and how to call it; free of faults.
        environment: Read at the first call.
        sleep: Waits between attempts.
        calls: Of the run; default: those of this target alone.
        largest_reply: Most bytes of a reply that are read.
    """

    def __init__(
        self,
        spec: HttpSpec,
        *,
        environment: Mapping[str, str] = os.environ,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        largest_reply: int = LARGEST_REPLY,
        calls: RunCalls | None = None,
    ) -> None:
        self.batch = spec.batch
        self.concurrency = spec.concurrency
        self._spec = spec
        self._environment = environment
        self._sleep = sleep
        self._largest_reply = largest_reply
        self._calls = calls or RunCalls()
        self._listed = has_each(spec.request)
        self._paths = input_paths(spec.request)
        self._response = ResponseSpec.from_setting(spec.response, listed=self._listed)
        self._slots = asyncio.Semaphore(spec.concurrency)
        self._url = spec.url
        self._redactor = Redactor(environment=environment)
        self._headers: dict[str, str] = {}
        self._exchange: Exchange | None = None
        self._unreachable = False

    async def answer(self, inputs: Sequence[Any]) -> list[Any | PredictionError]:
        """One entry for each input; see `BatchTarget`."""
        faults = [self._input_fault(input_) for input_ in inputs]
        usable = [input_ for input_, fault in zip(inputs, faults, strict=True) if fault is None]
        answers = iter(await self._answers(usable) if usable else ())
        return [next(answers) if fault is None else fault for fault in faults]

    async def aclose(self) -> None:
        """Close the connections."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            await exchange.aclose()

    def _input_fault(self, value: Any) -> PredictionError | None:
        """The error for an input that lacks what the request names; ``None`` if it has all."""
        for path in self._paths:
            if at(value, path) is DataPath.ABSENT:
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
        alone = await asyncio.gather(*(self._answers([input_]) for input_ in inputs))
        return [answer for answers in alone for answer in answers]

    async def _ask(self, inputs: Sequence[Any]) -> list[Any | PredictionError]:
        async with self._slots:
            body = await self._reply(self._request(inputs))
        try:
            reply = JsonText(body).parse_reply()
            predictions = predictions_in(reply, self._response, len(inputs), self._redactor, listed=self._listed)
        except PredictionError as error:
            what = self._redactor.redacted(str(error))
            raise type(error)(f"{self._name}: {what}: {self._redactor.excerpt(body)}") from None
        return [
            PredictionError(f"{self._name}: {prediction}") if isinstance(prediction, PredictionError) else prediction
            for prediction in predictions
        ]

    def _request(self, inputs: Sequence[Any]) -> Any:
        """The request for some inputs, with their media in the form that the service reads.

        Raises:
            PredictionError: It has no form for one of them, or a content cannot be read.
        """
        written = MEDIA_FORMS[self._spec.media]
        try:
            return MediaForm.replace_all(fill(self._spec.request, inputs), lambda form: written(Media.of_form(form)))
        except MediaError as error:
            raise PredictionError(f"{self._name}: {error}") from None

    @property
    def _name(self) -> str:
        return f"{self._spec.method} {self._redactor.redacted(ServiceAddress(self._url).redacted)}"

    async def _reply(self, request: Any) -> bytes:
        """The body of a reply, after as many attempts as it takes and the user allows.

        Raises:
            PredictionError: There was none.
        """
        exchange = self._connect_exchange()
        # If the service is not running, do not retry for every batch.
        retries = 0 if self._unreachable else self._spec.retries
        # JSON in ASCII: half of a surrogate pair has no other spelling.
        content = json.dumps(request).encode("ascii") if self._spec.method != "GET" else None
        parameters = self._parameters(request) if content is None else ()
        try:
            address = ServiceAddress(self._url).note(*sorted(self._spec.headers_from_env.values()))
            body = await self._calls.retry(
                lambda: self._attempt(exchange, content, parameters), retries, self._sleep, address
            )
        except AttemptError as error:
            self._unreachable = error.cause == "unreachable"
            tried = f" ({error.attempts} attempts)" if error.attempts > 1 else ""
            raise PredictionError(f"{self._name} {error}{tried}") from None
        self._unreachable = False
        return body

    async def _attempt(self, exchange: Exchange, content: bytes | None, parameters: Sequence[tuple[str, str]]) -> bytes:
        reply = await exchange.send(
            self._spec.method, self._headers, self._redactor, content=content, parameters=parameters
        )
        if reply.ok:
            return reply.body
        status = f"{reply.status} {self._redactor.line(reply.reason)}".rstrip()
        what = f"answered {status}: {self._redactor.excerpt(reply.body)}"
        if reply.leads_to is not None:
            where = self._redactor.excerpt(reply.leads_to)
            what += f"; redirects are not followed: this one leads to {where}"
        raise AttemptError(what, status=reply.status, headers=reply.headers)

    def _parameters(self, request: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The query string of a GET request."""
        parameters = []
        for name, value in request.items():
            parts = value if isinstance(value, list) else [value]
            if any(isinstance(part, Mapping | list) for part in parts):
                raise PredictionError(
                    f"found {kind(value)} for the parameter {name!r} of a GET request, "
                    "expected text, a number or a list of them"
                )
            parameters += [(name, _spell_value(part)) for part in parts]
        return parameters

    def _connect_exchange(self) -> Exchange:
        """The exchange, made at the first call, when secrets and address must be in the environment.

        Raises:
            PredictionError: They are not, or cannot be used.
        """
        if self._exchange is None:
            secrets = {name: self._secret(name, variable) for name, variable in self._spec.headers_from_env.items()}
            self._redactor = Redactor(secrets.values(), self._environment)
            self._headers = {**self._spec.headers, **secrets}
            self._url = self._address()
            self._exchange = Exchange(self._url, timeout=self._spec.timeout, largest=self._largest_reply)
        return self._exchange

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


def _spell_value(value: Any) -> str:
    """An input's value as text for the query string of a request to a target service."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


class CommandTarget(BatchTarget):
    """A target program that reads and writes JSON lines.

    It reads ``{"id": ..., "input": ...}`` per line and writes ``{"id": ..., "prediction": ...}``.

    One process answers one input after the other. It is started with the first, and again after a failure: one that
    broke the protocol, or did not answer in time, is killed with all that it started.

    Args:
        command: The program and its arguments; no shell reads them.
        folder: Where it runs.
        timeout: Seconds that an answer may take, the program's start included; ``None`` waits for ever.
        environment: Of the program; default: this process's.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        timeout: float | None = None,
        *,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._command = tuple(command)
        self._folder = folder
        self._timeout = timeout
        self._environment = environment
        self._redactor = Redactor(environment=environment)
        self._name = f"command {self._redactor.excerpt(self._command[0])}"
        self._one_at_a_time = asyncio.Lock()
        self._program: Program | None = None
        self._steps = random.Random(0)  # noqa: S311 (distance from the next number, no secret)
        self._call_number = 1

    async def answer(self, inputs: Sequence[Any]) -> list[Any | PredictionError]:
        """One entry for each input; see `BatchTarget`."""
        return [await self._answer(input_) for input_ in inputs]

    async def aclose(self) -> None:
        """Let the program end: its input ends, and what is left of it after a moment is killed."""
        program, self._program = self._program, None
        if program is not None:
            await program.end()

    async def _answer(self, value: Any) -> Any | PredictionError:
        async with self._one_at_a_time:
            try:
                async with asyncio.timeout(self._timeout):
                    with Stopwatch.current().call():
                        line = await self._exchange(value)
                    return self._read(line)
            except TimeoutError:
                fault = f"took longer than {self._timeout:g} s"
            except PredictionError as error:
                fault = str(error)
            except BaseException:
                await self._discard()
                raise
            finally:
                # Far from the next number: a second line of an answer cannot be taken for the next answer.
                self._call_number += self._steps.randrange(1_000, 10_000)
            return PredictionError(f"{self._name} {fault}{await self._discard()}")

    async def _exchange(self, value: Any) -> bytes:
        """The line that the program answers.

        Raises:
            PredictionError: It cannot be started, or it ended.
        """
        try:
            value = MediaForm.replace_all(value, lambda form: Media.of_form(form).location)
        except MediaError as error:
            raise PredictionError(f"was not started: {error}") from None
        line = json.dumps({"id": self._call_number, "input": value}).encode("ascii")
        if self._program is not None:
            # It may have ended after its last answer; a process started for this input shows.
            if (answer := await self._program.exchange_if_alive(line)) is not None:
                return answer
            await self._discard()
        self._program = await Program.start(self._command, self._folder, self._environment)
        return await self._program.exchange(line)

    def _read(self, line: bytes) -> Any | PredictionError:
        """The prediction in a line, or the error that the program reports.

        Raises:
            PredictionError: The line is not what the protocol asks for.
        """
        expected = f'expected {{"id": {self._call_number}, "prediction": ...}}; anything else belongs on stderr'
        try:
            reply = JsonText(line).parse_reply()
        except PredictionError as error:
            raise PredictionError(f"wrote {self._redactor.excerpt(line)} on stdout: {error}, {expected}") from None
        named = isinstance(reply, dict) and type(reply.get("id")) is int and reply["id"] == self._call_number
        if not named or ("prediction" in reply) == ("error" in reply):
            raise PredictionError(f"wrote {self._redactor.excerpt(line)} on stdout, {expected}")
        if "prediction" in reply:
            return reply["prediction"]
        message = reply["error"]
        text = message if isinstance(message, str) else json.dumps(message)
        return PredictionError(f"{self._name} answered with the error {self._redactor.excerpt(text)}")

    async def _discard(self) -> str:
        """Kill the program, so that the next input starts a new one; return the end of its stderr."""
        program, self._program = self._program, None
        if program is None:
            return ""
        await program.kill()
        return f"; stderr: {self._redactor.excerpt(program.stderr, end=True)}" if program.stderr.strip() else ""


def connect_target(spec: TargetSpec, folder: Path, calls: RunCalls) -> HttpTarget | CommandTarget:
    """The HTTP service or the command that a suite has as its target, ready to answer.

    Args:
        spec: Names one of both.
        folder: Where a command runs.
        calls: State that the calls of the run share.
    """
    if spec.http is not None:
        return HttpTarget(spec.http, calls=calls)
    return CommandTarget(spec.command or (), folder, spec.timeout)

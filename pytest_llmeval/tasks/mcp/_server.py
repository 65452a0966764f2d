"""A server of the Model Context Protocol.

The protocol is that of the official SDK; this module starts the server, limits it, and leaves nothing of it behind.
"""

import asyncio
import contextlib
import difflib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self
from urllib.parse import urlsplit

from msgspec import Struct

from pytest_llmeval.core import AnyError, Case, LlmevalError, MissingExtraError, PredictionError, SuiteError
from pytest_llmeval.data import InputFile
from pytest_llmeval.services import Background, Redactor, ServiceAddress
from pytest_llmeval.tasks.agents import FamilyProgram, RecordedResults

if TYPE_CHECKING:
    from mcp import Client


MODE: Final = "LLMEVAL_MCP"
"""Variable with the mode of servers that have recorded results."""

PORT: Final = "{port}"
_INHERITED: Final = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
_VOLATILE: Final = frozenset({"_meta", "icons"})
"""Fields of a tool that no model reads."""
_PAUSE_S: Final = 0.02


class McpResult(Struct, frozen=True):
    """The result of a call of an MCP server's tool.

    Attributes:
        content: Parts, as in the protocol: ``{"type": "text", "text": ...}``.
        structured: Structured content; ``None`` without.
        failed: Whether the tool reports an error.
    """

    content: Sequence[Mapping[str, Any]] = ()
    structured: Any = None
    failed: bool = False

    @property
    def text(self) -> str:
        """The texts of its parts, one a line."""
        return "\n".join(str(part["text"]) for part in self.content if part.get("type") == "text")


class McpServer:
    """A server of the Model Context Protocol, and a world for targets that call its tools.

    As a world, it is started for each case, or once in each process of a run, and gives the target an `McpSession`.
    With recorded results, it is started only to record: with the environment variable ``LLMEVAL_MCP=record``.

    Args:
        command: The program and its arguments; no shell reads them. Empty for a server that runs elsewhere.
        url: Address of a server over HTTP; without, the command speaks over stdio. ``{port}`` in the address and in the
            arguments becomes a free port.
        per: Whether each case has a server of its own.
        results: File of recorded results (JSONL), relative to the module that makes the server.
        environment: Variables of the command, besides ``PATH``, ``HOME`` and the language.
        headers: Of HTTP, such as ``Authorization``.
        folder: Where the command runs, relative to that module.
        timeout: Seconds that the start, listing all tools, and each call may take.
        max_output: Most bytes that one connection may receive.

    Raises:
        LlmevalError: There is neither a command nor an address.
    """

    def __init__(
        self,
        command: Sequence[str] = (),
        *,
        url: str = "",
        per: Literal["case", "run"] = "case",
        results: str | Path | None = None,
        environment: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        folder: str | Path = ".",
        timeout: float = 60,
        max_output: int = 10_000_000,
    ) -> None:
        if not command and urlsplit(url).scheme not in ("http", "https"):
            raise LlmevalError(f"found {url or 'neither command nor url'!r}, expected a command, or an http address")
        if per not in ("case", "run"):
            raise LlmevalError(f"per: found {per!r}, expected case or run")
        # As of a named tuple: the module that makes the server defines it, so its suites can name it.
        home = sys._getframe(1).f_globals  # noqa: SLF001
        self.__module__ = home["__name__"]
        self._home = here = Path(home.get("__file__", "")).parent
        self.command = tuple(command)
        self.url = url
        self.environment = dict(environment or {})
        self.headers = dict(headers or {})
        self.folder = here / folder
        self.timeout = timeout
        self.max_output = max_output
        self._per = per
        self._results = None if results is None else here / results
        self._shared: Connection | None = None

    def __str__(self) -> str:
        return " ".join(self.command) if self.command else ServiceAddress(self.url).redacted

    def check(self, file: str | Path = "tools.json") -> None:
        """Compare the server with its approved tools, in a test.

        Args:
            file: What ``llmeval mcp snapshot`` wrote, relative to the module that makes the server.

        Raises:
            AssertionError: A name, description or schema is not the approved one; the message has a diff.
            LlmevalError: The file cannot be read, or the server does not answer.
        """
        __tracebackhide__ = True
        path = self._home / file
        approved = approved_parts(path)
        with contextlib.closing(Background()) as background:
            listed = background.submit(self.definitions()).result()
        if lines := list(drift(approved, parts_by_name(listed, path), Path(file))):
            raise AssertionError("\n".join(lines))

    async def definitions(self) -> dict[str, Any]:
        """Start the server, and return its ``instructions`` and ``tools`` as ``tools.json`` has them."""
        connection = Connection(self)
        async with connection.deadline(), connection:
            instructions = await connection.instructions()
            return {**({"instructions": instructions} if instructions else {}), "tools": await connection.tools()}

    def __call__(self, case: Case) -> "contextlib.AbstractAsyncContextManager[McpSession]":
        """Return the world of a case."""
        return self._world(case)

    @asynccontextmanager
    async def _world(self, case: Case) -> "AsyncIterator[McpSession]":
        mode = os.environ.get(MODE, "replay")
        if self._results is not None and mode not in ("replay", "record"):
            raise PredictionError(f"environment variable {MODE}: found {mode!r}, expected replay or record")
        if self._results is not None and mode == "replay":
            stored = RecordedResults.read(self._results, case.id)
            yield McpSession(stored.tools, stored)
            return
        async with self._connected() as connection:
            tools = await connection.tools()
            recorded = None if self._results is None else RecordedResults(self._results, case.id, tools)
            yield McpSession(tools, recorded, connection)
            if recorded is not None:
                recorded.keep()

    @asynccontextmanager
    async def _connected(self) -> "AsyncIterator[Connection]":
        if self._per == "case":
            async with Connection(self) as connection:
                yield connection
            return
        if self._shared is None or not self._shared.is_usable:
            self._shared = Connection(self)  # until the loop of the run ends, which cancels it
        yield await self._shared.ready()


def approved_parts(path: Path) -> dict[str, Mapping[str, Any]]:
    """Read the approved tools and instructions of an MCP server, by name.

    Raises:
        LlmevalError: The file cannot be read.
    """
    try:
        return parts_by_name(InputFile(path).read_document().data, path)
    except SuiteError as error:
        raise LlmevalError(f"{error}; write it with llmeval mcp snapshot") from None


def parts_by_name(data: Any, path: Path) -> dict[str, Mapping[str, Any]]:
    """The tools and instructions of an MCP server by name; raises `LlmevalError` if there are none."""
    tools = data.get("tools") if isinstance(data, Mapping) else None
    if not isinstance(tools, list) or not all(isinstance(tool, Mapping) and "name" in tool for tool in tools):
        raise LlmevalError(f"{path}: tools are missing, expected a file of llmeval mcp snapshot")
    parts = {f"tool {tool['name']}": tool for tool in tools}
    return parts | ({"instructions": {"text": data["instructions"]}} if data.get("instructions") else {})


def drift(before: Mapping[str, Any], now: Mapping[str, Any], file: Path) -> Iterator[str]:
    """Yield the changes of an MCP server's tools since their approval, with diffs and the command to approve them."""
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name), now.get(name)
        if old is None or new is None:
            yield f"{name}: {'new' if old is None else 'gone'}"
        elif old != new:
            fields = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
            yield f"{name}: changed: {', '.join(fields)}"
            texts = [as_text(definition).splitlines() for definition in (old, new)]
            yield from difflib.unified_diff(texts[0], texts[1], "approved", "server", lineterm="")
    if before != now:
        yield f"to approve this: llmeval mcp snapshot --file {file} ..., then commit"


def as_text(value: Any) -> str:
    """An MCP server's tool definitions as JSON in the form of ``tools.json``."""
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n"


class McpSession:
    """A target's session with an MCP server.

    Attributes:
        tools: Definitions as the protocol has them, sorted by name.
        calls: The calls so far, for `tool_calls` of the answer: ``name``, ``arguments``, ``result``, ``is_error``.
    """

    def __init__(
        self,
        tools: Sequence[Mapping[str, Any]],
        recorded: RecordedResults | None,
        connection: "Connection | None" = None,
    ) -> None:
        self.tools = list(tools)
        self.calls: list[dict[str, Any]] = []
        self._recorded = recorded
        self._connection = connection
        self._loop = asyncio.get_running_loop()

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> McpResult:
        """Call a tool and wait, in a target that is a plain function; see `acall`."""
        with contextlib.suppress(RuntimeError):
            if asyncio.get_running_loop() is self._loop:
                raise PredictionError("found call of an MCP tool in an async function, expected await acall")
        return asyncio.run_coroutine_threadsafe(self.acall(name, arguments), self._loop).result()

    async def acall(self, name: str, arguments: Mapping[str, Any] | None = None) -> McpResult:
        """Call a tool.

        Args:
            name: Of the tool.
            arguments: By name; JSON data.

        Returns:
            Its result, which may be an error of the tool.

        Raises:
            PredictionError: There is no result: the server cannot be reached, takes too long, writes too much, refuses
                the call, or the call is not recorded.
        """
        values = dict(arguments or {})
        if self._connection is not None:
            data = await self._connection.call(name, values)
            if self._recorded is not None:
                self._recorded.add(name, values, data)
        else:
            assert self._recorded is not None
            data = self._recorded.replayed(name, values)
        result = McpResult(data.get("content") or (), data.get("structuredContent"), data.get("isError") is True)
        answer = result.text if result.structured is None else result.structured
        self.calls.append({"name": name, "arguments": values, "result": answer, "is_error": result.failed})
        return result


class Connection:
    """A running connection to an MCP server in a task of its own, so that cancelling a case keeps it whole."""

    def __init__(self, server: McpServer) -> None:
        require_sdk()
        self._server = server
        self._redactor = Redactor(server.headers.values(), {**os.environ, **server.environment})
        self._left = server.max_output
        self._fault = ""
        self._over = asyncio.Event()
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._keep())

    async def __aenter__(self) -> Self:
        try:
            return await self.ready()
        except BaseException:
            await self.__aexit__()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._over.set()
        await asyncio.gather(self._task, return_exceptions=True)

    async def ready(self) -> Self:
        """Return the connection once the server has answered.

        Raises:
            PredictionError: It does not.
        """
        await asyncio.shield(self._client)
        return self

    @asynccontextmanager
    async def deadline(self) -> AsyncIterator[None]:
        """Limit the time of several requests together, however many the server asks for; raises `PredictionError`."""
        try:
            async with asyncio.timeout(self._server.timeout):
                yield
        except TimeoutError as error:
            raise self._error(error) from None

    @property
    def is_usable(self) -> bool:
        """Whether it may still answer, in this event loop."""
        return self._task.get_loop() is asyncio.get_running_loop() and not (self._fault or self._task.done())

    async def _keep(self) -> None:
        try:
            async with self._transport() as transport, _client(transport, self._server.timeout) as client:
                self._client.set_result(client)
                await self._over.wait()
        except Exception as error:  # noqa: BLE001 (whatever the SDK or the server does is an error of the case)
            if not self._client.done():
                self._client.set_exception(self._error(error))
                self._client.exception()  # reported by whoever waits, if any does

    def _error(self, error: BaseException) -> PredictionError:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, TimeoutError):
            error = PredictionError(f"did not answer within {self._server.timeout:g} s")
        why = self._fault or (str(error) if isinstance(error, PredictionError) else AnyError(error).text)
        return PredictionError(f"MCP server {self._redactor.line(str(self._server))}: {self._redactor.line(why)}")

    async def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of a tool as JSON data; raises `PredictionError`."""
        return await self._answered(methodcaller("call_tool", name, dict(arguments)), f"tool {name}: ")

    async def tools(self) -> list[dict[str, Any]]:
        """Return all definitions of tools, sorted by name; raises `PredictionError`."""
        tools: list[dict[str, Any]] = []
        cursor: str | None = None
        before: set[str] = set()
        async with self.deadline():
            while True:
                page = await self._answered(methodcaller("list_tools", cursor=cursor))
                tools += page["tools"]
                if not (cursor := page.get("nextCursor")):  # some servers end the list with an empty one
                    break
                if cursor in before:
                    raise self._error(PredictionError(f"the list of tools returns to its page {cursor!r}"))
                before.add(cursor)
        return sorted(
            ({name: tool[name] for name in sorted(tool) if name not in _VOLATILE} for tool in tools),
            key=lambda each: str(each["name"]),
        )

    async def instructions(self) -> str:
        """Return the instructions to the model; empty without."""
        return (await self._client).instructions or ""

    async def _answered(self, ask: Any, what: str = "") -> dict[str, Any]:
        client = await asyncio.shield(self._client)
        try:
            async with asyncio.timeout(self._server.timeout):
                reply = await ask(client)
        except TimeoutError:
            raise self._error(PredictionError(f"{what}took longer than {self._server.timeout:g} s")) from None
        except Exception as error:  # noqa: BLE001 (see above)
            raise self._error(PredictionError(f"{what}{AnyError(error).text}")) from None
        data: dict[str, Any] = reply.model_dump(mode="json", by_alias=True, exclude_none=True)
        return data

    def _count(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            self._fail(f"wrote more than {self._server.max_output} bytes")
            raise PredictionError(self._fault)

    def _fail(self, fault: str) -> None:
        """End the connection, which cannot be used any more."""
        self._fault = self._fault or fault
        self._over.set()

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[Any]:
        """Start the server if it has a command, and give a transport of the SDK; all that was started dies."""
        server = self._server
        port = str(_free_port()) if PORT in server.url else ""
        url = server.url.replace(PORT, port)
        if not server.command:
            yield self._over_http(url)
            return
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        program = await FamilyProgram.start(
            [word.replace(PORT, port) for word in server.command],
            server.folder,
            {**inherited, **server.environment},
            longest=server.max_output,
        )
        try:
            if not url:
                yield self._over_stdio(program)
                return
            output = asyncio.create_task(self._skipped(program))
            try:
                await self._listening(url)
                yield self._over_http(url)
            finally:
                output.cancel()
        finally:
            await program.kill()

    async def _skipped(self, program: FamilyProgram) -> None:
        ending = await program.skip_output()
        self._fail(f"{ending}{self._stderr(program)}")

    async def _listening(self, url: str) -> None:
        """Wait until a program accepts connections.

        Raises:
            PredictionError: It ends, or takes too long.
        """
        parts = urlsplit(url)
        port = 80 if parts.port is None else parts.port
        try:
            async with asyncio.timeout(self._server.timeout):
                while not self._fault:
                    with contextlib.suppress(OSError):
                        _, writer = await asyncio.open_connection(parts.hostname, port)
                        writer.close()
                        return
                    await asyncio.sleep(_PAUSE_S)
        except TimeoutError:
            raise PredictionError(f"did not listen within {self._server.timeout:g} s") from None
        raise PredictionError(self._fault)

    def _stderr(self, program: FamilyProgram) -> str:
        text = program.stderr.strip()
        return f"; stderr: {self._redactor.excerpt(text, end=True)}" if text else ""

    @asynccontextmanager
    async def _over_http(self, url: str) -> AsyncIterator[Any]:
        from httpx2 import AsyncByteStream, AsyncClient, Timeout
        from mcp.client.streamable_http import streamable_http_client

        class Counted(AsyncByteStream):  # type: ignore[misc]
            def __init__(self, stream: Any, count: Callable[[int], None]) -> None:
                self.stream, self.count = stream, count

            async def __aiter__(self) -> AsyncIterator[bytes]:
                async for chunk in self.stream:
                    self.count(len(chunk))
                    yield chunk

            async def aclose(self) -> None:
                await self.stream.aclose()

        async def limit(response: Any) -> None:
            response.stream = Counted(response.stream, self._count)

        timeout = Timeout(self._server.timeout)
        async with (
            AsyncClient(headers=self._server.headers, timeout=timeout, event_hooks={"response": [limit]}) as client,
            streamable_http_client(url, http_client=client) as streams,
        ):
            yield streams

    @asynccontextmanager
    async def _over_stdio(self, program: FamilyProgram) -> AsyncIterator[Any]:
        """Give the streams of messages over the standard streams of a program."""
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        to_session, incoming = anyio.create_memory_object_stream[Any](0)
        outgoing, from_session = anyio.create_memory_object_stream[Any](0)

        async def read() -> None:
            async with to_session:
                try:
                    while True:
                        line = await program.receive()
                        self._count(len(line))
                        try:
                            message: Any = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
                        except ValueError:
                            raise PredictionError(
                                f"wrote {self._redactor.excerpt(line)} on stdout, expected messages of JSON-RPC; "
                                "anything else belongs on stderr"
                            ) from None
                        await to_session.send(message)
                except PredictionError as error:  # the session sees its stream end
                    self._fail(f"{error}{self._stderr(program)}")
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    pass

        async def write() -> None:
            async with from_session:
                with contextlib.suppress(PredictionError):  # the reader says how it ended
                    async for session_message in from_session:
                        await program.send(
                            session_message.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
                        )

        async with incoming, outgoing, anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            tasks.start_soon(write)
            yield incoming, outgoing
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def _client(transport: Any, timeout: float) -> "AsyncIterator[Client]":
    """A connected client of an MCP server; the timeout applies to connecting only."""
    from mcp import Client

    async with asyncio.timeout(timeout) as limit, Client(transport, cache=None) as client:
        limit.reschedule(None)
        yield client


def require_sdk() -> None:
    """Import the SDK of the Model Context Protocol; if it is absent, name the extra to install.

    Raises:
        MissingExtraError: It is not installed.
    """
    with MissingExtraError.unless_installed("a server of the Model Context Protocol", "mcp"):
        import mcp  # noqa: F401


def _free_port() -> int:
    """A free local TCP port for an MCP server that is started over HTTP."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port

"""HTTP servers on this machine: models, searches, services as targets, and a collector of OpenTelemetry.

`LlmServer` speaks OpenAI's chat completions, Anthropic's messages at paths that end in ``/messages``, and Gemini's
interface at those that end in ``:generateContent``:

    with LlmServer(status(500), reply("yes")) as server:   # the first call fails, the second succeeds,
        ...                                                # and so does each further one: the last answer stays
        server.base_url                                    # for `base_url:` of a suite, also in a subprocess
        server.calls[0].prompt                             # what was asked; .body, .headers, .path
        server.most_in_flight

An answer is a function of the call, so answers may be computed: ``LlmServer(lambda call: reply(call.prompt)(call))``.
"""

import asyncio
import gzip
import json
import math
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, TypeAlias

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pytest_llmeval.core import PredictionError
from pytest_llmeval.targets._network import HttpTarget
from pytest_llmeval.targets._spec import HttpSpec

PATIENCE = 300.0
"""Seconds after which a test that waits for ever is given up; a loaded machine may need most of them."""


@dataclass(frozen=True)
class Call:
    """What the server was asked.

    Attributes:
        number: From 1, in order of arrival.
        path: Of the address.
        headers: Names in lower case.
        body: The JSON that was sent.
    """

    number: int
    path: str
    headers: Mapping[str, str]
    body: Any

    @property
    def prompt(self) -> str:
        """The last message."""
        if self.is_gemini:
            return str(self.body["contents"][-1]["parts"][0]["text"])
        return str(self.body["messages"][-1]["content"])

    @property
    def text(self) -> str:
        """All instructions and messages."""
        if self.is_gemini:
            return json.dumps(self.body, ensure_ascii=False)
        messages = [str(each["content"]) for each in self.body["messages"]]
        return "\n".join([str(self.body.get("system", "")), *messages])

    @property
    def is_gemini(self) -> bool:
        return self.path.endswith(":generateContent")

    @property
    def is_anthropic(self) -> bool:
        return self.path.endswith("/messages")


@dataclass(frozen=True)
class Sent:
    """What goes over the wire.

    Attributes:
        body: Its bytes.
        status: Of HTTP.
        headers: Beside those that describe the body.
        length: The length announced; more than the body has makes it truncated.
        drop: Whether the connection is closed without a word.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None
    drop: bool = False


Answer: TypeAlias = Callable[[Call], Sent]


def raw(body: bytes | str, status: int = 200, **headers: str) -> Answer:
    """Answer with any body; ``_`` in names of headers stands for ``-``."""
    data = body.encode() if isinstance(body, str) else body
    sent = Sent(data, status, {name.replace("_", "-"): value for name, value in headers.items()})
    return lambda _: sent


def data(value: Any, status: int = 200, **headers: str) -> Answer:
    """Answer with any JSON."""
    return raw(json.dumps(value), status, **headers)


def reply(text: str | None, stopped: str = "", *, tokens: tuple[int, int] | None = (10, 5)) -> Answer:
    """Answer as a model does that says `text`.

    Args:
        text: Of the reply; ``None`` for none.
        stopped: The provider's own word for why the model stopped.
        tokens: Read and written; ``None`` leaves them out.
    """

    def answer(call: Call) -> Sent:
        value: dict[str, Any]
        if call.is_gemini:
            parts = {"role": "model", "parts": [] if text is None else [{"text": text}]}
            value = {"candidates": [{"content": parts, "finishReason": stopped or "STOP"}]}
            if tokens is not None:
                value["usageMetadata"] = {"promptTokenCount": tokens[0], "candidatesTokenCount": tokens[1]}
            return data(value)(call)
        if call.is_anthropic:
            content = [] if text is None else [{"type": "text", "text": text}]
            value = {"type": "message", "content": content, "stop_reason": stopped or "end_turn"}
            names = ("input_tokens", "output_tokens")
        else:
            choice = {"message": {"role": "assistant", "content": text}, "finish_reason": stopped or "stop"}
            value = {"object": "chat.completion", "choices": [choice]}
            names = ("prompt_tokens", "completion_tokens")
        if tokens is not None:
            value["usage"] = dict(zip(names, tokens, strict=True))
        return data(value)(call)

    return answer


def weighed(text: str, shares: Mapping[str, float]) -> Answer:
    """Answer as an OpenAI-compatible model does that gives probabilities: a token for each character.

    Args:
        text: Of the reply.
        shares: Probabilities of the digits that could stand in place of the last digit of the reply.
    """
    last = max(place for place, each in enumerate(text) if each.isdigit())

    def answer(call: Call) -> Sent:
        value = json.loads(reply(text)(call).body)
        if call.body.get("logprobs"):
            others = [{"token": token, "logprob": math.log(share)} for token, share in shares.items()]
            tokens = [{"token": each, "logprob": 0.0, "top_logprobs": []} for each in text]
            tokens[last] |= {"logprob": math.log(shares[text[last]]), "top_logprobs": others}
            value["choices"][0]["logprobs"] = {"content": tokens}
        return data(value)(call)

    return answer


def embedded(vector: Callable[[str], Sequence[float]], *, tokens: int | None = 4) -> Answer:
    """Answer as an OpenAI-compatible model of embeddings does, last text first.

    Args:
        vector: Returns the vector of a text.
        tokens: Of each text; ``None`` leaves them out.
    """

    def answer(call: Call) -> Sent:
        entries = [{"index": number, "embedding": list(vector(text))} for number, text in enumerate(call.body["input"])]
        usage = {} if tokens is None else {"usage": {"prompt_tokens": tokens * len(entries)}}
        return data({"object": "list", "data": entries[::-1], **usage})(call)

    return answer


def cut_off(text: str) -> Answer:
    """Answer as a model does that ran out of tokens."""
    return lambda call: reply(text, "max_tokens" if call.is_anthropic else "length")(call)


def refusal(text: str) -> Answer:
    """Answer as a model does that refuses."""

    def answer(call: Call) -> Sent:
        if call.is_anthropic:
            return reply(text, "refusal")(call)
        choice = {"message": {"content": None, "refusal": text}, "finish_reason": "stop"}
        return data({"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 5}})(call)

    return answer


def filtered() -> Answer:
    """Answer as a provider does that filtered the model's words."""
    return lambda call: reply(None, "refusal" if call.is_anthropic else "content_filter")(call)


def beside(what: str) -> Answer:
    """Answer as a model does that writes no text: it calls a ``tool`` of its own, or writes ``thoughts``."""

    def answer(call: Call) -> Sent:
        arguments = {"score": 1}
        if call.is_anthropic:
            blocks = {
                "tool": {"type": "tool_use", "id": "t1", "name": "grade", "input": arguments},
                "thoughts": {"type": "thinking", "thinking": "It is good."},
            }
            used = {"input_tokens": 10, "output_tokens": 5}
            return data({"type": "message", "content": [blocks[what]], "stop_reason": "end_turn", "usage": used})(call)
        function = {"name": "grade", "arguments": json.dumps(arguments)}
        fields = {"tool": {"tool_calls": [{"function": function}]}, "thoughts": {"reasoning_content": "It is good."}}
        choice = {"message": {"content": None, **fields[what]}, "finish_reason": "stop"}
        return data({"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 5}})(call)

    return answer


def tool(value: Any) -> Answer:
    """Answer as Anthropic's models do that use the first tool that they were given."""

    def answer(call: Call) -> Sent:
        use = {"type": "tool_use", "id": "t1", "name": call.body["tools"][0]["name"], "input": value}
        used = {"input_tokens": 10, "output_tokens": 5}
        return data({"type": "message", "content": [use], "stop_reason": "tool_use", "usage": used})(call)

    return answer


def status(code: int, message: str = "out of order", **headers: str) -> Answer:
    """Answer with an error, such as ``status(429, retry_after="0")``."""
    return data({"error": {"message": message}}, code, **headers)


def malformed() -> Answer:
    """Answer 200 with what is no JSON."""
    return raw('{"choices": [{"message": ')


def truncated() -> Answer:
    """Answer with less than was announced."""
    return lambda _: Sent(b'{"choices": ', length=1000)


def dropped() -> Answer:
    """Close the connection without an answer."""
    return lambda _: Sent(drop=True)


def held(until: threading.Event, answer: Answer) -> Answer:
    """Answer only once an event is set."""

    def wait(call: Call) -> Sent:
        until.wait(PATIENCE)
        return answer(call)

    return wait


def late(seconds: float, answer: Answer) -> Answer:
    """Answer after a while, for benchmarks; tests use `held`."""

    def wait(call: Call) -> Sent:
        threading.Event().wait(seconds)
        return answer(call)

    return wait


class LlmServer:
    """Answers calls on a free port of 127.0.0.1 from ``with`` to its end.

    Attributes:
        calls: What was asked, in order of arrival.
        most_in_flight: The largest number of calls that were answered at the same time.
    """

    def __init__(self, *answers: Answer) -> None:
        self.calls: list[Call] = []
        self.most_in_flight = 0
        self._in_flight = 0
        self._changed = threading.Condition()
        self._connections: set[socket.socket] = set()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.script(*(answers or (reply("yes"),)))

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def base_url(self) -> str:
        """The address that clients are given."""
        return f"{self.url}/v1"

    def script(self, *answers: Answer) -> None:
        """Answer the next calls one by one; the last answer stays."""
        self._answers = list(answers)

    def wait_for_calls(self, number: int) -> None:
        """Wait until so many calls have arrived."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.calls) >= number, PATIENCE), f"{len(self.calls)} calls"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        with self._changed:
            for connection in self._connections:
                _hang_up(connection)
        self._thread.join()

    def _arrived(self, path: str, headers: Mapping[str, str], body: Any) -> tuple[Call, Answer]:
        with self._changed:
            call = Call(len(self.calls) + 1, path, headers, body)
            self.calls.append(call)
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
            answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
            self._changed.notify_all()
        return call, answer

    def _left(self) -> None:
        with self._changed:
            self._in_flight -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that hang up are part of the tests."""


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # it is gone already
        return


def _handler(server: LlmServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1
        """Headers and body leave together: two packets would meet delayed acknowledgements."""

        def setup(self) -> None:
            super().setup()
            with server._changed:
                server._connections.add(self.connection)

        def finish(self) -> None:
            with server._changed:
                server._connections.discard(self.connection)
            super().finish()

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            call, answer = server._arrived(self.path, headers, json.loads(content))
            try:
                sent = answer(call)
            finally:
                server._left()
            self._send(sent)

        def _send(self, sent: Sent) -> None:
            whole = sent.length is None
            self.close_connection = self.close_connection or sent.drop or not whole
            if sent.drop:
                _hang_up(self.connection)
                return
            self.send_response(sent.status)
            for name, value in {"content-type": "application/json", **sent.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(sent.body) if whole else sent.length))
            if self.close_connection:
                self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(sent.body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name is that of the base class)
            pass

    return Handler


@dataclass(frozen=True)
class SearchAnswer:
    """What a request gets.

    Attributes:
        body: Sent as JSON unless it is bytes.
        status: Of the reply.
        headers: Besides the usual ones.
        drop: Close the connection without a word.
        cut: Promise more bytes than are sent.
        wait: Hold the reply back until this is set.
        reason: The words for the status; ``None`` for the usual ones.
    """

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    cut: bool = False
    wait: threading.Event | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Request:
    """What came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Behaviour = Callable[[Request, int], SearchAnswer]
"""Receives a request and how many came before it."""


class SearchServer(ThreadingHTTPServer):
    """The service.

    Attributes:
        requests: All that came in, in order.
        most: How many were under way at once, at most.
        released: Set at the end, so that nothing that waits for it outlives the test.
    """

    request_queue_size = 128  # by default 5 clients may wait, and others are refused now and then
    daemon_threads = True
    block_on_close = False

    def __init__(self, behave: Behaviour) -> None:
        super().__init__(("127.0.0.1", 0), _SearchHandler)
        self.behave = behave
        self.requests: list[Request] = []
        self.most = 0
        self.released = threading.Event()
        self._under_way = 0
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"{'https' if isinstance(self.socket, ssl.SSLSocket) else 'http'}://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that leave early are part of the tests."""

    def enter(self, request: Request) -> int:
        with self._lock:
            self.requests.append(request)
            self._under_way += 1
            self.most = max(self.most, self._under_way)
            return len(self.requests) - 1

    def leave(self) -> None:
        with self._lock:
            self._under_way -= 1


class _SearchHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SearchServer

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, body)
        number = self.server.enter(request)
        try:
            answer = self.server.behave(request, number)
            if answer.wait is not None:
                answer.wait.wait()
        finally:
            self.server.leave()
        self._send(answer)

    def _send(self, answer: SearchAnswer) -> None:
        if answer.drop:
            self.close_connection = True
            return
        content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status, answer.reason)
        self.send_header("Content-Length", str(len(content) + (100 if answer.cut else 0)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        self.close_connection = self.close_connection or answer.cut

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name that the base class gives it)
        """Print nothing."""


def echo(request: Request, number: int) -> SearchAnswer:
    """Answer every query with itself in capitals."""
    del number
    return SearchAnswer({"results": [query.upper() for query in request.json["queries"]]})


@contextmanager
def serving(behave: Behaviour = echo, *, tls: ssl.SSLContext | None = None) -> Iterator[SearchServer]:
    """Run a service as long as the block runs, over TLS where a context is given."""
    server = SearchServer(behave)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


BATCH = {"queries": {"$each": {"$input": True}}, "top_k": 3}


def ask(
    server: SearchServer | str, *batches: Sequence[Any], waits: list[float] | None = None, **options: Any
) -> list[list[Any]]:
    """Send batches to the service, one after the other; errors come back as their texts, without the address."""
    url = server if isinstance(server, str) else f"{server.url}/search?key=hidden"
    keywords = {key: options.pop(key) for key in ("environment", "largest_reply") if key in options}
    spec = HttpSpec(url, **{"request": BATCH, "response": "results", **options})

    async def sleep(seconds: float) -> None:
        if waits is not None:
            waits.append(seconds)

    async def run() -> list[list[Any]]:
        target = HttpTarget(spec, sleep=sleep, **keywords)
        try:
            return [await target.answer(batch) for batch in batches]
        finally:
            await target.aclose()
            await target.aclose()

    shown = url.partition("?")[0]

    def plain(answer: Any) -> Any:
        return str(answer).replace(shown, "URL") if isinstance(answer, PredictionError) else answer

    return [[plain(answer) for answer in answers] for answers in asyncio.run(run())]


def always(answer: SearchAnswer) -> Any:
    return lambda *_: answer


class Collector(ThreadingHTTPServer):
    """The collector.

    Attributes:
        status: What it answers.
        logs: Records that came in.
        spans: Spans that came in.
        resources: Attributes of what sent them.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.logs: list[Any] = []
        self.spans: list[Any] = []
        self.resources: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


def values(attributes: Any) -> dict[str, Any]:
    """Return attributes by name."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if self.path.endswith("/v1/logs"):
            logs = ExportLogsServiceRequest.FromString(body)
            for each in logs.resource_logs:
                self.server.resources.append(values(each.resource.attributes))
                self.server.logs += [record for scope in each.scope_logs for record in scope.log_records]
        else:
            traces = ExportTraceServiceRequest.FromString(body)
            for part in traces.resource_spans:
                self.server.resources.append(values(part.resource.attributes))
                self.server.spans += [span for scope in part.scope_spans for span in scope.spans]
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name there)
        """Be silent."""


@contextmanager
def collecting() -> Iterator[Collector]:
    """Serve until the end of the block."""
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""A search service for tests: real HTTP on 127.0.0.1, which answers as a function says."""

__all__ = ("Answer", "Request", "SearchServer", "echo", "serving")

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
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


Behaviour = Callable[[Request, int], Answer]
"""Receives a request and how many came before it."""


class SearchServer(ThreadingHTTPServer):
    """The service.

    Attributes:
        requests: All that came in, in order.
        most: How many were under way at once, at most.
        released: Set at the end, so that nothing that waits for it outlives the test.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, behave: Behaviour) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
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


class _Handler(BaseHTTPRequestHandler):
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

    def _send(self, answer: Answer) -> None:
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


def echo(request: Request, number: int) -> Answer:
    """Answer every query with itself in capitals."""
    del number
    return Answer({"results": [query.upper() for query in request.json["queries"]]})


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

"""A page for the browser of this machine alone: on loopback, behind a random token."""

import os
import secrets
import sys
from collections.abc import Callable
from hmac import compare_digest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from pytest_llmeval.core import parse_digits

_HOST: Final = "127.0.0.1"
_MOST_BYTES: Final = 16 << 20
_WAIT_S: Final = 30.0
_TOKEN_BYTES: Final = 32
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class RefusedError(Exception):
    """A request to the review server that is refused; its text is the reply."""


class LoopbackServer(ThreadingHTTPServer):
    """Serves the review page on this machine, to anyone who knows the address.

    The token in the address keeps other users of the machine out. Pages of other sites are kept out by the names of
    host and origin too, so that a name that is bound anew to this machine gains nothing.

    Args:
        page: The page, as HTML.
        read: Returns a text that the page asks for, by the query's ``annotator``.
        save: Takes what the page sends; raises `RefusedError` for what it cannot take, OSError where it cannot be kept.
        port: Where to listen; 0: any that is free.
    """

    daemon_threads = True
    allow_reuse_address = os.name == "posix"  # where it cannot take a port from who listens

    def __init__(self, page: str, read: Callable[[str], str], save: Callable[[bytes], None], port: int = 0) -> None:
        super().__init__((_HOST, port), _Handler)
        self.page = page
        self.read = read
        self.save = save
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self.lock = Lock()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report errors, but not that a browser has closed a connection."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """The address of the page, with the token."""
        return f"http://{_HOST}:{self.server_port}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    """The HTTP requests of the review page, from the browser of this machine."""

    server: LoopbackServer
    timeout = _WAIT_S
    protocol_version = "HTTP/1.1"
    server_version = "llmeval"
    sys_version = ""

    def do_GET(self) -> None:
        """Reply with the page, or with what it reads."""
        address = self._path()
        if address is None:
            return
        path, query = address
        if path == "":
            self._reply(HTTPStatus.OK, self.server.page, "text/html")
        elif path == "labels":
            with self.server.lock:
                try:
                    text = self.server.read(parse_qs(query).get("annotator", [""])[0])
                except (OSError, RefusedError) as error:
                    self._reply(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
                else:
                    self._reply(HTTPStatus.OK, text)
        else:
            self._reply(HTTPStatus.NOT_FOUND, "nothing here")

    def do_POST(self) -> None:
        """Take what the page sends."""
        address = self._path()
        if address is None:
            return
        if address[0] != "labels":
            self._reply(HTTPStatus.NOT_FOUND, "nothing here")
        elif self.headers.get("Origin") != f"http://{self.headers['Host']}":
            self._reply(HTTPStatus.FORBIDDEN, "not from the page itself")
        elif self.headers.get_content_type() != "application/json":
            self._reply(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected JSON")
        elif (body := self._body()) is not None:
            self._save(body)

    def _save(self, body: bytes) -> None:
        try:
            with self.server.lock:
                self.server.save(body)
        except RefusedError as error:
            self._reply(HTTPStatus.BAD_REQUEST, str(error))
        except OSError as error:
            self._reply(HTTPStatus.INTERNAL_SERVER_ERROR, f"cannot be written ({error.strerror})")
        else:
            self._reply(HTTPStatus.OK, "saved")

    def _path(self) -> tuple[str, str] | None:
        """Return path and query behind the token, after refusing any other client."""
        hosts = {f"{name}:{self.server.server_port}" for name in (_HOST, "localhost")}
        if self.headers.get("Host") not in hosts:
            self._reply(HTTPStatus.FORBIDDEN, "found another host, expected the address that was printed")
            return None
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            self._reply(HTTPStatus.FORBIDDEN, "not from another page")
            return None
        address = urlsplit(self.path)
        token, _, path = address.path.removeprefix("/").partition("/")
        if not compare_digest(token.encode(), self.server.token.encode()):
            self._reply(HTTPStatus.FORBIDDEN, "the token is missing or wrong: open the address that was printed")
            return None
        return path, address.query

    def _body(self) -> bytes | None:
        size = self.headers.get("Content-Length", "")
        if not (size.isascii() and size.isdigit()):
            self._reply(HTTPStatus.LENGTH_REQUIRED, "expected a length")
        elif (length := parse_digits(size)) is None or length > _MOST_BYTES:
            self._reply(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too much")
        else:
            return self.rfile.read(length)
        return None

    def _reply(self, status: HTTPStatus, text: str, kind: str = "text/plain") -> None:
        data = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        if status is not HTTPStatus.OK:
            self.send_header("Connection", "close")  # its body has not been read
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Log nothing: addresses have the token."""

"""A page on loopback: for whoever has the address, and for no other page, host or origin."""

import threading
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection

import pytest

from pytest_llmeval.workbench.reviews._loopback import LoopbackServer, RefusedError


class Kept:
    """What was sent."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def read(self, annotator: str) -> str:
        return f"labels of {annotator}"

    def save(self, body: bytes) -> None:
        if body == b"wrong":
            raise RefusedError("label: found 9")
        if body == b"full":
            raise OSError(28, "No space left on device")
        self.bodies.append(body)


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def server(kept: Kept) -> Iterator[LoopbackServer]:
    with LoopbackServer("<p>page</p>", kept.read, kept.save) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def ask(
    server: LoopbackServer, method: str, path: str, headers: Mapping[str, str | None] | None = None, body: bytes = b""
) -> tuple[int, str, Mapping[str, str]]:
    """Send one request as the page would; headers replace its own, or leave them out."""
    host = f"127.0.0.1:{server.server_port}"
    given: dict[str, str | None] = {"Host": host, "Sec-Fetch-Site": "same-origin"}
    if method == "POST":
        given |= {"Origin": f"http://{host}", "Content-Type": "application/json", "Content-Length": str(len(body))}
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    for name, value in {**given, **(headers or {})}.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders(body)
    reply = connection.getresponse()
    found = reply.status, reply.read().decode(), dict(reply.getheaders())
    connection.close()
    return found


def test_the_page_reads_and_sends_behind_the_token(server: LoopbackServer, kept: Kept) -> None:
    status, text, headers = ask(server, "GET", f"/{server.token}/", {"Sec-Fetch-Site": "none"})
    assert (status, text) == (200, "<p>page</p>")
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert ask(server, "GET", f"/{server.token}/labels?annotator=Ana%20B")[:2] == (200, "labels of Ana B")
    assert ask(server, "POST", f"/{server.token}/labels", body=b"{}")[0] == 200
    assert kept.bodies == [b"{}"]
    assert server.server_address[0] == "127.0.0.1"
    assert len(server.token) >= 43


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "example.org"},
        {"Host": "127.0.0.1"},
        {"Host": None},
        {"Origin": "https://example.org"},
        {"Origin": "null"},
        {"Origin": None},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_other_hosts_and_origins_are_refused_although_they_know_the_token(
    server: LoopbackServer, kept: Kept, headers: Mapping[str, str | None]
) -> None:
    assert ask(server, "POST", f"/{server.token}/labels", headers, b"{}")[0] == 403
    assert kept.bodies == []
    if "Origin" not in headers:
        assert ask(server, "GET", f"/{server.token}/", headers)[0] == 403


@pytest.mark.parametrize("path", ["/", "/labels", "/wrong/labels", "/{token}x/labels", "/{short}/labels"])
def test_without_the_token_nothing_is_read_or_sent(server: LoopbackServer, kept: Kept, path: str) -> None:
    named = path.format(token=server.token, short=server.token[:-1])
    assert ask(server, "GET", named)[0] in (403, 404)
    assert ask(server, "POST", named, body=b"{}")[0] in (403, 404)
    assert kept.bodies == []


@pytest.mark.parametrize(
    ("headers", "body", "status", "text"),
    [
        ({"Content-Type": "text/plain"}, b"{}", 415, "expected JSON"),
        ({"Content-Length": None}, b"", 411, "expected a length"),
        ({"Content-Length": "-1"}, b"", 411, "expected a length"),
        ({"Content-Length": str(1 << 30)}, b"", 413, "too much"),
        ({"Content-Length": "9" * 5000}, b"", 413, "too much"),
        ({"Content-Length": "0" * 5000 + "5"}, b"wrong", 400, "label: found 9"),
        ({}, b"wrong", 400, "label: found 9"),
        ({}, b"full", 500, "cannot be written (No space left on device)"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_the_reason(
    server: LoopbackServer, kept: Kept, headers: Mapping[str, str | None], body: bytes, status: int, text: str
) -> None:
    assert ask(server, "POST", f"/{server.token}/labels", headers, body)[:2] == (status, text)
    assert kept.bodies == []


def test_other_paths_and_methods_are_not_there(server: LoopbackServer) -> None:
    assert ask(server, "GET", f"/{server.token}/etc/passwd")[0] == 404
    assert ask(server, "POST", f"/{server.token}/", body=b"{}")[0] == 404
    assert ask(server, "PUT", f"/{server.token}/labels")[0] == 501


def test_a_browser_that_goes_away_is_no_error(server: LoopbackServer, capfd: pytest.CaptureFixture[str]) -> None:
    for error in (BrokenPipeError(), ConnectionResetError(), TimeoutError()):
        try:
            raise error
        except OSError:
            server.handle_error(None, None)
    assert capfd.readouterr().err == ""

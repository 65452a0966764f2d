"""The HTTP exchange of judges and targets, against a local service."""

import asyncio
import gzip
import json
import shutil
import ssl
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest
from servers import SearchAnswer, echo, serving

from pytest_llmeval._version import __version__
from pytest_llmeval.services import AttemptError, Exchange, Redactor
from pytest_llmeval.services._http import NoReplyError, Reply

GZIP = {"Content-Encoding": "gzip"}
SECRET = "s3cret-token-of-the-service"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def send(url: str, *, method: str = "POST", largest: int = 1000, timeout: float = 60, **options: Any) -> Reply:
    async def once() -> Reply:
        exchange = Exchange(url, timeout=timeout, largest=largest)
        try:
            return await exchange.send(method, options.pop("headers", {}), Redactor([SECRET]), **options)
        finally:
            await exchange.aclose()

    return asyncio.run(once())


def test_a_request_says_who_asks_and_what_it_carries() -> None:
    with serving() as server:
        content = json.dumps({"queries": ["a"]}).encode()
        assert json.loads(send(server.url, content=content).body) == {"results": ["A"]}
        send(server.url, content=content, headers={"content-TYPE": "text/json", "accept": "*/*"})
        usual, given = (request.headers for request in server.requests)
    assert usual["user-agent"] == f"pytest-llmeval/{__version__}"
    assert (usual["accept"], usual["content-type"]) == ("application/json", "application/json")
    assert (given["accept"], given["content-type"]) == ("*/*", "text/json")


def test_a_request_without_body_names_no_type_of_one() -> None:
    with serving(lambda *_: SearchAnswer({})) as server:
        send(server.url, method="GET", parameters=[("q", "a b")])
        (request,) = server.requests
    assert request.path == "/?q=a+b"
    assert "content-type" not in request.headers


def test_cookies_are_not_kept() -> None:
    async def twice(url: str) -> None:
        exchange = Exchange(url, timeout=60, largest=1000)
        for _ in range(2):
            await exchange.send("GET", {}, Redactor())
        await exchange.aclose()

    with serving(lambda *_: SearchAnswer({}, headers={"Set-Cookie": "seen=yes"})) as server:
        asyncio.run(twice(server.url.replace("127.0.0.1", "localhost")))  # those of bare addresses no client keeps
        assert ["cookie" in request.headers for request in server.requests] == [False, False]


@pytest.mark.parametrize(("status", "ok"), [(200, True), (204, True), (301, False), (400, False), (500, False)])
def test_only_a_2xx_is_a_success(status: int, ok: bool) -> None:
    with serving(lambda *_: SearchAnswer(b"", status)) as server:
        assert send(server.url, method="GET").ok == ok


def test_a_reply_tells_its_delay_and_where_it_leads_without_the_query() -> None:
    headers = {"Retry-After": "7", "Location": f"/elsewhere?key={SECRET}"}
    with serving(lambda *_: SearchAnswer(b"", 307, headers)) as server:
        reply = send(server.url, method="GET")
        assert len(server.requests) == 1
    assert (AttemptError("", headers=reply.headers).retry_after, reply.leads_to) == (7, "/elsewhere")


@pytest.mark.parametrize(
    ("answer", "cause", "transient"),
    [
        (SearchAnswer(drop=True), "dropped", True),
        (SearchAnswer({"results": []}, cut=True), "dropped", True),
        (SearchAnswer(b"x" * 1001), "too large", False),
        (SearchAnswer(gzip.compress(b"x" * 1001), headers=GZIP), "too large", False),
        (SearchAnswer(gzip.compress(b"x" * (1 << 26)), headers=GZIP), "too large", False),
        (SearchAnswer(gzip.compress(b"x" * 900)[:-9], headers=GZIP), "dropped", True),
        (SearchAnswer(b"not compressed", headers=GZIP), "packed", False),
        (SearchAnswer(b"x", headers={"Content-Encoding": "br"}), "packed", False),
    ],
)
def test_a_request_without_reply_says_why_and_whether_it_may_pass(
    answer: SearchAnswer, cause: str, transient: bool
) -> None:
    with serving(lambda *_: answer) as server, pytest.raises(NoReplyError) as caught:
        send(server.url, method="GET")
    assert (caught.value.cause, caught.value.transient) == (cause, transient)


@pytest.mark.parametrize(
    ("body", "encoding"),
    [(gzip.compress(b"x" * 1000, mtime=0), "gzip"), (zlib.compress(b"x" * 1000), "deflate"), (b"x" * 1000, "Identity")],
    ids=["gzip", "deflate", "identity"],
)
def test_a_reply_that_is_compressed_unasked_is_read(body: bytes, encoding: str) -> None:
    with serving(lambda *_: SearchAnswer(body, headers={"Content-Encoding": encoding})) as server:
        assert send(server.url, method="GET").body == b"x" * 1000
        assert server.requests[0].headers["accept-encoding"] == "identity"


def test_a_reply_as_large_as_allowed_is_read_whole() -> None:
    with serving(lambda *_: SearchAnswer(b"x" * 1000)) as server:
        assert len(send(server.url, method="GET").body) == 1000


def test_a_slow_service_and_one_that_is_not_there_may_answer_later() -> None:
    with serving(lambda *_: SearchAnswer({}, wait=server.released)) as server, pytest.raises(NoReplyError) as slow:
        send(server.url, method="GET", timeout=0.05)
    with pytest.raises(NoReplyError) as gone:
        send(server.url, method="GET")
    assert (str(slow.value), slow.value.cause, slow.value.transient) == ("took longer than 0.05 s", "slow", True)
    assert (gone.value.cause, gone.value.transient) == ("unreachable", True)


def test_a_header_that_cannot_be_sent_is_told_without_its_value() -> None:
    with serving(echo) as server, pytest.raises(NoReplyError, match="the address, the proxy or the headers") as caught:
        send(server.url, method="GET", headers={"Authorization": f"{SECRET}\r\nX: y"})
    assert SECRET not in str(caught.value)
    assert (caught.value.cause, caught.value.transient) == ("unusable", False)
    assert caught.value.__suppress_context__


def test_what_a_service_repeats_of_a_secret_is_not_told() -> None:
    with (
        serving(lambda *_: SearchAnswer({}, headers={f"no name {SECRET}": "x"})) as server,
        pytest.raises(NoReplyError) as caught,
    ):
        send(server.url, method="GET", headers={"Authorization": SECRET})
    assert "no name ***" in str(caught.value)


def test_each_event_loop_has_connections_of_its_own() -> None:
    exchange = Exchange("http://127.0.0.1", timeout=60, largest=1000)
    loops = [asyncio.new_event_loop() for _ in range(2)]

    async def session() -> Any:
        return exchange._connect_session()

    first, again, other = (loop.run_until_complete(session()) for loop in (loops[0], loops[0], loops[1]))
    assert first is again
    assert first is not other
    for loop, each in zip(loops, (first, other), strict=True):
        loop.run_until_complete(each.close())
        loop.close()


def test_an_exchange_shows_neither_its_address_nor_its_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://me:{SECRET}@127.0.0.1:9")
    exchange = Exchange(f"http://search.example/?key={SECRET}", timeout=60, largest=1000)

    async def run() -> None:
        with pytest.raises(NoReplyError) as caught:
            await exchange.send("GET", {}, Redactor())
        assert SECRET not in str(caught.value)
        assert SECRET not in repr(exchange)
        await exchange.aclose()

    asyncio.run(run())


def test_what_is_no_http_is_told_on_one_line() -> None:
    answer = SearchAnswer({"results": ["A"]}, headers={"Content-Encoding": "gzip"})
    with serving(lambda *_: answer) as server, pytest.raises(NoReplyError) as caught:
        send(server.url, method="GET")
    assert str(caught.value) == "returned a body that is no gzip, expected its Content-Encoding"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes the certificate")
def test_a_certificate_that_nobody_vouches_for_is_told_as_such_and_will_not_pass(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost"]
    subprocess.run(["openssl", "req", *made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with serving(tls=context) as server:
        with pytest.raises(NoReplyError, match=r"^failed: ClientConnectorCertificateError: .*self-signed") as caught:
            send(server.url, method="GET")
        assert server.requests == []
    assert (caught.value.cause, caught.value.transient) == ("untrusted", False)


@pytest.mark.parametrize(("exempt", "through"), [("", 1), ("search.example", 0)])
@pytest.mark.parametrize("scheme", ["http://", ""])
def test_a_proxy_of_the_environment_is_used_with_and_without_its_scheme(
    exempt: str, through: int, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", exempt)
    address = "http://search.example:1/find"
    with serving(lambda *_: SearchAnswer({})) as proxy:
        monkeypatch.setenv("http_proxy", scheme + proxy.url.removeprefix("http://"))
        if through:
            assert send(address, method="GET").ok
        else:
            with pytest.raises(NoReplyError):
                send(address, method="GET")
        assert [each.path for each in proxy.requests] == [address] * through

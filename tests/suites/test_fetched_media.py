"""Addresses of hosts that a suite names: what is fetched, how often, and what is refused."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pictures import PDF, in_memory, png
from project import load_text
from servers import Request, SearchAnswer, SearchServer, serving

from pytest_llmeval import Media
from pytest_llmeval.core import MediaLimits, MediaRun
from pytest_llmeval.data import MediaFolder
from pytest_llmeval.suites import LoadedSuite

pytestmark = pytest.mark.usefixtures(in_memory.__name__)


ANSWERS = {
    "/a.png": SearchAnswer(png()),
    "/page": SearchAnswer(PDF, headers={"Content-Type": "application/pdf; charset=binary"}),
    "/wrong.png": SearchAnswer(PDF),
    "/moved": SearchAnswer(b"", 302, {"Location": "/a.png"}),
    "/away": SearchAnswer(b"", 302, {"Location": "http://localhost:1/a.png"}),
    "/circle": SearchAnswer(b"", 307, {"Location": "/circle"}),
    "/file": SearchAnswer(b"", 302, {"Location": "file:///etc/passwd"}),
    "/large.png": SearchAnswer(png(more=b"x" * 2000)),
    "/cut.png": SearchAnswer(png(), cut=True),
}


def answer(request: Request, number: int) -> SearchAnswer:
    del number
    return ANSWERS.get(request.path.partition("?")[0], SearchAnswer(b"", 404))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SearchServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(answer) as running:
        yield running


def load(folder: Path, server: SearchServer, *paths: str, **more: Any) -> LoadedSuite:
    host = server.url.removeprefix("http://")
    cases = [{"id": path, "input": {"file": path if ":" in path else f"{server.url}{path}", **more}} for path in paths]
    data = {"checks": ["not_empty"], "fetch": [host], "cases": cases}
    return load_text(json.dumps(data, indent=1), folder, root=folder)


def test_a_content_is_fetched_once_and_its_digest_is_the_identity(tmp_path: Path, server: SearchServer) -> None:
    MediaRun(partial(MediaFolder, tmp_path)).begin()
    for _ in range(2):
        suite = load(tmp_path, server, "/a.png?size=1", "/page", "/moved")
        assert [case.input for case in suite.cases] == [
            Media(data=png()).form,
            Media(data=PDF).form,
            Media(data=png()).form,
        ]
    assert [each.path for each in server.requests] == ["/a.png?size=1", "/page", "/moved", "/a.png"]
    assert not {"authorization", "cookie"} & server.requests[0].headers.keys()


def test_what_cannot_be_had_is_a_fault_of_its_case(tmp_path: Path, server: SearchServer) -> None:
    MediaRun(partial(MediaFolder, tmp_path), MediaLimits(file=1500)).begin()
    faults = {
        "/none.png": "found the status 404, expected 200",
        "/wrong.png": "found application/pdf, expected image/png, as its name says",
        "/away": "found the host 'localhost:1', expected one of `fetch`: 127.0.0.1:",
        "/circle": "it redirects more than 3 times",
        "/file": "expected an address such as https://example.org/a.png",
        "/large.png": "found more than 1.5 kB, expected at most that: raise --llmeval-media-limit",
        "/cut.png": f"found {len(png())} of {len(png()) + 100} bytes, expected all of them",
        "http://example.org/a.png": "expected one that begins with https:",
    }
    suite = load(tmp_path, server, "/a.png", *faults)
    assert [case.id for case in suite.cases] == ["/a.png"]
    assert len(suite.faults) == len(faults)
    for number, message in enumerate(faults.values(), 1):
        (fault,) = (each for each in suite.faults if each.path == f"cases[{number}].input.file")
        assert message in fault.message


def test_addresses_of_other_hosts_are_passed_on(tmp_path: Path, server: SearchServer) -> None:
    (case,) = load(tmp_path, server, "https://example.org/a.png").cases
    assert case.input == {"media": "image/png", "url": "https://example.org/a.png"}
    assert server.requests == []


def test_what_is_no_host_is_a_fault(tmp_path: Path) -> None:
    data = {"checks": ["not_empty"], "fetch": ["https://example.org", "*.example.org"], "cases": [{"input": "a"}]}
    suite = load_text(json.dumps(data), tmp_path, root=tmp_path)
    assert [each.path for each in suite.faults] == ["fetch[0]", "fetch[1]"]
    assert "expected a host such as example.org" in suite.faults[0].message

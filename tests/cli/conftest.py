"""Fixtures of the commands."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_judges import KEY, Suites
from servers import LlmServer


@pytest.fixture
def suites(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Suites]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with LlmServer() as server:
        yield Suites(here, server, capsys)

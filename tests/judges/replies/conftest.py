"""A working cache in a folder of its own, on a clock that the test moves."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from running import Clock

from pytest_llmeval.judges._coordination import Coordination
from pytest_llmeval.judges.replies._sqlite import SqliteReplies


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".llmeval" / "cache.sqlite3"


@pytest.fixture
def shared(path: Path, clock: Clock) -> Iterator[Coordination]:
    with Coordination(path, clock=clock, ticks=clock) as opened:
        yield opened


@pytest.fixture
def cache(path: Path, clock: Clock) -> Iterator[SqliteReplies]:
    with SqliteReplies(path, clock=clock, ticks=clock) as opened:
        yield opened

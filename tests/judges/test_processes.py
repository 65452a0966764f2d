"""Time that no clock setting changes, and processes that are known to have ended."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_llmeval.judges import _processes as processes
from pytest_llmeval.judges._processes import is_dead, process_name, ticks

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="without /proc no death is certain")

_NAME = "from pytest_llmeval.judges._processes import process_name; print(process_name(), flush=True); input()"


@pytest.fixture
def other() -> "Iterator[tuple[subprocess.Popen[str], str]]":
    """Another process and its name."""
    with subprocess.Popen(
        [sys.executable, "-c", _NAME], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
        process.kill()


def test_a_clock_that_is_set_back_moves_no_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    before = ticks()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 <= ticks() - before < 60


def test_ticks_of_another_boot_lie_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    before = ticks()
    processes._start_of_boot.cache_clear()
    monkeypatch.setattr(processes, "_boot", lambda: "another boot")
    try:
        assert abs(ticks() - before) > 86_400
    finally:
        processes._start_of_boot.cache_clear()


def test_a_process_is_dead_once_it_is_killed_even_before_it_is_reaped(
    other: "tuple[subprocess.Popen[str], str]",
) -> None:
    process, name = other
    assert not is_dead(process_name())
    assert not is_dead(name)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert is_dead(name)
    process.wait()
    assert is_dead(name)


def test_another_process_that_got_the_same_id_is_another() -> None:
    process, started, place = process_name().split(":")
    assert is_dead(f"{process}:{int(started) + 1}:{place}")


@pytest.mark.parametrize("name", ["", "run gw0", "99999999", "99999999::", "99999999:5:another machine"])
def test_of_what_cannot_be_looked_up_no_death_is_known(name: str) -> None:
    assert not is_dead(name)


def test_where_no_boot_has_a_name_ticks_go_on_across_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_boot", str)
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    assert ticks() == 1_800_000_000.0

"""Runs that are killed again and again: nothing that was answered is lost, asked for twice or written by halves."""

import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from kills import CASES, KINDS, Kill, kill

ROUNDS = 6
"""Of each of 45 kinds of kills, before a release: 270 in all."""


@pytest.mark.release
@pytest.mark.parametrize(("what", "number", "workers"), KINDS)
def test_killed_runs_lose_nothing(
    what: str,
    number: signal.Signals,
    workers: int,
    tmp_path: Path,
    thorough: bool,
    record_property: Callable[[str, object], None],
) -> None:
    found = Counter[str]()
    for turn in range(ROUNDS if thorough else 1):
        folder = tmp_path / str(turn)
        folder.mkdir()
        found += kill(folder, Kill(what, number, workers, after=CASES - turn * 7 % CASES))
    for name, count in found.items():
        record_property(name, count)
    assert {name: found[name] for name in ("lost", "twice", "halves", "incomplete") if found[name]} == {}

"""Runs that are killed again and again: nothing that was answered is lost, asked for twice or written by halves."""

import importlib
import signal
from itertools import product
from pathlib import Path

import pytest
from project import ROOT

ROUNDS = 9
"""Of each of 24 kinds of kills, before a release: 216 in all."""

KINDS = ("target", "world", "approval", "judge")


AT_A_TIME = 4


@pytest.mark.release
@pytest.mark.parametrize(
    ("what", "number", "workers"),
    list(product(KINDS, (signal.SIGTERM, signal.SIGINT, signal.SIGKILL), (0, 2))),
)
def test_killed_runs_lose_nothing(
    what: str, number: signal.Signals, workers: int, tmp_path: Path, thorough: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    kills = importlib.import_module("kills")

    for turn in range(ROUNDS if thorough else 1):
        folder = tmp_path / str(turn)
        folder.mkdir()
        found = kills.kill(folder, what, number, workers, after=1 + turn * 4 % (kills.CASES - 8))
        assert found["complete"] == 1
        # A target notes its answer before it returns it: SIGKILL may come between the two.
        returning = AT_A_TIME if number == signal.SIGKILL else 0
        assert found["twice"] <= returning
        assert found["kept"] >= found["delivered"] - returning

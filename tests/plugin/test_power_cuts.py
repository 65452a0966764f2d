"""A cut of power at each step of a run: every file is old or new, nothing is damaged, and the next run goes on."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from power_cuts import states
from running import OPTIONS, committed, fill, is_whole

from pytest_llmeval.run._stream import CaseResultWriter

if TYPE_CHECKING:
    from conftest import Project

OURS = ".llmeval-"
"""How the names begin of locks, and of files that are about to be written."""

LASTING = ("s.answers.jsonl", "s.failures.json")
"""Files whose content depends on the last run alone."""

WAITING = ".s.cases.jsonl."
"""How the name begins of statistics whose scores are about to be written."""


def rows(text: bytes) -> Iterator[Mapping[str, Any]]:
    for line in text.splitlines():
        with suppress(ValueError):
            yield json.loads(line)


def named(folder: Path) -> dict[str, bytes]:
    files = committed(folder).items()
    return {name: data for name, data in files if not name.startswith((OURS, WAITING))}


def restored(project: "Project", state: Path) -> None:
    for each in project.path.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    shutil.copytree(state, project.path, dirs_exist_ok=True)


@pytest.mark.release
def test_every_file_is_old_or_new_after_a_cut_of_power_and_the_next_run_goes_on(
    project: "Project", monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, thorough: bool
) -> None:
    monkeypatch.setenv("REASONS", "3")
    fill(project, monkeypatch)
    before = named(project.path)

    kept = tmp_path_factory.mktemp("cuts") / "states"
    monkeypatch.setenv("POWER_CUTS", str(kept))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.setenv("WRONG", "a")
    monkeypatch.setenv("LENGTH", "4")
    assert project.run(*OPTIONS, "-p", "power_cuts").code == 0
    after = named(project.path)
    history = list(rows((project.path / ".llmeval" / "history.jsonl").read_bytes()))
    assert len(history) == 3

    seen = set()
    for state in states(kept):
        found = named(state)
        assert {*before} & {*after} <= {*found}, state.name
        for name, data in found.items():
            assert data in (before.get(name), after.get(name)), (state.name, name)
        noted = (state / ".llmeval" / "history.jsonl").read_bytes()
        assert list(rows(noted))[:2] == history[:2]
        if (key := (frozenset(found.items()), noted)) in seen:
            continue
        seen.add(key)
        if len(seen) % 6 and not thorough:  # of all states, every sixth one is run on
            continue
        restored(project, state)
        ran = project.run(*OPTIONS)
        assert (ran.code, "Traceback" in ran.text) == (0, False), (state.name, ran.text)
        then = named(project.path)
        assert {name: then[name] for name in LASTING} == {name: after[name] for name in LASTING}
        assert all(is_whole(project.path / each) for each in ("s.eval.yaml", "p.jsonl", "r.html", "r.llmeval"))
        last = list(rows((project.path / ".llmeval" / "history.jsonl").read_bytes()))[-1]
        assert last["values"]["f1"] == history[-1]["values"]["f1"]
    assert len(seen) > 10


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_results_of_a_stream_are_synced_before_they_take_the_place_of_others(
    here: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    path, synced = here / f"results.{suffix}", []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(os.fstat(file).st_ino), sync(file)))
    writer = CaseResultWriter(path)
    writer.write([])
    writer.finish()
    assert path.stat().st_ino in synced

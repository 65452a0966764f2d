"""Answers on disk before their run ends: kept by a kill, merged once, shared by runs at the same time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_llmeval import MISSING, Case, SuiteError
from pytest_llmeval.data import OutputFile
from pytest_llmeval.targets import RecordingMode, Recordings
from pytest_llmeval.targets._recordings import Journal

CASES = [Case(name, name) for name in "abcd"]


def row(case: Case, answer: str) -> dict[str, object]:
    return Recordings.row("s", "", case.answered(answer))


def opened(root: Path, run: str, mode: RecordingMode = "auto") -> Recordings:
    path = root / "p.jsonl"
    return Recordings.of_run(path, mode, root, run, merges=True)


def answers(root: Path) -> dict[str, str]:
    path = root / "p.jsonl"
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines()) if path.exists() else ()
    return {each["case"]: each["prediction"] for each in rows}


def killed_run(root: Path, *names: str) -> Path:
    """Have another process keep answers and end without a word; return its journal."""
    code = f"""
import os, sys
from pathlib import Path
sys.path[:0] = {sys.path!r}
from pytest_llmeval import Case
from pytest_llmeval.targets._recordings import Journal
from pytest_llmeval.targets._recordings import Recordings
root = Path({str(root)!r})
path = root / "p.jsonl"
made = Recordings.of_run(path, "auto", root, "killed", merges=True)
for name in {names!r}:
    made.keep(Recordings.row("s", "", Case(name, name).answered("old " + name)))
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    (journal,) = (root / ".llmeval" / "answers").glob("*/killed.*.jsonl")
    return journal


def left(root: Path) -> list[str]:
    return [each.name for each in (root / ".llmeval").rglob("*") if each.name != ".gitignore" and each.is_file()]


def test_the_next_run_finds_and_merges_what_a_killed_run_was_answered(tmp_path: Path) -> None:
    journal = killed_run(tmp_path, "a", "b")
    with journal.open("a", encoding="utf-8") as file:
        file.write('{"suite": "s", "variant')  # cut off in the middle
    recordings = opened(tmp_path, "next")
    assert [recordings.get("s", "", each) for each in CASES[:3]] == ["old a", "old b", MISSING]
    assert answers(tmp_path) == {"a": "old a", "b": "old b"}
    assert left(tmp_path) == []


def test_a_later_answer_takes_the_place_of_what_a_killed_run_left(tmp_path: Path) -> None:
    recordings = opened(tmp_path, "first")
    recordings.update([row(CASES[0], "older")])
    killed_run(tmp_path, "a")
    recordings = opened(tmp_path, "next", "record")
    recordings.keep(row(CASES[0], "kept"))
    recordings.keep(row(CASES[1], "kept"))
    recordings.update([row(CASES[0], "new")])
    assert answers(tmp_path) == {"a": "new", "b": "kept"}


def test_what_arrives_after_the_report_is_merged_when_the_run_closes(tmp_path: Path) -> None:
    recordings = opened(tmp_path, "run")
    recordings.keep(row(CASES[0], "early"))
    recordings.update([])
    recordings.keep(row(CASES[1], "late"))
    recordings.close()
    assert answers(tmp_path) == {"a": "early", "b": "late"}
    assert left(tmp_path) == []


def test_what_was_read_and_not_written_because_of_an_interrupt_is_merged_when_the_run_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recordings = opened(tmp_path, "run")
    recordings.keep(row(CASES[0], "a"))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(OutputFile, "rewrite", interrupt)
        with pytest.raises(KeyboardInterrupt):
            recordings.update([])
    recordings.close()
    assert answers(tmp_path) == {"a": "a"}
    assert left(tmp_path) == []


def test_runs_at_the_same_time_keep_the_answers_of_both(tmp_path: Path) -> None:
    one, other = opened(tmp_path, "one"), opened(tmp_path, "other")
    one.update([row(CASES[0], "one")])
    other.update([row(CASES[1], "other")])
    assert answers(tmp_path) == {"a": "one", "b": "other"}


def test_an_answer_cut_off_by_a_full_disk_costs_no_other(tmp_path: Path) -> None:
    recordings = opened(tmp_path, "run")
    recordings.keep(row(CASES[0], "whole"))
    (journal,) = (tmp_path / ".llmeval" / "answers").glob("*/*.jsonl")
    with journal.open("a", encoding="utf-8") as file:
        file.write('\n{"suite"')
    recordings.keep(row(CASES[1], "whole"))
    recordings.update([])
    assert answers(tmp_path) == {"a": "whole", "b": "whole"}


def test_replay_writes_no_journal_and_merges_none(tmp_path: Path) -> None:
    opened(tmp_path, "first").update([row(CASES[0], "a")])
    killed_run(tmp_path, "b")
    before = (tmp_path / "p.jsonl").read_bytes(), left(tmp_path)
    recordings = opened(tmp_path, "next", "replay")
    recordings.keep(row(CASES[2], "c"))
    recordings.close()
    assert ((tmp_path / "p.jsonl").read_bytes(), left(tmp_path)) == before


def test_a_file_that_is_damaged_while_a_run_uses_it_stays_and_so_does_the_journal(tmp_path: Path) -> None:
    recordings = opened(tmp_path, "run")
    recordings.keep(row(CASES[0], "a"))
    (tmp_path / "p.jsonl").write_text("{\n", encoding="utf-8")
    with pytest.raises(SuiteError):
        recordings.update([])
    assert (tmp_path / "p.jsonl").read_text(encoding="utf-8") == "{\n"
    assert len(left(tmp_path)) == 1


def test_an_answer_that_cannot_be_kept_at_once_is_no_error(tmp_path: Path) -> None:
    (tmp_path / ".llmeval").symlink_to(tmp_path / "nowhere")
    recordings = opened(tmp_path, "run")
    recordings.keep(row(CASES[0], "a"))
    recordings.update([row(CASES[0], "a")])
    assert answers(tmp_path) == {"a": "a"}


def test_each_file_of_predictions_has_a_journal_of_its_own(tmp_path: Path) -> None:
    folders = {Journal.of_file(tmp_path / name, tmp_path, "run").folder for name in ("p.jsonl", "q.jsonl", "x/p.jsonl")}
    assert len(folders) == 3
    assert os.path.commonpath(folders) == str(tmp_path / ".llmeval" / "answers")

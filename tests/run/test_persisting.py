"""What a judged run leaves behind, and what is said about what could not be written."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from lengths import key_of, length_suite

from pytest_llmeval import Case, Observation
from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.data.files.processes import writer_name
from pytest_llmeval.judge.recordings import UsedJudgements
from pytest_llmeval.run.collected import CollectedRun, CollectedSuite, SuiteResults
from pytest_llmeval.run.judging import judge_run
from pytest_llmeval.run.persisting import Persisted, Stores, persist
from pytest_llmeval.snapshots.history import HISTORY
from pytest_llmeval.snapshots.keeper import Keeper
from pytest_llmeval.snapshots.mode import SnapshotMode
from pytest_llmeval.targets.python import Recordings, recording


def finish(root: Path, *, update: bool = False, recordings: Recordings | None = None) -> Persisted:
    """Judge and persist a run of one case, whose prediction is ``four``."""
    case = Case("c", input="q", expected="x", prediction="four")
    suite = length_suite(case, path=root / "s.eval.yaml")
    record = CaseRecord("c", observations={"length": Observation({"letters": 4})})
    results = SuiteResults(key_of(suite), 1, {"c": record}, [recording("s.eval.yaml", "", case)])
    run = CollectedRun(datetime(2026, 1, 2, tzinfo=UTC), None, [CollectedSuite(results, suite)])
    keeper = Keeper(SnapshotMode(update=update), always=True)
    return persist(run, judge_run(run, keeper), Stores(root, keeper, UsedJudgements(), recordings))


def outcomes(persisted: Persisted) -> list[tuple[str, str]]:
    return [(key.shown, each.outcome) for key, each in persisted.verdicts]


def test_an_approved_run_leaves_scores_and_a_line_of_history(tmp_path: Path) -> None:
    persisted = finish(tmp_path, update=True)
    assert set(outcomes(persisted)) == {("s.eval.yaml", "passed")}
    (scores,) = tmp_path.glob("*/s.scores.json")
    assert json.loads(scores.read_text())["metrics"]["length"]["value"] == 4.0
    (line,) = map(json.loads, (tmp_path / HISTORY).read_text().splitlines())
    assert line["values"]["length"] == 4.0
    assert line["basis"].keys() == {"data", "evaluator", "judge"}


def test_scores_that_cannot_be_written_fail_in_place_of_their_approval(tmp_path: Path) -> None:
    (tmp_path / "__llmeval__").write_text("a file where the folder should be")
    persisted = finish(tmp_path, update=True)
    ((key, verdict),) = persisted.verdicts
    assert (key.shown, verdict.outcome) == ("s.eval.yaml", "failed")
    assert "not written" in verdict.reason


def test_a_history_that_cannot_be_written_is_noted_and_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / HISTORY).mkdir(parents=True)
    persisted = finish(tmp_path, update=True)
    assert set(outcomes(persisted)) == {("s.eval.yaml", "passed")}
    (note,) = persisted.notes
    assert note.startswith(f"run NOT noted in {tmp_path / HISTORY}: ")


def test_predictions_are_recorded(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    assert finish(tmp_path, recordings=Recordings(path, "auto")).notes == []
    assert json.loads(path.read_text())["prediction"] == "four"


def test_predictions_that_cannot_be_written_fail_the_run(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("a file where the folder should be")
    persisted = finish(tmp_path, recordings=Recordings(tmp_path / "p" / "p.jsonl", "auto"))
    assert outcomes(persisted)[-1] == ("predictions", "failed")
    assert persisted.notes[-1].startswith(f"predictions not recorded in {tmp_path / 'p' / 'p.jsonl'}: ")


def test_a_long_list_of_unreadable_predictions_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recordings = Recordings(tmp_path / "p.jsonl", "auto")
    monkeypatch.setattr(recordings, "update", lambda *_: ["a", "b", "c", "d"])
    (note,) = finish(tmp_path, recordings=recordings).notes
    assert note.endswith("since no later run could read them: 4 ('a', 'b', 'c', ...)")


def test_what_killed_runs_were_about_to_write_is_removed_and_nothing_of_a_living_one(tmp_path: Path) -> None:
    name = ".llmeval-{}-00000000.tmp"
    dead = subprocess.run(
        [sys.executable, "-c", "from pytest_llmeval.data.files.processes import writer_name; print(writer_name())"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    for folder in ("__llmeval__", ".llmeval"):
        (tmp_path / folder).mkdir()
        for process in (dead, writer_name()):
            (tmp_path / folder / name.format(process)).touch()
    finish(tmp_path)
    assert {each.name for each in tmp_path.glob("*/.*.tmp")} == {name.format(writer_name())}

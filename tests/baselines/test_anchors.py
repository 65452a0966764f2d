"""Anchors: the run of each metric below which approved runs may not drift."""

from pathlib import Path
from typing import Any

import pytest
from builders import Answers, KnownSuites, key_of, recorded

from pytest_llmeval import Case
from pytest_llmeval.baselines import ScoreFile, SnapshotMode
from pytest_llmeval.gates import DropGate
from pytest_llmeval.run import Reported, RunTerms, finish_run
from pytest_llmeval.run._execute import execute
from pytest_llmeval.run._job import CaseAnswer
from pytest_llmeval.suites import LoadedSuite, SnapshotSettings

SIZE = 60


def approve(folder: Path, wrong: int, mode: SnapshotMode | None = None, **settings: Any) -> Reported:
    """Approve a run in which some answers are wrong, whether or not it has drifted."""
    cases = tuple(Case(f"c{n:02}", prediction=0.0 if n < wrong else 1.0) for n in range(SIZE))
    suite = LoadedSuite(
        "s",
        folder / "s.eval.yaml",
        evaluators={"answers": Answers()},
        cases=cases,
        gates=(DropGate("score", 0.02),),
        snapshot=SnapshotSettings(**settings),
    )
    suite.path.touch()
    run = recorded(suite, *(execute(suite, CaseAnswer(case)).record for case in cases))
    known = KnownSuites(folder, {suite.path: suite})
    return finish_run(run, RunTerms(), known, mode or SnapshotMode(update=True))


def anchor(folder: Path) -> float | None:
    """Return the value of the anchor; ``None`` where the run approved last is the anchor."""
    path = ScoreFile.of_suite(key_of(LoadedSuite("s", folder / "s.eval.yaml"))).path
    scores = ScoreFile(path, str(path)).read_checked()
    assert scores is not None
    stored = scores.anchor_of("score")
    assert len(list(folder.glob("__llmeval__/*.anchor*"))) == (stored is not None)
    return None if stored is None else stored.values["score"]


def test_an_anchor_stays_while_approved_runs_fall_and_the_drift_gate_fails(tmp_path: Path) -> None:
    approve(tmp_path, 0)
    assert anchor(tmp_path) is None
    for wrong in (6, 12):
        approve(tmp_path, wrong)
        assert anchor(tmp_path) == 1.0
    gates = {str(each.gate): each.outcome for each in approve(tmp_path, 18).report.suites[0].gates}
    assert gates["drift(score) <= 0.06"] == "failed"


@pytest.mark.parametrize(
    ("wrong", "settings", "expected"), [(28, {}, 0.5), (5, {}, None), (5, {"anchor": "keep"}, 0.5)]
)
def test_only_a_significantly_better_run_becomes_the_anchor(
    wrong: int, settings: dict[str, Any], expected: float | None, tmp_path: Path
) -> None:
    approve(tmp_path, 30)
    approve(tmp_path, 32)
    approve(tmp_path, wrong, **settings)
    assert anchor(tmp_path) == expected


def test_the_user_makes_a_run_the_anchor(tmp_path: Path) -> None:
    approve(tmp_path, 0)
    approve(tmp_path, 20)
    assert anchor(tmp_path) == 1.0
    approve(tmp_path, 25, SnapshotMode(update=True, anchor=True))
    assert anchor(tmp_path) is None


def test_nothing_is_approved_over_a_lost_anchor(tmp_path: Path) -> None:
    approve(tmp_path, 0)
    approve(tmp_path, 6)
    (lost,) = tmp_path.glob("__llmeval__/*.anchor*")
    lost.unlink()
    left = {path: path.read_bytes() for path in tmp_path.glob("__llmeval__/*")}
    approve(tmp_path, 12)
    assert {path: path.read_bytes() for path in tmp_path.glob("__llmeval__/*")} == left

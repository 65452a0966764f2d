"""The last approved runs of equal data as one baseline."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_llmeval.baselines import ScoreFile

if TYPE_CHECKING:
    from conftest import Project, Ran

WITH_SYRUPY = ("asyncio", "hypothesispytest", "rerunfailures")
SIZE = 60


def write(project: "Project", start: int, *, question: str = "?", **snapshot: Any) -> None:
    """Write a suite in which six cases are wrong."""
    cases = [
        {
            "id": f"c{n:02}",
            "input": question,
            "expected": "red",
            "prediction": "blue" if start <= n < start + 6 else "red",
        }
        for n in range(SIZE)
    ]
    gates = [{"metric": name, "max_drop": 0.02} for name in ("f1", "pass_rate")]
    settings = {"tolerance": 1, "pool": 3, **snapshot}
    project.suite("s.eval.yaml", cases, gates=gates, mode="bulk", snapshot=settings, thresholds={"f1": 0.5})


def approve(project: "Project", start: int, **how: Any) -> None:
    write(project, start, **how)
    project.run("--snapshot-update", without=WITH_SYRUPY)


def files(project: "Project") -> list[Path]:
    """Return the files of the pool; the score file names exactly these."""
    folder = project.path / "__llmeval__"
    named = json.loads((folder / "s.scores.json").read_text(encoding="utf-8")).get("pool", [])
    found = sorted(folder.glob("s.pool-*.jsonl"))
    assert {each.stem.partition("-")[2] for each in found} == {each.partition(":")[2] for each in named}
    return found


def reasons(ran: "Ran") -> list[str]:
    return [gate["reason"] for gate in ran.suites["s"]["gates"]]


def test_the_baseline_is_the_mean_of_the_last_approved_runs(project: "Project") -> None:
    for start in (0, 6, 12, 18):
        approve(project, start)
    assert len(files(project)) == 2
    write(project, 30)
    ran = project.run(without=WITH_SYRUPY)
    for name, reason in zip(("f1", "pass_rate"), reasons(ran)[:2], strict=True):
        assert reason.startswith(f"{name} 0.9000 -> 0.9000, drop 0.0000")
        assert reason.endswith("; the baseline is the mean of the last 3 approved runs")
    assert "60 paired cases" in reasons(ran)[0]
    before = {path.name: path.read_bytes() for path in (project.path / "__llmeval__").iterdir()}
    approve(project, 18)
    assert {path.name: path.read_bytes() for path in (project.path / "__llmeval__").iterdir()} == before


def test_runs_of_other_data_leave_the_pool(project: "Project") -> None:
    for start in (0, 6):
        approve(project, start)
    assert len(files(project)) == 1
    approve(project, 6, question="Really?")
    assert files(project) == []
    assert "the mean of" not in reasons(project.run(without=WITH_SYRUPY))[0]


@pytest.mark.parametrize(
    ("damage", "wanted"),
    [
        (Path.unlink, "the baseline cannot be used: s.pool-{}.jsonl is missing"),
        (lambda path: path.write_text("{}\n"), "the baseline cannot be used: s.pool-{}.jsonl  found content with"),
    ],
)
def test_a_pool_that_is_not_as_it_was_approved_fails_the_gates(project: "Project", damage: Any, wanted: str) -> None:
    for start in (0, 6):
        approve(project, start)
    (path,) = files(project)
    damage(path)
    ran = project.run(without=WITH_SYRUPY)
    assert set(ran.gates("s").values()) == {"failed"}
    assert reasons(ran)[0].startswith(wanted.format(path.stem.partition("-")[2]))


def test_the_files_of_a_suite_that_is_gone_go_together(tmp_path: Path) -> None:
    own = ("s.scores.json", "s.cases.jsonl", "s.anchor-0a.jsonl", "s.pool-0a.jsonl")
    others = ("s.pool-0x.jsonl", "s.t.pool-0a.jsonl", "t.pool-0a.jsonl")
    for name in own + others:
        (tmp_path / name).write_text("", encoding="utf-8")
    ScoreFile(tmp_path / "s.scores.json", "s.scores.json").remove()
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(others)

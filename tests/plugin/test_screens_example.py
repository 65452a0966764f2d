"""The example of an application that draws: its pictures, its recordings, and a change that draws wrong ones."""

import runpy
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from project import ROOT

if TYPE_CHECKING:
    from conftest import Project

EXAMPLE = ROOT / "example_suites" / "screens"
RECORDINGS = ("__llmeval__/screens.judgements.jsonl", "__llmeval__/regression.judgements.jsonl")


@pytest.fixture
def screens(project: "Project") -> Path:
    """A copy of the example in a project."""
    copy = project.path / "screens"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def timeless(path: Path) -> list[str]:
    return [line.partition('"seconds"')[0] for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_gates_notice_wrong_pictures_and_the_recordings_are_what_the_judge_says(
    project: "Project", screens: Path
) -> None:
    pytest.importorskip("PIL")
    for name in RECORDINGS:
        (screens / name).unlink()
    ran = project.run("screens", "--llmeval-judge=record")
    assert ran.code == 1, ran.text
    assert set(ran.outcomes("screens").values()) == {"passed"}
    assert set(ran.gates("screens").values()) == {"passed"}
    assert set(ran.outcomes("screens_regression[before]").values()) == {"passed"}
    wrong = {name for name, outcome in ran.outcomes("screens_regression[after]").items() if outcome == "failed"}
    assert wrong == {"chart-spring", "chart-cities", "chart-quarters", "form-address", "form-ticket", "form-search"}
    assert set(ran.gates("screens_regression[after]").values()) == {"failed"}
    for name in RECORDINGS:
        assert timeless(screens / name) == timeless(EXAMPLE / name)


def test_the_committed_pictures_are_what_the_script_draws(screens: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL")
    monkeypatch.syspath_prepend(screens)
    committed = {path.name: path.read_bytes() for path in (screens / "pictures").iterdir()}
    shutil.rmtree(screens / "pictures")
    (screens / "pictures").mkdir()
    runpy.run_path(str(screens / "draw_pictures.py"), run_name="__main__")
    sys.modules.pop("screen_drawing")
    assert {path.name: path.read_bytes() for path in (screens / "pictures").iterdir()} == committed
    assert len(committed) == 8


def test_without_pillow_the_suite_says_what_to_install(project: "Project", screens: Path) -> None:
    with (screens / "conftest.py").open("a", encoding="utf-8") as file:
        file.write("\nimport sys\nsys.modules['PIL'] = None\n")
    ran = project.run("screens/screens.eval.yaml")
    assert ran.code != 0
    assert "pip install 'pytest-llmeval-suite[images]'" in ran.text, ran.text

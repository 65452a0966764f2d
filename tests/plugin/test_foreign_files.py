"""Files of other tools that are named like suites: left alone, with one line."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.suites import is_foreign

if TYPE_CHECKING:
    from conftest import Project

VALLY = "name: tools\ndescription: Right tool?\nconfig: {model: m}\nstimuli: [{name: list}]\n"
AGENTV = "description: Example\nexecution: {target: default}\ntests: [{id: a, input: hello}]\n"
OURS = "evaluators: [text]\ncases: [{id: a, expected: b, prediction: b}]\n"


@pytest.mark.parametrize("text", [VALLY, AGENTV, '{"stimuli": []}', '"tests": []\n', "graders: !include x\n"])
def test_a_mapping_without_a_key_of_ours_is_foreign(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.eval.yaml"
    path.write_text(text, encoding="utf-8")
    assert is_foreign(path)


@pytest.mark.parametrize(
    "text", [OURS, "gates: [f1 >= 1]\ntests: []\n", '{"cases": []}', "", "- a list\n", "a text\n", "evaluators: [\n"]
)
def test_any_key_of_ours_makes_a_suite_and_a_file_without_mapping_keeps_its_faults(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.eval.yaml"
    path.write_text(text, encoding="utf-8")
    assert not is_foreign(path)


def test_files_of_other_tools_are_left_alone_with_one_line(project: "Project", workers: int) -> None:
    project.write("test_ok.py", "def test_ok(): pass\n")
    project.write("evals/tools.eval.yaml", VALLY)
    project.write("evals/greeting.eval.yaml", AGENTV)
    project.write("evals/ours.llmeval.yaml", OURS)
    ran = project.run(workers=workers)
    assert (ran.code, ran.counts) == (0, {"passed": 2})
    line = "2 files look like those of other tools and were left alone: evals/greeting.eval.yaml, evals/tools.eval.yaml"
    assert ran.text.count(line) == 1
    assert "llmeval_files" in ran.text
    assert list(ran.suites) == ["ours"]


def test_validate_leaves_them_alone(project: "Project", capsys: pytest.CaptureFixture[str]) -> None:
    project.write("tools.eval.yaml", VALLY)
    assert main(["validate", "tools.eval.yaml"]) == 0
    assert "1 file looks like that of another tool and was left alone: tools.eval.yaml" in capsys.readouterr().out


def test_init_takes_the_other_suffix_where_one_is_taken(project: "Project", capsys: pytest.CaptureFixture[str]) -> None:
    project.write("evals/tools.eval.yaml", VALLY)
    assert main(["init"]) == 0
    assert "tests/evals/first.llmeval.yaml" in capsys.readouterr().out
    assert (project.path / "tests/evals/first.llmeval.yaml").is_file()

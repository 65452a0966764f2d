"""Suite files with faults: every fault is told, what is sound still runs, and the run does not pass."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

ONE = [{"id": "a", "expected": "x", "prediction": "x"}]

HALF = """\
evaluators: [{text: {metrics: [f1]}}]
gates: [f1 >= 0.5]
cases:
  - {id: good, expected: x, prediction: x}
  - {id: bad, expected: x, predicton: x}
  - {id: good, expected: x, prediction: x}
  - {id: fine, expected: x, prediction: x}
"""


@pytest.fixture
def faulty(project: "Project") -> "Project":
    """One sound suite, a Python test, and three suites with faults of different kinds."""
    project.suite("sound.eval.yaml", ONE, gates=["f1 >= 1"])
    project.write("test_plain.py", "def test_plain(): pass\n")
    project.write("sub/tabs.eval.yaml", "evaluators:\n\t- text\n")
    project.write("typos.eval.yaml", "evaluators: [texd]\ngate: []\ncases: [{id: a}]\n")
    project.write("broken.eval.json", '{"evaluators": ["text"], "cases": [{"id": NaN}]}')
    return project


def test_faulty_files_are_told_with_line_and_column_while_the_others_run(faulty: "Project", workers: int) -> None:
    ran = faulty.run(workers=workers)
    assert ran.code == 1
    assert ran.counts == {"passed": 3, "errors": 3}
    errors = ran.section("ERRORS")
    assert "sub/tabs.eval.yaml:2:1  " in errors
    assert "typos.eval.yaml:1:14  evaluators[0]: unknown evaluator texd" in errors
    assert "did you mean text?" in errors
    assert "typos.eval.yaml:2:1  gate: unknown key gate" in errors
    assert "broken.eval.json:1:43  " in errors
    assert "Traceback" not in errors
    assert "pytest_llmeval" not in errors
    assert ran.gates("sound") == {"f1 >= 1": "passed"}


def test_reports_and_the_job_summary_tell_the_faults_of_files(
    faulty: "Project", monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty.write("half.eval.yaml", HALF)
    summary = faulty.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    ran = faulty.run("--llmeval-report=report.md", workers=2)
    faults = ran.report["faults"]
    assert list(faults) == ["broken.eval.json", "half.eval.yaml", "sub/tabs.eval.yaml", "typos.eval.yaml"]
    assert [len(each) for each in faults.values()] == [1, 2, 1, 2]
    assert all(line in ran.section("ERRORS") for lines in faults.values() for line in lines)
    markdown = (faulty.path / "report.md").read_text(encoding="utf-8")
    assert summary.read_text(encoding="utf-8") == markdown
    for place in ("broken.eval.json:1:43", "half.eval.yaml:5:28", "sub/tabs.eval.yaml:2:1", "typos.eval.yaml:1:14"):
        assert place in markdown


def test_a_job_summary_is_written_where_every_file_is_faulty(
    project: "Project", monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("typos.eval.yaml", "evaluators: [texd]\ncases: [{id: a}]\n")
    summary = project.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert project.run().code == 1
    assert "No suite ran." in summary.read_text(encoding="utf-8")
    assert "typos.eval.yaml:1:14" in summary.read_text(encoding="utf-8")


def test_a_faulty_case_leaves_the_others_running_and_the_gates_not_judged(project: "Project", workers: int) -> None:
    project.write("half.eval.yaml", HALF)
    ran = project.run("-v", workers=workers)
    assert ran.code == 1
    assert ran.counts == {"passed": 2, "skipped": 1, "errors": 1}
    assert "half.eval.yaml:5:28  cases[1].predicton: unknown key predicton" in ran.section("ERRORS")
    assert "half.eval.yaml:6:5  cases[2]: found the id 'good' twice, expected it once (first in line 4)" in ran.text
    assert ran.verdicts()["half.eval.yaml::gate[f1 >= 0.5]"] == "SKIPPED"
    assert "1 of 1 gates not evaluated: 2 of 4 cases ran; the suite's files have faults" in ran.text
    assert ran.suites["half"]["counts"] == {
        "total": 4,
        "passed": 2,
        "failed": 0,
        "errored": 0,
        "skipped": 0,
        "not_run": 2,
    }


def test_a_sound_case_of_a_faulty_file_can_be_run_by_its_id(project: "Project") -> None:
    project.write("half.eval.yaml", HALF)
    ran = project.run("half.eval.yaml::fine")
    assert ran.outcomes("half") == {"good": "not_run", "fine": "passed"}
    assert ran.gates("half") == {"f1 >= 0.5": "not_judged"}


@pytest.mark.parametrize("arguments", [(), ("half.eval.yaml::fine", "test_broken.py")])
def test_a_syntax_error_in_a_python_file_still_stops_a_serial_run(
    project: "Project", arguments: tuple[str, ...]
) -> None:
    project.write("half.eval.yaml", HALF)
    project.write("test_broken.py", "def test_broken(:\n")
    ran = project.run(*arguments)
    assert ran.code == pytest.ExitCode.INTERRUPTED
    assert "SyntaxError" in ran.text
    assert "passed" not in ran.counts
    assert "Interrupted: " in ran.text


def test_a_conftest_that_does_not_import_is_pytests_own_error(faulty: "Project") -> None:
    faulty.write("conftest.py", "import no_such_module\n")
    ran = faulty.run()
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert "ImportError while loading conftest" in ran.text
    assert "No module named 'no_such_module'" in ran.text


COUNTING = """\
from pathlib import Path

def answer(word):
    with Path("calls.txt").open("a") as calls:
        calls.write("x")
    return "?"
"""

FAULTY_TABLES = {
    "another delimiter": "id;input;expected\na;q;x\nb;r;y\n",
    "a surplus cell": "id,input,expected\na,q,x\nb,r,y,z\n",
    "an unknown column": "id,question,expected\na,q,x\nb,r,y\n",
    "an id twice": "id,input,expected\na,q,x\na,r,y\n",
}


@pytest.mark.parametrize("table", FAULTY_TABLES.values(), ids=FAULTY_TABLES)
def test_a_suite_whose_files_have_faults_calls_nothing(project: "Project", table: str) -> None:
    project.write("app.py", COUNTING)
    project.write("t.csv", table)
    project.write(
        "t.eval.yaml",
        "source: {format: csv, path: t.csv}\ntarget: app:answer\nevaluators: [text]\ngates: [f1 >= 0.1]\n",
    )
    project.write(
        "test_over.py",
        "import pytest, app\n\n@pytest.mark.llmeval('t.eval.yaml')\ndef test_over(case):\n"
        "    case.score(app.answer(case.input))\n",
    )
    ran = project.run()
    assert ran.code == 1
    assert "t.csv:" in ran.text
    assert not (project.path / "calls.txt").exists()

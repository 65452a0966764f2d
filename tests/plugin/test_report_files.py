"""What a run writes: JSON, Markdown, GitHub's job summary, JUnit."""

import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from pytest_llmeval.plugin._agent_report import agent_lines
from pytest_llmeval.reports import CaseReport, ReportFormat, RunReport, SuiteReport
from pytest_llmeval.suites import Registry

if TYPE_CHECKING:
    from conftest import Project

SECRET = "sk-do-not-print-0123456789"


def test_the_json_report_has_the_documented_shape_and_a_job_has_annotations(
    capitals: "Project", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    ran = capitals.run()
    assert "\n::error file=capitals.eval.yaml,line=" in ran.text
    report = ran.report
    assert list(report) == ["schema_version", "run", "suites"]
    assert report["schema_version"] == 1
    assert list(report["run"]) == ["started_at", "duration_s", "version", "commit"]
    suite = report["suites"][0]
    assert list(suite)[:7] == ["suite", "path", "counts", "metrics", "groups", "gates", "cases"]
    assert suite["counts"] == {"total": 4, "passed": 3, "failed": 1, "errored": 0, "skipped": 0, "not_run": 0}
    assert list(suite["groups"]["continent"]) == ["America", "Asia", "Europe"]
    case = suite["cases"][3]
    assert list(case)[:6] == ["id", "outcome", "metrics", "details", "reason", "duration_s"]
    assert (case["id"], case["outcome"], case["metrics"]) == ("quito[1]", "failed", {"exact_match": 0.0, "f1": 0.0})
    assert case["reason"] == "f1 0.0000, limit >= 0.5"


def test_report_for_agents_takes_the_place_of_what_pytest_prints(capitals: "Project") -> None:
    lines = capitals.run("--llmeval-report=agent", "-v").text.splitlines()
    first = next(number for number, each in enumerate(lines) if each.startswith("llmeval "))
    assert lines[first] == "llmeval failed; cases: 3 passed, 1 failed; gates: 1 passed, 1 failed"
    assert lines[first + 1].startswith("gate failed: capitals.eval.yaml:")
    assert lines[first + 2].startswith("case failed: capitals.eval.yaml:")
    assert lines[first + 3] == "next: pytest --llmeval 'capitals.eval.yaml::quito[1]' -v"
    assert not any("FAILURES" in each or "test session starts" in each for each in lines)


def test_report_for_agents_has_at_most_forty_lines() -> None:
    cases = [CaseReport(id=f"c{number}", outcome="failed", reason="a\nb" * 200) for number in range(90)]
    suite = SuiteReport(suite="s", path="s.eval.yaml", counts={"failed": 90}, metrics={}, cases=cases)
    lines = agent_lines(RunReport(suites=[suite]), ["a note"])
    assert len(lines) == 40
    assert lines[-2] == "54 more lines: --llmeval-report=report.json has everything"
    assert all("\n" not in each and len(each) < 260 for each in lines)
    assert agent_lines(RunReport())[0] == "llmeval no suite ran"


def test_reports_go_where_they_are_asked_for_and_folders_are_made(capitals: "Project") -> None:
    ran = capitals.run(
        "--llmeval-report=new/deep/a.json",
        "--llmeval-report=new/b.md",
        "--llmeval-report=c.txt",
        "--llmeval-report=new/d.html",
    )
    written = json.loads((capitals.path / "new/deep/a.json").read_text(encoding="utf-8"))
    assert written == ran.report
    plain = (capitals.path / "c.txt").read_text(encoding="utf-8")
    assert plain.startswith("capitals  (")
    assert "\x1b" not in plain
    markdown = (capitals.path / "new/b.md").read_text(encoding="utf-8")
    assert markdown.startswith("# Evaluation report\n")
    failing = markdown.partition("### Failing cases")[2].partition("<details>")[0]
    assert "東京" not in failing
    assert r"quito\[1\]" in failing
    assert (capitals.path / "new/d.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    for name in ("report.json", "new/deep/a.json", "new/b.md", "c.txt", "new/d.html"):
        assert f"report written to {capitals.path / name}" in ran.text


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_scores_of_all_cases_are_written_as_csv(capitals: "Project", workers: tuple[str, ...]) -> None:
    capitals.run("--llmeval-report=scores.csv", *workers)
    assert (capitals.path / "scores.csv").read_text(encoding="utf-8").splitlines() == [
        "suite,path,variant,case,outcome,exact_match,f1",
        "capitals,capitals.eval.yaml,,paris,passed,1.0,1.0",
        "capitals,capitals.eval.yaml,,東京,passed,1.0,1.0",
        "capitals,capitals.eval.yaml,,new delhi [in] 🎉,passed,1.0,1.0",
        "capitals,capitals.eval.yaml,,quito[1],failed,0.0,0.0",
    ]


def test_the_help_lists_every_format(capitals: "Project") -> None:
    text = " ".join(capitals.run("--help", llmeval=False).text.split())
    shown = text.partition("--llmeval-report=")[2].partition("Repeatable")[0]
    assert {name for name in Registry.installed().report_formats if name not in shown} == set()


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_conftest_adds_a_format(capitals: "Project", workers: tuple[str, ...]) -> None:
    capitals.write(
        "conftest.py",
        "def write_rst(report, path):\n"
        "    path.write_text(report.suites[0].suite)\n\n\n"
        "def write_tap(report, path):\n"
        "    path.write_text('1..4')\n\n\n"
        "def pytest_llmeval_register(registry):\n"
        "    registry.register_report_format('.rst', write_rst)\n"
        "    registry.register_report_format('tap.json', write_tap, 'tap')\n",
    )
    capitals.run("--llmeval-report=out.rst", "--llmeval-report=out/tap.json", *workers)
    assert (capitals.path / "out.rst").read_text() == "capitals"
    assert (capitals.path / "out" / "tap.json").read_text() == "1..4"


def test_a_conftest_that_cannot_register_is_a_fault_of_the_suite(capitals: "Project") -> None:
    capitals.write("conftest.py", "def pytest_llmeval_register(registry):\n    registry.register(int)\n")
    ran = capitals.run("--llmeval-report=out.json")
    assert "found <class 'int'>, expected a subclass of pytest_llmeval.Evaluator" in ran.text
    assert "INTERNALERROR" not in ran.text
    assert (capitals.path / "out.json").exists()


@pytest.mark.parametrize("name", ["report.xml", "report"])
def test_a_suffix_without_a_report_is_a_usage_error(capitals: "Project", name: str) -> None:
    ran = capitals.run("--llmeval", f"--llmeval-report={name}", llmeval=False)
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    suffixes = sorted(name for name in ReportFormat.KNOWN if name.startswith("."))
    assert f"expected one of {', '.join(suffixes)}, .llmeval" in ran.text
    assert "Traceback" not in ran.text


def test_a_report_that_cannot_be_written_is_told_and_the_run_does_not_pass(capitals: "Project") -> None:
    (capitals.path / "folder.json").mkdir()
    ran = capitals.run("-k", "paris", "--llmeval-report=folder.json", "--llmeval-report=fine.md")
    assert ran.code == 1
    assert f"report NOT written to {capitals.path / 'folder.json'}: Is a directory" in ran.text
    assert (capitals.path / "fine.md").exists()
    assert "f1 1.0000" in ran.section("llmeval")
    assert "Traceback" not in ran.text


def test_the_job_summary_is_appended_to(capitals: "Project", monkeypatch: pytest.MonkeyPatch) -> None:
    summary = capitals.write("summary.md", "# Earlier step\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    capitals.run("-k", "paris")
    capitals.run("-m", "nothing")
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("# Earlier step\n# Evaluation report\n")
    assert text.count("# Evaluation report") == 1


def test_a_job_summary_that_cannot_be_written_does_not_end_in_a_traceback(
    capitals: "Project", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(capitals.path))
    ran = capitals.run("-k", "paris")
    assert ran.code == 0
    assert f"job summary NOT written to {capitals.path}: Is a directory" in ran.text


def test_junit_holds_a_property_per_metric_and_a_test_case_per_gate(capitals: "Project") -> None:
    # pytest 9.2 writes a bracket too many after an id that holds one in the middle, and pytest 8 escapes emoji.
    path = capitals.path / "capitals.eval.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("delhi [in] 🎉", "delhi"), encoding="utf-8")
    ran = capitals.run("--junitxml=junit.xml", workers=2)
    assert ran.counts == {"passed": 4, "failed": 2}
    root = ET.parse(capitals.path / "junit.xml").getroot()
    suite = next(iter(root.iter("testsuite")))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("6", "2", "0")
    found = {case.get("name"): case for case in root.iter("testcase")}
    assert set(found) == {
        "paris",
        "東京",
        "new delhi",
        "quito[1]",
        "gate[f1 >= 0.6]",
        "gate[f1 >= 0.4 by continent]",
    }
    properties = {each.get("name"): each.get("value") for each in found["東京"].iter("property")}
    assert properties == {"llmeval.exact_match": "1.0", "llmeval.f1": "1.0"}
    failure = found["gate[f1 >= 0.4 by continent]"].find("failure")
    assert failure is not None
    assert "America: f1 is 0.0000, expected >= 0.4" in str(failure.text)


def test_no_report_holds_anything_of_the_environment(project: "Project", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    project.write(
        "bot.py",
        """\
        import os

        def answer(word):
            key = os.environ["OPENAI_API_KEY"]
            assert key
            raise ConnectionError("no answer")
        """,
    )
    project.asking("s.eval.yaml", "bot:answer", "a", gates=["f1 >= 1"])
    ran = project.run("--llmeval-report=r.md", "--junitxml=j.xml", "--llmeval-predictions=p.jsonl")
    assert ran.code == 1
    assert SECRET not in ran.text
    for path in project.path.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path

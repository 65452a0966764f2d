"""Snapshots of suites: who has one, what is compared, what is shown, and what a suite's variants get."""

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.run._finishing import origin_of

if TYPE_CHECKING:
    from conftest import Project, Ran

WITHOUT = ("rerunfailures",)

CASES: list[dict[str, Any]] = [
    {"id": "one", "expected": "red", "prediction": "red", "labels": {"kind": "warm"}},
    {"id": "two", "expected": "blue", "prediction": "grey", "labels": {"kind": "cold"}},
]


def names(project: "Project") -> list[str]:
    folder = project.path / "__llmeval__"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def snapshots(ran: "Ran", suite: str) -> dict[str, tuple[str, str]]:
    return {each["metric"]: (each["kind"], each["outcome"]) for each in ran.suites[suite]["snapshot"]}


def test_the_ini_option_gives_every_suite_a_snapshot_that_does_not_say_otherwise(project: "Project") -> None:
    project.suite("silent.eval.yaml", CASES)
    project.suite("asks.eval.yaml", CASES, snapshot=True)
    project.suite("refuses.eval.yaml", CASES, snapshot=False)
    project.run("--snapshot-update")
    assert names(project) == ["asks.cases.jsonl", "asks.inputs.json", "asks.scores.json"]
    project.ini("llmeval_snapshots = true\n")
    project.run("--snapshot-update")
    files = ("cases.jsonl", "inputs.json", "scores.json")
    assert names(project) == [f"{suite}.{file}" for suite in ("asks", "silent") for file in files]


def test_approved_results_of_another_runner_beside_suites_stay(project: "Project") -> None:
    project.suite("s.eval.yaml", CASES, snapshot=True)
    project.run("--snapshot-update")
    rows = [{"case": f"c{number}", "metric": "acc", "score": number % 2} for number in range(20)]
    results = project.write("rows.json", json.dumps(rows))
    assert main(["gate", str(results), "--gates", "acc >= 0.1", "--snapshot-update"]) == 0
    approved = [name for name in names(project) if name.startswith("results.")]
    assert "results.scores.json" in approved
    ran = project.run()
    assert (ran.code, "unused" in ran.text) == (0, False)
    project.run("--snapshot-update")
    assert [name for name in names(project) if name.startswith("results.")] == approved


def test_without_snapshots_a_run_leaves_nothing_behind(project: "Project") -> None:
    project.suite("s.eval.yaml", CASES)
    ran = project.run("--snapshot-update")
    assert "snapshot" not in ran.suites["s"]
    assert not (project.path / ".llmeval").exists()
    assert names(project) == []


def test_without_syrupy_the_same_files_are_written_and_judged(project: "Project") -> None:
    project.suite("s.eval.yaml", CASES, snapshot=True)
    missing = project.run("-v")
    assert missing.verdicts()["s.eval.yaml::snapshot[*]"] == "FAILED"
    command = "pytest --llmeval --snapshot-update s.eval.yaml"
    assert f"no snapshot __llmeval__/s.scores.json: create it with {command}" in missing.section("FAILURES")
    written = []
    for without in (WITHOUT, (*WITHOUT, "syrupy")):
        assert project.run("--snapshot-update", without=without).code == 0
        written.append([(project.path / "__llmeval__" / name).read_bytes() for name in names(project)])
        for name in names(project):
            (project.path / "__llmeval__" / name).unlink()
    assert written[0] == written[1]


def test_only_the_named_metrics_are_kept_and_each_falls_as_far_as_it_may(project: "Project") -> None:
    cases = [*CASES, {"id": "three", "expected": "a b", "prediction": "a b"}]
    settings = {"metrics": ["f1", "exact_match"], "tolerance": {"f1": {"relative": 0.3}, "exact_match": 0.1}}
    project.suite("s.eval.yaml", cases, snapshot=settings)
    project.run("--snapshot-update")
    cases[2]["prediction"] = "a c"
    project.suite("s.eval.yaml", cases, snapshot=settings)
    ran = project.run()
    assert ran.code == 1
    assert snapshots(ran, "s") == {"f1": ("fell_within", "passed"), "exact_match": ("fell_beyond", "failed")}
    assert (
        "snapshot PASSED  f1  (fell from 0.6667 to 0.5000, worse by 0.1667; tolerance 30% of the approved value)"
        in ran.section("llmeval")
    )


@pytest.mark.parametrize(("policy", "code"), [("fail", 1), ("warn", 0)])
def test_edited_cases_are_not_compared_and_the_suite_says_whether_that_fails(
    project: "Project", policy: str, code: int
) -> None:
    project.suite("s.eval.yaml", CASES, snapshot={"not_comparable": policy})
    project.run("--snapshot-update")
    project.suite("s.eval.yaml", [{**CASES[0], "expected": "RED"}, CASES[1]], snapshot={"not_comparable": policy})
    ran = project.run("-v")
    assert ran.code == code
    assert ran.verdicts()["s.eval.yaml::snapshot[*]"] == ("FAILED" if code else "PASSED")
    assert "not comparable: 1 unchanged case compared; 1 edited (one); approve this run with" in ran.section("llmeval")
    assert project.run("--snapshot-update").code == 0
    assert project.run().code == 0


def test_an_evaluator_of_other_options_is_not_compared_but_others_are(project: "Project") -> None:
    labels = {"classification": {"metrics": ["accuracy"]}}
    project.suite("s.eval.yaml", CASES, snapshot=True, evaluators=["text", labels])
    project.run("--snapshot-update")
    project.suite("s.eval.yaml", CASES, snapshot=True, evaluators=[{"text": {"tokenizer": "whitespace"}}, labels])
    ran = project.run()
    verdicts = snapshots(ran, "s")
    assert verdicts.pop("accuracy") == verdicts.pop("pass_rate") == ("unchanged", "passed")
    assert set(verdicts.values()) == {("not_comparable", "failed")}
    assert "options of the evaluator 'text' changed: tokenizer" in ran.text


def test_a_pass_rate_under_other_checks_is_not_compared(project: "Project") -> None:
    project.suite("s.eval.yaml", CASES, snapshot=True, checks=[{"max_words": 0}])
    project.run("--snapshot-update")
    project.suite("s.eval.yaml", CASES, snapshot=True, checks=[{"max_words": 9}])
    verdicts = snapshots(project.run(), "s")
    assert verdicts["pass_rate"] == verdicts["check_rate"] == ("not_comparable", "failed")
    assert verdicts["exact_match"] == ("unchanged", "passed")


def test_variants_and_python_tests_have_snapshots_of_their_own(project: "Project") -> None:
    cases = [{"id": "one", "input": "one", "expected": "ONE"}, {"id": "two", "input": "two", "expected": "two"}]
    project.suite("s.eval.yaml", cases, snapshot=True)
    project.write(
        "conftest.py",
        """\
        import pytest

        @pytest.fixture(params=[str.upper, str.lower], ids=["Upper", "lower"])
        def llmeval_target(request):
            return request.param
        """,
    )
    project.write(
        "test_s.py",
        """\
        import pytest

        @pytest.mark.llmeval("s.eval.yaml")
        def test_s(eval_case):
            eval_case.score(eval_case.input)
        """,
    )
    assert project.run("--snapshot-update", workers=2, without=WITHOUT).code == 0
    scores = [
        json.loads((project.path / "__llmeval__" / name).read_bytes()) for name in names(project) if "scores" in name
    ]
    assert sorted((each["suite"], each["test"], each["variant"]) for each in scores) == [
        ("s.eval.yaml", "", "Upper"),
        ("s.eval.yaml", "", "lower"),
        ("s.eval.yaml", "test_s.py::test_s", ""),
    ]
    assert project.run("--snapshot-update", workers=2, without=WITHOUT).code == 0
    ran = project.run("-v", workers=2, without=WITHOUT)
    assert ran.code == 0
    assert ran.verdicts()["s.eval.yaml::snapshot[f1][Upper]"] == "PASSED"


def red(size: int, wrong: int) -> list[dict[str, Any]]:
    return [{"id": f"c{n:02}", "expected": "red", "prediction": "blue" if n < wrong else "red"} for n in range(size)]


def test_reports_say_what_changed_and_what_to_approve(project: "Project") -> None:
    project.suite("s.eval.yaml", red(20, wrong=10), snapshot=True, mode="bulk")
    project.run("--snapshot-update")
    project.suite("s.eval.yaml", red(20, wrong=0), snapshot=True, mode="bulk")
    ran = project.run("--llmeval-report=report.md")
    section = ran.section("llmeval")
    assert "  improved: exact_match, f1; exact_match 1.0000" in section
    assert "20 cases, 3 snapshots passed" in section
    assert re.search(r"= 1 passed, 3 snapshots passed in ", ran.text)
    assert "snapshot: approve improved and new metrics with --snapshot-update" in section
    assert "rose from 0.5000 to 1.0000: improved" in (project.path / "report.md").read_text(encoding="utf-8")
    assert ran.suites["s"]["snapshot"][1] == {
        "metric": "f1",
        "kind": "improved",
        "outcome": "passed",
        "value": 1.0,
        "approved": 0.5,
        "reason": "rose from 0.5000 to 1.0000: improved",
    }
    project.suite("s.eval.yaml", red(20, wrong=20), snapshot=True, mode="bulk")
    quiet = project.run("-q")
    assert "snapshot FAILED  s: f1  (fell from 0.5000 to 0.0000, worse by 0.5000; tolerance 0)" in quiet.text


def test_a_rise_that_may_be_chance_is_not_recommended_for_approval(project: "Project") -> None:
    project.suite("s.eval.yaml", red(20, wrong=10), snapshot=True, mode="bulk")
    project.run("--snapshot-update")
    project.suite("s.eval.yaml", red(20, wrong=7), snapshot=True, mode="bulk")
    ran = project.run()
    assert ran.code == 0
    assert {each["kind"] for each in ran.suites["s"]["snapshot"]} == {"rose_within", "unchanged"}
    reason = ran.suites["s"]["snapshot"][1]["reason"]
    assert reason.startswith("rose from 0.5000 to 0.6500: may be chance (95% interval of the change ")
    assert "snapshot: approve" not in ran.section("llmeval")
    approved = project.run("--snapshot-update")
    assert approved.suites["s"]["snapshot"][1]["reason"].startswith(
        "approved: rose from 0.5000 to 0.6500: may be chance"
    )


PULL = {"GITHUB_REF": "refs/pull/12/merge", "GITHUB_HEAD_REF": "shorter", "GITHUB_REF_NAME": "12/merge"}
PUSH = {"GITHUB_REF": "refs/heads/main", "GITHUB_HEAD_REF": "", "GITHUB_REF_NAME": "main"}
MERGE = {"CI_MERGE_REQUEST_IID": "7", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "x", "CI_COMMIT_REF_NAME": "y"}


def test_an_approval_names_the_commit_that_was_checked_out_and_a_report_its_branch(project: "Project") -> None:
    project.suite("s.eval.yaml", CASES, snapshot=True)
    for command in (["init", "-q", "-b", "side"], ["add", "."], ["commit", "-qm", "x"], ["rev-parse", "HEAD"]):
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", *identity, *command], cwd=project.path, check=True, capture_output=True, text=True
        )
    ran = project.run("--snapshot-update")
    scores = json.loads((project.path / "__llmeval__" / "s.scores.json").read_text(encoding="utf-8"))
    assert scores["history"][0]["commit"] == ran.report["run"]["commit"] == done.stdout.strip()
    assert ran.report["run"]["branch"]
    origins = [origin_of(project.path, environment) for environment in (PULL, PUSH, MERGE, {})]
    assert origins == [("shorter", "12"), ("main", ""), ("x", "7"), ("side", "")]
    status = subprocess.run(["git", "status", "--short"], cwd=project.path, check=True, capture_output=True, text=True)
    assert ".llmeval/" not in status.stdout


def test_a_history_that_cannot_be_written_is_told_and_costs_nothing_else(project: "Project") -> None:
    project.suite("s.eval.yaml", CASES, snapshot=True)
    project.write(".llmeval", "a file in the place of the folder\n")
    ran = project.run("--snapshot-update")
    assert ran.code == 0
    assert "run NOT noted in " in ran.section("llmeval")
    assert names(project) == ["s.cases.jsonl", "s.inputs.json", "s.scores.json"]

"""Failures that are expected or known, and skips: what is excused, and what counts all the same."""

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from running import run_python

if TYPE_CHECKING:
    from conftest import Project

EXACT: dict[str, Any] = {"evaluators": [{"text": {"metrics": ["exact_match"]}}]}
FAILURES = "__llmeval__/s.failures.json"


def answered(right: int, wrong: int, **of_wrong: Any) -> list[dict[str, Any]]:
    good = [{"id": f"right{number}", "expected": "x", "prediction": "x"} for number in range(right)]
    return good + [{"id": f"wrong{number}", "expected": "x", "prediction": "y", **of_wrong} for number in range(wrong)]


@pytest.mark.parametrize("mode", ["items", "bulk"])
def test_scores_of_cases_that_are_expected_to_fail_count(project: "Project", workers: int, mode: str) -> None:
    top = {**EXACT, "thresholds": {"exact_match": 1}, "gates": ["exact_match >= 0.6", "pass_rate >= 0.6"], "mode": mode}
    project.suite("s.eval.yaml", answered(5, 5, tags=["xfail"]), **top)
    ran = project.run(workers=workers)
    suite = ran.suites["s"]
    assert (suite["metrics"]["exact_match"]["value"], suite["metrics"]["exact_match"]["scored"]) == (0.5, 10)
    assert suite["counts"]["xfailed"] == 5
    assert (suite["counts"]["skipped"], suite["counts"]["not_run"]) == (0, 0)
    assert ran.gates("s") == {"exact_match >= 0.6": "failed", "pass_rate >= 0.6": "failed"}
    assert "5 xfailed" in ran.text


def test_a_case_that_expects_to_fail_before_it_is_scored_stays_in_the_denominators(project: "Project") -> None:
    project.write("bot.py", "import pytest\ndef answer(word):\n    pytest.xfail('later')\n")
    project.suite("s.eval.yaml", [{"id": "a", "input": "a", "expected": "a"}], target="bot:answer", **EXACT)
    ran = project.run()
    assert ran.suites["s"]["metrics"]["exact_match"]["errored"] == 1


def skipping(project: "Project", **gate: Any) -> Any:
    project.write(
        "bot.py", "import pytest\ndef answer(word):\n    if word != 'a':\n        pytest.skip('hard')\n    return 'a'\n"
    )
    cases = [{"id": word, "input": word, "expected": word} for word in "abcde"]
    cases.append({"id": "f", "input": "f", "expected": "f", "tags": ["skip"]})
    gates = [{"metric": "exact_match", "min": 0.5, **gate}]
    project.suite("s.eval.yaml", cases, target="bot:answer", gates=gates, **EXACT)
    return project.run()


def test_a_target_that_skips_what_it_cannot_answer_fails_the_gates(project: "Project") -> None:
    ran = skipping(project)
    assert ran.code == 1
    (gate,) = ran.suites["s"]["gates"]
    assert gate["outcome"] == "failed"
    assert gate["reason"].startswith("4 cases skipped at run time, none allowed (max_skipped); exact_match is 1.0000")


def test_a_gate_says_how_many_cases_may_be_skipped(project: "Project") -> None:
    ran = skipping(project, max_skipped=4)
    assert (ran.code, ran.gates("s")) == (0, {"exact_match >= 0.5": "passed"})


def test_a_case_that_is_skipped_since_the_approval_is_another_case(project: "Project") -> None:
    top = {**EXACT, "snapshot": True}
    project.suite("s.eval.yaml", answered(3, 1), **top)
    assert project.run("--snapshot-update").code == 0
    project.suite("s.eval.yaml", answered(3, 1, tags=["skip"]), **top)
    ran = project.run()
    assert ran.code == 1
    assert "1 edited (wrong0)" in ran.text


def with_failures(project: "Project", cases: list[dict[str, Any]]) -> None:
    top = {**EXACT, "thresholds": {"exact_match": 1}, "checks": [{"max_words": 2}], "approve": {"failures": True}}
    project.suite("s.eval.yaml", cases, **top)


def test_known_failures_fail_the_run_only_in_another_way(project: "Project", workers: int) -> None:
    with_failures(project, answered(2, 2))
    assert project.run(workers=workers).code == 1
    approving = project.run("--snapshot-update", workers=workers)
    assert "2 failed as known" in approving.text
    assert (approving.code, approving.counts) == (0, {"passed": 2, "failed": 2})
    written = json.loads((project.path / FAILURES).read_text(encoding="utf-8"))
    assert (written["cases"], written["schema"]) == ({"wrong0": ["exact_match"], "wrong1": ["exact_match"]}, 1)
    assert written["content"].keys() == written["cases"].keys()
    ran = project.run(workers=workers)
    assert (ran.code, ran.suites["s"]["counts"]["known_failure"]) == (0, 2)
    assert ran.suites["s"]["metrics"]["exact_match"]["value"] == 0.5
    with_failures(project, [*answered(2, 1), {"id": "wrong1", "expected": "x", "prediction": "y y y"}])
    ran = project.run(workers=workers)
    assert (ran.code, ran.outcomes("s")["wrong1"], ran.outcomes("s")["wrong0"]) == (1, "failed", "known_failure")


def test_a_known_failure_that_passes_is_mended_and_may_not_come_back(project: "Project") -> None:
    with_failures(project, answered(1, 1))
    project.run("--snapshot-update")
    with_failures(project, [*answered(1, 0), {"id": "wrong0", "expected": "x", "prediction": "x"}])
    assert "s.eval.yaml: 1 known failure now passing: wrong0" in project.run().text
    project.run("--snapshot-update")
    assert not (project.path / FAILURES).exists()
    with_failures(project, answered(1, 1))
    assert project.run().code == 1


def test_a_known_failure_is_known_by_its_content_where_ids_are_positions(project: "Project") -> None:
    rows = [{"input": word, "expected": "x", "prediction": "y"} for word in ("slow", "sure")]
    with_failures(project, rows)
    project.run("--snapshot-update")
    with_failures(project, [{**rows[0], "input": "new"}, *rows])
    ran = project.run()
    assert [each["outcome"] for each in ran.suites["s"]["cases"]] == ["failed", "known_failure", "known_failure"]
    with_failures(project, [{**rows[0], "input": "new"}, {**rows[0], "prediction": "x"}, rows[1]])
    assert "1 known failure now passing: 2" in project.run().text
    project.run("--snapshot-update")
    assert list(json.loads((project.path / FAILURES).read_text(encoding="utf-8"))["cases"]) == ["1", "3"]


def test_known_failures_of_edited_cases_are_known_by_their_ids(project: "Project") -> None:
    with_failures(project, answered(1, 1))
    project.run("--snapshot-update")
    edited = {"id": "wrong0", "input": "edited", "expected": "x", "prediction": "y"}
    with_failures(project, [*answered(1, 0), edited])
    assert project.run().outcomes("s")["wrong0"] == "known_failure"


def test_known_failures_of_cases_that_did_not_run_are_kept(project: "Project") -> None:
    with_failures(project, answered(1, 2))
    project.run("--snapshot-update")
    project.run("--snapshot-update", "-k", "wrong0")
    assert set(json.loads((project.path / FAILURES).read_text(encoding="utf-8"))["cases"]) == {"wrong0", "wrong1"}


def test_known_failures_of_cases_that_errored_are_kept(project: "Project", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSWER", "b")
    project.write("bot.py", "import os\ndef answer(word):\n    return os.environ['ANSWER']\n")
    cases = [{"id": "a", "input": "a", "expected": "a"}]
    top = {**EXACT, "thresholds": {"exact_match": 1}, "approve": {"failures": True}, "target": "bot:answer"}
    project.suite("s.eval.yaml", cases, **top)
    project.run("--snapshot-update")
    monkeypatch.delenv("ANSWER")
    known = (project.path / FAILURES).read_bytes()
    assert project.run("--snapshot-update").counts == {"failed": 1}
    assert (project.path / FAILURES).read_bytes() == known


def test_a_failure_of_a_report_is_approved_by_a_command(project: "Project") -> None:
    project.suite("s.eval.yaml", answered(1, 2), thresholds={"exact_match": 1}, **EXACT)
    project.run("--llmeval-report=r.json")

    def approve(case: str) -> str:
        code = "from pytest_llmeval.cli import main; main()"
        arguments = ["-c", code, "approve", "r.json", "--case", case]
        done = run_python(arguments, dict(os.environ), project.path)
        return done.out + done.err

    assert approve("wrong1") == f"{FAILURES}: wrong1: exact_match\n"
    assert project.run().outcomes("s") == {"right0": "passed", "wrong0": "failed", "wrong1": "known_failure"}
    assert approve("right0") == (
        "r.json: case 'right0': found the outcome 'passed', expected a case that misses limits or checks\n"
    )
    assert approve("right1") == "r.json: unknown case 'right1' (did you mean 'right0'?)\n"


def test_a_damaged_file_of_known_failures_is_named(project: "Project") -> None:
    with_failures(project, answered(1, 1))
    project.write(FAILURES, '{"schema": 1, "cases": {"wrong0": "exact_match"}}')
    ran = project.run()
    assert ran.code == 1
    assert (
        f"{FAILURES}  the list of known failures cannot be read (Expected `array`, got `str` - at `$.cases[...]`)"
        in ran.text
    )


def test_a_limit_that_was_widened_since_the_approval_is_named(project: "Project") -> None:
    top = {**EXACT, "snapshot": True}
    project.suite("s.eval.yaml", answered(30, 0), **top, gates=[{"metric": "exact_match", "max_drop": 0.02}])
    project.run("--snapshot-update")
    project.suite("s.eval.yaml", answered(30, 0), **top, gates=[{"metric": "exact_match", "max_drop": 0.5}])
    ran = project.run()
    moved = "drop(exact_match) <= 0.02 -> drop(exact_match) <= 0.5"
    assert f"s.eval.yaml: limits of exact_match changed since the approval: {moved}" in ran.text
    (gate,) = ran.suites["s"]["gates"]
    assert gate["reason"].endswith(f"; limits changed since the approval: {moved}")
    project.run("--snapshot-update")
    assert "limits of" not in project.run().text

"""Gates against the approved run, in whole runs of pytest."""

import re
from typing import TYPE_CHECKING, Any

import pytest
from pages import head_of

from pytest_llmeval.reports import RunReport
from pytest_llmeval.workbench._comment import comment_text

if TYPE_CHECKING:
    from conftest import Project

WITH_SYRUPY = ("rerunfailures",)
GATE: dict[str, Any] = {"metric": "f1", "max_drop": 0.05}


def cases(wrong: int, size: int = 60, **labels: str) -> list[dict[str, Any]]:
    return [
        {"id": f"c{n:02}", "expected": "red", "prediction": "blue" if n < wrong else "red", "labels": labels}
        for n in range(size)
    ]


def approve(project: "Project", wrong: int = 3, **top: Any) -> None:
    """Approve a run; its snapshot tolerates everything, so that only gates fail."""
    write_suite(project, wrong, **top)
    assert project.run("--snapshot-update", without=WITH_SYRUPY).code == 0


def write_suite(project: "Project", wrong: int, size: int = 60, **top: Any) -> None:
    settings = {"gates": [GATE], "mode": "bulk", "snapshot": {"tolerance": 1, "not_comparable": "warn"}, **top}
    project.suite("s.eval.yaml", cases(wrong, size), **settings)


def reason(ran: Any) -> str:
    (gate,) = ran.suites["s"]["gates"]
    return str(gate["reason"])


def test_a_drop_that_is_established_fails_the_run_wherever_cases_ran(project: "Project") -> None:
    approve(project)
    write_suite(project, wrong=25)
    ran = project.run("-v", workers=2, without=WITH_SYRUPY)
    assert ran.code == 1
    assert ran.gates("s") == {"drop(f1) <= 0.05": "failed"}
    assert ran.verdicts()["s.eval.yaml::gate[drop(f1) <= 0.05]"] == "FAILED"
    assert reason(ran).startswith("f1 0.9500 -> 0.5833, drop 0.3667 (95% interval 0.2500..0.5000, 60 paired cases); ")
    assert "a drop beyond 0.05 is significant, p below 0.0001; minimum detectable drop" in reason(ran)


def test_a_change_that_may_be_noise_passes(project: "Project") -> None:
    approve(project)
    write_suite(project, wrong=5)
    ran = project.run(without=WITH_SYRUPY)
    assert ran.code == 0
    assert "a drop beyond 0.05 is not significant" in reason(ran)
    assert "only 2 cases changed" in reason(ran)


def test_without_baseline_the_gate_fails_and_names_the_command(project: "Project") -> None:
    write_suite(project, wrong=3)
    ran = project.run(without=WITH_SYRUPY)
    assert ran.code == 1
    assert reason(ran) == (
        "no baseline __llmeval__/s.cases.jsonl: create it with pytest --llmeval --snapshot-update s.eval.yaml"
    )
    write_suite(project, wrong=3, snapshot=False)
    for arguments in ((), ("--snapshot-update",)):
        ran = project.run(*arguments, without=WITH_SYRUPY)
        assert ran.code == 1
        assert reason(ran) == "there is no baseline: set 'snapshot: true' in the suite, and approve a run"


def test_an_approved_drop_is_the_baseline_from_then_on(project: "Project") -> None:
    approve(project)
    write_suite(project, wrong=25)
    ran = project.run("--snapshot-update", "--snapshot-anchor", without=WITH_SYRUPY)
    assert (ran.code, reason(ran)) == (0, "approved: this run is the new baseline")
    ran = project.run(without=WITH_SYRUPY)
    assert ran.code == 0
    assert "f1 0.5833 -> 0.5833, drop 0.0000" in reason(ran)


def test_a_part_of_the_suite_is_not_judged(project: "Project") -> None:
    approve(project, mode="items")
    write_suite(project, wrong=25, mode="items")
    ran = project.run("-k", "c00 or c01", without=WITH_SYRUPY)
    assert ran.code == 0
    assert reason(ran) == "not evaluated: 2 of 60 cases ran"


def test_a_new_case_is_no_drop_of_the_others(project: "Project") -> None:
    approve(project)
    write_suite(project, wrong=3, size=61)
    ran = project.run(without=WITH_SYRUPY)
    assert ran.code == 0
    assert "drop 0.0000 (95% interval" in reason(ran)
    assert "60 paired cases" in reason(ran)
    assert "; 60 unchanged cases compared; 1 new (c60)" in reason(ran)


def test_another_way_to_measure_is_not_compared(project: "Project") -> None:
    other = {"evaluators": [{"text": {"metrics": ["exact_match", "f1"], "tokenizer": "characters"}}]}
    approve(project, snapshot={"tolerance": 1})
    write_suite(project, wrong=3, snapshot={"tolerance": 1}, **other)
    ran = project.run(without=WITH_SYRUPY)
    assert ran.gates("s") == {"drop(f1) <= 0.05": "failed"}
    assert reason(ran).startswith("not comparable: ")


def test_a_damaged_baseline_fails_the_gate(project: "Project") -> None:
    approve(project)
    path = project.path / "__llmeval__" / "s.cases.jsonl"
    path.write_text("{\n", encoding="utf-8")
    for arguments in ((), ("--snapshot-update",)):
        ran = project.run(*arguments, without=WITH_SYRUPY)
        assert ran.code == 1
        assert reason(ran).startswith("the baseline cannot be used: s.cases.jsonl  found content with fingerprint")
        assert path.read_text(encoding="utf-8") == "{\n"


PARTIAL: dict[str, Any] = {"mode": "items", "gates": [{**GATE, "partial": True}], "snapshot": {"tolerance": 1}}
SOME = ("-k", "c00 or c01 or c02 or c03 or c04 or c05 or c06 or c07")


def test_a_gate_on_part_of_the_suite_compares_the_cases_that_ran(project: "Project") -> None:
    approve(project, wrong=0, **PARTIAL)
    write_suite(project, wrong=8, **PARTIAL)
    ran = project.run(*SOME, without=WITH_SYRUPY)
    assert ran.gates("s") == {"drop(f1) <= 0.05": "failed"}
    assert "8 paired cases" in reason(ran)
    assert "52 cases left out" in reason(ran)


def test_a_gate_on_part_of_the_suite_reads_no_baseline_that_was_edited(project: "Project") -> None:
    approve(project, wrong=0, **PARTIAL)
    path = project.path / "__llmeval__" / "s.cases.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace('"f1": 1', '"f1": 0'), encoding="utf-8")
    ran = project.run(*SOME, without=WITH_SYRUPY)
    assert ran.gates("s") == {"drop(f1) <= 0.05": "failed"}
    assert reason(ran).startswith("the baseline cannot be used: s.cases.jsonl  found content with fingerprint")


def test_a_gate_on_part_of_the_suite_compares_what_was_measured_alike(project: "Project") -> None:
    other = {"evaluators": [{"text": {"metrics": ["exact_match", "f1"], "tokenizer": "characters"}}]}
    approve(project, **PARTIAL)
    write_suite(project, wrong=3, **PARTIAL, **other)
    ran = project.run(*SOME, without=WITH_SYRUPY)
    assert ran.gates("s") == {"drop(f1) <= 0.05": "failed"}
    assert reason(ran) == "not comparable: options of the evaluator 'text' changed: tokenizer"


def test_gates_of_one_suite_are_judged_together(project: "Project") -> None:
    gates = [GATE, {**GATE, "metric": "exact_match"}, {**GATE, "metric": "pass_rate", "primary": True}]
    for name in ("a", "b"):
        project.suite(f"{name}.eval.yaml", cases(3), gates=gates, mode="bulk", snapshot={"tolerance": 1})
    assert project.run("--snapshot-update", without=WITH_SYRUPY).code == 0
    ran = project.run(without=WITH_SYRUPY)
    for suite in ran.suites.values():
        assert ["by Holm over 2 gates" in gate["reason"] for gate in suite["gates"]] == [True, True, False]


@pytest.mark.parametrize(("metric", "verdict"), [("f1_macro", "passed"), ("mean(f1_macro)", "failed")])
def test_the_snapshot_leaves_a_fall_to_the_gate_on_that_value_alone(
    project: "Project", metric: str, verdict: str
) -> None:
    top: dict[str, Any] = {"evaluators": ["classification"], "snapshot": {"metrics": ["f1_macro"]}}
    approve(project, gates=[{"metric": metric, "max_drop": 1}], **top)
    write_suite(project, 25, gates=[{"metric": metric, "max_drop": 1}], **top)
    (suite,) = project.run(without=WITH_SYRUPY).report["suites"]
    assert [gate["outcome"] for gate in suite["gates"]] == ["passed"]
    assert [(each["kind"], each["outcome"]) for each in suite["snapshot"]] == [("fell_beyond", verdict)]


ANYTIME: dict[str, Any] = {"gates": [{**GATE, "max_drop": 0, "rule": "anytime"}], "snapshot": {"tolerance": 1}}


def test_runs_since_the_approval_are_weighed_together(project: "Project") -> None:
    approve(project, wrong=0, **ANYTIME)
    for number, wrong in enumerate((2, 3, 20), 1):
        write_suite(project, wrong, **ANYTIME)
        ran = project.run(without=WITH_SYRUPY)
        assert f" of {number} run" in reason(ran)
        if ran.code:
            break
    assert number > 1
    assert ran.gates("s") == {"drop(f1) <= 0, anytime": "failed"}
    assert "a drop beyond 0 is significant, evidence" in reason(ran)
    assert project.run("--snapshot-update", "--snapshot-anchor", without=WITH_SYRUPY).code == 0
    write_suite(project, wrong + 1, **ANYTIME)
    assert " of 1 run since the approval" in reason(project.run(without=WITH_SYRUPY))


def test_a_replayed_run_is_no_further_run(project: "Project") -> None:
    approve(project, wrong=0, **ANYTIME)
    write_suite(project, 4, **ANYTIME)
    first, again = (reason(project.run(without=WITH_SYRUPY)) for _ in range(2))
    assert first == again
    assert " of 1 run since the approval" in again


def test_a_history_that_was_cut_begins_with_what_can_be_read(project: "Project") -> None:
    approve(project, wrong=0, **ANYTIME)
    for wrong in (2, 3):
        write_suite(project, wrong, **ANYTIME)
        project.run(without=WITH_SYRUPY)
    path = project.path / ".llmeval" / "history.jsonl"
    first, second = [line for line in path.read_text(encoding="utf-8").splitlines() if "looks" in line]
    path.write_text(f"{first[:-9]}\n{second}\n[1]\n", encoding="utf-8")
    write_suite(project, 1, **ANYTIME)
    assert " of 2 runs since the approval" in reason(project.run(without=WITH_SYRUPY))


def test_the_comment_folds_neither_failed_rows_nor_the_cases_that_fell(project: "Project") -> None:
    def write(wrong: int) -> None:
        gates = [*(f"exact_match >= 0.{number}" for number in range(1, 6)), "exact_match >= 0.99", GATE]
        metrics = [{"text": {"metrics": ["f1", "exact_match", "rouge1"]}}]
        project.suite("s.eval.yaml", cases(wrong, 40), evaluators=metrics, gates=gates, snapshot=True)

    write(0)
    assert project.run("--snapshot-update", without=WITH_SYRUPY).code == 0
    write(9)
    project.run("--llmeval-report=r.json", "--llmeval-report=r.md", without=WITH_SYRUPY)
    shown, _, folded = comment_text(RunReport.read(project.path / "r.json")).partition("<details>")
    rows = re.findall(r"^\| \*\*FAILED\*\* \| s \| (.+?) \| (.+) \|$", shown, re.MULTILINE)
    worst = "worst cases: c00 0.0000, c01 0.0000, c02 0.0000"
    fell = "fell from 1.0000 to 0.7750, worse by 0.2250; tolerance 0"
    assert [(name.replace("\\", ""), why.replace("\\", "").partition(" p 0.")[0]) for name, why in rows] == [
        ("exact_match >= 0.99", f"exact_match is 0.7750, expected >= 0.99; {worst}"),
        (
            "drop(f1) <= 0.05",
            "f1 fell 1.0000 -> 0.7750 (limit 0.05). 9 cases worse: c00, c01, c02, c03, c04, c05, c06 and 2 more.",
        ),
        ("snapshot exact_match", f"{fell}; {worst}"),
        ("snapshot rouge1", f"{fell}; {worst}"),
    ]
    assert "FAILED" not in folded
    markdown = (project.path / "r.md").read_text(encoding="utf-8").replace("\\", "")
    assert markdown.count(f"; {worst}") == 1
    before = "c00 1.0000 -> 0.0000, c01 1.0000 -> 0.0000, c02 1.0000 -> 0.0000"
    assert markdown.replace("\\", "").count(f"; worst cases: {before}") == 2


def test_a_failed_gate_names_the_lost_cases_everywhere_and_lf_reruns_them(project: "Project", workers: int) -> None:
    def write(wrong: int) -> None:
        topics = ["api"] * 7 + ["billing"] * 33
        single = [{**each, "labels": {"topic": topic}} for each, topic in zip(cases(wrong, 40), topics, strict=True)]
        project.suite("s.eval.yaml", single, gates=[GATE], snapshot={"tolerance": 1})

    write(0)
    assert project.run("--snapshot-update", without=WITH_SYRUPY).code == 0
    write(12)
    ran = project.run("--llmeval-report=r.md", workers=workers, without=WITH_SYRUPY)
    cause = "f1 fell 1.0000 -> 0.7000 (limit 0.05). 12 cases worse, 7 of 7 with topic=api: c00, c01, c02, c03, "
    (gate,) = ran.suites["s"]["gates"]
    assert (ran.code, gate["outcome"]) == (1, "failed")
    assert gate["cause"].startswith(cause)
    assert f"gate FAILED  drop(f1) <= 0.05  ({gate['cause']})" in ran.section("llmeval")
    assert gate["reason"] not in ran.section("llmeval")
    assert f"\n{gate['cause']}\n{gate['reason']}\ns.eval.yaml:" in ran.text
    assert "12 cases worse, 7 of 7 with topic=api: c00, c01" in (project.path / "r.md").read_text(encoding="utf-8")
    again = project.run("--lf", "-v", workers=workers, without=WITH_SYRUPY)
    assert again.counts["passed"] == len(gate["fallen"]) == 12


def test_a_fall_past_its_limit_has_one_sentence_in_terminal_comment_and_page(
    project: "Project", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    approve(project, wrong=9)
    write_suite(project, wrong=14)
    ran = project.run("--llmeval-report=r.html")
    (sentence,) = (line for line in ran.text.splitlines() if line.startswith("s: past its limit, not significant: f1"))
    assert " 0.8500 -> 0.7667 (5 cases worse, 0 better), a drop of 0.05 is not ruled out" in sentence
    assert re.search(r": 60 cases find a drop of [\d.]+ in 80 of 100 runs, \d+ more would rule it out", sentence)
    comment = comment_text(RunReport.read(project.path / "report.json"))
    assert f"- {sentence}\n" in comment.replace("\\", "")
    entry, _ = head_of((project.path / "r.html").read_text(encoding="utf-8"))["entries"]  # of this run, and approved
    (beginning,) = (
        f"s: past its limit, not significant: {gate['past']}" for gate in entry["gates"]
    )  # the gate itself has the statistics
    assert sentence.startswith(f"{beginning}, a drop of ")

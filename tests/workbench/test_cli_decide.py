"""``llmeval decide``: changed thresholds and gates on recorded scores."""

import json
from pathlib import Path

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.numbers import summarize
from pytest_llmeval.reports import RunReport, RunStart, SuiteReport
from pytest_llmeval.reports._json import write_data
from pytest_llmeval.run._execute import execute_repeats
from pytest_llmeval.run._job import CaseAnswer
from pytest_llmeval.suites import Registry, load_suite

HEAD = "suite: s\ngroup_by: [kind]\nevaluators: [{text: {metrics: [f1, exact_match]}}]\n"
CASES = """\
cases:
- {id: a, expected: one, prediction: one, labels: {kind: x}}
- {id: b, expected: one two, prediction: one, labels: {kind: x}}
- {id: c, expected: one, prediction: two, labels: {kind: y}}
- {id: d, expected: one, prediction: [3], labels: {kind: y}}
"""


def record(folder: Path, text: str) -> str:
    """Run a suite as pytest would, and write the report."""
    path = folder / "s.eval.yaml"
    path.write_text(text, encoding="utf-8")
    suite = load_suite(path, Registry.installed(), root=folder)
    records = [execute_repeats(suite, [CaseAnswer(case)] * suite.repeats.times).record for case in suite.cases]
    result = summarize(suite.metrics, records, group_by=suite.group_by)
    report = SuiteReport.of_result(
        "s", "s.eval.yaml", result, [gate.judge(result) for gate in suite.gates], suite.total
    )
    write_data(RunReport(run=RunStart("now", 0.1, "0"), suites=[report]), folder / "report.json")
    return str(folder / "report.json")


def redecide(folder: Path, settings: str, cases: str = CASES, head: str = HEAD) -> int:
    path = folder / "s.eval.yaml"
    path.write_text(head + settings + cases, encoding="utf-8")
    return main(["decide", str(folder / "report.json"), str(path)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    record(tmp_path, HEAD + "thresholds: {f1: 0.5}\n" + CASES)
    return tmp_path


def test_the_same_file_decides_as_the_run_did(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert redecide(folder, "thresholds: {f1: 0.5}\n") == 1
    assert capsys.readouterr().out == "s (s.eval.yaml): 4 cases: 2 passed, 2 failed\n"


def test_thresholds_decide_anew_but_malformed_predictions_stay_failed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert redecide(folder, "thresholds: {f1: 0.9}\n") == 1
    assert "case b: passed -> failed  (f1 0.6667, limit >= 0.9)" in capsys.readouterr().out
    assert redecide(folder, "") == 1
    out = capsys.readouterr().out
    assert "case c: failed -> passed\n" in out
    assert "4 cases: 3 passed, 1 failed" in out


@pytest.mark.parametrize(
    ("gate", "verdict"),
    [
        ("f1 >= 0.4", "PASSED  f1 >= 0.4"),
        ("f1 >= 0.5", "FAILED  f1 >= 0.5"),
        ("mean(f1) >= 0.4", "PASSED  mean(f1) >= 0.4"),
        ("max(exact_match) == 1", "PASSED  max(exact_match) == 1"),
        ("pass_rate >= 0.75", "PASSED  pass_rate >= 0.75"),
        ("low(f1) >= 0.3", "FAILED  low(f1) >= 0.3"),
        ("low(pass_rate) >= 0.1", "PASSED  low(pass_rate) >= 0.1"),
        ("{metric: f1, min: 0.5, by: kind}", "FAILED  f1 >= 0.5 by kind"),
        ("{metric: mean(f1), max: 0.9, by: kind}", "PASSED  mean(f1) <= 0.9 by kind"),
        ("{metric: pass_rate, min: 0.6, by: kind}", "FAILED  pass_rate >= 0.6 by kind"),
    ],
)
def test_gates_are_decided_as_a_run_would(
    gate: str, verdict: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    redecide(folder, f"gates: ['{gate}']\n" if gate[0] != "{" else f"gates: [{gate}]\n")
    said = capsys.readouterr().out
    assert f"gate {verdict}  (" in said
    assert "UNDECIDED" not in said
    text = (folder / "s.eval.yaml").read_text(encoding="utf-8")
    report = json.loads(Path(record(folder, text)).read_text(encoding="utf-8"))
    (fresh,) = report["suites"][0]["gates"]
    assert f"gate {fresh['outcome'].upper()}  {fresh['gate']}  ({fresh['reason']})" in said


@pytest.mark.parametrize(
    ("settings", "undecided"),
    [
        ("gates: [{metric: f1, max_drop: 0.1}]\n", "gate drop(f1) <= 0.1: a report has no counts of cases"),
        ("gates: [{metric: f1, min: 0, by: size}]\n", "gate f1 >= 0 by size: the report has no groups by 'size'"),
    ],
)
def test_what_a_report_cannot_tell_is_said(
    settings: str, undecided: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = CASES.rpartition("- {id: d")[0].replace("kind: x", "kind: x, size: big")
    record(tmp_path, HEAD + good)
    assert redecide(tmp_path, settings, good) == 3
    assert f"UNDECIDED  {undecided}" in capsys.readouterr().out


def test_new_metrics_and_new_ways_to_measure_are_undecided(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = HEAD.replace("[f1, exact_match]", "[f1, exact_match, bleu1]")
    redecide(folder, "gates: [bleu1 >= 0.1]\nthresholds: {bleu1: 0.1}\n", head=head)
    out = capsys.readouterr().out
    assert "UNDECIDED  gate bleu1 >= 0.1: the report has no such metric: run the suite" in out
    assert out.count("UNDECIDED  threshold bleu1: the report has no such metric: run the suite") == 1
    head = HEAD.replace("metrics: [f1, exact_match]", "metrics: [f1, exact_match], tokenizer: characters")
    redecide(folder, "gates: [f1 >= 0.1]\n", head=head)
    assert "UNDECIDED  gate f1 >= 0.1: measured as " in capsys.readouterr().out


def test_repeats_are_no_other_way_to_measure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = HEAD + "repeats: {times: 2, reduce: min}\n"
    record(tmp_path, head + CASES)
    assert redecide(tmp_path, "gates: [f1 >= 0.1]\n", head=head) == 1  # a prediction of one case is malformed
    assert "gate PASSED  f1 >= 0.1" in capsys.readouterr().out


def test_other_cases_leave_gates_undecided(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    redecide(folder, "gates: [f1 >= 0.1]\n", CASES.replace("id: a", "id: z"))
    out = capsys.readouterr().out
    assert "s (s.eval.yaml): 3 cases: " in out
    missing = "1 case of the suite not in the report; 1 case of the report not in the suite"
    assert f"UNDECIDED  {missing}\n" in out
    assert f"UNDECIDED  gate f1 >= 0.1: {missing}\n" in out


def test_other_labels_leave_groups_undecided(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    redecide(folder, "gates: [{metric: f1, min: 0, by: kind}]\n", CASES.replace("kind: y", "kind: z", 1))
    assert "the report has other groups by 'kind': run the suite" in capsys.readouterr().out


def test_a_report_of_a_part_leaves_gates_undecided(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "report.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    data["suites"][0]["counts"]["not_run"] = 1
    path.write_text(json.dumps(data), encoding="utf-8")
    redecide(folder, "gates: [f1 >= 0.1]\n")
    assert "UNDECIDED  gate f1 >= 0.1: not evaluated: 3 of 4 cases ran" in capsys.readouterr().out


def test_a_suite_that_the_report_does_not_have_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = folder / "other.eval.yaml"
    other.write_text(HEAD + CASES, encoding="utf-8")
    assert main(["decide", str(folder / "report.json"), str(other)]) == 2
    assert "has no results of" in capsys.readouterr().err


def test_an_evaluator_of_a_conftest_is_not_known_and_that_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "conftest.py").touch()
    assert redecide(folder, "", head=HEAD.replace("text:", "mine:")) == 2
    said = capsys.readouterr().err
    assert "unknown evaluator mine, expected one of " in said
    assert "evaluators and sources that a conftest.py registers are unknown to this command" in said


def test_a_faulty_suite_file_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert redecide(folder, "gates: [f2 > 0]\n") == 2
    assert "unknown metric f2" in capsys.readouterr().err

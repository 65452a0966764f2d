"""What fact checkers answer in the forms of other systems, and what judges leave out."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_llmeval import Case, score
from pytest_llmeval.cli import main
from pytest_llmeval.core import Parts, Reading
from pytest_llmeval.judges import ModeFile, Verdict
from pytest_llmeval.judges._reduction import reduced
from pytest_llmeval.judges.questions._replies import FLAGS, read_explanation
from pytest_llmeval.tasks.fact_check._evaluator import FactCheck
from pytest_llmeval.tasks.fact_check._source import FactCheckSource

ANSWER = {"verdict": "Refuted", "justification": "According to the Harbour log, no."}
GOLD = {"verdict": "Refuted", "evidence_sources": [{"content": "Harbour log"}]}
OMIT = FactCheck(explanation="omit")
REGISTERS = ("Harbour log", "Tide table", "Coast list", "Bird survey")


@pytest.mark.parametrize(
    "prediction",
    [
        {"answer": json.dumps(ANSWER), "usage": {"input_tokens": 3}},
        {"answer": ANSWER},
        {"answer": [ANSWER]},
        [ANSWER],
        ANSWER,
        {**ANSWER, "answer": "no", "usage": {}},
    ],
)
def test_the_answer_of_a_system_is_read_where_it_is(prediction: Any) -> None:
    found = OMIT.evaluate(prediction, GOLD)
    assert (found["verdict_accuracy"], found["evidence_f1"], found["unparsed_rate"]) == (1.0, 1.0, 0.0)
    view = Reading.for_evaluator(OMIT).view(Case("c", expected=GOLD, prediction=prediction))
    assert OMIT.measure(view).malformed is None
    assert view.expected == GOLD


def test_the_answer_may_have_another_place() -> None:
    case = Case("c", expected=GOLD, prediction={"output": {"text": json.dumps(ANSWER)}, "trace": []})
    view = Reading.for_evaluator(OMIT, parts=Parts(answer="output.text")).view(case)
    assert OMIT.scores(OMIT.measure(view))["verdict_accuracy"] == 1.0


@pytest.mark.parametrize("prediction", [{"foo": 1}, {}, {"answer": {"label": "Refuted"}}, {"answer": "dunno"}, 3, None])
def test_what_is_not_understood_is_malformed_and_counted(prediction: Any) -> None:
    observation = OMIT.measure(Reading.for_evaluator(OMIT).view(Case("c", expected=GOLD, prediction=prediction)))
    assert observation.malformed is not None
    assert OMIT.scores(observation)["unparsed_rate"] == 1.0
    assert "malformed" in OMIT.evaluate(prediction, GOLD)


def test_a_grade_without_flags_leaves_the_defects_undefined() -> None:
    evaluator = FactCheck()
    case = Case("c", expected=GOLD, prediction=ANSWER)
    observation = evaluator.measure_judged(case, [read_explanation('{"score": 40}')])
    scores = evaluator.scores(observation)
    assert scores["explanation_score"] == 0.4
    assert {scores[f"defect[{flag}]"] for flag in FLAGS} == {None}
    assert observation.undefined == {f"defect[{flag}]": "the judge did not say" for flag in FLAGS}
    some = evaluator.measure_judged(case, [read_explanation('{"score": 40, "has_fabrication": true}')])
    assert evaluator.scores(some)["defect[fabrication]"] == 1.0
    assert evaluator.scores(some)["defect[logical_errors]"] is None


def test_jurors_who_do_not_mention_a_defect_have_no_vote() -> None:
    named = Verdict(40, details=dict.fromkeys(FLAGS, True))
    silent = read_explanation('{"score": 40}')
    both = reduced(ModeFile.mode_named("explanation"), {"a": silent, "b": named, "c": silent}, "majority", 1)
    assert isinstance(both, Verdict)
    assert both.details["fabrication"] is True
    assert "unnamed_defects" not in both.details
    neither = reduced(ModeFile.mode_named("explanation"), {"a": silent, "b": silent}, "majority", 1)
    assert isinstance(neither, Verdict)
    assert neither.details["unnamed_defects"] == list(FLAGS)


def test_weights_make_the_plain_sum_of_the_document() -> None:
    plain = FactCheck(weights={"verdict": 0.5, "evidence": 0.2, "normalize": False})
    case = Case(
        "c", expected={**GOLD, "evidence_sources": [{"content": "Harbour log"}, "Tide table"]}, prediction=ANSWER
    )
    overall = plain.scores(plain.measure_judged(case, [Verdict(80)]))["overall_score"]
    assert overall == pytest.approx(0.5 + 0.2 * 2 / 3 + 0.3 * 0.8)
    omitted = FactCheck(weights={"verdict": 0.5, "evidence": 0.2, "normalize": False}, explanation="omit")
    assert omitted.evaluate(ANSWER, GOLD)["overall_score"] == pytest.approx(0.7)
    high = {metric.name: metric.high for metric in omitted.describe()}
    assert high["overall_score"] == pytest.approx(0.7)
    with pytest.raises(ValueError, match="found 1 for normalize, expected true or false"):
        FactCheck(weights={"normalize": 1})


def test_a_report_is_exported_as_the_two_files_of_the_original(tmp_path: Any, capsys: Any) -> None:
    metrics = {"verdict_accuracy": 0.0, "evidence_f1": 0.25, "explanation_score": 0.4, "defect[fabrication]": 1.0}
    details = {"fact_check": {"claim": "C", "predicted_verdict": "Supported", "gold_verdict": "Refuted"}}
    value = {
        "value": 0.5,
        "mean": 0.5,
        "low": None,
        "high": None,
        "scored": 1,
        "undefined": 0,
        "errored": 0,
        "missing": 0,
    }
    suite = {
        "suite": "claims",
        "path": "claims.eval.yaml",
        "counts": {"total": 1},
        "metrics": {"verdict_accuracy": value, "explanation_score": value},
        "cases": [{"id": "a", "outcome": "passed", "metrics": metrics, "details": details, "reason": None}],
        "error_buckets": [{"bucket": "verdict_errors", "cases": ["a"]}],
    }
    other = {**suite, "suite": "others"}
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"schema_version": 1, "suites": [suite]}), encoding="utf-8")
    folder = tmp_path / "out" / "original"
    assert main(["fact-check", "export", str(report), "-o", str(folder)]) == 0
    original = json.loads((folder / "enhanced_test_results.json").read_text(encoding="utf-8"))
    assert {"failed_tests", "evidence_micro_f1", "explanation_correctness"} <= set(original["metrics"])
    assert original["metrics"]["confusion_matrix"] == {"Refuted": {"Supported": 1}}
    assert {"llm_verdict", "verdict_match"} <= set(original["results"][0])
    claims = tmp_path / "claims.json"
    claims.write_text(json.dumps([{"id": "a", "claim": "C", "verdict": "Refuted"}]), encoding="utf-8")
    read = FactCheckSource(path="claims.json", predictions="out/original/enhanced_test_results.json")
    assert [each.prediction for each in read.load(tmp_path, [])] == [{"verdict": "Supported"}]
    capsys.readouterr()
    assert main(["--json", "fact-check", "export", str(report), "-o", str(tmp_path), "--keys", "ours"]) == 0
    written = json.loads(capsys.readouterr().out)["result"]["written"]
    assert str(tmp_path / "fact_check_results.json") in written
    assert not (tmp_path / "enhanced_test_results.json").exists()  # a file of one name has one form
    results = json.loads((tmp_path / "fact_check_results.json").read_text(encoding="utf-8"))
    assert (results["total_tests"], results["successful_tests"]) == (1, 1)
    assert results["metrics"] == {"verdict_accuracy": 0.5, "explanation_score": 50.0}
    (result,) = results["results"]
    assert (result["claim"], result["verdict_correct"], result["explanation_score"]) == ("C", False, 40.0)
    assert result["explanation_errors"] == {"fabrication": True}
    assert json.loads((tmp_path / "fact_check_errors.json").read_text(encoding="utf-8")) == {
        "verdict_errors": [result],
        "low_evidence_f1": [],
        "low_explanation_score": [],
    }
    report.write_text(json.dumps({"schema_version": 1, "suites": [suite, other]}), encoding="utf-8")
    assert main(["fact-check", "export", str(report)]) != 0
    assert "found the suites with fact checks: claims, others; expected one suite" in capsys.readouterr().err
    assert main(["fact-check", "export", str(report), "--suite", "others", "-o", str(tmp_path)]) == 0


@pytest.mark.parametrize("keys", ["original", "ours"])
def test_exported_results_are_answers_with_the_same_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: str
) -> None:
    monkeypatch.chdir(tmp_path)
    sources = ["Coast list", {"url": "https://a.example/r"}]
    answer = {"verdict": "Refuted", "justification": "It is 31 metres.", "evidence_sources": sources}
    gold = {
        "verdict": "Refuted",
        "evidence_sources": [{"content": "Register", "url": "https://a.example/r"}, "Coast list"],
    }
    Path("claims.json").write_text(json.dumps([{"id": "a", "claim": "C", **gold}]), encoding="utf-8")
    Path("answers.json").write_text(json.dumps({"a": answer}), encoding="utf-8")
    reports = []
    exported = {"original": "enhanced_test_results.json", "ours": "fact_check_results.json"}
    for predictions in ("answers.json", exported[keys]):
        source = {"format": "fact_check", "path": "claims.json", "predictions": predictions}
        suite = {"suite": "s", "evaluators": [{"fact_check": {"explanation": "omit"}}], "source": source}
        Path("s.eval.json").write_text(json.dumps(suite), encoding="utf-8")
        main(["score", "s.eval.json", "--report=r.json"])
        reports.append(json.loads(Path("r.json").read_text(encoding="utf-8"))["suites"][0]["metrics"])
        assert main(["fact-check", "export", "r.json", "--keys", keys]) == 0
    assert reports[0]["evidence_f1"]["value"] == 1
    assert reports[0] == reports[1]


VERDICT = st.sampled_from(["Supported", "Refuted", "Not Enough Evidence"])
CLAIM = st.tuples(VERDICT, VERDICT, st.sets(st.sampled_from(REGISTERS)), st.booleans())


@settings(max_examples=15)
@given(st.lists(CLAIM, min_size=1, max_size=8))
def test_exported_files_agree_with_the_rules_of_the_document(
    tmp_path_factory: pytest.TempPathFactory, claims: list[tuple[str, str, set[str], bool]]
) -> None:
    folder = tmp_path_factory.mktemp("export")
    sources = [{"content": each} for each in REGISTERS]
    rows, answers = [], {}
    for number, (right, said, cited, readable) in enumerate(claims):
        rows.append({"id": f"c{number}", "claim": f"Claim {number}.", "verdict": right, "evidence_sources": sources})
        answer = {"verdict": said, "justification": ".", "evidence_sources": [{"content": each} for each in cited]}
        answers[f"c{number}"] = answer if readable else "I do not know."
    source = {"format": "fact_check", "path": "claims.json", "predictions": "answers.json"}
    suite = {"suite": "s", "evaluators": [{"fact_check": {"explanation": "omit"}}], "source": source}
    for name, data in {"claims.json": rows, "answers.json": answers, "s.eval.json": suite}.items():
        (folder / name).write_text(json.dumps(data), encoding="utf-8")
    main(["score", str(folder / "s.eval.json"), f"--report={folder / 'r.json'}"])
    assert main(["fact-check", "export", str(folder / "r.json"), "-o", str(folder)]) == 0
    written, lists = (
        json.loads((folder / name).read_text(encoding="utf-8"))
        for name in ("enhanced_test_results.json", "error_analysis.json")
    )
    results, metrics = written["results"], written["metrics"]
    verdicts = [said if readable else "Not Enough Evidence" for _, said, _, readable in claims]
    assert [each["llm_verdict"] for each in results] == verdicts
    assert [each["verdict_match"] for each in results] == [
        each["gold_verdict"] == each["llm_verdict"] for each in results
    ]
    assert lists == {
        "verdict_errors": [each for each in results if not each["verdict_match"]],
        "low_evidence_f1": [each for each in results if each["evidence_f1"] < 0.3],
        "low_explanation_score": [],
    }
    for each in results:
        assert each["overall_score"] == pytest.approx((0.4 * each["verdict_match"] + 0.3 * each["evidence_f1"]) / 0.7)
    for mean, name in (
        ("verdict_accuracy", "verdict_match"),
        ("evidence_micro_f1", "evidence_f1"),
        ("overall_score", "overall_score"),
    ):
        assert metrics[mean] == pytest.approx(sum(each[name] for each in results) / len(results))


def test_unparsed_answers_are_counted_over_a_suite() -> None:
    cases = [Case(str(n), expected=GOLD, prediction=each) for n, each in enumerate([ANSWER, {"foo": 1}, "x", ANSWER])]
    assert score(OMIT, cases, confidence=None).metrics["unparsed_rate"].value == 0.5

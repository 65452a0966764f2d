import json
from functools import cache
from typing import Any

import pytest
from project import CONFORMANCE

from pytest_llmeval import Case, EvidenceMatcher, MetricValue
from pytest_llmeval.core import JudgeError
from pytest_llmeval.judges import ModeFile, Verdict
from pytest_llmeval.judges.questions._replies import FLAGS
from pytest_llmeval.numbers import summarize
from pytest_llmeval.numbers._table import CaseRecord
from pytest_llmeval.tasks.fact_check._evaluator import FactCheck
from pytest_llmeval.tasks.fact_check._target import VERDICTS, read_answer

FOLDER = CONFORMANCE / "factcheck"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the conformance data are not beside this repository")

ORIGINAL = ("evidence_precision", "evidence_recall", "evidence_f1")


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


@cache
def aggregates() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "aggregates.json").read_text("utf-8"))
    return found


def successful() -> list[dict[str, Any]]:
    return [row for row in read("claims.jsonl") if row["success"]]


def close(expected: float) -> Any:
    return pytest.approx(expected, abs=1e-9, rel=0)


def grade(row: dict[str, Any]) -> Verdict:
    """Return the recorded grade as the original code reads it: whatever cannot be read is 50 points, no defect."""
    try:
        reply = json.loads(row["explanation_reply"])
        _, score, _ = sorted((0, reply["score"], 100))
    except (ValueError, TypeError, KeyError):
        return Verdict(50)
    return Verdict(score, details={flag: reply.get(f"has_{flag}", False) for flag in FLAGS})


def observed(evaluator: FactCheck, rows: list[dict[str, Any]]) -> dict[str, MetricValue]:
    records = [
        CaseRecord(row["id"], observations={"fact_check": evaluator.measure_judged(case(row), [grade(row)])})
        for row in rows
    ]
    return dict(summarize({"fact_check": evaluator}, records, confidence=None).metrics)


def case(row: dict[str, Any]) -> Case:
    return Case(row["id"], expected=row["item"], prediction=row["answer"])


def original(threshold: float = 0.2) -> FactCheck:
    return FactCheck(
        evidence_threshold=threshold, evidence_form="original", tokenizer="words", evidence_matching="original"
    )


def test_texts_cite_what_the_original_finds() -> None:
    for row in read("extraction.jsonl"):
        assert EvidenceMatcher(matching="original").extract(row["text"]) == row["expected"], row["text"]
    for row in successful():
        found = EvidenceMatcher(matching="original").extract(read_answer(row["answer"]).justification)
        assert found == sorted(row["expected"]["llm_evidence"]), row["id"]


def test_listed_sources_are_those_of_the_original() -> None:
    for row in read("ground_truth_sources.jsonl"):
        assert EvidenceMatcher(matching="original").extract("", row["evidence_sources"]) == row["expected"], row
    for row in successful():
        found = EvidenceMatcher(matching="original").extract("", row["item"]["evidence_sources"])
        assert found == sorted(row["expected"]["ground_truth_evidence"]), row["id"]


def test_pairs_match_at_every_threshold_as_in_the_original() -> None:
    for row in read("fuzzy.jsonl"):
        for threshold, expected in row["expected"].items():
            matcher = EvidenceMatcher(float(threshold), tokenizer="words", matching="original")
            assert (matcher.explain(row["a"], row["b"]) is not None) == expected, (row, threshold)


def test_answers_are_read_as_in_the_original() -> None:
    for row in successful():
        found = read_answer(row["answer"])
        expected = row["expected"]
        assert found.verdict == expected["llm_verdict"], row["id"]
        assert found.justification == expected["llm_reasoning"], row["id"]
        assert found.confidence == (expected["llm_confidence"]), row["id"]
        assert found.unparsed == (row["style"] == "answer_not_json"), row["id"]


@pytest.mark.parametrize("threshold", [0.2, 0.3])
def test_evidence_of_each_claim_in_the_default_form(threshold: float) -> None:
    evaluator = FactCheck(evidence_threshold=threshold, tokenizer="words", evidence_matching="original")
    for row in successful():
        found, expected = evaluator.evaluate(row["answer"], row["item"]), row[f"each_side_{threshold}"]
        for part in ("precision", "recall", "f1"):
            assert found[f"evidence_{part}"] == close(expected[part]), (row["id"], part)
            assert 0.0 <= found[f"evidence_{part}"] <= 1.0


def test_every_score_of_each_claim_in_the_original_form() -> None:
    evaluator, stricter = original(), original(0.3)
    above_one = []
    for row in successful():
        expected = row["expected"]
        found = evaluator.scores(evaluator.measure_judged(case(row), [grade(row)]))
        for name in ("evidence_precision", "evidence_recall", "evidence_f1", "explanation_score", "overall_score"):
            assert found[name] == close(expected[name]), (row["id"], name)
        assert found["verdict_accuracy"] == expected["verdict_match"]
        at_stricter = stricter.evaluate(row["answer"], row["item"])
        for part, value in expected["at_threshold_0.3"].items():
            assert at_stricter[f"evidence_{part}"] == close(value), (row["id"], part)
        if (found["evidence_precision"] or 0.0) > 1:
            above_one.append(row["id"])
    assert above_one == aggregates()["precision_above_one"]


def test_aggregates_of_the_original() -> None:
    expected = aggregates()["expected_original"]
    rows = successful()
    found = observed(original(), rows)
    assert (len(read("claims.jsonl")), len(rows)) == (expected["total_tests"], expected["successful_tests"])
    same = {
        "verdict_accuracy": "verdict_accuracy",
        "evidence_macro_f1": "evidence_macro_f1",
        "evidence_f1": "evidence_micro_f1",  # the original calls the mean over claims micro
        "explanation_score": "explanation_correctness",
        "overall_score": "overall_score",
    }
    for name, theirs in same.items():
        assert found[name].value == close(expected[theirs]), name
    for verdict, value in expected["verdict_accuracy_by_class"].items():
        assert found[f"verdict_accuracy[{verdict}]"].value == close(value)
    for verdict, value in expected["evidence_macro_f1_by_verdict"].items():
        assert found[f"evidence_f1[{verdict}]"].value == close(value)
    for flag, count in expected["explanation_error_types"].items():
        assert found[f"defect[{flag}]"].value == close(count / len(rows))
    cells: dict[str, float] = {}
    for gold, row in expected["confusion_matrix"].items():
        for predicted, count in row.items():
            name = f"confusion[{gold}->{predicted if predicted in VERDICTS else '(other)'}]"
            cells[name] = cells.get(name, 0) + count
    counted = {name: each.value for name, each in found.items() if name.startswith("confusion")}
    assert {name: value for name, value in counted.items() if value} == cells


@pytest.mark.parametrize("threshold", [0.2, 0.3])
@pytest.mark.parametrize(("form", "key"), [("each_side", "from_each_side"), ("original", "from_gt_matches")])
def test_pooled_evidence_as_the_document_defines_it(threshold: float, form: Any, key: str) -> None:
    evaluator = FactCheck(
        evidence_threshold=threshold, evidence_form=form, tokenizer="words", evidence_matching="original"
    )
    found = observed(evaluator, successful())
    for part, value in aggregates()["document"][f"evidence_micro_{threshold}"][key].items():
        assert found[f"evidence_micro_{part}"].value == close(value), part


@pytest.mark.parametrize(
    ("threshold", "form", "key"),
    [
        (0.2, "each_side", "evidence_macro_0.2_each_side"),
        (0.3, "original", "evidence_macro_0.3"),
        (0.3, "each_side", "evidence_macro_0.3_each_side"),
    ],
)
def test_macro_evidence_as_the_document_defines_it(threshold: float, form: Any, key: str) -> None:
    expected = aggregates()["document"][key]
    found = observed(
        FactCheck(evidence_threshold=threshold, evidence_form=form, tokenizer="words", evidence_matching="original"),
        successful(),
    )
    assert found["evidence_macro_f1"].value == close(expected["macro"])
    for verdict, value in expected["by_verdict"].items():
        assert found[f"evidence_f1[{verdict}]"].value == close(value)


def test_error_buckets_hold_the_cases_of_the_original_error_analysis() -> None:
    evaluator = original()
    buckets = {each.name: each for each in evaluator.error_buckets()}
    found: dict[str, list[int]] = {name: [] for name in buckets}
    for place, row in enumerate(read("claims.jsonl")):
        if row["success"]:
            scores = evaluator.scores(evaluator.measure_judged(case(row), [grade(row)]))
            for name, bucket in buckets.items():
                if bucket.holds(scores[bucket.metric]):
                    found[name].append(place)
    assert found == aggregates()["error_analysis"]


def test_grades_are_as_recorded_and_what_the_original_makes_50_is_an_error() -> None:
    """The original gives 50 to a reply that it cannot read (a fenced one included), reads true as 1, and clamps."""
    read_grade = ModeFile.mode_named("explanation").read
    for row in read("explanation_replies.jsonl"):
        try:
            verdict = read_grade(row["reply"])
        except JudgeError:
            assert row["expected_score"] in (50, True) or not 0 <= json.loads(row["reply"])["score"] <= 100, row
            continue
        fenced = row["reply"].startswith("```")
        assert verdict.score == (85 if fenced else row["expected_score"]), row
        assert {f"has_{flag}": verdict.details[flag] for flag in FLAGS} == row["expected_flags"]

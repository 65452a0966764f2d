import json
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_llmeval import Case, ErrorBucket, EvaluatorError, get_evaluator, score, score_stream
from pytest_llmeval.core import ConfusionMatrix, JudgeError
from pytest_llmeval.judges import ModeFile, Verdict
from pytest_llmeval.judges._panel import NoJudgeError
from pytest_llmeval.judges.questions._replies import FLAGS
from pytest_llmeval.numbers import summarize
from pytest_llmeval.numbers._table import CaseRecord
from pytest_llmeval.tasks.fact_check._evaluator import FactCheck

GOLD = {
    "claim": "The lighthouse is 40 m high.",
    "verdict": "Refuted",
    "justification": "It is 31 m high.",
    "evidence_sources": [
        {"content": "Harbour office register", "url": "https://harbour.example/r"},
        {"content": "Chart of the bay", "url": ""},
    ],
}
ANSWER = {
    "verdict": "Refuted",
    "justification": "According to the Harbour office register, it is 31 m high, 23% less.",
    "confidence": "High",
}
PARTS = {"evidence_precision": 0.5, "evidence_recall": 0.5, "evidence_f1": 0.5}
NO_FLAGS = dict.fromkeys(FLAGS, False)


def case(prediction: Any = ANSWER, expected: Any = GOLD, **more: Any) -> Case:
    return Case(id="c", expected=expected, prediction=prediction, **more)


def judged(verdict: Verdict | JudgeError, evaluator: FactCheck | None = None, **parts: Any) -> dict[str, Any]:
    evaluator = evaluator or FactCheck()
    observation = evaluator.measure_judged(case(**parts), [verdict])
    return {**observation.details, **evaluator.scores(observation)}


def values(
    evaluator: FactCheck, cases: list[Case], verdicts: list[Verdict | JudgeError] | None = None
) -> dict[str, Any]:
    told = [[each] for each in verdicts] if verdicts else [[] for _ in cases]
    records = [
        CaseRecord(str(place), observations={"fact_check": evaluator.measure_judged(each, said)})
        for place, (each, said) in enumerate(zip(cases, told, strict=True))
    ]
    return dict(summarize({"fact_check": evaluator}, records, confidence=None).metrics)


def test_evaluate_gives_the_metrics_and_what_people_want_to_see() -> None:
    found = get_evaluator("fact_check", explanation="omit").evaluate(json.dumps(ANSWER), GOLD)
    assert {name: found[name] for name in PARTS} == PARTS
    assert found["verdict_accuracy"] == 1.0
    assert found["explanation_score"] is None
    assert found["overall_score"] == pytest.approx((0.4 + 0.3 * 0.5) / 0.7)
    assert found["matched_evidence"] == [
        {"cited": "the Harbour office register", "gold": "Harbour office register", "why": "contains"}
    ]
    assert found["missed_evidence"] == ["Chart of the bay"]
    assert found["unmatched_citations"] == ["23%"]
    assert (found["gold_verdict"], found["predicted_verdict"], found["confidence"]) == ("Refuted", "Refuted", "High")
    assert found["unparsed"] is False
    assert (found["claim"], found["justification"]) == (GOLD["claim"], ANSWER["justification"])


def test_without_a_judge_explanation_and_overall_score_do_not_exist() -> None:
    observation = FactCheck().measure(case())
    assert observation.undefined["explanation_score"] == "no judge was used"
    assert observation.undefined["overall_score"] == "no score for the explanation"
    found = FactCheck().evaluate(ANSWER, GOLD)
    assert (found["explanation_score"], found["overall_score"], found["verdict_accuracy"]) == (None, None, 1.0)
    result = score(FactCheck(), [case()], confidence=None).metrics
    assert (result["overall_score"].value, result["overall_score"].undefined) == (None, 1)
    assert result["evidence_f1"].value == 0.5


def test_a_judges_grade_makes_the_overall_score() -> None:
    found = judged(Verdict(80, "Sound.", NO_FLAGS | {"fabrication": True}))
    assert found["explanation_score"] == 0.8
    assert found["overall_score"] == pytest.approx(0.4 + 0.3 * 0.5 + 0.3 * 0.8)
    assert (found["defect[fabrication]"], found["defect[logical_errors]"]) == (1.0, 0.0)
    assert found["explanation_defects"] == ["fabrication"]
    assert found["explanation_reasoning"] == "Sound."


def test_a_judge_that_fails_is_an_error_of_the_explanation_only() -> None:
    evaluator = FactCheck()
    observation = evaluator.measure_judged(case(), [JudgeError("found no JSON object")])
    assert set(observation.errored) == {"explanation_score", "overall_score", *(f"defect[{flag}]" for flag in FLAGS)}
    assert observation.errored["overall_score"] == "no explanation_score"
    assert observation.undefined == {}
    scores = evaluator.scores(observation)
    assert (scores["explanation_score"], scores["overall_score"], scores["evidence_f1"]) == (None, None, 0.5)
    result = values(evaluator, [case()], [JudgeError("x")])
    assert (result["overall_score"].errored, result["verdict_accuracy"].errored) == (1, 0)


def test_a_suite_without_a_judge_is_no_error() -> None:
    observation = FactCheck().measure_judged(case(), [NoJudgeError("nobody to ask")])
    assert observation.errored == {}
    assert observation.undefined["explanation_score"] == "nobody to ask"
    assert observation.undefined["overall_score"] == "no score for the explanation"


def test_a_judge_is_asked_about_the_justification_with_what_is_right() -> None:
    (question,) = FactCheck().questions(
        case({**ANSWER, "evidence_sources": ["Bay chart", {"url": "https://x.example"}]})
    )
    assert question.mode == ModeFile.mode_named("explanation")
    assert question.language == "en"
    assert question.texts == {
        "claim": GOLD["claim"],
        "verdict": "Refuted",
        "justification": ANSWER["justification"],
        "sources": "Bay chart\nhttps://x.example",
        "gold_verdict": "Refuted",
        "gold_justification": GOLD["justification"],
        "gold_sources": "Chart of the bay\nHarbour office register (https://harbour.example/r)",
    }
    assert set(question.texts) <= set(question.mode.fields)


def test_a_judge_sees_the_whole_of_a_reply_that_cannot_be_read() -> None:
    (question,) = FactCheck().questions(case("我不知道。", {"evidence_sources": []}, input="灯塔高四十米。"))
    assert question.texts == {
        "claim": "灯塔高四十米。",
        "verdict": "Not Enough Evidence",
        "justification": "我不知道。",
    }
    assert question.language == "zh"


def test_no_judge_is_asked_when_explanations_are_omitted() -> None:
    evaluator = FactCheck(explanation="omit")
    assert list(evaluator.questions(case())) == []
    assert "defect[label]" not in [metric.name for metric in evaluator.describe()]
    assert evaluator.measure(case()).undefined["explanation_score"] == "explanations are omitted"


def test_an_unreadable_reply_is_malformed_and_scored_as_it_is() -> None:
    observation = FactCheck(explanation="omit").measure(case("No idea, see https://x.example"))
    assert observation.malformed == (
        "found text 'No idea, see https://x.example', expected a JSON object with verdict and justification"
    )
    assert observation.details["unparsed"] is True
    assert observation.details["unmatched_citations"] == ["https://x.example"]
    scores = FactCheck(explanation="omit").scores(observation)
    assert (scores["verdict_accuracy"], scores["evidence_f1"], scores["unparsed_rate"]) == (0.0, 0.0, 1.0)
    right = FactCheck().evaluate("No idea.", {**GOLD, "verdict": "Not Enough Evidence"})
    assert right["verdict_accuracy"] == 1.0


def test_listed_evidence_counts_beside_the_cited() -> None:
    listed = {
        **ANSWER,
        "evidence_sources": [{"content": "Old chart of the bay", "url": "https://c.example"}, "Hearsay"],
    }
    found = FactCheck().evaluate(listed, GOLD)
    assert (found["evidence_recall"], found["evidence_precision"]) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("expected", "undefined"),
    [
        (None, {"verdict_accuracy", "verdict_macro_f1", "evidence_f1", "evidence_micro_f1", "overall_score"}),
        ({"verdict": "Refuted"}, {"evidence_precision", "evidence_recall", "evidence_macro_f1", "overall_score"}),
        ({"evidence_sources": []}, {"verdict_accuracy", "evidence_macro_f1", "evidence_micro_recall", "overall_score"}),
    ],
)
def test_what_the_ground_truth_leaves_out_is_undefined(expected: Any, undefined: set[str]) -> None:
    evaluator = FactCheck(explanation="omit")
    observation = evaluator.measure(case(expected=expected))
    assert undefined <= set(observation.undefined)
    assert all(value is None for name, value in evaluator.scores(observation).items() if name in undefined)


CITED = {"verdict": "Refuted", "justification": "According to the Harbour office, 31 m."}


@pytest.mark.parametrize(
    ("gold", "source", "f1", "why"),
    [
        ({**CITED, "evidence_sources": []}, "auto", 0.0, ""),
        (CITED, "auto", 1.0, ""),
        ({**CITED, "evidence_sources": None}, "auto", 1.0, ""),
        ({**CITED, "evidence_sources": [{"content": "Chart"}]}, "justification", 1.0, ""),
        (CITED, "sources", None, "no expected evidence_sources"),
        ({"justification": "So it is."}, "justification", 0.0, ""),
        (
            {"justification": "So it is."},
            "auto",
            None,
            "no expected evidence_sources, and the expected justification cites nothing",
        ),
        ({"evidence_sources": ["the Harbour office"]}, "justification", None, "no expected justification"),
    ],
)
def test_expected_evidence_is_listed_or_cited_by_the_expected_justification(
    gold: Any, source: Any, f1: float | None, why: str
) -> None:
    evaluator = FactCheck(evidence_from=source)
    observation = evaluator.measure(case(CITED, gold))
    assert evaluator.scores(observation)["evidence_f1"] == f1
    assert observation.undefined.get("evidence_f1", "") == why


def test_a_trailing_comma_is_noted_and_costs_nothing() -> None:
    observation = FactCheck().measure(case('{"verdict": "Refuted",}'))
    assert (observation.malformed, observation.details["note"]) == (
        None,
        "a comma behind the last entry was ignored",
    )
    assert FactCheck().scores(observation)["verdict_accuracy"] == 1.0


def test_no_evidence_on_either_side_is_right() -> None:
    gold = {**GOLD, "evidence_sources": []}
    found = FactCheck().evaluate({"verdict": "Refuted", "justification": "So it is."}, gold)
    assert (found["evidence_precision"], found["evidence_recall"], found["evidence_f1"]) == (1.0, 1.0, 1.0)
    assert (found["evidence_micro_precision"], found["evidence_micro_f1"]) == (None, None)
    cited = FactCheck().evaluate(ANSWER, gold)
    assert (cited["evidence_f1"], cited["evidence_micro_precision"], cited["evidence_micro_recall"]) == (0.0, 0.0, None)
    nothing = FactCheck().evaluate({"justification": "So it is."}, GOLD)
    assert (nothing["evidence_f1"], nothing["evidence_micro_precision"], nothing["evidence_micro_f1"]) == (
        0.0,
        0.0,
        0.0,
    )


def answers() -> list[Case]:
    """Three claims that are Refuted, one Supported; right, wrong, no label, right."""
    said = ["Refuted", "Supported", "Refuted.", "Supported"]
    gold = ["Refuted", "Refuted", "Refuted", "Supported"]
    texts = ["According to Chart, x", "According to Chart, x", "", "According to Hearsay of the bar and others, 1%"]
    sources: list[list[Mapping[str, str]]] = [
        [{"content": "Chart"}],
        [{"content": "Chart"}, {"content": "Log"}],
        [],
        [],
    ]
    return [
        case(
            {"verdict": verdict, "justification": text},
            {"verdict": right, "evidence_sources": evidence, "justification": ""},
        )
        for verdict, right, text, evidence in zip(said, gold, texts, sources, strict=True)
    ]


def test_scores_of_a_suite_follow_their_definitions() -> None:
    found = {name: value.value for name, value in values(FactCheck(explanation="omit"), answers()).items()}
    assert found["verdict_accuracy"] == 0.5
    assert found["verdict_accuracy[Refuted]"] == pytest.approx(1 / 3)
    assert found["verdict_accuracy[Supported]"] == 1.0
    # Refuted: precision 1, recall 1/3; Supported: precision 1/2, recall 1.
    assert found["verdict_macro_f1"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert {name: value for name, value in found.items() if name.startswith("confusion")} == {
        "confusion[Refuted->Refuted]": 1.0,
        "confusion[Refuted->Supported]": 1.0,
        "confusion[Refuted->Not Enough Evidence]": 0.0,
        "confusion[Refuted->(other)]": 1.0,
        "confusion[Supported->Refuted]": 0.0,
        "confusion[Supported->Supported]": 1.0,
        "confusion[Supported->Not Enough Evidence]": 0.0,
        "confusion[Supported->(other)]": 0.0,
    }
    f1 = [1.0, 2 / 3, 1.0, 0.0]
    assert found["evidence_f1"] == pytest.approx(sum(f1) / 4)
    assert found["evidence_f1[Refuted]"] == pytest.approx(sum(f1[:3]) / 3)
    assert found["evidence_macro_f1"] == pytest.approx((sum(f1[:3]) / 3 + 0.0) / 2)
    # Four citations, two of them match; three sources, two of them matched.
    assert found["evidence_micro_precision"] == pytest.approx(2 / 4)
    assert found["evidence_micro_recall"] == pytest.approx(2 / 3)
    assert found["evidence_micro_f1"] == pytest.approx(4 / 7)
    overall = [0.4 * right + 0.3 * each for right, each in zip([1, 0, 0, 1], f1, strict=True)]
    assert found["overall_score"] == pytest.approx(sum(overall) / 0.7 / 4)


def test_tables_show_scores_by_gold_verdict_and_the_confusion_matrix() -> None:
    evaluator = FactCheck(explanation="omit")
    by_verdict, matrix = evaluator.tables()
    assert list(by_verdict.metric_names()) == ["verdict_accuracy[verdict]", "evidence_f1[verdict]"]
    assert isinstance(matrix, ConfusionMatrix)
    counts = [evaluator.measure(each).counts for each in answers()]
    cells = [("Refuted", "Refuted"), ("Refuted", "Supported"), ("Refuted", "(other)"), ("Supported", "Supported")]
    assert [sum(each.get(matrix.count(*cell), 0) for each in counts) for cell in cells] == [1, 1, 1, 1]


def test_a_cell_of_the_confusion_matrix_counts_claims_with_its_gold_verdict() -> None:
    found = values(FactCheck(explanation="omit"), answers())
    never = found["confusion[Supported->Refuted]"]
    assert (never.value, never.scored, never.undefined) == (0.0, 1, 3)


def test_rates_of_defects_and_the_mean_explanation_are_those_of_judged_claims() -> None:
    said: list[Verdict | JudgeError] = [
        Verdict(100, details=NO_FLAGS),
        Verdict(50, details=NO_FLAGS | {"wrong_citation": True}),
        JudgeError("x"),
    ]
    found = values(FactCheck(), answers()[:3], said)
    assert (found["explanation_score"].value, found["explanation_score"].errored) == (0.75, 1)
    assert found["defect[wrong_citation]"].value == 0.5
    assert {(found[f"defect[{flag}]"].scored, found[f"defect[{flag}]"].errored) for flag in FLAGS} == {(2, 1)}
    assert found["overall_score"].scored == 2


def test_the_original_form_may_exceed_one_and_says_so() -> None:
    evaluator = FactCheck(evidence_form="original", explanation="omit")
    gold = {"verdict": "Refuted", "evidence_sources": [{"content": "Harbour log"}, {"content": "Harbour survey"}]}
    found = evaluator.evaluate({"verdict": "Refuted", "justification": "According to Harbour, x"}, gold)
    assert (found["evidence_precision"], found["evidence_micro_precision"]) == (2.0, 2.0)
    high = {metric.name: metric.high for metric in evaluator.describe()}
    assert high["evidence_f1"] is None
    assert high["overall_score"] is None
    assert high["evidence_recall"] == 1.0


def test_other_names_of_verdicts_count_where_that_is_asked_for() -> None:
    gold = {"verdict": "REFUTES", "evidence_sources": []}
    found = get_evaluator("fact_check", verdict_labels="synonyms").evaluate({"verdict": "false"}, gold)
    assert (found["verdict_accuracy"], found["gold_verdict"]) == (1.0, "Refuted")
    assert FactCheck().evaluate({"verdict": "refuted"}, {"verdict": "Refuted"})["verdict_accuracy"] == 0.0


def test_weights_count_by_their_proportion() -> None:
    evaluator = FactCheck(weights={"verdict": 1, "evidence": 1, "explanation": 2})
    assert judged(Verdict(80, details=NO_FLAGS), evaluator)["overall_score"] == pytest.approx((1 + 0.5 + 1.6) / 4)
    without = FactCheck(weights={"explanation": 0})
    assert without.evaluate(ANSWER, GOLD)["overall_score"] == pytest.approx((0.4 + 0.15) / 0.7)
    assert judged(JudgeError("x"), without)["overall_score"] == pytest.approx((0.4 + 0.15) / 0.7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": {"verdicts": 1}}, "unknown part verdicts, did you mean verdict"),
        ({"weights": {"verdict": -1}}, "found -1.0 for verdict, expected a number of at least 0"),
        ({"weights": {"verdict": 0, "evidence": 0}, "explanation": "omit"}, "found 0 for all parts in use"),
        ({"error_limits": {"low_f1": 0.3}}, "unknown error bucket low_f1"),
        ({"error_limits": {"low_evidence_f1": float("inf")}}, "found inf for low_evidence_f1"),
        ({"evidence_threshold": 0}, "evidence_threshold: found 0.0, expected a number above 0 and up to 1"),
        ({"evidence_threshold": 2, "weights": {"verdict": -1}}, "evidence_threshold: found 2.0.*; weights: found -1.0"),
        ({"explanation": "none"}, "judge.*omit"),
        ({"tokenizer": "characters"}, "auto.*words"),
        ({"evidence_matching": "exact"}, "by_kind.*original"),
        ({"evidence_from": "list"}, "auto.*sources.*justification"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvaluatorError, match=message):
        get_evaluator("fact_check", **options)


def test_faulty_ground_truth_is_told_and_never_scored() -> None:
    wrong = case(expected={"verdict": "Mostly false"})
    (fault,) = FactCheck().check(wrong)
    assert fault.startswith("verdict: found text 'Mostly false', expected one of Supported")
    with pytest.raises(EvaluatorError, match="Mostly false"):
        FactCheck().measure(wrong)


def test_error_buckets_have_limits_that_options_change() -> None:
    assert list(FactCheck().error_buckets()) == [
        ErrorBucket("verdict_errors", "verdict_accuracy", below=1.0),
        ErrorBucket("low_evidence_f1", "evidence_f1", below=0.3),
        ErrorBucket("low_explanation_score", "explanation_score", below=0.5),
    ]
    assert FactCheck(error_limits={"low_evidence_f1": 0.6}).error_buckets()[1].below == 0.6


def test_signatures_say_what_scores_depend_on() -> None:
    signature = {metric.name: metric.signature for metric in FactCheck(tokenizer="words").describe()}
    evidence = "threshold:0.3|matching:by_kind|form:each_side|tok:words|v:1"
    assert signature["evidence_f1"] == evidence
    assert signature["explanation_score"] == f"judge:explanation@{ModeFile.mode_named('explanation').version}|v:1"
    assert signature["overall_score"] == f"weights:verdict=0.4,evidence=0.3,explanation=0.3|labels:strict|{evidence}"
    other = FactCheck(tokenizer="words", evidence_matching="original", evidence_from="justification").describe()
    assert other[1].signature == "threshold:0.3|from:justification|form:each_side|tok:words|v:1"


def test_long_lists_of_details_are_cut_with_their_length() -> None:
    text = "".join(f"{letter}{other}{letter} data, " for letter in "ABCDEFG" for other in "HIJKLMN")
    found = FactCheck().evaluate({"justification": text + "According to " + "long " * 200}, GOLD)
    assert (len(found["unmatched_citations"]), found["unmatched_citations_count"]) == (20, 50)
    assert "missed_evidence_count" not in found
    assert FactCheck().measure(case({"justification": "According to " + "long " * 200})).details[
        "unmatched_citations"
    ] == ["long " * 60 + "... (699 more characters)"]


def test_omitted_explanations_ask_no_judge_so_that_streams_score_them() -> None:
    omitted = get_evaluator("fact_check", explanation="omit")
    assert get_evaluator("fact_check").asks
    assert not omitted.asks
    cases = [Case("height", GOLD["claim"], GOLD, prediction={"verdict": "Refuted"})]
    assert score_stream(omitted, cases).metrics["verdict_accuracy"].value == 1


AVERITEC = ("Supported", "Refuted", "Not Enough Evidence", "Conflicting Evidence/Cherrypicking")


def test_a_data_set_declares_its_labels_and_macro_f1_is_over_all_of_them() -> None:
    from pytest_llmeval import Case, get_evaluator, score

    rows = [("Refuted", "Refuted"), (AVERITEC[3], AVERITEC[3]), ("Refuted", "Supported")]
    cases = [
        Case(str(n), expected={"verdict": gold}, prediction={"verdict": ours}) for n, (gold, ours) in enumerate(rows)
    ]
    metrics = score(get_evaluator("fact_check", explanation="omit", verdicts=AVERITEC), cases, confidence=None).metrics
    assert metrics["verdict_accuracy"].value == 2 / 3
    assert metrics["verdict_macro_f1"].value == pytest.approx((2 / 3 + 1 + 0 + 0) / 4)
    assert metrics[f"verdict_accuracy[{AVERITEC[3]}]"].value == 1


def test_the_four_examples_of_averitec_have_the_numbers_of_its_scorer() -> None:
    from pytest_llmeval import Case, get_evaluator, score

    cases = [Case(gold, expected={"verdict": gold}, prediction={"verdict": "Refuted"}) for gold in AVERITEC]
    metrics = score(get_evaluator("fact_check", explanation="omit", verdicts=AVERITEC), cases, confidence=None).metrics
    assert (metrics["verdict_accuracy"].value, metrics["verdict_macro_f1"].value) == (0.25, pytest.approx(0.1))


@pytest.mark.parametrize("predicted", ["CONTRADICT", "谣言", "pants-fire", "REFUTES", "refuted", "Contradicted"])
def test_names_of_other_data_sets_are_synonyms(predicted: str) -> None:
    from pytest_llmeval import get_evaluator

    for labels in (AVERITEC, ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO"), ("SUPPORT", "CONTRADICT")):
        evaluator = get_evaluator("fact_check", explanation="omit", verdict_labels="synonyms", verdicts=labels)
        assert evaluator.evaluate({"verdict": predicted}, {"verdict": labels[1]})["verdict_accuracy"] == 1


def test_verdicts_that_are_no_label_are_noted() -> None:
    from pytest_llmeval import Case, get_evaluator, score

    cases = [Case(str(n), expected={"verdict": "Refuted"}, prediction={"verdict": "CONTRADICT"}) for n in range(3)]
    metric = score(get_evaluator("fact_check", explanation="omit"), cases).metrics["verdict_accuracy"]
    assert (metric.value, metric.reason.partition(" are")[0]) == (0, "3 of 3 predicted verdicts")

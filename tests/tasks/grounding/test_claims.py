"""Evaluator ``claims``: its metrics, what is asked for them, and what becomes of cases that lack something."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from scripted_judges import ClaimJudge

from pytest_llmeval import Case, EvaluatorError, Observation, Result, get_evaluator, score
from pytest_llmeval.core import CaseRecord, CaseResult, Parts, Reading, Sums
from pytest_llmeval.numbers import summarize
from pytest_llmeval.tasks.grounding._evaluators import ClaimMetric, Claims

ALL = get_args(ClaimMetric)
CONTEXTS = ["Refunds take 30 days at most.", "We are open from nine to five.", "A refund needs a receipt."]
CASE = Case(
    "refund",
    input={"question": "How long do refunds take?"},
    expected="Refunds take 30 days. A refund needs a receipt. Fees are waived.",
    prediction={
        "answer": "Refunds take 30 days [1]. A refund needs a receipt [2, 3]. Parking costs 5 euros [4].",
        "contexts": CONTEXTS,
    },
)
CHINESE = Case(
    "退货",
    input={"question": "多少天内可以退货？"},
    expected="三十天内可以退货。退货要收据。运费由商店承担。",
    prediction={
        "answer": "三十天内可以退货[1]。退货要收据[2, 3]。停车收费五欧元[4]。",
        "contexts": ["商品三十天内都可以退货。", "营业时间是九到五点。", "每次退货要收据。"],
    },
)


def measured(judge: ClaimJudge, *cases: Case, metrics: Sequence[str] = ALL, **more: Any) -> Result:
    return score(get_evaluator("claims", metrics=metrics), cases, confidence=None, judge=judge, **more)


def values(result: Result) -> Mapping[str, float | None]:
    return {name: each.value for name, each in result.metrics.items()}


def of_case(judge: ClaimJudge, case: Case, metrics: Sequence[str] = ALL) -> tuple[CaseResult, Mapping[str, Any]]:
    """Return the result of one case, and why metrics have no value."""
    result = measured(judge, case, metrics=metrics, max_workers=1)
    (record,) = result.records
    observation = record.observations["claims"]
    return result.cases[0], {**observation.undefined, **{name: f"! {why}" for name, why in observation.errored.items()}}


@pytest.mark.parametrize("case", [CASE, CHINESE])
def test_every_metric_is_a_ratio_of_claims_passages_or_citations(case: Case) -> None:
    judge = ClaimJudge()
    assert values(measured(judge, case)) == pytest.approx(
        {
            "faithfulness": 2 / 3,
            "hallucination_rate": 1 / 3,
            "context_recall": 2 / 3,
            "context_precision": (1 / 1 + 2 / 3) / 2,
            "context_relevance": 2 / 3,
            "factual_precision": 2 / 3,
            "factual_recall": 2 / 3,
            "factual_f1": 2 / 3,
            "answer_relevancy": 2 / 3,
            "citation_support": 2 / 4,
        }
    )
    assert judge.obeyed == []
    first = ["claims", "claims", "relevance", "citations"]
    assert sorted(judge.asked[:4]) == sorted(first)
    assert sorted(judge.asked[4:]) == ["relevance", *["support"] * 4]


NEEDED = {
    "faithfulness": ["claims", "support"],
    "hallucination_rate": ["claims", "support"],
    "context_recall": ["claims", "support"],
    "context_precision": ["claims", "support"],
    "context_relevance": ["relevance"],
    "factual_precision": ["claims", "support"],
    "factual_recall": ["claims", "support"],
    "factual_f1": ["claims", "claims", "support", "support"],
    "answer_relevancy": ["claims", "relevance"],
    "citation_support": ["citations"],
}


@pytest.mark.parametrize("name", ALL)
def test_only_what_a_metric_needs_is_asked_and_gives_the_same_value_as_with_the_others(name: str) -> None:
    judge = ClaimJudge()
    alone = values(measured(judge, CASE, metrics=[name]))
    assert sorted(judge.asked) == sorted(NEEDED[name])
    assert alone == {name: values(measured(ClaimJudge(), CASE))[name]}
    evaluator = Claims(metrics=(name,))  # type: ignore[arg-type]  # mypy does not know what get_args returns
    asked = len(evaluator.questions(evaluator_view(CASE)))
    assert asked + evaluator.most_follow_ups(evaluator_view(CASE)) == len(NEEDED[name])


def evaluator_view(case: Case) -> Case:
    return Reading.for_evaluator(Claims()).view(case)


def test_metrics_that_need_the_same_claims_or_verdicts_share_a_question() -> None:
    judge = ClaimJudge()
    measured(judge, CASE, metrics=["faithfulness", "hallucination_rate", "answer_relevancy", "factual_precision"])
    assert sorted(judge.asked) == ["claims", "relevance", "support", "support"]


def changed(**changes: Any) -> Case:
    prediction = {**CASE.prediction, **{name: changes.pop(name) for name in ("answer", "contexts") if name in changes}}
    return replace(CASE, prediction=prediction, **changes)


NO_CLAIMS = "the answer makes no claims"
LACKING: Mapping[str, tuple[Case, Mapping[str, Any]]] = {
    "an empty answer": (
        changed(answer=""),
        {
            **dict.fromkeys(["faithfulness", "hallucination_rate", "factual_precision", "answer_relevancy"], NO_CLAIMS),
            "citation_support": "the answer cites nothing",
            "factual_recall": 0.0,
            "factual_f1": 0.0,
        },
    ),
    "an answer without claims": (
        changed(answer="Why do you ask?"),
        {
            **dict.fromkeys(["faithfulness", "hallucination_rate", "factual_precision", "answer_relevancy"], NO_CLAIMS),
            "citation_support": "the answer cites nothing",
            "factual_recall": 0.0,
            "factual_f1": 0.0,
        },
    ),
    "an expected answer without claims": (
        changed(expected="Who knows?"),
        {
            **dict.fromkeys(
                ["context_recall", "context_precision", "factual_recall"], "the expected answer makes no claims"
            ),
            "factual_precision": 0.0,
            "factual_f1": 0.0,
        },
    ),
    "no expected answer": (
        changed(expected=None),
        dict.fromkeys(
            ["context_recall", "context_precision", "factual_precision", "factual_recall", "factual_f1"],
            "no expected answer",
        ),
    ),
    "a blank expected answer": (
        changed(expected=["  "]),
        dict.fromkeys(
            ["context_recall", "context_precision", "factual_precision", "factual_recall", "factual_f1"],
            "no expected answer",
        ),
    ),
    "no question": (changed(input=None), dict.fromkeys(["context_relevance", "answer_relevancy"], "no question")),
    **{
        f"the question {given!r}": (
            changed(input=given),
            dict.fromkeys(["context_relevance", "answer_relevancy"], "no question"),
        )
        for given in (" ", {"question": " "}, {"question": None}, {"contexts": ["Shipping is free."]})
    },
    "nothing retrieved": (
        changed(contexts=[]),
        {
            **dict.fromkeys(["faithfulness", "context_recall", "context_precision", "citation_support"], 0.0),
            "hallucination_rate": 1.0,
            "context_relevance": "no contexts",
        },
    ),
    "blank passages": (
        changed(contexts=["", " ", "\n"]),
        {
            **dict.fromkeys(["faithfulness", "context_recall", "context_precision", "citation_support"], 0.0),
            "hallucination_rate": 1.0,
            "context_relevance": 0.0,
        },
    ),
    "no citation": (changed(answer="Refunds take 30 days."), {"citation_support": "the answer cites nothing"}),
}


@pytest.mark.parametrize("name", LACKING)
def test_what_a_case_lacks_is_undefined_with_its_reason_or_counts_against_it(name: str) -> None:
    case, wanted = LACKING[name]
    result, reasons = of_case(ClaimJudge(), case)
    found = {each: reasons.get(each, result.metrics.get(each)) for each in wanted}
    assert found == wanted
    others = set(ALL) - {each for each, value in wanted.items() if isinstance(value, str)}
    assert all(result.metrics[each] is not None for each in others)
    assert set(reasons) == {each for each, value in wanted.items() if isinstance(value, str)}


def test_that_nothing_says_what_the_passages_are_is_an_error_of_the_metrics_that_need_them() -> None:
    judge = ClaimJudge()
    _, reasons = of_case(judge, replace(CASE, prediction={"answer": "Refunds take 30 days."}))
    needing = ["faithfulness", "hallucination_rate", "context_recall", "context_precision", "context_relevance"]
    assert reasons == dict.fromkeys(
        [*needing, "citation_support"],
        "! the prediction has the keys answer; no 'contexts'; set parts.contexts, or give the input contexts",
    )
    assert sorted(judge.asked) == ["claims", "claims", "relevance", "support", "support"]


@pytest.mark.parametrize(
    ("case", "parts"),
    [
        (replace(CASE, input={"question": "How long do refunds take?", "contexts": CONTEXTS}, prediction=""), Parts()),
        (
            replace(CASE, prediction={"output": "", "hits": [{"text": each} for each in CONTEXTS]}),
            Parts(answer="output", contexts="hits[].text"),
        ),
    ],
)
def test_passages_are_found_in_the_input_and_wherever_the_suite_says(case: Case, parts: Parts) -> None:
    answer = CASE.prediction["answer"]
    case = replace(case, prediction={**case.prediction, "output": answer} if case.prediction else answer)
    assert values(measured(ClaimJudge(), case, parts=parts)) == values(measured(ClaimJudge(), CASE))


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (changed(expected=["30 days", "A month"]), "found 2 expected answers, expected one: claims are those of one"),
        (changed(expected={"days": 30}), "found an object as expected, expected text"),
        (
            replace(CASE, input={"contexts": {"a": 1}}, prediction="x"),
            "found an object as contexts of the input, expected a list of texts",
        ),
        (
            replace(CASE, input={"contexts": ["a", None]}, prediction="x"),
            r"found null as contexts\[1\] of the input, expected text",
        ),
    ],
)
def test_what_is_wrong_with_a_case_is_a_fault_of_its_file(case: Case, message: str) -> None:
    assert [each for each in Claims().check(case) if re.search(message, each)]
    with pytest.raises(EvaluatorError, match=message):
        Claims().questions(case)


@pytest.mark.parametrize(
    ("prediction", "message"),
    [
        (None, "faithfulness and 5 more: the prediction is null; no 'contexts'"),
        ({"answer": None, "contexts": []}, "found null, expected an answer"),
        ({"answer": "It is free.", "contexts": {"a": 1}}, "found an object as contexts, expected a list of texts"),
        ({"answer": "It is free.", "contexts": ["It is free.", None]}, "found null as contexts[1], expected text"),
        ({"answer": "It is free.", "contexts": None}, "found null as contexts, expected a list of texts"),
    ],
)
def test_a_prediction_that_cannot_be_read_fails_its_case(prediction: Any, message: str) -> None:
    result, _ = of_case(ClaimJudge(), replace(CASE, prediction=prediction))
    assert str(result.reason).startswith(message)


def test_a_passage_of_null_keeps_its_number_and_is_not_shown() -> None:
    judge = ClaimJudge()
    hole = replace(CASE, prediction={**CASE.prediction, "contexts": [CONTEXTS[0], None, CONTEXTS[2]]})
    found = values(measured(judge, hole))
    blank = replace(CASE, prediction={**CASE.prediction, "contexts": [CONTEXTS[0], " ", CONTEXTS[2]]})
    assert found == values(measured(ClaimJudge(), blank))
    assert not any("passage_2" in texts for texts in judge.shown)


def test_claims_of_all_cases_are_pooled_and_intervals_draw_cases() -> None:
    short = replace(CASE, id="short", prediction={"answer": "Refunds take 30 days.", "contexts": CONTEXTS})
    result = measured(ClaimJudge(), CASE, short, metrics=["faithfulness", "factual_f1"])
    metric = result.metrics["faithfulness"]
    assert (metric.value, metric.mean) == pytest.approx((3 / 4, (2 / 3 + 1) / 2))
    precision, recall = 3 / 4, 3 / 6
    assert values(result)["factual_f1"] == pytest.approx(2 * precision * recall / (precision + recall))


@pytest.mark.parametrize("name", ["faithfulness", "factual_f1"])
def test_intervals_take_the_case_as_the_unit_however_many_claims_it_has(name: str) -> None:
    def interval(times: int) -> tuple[float | None, float | None]:
        shares = [(1, 3), (2, 3), (3, 3), (1, 3), (2, 3), (3, 3), (0, 3), (3, 3)]
        parts = ("hits", "of", "answer_hits", "answer", "reference_hits", "reference")
        counts = [{f"{name}.{part}": times * each[n % 2] for n, part in enumerate(parts)} for each in shares]
        records = [CaseRecord(str(n), observations={"claims": Observation(each)}) for n, each in enumerate(counts)]
        found = summarize({"claims": get_evaluator("claims", metrics=[name])}, records).metrics[name]
        return found.low, found.high

    assert interval(1) == interval(20)


def without_last(reply: Any) -> Any:
    return {key: items[:-1] for key, items in reply.items()}


def test_a_reply_that_lacks_a_claim_is_asked_for_once_more_and_its_denominator_is_the_same() -> None:
    judge = ClaimJudge({"support": [without_last]})
    assert values(measured(judge, CASE, metrics=["faithfulness"])) == {"faithfulness": pytest.approx(2 / 3)}
    assert judge.asked == ["claims", "support", "support"]


@pytest.mark.parametrize(
    ("kind", "lost"),
    [
        ("claims", {"faithfulness", "hallucination_rate", "factual_precision", "factual_f1", "answer_relevancy"}),
        ("citations", {"citation_support"}),
        ("relevance", {"context_relevance"}),
    ],
)
def test_a_second_bad_reply_is_an_error_of_the_metrics_that_need_it_and_never_a_score(
    kind: str, lost: set[str]
) -> None:
    judge = ClaimJudge({kind: [without_last, without_last]})
    result, reasons = of_case(judge, CASE)
    assert set(reasons) == lost
    assert all(" missing, expected each of " in why for why in reasons.values())
    assert result.outcome == "errored"
    assert str(result.reason).startswith(next(each for each in ALL if each in lost))
    others = values(measured(ClaimJudge(), CASE))
    assert {name: result.metrics[name] for name in set(ALL) - lost} == {n: others[n] for n in set(ALL) - lost}
    assert measured(ClaimJudge({kind: [without_last] * 2}), CASE, max_workers=1).metrics[min(lost)].errored == 1


def test_a_failing_case_names_claims_passages_and_citations_that_do_not_hold() -> None:
    result, _ = of_case(ClaimJudge(), CASE)
    assert result.details["claims"]["wrong"] == [
        "claim 3 is supported by no context: Parking costs 5 euros.",
        "claim 3 is not in the expected answer: Parking costs 5 euros.",
        "claim 3 does not bear on the question: Parking costs 5 euros.",
        "claim 3 of the expected answer is missed: Fees are waived.",
        "claim 3 of the expected answer is in no context: Fees are waived.",
        "context 2 does not bear on the question",
        "context 2 does not support 'A refund needs a receipt [2, 3].'",
        "context 4 does not support 'Parking costs 5 euros [4].' (there is no such context)",
    ]
    assert result.details["claims"]["claims"][0] == {
        "claim": "Refunds take 30 days.",
        "contexts": [1],
        "expected": True,
        "relevant": True,
    }


def test_where_all_claims_hold_nothing_is_explained() -> None:
    right = changed(answer="Refunds take 30 days.", expected="Refunds take 30 days.", contexts=CONTEXTS[:1])
    result = measured(ClaimJudge(), right, metrics=["faithfulness", "factual_f1"])
    observation = result.records[0].observations["claims"]
    assert "claims" in observation.details
    assert list(Claims().explain(right, observation)) == []


def test_the_language_of_the_instructions_follows_the_question_or_the_option() -> None:
    for case, language, wanted in ((CHINESE, "auto", "zh"), (CASE, "auto", "en"), (CASE, "zh", "zh")):
        evaluator = get_evaluator("claims", metrics=ALL, language=language)
        assert {each.language for each in evaluator.questions(evaluator_view(case))} == {wanted}  # type: ignore[attr-defined]  # it asks a judge


@pytest.mark.parametrize("metrics", [[], ["faithfulness", "faithfulness"]])
def test_metrics_are_chosen_once_each(metrics: list[str]) -> None:
    with pytest.raises(EvaluatorError, match="expected one or more, each once"):
        get_evaluator("claims", metrics=metrics)


def test_signatures_name_all_instructions_so_that_further_metrics_leave_scores_comparable() -> None:
    (signature,) = {each.signature for each in Claims(metrics=ALL).describe()}
    modes = "claims@1,claim_support@2,claim_relevance@1,passage_relevance@1,citation_support@2"
    assert signature == f"modes:{modes}|lang:auto|v:1"
    assert [each.signature for each in Claims().describe()] == [signature]
    worse = [each.name for each in Claims(metrics=ALL).describe() if not each.higher_is_better]
    assert worse == ["hallucination_rate"]


@pytest.mark.parametrize(
    ("case", "asked", "follow_ups"),
    [
        (changed(contexts=["", "\n"]), ["claims", "claims", "relevance", "support", "support"], 3),
        (changed(answer=""), ["claims", "relevance", "support"], 1),
        (changed(answer="", expected=None), ["relevance"], 0),
    ],
)
def test_nothing_is_asked_whose_answer_is_known(case: Case, asked: list[str], follow_ups: int) -> None:
    judge = ClaimJudge()
    measured(judge, case)
    assert sorted(judge.asked) == asked
    assert Claims(metrics=ALL).most_follow_ups(evaluator_view(case)) == follow_ups


def test_f1_of_no_claims_is_no_number() -> None:
    with np.errstate(invalid="ignore"):
        (value,) = Claims(metrics=("factual_f1",)).summarize(Sums({}, length=1))["factual_f1"]
    assert math.isnan(value)

"""The evaluator `document_ids`: what it reads, counts and refuses."""

import math
from typing import Any

import pytest

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.core import EvaluatorError, Parts


def scores(prediction: Any, expected: Any, **options: Any) -> dict[str, Any]:
    return dict(get_evaluator("document_ids", **{"k": 3, **options}).evaluate(prediction, expected))


RESULTS = [
    ["x", "a", "b"],
    [{"id": "x"}, {"doc_id": "a"}, {"id": "b", "text": "B."}],
    {"answer": "A.", "contexts": ["x", "a", "b"]},
    {"answer": "A.", "sources": [{"id": "x"}, {"id": "a"}, {"id": "b"}], "contexts": ["X y.", "A b.", "B c."]},
    {"answer": "A.", "sources": ["x", "a", "b"], "usage": {}},
    '["x", "a", "b"]',
]


@pytest.mark.parametrize("prediction", RESULTS)
@pytest.mark.parametrize(
    "expected",
    [["a", "b"], {"answer": "A.", "sources": ["a", "b"]}, {"contexts": [{"id": "a"}, "b"]}, '["a", "b"]'],
)
def test_ids_are_read_from_results_of_any_form(prediction: Any, expected: Any) -> None:
    result = scores(prediction, expected)
    ideal = 1 + 1 / math.log2(3)
    assert {name: result[f"{name}@3"] for name in ("recall", "precision", "hit_rate", "mrr")} == {
        "recall": 1,
        "precision": pytest.approx(2 / 3),
        "hit_rate": 1,
        "mrr": 0.5,
    }
    assert result["ndcg@3"] == pytest.approx((1 / math.log2(3) + 0.5) / ideal)


def test_a_text_is_one_id_or_several_with_a_separator() -> None:
    assert scores(["a b", "c"], "a b")["recall@3"] == 1
    assert scores(["a", "7"], "7; a;", separator=";")["recall@3"] == 1
    assert scores([7], "7")["recall@3"] == scores(["7"], 7)["recall@3"] == 1


@pytest.mark.parametrize("expected", [264.0, "264.0", [264.0], '["264.0"]', {"sources": "264.0"}, [{"id": 264.0}]])
@pytest.mark.parametrize("found", [264, 264.0, "264", "264.0"])
def test_a_whole_number_is_the_same_id_with_and_without_a_fraction(expected: Any, found: Any) -> None:
    for results in ([5, found], ["a", found], [{"id": "a"}, {"id": found}]):
        assert scores(results, expected)["mrr@3"] == 0.5
    assert scores([2640, "264.00", "26", 264.5], expected)["recall@3"] == 0


def test_passages_of_a_document_count_once_at_its_first_rank() -> None:
    result = scores(["a", "a", "a", "x", "b"], ["a", "b"])
    assert (result["recall@3"], result["precision@3"], result["mrr@3"]) == (1, pytest.approx(2 / 3), 1)
    assert result["retrieved_ids"] == ["a", "x", "b"]


def test_each_metric_has_a_value_for_each_k() -> None:
    evaluator = get_evaluator("document_ids", k=[3, 1], metrics=["recall", "mrr"])
    assert [metric.name for metric in evaluator.describe()] == ["recall@1", "recall@3", "mrr@1", "mrr@3"]
    assert all(metric.high == 1 for metric in evaluator.describe())
    result = evaluator.evaluate(["x", "a"], "a")
    assert [result[name] for name in ("recall@1", "recall@3", "mrr@1", "mrr@3")] == [0, 1, 0, 0.5]


def test_nothing_retrieved_is_a_miss_and_nothing_expected_is_undefined() -> None:
    cases = [
        Case("missed", expected="a", prediction=[]),
        Case("unlabelled", expected={"answer": "A."}, prediction=["a"]),
        Case("unanswerable", expected=[], prediction=["a"]),
        Case("elsewhere", expected="a", prediction={"hits": ["a"]}),
    ]
    result = score(get_evaluator("document_ids"), cases, confidence=None)
    metric = result.metrics["recall@5"]
    assert (metric.value, metric.scored, metric.undefined, metric.errored) == (0, 2, 2, 0)
    assert "neither 'sources' nor 'contexts'" in str(result.cases[3])


def test_the_part_contexts_is_read_where_the_suite_says_it_is() -> None:
    case = Case("a", expected="a", prediction={"answer": "A.", "hits": [{"id": "a"}]})
    result = score(get_evaluator("document_ids"), [case], parts=Parts(contexts="hits"), confidence=None)
    assert result.metrics["recall@5"].value == 1


@pytest.mark.parametrize(
    ("prediction", "fault"),
    [
        ({"contexts": ["Refunds take 30 days."]}, "found results such as text 'Refunds take 30 days.', expected ids"),
        ({"sources": [{"content": "A."}]}, "found results with content, expected one of the fields id, doc_id"),
        ("a, b", "found text 'a, b', expected a list of results"),
    ],
)
def test_results_without_ids_are_malformed(prediction: Any, fault: str) -> None:
    observation = get_evaluator("document_ids").measure(Case("a", expected=["a"], prediction=prediction))
    assert fault in (observation.malformed or "")
    assert get_evaluator("document_ids").scores(observation)["recall@5"] == 0


def test_a_failing_case_says_what_was_retrieved() -> None:
    evaluator = get_evaluator("document_ids", k=2)
    case = Case("a", expected=["a", "b"], prediction=["x", "a", "b"])
    assert evaluator.explain(case, evaluator.measure(case)) == ["not retrieved: b; retrieved: x, a"]


def test_faults_of_expected_ids_and_options() -> None:
    evaluator = get_evaluator("document_ids")
    assert list(evaluator.check(Case("a", expected=["a", None]))) == [
        "expected ids[1]: found null, expected a text or a whole number"
    ]
    for options, part in (({"k": 0}, "k: found"), ({"k": [1, 1]}, "k: found"), ({"separator": ""}, "separator")):
        with pytest.raises((EvaluatorError, ValueError), match=part):
            get_evaluator("document_ids", **options)

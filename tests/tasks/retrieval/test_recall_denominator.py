"""What recall divides by."""

from itertools import product
from typing import Any

import pytest

from pytest_llmeval import Case, get_evaluator, score


@pytest.mark.parametrize(
    ("denominator", "recalls", "pooled"),
    [("positives", (1.0, 2.0), 2.0), ("k", (0.25, 0.5), 0.5), (10, (0.1, 0.2), 0.2), (1, (1.0, 2.0), 2.0)],
)
def test_recall_divides_by_the_positives_or_by_the_same_number_for_every_query(
    denominator: Any, recalls: tuple[float, float], pooled: float
) -> None:
    evaluator = get_evaluator("retrieval", k=[1, 4], recall_denominator=denominator)
    results = [{"fact": str(number), "accusation": ["theft"]} for number in range(2)]
    found = evaluator.evaluate(results, ["0"], {"fact": "q", "meta": {"accusation": ["theft"]}})
    assert (found["accusation_recall@1"], found["accusation_recall@4"]) == recalls
    assert found["accusation_micro_recall@4"] == pooled
    assert found["gold_recall@4"] == recalls[0]
    assert found["gold_precision@4"] == 0.25
    high = {metric.name: metric.high for metric in evaluator.describe()}
    bounded = denominator in ("k", 10)
    assert high["accusation_recall@4"] == high["accusation_macro_f1@4"] == (1.0 if bounded else None)


def test_without_a_list_of_positives_recall_is_undefined_whatever_it_divides_by() -> None:
    evaluator = get_evaluator("retrieval", k=[2], recall_denominator="k")
    query = {"fact": "q", "meta": {"accusation": ["theft"]}}
    found = evaluator.evaluate([{"fact": "a", "accusation": ["theft"]}], None, query)
    assert (found["accusation_recall@2"], found["accusation_precision@2"]) == (None, 0.5)
    assert evaluator.evaluate([{"fact": "a"}], [], query)["gold_recall@2"] == 0


@pytest.mark.parametrize("by", ["id", "text"])
@pytest.mark.parametrize("denominator", ["positives", "k", 2])
@pytest.mark.parametrize("k", [1, 3])
def test_no_score_is_above_the_bound_that_its_metric_declares(by: str, denominator: Any, k: int) -> None:
    rules = {"gold": {"rule": "gold", "by": by}, "topic": {"rule": "same_set", "field": "topic"}}
    evaluator = get_evaluator("retrieval", k=sorted({k, 3}), recall_denominator=denominator, tasks=rules)
    query = {"id": "q", "text": "q", "meta": {"topic": ["a"]}}
    documents = [{"id": each, "text": each, "topic": ["a"]} for each in "ab"]
    every = [
        Case(f"{number}", query, list(expected), list(results))
        for number, (expected, results) in enumerate(product(("", "a", "ab"), product(documents, repeat=3)))
    ]
    bounds = {each.name: each.high for each in evaluator.describe()}
    values = [*score(evaluator, every, confidence=None).cases]
    pooled = [score(evaluator, [every[0], each], confidence=None).metrics for each in every[::16]]
    highest = {
        name: max([case.metrics[name] or 0.0 for case in values] + [each[name].value or 0.0 for each in pooled])
        for name in bounds
    }
    assert [name for name, high in bounds.items() if high is not None and highest[name] > high] == []
    unbounded = {name for name, high in bounds.items() if high is None}
    assert not any(name.endswith("@1") and "micro" not in name for name in unbounded if denominator == "positives")
    assert not (by == "id" and denominator == "positives" and any(name.startswith("gold") for name in unbounded))


def test_recall_of_ids_is_at_most_one() -> None:
    evaluator = get_evaluator("retrieval", k=[1, 3], tasks={"gold": {"rule": "gold", "by": "id"}})
    assert {each.high for each in evaluator.describe()} == {1.0}
    cases = [Case(str(number), None, ["a", "b"], ["a", "x", "b"]) for number in range(3)]
    assert score(evaluator, cases).metrics["gold_recall@1"].high <= 1.0  # type: ignore[operator]  # three cases have an interval

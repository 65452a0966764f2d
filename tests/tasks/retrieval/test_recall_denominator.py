"""What recall divides by."""

from typing import Any

import pytest

from pytest_llmeval import get_evaluator


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

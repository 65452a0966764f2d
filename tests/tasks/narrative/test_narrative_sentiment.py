from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval import Case, score
from pytest_llmeval.tasks.narrative._text_span import Sentiment


def story(*sentiments: Any) -> dict[str, Any]:
    """A story of one event in which A feels something towards B0, B1 ...; ``...`` leaves the relationship out."""
    relationships = [
        {"agent": "A", "target": f"B{place}", "sentiment": each}
        for place, each in enumerate(sentiments)
        if each is not ...
    ]
    return {"narrative_events": [{"id": 1, "relationships": relationships}]}


def evaluate(predicted: dict[str, Any], gold: dict[str, Any]) -> dict[str, Any]:
    return Sentiment().evaluate(predicted, gold)


def test_sets_of_sentiments_are_compared() -> None:
    found = evaluate(story("positive; fearful", "neutral"), story("positive;romantic", ["neutral"]))
    assert (found["true_positives"], found["false_positives"], found["false_negatives"]) == (2, 1, 1)
    assert found["sentiment_precision"] == found["sentiment_recall"] == found["sentiment_f1"] == pytest.approx(2 / 3)
    where = {"event": "1", "agent": "A", "target": "B0"}
    assert found["missing_sentiments"] == [where | {"sentiment": ["romantic"]}]
    assert found["extra_sentiments"] == [where | {"sentiment": ["fearful"]}]


def test_sentiments_of_a_missing_relationship_are_missed() -> None:
    found = evaluate(story("positive", ...), story("positive", "hostile;negative"))
    assert (found["sentiment_precision"], found["sentiment_recall"]) == (1, 1 / 3)
    assert found["polarity_total"] == 1


def test_sentiments_of_an_extra_relationship_count_nowhere() -> None:
    assert evaluate(story("positive", "hostile"), story("positive"))["sentiment_f1"] == 1


@pytest.mark.parametrize("empty", [None, "", " ; ", [], ["", None]])
def test_a_relationship_without_gold_sentiment_is_not_judged(empty: Any) -> None:
    found = evaluate(story("positive", "hostile"), story("positive", empty))
    assert (found["sentiment_f1"], found["n_relationships_skipped"], found["gt_incomplete"]) == (1, 1, True)
    assert found["gt_incomplete_reason"] == "the ground truth has no sentiment of a relationship in event 1"


def test_without_gold_sentiment_nothing_is_judged() -> None:
    found = evaluate(story("positive"), story(""))
    assert [found[metric.name] for metric in Sentiment().describe()] == [None] * 4
    assert found["gt_incomplete"] is True


def test_an_empty_predicted_sentiment_is_missed() -> None:
    found = evaluate(story(None), story("positive"))
    assert (found["sentiment_f1"], found["sentiment_polarity_accuracy"]) == (0, 0)


@pytest.mark.parametrize(
    ("predicted", "gold", "accuracy"),
    [
        ("romantic", "positive", 1),
        ("FEARFUL", "Hostile", 1),
        ("neutral", "positive", 0),
        ("positive;negative", "positive", 0),
        ("romantic;hostile", "negative;positive", 1),
        ("odd;positive", "positive", 1),
        ("positive", "positive;odd", 1),
        ("odd", "positive", 0),
        ("positive", "odd", None),
    ],
)
def test_polarity_is_right_if_the_sets_of_polarities_are_equal(
    predicted: str, gold: str, accuracy: float | None
) -> None:
    assert evaluate(story(predicted), story(gold))["sentiment_polarity_accuracy"] == accuracy


def test_polarities_can_come_from_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("sentiment,polarity\nglad,positive\nproud,positive\n", encoding="utf-8")
    found = Sentiment(sentiment_taxonomy=str(path)).evaluate(story("glad"), story("proud"))
    assert found["sentiment_polarity_accuracy"] == 1


def test_pooled_values_count_all_sentiments_alike() -> None:
    cases = [
        Case(id="a", expected=story("positive"), prediction=story("positive")),
        Case(id="b", expected=story("positive;neutral;romantic"), prediction=story("positive")),
        Case(id="c", expected=story(""), prediction=story("hostile")),
    ]
    recall = score(Sentiment(), cases, confidence=None).metrics["sentiment_recall"]
    assert (recall.value, recall.mean) == (2 / 4, pytest.approx((1 + 1 / 3) / 2))
    assert (recall.scored, recall.undefined) == (2, 1)

"""Relationships paired one-to-one, and many-to-many."""

from typing import Any

import pytest

from pytest_llmeval import Case, EvaluatorError, get_evaluator, score
from pytest_llmeval.tasks.narrative._composite import Narrative

Row = tuple[str, str, str, str]


def story(*rows: Row) -> dict[str, Any]:
    fields = ("agent", "target", "relationship_level1", "sentiment")
    return {"narrative_events": [{"id": 1, "relationships": [dict(zip(fields, row, strict=True)) for row in rows]}]}


ONE = story(("A", "B", "Romance", "positive;fearful"))
TWO = story(("A", "B", "Romance", "positive"), ("A", "B", "Hierarchy", "fearful"))
OTHER = story(("A", "B", "Romance", "positive"), ("A", "C", "Romance", ""))


@pytest.mark.parametrize(
    ("predicted", "gold", "one", "many"),
    [
        (TWO, ONE, (1 / 2, 1, 2 / 3), (1, 1, 1)),
        (ONE, TWO, (1, 1 / 2, 2 / 3), (1, 1, 1)),
        (TWO, TWO, (1, 1, 1), (1, 1, 1)),
        (TWO, OTHER, (1 / 2, 1 / 2, 1 / 2), (1, 1 / 2, 2 / 3)),
    ],
)
def test_a_relationship_is_found_by_one_or_by_many(predicted: Any, gold: Any, one: Any, many: Any) -> None:
    names = ("relationship_precision", "relationship_recall", "relationship_f1")
    for options, expected in (({}, one), ({"pairing": "one"}, one), ({"pairing": "many"}, many)):
        for evaluator in (get_evaluator("narrative.relationships", **options), get_evaluator("narrative", **options)):
            scores = evaluator.scores(evaluator.measure(Case("a", None, gold, predicted)))
            assert tuple(scores[name] for name in names) == pytest.approx(expected)


def test_labels_are_right_where_one_of_many_has_them() -> None:
    found = get_evaluator("narrative.relationships", pairing="many").evaluate(TWO, ONE)
    assert (found["labelled_precision"], found["labelled_recall"]) == (1 / 2, 1)
    assert found["level1_accuracy"] == 1
    assert found["false_positive_relationships"] == []


def test_sentiments_of_many_are_one_set() -> None:
    sentiment = get_evaluator("narrative.sentiment", pairing="many")
    for predicted, gold in ((TWO, ONE), (ONE, TWO)):
        found = sentiment.evaluate(predicted, gold)
        assert (found["sentiment_precision"], found["sentiment_recall"]) == (1, 1)
        assert (found["extra_sentiments"], found["unjudged_sentiments"]) == ([], [])
    assert Narrative(pairing="many").evaluate(ONE, ONE)["summary"]["event_accuracy"] == 1
    assert get_evaluator("narrative.sentiment").evaluate(TWO, ONE)["sentiment_recall"] == 1 / 2


def test_stories_are_pooled() -> None:
    cases = [Case("a", None, ONE, TWO), Case("b", None, TWO, ONE)]
    found = score(get_evaluator("narrative.relationships", pairing="many"), cases, confidence=None).metrics
    assert [found[f"relationship_{name}"].value for name in ("precision", "recall", "f1")] == [1, 1, 1]


def test_the_option_is_part_of_the_signature_and_checked() -> None:
    assert "pairing:many" in Narrative(pairing="many").describe()[0].signature
    assert "pairing" not in Narrative().describe()[0].signature
    with pytest.raises(EvaluatorError, match="pairing"):
        get_evaluator("narrative", pairing="some")

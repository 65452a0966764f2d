from typing import Any

import pytest

from pytest_llmeval import get_evaluator
from pytest_llmeval.tasks.narrative._composite import Narrative
from pytest_llmeval.tasks.narrative.labels import find_label, narrative_taxonomy

LABELS = ("Family & Kinship", "sibling", "positive")


def story(level1: str, level2: str, sentiment: Any, **action: str) -> dict[str, Any]:
    relationship = {
        "agent": "A",
        "target": "B",
        "relationship_level1": level1,
        "relationship_level2": level2,
        "sentiment": sentiment,
    }
    return {"narrative_events": [{"id": "e", "relationships": [relationship], "action_layer": action}]}


@pytest.mark.parametrize(
    "text",
    [
        "Family & Kinship",
        "family & kinship",
        "家庭与亲缘(Family & Kinship)",
        "家庭与亲缘（Family & Kinship）",
        "Family & Kinship (亲属关系)",
        "亲属关系/Family & Kinship",
        "家庭与亲缘 Family & Kinship",
        "亲属关系",
    ],
)
def test_every_spelling_of_a_label_is_found(text: str) -> None:
    assert find_label(narrative_taxonomy().relationships, text) == "Family & Kinship"


@pytest.mark.parametrize("text", ["Friendship", "Family & Kinship / Romance", "", "()"])
def test_what_means_no_label_or_two_is_not_found(text: str) -> None:
    assert find_label(narrative_taxonomy().relationships, text) is None


def test_normalize_folds_labels_of_both_sides() -> None:
    gold = story(*LABELS, category="Physical & Conflict", type="Attack")
    predicted = story("家庭与亲缘(Family & Kinship)", "手足(sibling)", ["Positive"], category="physical", type="攻击")
    plain, folded = (Narrative(normalize=normalize).evaluate(predicted, gold) for normalize in (False, True))
    assert (plain["overall_score"], folded["overall_score"]) == (1 / 3, 1)
    assert plain["detailed_results"]["relationships"]["labelled_f1"] == 0
    assert folded["detailed_results"]["relationships"]["labelled_f1"] == 1
    assert (plain["taxonomy_validity"], folded["taxonomy_validity"]) == (2 / 5, 1)
    assert "folded_labels" not in plain
    assert folded["folded_labels"]["ground_truth"] == [
        {"event": "e", "field": "action_layer.type", "value": "Attack", "label": "attack"}
    ]
    assert [each["label"] for each in folded["folded_labels"]["prediction"]] == [
        "Physical & Conflict",
        "attack",
        "Family & Kinship",
        "sibling",
        "positive",
    ]


@pytest.mark.parametrize(
    ("part", "metric"),
    [("relationships", "level1_accuracy"), ("sentiment", "sentiment_f1"), ("action_layer", "action_category_accuracy")],
)
def test_a_part_alone_normalizes_too(part: str, metric: str) -> None:
    gold, predicted = story(*LABELS, category="mental"), story("亲属关系", "sibling", "POSITIVE", category="MENTAL")
    values = [
        get_evaluator(f"narrative.{part}", normalize=each).evaluate(predicted, gold)[metric] for each in (False, True)
    ]
    assert values == [0, 1]


def test_unknown_labels_stay_as_they_are() -> None:
    predicted = story("Clan", "cousin twice removed", "smitten", category="Sailing")
    found = Narrative(normalize=True).evaluate(predicted, predicted)
    assert found["folded_labels"] == {"ground_truth": [], "prediction": []}
    assert len(found["invalid_labels"]) == 4


def test_labels_of_a_users_file_are_folded(tmp_path: Any) -> None:
    path = tmp_path / "r.csv"
    path.write_text("level1,level2\n船(Crew),captain\n", encoding="utf-8")
    part = get_evaluator("narrative.relationships", normalize=True, relationship_taxonomy=str(path))
    assert part.evaluate(story("CREW", "Captain", ""), story("船(Crew)", "captain", ""))["labelled_f1"] == 1


@pytest.mark.parametrize(
    ("text", "label"),
    [("积极", "positive"), ("积极（positive）", "positive"), ("负面", "negative"), ("中性", "neutral")],
)
def test_chinese_sentiments_fold_as_other_labels_do(text: str, label: str) -> None:
    gold, predicted = story("", "", label), story("", "", text)
    found = get_evaluator("narrative.sentiment", normalize=True).evaluate(predicted, gold)
    assert (found["sentiment_f1"], found["sentiment_polarity_accuracy"]) == (1, 1)
    assert narrative_taxonomy().invalid_sentiment(text.partition("（")[0]) is None

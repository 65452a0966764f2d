"""Label sets of story annotations: what ships, what users bring, and which labels belong."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from project import CONFORMANCE

from pytest_llmeval.data import Taxonomy
from pytest_llmeval.tasks.narrative.labels import NarrativeTaxonomy, narrative_taxonomy
from pytest_llmeval.tasks.narrative.labels._label_set import LabelSet

STORIES = CONFORMANCE / "narrative" / "stories.jsonl"


@pytest.fixture
def shipped() -> NarrativeTaxonomy:
    return narrative_taxonomy()


@pytest.mark.parametrize(
    ("level1", "level2"),
    [
        ("Family & Kinship", "sibling"),
        ("  Romance ", "lover\n"),
        ("Hierarchy", ""),
        ("", "ally"),
        ("", ""),
        (None, None),
        (3, ["friend"]),
        ("亲属关系", "手足"),
        ("Neutral", "陌生人"),
    ],
)
def test_relationship_in_the_taxonomy_or_absent_is_valid(
    shipped: NarrativeTaxonomy, level1: object, level2: object
) -> None:
    assert shipped.invalid_relationship(level1, level2) is None


@pytest.mark.parametrize(
    ("level1", "level2", "reason"),
    [
        ("romance", "lover", "relationship_level1 'romance' is unknown (did you mean 'Romance'?)"),
        ("Romance", "lovers", "relationship_level2 'lovers' is unknown (did you mean 'lover'?)"),
        ("Romance", "sibling", "relationship_level2 'sibling' belongs to 'Family & Kinship', not to 'Romance'"),
        ("亲属关系", "friend", "relationship_level2 'friend' belongs to 'Social & Alliance', not to '亲属关系'"),
        ("", "sibbling", "relationship_level2 'sibbling' is unknown (did you mean 'sibling'?)"),
        ("sibling", "", "relationship_level1 'sibling' is unknown"),
        ("?", "!", "relationship_level1 '?' is unknown; relationship_level2 '!' is unknown"),
        ("?", "ally", "relationship_level1 '?' is unknown"),
    ],
)
def test_relationship_outside_the_taxonomy_is_told_with_the_nearest(
    shipped: NarrativeTaxonomy, level1: str, level2: str, reason: str
) -> None:
    assert shipped.invalid_relationship(level1, level2) == reason


@pytest.mark.parametrize("label", ["romantic", " hostile ", "敌对", "", None, ["positive"]])
def test_sentiment_in_the_taxonomy_or_absent_is_valid(shipped: NarrativeTaxonomy, label: object) -> None:
    assert shipped.invalid_sentiment(label) is None


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        ("Positive", "sentiment 'Positive' is unknown (did you mean 'positive'?)"),
        ("angry", "sentiment 'angry' is unknown"),
        ("x" * 200, f"sentiment '{'x' * 60}...' is unknown"),
    ],
)
def test_sentiment_outside_the_taxonomy_is_told_with_the_nearest(
    shipped: NarrativeTaxonomy, label: str, reason: str
) -> None:
    assert shipped.invalid_sentiment(label) == reason


@pytest.mark.parametrize(
    ("field", "value", "category"),
    [
        ("category", "physical", None),
        ("category", "Physical & Conflict", None),
        ("category", "生死与超自然", None),
        ("type", "attack", "physical"),
        ("type", "attack", "Physical & Conflict"),
        ("type", "攻击", "身体与冲突"),
        ("type", "attack", ""),
        ("type", "attack", "no such category"),
        ("context", "oath", "physical"),
        ("status", "partial", None),
        ("function", "character_arc", None),
        ("function", None, "physical"),
    ],
)
def test_action_in_the_taxonomy_or_absent_is_valid(
    shipped: NarrativeTaxonomy, field: str, value: object, category: object
) -> None:
    assert shipped.invalid_action(field, value, category) is None


@pytest.mark.parametrize(
    ("field", "value", "category", "reason"),
    [
        ("category", "Communicative", None, "category 'Communicative' is unknown (did you mean 'communicative'?)"),
        ("type", "inform", "physical", "type 'inform' belongs to 'Social & Communicative', not to 'physical'"),
        ("type", "atack", "physical", "type 'atack' is unknown (did you mean 'attack'?)"),
        ("context", "restrict in home", "physical", "context 'restrict in home' is unknown"),
        ("status", "sucess", None, "status 'sucess' is unknown (did you mean 'success'?)"),
        ("function", "Climax", None, "function 'Climax' is unknown (did you mean 'climax'?)"),
    ],
)
def test_action_outside_the_taxonomy_is_told_with_the_nearest(
    shipped: NarrativeTaxonomy, field: str, value: str, category: str | None, reason: str
) -> None:
    assert shipped.invalid_action(field, value, category) == reason


def test_field_that_no_action_layer_has_is_an_error(shipped: NarrativeTaxonomy) -> None:
    with pytest.raises(KeyError):
        shipped.invalid_action("mood", "attack")


@pytest.mark.parametrize(
    ("label", "polarity"),
    [
        ("romantic", "positive"),
        ("POSITIVE", "positive"),
        (" neutral ", "neutral"),
        ("negative", "negative"),
        ("Fearful", "negative"),
        ("hostile", "negative"),
        ("angry", None),
        ("", None),
        (None, None),
    ],
)
def test_polarity_is_that_of_the_label_in_any_letter_case(
    shipped: NarrativeTaxonomy, label: object, polarity: str | None
) -> None:
    assert shipped.polarity(label) == polarity


def test_short_names_stand_for_the_full_names_of_categories(shipped: NarrativeTaxonomy) -> None:
    assert {name: shipped.categories.names[name] for name in ("physical", "communicative", "transaction")} == {
        "physical": "Physical & Conflict",
        "communicative": "Social & Communicative",
        "transaction": "Transaction & Exchange",
    }
    assert shipped.categories.names["mental"] == "Mental & Cognitive"
    assert shipped.categories.names["existential"] == "Existential & Supernatural"


@pytest.mark.parametrize("name", ["relationships", "sentiments", "actions"])
def test_no_two_labels_of_a_shipped_list_share_a_name(name: str) -> None:
    def lists(data: Any) -> list[list[Any]]:
        inner = list(data.values()) if isinstance(data, dict) else data if isinstance(data, list) else []
        here = [data] if isinstance(data, list) and data and isinstance(data[0], dict) else []
        return here + [found for each in inner for found in lists(each)]

    found = lists(dict(Taxonomy(name).load()))
    assert found
    for labels in found:
        names = [name for each in labels for name in (each["label"], each.get("zh"), each.get("short")) if name]
        assert len(names) == len(set(names))
        assert all(each["zh"] and each["description"] for each in labels)


@pytest.mark.skipif(not STORIES.is_file(), reason="the recorded stories are not beside this repository")
def test_of_the_recorded_gold_only_free_contexts_lie_outside_the_taxonomy(shipped: NarrativeTaxonomy) -> None:
    stories = [json.loads(line)["gold"] for line in STORIES.read_text(encoding="utf-8").splitlines()]
    events = [event for story in stories for event in story["narrative_events"]]
    ties = [tie for event in events for tie in event["relationships"]]
    reasons = {
        *(shipped.invalid_relationship(tie["relationship_level1"], tie["relationship_level2"]) for tie in ties),
        *(shipped.invalid_sentiment(tie["sentiment"]) for tie in ties),
        *(
            shipped.invalid_action(field, value, event["action_layer"]["category"])
            for event in events
            for field, value in event["action_layer"].items()
        ),
    }
    assert reasons == {
        None,
        'context "make up one\'s mind" is unknown',
        "context 'restrict in home' is unknown",
        "context 'try to proposal marriage' is unknown",
    }


@given(st.text(), st.text())
def test_any_text_is_judged_without_an_error(level1: str, level2: str) -> None:
    taxonomy = narrative_taxonomy()
    for reason in (
        taxonomy.invalid_relationship(level1, level2),
        taxonomy.invalid_sentiment(level1),
        taxonomy.invalid_action("type", level1, level2),
    ):
        assert reason is None or reason


def test_a_set_without_labels_checks_nothing() -> None:
    assert LabelSet({}).fault("status", "anything") is None
    assert LabelSet({"a": "a"}, {"a": LabelSet({})}).member_fault("type", "anything", "a") is None

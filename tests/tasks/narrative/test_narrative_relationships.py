from typing import Any

import pytest

from pytest_llmeval import Case, score
from pytest_llmeval.tasks.narrative._components import Relationships

FIELDS = ("agent", "target", "relationship_level1", "relationship_level2", "sentiment")


def story(*events: list[tuple[Any, ...]] | None, **rest: Any) -> dict[str, Any]:
    """A story whose events have relationships of (agent, target, level 1, level 2, sentiment)."""
    return {
        "narrative_events": [
            {"id": f"e{place}", "relationships": event and [dict(zip(FIELDS, each, strict=False)) for each in event]}
            for place, event in enumerate(events)
        ],
        **rest,
    }


KIN = ("A", "B", "Family & Kinship", "sibling", "positive")
FOE = ("A", "C", "Adversarial", "enemy", "hostile")


def evaluate(predicted: dict[str, Any], gold: dict[str, Any], **options: Any) -> dict[str, Any]:
    return Relationships(**options).evaluate(predicted, gold)


def test_pairs_and_their_levels_are_counted() -> None:
    predicted = story([("A", "B", "Family & Kinship", "spouse"), ("B", "A", "Romance", "lover")])
    found = evaluate(predicted, story([KIN, FOE]))
    assert (found["relationship_precision"], found["relationship_recall"], found["relationship_f1"]) == (0.5, 0.5, 0.5)
    assert (found["labelled_precision"], found["labelled_recall"], found["labelled_f1"]) == (0, 0, 0)
    assert (found["level1_accuracy"], found["level2_accuracy"]) == (1, 0)
    assert found["relationship_pair_coverage"] == 0.5
    assert [each["target"] for each in found["missing_relationships"]] == ["C"]
    assert [each["agent"] for each in found["false_positive_relationships"]] == ["B"]
    assert found["wrong_levels"] == [
        {
            "event": "e0",
            "agent": "A",
            "target": "B",
            "field": "relationship_level2",
            "expected": "sibling",
            "predicted": "spouse",
        }
    ]


def test_a_level_that_gold_leaves_empty_cannot_be_missed() -> None:
    found = evaluate(story([KIN]), story([("A", "B", None, " ")]))
    assert (found["labelled_f1"], found["level1_accuracy"], found["level2_accuracy"]) == (1, None, None)


def test_an_empty_predicted_level_is_wrong() -> None:
    found = evaluate(story([("A", "B", "", None)]), story([KIN]))
    assert (found["relationship_f1"], found["labelled_f1"], found["level1_accuracy"]) == (1, 0, 0)


def test_relationships_of_a_missing_event_are_missed() -> None:
    found = evaluate(story([KIN]), story([KIN], [FOE]))
    assert (found["relationship_precision"], found["relationship_recall"]) == (1, 0.5)
    assert found["n_events_evaluated"] == 2


def test_relationships_of_an_extra_event_count_nowhere() -> None:
    predicted = story([KIN], [FOE])
    predicted["narrative_events"][1]["id"] = "other"
    assert evaluate(predicted, story([KIN]))["relationship_precision"] == 1


@pytest.mark.parametrize("empty", [None, [], [("A", "")], [("", "B")], [(" ", "B")], [()]])
def test_an_event_without_usable_gold_is_skipped(empty: Any) -> None:
    found = evaluate(story([KIN], [FOE, FOE]), story([KIN], empty))
    assert (found["relationship_precision"], found["n_events_skipped"], found["n_extra_relationships"]) == (1, 1, 2)
    assert [each["target"] for each in found["extra_relationships"]] == ["C", "C"]
    reason = "the ground truth has no relationship with agent and target in event e1"
    assert (found["gt_incomplete"], found["gt_incomplete_reason"]) == (True, reason)


def test_the_example_of_the_requirement_is_not_judged() -> None:
    found = evaluate(story([KIN]), story([]))
    assert (found["relationship_precision"], found["relationship_recall"], found["relationship_f1"]) == (None,) * 3
    assert (found["gt_incomplete"], found["n_events_skipped"]) == (True, 1)
    assert (len(found["extra_relationships"]), found["false_positive_relationships"]) == (1, [])


def test_predicted_relationships_without_an_end_are_excused_as_far_as_gold_has_such() -> None:
    half = ("A", "", "Romance")
    assert evaluate(story([KIN, half]), story([KIN]))["relationship_precision"] == 1 / 2
    assert evaluate(story([KIN, half]), story([KIN, half]))["relationship_precision"] == 1
    assert evaluate(story([KIN, half, half]), story([KIN, half]))["relationship_precision"] == 1 / 2


def test_directions_are_told_apart() -> None:
    assert evaluate(story([("B", "A")]), story([("A", "B")]))["relationship_f1"] == 0


def test_several_relationships_of_two_characters_are_paired_by_level_1_then_2_then_sentiment() -> None:
    first, second, third = ("A", "B", "x", "y", "p"), ("A", "B", "x", "z", "q"), ("A", "B", "w", "z", "r")
    for predicted in ([first, second, third], [third, second, first], [second, third, first]):
        found = evaluate(story(predicted), story([second, first, third]))
        assert (found["relationship_f1"], found["labelled_f1"]) == (1, 1)
    # Level 1 goes before level 2, which would pair the other way round.
    found = evaluate(
        story([("A", "B", "x", "z"), ("A", "B", "w", "y")]), story([("A", "B", "x", "y"), ("A", "B", "w", "z")])
    )
    assert (found["level1_accuracy"], found["level2_accuracy"]) == (1, 0)
    # Sentiments decide between equal levels.
    pairs = story([("A", "B", "x", "y", "p"), ("A", "B", "x", "y", "q")])
    assert evaluate(story([("A", "B", "x", "y", "q")]), pairs)["missing_relationships"][0]["sentiment"] == ["p"]


def test_the_order_of_equally_good_relationships_does_not_matter() -> None:
    gold, predicted = [("A", "B", "x"), ("A", "B", "")], story([("A", "B", "k")])
    assert evaluate(predicted, story(gold)) == evaluate(predicted, story(gold[::-1]))


def test_a_surplus_relationship_of_the_same_characters_is_spurious() -> None:
    found = evaluate(story([KIN, KIN]), story([KIN]))
    assert (found["relationship_precision"], found["relationship_recall"]) == (1 / 2, 1)


CAST = [{"name": "Ann", "alias": "Queen;A"}, {"name": "Bea", "alias": "A"}]


@pytest.mark.parametrize(
    ("predicted_end", "predicted_cast", "recall"),
    [
        ("ann", [], 1),
        ("queen", [], 1),
        ("A", [], 1),
        ("Bea", [], 0),
        ("Red", [], 0),
        ("Red", [{"name": "Red", "alias": "Queen"}], 1),
        ("R", [{"name": "Red", "alias": "Queen;R"}], 1),
        ("R", [{"name": "Red", "alias": "R"}], 0),
        # A name of gold is not taken over by a predicted alias.
        ("Bea", [{"name": "Queen", "alias": "Bea"}], 0),
    ],
)
def test_ends_are_resolved_by_the_names_of_both_casts(predicted_end: str, predicted_cast: Any, recall: float) -> None:
    gold = story([("Ann", "X")], characters=CAST)
    predicted = story([(predicted_end, "X")], characters=predicted_cast)
    assert evaluate(predicted, gold)["relationship_recall"] == recall


def test_gold_ends_are_resolved_too() -> None:
    assert evaluate(story([("Ann", "X")]), story([("Queen", "x")], characters=CAST))["relationship_f1"] == 1


def test_like_ends_are_equal_if_asked_for() -> None:
    gold, predicted = story([("the old king", "X")]), story([("an old king", "X")])
    assert evaluate(predicted, gold)["relationship_f1"] == 0
    assert evaluate(predicted, gold, fuzzy=0.75)["relationship_f1"] == 1
    assert evaluate(story([("somebody", "X")]), gold, fuzzy=0.8)["relationship_f1"] == 0


def test_pooled_values_count_all_relationships_alike() -> None:
    cases = [
        Case(id="a", expected=story([KIN]), prediction=story([KIN])),
        Case(id="b", expected=story([KIN, FOE]), prediction=story([FOE, ("A", "D"), ("D", "A")])),
        Case(id="c", expected=story([]), prediction=story([FOE])),
    ]
    result = score(Relationships(), cases, confidence=None).metrics
    precision = result["relationship_precision"]
    assert (precision.value, precision.mean) == (2 / 4, pytest.approx((1 + 1 / 3) / 2))
    assert (precision.scored, precision.undefined) == (2, 1)
    assert result["relationship_recall"].value == 2 / 3

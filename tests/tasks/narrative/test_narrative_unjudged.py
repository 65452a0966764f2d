"""What the prediction has beyond the ground truth: extra where gold is known, unjudged where it is not."""

from typing import Any

import pytest

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.tasks.narrative._composite import Narrative


def relationship(agent: str, target: str, **fields: Any) -> dict[str, Any]:
    return {"agent": agent, "target": target} | fields


def events(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"narrative_events": [{"id": f"e{number}"} | entry for number, entry in enumerate(entries, 1)]}


def test_relationships_are_extra_or_unjudged() -> None:
    gold = events({"relationships": [relationship("A", "B")]}, {"relationships": []})
    predicted = events(
        {"relationships": [relationship("A", "B"), relationship("A", "C")]}, {"relationships": [relationship("A", "D")]}
    )
    found = get_evaluator("narrative.relationships").evaluate(predicted, gold)
    assert [each["target"] for each in found["false_positive_relationships"]] == ["C"]
    assert [each["target"] for each in found["extra_relationships"]] == ["D"]
    assert found["n_events_skipped"] == 1
    assert found["relationship_precision"] == 0.5


def test_every_sentiment_of_an_aligned_event_is_right_extra_or_unjudged() -> None:
    gold = events(
        {"relationships": [relationship("A", "B", sentiment="positive"), relationship("A", "C")]},
        {"relationships": []},
        {"relationships": [relationship("A", "B")]},
    )
    predicted = events(
        {
            "relationships": [
                relationship("A", "B", sentiment="positive;fearful"),
                relationship("A", "C", sentiment="hostile"),
                relationship("B", "C", sentiment="neutral"),
            ]
        },
        {"relationships": [relationship("A", "B", sentiment="romantic"), relationship("A", "C")]},
        {"relationships": [relationship("A", "B", sentiment="negative")]},
    )
    found = get_evaluator("narrative.sentiment").evaluate(predicted, gold)
    assert [each["sentiment"] for each in found["extra_sentiments"]] == [["fearful"]]
    unjudged = [(each["event"], each["target"], each["sentiment"]) for each in found["unjudged_sentiments"]]
    assert unjudged == [
        ("e1", "C", ["hostile"]),
        ("e1", "C", ["neutral"]),
        ("e2", "B", ["romantic"]),
        ("e3", "B", ["negative"]),
    ]
    assert (found["true_positives"], found["false_positives"], found["n_events_skipped"]) == (1, 1, 2)


def test_fields_of_actions_without_gold_are_unjudged() -> None:
    gold = events({"action_layer": {"category": "physical"}}, {"action_layer": {}})
    predicted = events(
        {"action_layer": {"category": "mental", "type": "attack"}}, {"action_layer": {"status": "failure"}}
    )
    found = get_evaluator("narrative.action_layer").evaluate(predicted, gold)
    assert found["unjudged_fields"] == [
        {"event": "e1", "field": "type", "predicted": "attack"},
        {"event": "e2", "field": "status", "predicted": "failure"},
    ]
    assert [each["field"] for each in found["wrong_fields"]] == ["category"]
    assert found["n_events_skipped"] == 1


def test_the_reason_of_a_gap_names_the_events() -> None:
    gold = events({"relationships": []})
    details = Narrative().evaluate(gold, gold)["detailed_results"]
    reasons = {part: found["gt_incomplete_reason"] for part, found in details.items()}
    assert reasons == {
        "characters": "the ground truth has no characters",
        "relationships": "the ground truth has no relationship with agent and target in event e1",
        "sentiment": "the ground truth has no relationship with agent and target in event e1",
        "action_layer": "the ground truth has no action layer in event e1",
        "text_span": "the ground truth has no text span with start and end in event e1",
    }


def test_events_of_which_the_ground_truth_says_nothing_are_not_judged() -> None:
    gold = events({}, {}, {}, {})
    predicted = {"narrative_events": gold["narrative_events"][:3]}
    found = Narrative().evaluate(predicted, gold)
    assert set(found["component_scores"].values()) == {None}
    assert (found["summary"]["judged_event_accuracy"], found["summary"]["judged_events"]) == (None, 0)
    known = events({"action_layer": {"type": "attack"}}, {}, {"action_layer": {"type": "flee"}})
    half = {"narrative_events": known["narrative_events"][:2]}
    found = Narrative().evaluate(half, known)
    assert (found["summary"]["judged_event_accuracy"], found["summary"]["judged_events"]) == (0.5, 2)
    pooled = score(Narrative(), [Case("a", None, gold, predicted), Case("b", None, known, half)], confidence=None)
    assert pooled.metrics["judged_event_accuracy"].value == 0.5
    assert pooled.cases[0].metrics["judged_event_accuracy"] is None


def test_overlaps_are_listed_by_event() -> None:
    gold = {
        "source_info": {"text_content": "One. Two. Three. Four."},
        **events({"text_span": {"start": 0, "end": 8}}, {}, {"text_span": {"start": 10, "end": 14}}),
    }
    predicted = events({"text_span": {"start": 0, "end": 4}}, {}, {"text_span": {"start": 10, "end": 14}})
    found = get_evaluator("narrative.text_span").evaluate(predicted, gold)
    assert found["event_overlaps"] == [{"event": "e1", "overlap": 0.5}, {"event": "e3", "overlap": 1.0}]


@pytest.mark.parametrize(
    ("prediction", "truth", "reason"),
    [
        ("a", None, "Ground truth missing for sentiment, prediction has value"),
        ([], "", "Both empty for sentiment"),
        ({}, "a", "Prediction missing for sentiment"),
        ("a", "b", "Both have values, need comparison"),
    ],
)
def test_reasons_for_missing_ground_truth_are_those_of_the_original(prediction: Any, truth: Any, reason: str) -> None:
    evaluator = get_evaluator("narrative.sentiment")
    assert evaluator.handle_missing_ground_truth(prediction, truth, "sentiment")["reason"] == reason

from typing import Any

import pytest

from pytest_llmeval import Case, get_evaluator
from pytest_llmeval.core import Count, MetricTable
from pytest_llmeval.tasks.narrative._composite import COMPONENTS, Narrative

PAIR = {"agent": "A", "target": "B", "relationship_level1": "Romance", "relationship_level2": "lover"}
GOLD = {
    "characters": [{"name": "A", "archetype": "Hero"}, {"name": "B"}],
    "narrative_events": [
        {
            "id": "e1",
            "text_span": {"start": 0, "end": 3},
            "relationships": [PAIR, {"agent": "B", "target": "A", "sentiment": "hostile"}],
            "action_layer": {"category": "physical", "type": "attack"},
        },
        {"id": "e2"},
    ],
}
TALKATIVE = {
    "characters": [{"name": "A", "archetype": "Hero"}, {"name": "B", "archetype": "Villain"}],
    "narrative_events": [
        {
            "id": name,
            "text_span": {"start": 0, "end": 3},
            "relationships": [PAIR | {"sentiment": "positive"}],
            "action_layer": {"category": "physical", "status": "success"},
        }
        for name in ("e1", "e2")
    ],
}


def gaps(predicted: Any, part: str, gold: Any = GOLD) -> dict[str, Any]:
    found = get_evaluator(f"narrative.{part}").evaluate(predicted, gold, "Abc.")
    return {name: value for name, value in found.items() if name.startswith("gt_")}


@pytest.mark.parametrize("part", COMPONENTS)
def test_gaps_do_not_depend_on_the_prediction(part: str) -> None:
    assert gaps({}, part) == gaps(TALKATIVE, part)


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ("relationships", "the ground truth has no relationship with agent and target in event e2"),
        (
            "sentiment",
            (
                "the ground truth has no sentiment of a relationship in event e1; no relationship with agent and "
                "target in event e2"
            ),
        ),
        ("action_layer", "the ground truth has no action layer in event e2"),
        ("text_span", "the ground truth has no text span with start and end in event e2"),
    ],
)
def test_the_reason_names_what_is_missing_and_where(part: str, reason: str) -> None:
    assert gaps({}, part)["gt_incomplete_reason"] == reason


def test_every_missing_field_is_listed_with_its_place() -> None:
    assert gaps({}, "characters")["gt_gaps"] == [{"character": "B", "field": "archetype"}]
    assert gaps({}, "relationships")["gt_gaps"] == [
        {"event": "e1", "agent": "B", "target": "A", "field": "relationship_level1"},
        {"event": "e1", "agent": "B", "target": "A", "field": "relationship_level2"},
        {"event": "e2", "field": "relationships"},
    ]
    assert gaps({}, "action_layer")["gt_gaps"] == [
        *({"event": "e1", "field": f"action_layer.{field}"} for field in ("context", "status", "function")),
        {"event": "e2", "field": "action_layer"},
    ]


@pytest.mark.parametrize("part", COMPONENTS)
def test_a_single_missing_field_leaves_the_ground_truth_complete(part: str) -> None:
    event = GOLD["narrative_events"][0]
    pairs = [{**pair, "sentiment": "hostile"} for pair in event["relationships"]]  # type: ignore[index]
    gold = GOLD | {"narrative_events": [{**event, "relationships": pairs}]}  # type: ignore[dict-item]
    assert (gaps({}, part, gold)["gt_incomplete"], gaps({}, part, gold)["gt_incomplete_reason"]) == (False, None)


def test_ground_truth_without_events_has_a_gap() -> None:
    assert gaps({}, "text_span", {"characters": []})["gt_gaps"] == [{"field": "narrative_events"}]


def test_the_gaps_of_every_part_are_counted_and_shown_in_a_table() -> None:
    evaluator = Narrative()
    counts = evaluator.measure(Case(id="a", input="Abc.", expected=GOLD, prediction={})).counts
    found = {part: counts[f"{part}:gaps"] for part in COMPONENTS}
    assert found == {"characters": 1, "relationships": 3, "sentiment": 2, "action_layer": 4, "text_span": 1}
    *_, table = evaluator.tables()
    assert isinstance(table, MetricTable)
    assert [cell for _, cells in table.rows for cell in cells] == [Count(f"{part}:gaps") for part in COMPONENTS]


def test_aggregate_results_says_what_is_missing() -> None:
    evaluator = Narrative()
    results = [evaluator.evaluate({}, GOLD, "Abc."), evaluator.evaluate({}, {"characters": [{"name": "A"}]})]
    assert evaluator.aggregate_results(results)["gt_incomplete"] == {
        "characters": {"stories": 2, "values": 2},
        "relationships": {"stories": 2, "values": 4},
        "sentiment": {"stories": 2, "values": 3},
        "action_layer": {"stories": 2, "values": 5},
        "text_span": {"stories": 2, "values": 2},
    }

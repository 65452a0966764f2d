from typing import Any

import pytest

from pytest_llmeval import Case, score
from pytest_llmeval.tasks.narrative._components import ActionLayer

FULL = {"category": "physical", "type": "attack", "context": "duel", "status": "success", "function": "trigger"}


def story(**actions: Any) -> dict[str, Any]:
    return {"narrative_events": [{"id": name, "action_layer": action} for name, action in actions.items()]}


def evaluate(predicted: dict[str, Any], gold: dict[str, Any]) -> dict[str, Any]:
    return ActionLayer().evaluate(predicted, gold)


def test_fields_and_whole_actions_are_counted() -> None:
    found = evaluate(story(a=FULL, b=FULL | {"type": "Attack"}), story(a=FULL, b=FULL))
    assert (found["action_category_accuracy"], found["action_type_accuracy"]) == (1, 0.5)
    assert (found["action_layer_complete_match"], found["action_layer_partial_match"]) == (0.5, 0.5)
    assert found["field_counts"]["type"] == {"correct": 1, "total": 2}
    assert found["wrong_fields"] == [{"event": "b", "field": "type", "expected": "attack", "predicted": "Attack"}]


@pytest.mark.parametrize("empty", [None, "", " ", [], {}])
def test_only_fields_that_gold_gives_are_judged(empty: Any) -> None:
    found = evaluate(story(a=FULL), story(a=FULL | {"type": empty, "context": empty}))
    assert (found["action_type_accuracy"], found["action_context_accuracy"]) == (None, None)
    assert found["action_layer_complete_match"] == 1


def test_an_empty_predicted_field_is_wrong() -> None:
    found = evaluate(story(a=FULL | {"type": None}), story(a=FULL))
    assert (found["action_type_accuracy"], found["action_layer_partial_match"]) == (0, 1)


@pytest.mark.parametrize("empty", [None, {}, {"category": ""}])
def test_an_event_without_gold_action_is_skipped(empty: Any) -> None:
    found = evaluate(story(a=FULL, b=FULL), story(a=FULL, b=empty))
    assert (found["action_layer_complete_match"], found["n_events_skipped"]) == (1, 1)
    assert (found["gt_incomplete"], found["gt_incomplete_reason"]) == (
        True,
        "the ground truth has no action layer in event b",
    )


def test_a_missing_event_has_all_given_fields_wrong() -> None:
    found = evaluate(story(a=FULL), story(a=FULL, b={"category": "mental"}))
    assert (found["action_category_accuracy"], found["action_type_accuracy"]) == (0.5, 1)
    assert (found["action_layer_complete_match"], found["action_layer_partial_match"]) == (0.5, 0)
    assert found["missing_events"] == ["b"]


def test_without_gold_actions_nothing_is_judged() -> None:
    found = evaluate(story(a=FULL), story(a={}))
    assert [found[metric.name] for metric in ActionLayer().describe()] == [None] * 7
    assert found["gt_incomplete"] is True


def test_pooled_values_count_all_events_alike() -> None:
    cases = [
        Case(id="a", expected=story(a=FULL), prediction=story(a=FULL)),
        Case(id="b", expected=story(a=FULL, b=FULL, c=FULL), prediction=story(a=FULL)),
        Case(id="c", expected=story(a={}), prediction=story(a=FULL)),
    ]
    complete = score(ActionLayer(), cases, confidence=None).metrics["action_layer_complete_match"]
    assert (complete.value, complete.mean) == (2 / 4, pytest.approx((1 + 1 / 3) / 2))
    assert (complete.scored, complete.undefined) == (2, 1)

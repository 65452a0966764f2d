"""Predictions that no evaluator of stories can read, and events that no field can align."""

import json
from typing import Any

import pytest

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.tasks.narrative._composite import COMPONENTS, Narrative

EVENT = {
    "text_span": {"start": 0, "end": 9},
    "relationships": [{"agent": "Mira", "target": "Fox", "relationship_level1": "Romance", "sentiment": "positive"}],
    "action_layer": {"category": "physical"},
}
GOLD = {
    "source_info": {"text_content": "Mira ran. Fox hid."},
    "characters": [{"name": "Mira"}, {"name": "Fox"}],
    "narrative_events": [EVENT | {"id": "e1"}, EVENT | {"id": "e2", "text_span": {"start": 0, "end": 18}}],
}
UNREAD = [{"foo": 1}, '{"characters": [', "I cannot do this.", None, 3, [1, 2], {"narrative_events": "none"}]


def without_keys(story: dict[str, Any]) -> dict[str, Any]:
    events = [{key: value for key, value in each.items() if key != "id"} for each in story["narrative_events"]]
    return story | {"narrative_events": events}


@pytest.mark.parametrize("prediction", UNREAD, ids=repr)
def test_a_prediction_that_cannot_be_read_has_no_score_but_a_reason(prediction: Any) -> None:
    found = Narrative().evaluate(prediction, GOLD)
    assert found["malformed"].partition(":")[2 if ":" in found["malformed"][:20] else 0].strip().startswith("found ")
    assert "expected" in found["malformed"]
    assert found["overall_score"] is None
    assert set(found["component_scores"].values()) == {None}
    assert found["summary"]["event_f1"] is None
    assert found["detailed_results"]["characters"]["character_f1"] is None


@pytest.mark.parametrize("part", COMPONENTS)
def test_so_it_is_in_each_part_alone(part: str) -> None:
    evaluator = get_evaluator(f"narrative.{part}")
    found = evaluator.evaluate({"foo": 1}, GOLD)
    assert "found an object with 'foo'" in found["malformed"]
    assert {found[metric.name] for metric in evaluator.describe()} == {None}


def test_a_suite_counts_what_it_missed_and_fails_the_case() -> None:
    result = score(Narrative(), [Case("a", None, GOLD, {"foo": 1}), Case("b", None, GOLD, GOLD)], confidence=None)
    assert [case.outcome for case in result.cases] == ["failed", "passed"]
    assert result.metrics["character_recall"].value == 0.5


def test_what_can_be_read_is_scored_beside_the_reason() -> None:
    found = Narrative().evaluate(GOLD | {"narrative_events": "none"}, GOLD)
    assert found["malformed"].startswith("narrative_events: found text 'none'")
    assert found["component_scores"]["characters"] == 1
    assert found["component_scores"]["relationships"] == 0


def test_a_readable_prediction_has_no_reason() -> None:
    assert "malformed" not in Narrative().evaluate(GOLD, GOLD)


@pytest.mark.parametrize("answer", [GOLD, json.dumps(GOLD), f"```json\n{json.dumps(GOLD)}\n```"])
def test_the_answer_of_a_system_is_read(answer: Any) -> None:
    prediction = {"answer": answer, "usage": {"input_tokens": 3}}
    for name in ("narrative", *(f"narrative.{part}" for part in COMPONENTS)):
        evaluator = get_evaluator(name)
        found = score(evaluator, [Case("a", None, GOLD, prediction)], confidence=None)
        assert found.cases[0].outcome == "passed", name
        assert "malformed" not in evaluator.evaluate(prediction, GOLD)
    assert Narrative().evaluate(prediction, GOLD)["overall_score"] == 1


def test_ids_that_are_written_alike_are_one() -> None:
    gold = GOLD | {"narrative_events": [EVENT | {"id": 1}, EVENT | {"id": "2"}]}
    predicted = GOLD | {"narrative_events": [EVENT | {"id": 2.0}, EVENT | {"id": "1"}]}
    found = Narrative().evaluate(predicted, gold)
    assert (found["summary"]["matched_events"], found["overall_score"]) == (2, 1)


def test_an_equal_id_goes_before_one_that_is_only_written_alike() -> None:
    attack, flee = {"action_layer": {"type": "attack"}}, {"action_layer": {"type": "flee"}}
    gold = {"narrative_events": [attack | {"id": "1"}, flee | {"id": 1}]}
    predicted = {"narrative_events": [flee | {"id": 1}, attack | {"id": "1"}]}
    assert Narrative().evaluate(predicted, gold)["overall_score"] == 1


def test_true_is_no_number() -> None:
    found = Narrative().evaluate({"narrative_events": [{"id": True}]}, {"narrative_events": [{"id": 1}]})
    assert found["summary"]["matched_events"] == 0


def test_events_without_id_and_time_order_are_aligned_by_position_with_a_note() -> None:
    story = without_keys(GOLD)
    for gold, predicted in ((story, story), (GOLD, story), (story, GOLD)):
        found = Narrative().evaluate(predicted, gold)
        assert found["overall_score"] == 1
        assert found["summary"]["matched_events"] == 2
        assert found["notes"] == ["2 events are aligned by position: id and time_order are not on both sides"]
    assert "notes" not in Narrative().evaluate(GOLD, GOLD)
    alone = get_evaluator("narrative.relationships").evaluate(story, story)
    assert (alone["relationship_f1"], len(alone["notes"])) == (1, 1)


def test_events_with_other_ids_stay_apart() -> None:
    other = GOLD | {"narrative_events": [each | {"id": f"x{each['id']}"} for each in GOLD["narrative_events"]]}
    assert Narrative().evaluate(other, GOLD)["summary"]["matched_events"] == 0


def test_a_null_span_of_gold_is_no_insertion_without_ids_either() -> None:
    gold = without_keys(GOLD)
    gold["narrative_events"][0]["text_span"] = None
    found = get_evaluator("narrative.text_span").evaluate(without_keys(GOLD), gold)
    assert (found["insertions"], found["unjudged_spans"], found["n_spans_excluded"]) == (0, ["narrative_events[0]"], 1)

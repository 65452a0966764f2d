import re
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.core import EvaluatorError
from pytest_llmeval.tasks.narrative._composite import COMPONENTS, Narrative

TEXT = "Ann hits Bea. Bea runs. The end."


def event(name: str, **fields: Any) -> dict[str, Any]:
    whole = {
        "id": name,
        "text_span": {"start": 0, "end": 13},
        "relationships": [
            {
                "agent": "Ann",
                "target": "Bea",
                "relationship_level1": "Adversarial",
                "relationship_level2": "enemy",
                "sentiment": "hostile",
            }
        ],
        "action_layer": {"category": "physical", "type": "attack"},
    }
    return whole | fields


def story(*events: dict[str, Any], **fields: Any) -> dict[str, Any]:
    characters = [{"name": "Ann", "archetype": "Hero"}, {"name": "Bea"}]
    return {"characters": characters, "narrative_events": list(events), "source_info": {"text_content": TEXT}} | fields


GOLD = story(event("a"), event("b", text_span={"start": 13, "end": 24}))


def evaluate(predicted: Any, gold: Any = GOLD, **options: Any) -> dict[str, Any]:
    return Narrative(**options).evaluate(predicted, gold)


def test_the_result_has_the_fields_of_the_requirement() -> None:
    found = evaluate(GOLD)
    assert list(found) == [
        "overall_score",
        "component_scores",
        "detailed_results",
        "summary",
        "taxonomy_validity",
        "invalid_labels",
    ]
    assert found["overall_score"] == 1
    assert found["component_scores"] == dict.fromkeys(COMPONENTS, 1)
    assert found["summary"] == {
        "total_events": 2,
        "correct_events": 2,
        "judged_events": 2,
        "matched_events": 2,
        "predicted_events": 2,
        "missing_events": [],
        "extra_events": [],
        "event_accuracy": 1,
        "event_precision": 1,
        "event_recall": 1,
        "event_f1": 1,
        "judged_event_accuracy": 1,
    }


@pytest.mark.parametrize("component", COMPONENTS)
def test_each_component_is_what_its_own_evaluator_returns(component: str) -> None:
    predicted = story(event("a", action_layer={"category": "physical"}, text_span={"start": 0, "end": 30}), event("z"))
    alone = get_evaluator(f"narrative.{component}").evaluate(predicted, GOLD)
    assert evaluate(predicted)["detailed_results"][component] == alone


def test_scores_of_components_are_means_of_their_parts() -> None:
    predicted = story(
        event("a", action_layer={"category": "physical"}, text_span={"start": 0, "end": 13}),
        event("b", text_span=None),
        characters=[{"name": "Ann"}],
    )
    found = evaluate(predicted)["component_scores"]
    assert found["characters"] == pytest.approx(2 / 3)
    assert found["action_layer"] == (1 / 2 + (1 + 1 / 2) / 2) / 2
    assert found["text_span"] == (1 / 2 + 1 / 2) / 2


def test_components_with_nothing_to_judge_are_left_out_of_the_overall_score() -> None:
    found = evaluate(story(characters=[]), story(characters=[{"name": "Ann"}]))
    assert found["component_scores"] == dict.fromkeys(COMPONENTS) | {"characters": 0}
    assert found["overall_score"] == 0
    found = evaluate(GOLD, {})
    assert (found["overall_score"], found["summary"]["event_accuracy"]) == (None, None)


def test_weights_change_the_overall_score_only() -> None:
    predicted = story(*GOLD["narrative_events"], characters=[])
    plain = evaluate(predicted)
    assert plain["overall_score"] == pytest.approx(4 / 5)
    weighted = evaluate(predicted, weights={"characters": 2, "sentiment": 0})
    assert weighted["overall_score"] == pytest.approx(3 / 5)
    assert weighted["component_scores"] == plain["component_scores"]


def test_an_overall_score_of_components_without_weight_is_undefined() -> None:
    case = Case(id="a", expected=story(), prediction=story())
    evaluator = Narrative(weights={"characters": 0})
    observation = evaluator.measure(case)
    assert observation.undefined["overall_score"] == "the ground truth has nothing to judge"
    assert evaluator.scores(observation)["overall_score"] is None


@pytest.mark.parametrize(
    "fields",
    [
        {"id": "z"},
        {"action_layer": {"category": "physical", "type": "flee"}},
        {"relationships": []},
        {"relationships": [event("")["relationships"][0] | {"relationship_level2": "rival"}]},
        {"relationships": [event("")["relationships"][0] | {"sentiment": "hostile;fearful"}]},
    ],
)
def test_one_mistake_makes_an_event_incorrect(fields: dict[str, Any]) -> None:
    found = evaluate(story(event("a"), event("b") | fields), story(event("a"), event("b")))
    assert found["summary"]["event_accuracy"] == 1 / 2


@pytest.mark.parametrize(
    "fields",
    [
        {"text_span": {"start": 0, "end": 30}},
        {"relationships": [*event("")["relationships"], {"agent": "Bea", "target": "Ann"}]},
        {"action_layer": {"category": "physical", "type": "attack", "context": "duel"}},
    ],
)
def test_what_gold_does_not_say_and_spans_leave_an_event_correct(fields: dict[str, Any]) -> None:
    assert evaluate(story(event("a") | fields), story(event("a")))["summary"]["event_accuracy"] == 1


def test_a_sentiment_that_gold_leaves_empty_leaves_an_event_correct() -> None:
    silent = event("a")["relationships"][0] | {"sentiment": None}
    assert evaluate(story(event("a")), story(event("a", relationships=[silent])))["summary"]["event_accuracy"] == 1


def test_events_without_a_partner_are_listed() -> None:
    found = evaluate(story(event("a"), event("z")))["summary"]
    assert (found["missing_events"], found["extra_events"], found["matched_events"]) == (["b"], ["z"], 1)


def test_labels_outside_the_taxonomies_are_reported_and_not_rescored() -> None:
    odd = event(
        "a",
        relationships=[
            {
                "agent": "Ann",
                "target": "Bea",
                "relationship_level1": "Adversarial",
                "relationship_level2": "enemmy",
                "sentiment": "hostile;angry",
            }
        ],
        action_layer={"category": "physical", "type": "atack", "status": "success"},
    )
    found = evaluate(story(odd), story(odd))
    assert found["overall_score"] == 1
    assert [(each["event"], each["field"], each["value"]) for each in found["invalid_labels"]] == [
        ("a", "relationship_level2", "enemmy"),
        ("a", "sentiment", "angry"),
        ("a", "action_layer.type", "atack"),
    ]
    assert "did you mean 'attack'?" in found["invalid_labels"][2]["reason"]
    assert found["taxonomy_validity"] == 4 / 7


def test_a_wrong_level_1_does_not_make_its_level_2_invalid() -> None:
    odd = event("a", relationships=[{"relationship_level1": "Adversary", "relationship_level2": "enemy"}])
    found = evaluate(story(odd), {})
    assert [each["field"] for each in found["invalid_labels"]] == ["relationship_level1"]


def test_a_level_2_below_another_level_1_is_invalid() -> None:
    odd = event("a", relationships=[{"relationship_level1": "Romance", "relationship_level2": "enemy"}])
    assert [each["field"] for each in evaluate(story(odd), {})["invalid_labels"]] == ["relationship_level2"]


def test_validity_is_of_the_prediction_and_needs_no_gold() -> None:
    assert evaluate(GOLD, None)["taxonomy_validity"] == 1
    assert evaluate({}, GOLD)["taxonomy_validity"] is None


def test_taxonomies_of_ones_own_are_used(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("sentiment,polarity\nglad,positive\n", encoding="utf-8")
    found = evaluate(GOLD, sentiment_taxonomy=str(path))
    assert {each["value"] for each in found["invalid_labels"]} == {"hostile"}
    signatures = {metric.name: metric.signature for metric in Narrative(sentiment_taxonomy=str(path)).describe()}
    assert signatures["taxonomy_validity"] == "taxonomies:shipped,own,shipped|v:1"


def test_without_a_text_only_text_spans_are_not_judged() -> None:
    found = evaluate(GOLD | {"source_info": None}, GOLD | {"source_info": None})
    assert found["component_scores"] == dict.fromkeys(COMPONENTS, 1) | {"text_span": None}
    assert found["overall_score"] == 1
    reason = found["detailed_results"]["text_span"]["gt_incomplete_reason"]
    assert reason.startswith("text is required for text spans")


def test_events_can_be_aligned_by_their_spans() -> None:
    predicted = story(event("x"), event("y", text_span={"start": 14, "end": 24}))
    assert evaluate(predicted)["summary"]["matched_events"] == 0
    assert evaluate(predicted, align=("id", "span"))["summary"]["correct_events"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": {"character": 1}}, "weights: unknown component character"),
        ({"weights": {"characters": -1}}, "weights: found -1.0 for characters, expected a number of at least 0"),
        ({"weights": dict.fromkeys(COMPONENTS, 0)}, "weights: found 0 for every component"),
        ({"fuzzy": 2}, "fuzzy: found 2.0"),
        ({"tolerance": 0}, "tolerance: found 0"),
        ({"align": ["ids"]}, "align: unknown field ids"),
        ({"spam": 1}, "spam"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvaluatorError, match=re.escape(message)):
        get_evaluator("narrative", **options)


def test_every_metric_of_every_component_is_a_metric_of_the_composite() -> None:
    names = [metric.name for metric in Narrative().describe()]
    assert len(names) == len(set(names))
    for component in COMPONENTS:
        assert f"narrative_{component}" in names
        assert {metric.name for metric in get_evaluator(f"narrative.{component}").describe()} <= set(names)


def test_a_suite_pools_stories_and_averages_them() -> None:
    half = story(event("a"))
    cases = [Case(id="a", expected=GOLD, prediction=GOLD), Case(id="b", expected=GOLD, prediction=half)]
    cases += [Case(id="c", expected=GOLD, prediction=GOLD), Case(id="d", expected=None, prediction=half)]
    metrics = score(Narrative(), cases, confidence=None).metrics
    assert metrics["event_accuracy"].value == 5 / 6
    assert metrics["narrative_relationships"].value == pytest.approx(2 * 5 / (5 + 6))
    assert metrics["narrative_relationships"].mean == pytest.approx((1 + 2 / 3 + 1) / 3)
    assert (metrics["overall_score"].scored, metrics["overall_score"].undefined) == (3, 1)
    assert metrics["exact_matches"].value == 3 + 1 + 1


def test_a_malformed_prediction_is_scored_as_an_empty_one() -> None:
    observation = Narrative().measure(Case(id="a", expected=GOLD, prediction="Sorry!"))
    assert observation.malformed == "found text 'Sorry!', expected a JSON v3 document (an object)"
    assert Narrative().scores(observation)["overall_score"] == 0

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval import Case, EvaluatorError, get_evaluator, score
from pytest_llmeval.core import SuiteError
from pytest_llmeval.data import Taxonomy
from pytest_llmeval.suites import Registry
from pytest_llmeval.suites._registry import using
from pytest_llmeval.tasks.narrative import package
from pytest_llmeval.tasks.narrative._composite import Narrative
from pytest_llmeval.tasks.narrative.package import (
    ActionLayerEvaluator,
    BaseEvaluator,
    BoundarySegmentationMetric,
    CharacterEvaluator,
    CompositeEvaluator,
    RelationshipEvaluator,
    SentimentEvaluator,
    TextSpanEvaluator,
)

GOLD = {"characters": [{"name": "Mira"}]}


def test_documents_are_loaded_and_those_of_gold_are_checked(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(GOLD), encoding="utf-8")
    bad.write_text('{"version": "2.0", "characters": []}', encoding="utf-8")
    assert package.load_ground_truth(str(good)) == package.load_prediction(good) == GOLD
    assert package.load_prediction(bad)["version"] == "2.0"
    with pytest.raises(SuiteError, match=r"found version '2\.0', expected 3\.0"):
        package.load_ground_truth(bad)


def test_taxonomies_are_loaded_in_the_forms_of_the_original() -> None:
    relationships = package.load_relationship_taxonomy(Taxonomy("relationships").path)
    assert relationships["Romance"] == ["lover"]
    assert "fearful" in package.load_sentiment_taxonomy(Taxonomy("sentiments").path)
    actions = package.load_action_taxonomy(Taxonomy("actions").path)
    assert "ambush" in actions["categories"]["Physical & Conflict"]["attack"]
    assert "climax" in actions["function"]
    assert "attempt" in actions["status"]


def test_a_name_that_is_no_alias_is_its_own_key() -> None:
    assert package.normalize_character_name("Fox", ["Mira", "the miller"]) == "fox"


def test_positions_belong_to_sentences() -> None:
    sentences = package.text_to_sentence_indices("One. Two!")
    assert [package.char_position_to_sentence_index(place, sentences) for place in (0, 3, 5)] == [0, 0, 1]
    assert package.calculate_overlap_ratio((0, 4), (2, 6)) == pytest.approx(1 / 3)


def test_gaps_change_no_score() -> None:
    assert package.calculate_precision_recall_f1(1, 1, 0, gt_incomplete_count=5) == (0.5, 1.0, pytest.approx(2 / 3))


def test_the_summary_has_the_metrics_alone() -> None:
    part = get_evaluator("narrative.characters")
    assert part.get_metrics_summary(part.evaluate(GOLD, GOLD)) == {  # type: ignore[attr-defined]
        "character_precision": 1,
        "character_recall": 1,
        "character_f1": 1,
        "character_archetype_accuracy": None,
    }
    summary = Narrative().get_metrics_summary(Narrative().evaluate(GOLD, GOLD))
    assert (summary["overall_score"], summary["narrative_characters"], summary["event_accuracy"]) == (1, 1, None)


class ThemesEvaluator(BaseEvaluator):
    """As an author of the original wrote it."""

    def __init__(self, field: str = "themes") -> None:
        self.field = field

    def evaluate(self, prediction: Any, ground_truth: Any, text: Any = None) -> dict[str, Any]:
        predicted, gold = (set(side.get(self.field, ())) for side in (prediction, ground_truth))
        handled = self.handle_missing_ground_truth(sorted(predicted), sorted(gold), self.field)
        recall = len(predicted & gold) / len(gold) if gold else None
        return {"recall": recall, "predicted": predicted, "status": handled["status"], "text": text}

    def get_metrics_summary(self, results: dict[str, Any]) -> dict[str, float | None]:
        return {"theme_recall": results["recall"]}


@pytest.mark.parametrize(
    "evaluator",
    [
        CompositeEvaluator(),
        CharacterEvaluator(),
        RelationshipEvaluator(),
        SentimentEvaluator(),
        ActionLayerEvaluator(),
        TextSpanEvaluator(tolerance=3),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_classes_of_the_original_have_their_methods(evaluator: Any) -> None:
    assert isinstance(evaluator, BaseEvaluator)
    gold = GOLD | {"narrative_events": [{"id": 1, "text_span": {"start": 0, "end": 4}}]}
    results = evaluator.evaluate(gold, gold, "One. Two.")
    assert set(evaluator.get_metrics_summary(results)) <= {
        *(metric.name for metric in evaluator.describe()),
        "overall_score",
    }
    assert evaluator.handle_missing_ground_truth("x", "", "y")["status"] == "extra"


def test_a_subclass_with_the_two_methods_is_an_evaluator() -> None:
    cases = [
        Case("a", "One.", {"themes": ["loss", "hope"]}, {"themes": ["loss"]}),
        Case("b", None, {"themes": []}, {"themes": ["loss"], "narrative_events": []}),
        Case("c", None, {"themes": ["loss"]}, {"answer": '{"themes": ["loss"]}', "usage": {}}),
        Case("d", None, {"themes": ["loss"]}, "no idea"),
    ]
    result = score(ThemesEvaluator(), cases, confidence=None)
    assert result.metrics["theme_recall"].value == pytest.approx((0.5 + 1 + 0) / 3)
    assert [case.outcome for case in result.cases] == ["passed", "passed", "passed", "failed"]
    assert result.cases[0].details["themes"]["text"] == "One."
    assert result.cases[1].metrics["theme_recall"] is None
    assert "expected a JSON v3 document" in (result.cases[3].reason or "")


def test_a_subclass_can_be_registered_and_be_a_component() -> None:
    registry = Registry.installed().copy()
    registry.register(ThemesEvaluator)
    with using(registry):
        found = get_evaluator("themes")
        assert found.evaluate({"themes": ["a"]}, {"themes": ["a"]})["recall"] == 1
        case = Case("a", None, GOLD | {"themes": ["a", "b"]}, GOLD | {"themes": ["a"]})
        composite = get_evaluator("narrative", components={"themes": "themes"})
        assert composite.scores(composite.measure(case))["narrative_themes"] == 0.5
    assert composite.evaluate(case.prediction, case.expected)["overall_score"] == 0.75


@pytest.mark.parametrize("value", ["high", float("nan"), [1]])
def test_a_summary_holds_numbers(value: Any) -> None:
    class Odd(ThemesEvaluator):
        metrics = ("theme_recall",)

        def get_metrics_summary(self, results: dict[str, Any]) -> dict[str, Any]:
            del results
            return {"theme_recall": value}

    with pytest.raises(EvaluatorError, match=r"theme_recall: found .*, expected a finite number or None"):
        Odd().measure(Case("a", None, GOLD, GOLD))


def test_metrics_of_an_evaluator_that_cannot_do_without_data_are_named() -> None:
    class Strict(ThemesEvaluator):
        def evaluate(self, prediction: Any, ground_truth: Any, text: Any = None) -> dict[str, Any]:
            del text
            return {"recall": float(prediction["themes"] == ground_truth["themes"])}

    with pytest.raises(EvaluatorError, match=r"Strict: evaluate failed for two empty documents.*set metrics"):
        Strict().describe()
    Strict.metrics = ("theme_recall",)
    assert [metric.name for metric in Strict().describe()] == ["theme_recall"]


def test_an_unlabelled_story_is_printed_by_the_line_of_the_original() -> None:
    composite = CompositeEvaluator()
    results = composite.evaluate({"characters": [{"name": "Mira"}]}, {"narrative_events": []})
    assert f"Overall Score: {results['overall_score']:.3f}" == "Overall Score: nan"
    scored = composite.evaluate({"characters": [{"name": "Mira"}]}, {"characters": [{"name": "Mira"}]})
    both = composite.aggregate_results([results, scored])
    assert (both["overall_score"], both["n_scored"]["overall_score"]) == (1.0, 1)
    assert json.loads(composite.generate_report(results, format="json"))["overall_score"] is None
    rows = json.loads(composite.generate_report([results, scored], format="json"))["files"]
    assert [row["overall_score"] for row in rows] == [None, 1.0]
    assert "Overall score: **n/a**" in composite.generate_report([results], None, "md")
    assert get_evaluator("narrative").evaluate({}, {})["overall_score"] is None


def test_the_boundary_metric_has_the_names_of_the_original() -> None:
    metric = BoundarySegmentationMetric(tolerance=2)
    assert metric.calculate(reference_boundaries=[2, 5], hypothesis_boundaries=[2, 6]) == 0.75
    assert metric.calculate([], []) == 1.0
    with pytest.raises(ValueError, match="found text 'a'"):
        metric.calculate([1], ["a"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="tolerance"):
        BoundarySegmentationMetric(tolerance=0)


def test_spans_may_be_lists() -> None:
    spans = TextSpanEvaluator()
    text = "Mira ran. Fox hid."
    found = spans.evaluate([{"start": 0, "end": 9}], [{"start": 0, "end": 18, "text": text}], text)
    assert (found["overlap_ratio"], found["n_ground_truth"]) == (0.5, 1)
    assert spans.evaluate([(0, 9)], [[0, 18]], text)["overlap_ratio"] == 0.5
    case = Case("a", text, [{"start": 0, "end": 18}], prediction=[{"start": 0, "end": "x"}])
    assert list(spans.check(case)) == []
    assert spans.measure(case).malformed
    assert spans.evaluate([], [{"start": 0, "end": 18}], text)["overlap_ratio"] == 0.0
    assert spans.evaluate([{"start": 0, "end": 9}], [None], text)["boundary_score"] is None

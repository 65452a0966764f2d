import json
from pathlib import Path

import pytest

from pytest_llmeval import get_evaluator
from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.data.labels import taxonomy_path
from pytest_llmeval.tasks.narrative import package
from pytest_llmeval.tasks.narrative.composite import Narrative

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
    relationships = package.load_relationship_taxonomy(taxonomy_path("relationships"))
    assert relationships["Romance"] == ["lover"]
    assert "fearful" in package.load_sentiment_taxonomy(taxonomy_path("sentiments"))
    actions = package.load_action_taxonomy(taxonomy_path("actions"))
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

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.tasks.narrative.composite import Narrative
from pytest_llmeval.tasks.narrative.report import aggregate_results, generate_report

GOLD = {
    "characters": [{"name": "Ann"}, {"name": "<b>Bea|*"}],
    "narrative_events": [{"id": "a", "action_layer": {"category": "physical", "type": "attack"}}],
}
POOR = {"characters": [{"name": "Ann"}], "narrative_events": [{"id": "a", "action_layer": {"category": "fysical"}}]}


@pytest.fixture
def poor() -> dict[str, Any]:
    return Narrative().evaluate(POOR, GOLD)


def test_means_leave_out_what_does_not_exist(poor: dict[str, Any]) -> None:
    results = [poor, Narrative().evaluate(GOLD, GOLD), Narrative().evaluate(GOLD, None)]
    found = aggregate_results(results)
    assert found["n_evaluations"] == 3
    assert found["component_scores"]["characters"] == pytest.approx((2 / 3 + 1) / 2)
    assert found["component_scores"]["sentiment"] is None
    assert found["overall_score"] == pytest.approx((poor["overall_score"] + 1) / 2)
    assert found["detailed_results"]["action_layer"]["action_type_accuracy"] == 0.5
    assert found["detailed_results"]["action_layer"]["field_counts"]["type"]["correct"] == pytest.approx(1 / 3)
    assert found["summary"]["event_accuracy"] == 0.5
    assert "missing_events" not in found["summary"]
    assert "gt_incomplete" not in found["detailed_results"]["characters"]


def test_the_means_of_nothing_are_none() -> None:
    found = aggregate_results([])
    assert (found["overall_score"], found["n_evaluations"]) == (None, 0)


def test_results_may_have_further_fields(poor: dict[str, Any]) -> None:
    assert aggregate_results([poor | {"story": "a.json"}]) == aggregate_results([poor])


def test_the_scores_of_each_file_are_kept_and_written_as_csv(tmp_path: Path, poor: dict[str, Any]) -> None:
    found = aggregate_results([poor | {"file": "a.json"}, Narrative().evaluate(GOLD, GOLD) | {"file": "b,c.json"}])
    assert [(row["file"], row["overall_score"]) for row in found["files"]] == [
        ("a.json", poor["overall_score"]),
        ("b,c.json", 1),
    ]
    text = generate_report(found, tmp_path / "new" / "folder" / "scores.csv")
    assert text.splitlines()[0] == (
        "file,overall_score,characters,relationships,sentiment,action_layer,text_span,event_accuracy"
    )
    assert text.splitlines()[2] == '"b,c.json",1.0,1.0,,,1.0,,1.0'
    assert (tmp_path / "new" / "folder" / "scores.csv").read_text("utf-8") == text


def test_a_json_report_reads_back_as_the_results(tmp_path: Path, poor: dict[str, Any]) -> None:
    path = tmp_path / "report.json"
    text = generate_report(poor, path)
    assert json.loads(text) == poor
    assert path.read_bytes().decode("utf-8") == text


def test_a_markdown_report_shows_scores_and_gaps(tmp_path: Path, poor: dict[str, Any]) -> None:
    path = tmp_path / "report.md"
    text = Narrative().generate_report(poor, str(path))
    assert path.read_bytes().decode("utf-8") == text == generate_report(poor)
    assert "| characters | 0.6667 |" in text
    assert "| sentiment | n/a |" in text
    assert "| total\\_events | 1 |" in text
    assert "fysical" in text


def test_text_of_stories_is_no_markup_in_a_report(poor: dict[str, Any]) -> None:
    assert "\\<b\\>Bea\\|\\*" in generate_report(poor)


def test_means_can_be_reported(poor: dict[str, Any]) -> None:
    text = generate_report(aggregate_results([poor, poor]))
    assert "| n\\_evaluations | 2 |" in text
    assert "| characters | 0.6667 |" in text


@pytest.mark.parametrize("name", ["report.txt", "report", "report.html"])
def test_other_suffixes_are_refused_and_nothing_is_written(tmp_path: Path, poor: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=r"expected a path that ends in \.json, \.md or \.csv"):
        generate_report(poor, tmp_path / name)
    assert list(tmp_path.iterdir()) == []

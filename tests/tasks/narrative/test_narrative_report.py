import json
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.tasks.narrative._composite import Narrative
from pytest_llmeval.tasks.narrative._report import aggregate_results, generate_report

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
    assert found["detailed_results"]["action_layer"]["field_counts"]["type"] == {"correct": 1, "total": 2}
    assert found["summary"]["event_accuracy"] == 0.5
    assert "missing_events" not in found["summary"]
    assert "gt_incomplete" not in found["detailed_results"]["characters"]


def test_the_means_of_nothing_are_none() -> None:
    found = aggregate_results([])
    assert (found["overall_score"], found["n_evaluations"], found["files"]) == (None, 0, [])


@pytest.mark.parametrize("nothing", [[], aggregate_results([])])
def test_a_report_of_nothing_says_so(tmp_path: Path, nothing: Any) -> None:
    assert generate_report(nothing) == "# Narrative evaluation\n\nNo story was evaluated.\n"
    assert generate_report(nothing, tmp_path / "r.csv") == "file,overall_score\n"
    assert json.loads(generate_report(nothing, tmp_path / "r.json"))["n_evaluations"] == 0


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


def test_no_cell_of_a_csv_report_is_a_formula(tmp_path: Path, poor: dict[str, Any]) -> None:
    text = generate_report(aggregate_results([poor | {"file": "=HYPERLINK(1).json"}]), tmp_path / "scores.csv")
    assert text.splitlines()[1].startswith("'=HYPERLINK(1).json,")


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
    assert "| n\\_evaluations | 2 |  |" in text
    assert "| characters | 0.6667 | 2 |" in text


def test_scores_are_means_and_counts_are_sums(poor: dict[str, Any]) -> None:
    found = aggregate_results([poor, Narrative().evaluate(GOLD, GOLD), Narrative().evaluate(GOLD, None)])
    assert found["summary"]["total_events"] == 2
    assert found["detailed_results"]["characters"]["n_matched"] == 3
    assert found["n_scored"]["overall_score"] == 2
    assert found["n_scored"]["component_scores"] == {
        "characters": 2,
        "relationships": 0,
        "sentiment": 0,
        "action_layer": 2,
        "text_span": 0,
    }
    assert "n_matched" not in found["n_scored"]["detailed_results"]["characters"]
    assert found["n_scored"]["detailed_results"]["characters"]["character_f1"] == 2
    text = generate_report(found)
    assert "Overall score: **0.6667** (2 of 3 stories)" in text
    assert "| action\\_layer | 0.5000 | 2 |" in text
    assert "| relationships | n/a | 0 |" in text


def test_a_markdown_report_has_the_rows_of_stories_and_the_gaps(poor: dict[str, Any]) -> None:
    results = [poor | {"file": "a.json"}, Narrative().evaluate({"foo": 1}, GOLD) | {"file": "b|c.json"}]
    text = generate_report(results)
    assert "Overall score: **0.3333** (1 of 2 stories)" in text
    assert "| file | overall\\_score | characters | relationships |" in text
    assert "| a.json | 0.3333 | 0.6667 | n/a | n/a | 0.0000 | n/a | 0.0000 |  |" in text
    assert "| b\\|c.json | n/a | n/a | n/a | n/a | n/a | n/a | n/a | found an object with 'foo'" in text
    assert "| n\\_malformed | 1 |  |" in text
    assert "| relationships | 2 | 2 |" in text.partition("## Gaps in the ground truth")[2].partition("\n## ")[0]
    assert "| relationships | 1 | 1 |" in generate_report(poor).partition("## Gaps in the ground truth")[2]


def test_a_malformed_prediction_is_in_its_report() -> None:
    text = generate_report(Narrative().evaluate({"foo": 1}, GOLD))
    assert "The prediction is malformed: found an object with 'foo'" in text


@pytest.mark.parametrize("name", ["report.txt", "report", "report.html"])
def test_other_suffixes_are_refused_and_nothing_is_written(tmp_path: Path, poor: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=r"expected a path that ends in \.json, \.md or \.csv"):
        generate_report(poor, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_format_decides_without_a_suffix(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    assert json.loads(generate_report([], path, format="json")) == json.loads(path.read_text(encoding="utf-8"))
    assert generate_report([], format="markdown").startswith("# ")
    with pytest.raises(ValueError, match="found the format 'xml', expected json, markdown or csv"):
        generate_report([], format="xml")  # type: ignore[arg-type]  # a wrong value is the point

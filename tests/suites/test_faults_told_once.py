"""What concerns one thing is one fault, and counts once."""

from pathlib import Path

import pytest
from project import load_text

from pytest_llmeval import SuiteError

STORIES = "cases: [{id: a, expected: {narrative_events: []}}, {id: b, expected: {narrative_events: []}}]\n"


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("d.jsonl", '{"id": "a", "expected": "x"}\n{"id": "b", "expected": "x", "extra": 1}\n'),
        ("d.json", '[{"id": "a", "expected": "x"}, {"id": "b", "expected": "x", "extra": 1}]'),
        ("d.csv", "id,expected,extra\na,x,1\nb,x,2\n"),
    ],
)
def test_a_row_with_an_unknown_key_is_counted_once(here: Path, name: str, rows: str) -> None:
    (here / name).write_text(rows, encoding="utf-8")
    source = f"source: {{format: {name.partition('.')[2]}, path: {name}}}\n"
    suite = load_text(f"evaluators: [text]\n{source}", here)
    (fault,) = suite.faults
    assert f"found the {'column' if name == 'd.csv' else 'key'} 'extra'" in fault.message
    assert ([case.id for case in suite.cases], suite.total) == (["a", "b"], 2)


def test_a_row_without_a_value_that_the_fields_name_is_counted_once(here: Path) -> None:
    (here / "d.jsonl").write_text('{"key": "a", "q": "x"}\n{"key": "b"}\n', encoding="utf-8")
    source = "source: {format: jsonl, path: d.jsonl, fields: {id: key, input: q}}\n"
    suite = load_text(f"evaluators: [text]\n{source}", here)
    assert (len(suite.faults), suite.total) == (1, 2)


def test_a_row_with_a_fault_of_its_own_beside_an_unknown_key_cannot_run(here: Path) -> None:
    (here / "d.jsonl").write_text('{"id": "a", "extra": 1, "tags": 7}\n{"id": "b"}\n', encoding="utf-8")
    suite = load_text("evaluators: [text]\nsource: {format: jsonl, path: d.jsonl}\n", here)
    assert ([case.id for case in suite.cases], suite.total) == (["b"], 2)


def test_a_broken_taxonomy_is_a_fault_of_the_suite_and_not_of_each_story(here: Path) -> None:
    (here / "bad.csv").write_text("sentiment,polarity\njoy,good\n", encoding="utf-8")
    entries = "narrative: {sentiment_taxonomy: bad.csv}}, {narrative.sentiment: {sentiment_taxonomy: bad.csv}"
    with pytest.raises(SuiteError) as caught:
        load_text(f"evaluators: [{{{entries}}}]\n{STORIES}", here)
    (fault,) = caught.value.faults
    assert str(fault).startswith("bad.csv:2:1  polarity: found the text 'good', expected positive")


def test_a_taxonomy_that_is_not_there_has_the_line_that_names_it(here: Path) -> None:
    with pytest.raises(SuiteError) as caught:
        load_text(f"evaluators:\n  - narrative: {{action_taxonomy: gone.yaml}}\n{STORIES}", here)
    (fault,) = caught.value.faults
    assert (fault.file, fault.line) == ("s.eval.yaml", 2)
    assert "gone.yaml" in fault.message

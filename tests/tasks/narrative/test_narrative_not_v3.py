"""Documents that are not in JSON v3, labels from metadata, and spans that have drifted."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from project import load_text

from pytest_llmeval import Case
from pytest_llmeval.core import Fault
from pytest_llmeval.tasks.narrative._composite import Narrative
from pytest_llmeval.tasks.narrative._source import JsonV3Source

GOLD = {"version": "3.0", "characters": [{"name": "A"}]}

NOT_V3 = [
    ({"version": 2.0, "characters": []}, "version", "found version 2.0, expected 3.0"),
    ({"characters": [], "events": []}, "events", "found the key 'events', expected 'narrative_events' (JSON v3)"),
    ({"character": []}, "character", "found the key 'character', expected 'characters' (JSON v3)"),
    (
        {"Narrative-Event": []},
        "Narrative-Event",
        "found the key 'Narrative-Event', expected 'narrative_events' (JSON v3)",
    ),
]


def loaded(folder: Path, data: Any = GOLD, **options: Any) -> tuple[list[Case], list[Fault]]:
    (folder / "gold").mkdir(exist_ok=True)
    (folder / "gold" / "swan_v3.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    faults: list[Fault] = []
    return JsonV3Source(gold="gold", **options).load(folder, faults), faults


@pytest.mark.parametrize(("data", "key", "message"), NOT_V3)
def test_ground_truth_of_another_version_is_a_fault(tmp_path: Path, data: Any, key: str, message: str) -> None:
    cases, (fault,) = loaded(tmp_path, data)
    assert (cases, fault.path, fault.message) == ([], key, message)
    assert fault.line > 1


@pytest.mark.parametrize(("data", "key", "message"), NOT_V3)
def test_a_prediction_of_another_version_has_a_reason(data: Any, key: str, message: str) -> None:
    found = Narrative().measure(Case(id="a", expected=GOLD, prediction=data))
    assert found.malformed == f"{key}: {message}"
    assert list(Narrative().check(Case(id="a", expected=data))) == [f"{key}: {message}"]


def test_other_keys_are_no_fault(tmp_path: Path) -> None:
    cases, faults = loaded(tmp_path, GOLD | {"themes_and_motifs": {}, "metadata": {}, "narrative_structure": {}})
    assert (len(cases), faults) == (1, [])


def test_a_prediction_without_any_part_has_a_reason() -> None:
    found = Narrative().measure(Case(id="a", expected=GOLD, prediction={"answer": 1}))
    assert found.malformed == (
        "found an object with 'answer', expected a JSON v3 document with 'characters' or 'narrative_events'"
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"characters": [],\n "narrative_events": [}', "line 2, column 23"),
        ('Here:\n```json\n{"characters": [1;]}\n```\n', "line 3, column 18"),
    ],
)
def test_malformed_json_of_a_prediction_has_a_position(text: str, place: str) -> None:
    found = Narrative().measure(Case(id="a", expected=GOLD, prediction=text)).malformed or ""
    assert found.startswith(f"found malformed JSON ({place}: ")


def test_labels_come_from_any_field(tmp_path: Path) -> None:
    data = GOLD | {"metadata": {"culture": " Persian ", "year": 1890, "ATU": {"type": "510A"}, "language": "fa"}}
    paths = {"culture": "metadata.culture", "year": "metadata.year", "atu": "metadata.ATU.type", "none": "metadata.x.y"}
    (case,), faults = loaded(tmp_path, data, labels=paths)
    assert faults == []
    assert case.labels == {"language": "fa", "culture": "Persian", "year": "1890", "atu": "510A"}


def test_a_label_that_is_no_text_is_a_fault(tmp_path: Path) -> None:
    cases, (fault,) = loaded(tmp_path, GOLD | {"metadata": {"tags": ["a"]}}, labels={"tags": "metadata.tags"})
    assert (cases, fault.path) == ([], "metadata.tags")
    assert fault.message == "found a list of 1, expected text for the label 'tags'"


def test_drifted_spans_of_the_ground_truth_are_a_warning(tmp_path: Path) -> None:
    event = {"id": "e1", "text_span": {"start": 0, "end": 3, "text": "swan"}}
    data = GOLD | {"source_info": {"text_content": "A swan."}, "narrative_events": [event]}
    with pytest.warns(
        UserWarning, match=r"swan_v3.json: event 'e1': text_span 0-3 is 'A s', not 'swan', which is at 2-6"
    ):
        assert len(loaded(tmp_path, data)[0]) == 1
    event["text_span"] = {"start": 2, "end": 6, "text": "swan"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded(tmp_path, data)


def test_drifted_spans_are_a_warning_in_every_source(tmp_path: Path) -> None:
    event = {"id": "e1", "text_span": {"start": 0, "end": 3, "text": "swan"}}
    row = {"id": "b", "input": "A swan.", "expected": {"narrative_events": [event]}, "prediction": {}}
    (tmp_path / "rows.jsonl").write_text("\n" + json.dumps(row))
    source = "source: {format: jsonl, path: rows.jsonl}"
    for evaluator in ("narrative", "narrative.text_span"):
        with pytest.warns(UserWarning, match=r"case b \(line 2\): event 'e1': text_span 0-3 is 'A s', not 'swan'"):
            load_text(f"evaluators: [{evaluator}]\n{source}\n", tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_text(f"evaluators: [narrative.characters]\n{source}\n", tmp_path)

"""The source json_v3: which files make a case, and what is told of files that do not."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from project import CONFORMANCE, load_source

from pytest_llmeval.core import MISSING, Case, Fault
from pytest_llmeval.suites import Registry, load_suite
from pytest_llmeval.tasks.narrative._source import JsonV3Source

STORIES = CONFORMANCE / "narrative" / "stories.jsonl"


pytestmark = pytest.mark.usefixtures("here")


def annotation(**parts: Any) -> dict[str, Any]:
    return {
        "version": "3.0",
        "source_info": {"language": "en", "text_content": "A swan sang."},
        "characters": [{"name": "Swan", "alias": "", "archetype": "Hero"}],
        "narrative_events": [],
        **parts,
    }


def write(folder: Path, **files: Any) -> None:
    """Write files: ``gold__swan_v3`` is ``gold/swan_v3.json``; text as it is, other data as JSON."""
    for name, data in files.items():
        path = folder / (name.replace("__", "/") + ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(data if isinstance(data, str) else json.dumps(data, ensure_ascii=False), encoding="utf-8")


load = partial(load_source, "json_v3")


def good(folder: Path, **options: Any) -> list[Case]:
    cases, faults = load(folder, **options)
    assert faults == []
    return cases


def faults(folder: Path, document: Any) -> list[str]:
    """Return what is wrong with a document as ground truth, without the name of the file."""
    write(folder, swan_v3=document)
    cases, found = load(folder, gold="swan_v3.json")
    assert bool(cases) != bool(found)
    assert all(each.startswith("swan_v3.json:") for each in found)
    return [each.removeprefix("swan_v3.json:") for each in found]


def test_story_has_its_text_its_gold_its_prediction_and_its_language(tmp_path: Path) -> None:
    predicted = annotation(characters=[])
    write(tmp_path, gold__swan_v3=annotation(), answers__swan_v3_pred=predicted)
    assert good(tmp_path, gold="gold/*_v3.json", predictions="answers/*.json") == [
        Case("swan", "A swan sang.", annotation(), predicted, labels={"language": "en"})
    ]


@pytest.mark.parametrize(
    ("gold", "predictions"),
    [
        ("gold", "answers"),
        ("gold/*.json", "answers/*_pred.json"),
        ("**/*_v3.json", "**/*_pred.json"),
        (["gold/crow_v3.json", "gold/swan_v3.json"], ["answers/crow_v3_pred.json", "answers/s*.json"]),
        (["gold/crow_v3.json", "gold"], "answers"),
        (".", "answers"),
    ],
)
def test_files_are_named_one_by_one_by_folder_or_by_pattern(
    tmp_path: Path, gold: str | list[str], predictions: str | list[str]
) -> None:
    write(tmp_path, gold__crow_v3=annotation(), gold__swan_v3=annotation())
    write(tmp_path, answers__crow_v3_pred=["crow"], answers__swan_v3_pred=["swan"])
    if gold == ".":
        write(tmp_path, crow_v3=annotation(), swan_v3=annotation())
    cases = good(tmp_path, gold=gold, predictions=predictions)
    assert [(case.id, case.prediction) for case in cases] == [("crow", ["crow"]), ("swan", ["swan"])]


def test_absolute_paths_and_patterns_are_taken_as_they_are(tmp_path: Path) -> None:
    write(tmp_path, gold__swan_v3=annotation(), answers__swan_v3=[])
    (tmp_path / "suites").mkdir()
    cases = good(tmp_path / "suites", gold=str(tmp_path / "gold"), predictions=str(tmp_path / "answers" / "s*.json"))
    assert [(case.id, case.prediction) for case in cases] == [("swan", [])]


def test_gold_and_predictions_may_share_a_folder(tmp_path: Path) -> None:
    write(tmp_path, data__swan_v3=annotation(), data__swan_v3_pred=["p"])
    cases = good(tmp_path, gold="data", predictions="data/*_pred.json")
    assert [(case.id, case.prediction) for case in cases] == [("swan", ["p"])]


def test_a_name_with_marks_of_patterns_is_found_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, **{"swan[1]": annotation()})
    assert [case.id for case in good(tmp_path, gold="swan[1].json")] == ["swan[1]"]


def test_hidden_files_and_other_files_of_a_folder_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, gold__swan_v3=annotation(), **{"gold__._swan_v3": "\0", "gold__deeper__crow_v3": annotation()})
    (tmp_path / "gold" / "notes.txt").write_text("x")
    assert [case.id for case in good(tmp_path, gold="gold")] == ["swan"]


@pytest.mark.parametrize(
    ("gold", "prediction", "options"),
    [
        ("swan_v3", "swan_v3_pred", {}),
        ("swan_v3", "swan_pred", {}),
        ("swan_v3", "swan_v3", {}),
        ("swan", "swan", {}),
        ("swan.gold", "swan.gpt", {"suffixes": [".gold", ".gpt"]}),
        ("swan", "swan.b.z", {"suffixes": [".z", ".b.z"]}),
        ("CH_002_牛郎织女2_v3", "CH_002_牛郎织女2_v3_pred", {}),
        ("cafe\u0301_v3", "caf\u00e9_v3_pred", {}),
    ],
)
def test_files_belong_together_by_their_names_without_suffixes(
    tmp_path: Path, gold: str, prediction: str, options: dict[str, Any]
) -> None:
    write(tmp_path, **{f"gold__{gold}": annotation(), f"answers__{prediction}": 1})
    cases = good(tmp_path, gold="gold", predictions="answers", **options)
    assert [case.prediction for case in cases] == [1]


def test_a_suffix_that_is_the_whole_name_stays(tmp_path: Path) -> None:
    write(tmp_path, _v3=annotation())
    assert [case.id for case in good(tmp_path, gold="_v3.json")] == ["_v3"]


def test_gold_without_prediction_waits_for_a_target(tmp_path: Path) -> None:
    write(tmp_path, gold__swan_v3=annotation(), gold__crow_v3=annotation(), answers__crow_v3_pred=[])
    assert [case.prediction for case in good(tmp_path, gold="gold", predictions="answers")] == [[], MISSING]
    assert [case.prediction for case in good(tmp_path, gold="gold")] == [MISSING, MISSING]


@pytest.mark.parametrize(
    ("text", "prediction"),
    [
        ('{"characters": ', '{"characters": '),
        ("```json\n{}\n```", "```json\n{}\n```"),
        ("", ""),
        ("\ufeffSorry, no.", "Sorry, no."),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ("[" * 5000, "[" * 5000),
        ("null", None),
        ('"text"', "text"),
    ],
)
def test_a_prediction_that_is_no_json_is_the_text_that_stands_there(tmp_path: Path, text: str, prediction: Any) -> None:
    write(tmp_path, gold__swan_v3=annotation(), answers__swan=text)
    assert [case.prediction for case in good(tmp_path, gold="gold", predictions="answers")] == [prediction]


def test_a_prediction_in_another_encoding_is_read_as_far_as_it_can_be(tmp_path: Path) -> None:
    write(tmp_path, gold__swan_v3=annotation(), answers__swan="x")
    (tmp_path / "answers" / "swan.json").write_bytes(b'{"characters": "\xff"}')
    cases = good(tmp_path, gold="gold", predictions="answers")
    assert [case.prediction for case in cases] == ['{"characters": "\ufffd"}']


@pytest.mark.parametrize(
    ("parts", "text", "labels"),
    [
        ({"source_info": {"language": " zh ", "text_content": "天鹅"}}, "天鹅", {"language": "zh"}),
        ({"source_info": {}, "metadata": {"language": "ja"}}, None, {"language": "ja"}),
        ({"source_info": None, "metadata": None}, None, {}),
        ({"source_info": {"text_content": " \n", "language": ""}}, None, {}),
        ({"source_info": [], "metadata": {"language": 3}}, None, {}),
    ],
)
def test_text_and_language_are_taken_where_they_are(
    tmp_path: Path, parts: dict[str, Any], text: str | None, labels: dict[str, str]
) -> None:
    write(tmp_path, swan=annotation(**parts))
    (case,) = good(tmp_path, gold="swan.json")
    assert (case.input, case.labels) == (text, labels)


def event(**parts: Any) -> dict[str, Any]:
    return annotation(narrative_events=[parts])


@pytest.mark.parametrize(
    "document",
    [
        {"characters": None},
        {"narrative_events": []},
        {"narrative_events": [None, {}], "characters": [None, {"name": None}]},
        annotation(version=3),
        annotation(version=None, source_info="", metadata=[]),
        annotation(characters=[{"name": "S", "alias": ["a", None, "b"], "archetype": None, "colour": "white"}]),
        annotation(themes_and_motifs={"any": ["thing"]}),
        event(id=7, time_order="2", text_span={"start": 0, "end": 4.0, "text": None}),
        event(id=None, time_order=1.5, text_span=None, agents="Swan", targets=["Crow", None]),
        event(text_span="", relationships={}, action_layer=[], agents=[]),
        event(text_span={"start": None}, relationships=[{}, None], action_layer={"category": "", "type": None}),
        event(relationships=[{"agent": "a", "target": "b", "sentiment": ["positive", "fearful"]}]),
    ],
)
def test_what_real_files_vary_in_is_no_fault(tmp_path: Path, document: Any) -> None:
    assert faults(tmp_path, document) == []


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("{", "1:2  found the end of the text, expected a key in double quotes"),
        ("", "1:1  found an empty file, expected JSON"),
        ([1], "1:1  found a list of 1, expected a JSON v3 document with 'characters' or 'narrative_events'"),
        (
            {"name": "config"},
            "1:1  found a mapping with 'name', expected a JSON v3 document with 'characters' or 'narrative_events'",
        ),
        (annotation(version="2.1"), "1:13  version: found version '2.1', expected 3.0"),
        (
            {"narrative_events": [{"id": "e1"}, {"id": "e2", "text_span": {"start": "4"}}]},
            "1:73  narrative_events[1].text_span.start: event 'e2': found the text '4', expected a whole number",
        ),
        (
            {"narrative_events": [{"id": 7, "text_span": {"end": 4.5}}]},
            "1:54  narrative_events[0].text_span.end: event 7: found the number 4.5, expected a whole number",
        ),
        (
            {"narrative_events": [{"relationships": [3]}]},
            "1:42  narrative_events[0].relationships[0]: found the number 3, expected an object",
        ),
        (
            {"narrative_events": [{"id": "e", "action_layer": "physical"}]},
            "1:51  narrative_events[0].action_layer: event 'e': found the text 'physical', expected an object",
        ),
        (
            {"narrative_events": [{"agents": 3}]},
            "1:34  narrative_events[0].agents: found the number 3, expected text or a list of texts",
        ),
        (
            {"characters": [], "source_info": {"language": 3}},
            "1:48  source_info.language: found the number 3, expected text",
        ),
        ({"characters": [], "metadata": 3}, "1:32  metadata: found the number 3, expected an object"),
        ({"narrative_events": ["e1"]}, "1:23  narrative_events[0]: found the text 'e1', expected an object"),
        ({"narrative_events": {"e1": 1}}, "1:22  narrative_events: found a mapping with 'e1', expected a list"),
        (
            {"characters": [{"name": "Swan", "archetype": ["Hero"]}]},
            "1:47  characters[0].archetype: character 'Swan': found a list of 1, expected text",
        ),
    ],
)
def test_fault_of_gold_names_file_event_and_field(tmp_path: Path, document: Any, expected: str) -> None:
    assert faults(tmp_path, document) == [expected]


def test_all_faults_of_a_file_are_told(tmp_path: Path) -> None:
    found = faults(tmp_path, {"characters": [{"name": 1}], "narrative_events": [{"id": "e", "relationships": 3}]})
    assert [each.partition("  ")[2] for each in found] == [
        "characters[0].name: character 1: found the number 1, expected text",
        "narrative_events[0].relationships: event 'e': found the number 3, expected a list",
    ]


def test_a_fault_stops_its_own_case_only(tmp_path: Path) -> None:
    write(tmp_path, gold__crow_v3=annotation(version="1"), gold__swan_v3=annotation(), gold__wren_v3="{")
    source = JsonV3Source("gold")
    faults: list[Fault] = []
    assert [case.id for case in source.load(tmp_path, faults)] == ["swan"]
    assert [fault.file for fault in faults] == ["gold/crow_v3.json", "gold/wren_v3.json"]
    assert source.faulty(faults) == 2


def test_a_prediction_without_gold_is_told_with_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, gold__swan_v3=annotation(), answers__swam_v3_pred=[], answers__swan_v3_pred=[])
    cases, found = load(tmp_path, gold="gold", predictions="answers")
    assert [case.id for case in cases] == ["swan"]
    told = "found a prediction for 'swam', expected ground truth with this name (did you mean 'swan'?)"
    assert found == [f"answers/swam_v3_pred.json  {told}"]
    assert JsonV3Source("gold").faulty([Fault("answers/swam_v3_pred.json", 0, 0, "", "")]) == 0


def test_two_files_of_one_story_are_told(tmp_path: Path) -> None:
    write(tmp_path, gold__swan=annotation(), gold__swan_v3=annotation(), a__swan=1, a__swan_pred=2)
    cases, found = load(tmp_path, gold=["gold", "gold/swan.json"], predictions="a")
    assert [(case.id, case.prediction) for case in cases] == [("swan", 1)]
    assert found == [
        "a/swan_pred.json  found a second file for the story 'swan', expected one (first is a/swan.json)",
        "gold/swan_v3.json:1:1  found a second file for the story 'swan', expected one (first is gold/swan.json)",
    ]


def test_an_option_that_names_no_file_is_told(tmp_path: Path) -> None:
    cases, found = load(tmp_path, gold="gold/*.json", predictions=["answers"])
    assert cases == []
    assert found == [
        "answers  predictions: no file matches 'answers'",
        "gold/*.json  gold: no file matches 'gold/*.json'",
    ]


def test_a_name_that_pytest_cannot_select_is_told(tmp_path: Path) -> None:
    write(tmp_path, **{"a::b": annotation()})
    cases, found = load(tmp_path, gold=".")
    assert cases == []
    assert "found the id 'a::b' with '::', which pytest splits at" in found[0]


@given(st.permutations(["ant", "bee", "cat", "dog"]))
def test_the_order_is_that_of_the_names_whatever_order_files_were_written_in(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("order")
    for name in names:
        write(folder, **{f"{name}_v3": annotation()})
    assert [case.id for case in good(folder, gold="*.json")] == ["ant", "bee", "cat", "dog"]


def test_a_suite_takes_its_cases_from_the_files_and_counts_the_faulty(tmp_path: Path) -> None:
    write(tmp_path, gold__crow_v3="{", gold__swan_v3=annotation(), answers__swan_v3_pred="x")
    (tmp_path / "s.eval.yaml").write_text(
        "evaluators: [{text: {metrics: [f1]}}]\n"
        "cases: [{id: swan, prediction: x}, {id: wren, prediction: x}]\n"
        "source: {format: json_v3, gold: gold, predictions: answers}\n"
    )
    suite = load_suite(tmp_path / "s.eval.yaml", Registry.installed(), root=tmp_path)
    assert [case.id for case in suite.cases] == ["swan", "wren"]
    assert len(suite.faults) == suite.faulty == 2


@pytest.mark.skipif(not STORIES.is_file(), reason="the recorded stories are not beside this repository")
def test_the_recorded_gold_has_no_fault(tmp_path: Path) -> None:
    stories = [json.loads(line) for line in STORIES.read_text(encoding="utf-8").splitlines()]
    write(tmp_path, **{f"gold__{story['story_id']}": story["gold"] for story in stories})
    cases = good(tmp_path, gold="gold")
    assert {case.id: case.expected for case in cases} == {story["story_id"]: story["gold"] for story in stories}

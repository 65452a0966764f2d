"""Loading of ``systems``: predictions and targets by name, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from project import load_text, write

from pytest_llmeval.core import MISSING, SuiteError
from pytest_llmeval.data.formats._rows import JsonlSource
from pytest_llmeval.suites import LoadedSuite

HEAD = "evaluators: [{text: {metrics: [f1]}}]\n"
CASES = "cases: [{id: a, input: x, expected: yes it is}, {id: b, input: y, expected: no}]\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def predictions(suite: LoadedSuite, system: str) -> dict[str, Any]:
    return {case.id: case.prediction for case in suite.for_variant(system).cases}


def faults(text: str, folder: Path) -> list[str]:
    with pytest.raises(SuiteError) as caught:
        load_text(text, folder)
    return [fault.message for fault in caught.value.faults]


def test_each_system_has_its_own_predictions(tmp_path: Path) -> None:
    write("one.json", {"a": "yes", "b": "no"})
    write("two.jsonl", '{"id": "a", "prediction": "perhaps"}\n')
    suite = load_text(
        f"{HEAD}systems: {{one: {{predictions: one.json}}, two: {{predictions: two.jsonl}}}}\n{CASES}", tmp_path
    )
    assert list(suite.systems) == ["one", "two"]
    assert predictions(suite, "one") == {"a": "yes", "b": "no"}
    assert predictions(suite, "two") == {"a": "perhaps", "b": MISSING}


def test_only_predicted_cases_are_kept_and_the_others_counted(tmp_path: Path) -> None:
    write("one.json", {"a": "yes", "b": "no"})
    write("two.json", {"b": "perhaps"})
    listed = "{one: {predictions: one.json}, two: {predictions: two.json, only: predicted}}"
    suite = load_text(f"{HEAD}systems: {listed}\n{CASES}", tmp_path)
    assert (suite.for_variant("one").total, suite.for_variant("one").left_out) == (2, 0)
    assert (suite.for_variant("two").total, suite.for_variant("two").left_out) == (1, 1)
    assert predictions(suite, "two") == {"b": "perhaps"}


def test_only_predicted_holds_for_a_suite_without_systems(tmp_path: Path) -> None:
    write("gold.jsonl", '{"id": "a", "expected": "x"}\n{"id": "b", "expected": "y"}\n')
    write("one.json", {"b": "y"})
    source = "source: {format: jsonl, path: gold.jsonl, predictions: one.json}\n"
    suite = load_text(f"{HEAD}only: predicted\n{source}", tmp_path)
    assert ([case.id for case in suite.cases], suite.left_out) == (["b"], 1)


def test_predictions_replace_those_of_a_source(tmp_path: Path) -> None:
    write("gold.jsonl", '{"id": "a", "expected": "x", "prediction": "of the data"}\n{"id": "b", "expected": "y"}\n')
    write("one.json", {"b": "y"})
    source = "source: {format: jsonl, path: gold.jsonl}\n"
    suite = load_text(
        f"{HEAD}systems: {{one: {{predictions: one.json}}, app: {{python: 'my_app:go'}}}}\n{source}", tmp_path
    )
    assert predictions(suite, "one") == {"a": MISSING, "b": "y"}
    assert predictions(suite, "app") == {"a": MISSING, "b": MISSING}
    target = suite.for_variant("app").target
    assert target is not None
    assert target.python == "my_app:go"


def test_a_data_file_is_not_read_anew_for_each_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("gold.jsonl", '{"id": "a", "expected": "x", "prediction": "its own"}\n')
    names = ["one", "two", "three", "four"]
    for name in names:
        write(f"{name}.json", {"a": name})
    reading, read = [], JsonlSource.read
    monkeypatch.setattr(JsonlSource, "read", lambda self, file: (reading.append(file.display_path), read(self, file)))
    systems = ", ".join(f"{name}: {{predictions: {name}.json}}" for name in names)
    suite = load_text(f"{HEAD}source: {{format: jsonl, path: gold.jsonl}}\nsystems: {{{systems}}}\n", tmp_path)
    assert [predictions(suite, name) for name in names] == [{"a": name} for name in names]
    assert reading == ["gold.jsonl"] * 2  # the cases, and the cases without predictions of their own


def test_a_folder_of_predictions_belongs_to_sources_that_take_folders(tmp_path: Path) -> None:
    story = {"source_info": {}, "narrative_events": [], "characters": [], "relationships": []}
    for folder in ("gold", "first"):
        (tmp_path / folder).mkdir()
    write("gold/tale.json", story | {"version": "3.0"})
    write("first/tale.json", {"made": "up"})
    source = "source: {format: json_v3, gold: gold}\n"
    text = f"evaluators: [{{narrative: {{}}}}]\nsystems: {{first: {{predictions: first}}}}\n{source}"
    try:
        suite = load_text(text, tmp_path)
    except SuiteError as error:
        pytest.fail(str(error))
    assert predictions(suite, "first") == {"tale": {"made": "up"}}


def test_what_only_one_system_predicts_is_an_empty_answer_of_the_others(tmp_path: Path) -> None:
    write("gold.qrels", "q1 0 d1 1\n")
    write("one.run", "q1 Q0 d1 1 2.0 t\nq2 Q0 d2 1 2.0 t\n")
    write("two.run", "q1 Q0 d1 1 2.0 t\n")
    text = (
        "evaluators: [{retrieval: {k: [10], max_positives: null, tasks: {gold: {rule: gold, by: id}}}}]\n"
        "source: {format: trec, qrels: gold.qrels}\n"
        "systems: {one: {predictions: one.run}, two: {predictions: two.run}}\n"
    )
    suite = load_text(text, tmp_path)
    assert predictions(suite, "one") == {"q1": ["d1"], "q2": ["d2"]}
    assert predictions(suite, "two") == {"q1": ["d1"], "q2": []}


def test_faults_of_predictions_are_those_of_their_system(tmp_path: Path) -> None:
    write("one.json", {"a": "yes", "zebra": "no"})
    write("two.json", {"a": "yes", "b": "no"})
    suite = load_text(
        f"{HEAD}systems: {{one: {{predictions: one.json}}, two: {{predictions: two.json}}}}\n{CASES}", tmp_path
    )
    assert [fault.file for fault in suite.for_variant("one").faults] == ["one.json"]
    assert not suite.for_variant("two").faults
    assert len(suite.all_faults) == 1


@pytest.mark.parametrize(
    ("systems", "message"),
    [
        ("[one]", "found a list of 1, expected a mapping of names to systems"),
        ("{}", "found an empty mapping, expected a mapping of names to systems"),
        ("{one: {}}", "found an empty mapping, expected exactly one of predictions, python, http, command, model"),
        (
            "{one: {predictions: a.json, python: 'm:f'}}",
            "found predictions and python, expected exactly one of predictions, python, http, command, model",
        ),
        ("{one: nowhere}", "found 'nowhere', expected MODULE:NAME such as 'my_app.answers:answer'"),
        (
            "{'one[1]': {python: 'm:f'}}",
            "found the name 'one[1]' with a bracket, expected one without: it stands in brackets behind case ids",
        ),
        ("{one: {predictions: 3}}", "found the number 3, expected a file"),
    ],
)
def test_a_system_that_cannot_be_is_refused(systems: str, message: str, tmp_path: Path) -> None:
    assert message in faults(f"{HEAD}systems: {systems}\n{CASES}", tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("target: 'm:f'", "found a target beside systems, expected it under systems, with a name"),
        ("reference: tow", "unknown system tow, did you mean two?"),
        (
            "gates: [{metric: f1, system: wto, min: 0.5}]",
            "unknown system wto, did you mean two?",
        ),
        (
            "gates: [{metric: f1, system: one, against: tow, min_gain: 0.1}]",
            "unknown system tow, did you mean two?",
        ),
        (
            "gates: [{metric: f1, system: one, against: two, min_gain: 2}]",
            "found min_gain 2, expected at most 1: f1 lies from 0 to 1 (did you mean 0.02?)",
        ),
        ("compare_by: [f2]", "unknown metric f2, did you mean f1?"),
    ],
)
def test_what_contradicts_systems_is_refused(line: str, message: str, tmp_path: Path) -> None:
    text = f"{HEAD}{line}\nsystems: {{one: {{python: 'm:f'}}, two: {{python: 'm:g'}}}}\n{CASES}"
    assert faults(text, tmp_path) == [message]


def test_predictions_of_the_source_beside_systems_are_refused(tmp_path: Path) -> None:
    write("gold.jsonl", '{"id": "a", "expected": "x"}\n')
    source = "source: {format: jsonl, path: gold.jsonl, predictions: one.json}\n"
    text = f"{HEAD}systems: {{one: {{python: 'm:f'}}}}\n{source}"
    assert faults(text, tmp_path) == ["found predictions beside systems, expected them under systems, with a name"]


def test_a_system_without_any_prediction_is_refused_where_only_predicted_cases_are_wanted(tmp_path: Path) -> None:
    write("one.json", {})
    text = f"{HEAD}only: predicted\nsystems: {{one: {{predictions: one.json}}}}\n{CASES}"
    assert faults(text, tmp_path) == ["no case has a prediction"]

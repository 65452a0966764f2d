"""The source ecac: which conversations make a case, what is predicted for them, and what is told of faulty files."""

import json
from pathlib import Path
from typing import Any

import pytest
from project import CONFORMANCE, ROOT, Loaded, load_source
from pydantic import TypeAdapter, ValidationError

from pytest_llmeval.core import MISSING, Case, Fault
from pytest_llmeval.suites import Registry, load_suite
from pytest_llmeval.tasks.emotion_cause._pairs import EMOTIONS
from pytest_llmeval.tasks.emotion_cause._source import EcacSource

RECORDED = CONFORMANCE / "emotion_cause"
EXAMPLES = ROOT / "example_suites" / "emotion_cause"


pytestmark = pytest.mark.usefixtures("here")


def conversation(number: Any = 7, *pairs: Any, **others: Any) -> dict[str, Any]:
    utterances = [
        {"utterance_ID": 1, "speaker": "Ada", "emotion": "neutral", "text": "The boat is late ."},
        {"utterance_ID": 2, "speaker": "Bram", "emotion": "joy", "text": "Look , there it comes !"},
    ]
    return {"conversation_ID": number, "conversation": utterances, "emotion-cause_pairs": list(pairs), **others}


def predicted(number: Any = 7, *pairs: Any) -> dict[str, Any]:
    return {"conversation_ID": number, "emotion-cause_pairs": list(pairs)}


def write(folder: Path, **files: Any) -> None:
    """Write files as JSON, an item of the list in each line; text as it is."""
    for name, data in files.items():
        lines = [json.dumps(each) for each in data] if isinstance(data, list) else []
        text = "[\n" + ",\n".join(lines) + "\n]\n" if isinstance(data, list) else data
        (folder / f"{name}.json").write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")


def load(folder: Path, subtask: int = 2, **files: Any) -> Loaded:
    """Load ``gold`` and perhaps ``predictions`` with options as a suite file gives them."""
    write(folder, **files)
    return load_source("ecac", folder, subtask=subtask, **{name: f"{name}.json" for name in files})


def good(folder: Path, subtask: int = 2, **files: Any) -> list[Case]:
    cases, faults = load(folder, subtask, **files)
    assert faults == []
    return cases


def test_conversation_has_its_utterances_its_gold_and_its_prediction(tmp_path: Path) -> None:
    gold = [conversation(3), conversation(7, ["2_joy", "2_there it comes !"])]
    cases = good(tmp_path, 1, gold=gold, predictions=[predicted(7, ["2_joy", "2_2_5"]), predicted(3)])
    assert cases[1] == Case(
        id="7",
        input=[
            {"utterance_ID": 1, "speaker": "Ada", "text": "The boat is late ."},
            {"utterance_ID": 2, "speaker": "Bram", "text": "Look , there it comes !"},
        ],
        expected=[["2_joy", "2_there it comes !"]],
        prediction=[["2_joy", "2_2_5"]],
        line=3,
    )
    assert [case.id for case in cases] == ["3", "7"]


def test_a_target_is_not_shown_the_emotions(tmp_path: Path) -> None:
    (case,) = good(tmp_path, gold=[conversation()])
    assert "emotion" not in json.dumps(case.input)
    assert case.prediction is MISSING


@pytest.mark.parametrize(
    ("subtask", "pair"),
    [
        (1, ["2_joy", "2_there it comes !"]),
        (1, ["2_joy", "2_2_5"]),
        (1, ["U2_Joy", "U2_2_5"]),
        (2, ["2_joy", "2"]),
        (2, ["U2_Joy", "U2"]),
    ],
)
def test_gold_is_kept_as_it_is_spelled(tmp_path: Path, subtask: int, pair: list[str]) -> None:
    (case,) = good(tmp_path, subtask, gold=[conversation(7, pair)])
    assert case.expected == [pair]


def test_gold_of_positions_and_utterances_needs_no_conversation(tmp_path: Path) -> None:
    (case,) = good(tmp_path, 1, gold=[predicted(7, ["2_joy", "2_2_5"])])
    assert (case.input, case.expected) == (None, [["2_joy", "2_2_5"]])


@pytest.mark.parametrize("number", [7, "7", " 7 ", 7.0])
def test_numbers_of_conversations_may_be_texts(tmp_path: Path, number: Any) -> None:
    (case,) = good(tmp_path, gold=[conversation(number)], predictions=[predicted("7", ["2_joy", "1"])])
    assert (case.id, case.prediction) == ("7", [["2_joy", "1"]])


def test_predictions_for_other_conversations_are_passed_over(tmp_path: Path) -> None:
    cases = good(tmp_path, gold=[conversation(7)], predictions=[predicted(8, "nonsense"), predicted(7)])
    assert [(case.id, case.prediction) for case in cases] == [("7", [])]


def test_a_conversation_without_prediction_has_none(tmp_path: Path) -> None:
    cases = good(tmp_path, gold=[conversation(7), conversation(8)], predictions=[predicted(8)])
    assert [case.prediction for case in cases] == [MISSING, []]
    cases = good(tmp_path, gold=[conversation(7)], predictions=[])
    assert [case.prediction for case in cases] == [MISSING]


@pytest.mark.parametrize(
    "pairs", [[["1_happy", "1"]], ["1_joy"], [{"emotion": "1_joy"}], [["1_joy", "1", "2"]], "none", None, {}]
)
def test_what_a_model_wrote_is_a_prediction_whatever_it_is(tmp_path: Path, pairs: Any) -> None:
    entry = {"conversation_ID": 7, "emotion-cause_pairs": pairs}
    (case,) = good(tmp_path, gold=[conversation(7)], predictions=[entry])
    assert case.prediction == pairs


@pytest.mark.parametrize(
    "entry",
    [
        {"conversation_ID": 7, "emotion-cause_pairs": [["1_joy", "1"]], "candidates": [["1_joy", "1"]], "keep": [1]},
        {"conversation_ID": 7, "candidates": [["1_joy", "1"]], "keep": [0]},
    ],
)
def test_an_object_with_more_to_say_than_pairs_is_the_prediction(tmp_path: Path, entry: Any) -> None:
    (case,) = good(tmp_path, gold=[conversation(7)], predictions=[entry])
    assert case.prediction == entry


def test_internal_lists_become_official_pairs(tmp_path: Path) -> None:
    cases = good(tmp_path, gold=[[7, 2, 2, 4], [9, 1, 3, 1], [7, 2, 1, 4]], predictions=[[7, 2, 1, 4], [7, 2, 1, 4]])
    assert cases == [
        Case("7", None, [["2_joy", "2"], ["2_joy", "1"]], [["2_joy", "1"], ["2_joy", "1"]], line=2),
        Case("9", None, [["1_anger", "3"]], [], line=3),
    ]


def test_every_emotion_has_its_number(tmp_path: Path) -> None:
    (case,) = good(tmp_path, gold=[[7, 1, 1, number] for number in range(7)])
    assert case.expected == [[f"1_{emotion}", "1"] for emotion in EMOTIONS]


def test_internal_predictions_go_with_official_gold(tmp_path: Path) -> None:
    cases = good(tmp_path, gold=[conversation(7), conversation(8)], predictions=[[7, 2, 1, 4], [9, 1, 1, 1]])
    assert [(case.id, case.prediction) for case in cases] == [("7", [["2_joy", "1"]]), ("8", [])]


def test_internal_gold_has_no_pair_in_conversations_that_only_predictions_have(tmp_path: Path) -> None:
    cases = good(tmp_path, gold=[[7, 2, 2, 4]], predictions=[[9, 1, 1, 1], [7, 2, 2, 4]])
    assert cases[1:] == [Case("9", None, [], [["1_anger", "1"]])]


@pytest.mark.parametrize(
    ("row", "prediction"),
    [
        ([7, 2, 1, 9], [7, 2, 1, 9]),
        ([7, 2, 1, "joy"], ["2_joy", "1"]),
        ([7, 2.0, "1", 4], ["2_joy", "1"]),
        ([7, 2, 1, True], [7, 2, 1, True]),
        ([7, "two", None, 4], [7, "two", None, 4]),
        ([7, 2, 1], [7, 2, 1]),
    ],
)
def test_a_faulty_row_of_internal_predictions_stays_a_prediction(tmp_path: Path, row: Any, prediction: Any) -> None:
    (case,) = good(tmp_path, gold=[conversation(7)], predictions=[row] if len(row) > 3 else [[7, 1, 1, 1], row])
    assert case.prediction[-1] == prediction


@pytest.mark.parametrize(
    ("gold", "told"),
    [
        ({}, "1:1  submission: submission form: found {}, expected a list"),
        ([5], "2:1  [0]: submission: conversation form: found 5, expected an object with "),
        ([{}], "2:1  [0]: submission: conversation form: found no key conversation_ID, expected an object with "),
    ],
)
def test_fault_of_the_form_of_gold(tmp_path: Path, gold: Any, told: str) -> None:
    cases, (found,) = load(tmp_path, gold=gold)
    assert cases == []
    assert found.startswith(f"gold.json:{told}")


@pytest.mark.parametrize(
    ("subtask", "item", "place", "told"),
    [
        (
            2,
            conversation("x1"),
            "2:21  [0].conversation_ID",
            'conversation "x1": conversation id: found a value that is not a whole number',
        ),
        (
            2,
            conversation(1.5),
            "2:21  [0].conversation_ID",
            "conversation 1.5: conversation id: found a value that is not a whole number",
        ),
        (
            2,
            {"conversation_ID": 7},
            "2:1  [0].emotion-cause_pairs",
            "conversation 7: pair list: found no key emotion-cause_pairs, expected a list of pairs",
        ),
        (
            2,
            conversation(7, ["2_joy", "2"], ["2", "2"]),
            "2:266  [0].emotion-cause_pairs[1]",
            'conversation 7, pair 2 ["2", "2"]: emotion: found "2", expected utterance and emotion, such as "3_joy"',
        ),
        (
            1,
            conversation(7, ["2_joy", "5_it comes"]),
            "2:250  [0].emotion-cause_pairs[0]",
            'conversation 7, pair 1 ["2_joy", "5_it comes"]: cause utterance: found utterance 5, expected 1 to 2',
        ),
        (
            1,
            conversation(7, conversation=[{"utterance_ID": 1}]),
            "2:40  [0].conversation",
            'conversation 7: conversation form: found [{"utterance_ID": 1}], expected a list of utterances with `text`',
        ),
        (
            2,
            [7, 2, 1, 9],
            "2:1  [0]",
            "conversation 7, pair 1 [7, 2, 1, 9]: emotion: found emotion number 9, expected 0 to 6",
        ),
        (
            2,
            [],
            "2:1  [0]",
            "submission: pair form: found [], expected a list that begins with the number of its conversation",
        ),
    ],
)
def test_fault_of_gold_names_line_conversation_and_pair(
    tmp_path: Path, subtask: int, item: Any, place: str, told: str
) -> None:
    other: Any = [8, 1, 1, 1] if isinstance(item, list) else conversation(8)
    cases, found = load(tmp_path, subtask, gold=[item, other])
    assert found == [f"gold.json:{place}: {told}"]
    assert [case.id for case in cases] == ["8"]


def test_spans_without_text_to_find_them_in_are_a_fault(tmp_path: Path) -> None:
    cases, (found,) = load(tmp_path, 1, gold=[predicted(7, ["2_joy", "2_there it comes"])])
    assert cases == []
    assert "conversation 7, pair 1" in found
    assert 'found the words "there it comes", expected positions' in found


def test_an_internal_list_has_no_spans(tmp_path: Path) -> None:
    cases, found = load(tmp_path, 1, gold=[[7, 2, 2, 4]])
    assert cases == []
    assert "found [7, 2, 2, 4], expected a list of six whole numbers" in found[0]


@pytest.mark.parametrize("name", ["gold", "predictions"])
def test_a_conversation_that_comes_twice_is_a_fault(tmp_path: Path, name: str) -> None:
    files: dict[str, Any] = {"gold": [conversation(7)], "predictions": [predicted(7, ["1_joy", "1"])]}
    files[name] = [*files[name], predicted("7", ["2_joy", "2"])]
    cases, found = load(tmp_path, 2, **files)
    told = "conversation repeated: found it twice, expected it once (first in line 2)"
    assert found == [f"{name}.json:3:21  [1].conversation_ID: conversation 7: {told}"]
    assert [(case.id, case.prediction) for case in cases] == [("7", [["1_joy", "1"]])]


def test_predictions_of_no_conversation_are_a_fault(tmp_path: Path) -> None:
    cases, found = load(tmp_path, gold=[conversation(7)], predictions=[predicted("dia7"), predicted(7)])
    told = 'conversation "dia7": conversation id: found a value that is not a whole number'
    assert found == [f"predictions.json:2:21  [0].conversation_ID: {told}"]
    assert [case.prediction for case in cases] == [[]]


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    cases, found = load(tmp_path, gold="[", predictions=[])
    assert (cases, len(found)) == ([], 1)
    assert found[0].startswith("gold.json:1:2  found the end of the text")
    cases, found = load(tmp_path, gold=[conversation(7)], predictions="")
    assert [case.prediction for case in cases] == [MISSING]
    assert found == ["predictions.json  found an empty file, expected JSON"]


def test_gold_without_conversations_is_a_fault(tmp_path: Path) -> None:
    assert load(tmp_path, gold=[]) == ([], ["gold.json  the file has no conversation"])


def test_faulty_conversations_are_counted_once_each(tmp_path: Path) -> None:
    gold = [conversation(1, ["x", "1"], ["y", "1"]), conversation(2), conversation(2), conversation(3, 5)]
    write(tmp_path, gold=gold, predictions=[5, 6])
    (tmp_path / "other").mkdir()
    write(tmp_path / "other", gold=[5, 6])
    for predictions in ("predictions.json", "other/gold.json"):
        source = EcacSource("./gold.json", 2, predictions)
        faults: list[Fault] = []
        assert [case.id for case in source.load(tmp_path, faults)] == ["2"]
        assert len(faults) == 6
        assert source.faulty(faults) == 3


@pytest.mark.parametrize(
    "options", [{"gold": "g"}, {"subtask": 1}, {"gold": "g", "subtask": 3}, {"gold": "g", "subtask": "1"}]
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(EcacSource).validate_json(json.dumps(options), strict=True)


def test_a_suite_of_another_subtask_is_told_by_line_of_the_gold_file(tmp_path: Path) -> None:
    write(tmp_path, gold=[conversation(7), conversation(8, ["2_joy", "2"])])
    path = tmp_path / "a.eval.yaml"
    path.write_text(
        "evaluators: [{emotion_cause: {subtask: 1}}]\nsource: {format: ecac, gold: gold.json, subtask: 2}\n"
    )
    suite = load_suite(path, Registry.installed(), root=tmp_path)
    assert [case.id for case in suite.cases] == ["7"]
    (fault,) = suite.faults
    assert (fault.file, fault.line, suite.faulty) == ("gold.json", 3, 1)


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded numbers are not here")
@pytest.mark.parametrize("subtask", [1, 2])
def test_recorded_gold_and_predictions_load_without_fault(tmp_path: Path, subtask: int) -> None:
    gold = json.loads((RECORDED / "gold.json").read_text())[f"subtask{subtask}"]
    rows = map(json.loads, (RECORDED / "cases.jsonl").read_text().splitlines())
    for row in rows:
        if row["subtask"] == subtask:
            chosen = [each for each in gold if each["conversation_ID"] in row["gold_ids"]]
            cases = good(tmp_path, subtask, gold=chosen, predictions=row["predictions"])
            assert sorted(int(case.id) for case in cases) == sorted(row["gold_ids"])
            assert MISSING not in [case.prediction for case in cases]


@pytest.mark.parametrize(("subtask", "form"), [(1, "spans"), (2, "pairs")])
@pytest.mark.parametrize("system", ["careful", "hasty"])
def test_the_shipped_examples_load(subtask: Any, form: str, system: str) -> None:
    faults: list[Fault] = []
    cases = EcacSource(f"gold_{form}.json", subtask, f"{system}_{form}.json").load(EXAMPLES, faults)
    assert faults == []
    assert len(cases) == 10
    assert all(isinstance(case.prediction, list) for case in cases)

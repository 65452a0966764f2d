"""Scores by emotion, the confusion matrix, and the forms of files beside the official one."""

import json
from pathlib import Path
from typing import Any

import pytest
from project import load_source

from pytest_llmeval import Case, score
from pytest_llmeval.core import MISSING, ConfusionMatrix, LabelTable
from pytest_llmeval.tasks.emotion_cause._evaluator import EmotionCause
from pytest_llmeval.tasks.emotion_cause._pairs import EMOTIONS, validate_submission

pytestmark = pytest.mark.usefixtures("here")

GOLD = [["1_joy", "1"], ["2_joy", "1"], ["3_anger", "2"]]
ANSWER = [["1_joy", "1"], ["3_joy", "2"], ["3_anger", "3"]]


def about(value: float) -> Any:
    return pytest.approx(value, abs=1e-6)


def load(folder: Path, subtask: int, **files: Any) -> list[Case]:
    for name, data in files.items():
        (folder / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")
    cases, faults = load_source("ecac", folder, subtask=subtask, **{name: f"{name}.json" for name in files})
    assert faults == []
    return cases


def test_every_emotion_has_precision_recall_f1_and_support() -> None:
    found = EmotionCause(subtask=2).evaluate(ANSWER, GOLD)
    names = ("pair_precision[joy]", "pair_recall[joy]", "pair_f1[joy]", "support[joy]", "support[anger]")
    assert [found[name] for name in names] == [about(1 / 2), about(1 / 2), about(1 / 2), 2, 1]
    assert found["pair_precision[anger]"] == 0
    assert found["support[fear]"] is found["pair_recall[fear]"] is None


@pytest.mark.parametrize("subtask", [1, 2])
def test_each_family_has_a_table_by_emotion(subtask: Any) -> None:
    evaluator = EmotionCause(subtask=subtask)
    described = {metric.name for metric in evaluator.describe()}
    tables = [table for table in evaluator.tables() if isinstance(table, LabelTable)]
    assert len(tables) == (3 if subtask == 1 else 1)
    for table in tables:
        assert list(table.columns) == ["precision", "recall", "f1", "support"]
        assert described.issuperset(table.columns.values())


def test_the_confusion_matrix_has_wrong_pairs_in_the_row_and_missed_ones_in_the_column_of_neutral() -> None:
    evaluator = EmotionCause(subtask=2)
    (matrix,) = (table for table in evaluator.tables() if isinstance(table, ConfusionMatrix))
    assert tuple(matrix.labels) == EMOTIONS
    counts = evaluator.measure(Case("1", expected=GOLD, prediction=ANSWER)).counts
    cells = {(true, found): counts.get(matrix.count(true, found), 0) for true in EMOTIONS for found in EMOTIONS}
    assert {cell: number for cell, number in cells.items() if number} == {
        ("joy", "joy"): 1,
        ("neutral", "joy"): 1,
        ("neutral", "anger"): 1,
        ("joy", "neutral"): 1,
        ("anger", "neutral"): 1,
    }


def test_lists_of_six_numbers_are_gold_and_predictions(tmp_path: Path) -> None:
    rows = [[7, 3, 1, 2, 8, 4], [7, 3, 2, 0, 5, 4]]
    (case,) = load(tmp_path, 1, gold=rows, predictions=rows[:1])
    assert (case.expected, case.prediction) == ([["3_joy", "1_2_8"], ["3_joy", "2_0_5"]], [["3_joy", "1_2_8"]])
    (case,) = load(tmp_path, 2, gold=rows, predictions=rows[:1])
    assert (case.expected, case.prediction) == ([["3_joy", "1"], ["3_joy", "2"]], [["3_joy", "1"]])


def test_a_bare_object_is_a_submission_of_one_conversation(tmp_path: Path) -> None:
    answer = {"conversation_ID": 7, "emotion-cause_pairs": [["U3_Joy", "U1_2_8"]]}
    (case,) = load(tmp_path, 1, gold=[[7, 3, 1, 2, 8, 4]], predictions=answer)
    assert case.prediction == [["U3_Joy", "U1_2_8"]]
    assert validate_submission(answer, 1) == []
    assert [fault.rule for fault in validate_submission({"pairs": []}, 1)] == ["submission form"]


@pytest.mark.parametrize("name", ["candidates", "candidate_pairs"])
def test_candidates_of_all_conversations_may_be_one_list(tmp_path: Path, name: str) -> None:
    answers = {name: [[7, 3, 1, 4], [8, 2, 2, 5], [7, 3, 2, 4]], "keep": [1, 0, 0]}
    cases = load(tmp_path, 2, gold=[[7, 3, 1, 4], [8, 2, 1, 5]], predictions=answers)
    assert [case.prediction for case in cases] == [
        {"candidates": [["3_joy", "1"], ["3_joy", "2"]], "keep": [1, 0]},
        {"candidates": [["2_sadness", "2"]], "keep": [0]},
    ]
    metrics = score(EmotionCause(subtask=2, two_step=True), cases, confidence=None).metrics
    assert (metrics["keep_rate"].value, metrics["filtered_precision"].value) == (about(1 / 3), about(1))


def test_flags_that_do_not_fit_the_candidates_are_a_fault(tmp_path: Path) -> None:
    (tmp_path / "gold.json").write_text("[[7, 3, 1, 4]]", encoding="utf-8")
    (tmp_path / "answers.json").write_text('{"candidates": [[7, 3, 1, 4]], "keep": []}', encoding="utf-8")
    cases, faults = load_source("ecac", tmp_path, subtask=2, gold="gold.json", predictions="answers.json")
    assert len(faults) == 1
    assert "found [] as keep, expected a list with 0 or 1 for each of candidates" in faults[0]
    assert all(case.prediction in (MISSING, []) for case in cases)


UTTERANCES = [{"text": "Somebody is at the door ."}, {"text": "Do not open it !"}]


def test_predicted_spans_may_be_quoted() -> None:
    case = Case("1", UTTERANCES, [["2_fear", "1_at the door ."]], prediction=[["2_fear", "1_at the door"]])
    plain, quoting = EmotionCause(), EmotionCause(quoted_spans=True)
    assert plain.measure(case).malformed is not None
    found = quoting.measure(case)
    assert (found.malformed, quoting.scores(found)["strict_f1"]) == (None, about(1))


def test_spans_are_scored_as_utterances_beside_their_own_scores() -> None:
    gold, answer = [["2_fear", "1_0_5"], ["2_fear", "1_1_2"]], [["2_fear", "1_0_4"], ["2_fear", "2_0_1"]]
    found = EmotionCause(utterance_level=True).evaluate(answer, gold)
    alone = EmotionCause(subtask=2).evaluate([["2_fear", "1"], ["2_fear", "2"]], [["2_fear", "1"]])
    assert found["strict_f1"] == 0
    names = [name for name in alone if name.startswith(("pair_", "weighted_")) and name != "pair_errors"]
    assert {name: found[name] for name in names} == {name: alone[name] for name in names}
    assert found["pair_f1"] == about(2 / 3)


@pytest.mark.parametrize("option", ["quoted_spans", "utterance_level"])
def test_options_about_spans_need_spans(option: str) -> None:
    with pytest.raises(ValueError, match=f"^{option}: found true in subtask 2"):
        EmotionCause(subtask=2, **{option: True})  # type: ignore[arg-type]

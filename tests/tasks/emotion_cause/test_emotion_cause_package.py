"""The functions of the originals under their names, on the variables and files that their authors have."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from project import CONFORMANCE

from pytest_llmeval import get_evaluator
from pytest_llmeval.cli import main
from pytest_llmeval.core import Fault
from pytest_llmeval.tasks.emotion_cause._source import EcacSource
from pytest_llmeval.tasks.emotion_cause.package import (
    cal_prf,
    conf_mat,
    evaluate_1_2,
    evaluate_2_2,
    prf_2nd_step,
    prf_2nd_step_emocate,
)

RECORDED = CONFORMANCE / "emotion_cause"
recorded = pytest.mark.skipif(not RECORDED.is_dir(), reason="needs the conformance data")

STEP2 = """1 3
[[1, 2, 'joy']]
[[1, 2, 'joy'], [np.int64(3), np.int64(2), 'anger']]
1 | 4 | 0 | dia1utt1 | joy | hello world
2 | 0 | 1 | dia1utt2 | neutral | this is sad
3 | 1 | 0 | dia1utt3 | anger | okay then | 00:16:45
2 2
[[1, 2]]

1 | 1 | 0 | dia2utt1 | anger | i am angry
2 | 0 | 1 | dia2utt2 | neutral | why so
"""
"""What Step 2 writes: number and length, gold pairs, predicted pairs (none: an empty line), utterances."""

row = st.tuples(*(st.integers(1, 3) for _ in range(3)), st.integers(0, 6)).map(list)


def reference_matrix(gold: Sequence[Any], predicted: Sequence[Any]) -> Any:
    """Restate the rule of the confusion matrix, with membership in lists."""
    matrix = np.zeros([7, 7])
    for pair in predicted:
        matrix[pair[3] if pair in gold else 0][pair[3]] += 1
    for pair in gold:
        if pair not in predicted:
            matrix[pair[3]][0] += 1
    return matrix


def reference(gold: Sequence[Any], predicted: Sequence[Any]) -> tuple[list[float], list[float]]:
    """Restate micro scores, and scores by emotion in the order of MECPE-Enhanced."""
    hits = sum(pair in gold for pair in predicted)
    p, r = hits / (len(predicted) + 1e-8), hits / (len(gold) + 1e-8)
    matrix = reference_matrix(gold, predicted)
    ps, rs = np.diag(matrix) / (matrix.sum(0) + 1e-8), np.diag(matrix) / (matrix.sum(1) + 1e-8)
    fs = 2 * ps * rs / (ps + rs + 1e-8)
    by_emotion = list(fs[1:])
    for chosen in ([1, 2, 3, 4, 5, 6], [1, 4, 5, 6]):
        with np.errstate(invalid="ignore"):
            weights = matrix.sum(1)[chosen] / matrix.sum(1)[chosen].sum()
        by_emotion += [float((each[chosen] * weights).sum()) for each in (fs, ps, rs)]
    return [p, r, 2 * p * r / (p + r + 1e-8)], by_emotion


def typed(rows: Sequence[Sequence[int]]) -> list[list[Any]]:
    """Return rows as the original has them: the emotion is a scalar of NumPy."""
    return [[*each[:-1], np.int32(each[-1])] for each in rows]


@settings(max_examples=60, deadline=None)
@given(st.lists(row, max_size=8, unique_by=tuple), st.lists(row, max_size=8), st.data())
def test_steps_have_the_scores_of_the_original_on_its_arrays(gold: Any, pairs: Any, data: Any) -> None:
    keep = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(pairs), max_size=len(pairs))), dtype=np.int64)
    kept = [pair for pair, flag in zip(pairs, keep, strict=True) if flag]
    (micro, filtered), (micro_all, everything) = reference(gold, kept), reference(gold, pairs)
    rate = len(kept) / (len(pairs) + 1e-8)
    assert prf_2nd_step(typed(gold), typed(pairs), keep) == pytest.approx(
        [*micro, *micro_all, rate], abs=1e-9, nan_ok=True
    )
    expected = [*filtered, *everything, rate]
    assert prf_2nd_step_emocate(typed(gold), typed(pairs), keep) == pytest.approx(expected, abs=1e-9, nan_ok=True)
    assert (conf_mat(typed(gold), np.array(pairs)) == reference_matrix(gold, pairs)).all()


def test_a_mask_has_a_flag_for_each_candidate() -> None:
    pairs = np.array([[1, 2, 1, 3], [1, 3, 1, 4]], dtype=np.int32)
    assert prf_2nd_step(pairs, pairs, np.array([True, False]))[-1] == pytest.approx(0.5)
    assert prf_2nd_step([[1.0, "2", 1, "fear"]], pairs, ["1", 0.0])[2] == pytest.approx(1)
    assert math.isnan(prf_2nd_step_emocate([], [], [])[6])
    bare = get_evaluator("emotion_cause", subtask=2)
    assert bare.evaluate([1, 5, 3, 2], np.array([1, 5, 3, 2]))["pair_f1"] == pytest.approx(1)
    assert bare.evaluate([1, 5, 3, 2], [[1, 5, 3, 2], [2, 1, 1, 2]])["pair_recall"] == pytest.approx(0.5)
    with pytest.raises(ValueError, match="pred_y: found 1 flags, expected 2"):
        prf_2nd_step(pairs, pairs, [1])


@recorded
def test_labels_of_padded_matrices_count_up_to_the_length() -> None:
    rows = [json.loads(line) for line in (RECORDED / "builtin.jsonl").read_text("utf-8").splitlines()]
    for each in (each for each in rows if each["kind"] == "step1"):
        scores = cal_prf(np.array(each["pred"]), np.array(each["true"]), np.array(each["doc_len"]))
        assert scores == pytest.approx(
            tuple(each["expected"]["binary"][part] for part in ("precision", "recall", "f1"))
        )
    assert cal_prf([[1, 9]], [[1, 0]], [1]) == pytest.approx((1, 1, 1))
    with pytest.raises(ValueError, match="expected 3 or more"):
        cal_prf([[1, 9]], [[1, 0]], [3])


@recorded
def test_the_functions_of_the_official_script_return_its_lists() -> None:
    gold = json.loads((RECORDED / "gold.json").read_text("utf-8"))
    for line in (RECORDED / "cases.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        files = {each["conversation_ID"]: each for each in gold[f"subtask{case['subtask']}"]}
        override, key = case.get("gold_pairs_override", {}), "emotion-cause_pairs"
        right = [files[each] | {key: override.get(str(each), files[each][key])} for each in case["gold_ids"]]
        expected = {name.lower(): math.nan if value is None else value for name, value in case["expected"].items()}
        if case["subtask"] == 1:
            found = [each for family in evaluate_1_2(case["predictions"], right) for each in family]
            stems: tuple[str, ...] = ("weighted_strict_", "strict_", "weighted_proportional_", "proportional_")
        else:
            found = evaluate_2_2(case["predictions"], right)
            stems = ("", "weighted_")
        names = [f"{stem}{part}{'' if stem else '_pair'}" for stem in stems for part in ("precision", "recall", "f1")]
        assert found == pytest.approx([expected[name] for name in names], abs=1e-9, nan_ok=True), case["id"]
    with pytest.raises(ValueError, match="conversation 1: conversation missing"):
        evaluate_2_2([], [{"conversation_ID": 1, "emotion-cause_pairs": []}])


@pytest.mark.usefixtures("here")
def test_files_of_step_2_are_converted(capsys: pytest.CaptureFixture[str]) -> None:
    Path("run1_test.txt").write_text(STEP2, encoding="utf-8")
    written = {}
    for form in ("step2", "step2-gold"):
        arguments = ["--from", form, "--to", "official", "--subtask", "2", "run1_test.txt"]
        assert main(["emotion-cause", "convert", *arguments]) == 0
        written[form] = json.loads(capsys.readouterr().out)
    pairs = {form: [each["emotion-cause_pairs"] for each in entries] for form, entries in written.items()}
    assert pairs == {
        "step2": [[["1_joy", "2"], ["3_anger", "2"]], []],
        "step2-gold": [[["1_joy", "2"]], [["1_anger", "2"]]],
    }
    assert evaluate_2_2(written["step2"], written["step2-gold"])[:2] == pytest.approx([0.5, 0.5])


@pytest.mark.usefixtures("here")
def test_files_of_step_2_are_a_source() -> None:
    Path("run1_test.txt").write_text(STEP2, encoding="utf-8")
    source: dict[str, Any] = {"subtask": 2, "gold": "run1_test.txt", "predictions": "run1_test.txt"}
    faults: list[Fault] = []
    first, second = EcacSource(**source).load(Path(), faults)
    assert faults == []
    assert first.expected == [["1_joy", "2"]]
    assert first.prediction == [["1_joy", "2"], ["3_anger", "2"]]
    assert first.input[2] == {"utterance_ID": 3, "speaker": "dia1utt3", "text": "okay then"}
    assert (second.expected, second.prediction) == ([["1_anger", "2"]], [])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2 2\n", "2 3\n", "found 2 utterances, expected 3"),
        ("[[1, 2]]", "[[9, 2]]", "conversation 2, pair 1 [2, 9, 2, null]: pair form: found"),
        ("[[1, 2]]", "[[1, 2]] x", "expected a list of pairs"),
        ("2 2\n", "two\n", "expected the number of a conversation and its length"),
    ],
)
@pytest.mark.usefixtures("here")
def test_faults_of_step_files_have_a_line(capsys: pytest.CaptureFixture[str], old: str, new: str, message: str) -> None:
    Path("run.txt").write_text(STEP2.replace(old, new), encoding="utf-8")
    arguments = ["--from", "step2-gold", "--to", "official", "--subtask", "2", "run.txt"]
    assert main(["emotion-cause", "convert", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("run.txt:")
    assert message in error


@pytest.mark.usefixtures("here")
def test_what_step_1_writes_has_no_predicted_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    Path("step1.txt").write_text("5 1\n(1,1),(1,1)\n1 | Rachel | joy | Oh , look | 00:16\n", encoding="utf-8")
    arguments = ["--to", "internal", "--subtask", "2", "step1.txt", "--from"]
    assert main(["emotion-cause", "convert", *arguments, "step2"]) == 1
    assert "step1.txt:2:1  the line of predicted pairs is missing" in capsys.readouterr().err
    assert main(["emotion-cause", "convert", *arguments, "step2-gold"]) == 0
    assert json.loads(capsys.readouterr().out) == [[5, 1, 1, 4], [5, 1, 1, 4]]

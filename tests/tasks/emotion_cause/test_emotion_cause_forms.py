"""Scripts without spaces, quotations, internal lists, the matching of the original, labels of utterances."""

import json
from typing import Any

import pytest
from project import CONFORMANCE

from pytest_llmeval import Case, score
from pytest_llmeval.core import Reading
from pytest_llmeval.tasks.emotion_cause._evaluator import EmotionCause
from pytest_llmeval.tasks.emotion_cause._pairs import locate_span

EPSILON = 1e-8
PAIRS = EmotionCause(subtask=2)
QUOTING = EmotionCause(quoted_spans=True)
CHINESE = ["外面下大雨了，我很难过。", "我们不去公园了！"]


def about(value: float) -> Any:
    return pytest.approx(value, abs=1e-7)


@pytest.mark.parametrize(
    ("span", "utterance", "position"),
    [
        ("下大雨", "外面下大雨了，我很难过。", (2, 5)),
        ("“我很难过。”", "外面下大雨了，我很难过。", (7, 11)),
        ("用iPhone", "我用iPhone拍照", (1, 3)),
        ("有 暴雨", "天气 预报 说 有 暴雨 。", (3, 5)),
        ("say 你好", "They say 你好 to all", (1, 3)),
        ("用iPhone 15", "我用iPhone 15拍照", (0, 0)),
        ("下雪", "外面下大雨了", (0, 0)),
        ("。", "外面下大雨了。", (0, 0)),
        ("ฝน", "ฝนตก", (0, 2)),
    ],
)
def test_characters_are_the_tokens_of_texts_without_white_space(
    span: str, utterance: str, position: tuple[int, int]
) -> None:
    assert locate_span(span, utterance) == position


def test_quotations_of_chinese_conversations_are_told_apart() -> None:
    gold = [["1_sadness", "1_下大雨了"]]
    right = QUOTING.evaluate([["1_sadness", "1_下大雨了"]], gold, CHINESE)
    near = QUOTING.evaluate([["1_sadness", "1_我很难过"]], gold, CHINESE)
    part = QUOTING.evaluate([["1_sadness", "1_大雨"]], gold, CHINESE)
    assert (right["strict_f1"], near["strict_f1"], part["strict_f1"]) == (about(1), 0.0, 0.0)
    assert part["proportional_recall"] == about(2 / 4)


def test_a_predicted_quotation_that_is_nowhere_is_a_miss() -> None:
    gold = [["1_sadness", "1_下大雨了"]]
    answer = [["1_sadness", "1_下雪了"], ["1_sadness", "1_刮风"], ["1_sadness", "1_下大雨了"]]
    case = Case("1", CHINESE, gold, prediction=answer)
    observation = QUOTING.measure(case)
    assert observation.malformed is None
    scores = QUOTING.scores(observation)
    assert (scores["strict_precision"], scores["strict_recall"]) == (about(1 / 3), about(1))
    assert len(observation.details["spans_without_token"]) == 2
    assert len(list(QUOTING.explain(case, observation))) == 2


def test_original_matching_takes_predictions_in_order() -> None:
    gold = [["2_joy", "1_0_4"], ["2_joy", "1_4_8"]]
    answer = [["2_joy", "1_0_8"], ["2_joy", "1_0_4"]]
    assert EmotionCause().evaluate(answer, gold)["fuzzy_f1"] == about(1)
    original = EmotionCause(matching="original")
    assert original.evaluate(answer, gold)["fuzzy_f1"] == about(0.5)
    assert original.evaluate(answer[::-1], gold)["fuzzy_f1"] == about(1)
    assert original.evaluate(answer, gold)["strict_f1"] == EmotionCause().evaluate(answer, gold)["strict_f1"]
    signatures = {metric.name: metric.signature for metric in original.describe()}
    assert "matching:original" in signatures["fuzzy_f1"]
    assert "matching" not in signatures["strict_f1"]
    with pytest.raises(ValueError, match="expected 'most' or 'original'"):
        EmotionCause(matching="greedy")  # type: ignore[arg-type]


def test_internal_lists_are_read_in_python_as_in_files() -> None:
    official = PAIRS.evaluate([["2_fear", "1"], ["2_joy", "1"]], [["2_fear", "1"]])
    internal = PAIRS.evaluate([[7, 2, 1, 3], [7, 2, 1, 4]], [[7, 2, 1, 3]])
    assert internal == official
    six = EmotionCause().evaluate([[7, 2, 1, 0, 4, 3]], [[7, 2, 1, 0, 4, 3]])
    assert six["strict_f1"] == about(1)
    steps = EmotionCause(subtask=2, two_step=True)
    found = steps.evaluate({"candidate_pairs": [[7, 2, 1, 3], [7, 2, 2, 3]], "keep": [1, 0]}, [[7, 2, 1, 3]])
    assert (found["filtered_f1"], found["all_precision"], found["keep_rate"]) == (about(1), about(0.5), about(0.5))


def test_internal_lists_of_several_conversations_are_told_apart() -> None:
    gold = [[1, 2, 1, 3], [2, 2, 1, 3], [3, 1, 1, 4]]
    found = PAIRS.evaluate([[1, 2, 1, 3], [3, 2, 1, 3]], gold)
    assert (found["pair_precision"], found["pair_recall"]) == (about(1 / 2), about(1 / 3))
    assert PAIRS.evaluate([], gold)["pair_recall"] == 0.0
    steps = EmotionCause(subtask=2, two_step=True)
    both = steps.evaluate({"candidates": [[1, 2, 1, 3], [3, 2, 1, 3]], "keep": [1, 0]}, gold)
    assert (both["filtered_precision"], both["all_precision"]) == (about(1), about(0.5))
    mixed = PAIRS.measure(Case("1", expected=[[1, 2, 1, 3]], prediction=[[1, 2, 1, 3], [2, 2, 1, 3]]))
    assert mixed.malformed is not None
    assert "found conversation 2, expected 1" in mixed.malformed


@pytest.mark.parametrize(
    "prediction",
    [
        '[["2_fear", "1"]]',
        '```json\n[["2_fear", "1"]]\n```',
        {"answer": '{"emotion-cause_pairs": [["2_fear", "1"]]}', "usage": {}},
        {"answer": [[7, 2, 1, 3]]},
    ],
)
def test_what_a_model_wrote_is_read_where_it_is(prediction: Any) -> None:
    observation = PAIRS.measure(
        Reading.for_evaluator(PAIRS).view(Case("7", expected=[["2_fear", "1"]], prediction=prediction))
    )
    assert (observation.malformed, PAIRS.scores(observation)["pair_f1"]) == (None, about(1))


def test_emotions_and_causes_come_from_labels_or_else_from_pairs() -> None:
    evaluator = EmotionCause(subtask=2, utterances=True)
    gold = {"emotions": [0, 3, "joy"], "causes": [1, 1, 0], "emotion-cause_pairs": [["2_fear", "1"], ["3_joy", "2"]]}
    answer = {
        "emotions": ["neutral", "fear", None],
        "causes": [True, False, True],
        "emotion-cause_pairs": [["2_fear", "1"]],
    }
    found = evaluator.evaluate(answer, gold)
    assert (found["emotion_precision"], found["emotion_recall"]) == (about(1), about(0.5))
    assert (found["cause_precision"], found["cause_recall"]) == (about(0.5), about(0.5))
    assert (found["pair_precision"], found["pair_recall"]) == (about(1), about(0.5))
    derived = evaluator.evaluate([["2_fear", "1"]], [["2_fear", "1"], ["3_joy", "1"], ["1_neutral", "1"]])
    assert (derived["emotion_recall"], derived["cause_f1"]) == (about(0.5), about(1))
    alone = evaluator.measure(Case("1", expected={"emotions": [0, 1]}, prediction={"emotions": [1, 1]}))
    assert (evaluator.scores(alone)["emotion_precision"], alone.malformed) == (about(0.5), None)
    assert alone.undefined["cause_f1"] == "no expected causes and no expected pairs"
    assert "pair_f1" in alone.undefined
    wrong = evaluator.measure(Case("1", expected={"emotions": [0, 1]}, prediction={"emotions": [1]}))
    assert wrong.malformed == "emotions: found 1 labels, expected 2, one for each utterance"
    (fault,) = evaluator.check(Case("1", expected={"causes": [{}]}))
    assert fault == "causes: found an object as a label, expected a number or a name"


@pytest.mark.skipif(not (CONFORMANCE / "emotion_cause").is_dir(), reason="needs the conformance data")
def test_emotions_have_the_numbers_of_cal_prf() -> None:
    evaluator = EmotionCause(subtask=2, utterances=True)
    lines = (CONFORMANCE / "emotion_cause" / "builtin.jsonl").read_text("utf-8").splitlines()
    rows = [row for line in lines if (row := json.loads(line))["kind"] == "step1"]
    assert rows
    for row in rows:
        cases = [
            Case(str(number), expected={"emotions": true[:length]}, prediction={"emotions": pred[:length]})
            for number, (true, pred, length) in enumerate(zip(row["true"], row["pred"], row["doc_len"], strict=True))
        ]
        metrics = score(evaluator, cases, confidence=None).metrics
        for part, expected in row["expected"]["binary"].items():
            assert metrics[f"emotion_{part}"].value == pytest.approx(expected, abs=1e-9, rel=0)

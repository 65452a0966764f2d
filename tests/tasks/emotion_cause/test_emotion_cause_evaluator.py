import json
import math
from typing import Any

import numpy as np
import pytest

from pytest_llmeval import Case, EvaluatorError, Totals, get_evaluator, score
from pytest_llmeval.tasks.emotion_cause._evaluator import EmotionCause
from pytest_llmeval.tasks.emotion_cause._scores import SCORED

SPANS = EmotionCause(subtask=1)
PAIRS = EmotionCause(subtask=2)
STEPS = EmotionCause(subtask=2, two_step=True)

PARTS = ("precision", "recall", "f1")
KEY = "emotion-cause_pairs"


def about(value: float) -> Any:
    return pytest.approx(value, abs=5e-8, rel=0)


def three(values: Any, name: str) -> list[float]:
    return [values[name.format(part)] for part in PARTS]


def test_pairs_of_subtask_2_are_right_as_a_whole_or_not_at_all() -> None:
    gold = [["1_joy", "1"], ["2_joy", "1"], ["3_anger", "3"], ["4_fear", "2"]]
    predicted = [["1_joy", "1"], ["2_anger", "1"], ["3_anger", "3"], ["3_anger", "3"], ["9_neutral", "1"]]
    found = PAIRS.evaluate(predicted, gold)
    assert three(found, "pair_{}") == [about(2 / 3), about(2 / 4), about(4 / 7)]
    # joy: 1 of 1, 1 of 2; anger: 1 of 2, 1 of 1; fear: nothing of 1. Weights 2, 1, 1.
    assert three(found, "weighted_{}") == [about((2 + 0.5) / 4), about((1 + 1) / 4), about((4 / 3 + 2 / 3) / 4)]
    assert three(found, "weighted_{}_4class") == [about(2.5 / 3), about(2 / 3), about(2 / 3)]
    emotions = {emotion: found[f"pair_f1[{emotion}]"] for emotion in SCORED}
    assert emotions == {
        "anger": about(2 / 3),
        "disgust": None,
        "fear": 0.0,
        "joy": about(2 / 3),
        "sadness": None,
        "surprise": None,
    }
    assert found["missing_pairs"] == [["2_joy", "1"], ["4_fear", "2"]]
    assert found["extra_pairs"] == [["2_anger", "1"]]
    assert found["neutral_pairs"] == [["9_neutral", "1"]]
    assert (found["n_gold"], found["n_predicted"], found["n_correct"]) == (4, 3, 2)


@pytest.mark.parametrize(
    ("gold", "predicted", "strict", "proportional", "fuzzy"),
    [
        # Counts are right, predicted and gold, of pairs, of tokens, of pairs.
        (["1_0_4"], ["1_0_4"], (1, 1, 1), (4, 4, 4), (1, 1, 1)),
        (["1_0_4"], ["1_2_6"], (0, 1, 1), (2, 4, 4), (1, 1, 1)),
        (["1_0_4"], ["1_4_6"], (0, 1, 1), (0, 2, 4), (0, 1, 1)),
        (["1_0_4"], ["2_0_4"], (0, 1, 1), (0, 4, 4), (0, 1, 1)),
        (["1_0_4"], [], (0, 0, 1), (0, 0, 4), (0, 0, 1)),
        (["1_0_4"], ["1_0_2", "1_2_4"], (0, 2, 1), (4, 4, 8), (1, 2, 1)),
        (["1_0_4", "1_4_8"], ["1_0_8"], (0, 1, 2), (4, 8, 8), (1, 1, 2)),
        (["1_0_5", "1_5_7"], ["1_2_7"], (0, 1, 2), (2, 5, 7), (1, 1, 2)),
        (["1_0_2", "1_0_4"], ["1_0_6"], (0, 1, 2), (4, 6, 6), (1, 1, 2)),
        (["1_0_5", "1_5_10"], ["1_3_7", "1_0_4"], (0, 2, 2), (6, 8, 15), (2, 2, 2)),
        (["1_0_0"], ["1_0_0"], (1, 1, 1), (0, 0, 0), (0, 1, 1)),
        (["1_0_4"], ["1_4_0"], (0, 1, 1), (0, 0, 4), (0, 1, 1)),
        (["1_0_20"], ["1_12_3"], (0, 1, 1), (0, 0, 20), (0, 1, 1)),
    ],
)
def test_spans_of_subtask_1_are_counted_in_three_ways(
    gold: list[str],
    predicted: list[str],
    strict: tuple[int, int, int],
    proportional: tuple[int, int, int],
    fuzzy: tuple[int, int, int],
) -> None:
    case = Case("c", expected=[["2_joy", each] for each in gold], prediction=[["2_joy", each] for each in predicted])
    counts = SPANS.measure(case).counts
    pairs = (counts.get("predicted[joy]", 0), counts.get("gold[joy]", 0))
    assert (counts.get("strict[joy]", 0), *pairs) == strict
    tokens = ("overlap[joy]", "predicted_tokens[joy]", "gold_tokens[joy]")
    assert tuple(counts.get(name, 0) for name in tokens) == proportional
    assert (counts.get("fuzzy[joy]", 0), *pairs) == fuzzy


def test_spans_of_another_emotion_do_not_meet() -> None:
    found = SPANS.evaluate([["2_joy", "1_0_4"]], [["2_anger", "1_0_4"]])
    assert [found[f"{kind}_f1"] for kind in ("strict", "proportional", "fuzzy")] == [0.0, 0.0, 0.0]
    assert found["weighted_strict_recall"] == 0.0


def test_equally_good_gold_spans_are_chosen_in_the_order_of_the_gold_list() -> None:
    predicted = [["2_joy", "1_0_4"], ["2_joy", "1_0_2"]]
    first = SPANS.evaluate(predicted, [["2_joy", "1_0_2"], ["2_joy", "1_2_4"]])
    second = SPANS.evaluate(predicted, [["2_joy", "1_2_4"], ["2_joy", "1_0_2"]])
    assert first["proportional_recall"] == about(4 / 6)
    assert second["proportional_recall"] == about(4 / 4)
    assert first["fuzzy_f1"] == second["fuzzy_f1"] == about(1.0)


def test_gold_spans_are_words_that_the_conversation_locates() -> None:
    conversation = [{"utterance_ID": 1, "text": "My bike is gone !", "speaker": "Ida", "emotion": "anger"}]
    pairs = [["1_anger", "1_bike is gone !"]]
    official = {"conversation_ID": 5, "conversation": conversation, KEY: pairs}
    for expected, text in ((pairs, conversation), (pairs, ["My bike is gone !"]), (official, None), (official, ["?"])):
        found = SPANS.evaluate({"conversation_ID": "5", KEY: [["U1_Anger", "U1_1_4"]]}, expected, text)
        assert found["strict_f1"] == about(1.0)


def test_a_gold_quotation_that_does_not_occur_is_an_empty_span() -> None:
    case = Case("7", ["So it is ."], [["1_joy", "1_never said"], ["1_joy", "1_it is"]], prediction=[["1_joy", "1_1_3"]])
    assert list(SPANS.check(case)) == []
    observation = SPANS.measure(case)
    assert observation.details["gold_spans_not_found"] == [["1_joy", "1_0_0"]]
    found = SPANS.scores(observation)
    assert [found[name] for name in ("strict_recall", "proportional_recall")] == [about(1 / 2), about(1)]


@pytest.mark.parametrize("reversed_span", ["1_5_2", "1_4_0", "1_1_0", "U1_12_3"])
def test_a_span_that_ends_before_it_starts_is_malformed_and_counts_as_a_wrong_pair(reversed_span: str) -> None:
    gold = [["2_fear", "1_2_5"], ["2_fear", "2_0_3"]]
    observation = SPANS.measure(Case("1", expected=gold, prediction=[*gold, ["2_fear", reversed_span]]))
    assert "before start" in (observation.malformed or "")
    found = SPANS.scores(observation)
    assert found["strict_precision"] == about(2 / 3)
    assert found["proportional_f1"] == about(1)
    (fault,) = SPANS.check(Case("1", expected=[["2_fear", reversed_span]]))
    assert "span order: found end" in fault


def test_a_gold_span_without_token_is_shown() -> None:
    found = SPANS.evaluate([["1_joy", "1_3_3"]], [["1_joy", "1_0_0"]])
    assert found["gold_spans_not_found"] == [["1_joy", "1_0_0"]]
    assert found["spans_without_token"] == [["1_joy", "1_3_3"]]


def test_a_perfect_prediction_scores_1_less_the_epsilon_of_the_official_script() -> None:
    found = PAIRS.evaluate([["1_joy", "1"]], [["1_joy", "1"]])
    precision = 1 / (1 + 1e-8)
    assert found["pair_precision"] == precision
    assert found["pair_f1"] == 2 * precision * precision / (2 * precision + 1e-8)


def test_a_malformed_pair_fails_its_case_and_the_others_are_scored() -> None:
    gold = [["1_joy", "1"], ["2_joy", "2"]]
    predicted = [["1_joy", "1"], ["2_happy", "2"], ["3_joy", "3", "3"], None, ["4_joy", "4_x"], ["2_joy", "2"]]
    observation = PAIRS.measure(Case("kitchen", expected=gold, prediction=predicted))
    assert observation.malformed == (
        'conversation "kitchen", pair 2 ["2_happy", "2"]: emotion: found emotion "happy", expected one of neutral, '
        "anger, disgust, fear, joy, sadness, surprise; "
        'conversation "kitchen", pair 3 ["3_joy", "3", "3"]: pair form: found 3 items, expected a list of two items: '
        'emotion and cause; conversation "kitchen", pair 4 null: pair form: found null, expected a list of two items: '
        "emotion and cause; and 1 more"
    )
    assert PAIRS.scores(observation)["pair_f1"] == about(1.0)


@pytest.mark.parametrize(
    ("prediction", "found"),
    [
        (None, "null"),
        ("1_joy", '"1_joy"'),
        ({"conversation_ID": 3}, '{"conversation_ID": 3}'),
        ({KEY: {}}, f"{{}} as {KEY}"),
        ({"candidates": 3, "keep": []}, '{"candidates": 3, "keep": []}'),
    ],
)
def test_a_prediction_of_wrong_form_is_malformed_and_counts_as_none(prediction: Any, found: str) -> None:
    observation = PAIRS.measure(Case("3", expected=[["1_joy", "1"]], prediction=prediction))
    assert observation.malformed == (
        f"conversation 3: pair list: found {found}, expected a list of pairs, or an object with {KEY}, "
        "or with candidates and keep"
    )
    assert PAIRS.scores(observation)["pair_recall"] == 0.0


def test_faults_of_gold_are_told_by_check_and_stop_measure() -> None:
    case = Case("5", expected=[["1_joy", "1_gone"], ["1_sad", "1_0_2"], ["1_joy", "1_0_2"]], prediction=[])
    assert list(SPANS.check(case)) == [
        (
            'conversation 5, pair 1 ["1_joy", "1_gone"]: cause span: found the words "gone", expected positions, or '
            "the utterances as input"
        ),
        (
            'conversation 5, pair 2 ["1_sad", "1_0_2"]: emotion: found emotion "sad", expected one of neutral, anger, '
            "disgust, fear, joy, sadness, surprise (did you mean 'sadness'?)"
        ),
    ]
    with pytest.raises(EvaluatorError, match=r"^conversation 5, pair 1 .*; conversation 5, pair 2 "):
        SPANS.measure(case)
    assert list(SPANS.check(Case("5", expected="joy"))) == [
        f'conversation 5: pair list: found "joy", expected a list of pairs, or an object with {KEY}'
    ]
    assert list(SPANS.check(Case("5", expected=None))) == []


def test_without_ground_truth_all_scores_are_undefined() -> None:
    case = Case("c", prediction=[["1_joy", "1"]])
    observation = STEPS.measure(case)
    assert set(observation.undefined.values()) == {"no expected pairs"}
    assert set(STEPS.scores(observation).values()) == {None}
    assert {each.value for each in score(STEPS, [case]).metrics.values()} == {None}


def test_a_conversation_without_gold_pairs_has_no_weighted_scores() -> None:
    found = PAIRS.evaluate([["1_joy", "1"]], [])
    assert three(found, "pair_{}") == [0.0, 0.0, 0.0]
    assert three(found, "weighted_{}") == three(found, "weighted_{}_4class") == [None, None, None]
    assert found["pair_f1[joy]"] == 0.0


def test_a_conversation_without_any_pair_has_no_scores_and_takes_part_in_no_mean() -> None:
    empty = [Case("a", expected=[], prediction=[]), Case("b", expected=[], prediction=[["1_neutral", "1"]])]
    for case in empty:
        assert set(PAIRS.scores(PAIRS.measure(case)).values()) == {None}
    metric = score(PAIRS, [*empty, Case("c", expected=[["1_joy", "1"]], prediction=[])], confidence=None)
    assert (metric.metrics["pair_f1"].mean, metric.metrics["pair_f1"].undefined) == (0.0, 2)


def test_sums_without_any_pair_have_the_scores_of_the_official_script() -> None:
    columns = PAIRS.summarize(Totals.add_up([PAIRS.measure(Case("a", expected=[], prediction=[]))]).sums())
    assert columns["pair_f1"].tolist() == [0.0]
    assert np.isnan(columns["weighted_f1"]).all()


def test_weighted_scores_of_four_classes_need_one_of_the_four() -> None:
    observation = PAIRS.measure(Case("c", expected=[["1_fear", "1"]], prediction=[]))
    names = [f"weighted_{part}_4class" for part in PARTS]
    assert observation.undefined == dict.fromkeys(names, "the ground truth has no pairs to weight emotions by")
    assert PAIRS.scores(observation)["weighted_recall"] == 0.0


def test_a_set_is_scored_by_its_sums_and_not_by_the_mean_of_its_conversations() -> None:
    cases = [
        Case("a", expected=[["1_joy", "1"]], prediction=[["1_joy", "1"]]),
        Case("b", expected=[["1_joy", str(cause)] for cause in range(1, 4)], prediction=[]),
    ]
    metric = score(PAIRS, cases, confidence=None).metrics["pair_recall"]
    assert metric.value == about(1 / 4)
    assert metric.mean == about(1 / 2)


def test_candidates_are_scored_before_and_after_the_filter() -> None:
    gold = [["1_joy", "1"], ["2_joy", "1"], ["3_fear", "3"]]
    candidates = [["1_joy", "1"], ["1_joy", "1"], ["2_joy", "2"], ["3_fear", "3"], ["4_neutral", "4"]]
    found = STEPS.evaluate({"candidates": candidates, "keep": [1, True, 0, 0, 1]}, gold)
    assert found["keep_rate"] == about(3 / 5)
    # Kept: joy twice right and a neutral one; the candidates are not made unique.
    assert three(found, "filtered_{}") == [about(2 / 3), about(2 / 3), about(2 / 3)]
    assert three(found, "all_{}") == [about(3 / 5), about(3 / 3), about(3 / 4)]
    # Weights are hits and misses: joy 2 + 1, fear 1 after the filter, joy 2 + 1, fear 1 before it.
    assert three(found, "weighted_filtered_{}") == [about(3 / 4), about(3 / 4 * 2 / 3), about(3 / 4 * 4 / 5)]
    assert found["weighted_all_precision"] == about((3 * 2 / 3 + 1) / 4)
    assert found["weighted_all_f1_4class"] == about(2 / 3)
    assert (found["all_f1[fear]"], found["filtered_f1[fear]"], found["filtered_f1[anger]"]) == (about(1.0), 0.0, 0.0)
    assert three(found, "pair_{}") == [about(1 / 1), about(1 / 3), about(1 / 2)]


def test_repeated_gold_pairs_count_each_time_in_two_steps_and_once_elsewhere() -> None:
    found = STEPS.evaluate([["1_anger", "1"]], [["1_anger", "1"], ["2_joy", "1"], ["2_joy", "1"]])
    assert found["pair_recall"] == about(1 / 2)
    assert found["all_recall"] == about(1 / 3)
    assert found["weighted_all_recall"] == about(1 / 3)


def test_emotions_that_occur_nowhere_score_0_in_two_steps_as_the_project_has_it() -> None:
    cases = [Case("a", expected=[["1_joy", "1"]], prediction=[["1_joy", "1"]])]
    metrics = score(STEPS, cases, confidence=None).metrics
    assert metrics["filtered_f1[fear]"].value == metrics["all_f1[fear]"].value == 0.0
    assert metrics["pair_f1[fear]"].value is None
    assert metrics["keep_rate"].value == about(1.0)


def test_scores_of_steps_without_a_candidate() -> None:
    found = STEPS.evaluate({"candidates": [], "keep": []}, [])
    assert {found[name] for name in ("keep_rate", "filtered_f1", "weighted_all_f1")} == {None}
    assert STEPS.evaluate([], [["1_joy", "1"]])["filtered_f1"] == 0.0


def test_what_is_dropped_is_no_prediction_without_the_option_as_well() -> None:
    gold = [["1_joy", "1"]]
    found = PAIRS.evaluate({"candidates": [["1_joy", "1"], ["2_joy", "2"]], "keep": [1, 0]}, gold)
    assert found["pair_precision"] == about(1.0)
    assert "filtered_f1" not in found


@pytest.mark.parametrize("keep", [None, [1], [1, 0, 1], [1, "no"], [1, 2], [1, 0.5], "10"])
def test_keep_has_a_flag_for_each_candidate(keep: Any) -> None:
    candidates = [["1_joy", "1"], ["2_joy", "2"]]
    case = Case("7", expected=candidates, prediction={"candidates": candidates, "keep": keep})
    observation = STEPS.measure(case)
    assert observation.malformed == (
        f"conversation 7: pair list: found {json.dumps(keep)} as keep, expected 2 times 0 or 1, one for each candidate"
    )
    assert STEPS.scores(observation)["keep_rate"] == (about(0.5) if isinstance(keep, list) else 0.0)


def test_a_malformed_candidate_takes_its_flag_with_it() -> None:
    prediction = {"candidates": [["1_joy", "1"], "?", ["2_joy", "2"]], "keep": [0, 1, 1]}
    observation = STEPS.measure(Case("7", expected=[["2_joy", "2"]], prediction=prediction))
    assert observation.malformed is not None
    assert STEPS.scores(observation)["filtered_f1"] == about(1.0)
    assert STEPS.scores(observation)["keep_rate"] == about(0.5)


@pytest.mark.parametrize(
    ("evaluator", "first", "number"), [(SPANS, "weighted_strict_precision", 37), (PAIRS, "weighted_precision", 13)]
)
def test_the_scores_that_rank_come_first(evaluator: EmotionCause, first: str, number: int) -> None:
    metrics = evaluator.describe()
    assert metrics[0].name == first
    assert len(metrics) == number == len({metric.name for metric in metrics})
    assert all(metric.signature.endswith("|eps:1e-8|v:1") for metric in metrics)


@pytest.mark.parametrize("evaluator", [SPANS, PAIRS, STEPS])
def test_what_summarize_returns_is_what_is_described(evaluator: EmotionCause) -> None:
    described = {metric.name.replace("[emotion]", f"[{each}]") for metric in evaluator.describe() for each in SCORED}
    columns = evaluator.summarize(Totals().sums())
    assert columns.keys() == described
    assert all(np.isnan(column).all() for column in columns.values())


def test_two_steps_are_of_subtask_2() -> None:
    with pytest.raises(EvaluatorError, match="two_step: found true in subtask 1, expected it only in subtask 2"):
        get_evaluator("emotion_cause", subtask=1, two_step=True)
    with pytest.raises(EvaluatorError, match="subtask"):
        get_evaluator("emotion_cause", subtask=3)


def test_gold_of_the_other_subtask_is_a_fault_and_never_a_score() -> None:
    assert list(SPANS.check(Case("c", expected=[["1_joy", "1"]])))
    assert list(PAIRS.check(Case("c", input=["so it is"], expected=[["1_joy", "1_so it is"]])))


def test_observations_can_be_written_as_json() -> None:
    case = Case("c", expected=[["1_joy", "1_0_3"]], prediction=[["1_joy", "1_0_2"], ["1_joy", "1_9_9"], 3])
    observation = SPANS.measure(case)
    assert observation.fault() is None
    assert all(math.isfinite(each) for each in observation.counts.values())

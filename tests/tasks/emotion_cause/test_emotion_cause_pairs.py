"""The text of emotion-cause pairs: spellings that are read, faults, spans in utterances, gold annotations."""

from typing import Any

import pytest

from pytest_llmeval.data import Taxonomy
from pytest_llmeval.tasks.emotion_cause._conversation import gold_pair, utterance_texts
from pytest_llmeval.tasks.emotion_cause._pairs import (
    EMOTIONS,
    PairFault,
    SpanPair,
    Subtask,
    UtterancePair,
    clean_span,
    format_pair,
    locate_span,
    parse_internal,
    parse_pair,
)
from pytest_llmeval.tasks.emotion_cause._scores import FOUR, SCORED

SPAN = SpanPair(3, 1, 21, 27, "surprise")
UTTERANCE = UtterancePair(3, 1, "surprise")


@pytest.mark.parametrize(
    ("raw", "subtask", "pair"),
    [
        (["3_surprise", "1_21_27"], 1, SPAN),
        (("3_surprise", "1_21_27"), 1, SPAN),
        (["U3_Surprise", "U1_21_27"], 1, SPAN),
        (["U3_surprise", "1_21_27"], 1, SPAN),
        ([" 3_surprise", "01_21_ 27"], 1, SPAN),
        (["3_surprise", "1_27_21"], 1, SpanPair(3, 1, 27, 21, "surprise")),
        (["1_neutral", "1_0_0"], 1, SpanPair(1, 1, 0, 0, "neutral")),
        (["3_surprise", "1"], 2, UTTERANCE),
        (["U3_Surprise", "U1"], 2, UTTERANCE),
        (["3_surprise", 1], 2, UTTERANCE),
        (["3_surprise", 1.0], 2, UTTERANCE),
        (["0_surprise", "-1"], 2, UtterancePair(0, -1, "surprise")),
    ],
)
def test_official_and_document_spelling_are_read(raw: Any, subtask: Subtask, pair: Any) -> None:
    assert parse_pair(raw, subtask) == pair
    assert type(parse_pair(raw, subtask)) is type(pair)


@pytest.mark.parametrize("subtask", [1, 2])
@pytest.mark.parametrize(
    ("raw", "rule", "message"),
    [
        ("2_joy_1", "pair form", 'found "2_joy_1", expected a list of two items: emotion and cause'),
        ("ab", "pair form", 'found "ab", expected a list of two items: emotion and cause'),
        (None, "pair form", "found null, expected a list of two items: emotion and cause"),
        ({"a": 1}, "pair form", 'found {"a": 1}, expected a list of two items: emotion and cause'),
        (["2_joy"], "pair form", "found 1 item, expected a list of two items: emotion and cause"),
        (["2_joy", "1", "1"], "pair form", "found 3 items, expected a list of two items: emotion and cause"),
        (["2", "1"], "emotion", 'found "2", expected utterance and emotion, such as "3_joy"'),
        ([2, "1"], "emotion", 'found 2, expected utterance and emotion, such as "3_joy"'),
        (["2_joy_x", "1"], "emotion", 'found "2_joy_x", expected utterance and emotion, such as "3_joy"'),
        (
            ["2_JOY", "1"],
            "emotion",
            f"found emotion \"JOY\", expected one of {', '.join(EMOTIONS)} (did you mean 'joy'?)",
        ),
        (["2_", "1"], "emotion", f'found emotion "", expected one of {", ".join(EMOTIONS)}'),
        (
            ["one_joy", "1"],
            "emotion utterance",
            'found "one", expected the number of an utterance before the emotion',
        ),
        (
            ["u2_joy", "1"],
            "emotion utterance",
            'found "u2", expected the number of an utterance before the emotion',
        ),
        (["_joy", "1"], "emotion utterance", 'found "", expected the number of an utterance before the emotion'),
    ],
)
def test_a_pair_of_wrong_form_or_emotion_is_a_fault(raw: Any, rule: str, message: str, subtask: Subtask) -> None:
    with pytest.raises(PairFault) as caught:
        parse_pair(raw, subtask)
    assert (caught.value.rule, str(caught.value)) == (rule, message)


POSITIONS = 'expected utterance, first token and the token after the last, such as "1_21_27"'
NUMBER = 'expected the number of an utterance, such as "1"'


@pytest.mark.parametrize(
    ("cause", "subtask", "rule", "message"),
    [
        ("1", 1, "cause", f'found "1", {POSITIONS}'),
        (1, 1, "cause", f"found 1, {POSITIONS}"),
        ("1_7", 1, "cause", f'found "1_7", {POSITIONS}'),
        ("1_7_13_9", 1, "cause", f'found "1_7_13_9", {POSITIONS}'),
        ("1_so it is", 1, "cause", f'found "1_so it is", {POSITIONS}: positions of the span, not its text'),
        ("one_0_4", 1, "cause utterance", 'found "one", expected the number of an utterance before the span'),
        ("1_?_4", 1, "cause span", 'found "?", expected a whole number as first token'),
        ("1_U0_4", 1, "cause span", 'found "U0", expected a whole number as first token'),
        ("1_0_4.5", 1, "cause span", 'found "4.5", expected a whole number as the token after the last'),
        (
            f"1_0_{10**13}",
            1,
            "cause span",
            f'found "{10**13}", expected a whole number as the token after the last, no larger than {10**12}',
        ),
        ("1_0_4", 2, "cause", f'found "1_0_4", {NUMBER}: in Subtask 2 the cause has neither span nor text'),
        ("x", 2, "cause utterance", f'found "x", {NUMBER}'),
        (None, 2, "cause", f"found null, {NUMBER}"),
        (True, 2, "cause", f"found true, {NUMBER}"),
        (1.5, 2, "cause", f"found 1.5, {NUMBER}"),
        (float("inf"), 2, "cause", f"found Infinity, {NUMBER}"),
        (["1"], 2, "cause", f'found ["1"], {NUMBER}'),
    ],
)
def test_a_cause_of_wrong_form_is_a_fault(cause: Any, subtask: Subtask, rule: str, message: str) -> None:
    with pytest.raises(PairFault) as caught:
        parse_pair(["2_joy", cause], subtask)
    assert (caught.value.rule, str(caught.value)) == (rule, message)


def test_numbers_of_any_length_are_read_or_a_fault() -> None:
    assert parse_pair([f"{10**30}_joy", "1"], 2) == UtterancePair(10**30, 1, "joy")
    with pytest.raises(PairFault, match=r"^found \"9{59}\.\.\., expected the number of an utterance"):
        parse_pair(["1_joy", "9" * 5000], 2)


def test_what_no_json_can_hold_is_named_by_its_type() -> None:
    with pytest.raises(PairFault, match=r"^found a value of type set, expected a list"):
        parse_pair({1}, 2)


def test_a_pair_is_written_as_official_files_have_it() -> None:
    assert format_pair(SPAN) == ["3_surprise", "1_21_27"]
    assert format_pair(UTTERANCE) == ["3_surprise", "1"]


def test_internal_lists_name_conversation_and_emotion_by_number() -> None:
    assert parse_internal([11, 3, 1, 6]) == (11, UTTERANCE)
    assert [parse_internal([1, 1, 1, number])[1].emotion for number in range(7)] == list(EMOTIONS)


@pytest.mark.parametrize(
    ("raw", "rule", "found"),
    [
        ([11, 3, 1], "pair form", "[11, 3, 1]"),
        ([11, 3, 1, True], "pair form", "[11, 3, 1, true]"),
        ([11, 3, 1, "glee"], "pair form", '[11, 3, 1, "glee"]'),
        ([11, 3, 1.5, 4], "pair form", "[11, 3, 1.5, 4]"),
        ("1234", "pair form", '"1234"'),
        ([11, 3, 1, 7], "emotion", "emotion number 7"),
        ([11, 3, 1, -1], "emotion", "emotion number -1"),
    ],
)
def test_internal_lists_of_wrong_form_are_faults(raw: Any, rule: str, found: str) -> None:
    with pytest.raises(PairFault) as caught:
        parse_internal(raw)
    assert caught.value.rule == rule
    assert str(caught.value).startswith(f"found {found}, expected ")


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("What ? !", "What"),
        ('" Well , I never . "', "Well , I never"),
        ("... so !", "so"),
        ("\u3000so\u00a0", "so"),
        ("…so", "…so"),
        ("a.", "a"),
        ("?!", ""),
        ("", ""),
        (" \t", ""),
    ],
)
def test_a_span_is_cleaned_of_ascii_punctuation_and_all_white_space(text: str, cleaned: str) -> None:
    assert clean_span(text) == cleaned


@pytest.mark.parametrize(
    ("span", "utterance", "position"),
    [
        ("so", "And so , so it is", (1, 2)),
        ("so it .", "And so , so it is", (3, 5)),
        ("it is", "And so , so it is", (4, 6)),
        ("And so , so it is", "And so , so it is", (0, 6)),
        ("And so , so it is ok", "And so , so it is", (0, 0)),
        ("and", "And so", (0, 0)),
        ("?", "What ?", (0, 0)),
        ("so", "", (0, 0)),
    ],
)
def test_a_span_stands_where_its_tokens_first_follow_one_another(
    span: str, utterance: str, position: tuple[int, int]
) -> None:
    assert locate_span(span, utterance) == position


TEXTS = ["It broke again .", "Oh no , not again !"]


@pytest.mark.parametrize(
    ("raw", "subtask", "pair"),
    [
        (["2_sadness", "1_It broke"], 1, SpanPair(2, 1, 0, 2, "sadness")),
        (["U2_Sadness", "U1_broke again ."], 1, SpanPair(2, 1, 1, 3, "sadness")),
        (["2_sadness", "2_not\nagain !"], 1, SpanPair(2, 2, 3, 5, "sadness")),
        (["2_sadness", "2_not again !"], 1, SpanPair(2, 2, 3, 5, "sadness")),
        (["2_sadness", "1_1_3"], 1, SpanPair(2, 1, 1, 3, "sadness")),
        (["2_sadness", "1"], 2, UtterancePair(2, 1, "sadness")),
    ],
)
def test_gold_spans_are_words_or_positions(raw: Any, subtask: Subtask, pair: Any) -> None:
    assert gold_pair(raw, subtask, TEXTS) == pair


@pytest.mark.parametrize(
    ("raw", "texts", "rule", "message"),
    [
        (["2_sadness", "3_not again"], TEXTS, "cause utterance", "found utterance 3, expected 1 to 2"),
        (["2_sadness", "0_not again"], TEXTS, "cause utterance", "found utterance 0, expected 1 to 2"),
        (
            ["2_sadness", "1_It broke"],
            None,
            "cause span",
            'found the words "It broke", expected positions, or the utterances as input',
        ),
        (["2_sad", "1_It broke"], TEXTS, "emotion", 'found emotion "sad", expected one of'),
        (["2_sadness"], TEXTS, "pair form", "found 1 item, expected a list of two items: emotion and cause"),
        (["2_sadness", "broke"], TEXTS, "cause", 'found "broke", expected utterance, first token'),
        (["2_sadness", "9" * 5000 + "_broke"], TEXTS, "cause utterance", 'found "999'),
    ],
)
def test_gold_that_cannot_be_read_is_a_fault(raw: Any, texts: Any, rule: str, message: str) -> None:
    with pytest.raises(PairFault) as caught:
        gold_pair(raw, 1, texts)
    assert caught.value.rule == rule
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("conversation", "texts"),
    [
        (TEXTS, TEXTS),
        ([{"utterance_ID": 1, "text": "Hi !"}], ["Hi !"]),
        ({"conversation": [{"text": "Hi !"}]}, ["Hi !"]),
        ([], []),
        ({"conversation_ID": 1}, None),
        ([{"speaker": "Ann"}], None),
        (["Hi !", None], None),
        ("Hi !", None),
        (None, None),
    ],
)
def test_texts_of_a_conversation_in_its_forms(conversation: Any, texts: list[str] | None) -> None:
    assert utterance_texts(conversation) == texts


def test_the_shipped_emotions_are_those_that_are_scored() -> None:
    shipped = Taxonomy("emotions").load()["emotions"]
    assert tuple(each["label"] for each in shipped) == EMOTIONS == ("neutral", *SCORED)
    assert tuple(each["label"] for each in shipped[1:] if not each["rare"]) == FOUR

"""All faults of a submission at once, each with its conversation, pair and rule."""

import json
from typing import Any

import pytest

from pytest_llmeval.tasks.emotion_cause._pairs import SubmissionFault, validate_submission, whole_number

PAIRS = "emotion-cause_pairs"
MISSING = "found no entry, expected one, with an empty list if there are no pairs"


def entry(number: Any, *pairs: Any) -> dict[str, Any]:
    return {"conversation_ID": number, PAIRS: list(pairs)}


def test_a_right_submission_has_no_fault() -> None:
    data = [entry(1, ["2_joy", "1_0_4"]), entry("2")]
    assert validate_submission(data, 1) == []
    assert validate_submission(data, 1, [{"conversation_ID": 2}, {"conversation_ID": 1}]) == []


def test_all_faults_are_told_in_the_order_of_the_file_and_missing_conversations_last() -> None:
    data = [
        entry(7, ["1_joy", "1"], ["1_happy", "1"], ["x_joy", "1"], ["1_joy"]),
        entry("eight", ["1_joy", "1"]),
        {"conversation_ID": 9},
        entry("7", ["1_nothing", "1"]),
        3,
        {PAIRS: []},
        {"conversation_ID": 10, PAIRS: None},
    ]
    gold = [{"conversation_ID": number} for number in (12, 7, 9, 10, 11)]
    assert [str(fault) for fault in validate_submission(data, 2, gold)] == [
        (
            'conversation 7, pair 2 ["1_happy", "1"]: emotion: found emotion "happy", expected one of neutral, anger, '
            "disgust, fear, joy, sadness, surprise"
        ),
        (
            'conversation 7, pair 3 ["x_joy", "1"]: emotion utterance: found "x", expected the number of an utterance '
            "before the emotion"
        ),
        'conversation 7, pair 4 ["1_joy"]: pair form: found 1 item, expected a list of two items: emotion and cause',
        'conversation "eight": conversation id: found conversation_ID "eight" in entry 2, expected a whole number',
        "conversation 9: pair list: found no key emotion-cause_pairs, expected a list of pairs",
        "conversation 7: conversation repeated: found it twice, again as entry 4 (first as entry 1), expected it once",
        (
            "submission: conversation form: found 3 as entry 5, expected an object with conversation_ID and "
            "emotion-cause_pairs"
        ),
        (
            "submission: conversation form: found no conversation_ID in entry 6, expected an object with "
            "conversation_ID and emotion-cause_pairs"
        ),
        "conversation 10: pair list: found null as emotion-cause_pairs, expected a list of pairs",
        f"conversation 12: conversation missing: {MISSING}",
        f"conversation 11: conversation missing: {MISSING}",
    ]


def test_pairs_of_conversations_that_gold_lacks_may_be_anything() -> None:
    data = [entry(1), entry(2, "nonsense"), {"conversation_ID": 3}]
    assert validate_submission(data, 1, [{"conversation_ID": 1}]) == []
    assert [fault.conversation for fault in validate_submission(data, 1)] == [2, 3]


def test_a_fault_says_what_it_is_about_in_fields() -> None:
    (fault,) = validate_submission([entry(4, ["1_joy", "1"], ["1_joy", "1_0_4"])], 2)
    assert fault == SubmissionFault(4, 2, ["1_joy", "1_0_4"], "cause", fault.message)


@pytest.mark.parametrize("data", [None, {}, "[]", 3])
def test_a_submission_is_a_list(data: Any) -> None:
    (fault,) = validate_submission(data, 1)
    assert str(fault) == f"submission: submission form: found {json.dumps(data)}, expected a list"


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (7, 7),
        ("7", 7),
        (" 07 ", 7),
        (7.0, 7),
        (7.5, None),
        (float("nan"), None),
        (float("inf"), None),
        ("dia7", None),
        ("7.0", None),
        (True, None),
        (None, None),
        ([7], None),
    ],
)
def test_conversations_are_numbered(value: Any, number: int | None) -> None:
    assert whole_number(value) == number


def test_gold_without_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match=r'^gold: found conversation_ID "x", expected a whole number$'):
        validate_submission([], 1, [{"conversation_ID": "x"}])

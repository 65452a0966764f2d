"""All faults of a submission at once, each with its conversation, pair and rule."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.tasks.emotion_cause._pairs import SubmissionFault, validate_submission, whole_number

PAIRS = "emotion-cause_pairs"
MISSING = "the entry is missing: write one with an empty list if there are no pairs"


def entry(number: Any, *pairs: Any) -> dict[str, Any]:
    return {"conversation_ID": number, PAIRS: list(pairs)}


def test_a_right_submission_has_no_fault() -> None:
    data = [entry(1, ["2_joy", "1_0_4"]), entry("2")]
    assert validate_submission(data, 1) == []
    assert validate_submission(data, 1, [{"conversation_ID": 2}, {"conversation_ID": 1}]) == []


FAULTS = Path(__file__).with_name("submission_faults.txt")
"""The faults that the test below expects, in their order."""


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
    assert [str(fault) for fault in validate_submission(data, 2, gold)] == FAULTS.read_text(
        encoding="utf-8"
    ).splitlines()


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

"""The rule for questions that cannot be answered."""

import pytest

from pytest_llmeval.qa import is_unanswerable


@pytest.mark.parametrize("text", ["", "  ", "\n", "n/a", "N/A", " na ", "None", "NULL", "unanswerable"])
def test_some_whole_texts_say_so(text: str) -> None:
    assert is_unanswerable(text)


@pytest.mark.parametrize(
    "phrase",
    [
        "not mentioned",
        "not in the conversation",
        "cannot answer",
        "can't answer",
        "insufficient",
        "unknown",
        "no information",
        "not provided",
        "information not found",
        "not found",
        "not available",
        "no data",
        "no mention",
        "cannot determine",
        *("没提到", "没说", "不清楚", "无从得知"),
        *("无法回答", "不知道", "未提及", "信息不足"),
    ],
)
def test_some_phrases_say_so_anywhere(phrase: str) -> None:
    assert is_unanswerable(f"Well, {phrase.upper()}, I think.")


@pytest.mark.parametrize(
    "text",
    [
        "I can\u2019t answer",
        "N/A.",
        "None.",
        "Unanswerable!",
        "The question is unanswerable.",
        "I don't know",
        "I don\u2019t know.",
        "I do not know that",
        "Unknown.",
        "The cause is unknown to me",
        "The unknown soldier is not mentioned.",
    ],
)
def test_other_ways_of_writing_say_so_too(text: str) -> None:
    assert is_unanswerable(text)


@pytest.mark.parametrize(
    "text",
    ["no", "The unknown soldier", "Tomb of the Unknown Soldier", "not  mentioned", "nan", "n / a", "在巴黎", "无"],
)
def test_what_is_only_like_them_does_not(text: str) -> None:
    assert not is_unanswerable(text)


@pytest.mark.parametrize(
    ("text", "original"),
    [("N/A.", False), ("I don't know", False), ("The unknown soldier", True), ("不知道", False), ("NOT FOUND", True)],
)
def test_the_original_rule_is_kept_to_the_letter(text: str, original: bool) -> None:
    assert is_unanswerable(text, original=True) is original

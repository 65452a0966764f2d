"""Conversations in the terminal: the turns around the failure."""

from typing import Any

import pytest

from pytest_llmeval.core import Case, CaseRecord
from pytest_llmeval.reports import explain
from pytest_llmeval.reports._failures import transcript_lines


def talk(turns: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be kind."}]
    for number in range(1, turns + 1):
        messages.append({"role": "user", "content": f"question {number}"})
        messages.append({"role": "assistant", "content": f"answer {number}"})
    return messages


def numbers(turns: int, *wrong: int) -> list[str]:
    return [line.split(" user:")[0] for line in transcript_lines(talk(turns), wrong) if "assistant" not in line]


@pytest.mark.parametrize(
    ("turns", "wrong", "shown"),
    [
        (1, (), ["transcript: 1 turn", "  turn 1"]),
        (3, (2,), ["transcript: 3 turns", "  turn 1", "> turn 2", "  turn 3"]),
        (
            9,
            (4,),
            [
                "transcript: 9 turns, 6 of them left out",
                "  ... turns 1 to 2 left out",
                "  turn 3",
                "> turn 4",
                "  turn 5",
                "  ... turns 6 to 9 left out",
            ],
        ),
        (6, (1, 5), ["transcript: 6 turns, 1 of them left out", "> turn 1", "  turn 2", "  ... turn 3 left out"]),
        (5, (), ["transcript: 5 turns, 3 of them left out", "  ... turns 1 to 3 left out", "  turn 4", "  turn 5"]),
        (5, (7,), ["transcript: 5 turns, 3 of them left out", "  ... turns 1 to 3 left out", "  turn 4", "  turn 5"]),
    ],
)
def test_the_turns_around_the_failure_are_shown_and_others_counted(
    turns: int, wrong: tuple[int, ...], shown: list[str]
) -> None:
    assert numbers(turns, *wrong)[: len(shown)] == shown


def test_calls_of_tools_stand_on_a_line_with_arguments_and_result() -> None:
    calls = [
        {"name": "find", "arguments": {"id": 7, "all": True}, "result": {"order": 1}},
        {"function": {"name": "stop", "arguments": '{"now": 1}'}, "error": "no"},
        "odd",
    ]
    messages = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": None, "tool_calls": calls}]
    assert list(transcript_lines(messages, [1])) == [
        "transcript: 1 turn",
        "> turn 1 user: Go",
        '>        call find(id=7, all=true) -> {"order": 1}',
        '>        call stop({"now": 1}) -> no',
        ">        call odd",
    ]


@pytest.mark.parametrize("messages", [None, "text", [], ["text"], [{"role": "assistant", "content": "x"}]])
def test_what_is_no_conversation_has_no_transcript(messages: Any) -> None:
    assert list(transcript_lines(messages, [])) == []


def test_hostile_texts_are_one_printable_line_each() -> None:
    hostile = "red \x1b[31m\nline \u202e" * 40
    call = {"name": hostile, "arguments": {hostile: hostile}, "result": hostile}
    messages = [{"role": "user", "content": hostile}, {"role": hostile, "content": hostile, "tool_calls": [call]}]
    lines = list(transcript_lines(messages, [1], 80))
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)


def test_a_failing_conversation_shows_its_transcript_in_place_of_its_script() -> None:
    record = CaseRecord("x", outcome="failed", reason="low", lines={"text": ["turn 2: extra words: b"]})
    case = Case("x", input=talk(2), prediction={"messages": talk(2), "answer": "answer 2"})
    text = explain(case, record)
    assert "input:" not in text
    assert "> turn 2 user: question 2\n>        assistant: answer 2\nanswer:     answer 2" in text


def test_equal_calls_that_follow_each_other_are_one_line() -> None:
    check, book = {"name": "check", "arguments": {"room": "blue"}}, {"name": "book"}
    calls = [check] * 51 + [book] + [check] * 2
    messages = [{"role": "user", "content": "Book blue"}, {"role": "assistant", "tool_calls": calls}]
    lines = [line.strip() for line in transcript_lines(messages, [])]
    assert lines[2:] == ["call check(room=blue) (x 51)", "call book()", "call check(room=blue) (x 2)"]

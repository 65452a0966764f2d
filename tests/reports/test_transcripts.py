"""Conversations in the terminal: the turns around the failure."""

from typing import Any

import pytest

from pytest_llmeval.core import Case, CaseRecord
from pytest_llmeval.reports import explain
from pytest_llmeval.reports._failures import call_lines, transcript_lines


def talk(turns: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be kind."}]
    for number in range(1, turns + 1):
        messages.append({"role": "user", "content": f"question {number}"})
        messages.append({"role": "assistant", "content": f"answer {number}"})
    return messages


def numbers(turns: int, *wrong: int) -> list[str]:
    findings = [f"turn {turn}: low" for turn in wrong]
    return [line.split(" user:")[0] for line in transcript_lines(talk(turns), findings) if "assistant" not in line]


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
    assert list(transcript_lines(messages, ["turn 1: low"])) == [
        "transcript: 1 turn",
        "> turn 1 user: Go",
        '>        call find("id": 7, "all": true) -> {"order": 1}',
        '>        call stop("now": 1) -> no',
        ">        call odd",
    ]


@pytest.mark.parametrize("messages", [None, "text", [], ["text"], [{"role": "assistant", "content": "x"}]])
def test_what_is_no_conversation_has_no_transcript(messages: Any) -> None:
    assert list(transcript_lines(messages, [])) == []


def test_hostile_texts_are_one_printable_line_each() -> None:
    hostile = "red \x1b[31m\nline \u202e" * 40
    call = {"name": hostile, "arguments": {hostile: hostile}, "result": hostile}
    messages = [{"role": "user", "content": hostile}, {"role": hostile, "content": hostile, "tool_calls": [call]}]
    lines = list(transcript_lines(messages, ["turn 1: low"], 80))
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
    assert lines[2:] == ['call check("room": "blue") (x 51)', "call book()", 'call check("room": "blue") (x 2)']


FIND, PAY = {"name": "find", "arguments": {"q": "order"}}, {"name": "pay", "arguments": {"sum": 3}}


@pytest.mark.parametrize(
    ("finding", "marked"),
    [
        ('found pay("sum": 3) without an earlier approve', ["call pay"]),
        ('turn 1: extra call: find("q": "order")', ["call find"]),
        ("turn 1: pay: sum: found 3, expected 4", ["call pay"]),
        ('turn 2: extra call: pay("sum": 3)', ["turn 2 user: Thanks"]),
        ("turn 1: too long", ["turn 1 user: Pay it", "call find", "assistant: Paying", "call pay"]),
        ("found pay, expected find", ["call pay"]),
        ("found find, pay, expected find", ["call pay"]),
        ("found order, expected none", ["call find"]),
        ("too long", []),
    ],
)
def test_the_step_that_a_finding_is_about_is_marked(finding: str, marked: list[str]) -> None:
    messages = [
        {"role": "user", "content": "Pay it"},
        {"role": "assistant", "tool_calls": [FIND, FIND]},
        {"role": "assistant", "content": "Paying", "tool_calls": [PAY]},
        {"role": "user", "content": "Thanks"},
    ]
    lines = [line[1:].strip() for line in transcript_lines(messages, [finding]) if line.startswith(">")]
    assert [line.split("(")[0] for line in lines] == marked


def test_blocks_stand_where_they_happened() -> None:
    messages = [
        {"role": "user", "content": "Pay it"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "First I look."},
                {"type": "tool_use", "id": "1", "name": "find", "input": {"q": "order"}},
                {"type": "text", "text": "Now I pay."},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "none"}]},
    ]
    assert [line.strip() for line in transcript_lines(messages)][2:] == [
        "assistant: First I look.",
        'call find("q": "order")',
        "assistant: Now I pay.",
        "turn 2 result: none",
    ]


def test_calls_without_messages_are_numbered_and_the_wrong_ones_marked() -> None:
    calls = [FIND] * 51 + [PAY, {"name": "stop"}]
    assert list(call_lines(calls, ['call 52: found pay("sum": 3) without an earlier approve'])) == [
        "calls: 53",
        '  1-51 find("q": "order") (x 51)',
        '>   52 pay("sum": 3)',
        "    53 stop()",
    ]


def test_of_many_calls_those_around_the_wrong_ones_are_shown() -> None:
    calls = [{"name": f"step_{number}"} for number in range(1, 31)]
    assert list(call_lines(calls, ["extra call: step_15()"])) == [
        "calls: 30",
        "  ... lines 1 to 13 left out",
        "  14 step_14()",
        "> 15 step_15()",
        "  16 step_16()",
        "  ... lines 17 to 30 left out",
    ]
    assert list(call_lines(calls, []))[-2:] == ["  29 step_29()", "  30 step_30()"]


def test_a_failing_trace_stands_in_place_of_its_json() -> None:
    record = CaseRecord("x", outcome="failed", reason="tools: found stop(), expected no call of stop; and more")
    text = explain(Case("x", input="Pay", prediction={"tool_calls": [FIND, {"name": "stop"}]}), record)
    assert "> 2 stop()" in text
    assert "prediction:" not in text

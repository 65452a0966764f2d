"""Calls in messages of OpenAI, Anthropic and pydantic-ai."""

from typing import Any

import pytest

from pytest_llmeval.evaluators.tools.calls import read_trace

OPENAI = [
    {"role": "user", "content": "Refunds?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "lookup", "arguments": '{"topic": "refunds"}'}},
            {"id": "2", "type": "function", "function": {"name": "now", "arguments": ""}},
        ],
    },
    {"role": "tool", "tool_call_id": "1", "content": "30 days"},
    {"role": "tool", "tool_call_id": "2", "status": "error", "content": "no clock"},
    {"role": "assistant", "content": "30 days."},
]
RESPONSES = [
    {"role": "user", "content": "Refunds?"},
    {"type": "reasoning", "summary": []},
    {"type": "function_call", "call_id": "1", "name": "lookup", "arguments": '{"topic": "refunds"}'},
    {"type": "function_call", "call_id": "2", "name": "now", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "1", "output": "30 days"},
    {"type": "function_call_output", "call_id": "2", "status": "failed", "output": "no clock"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "30 days."}]},
]
ANTHROPIC = [
    {"role": "user", "content": "Refunds?"},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look that up."},
            {"type": "tool_use", "id": "1", "name": "lookup", "input": {"topic": "refunds"}},
            {"type": "tool_use", "id": "2", "name": "now", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "2", "is_error": True, "content": "no clock"},
            {"type": "tool_result", "tool_use_id": "1", "content": "30 days"},
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "30 days."}]},
]


def pydantic_ai_messages() -> Any:
    from pydantic_ai.messages import (
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

    messages = [
        ModelRequest([UserPromptPart("Refunds?")]),
        ModelResponse([ToolCallPart("lookup", {"topic": "refunds"}, "1"), ToolCallPart("now", "{}", "2")]),
        ModelRequest(
            [ToolReturnPart("lookup", "30 days", "1"), ToolReturnPart("now", "no clock", "2", outcome="retried")]
        ),
        ModelResponse([TextPart("30 days.")]),
    ]
    return ModelMessagesTypeAdapter.dump_python(messages, mode="json")


@pytest.mark.parametrize(
    "messages",
    [OPENAI, RESPONSES, ANTHROPIC, pydantic_ai_messages()],
    ids=["openai", "responses", "anthropic", "pydantic-ai"],
)
def test_calls_arguments_and_failures_are_read_from_messages(messages: Any) -> None:
    calls = read_trace(messages)
    assert [(call.name, call.arguments, call.failed) for call in calls] == [
        ("lookup", {"topic": "refunds"}, False),
        ("now", {}, True),
    ]
    assert read_trace({"messages": messages}) == calls


def test_a_retry_prompt_of_older_pydantic_ai_says_that_the_call_failed() -> None:
    older = [
        {
            "kind": "response",
            "parts": [{"part_kind": "tool-call", "tool_name": "now", "args": None, "tool_call_id": "2"}],
        },
        {"kind": "request", "parts": [{"part_kind": "retry-prompt", "tool_name": "now", "tool_call_id": "2"}]},
    ]
    assert [(call.name, call.failed) for call in read_trace(older)] == [("now", True)]


def test_messages_without_calls_are_a_trace_without_calls() -> None:
    assert read_trace([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]) == []


def test_calls_are_read_from_a_list_of_calls_of_any_form() -> None:
    calls = read_trace(
        [
            {"name": "a", "arguments": {"x": 1}, "result": 3, "status": "ok"},
            {"name": "a", "arguments": None},
            {"id": "1", "type": "function", "function": {"name": "a", "arguments": '{"x": 1}'}},
            {"type": "tool_use", "name": "a", "input": {"x": 1}},
            {"part_kind": "tool-call", "tool_name": "a", "args": {"x": 1}},
        ]
    )
    assert [call.name for call in calls] == ["a"] * 5
    assert [call.arguments for call in calls] == [{"x": 1}, None, {"x": 1}, {"x": 1}, {"x": 1}]
    assert not any(call.fault or call.failed for call in calls)


def test_a_result_belongs_to_the_last_call_with_its_id() -> None:
    calls = read_trace(
        [
            {"type": "function_call", "call_id": "1", "name": "a", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "x"},
            {"type": "function_call", "call_id": "1", "name": "a", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "status": "error"},
        ]
    )
    assert [call.failed for call in calls] == [False, True]

"""Calls in messages of OpenAI, Anthropic and pydantic-ai."""

import json
from typing import Any

import pytest

from pytest_llmeval.core import Case
from pytest_llmeval.evaluators import MissingTraceError, ToolCall, read_transcript
from pytest_llmeval.suites import get_evaluator

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
    calls = ToolCall.read_trace(messages)
    assert [(call.name, call.arguments, call.failed) for call in calls] == [
        ("lookup", {"topic": "refunds"}, False),
        ("now", {}, True),
    ]
    assert ToolCall.read_trace({"messages": messages}) == calls


def test_a_retry_prompt_of_older_pydantic_ai_says_that_the_call_failed() -> None:
    older = [
        {
            "kind": "response",
            "parts": [{"part_kind": "tool-call", "tool_name": "now", "args": None, "tool_call_id": "2"}],
        },
        {"kind": "request", "parts": [{"part_kind": "retry-prompt", "tool_name": "now", "tool_call_id": "2"}]},
    ]
    assert [(call.name, call.failed) for call in ToolCall.read_trace(older)] == [("now", True)]


def test_messages_without_calls_are_a_trace_without_calls() -> None:
    assert ToolCall.read_trace([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]) == []


def test_calls_are_read_from_a_list_of_calls_of_any_form() -> None:
    calls = ToolCall.read_trace(
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
    calls = ToolCall.read_trace(
        [
            {"type": "function_call", "call_id": "1", "name": "a", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "x"},
            {"type": "function_call", "call_id": "1", "name": "a", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "status": "error"},
        ]
    )
    assert [call.failed for call in calls] == [False, True]


OPENTELEMETRY = [
    {"role": "user", "parts": [{"type": "text", "content": "Refunds?"}]},
    {
        "role": "assistant",
        "parts": [
            {"type": "reasoning", "content": "I look that up."},
            {"type": "tool_call", "id": "1", "name": "lookup", "arguments": {"topic": "refunds"}},
            {"type": "tool_call", "id": "2", "name": "now", "arguments": {}},
        ],
        "finish_reason": "tool_call",
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": "30 days"}]},
]
GEMINI = [
    {"role": "user", "parts": [{"text": "Refunds?"}]},
    {
        "role": "model",
        "parts": [
            {"functionCall": {"name": "lookup", "args": {"topic": "refunds"}}},
            {"functionCall": {"name": "now", "args": {}}},
        ],
    },
    {"role": "user", "parts": [{"functionResponse": {"name": "lookup", "response": {"days": 30}}}]},
]
LANGCHAIN = [
    {"type": "human", "content": "Refunds?"},
    {
        "type": "ai",
        "content": "",
        "tool_calls": [
            {"name": "lookup", "args": {"topic": "refunds"}, "id": "1", "type": "tool_call"},
            {"name": "now", "args": {}, "id": "2", "type": "tool_call"},
        ],
    },
    {"type": "tool", "content": "30 days", "tool_call_id": "1"},
]


@pytest.mark.parametrize(
    "trace",
    [OPENTELEMETRY, GEMINI, LANGCHAIN, [{"parts": OPENTELEMETRY[1]["parts"]}]],
    ids=["opentelemetry", "gemini", "langchain", "no role"],
)
def test_calls_are_read_from_other_messages(trace: Any) -> None:
    assert ToolCall.read_trace(trace) == [ToolCall("lookup", {"topic": "refunds"}), ToolCall("now", {})]
    assert ToolCall.read_trace({"messages": trace}) == ToolCall.read_trace(trace)


def test_calls_that_openai_runs_itself_are_named_by_their_type() -> None:
    items = [
        {"role": "user", "content": "Refunds?"},
        {"type": "web_search_call", "id": "1", "status": "completed", "action": {"query": "refunds"}},
        {"type": "custom_tool_call", "call_id": "2", "name": "grep", "input": "refund.*"},
        {"role": "assistant", "function_call": {"name": "old", "arguments": '{"a": 1}'}, "content": None},
    ]
    assert ToolCall.read_trace(items) == [
        ToolCall("web_search", {}),
        ToolCall("grep", {"input": "refund.*"}),
        ToolCall("old", {"a": 1}),
    ]


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ({"role": "assistant", "parts": [{"type": "call", "tool": "x"}]}, "messages[0].parts[0]: found a part of type"),
        ({"role": "assistant", "content": [{"tool": "x"}]}, "messages[0].content[0]: found a part with tool"),
        ({"role": "assistant", "content": [7]}, "messages[0].content[0]: found number 7"),
        ({"role": "assistant", "content": {"type": "tool_use"}}, "messages[0].content: found an object"),
        ({"role": "assistant", "tool_calls": {"name": "x"}}, "messages[0].tool_calls: found an object"),
    ],
)
def test_a_part_of_another_form_is_no_trace_without_calls(message: Any, found: str) -> None:
    with pytest.raises(MissingTraceError) as caught:
        ToolCall.read_trace([message])
    assert found in str(caught.value)
    measured = get_evaluator("tools").measure(Case("a", expected=["lookup"]).answered({"messages": [message]}))
    assert measured.counts == {}
    assert found in measured.errored["tool_recall"]


def test_transcripts_of_several_agents_are_read() -> None:
    lines = [
        {"type": "item.completed", "item": {"type": "command_execution", "command": "ls"}},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "Done."}},
        {"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 6}},
    ]
    assert read_transcript("\n".join(map(json.dumps, lines))) == {
        "answer": "Done.",
        "tool_calls": [{"name": "shell", "arguments": {"command": "ls"}}],
        "usage": {"input_tokens": 5, "output_tokens": 6},
    }
    assert read_transcript(json.dumps([{"result": "One."}], indent=1)) == {"answer": "One."}
    assert read_transcript("Plain text.\n") == {"answer": "Plain text."}

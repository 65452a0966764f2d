"""Traces for tests, as exporters of OpenTelemetry write them."""

__all__ = ("AGENT", "RAG", "attributes", "export", "span")

import json
from typing import Any


def _value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_value(each) for each in value]}}
        case dict():
            return {"kvlistValue": {"values": attributes(value)}}
    return {"stringValue": value}


def attributes(given: dict[str, Any]) -> list[dict[str, Any]]:
    """Return attributes as OTLP has them."""
    return [{"key": name, "value": _value(each)} for name, each in given.items()]


def span(
    trace: str, name: str, parent: str, start: int, end: int, given: dict[str, Any], **more: Any
) -> dict[str, Any]:
    """Return a span; its id is also its name, and times are seconds."""
    return {
        "traceId": trace,
        "spanId": name,
        "parentSpanId": parent,
        "name": name,
        "startTimeUnixNano": str(start * 10**9),
        "endTimeUnixNano": str(end * 10**9),
        "attributes": attributes(given),
        **more,
    }


def export(*spans: dict[str, Any], service: str = "shop") -> dict[str, Any]:
    """Return what an exporter sends for spans of one service."""
    scoped = {"scope": {"name": "tests"}, "spans": list(spans)}
    resource = {"attributes": attributes({"service.name": service})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scoped]}]}


def _said(*messages: tuple[str, dict[str, Any]]) -> str:
    return json.dumps([{"role": role, "parts": [part]} for role, part in messages])


_ASKED = ("user", {"type": "text", "content": "Refund order 7"})
_CALLED = ("assistant", {"type": "tool_call", "id": "c1", "name": "refund", "arguments": {"order": 7}})
_RETURNED = ("tool", {"type": "tool_call_response", "id": "c1", "response": "no such order"})
_TOLD = ("assistant", {"type": "text", "content": "I could not find order 7."})
_CHAT = {"gen_ai.operation.name": "chat", "gen_ai.response.model": "gpt-5"}
_A = "a" * 32

AGENT = [
    span(
        _A,
        "agent",
        "",
        1,
        9,
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "bot",
            "gen_ai.conversation.id": "conv-1",
            "gen_ai.usage.input_tokens": 30,
        },
    ),
    span(
        _A,
        "second chat",
        "agent",
        5,
        8,
        {
            **_CHAT,
            "gen_ai.input.messages": _said(_ASKED, _CALLED, _RETURNED),
            "gen_ai.output.messages": _said(_TOLD),
            "gen_ai.usage.input_tokens": 20,
            "gen_ai.usage.output_tokens": 5,
        },
    ),
    span(
        _A,
        "execute_tool refund",
        "agent",
        3,
        4,
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "refund",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.arguments": '{"order": 7}',
        },
        status={"code": 2},
    ),
    span(
        _A,
        "first chat",
        "agent",
        2,
        3,
        {
            **_CHAT,
            "gen_ai.input.messages": _said(_ASKED),
            "gen_ai.output.messages": _said(_CALLED),
            "gen_ai.usage.input_tokens": 10,
            "gen_ai.usage.output_tokens": 7,
        },
    ),
]
"""Spans of an agent that calls a tool, which fails, by the conventions of OpenTelemetry; not in order."""

_B = "b" * 32
_IN, _OUT = "llm.input_messages", "llm.output_messages.0.message"
RAG = [
    span(
        _B,
        "rag",
        "",
        1,
        5,
        {"openinference.span.kind": "CHAIN", "input.value": "How long?", "output.value": "30 days."},
    ),
    span(
        _B,
        "retrieve",
        "rag",
        1,
        2,
        {
            "openinference.span.kind": "RETRIEVER",
            "retrieval.documents.0.document.content": "Refunds take 30 days.",
            "retrieval.documents.0.document.score": 0.9,
            "retrieval.documents.1.document.content": "Shipping is free.",
        },
    ),
    span(
        _B,
        "llm",
        "rag",
        2,
        4,
        {
            "openinference.span.kind": "LLM",
            "llm.model_name": "gpt-4o",
            f"{_IN}.0.message.role": "system",
            f"{_IN}.0.message.content": "Be kind",
            f"{_IN}.1.message.role": "user",
            f"{_IN}.1.message.contents.0.message_content.type": "text",
            f"{_IN}.1.message.contents.0.message_content.text": "How long?",
            f"{_OUT}.role": "assistant",
            f"{_OUT}.content": "30 days.",
            f"{_OUT}.tool_calls.0.tool_call.id": "t1",
            f"{_OUT}.tool_calls.0.tool_call.function.name": "log",
            f"{_OUT}.tool_calls.0.tool_call.function.arguments": '{"x": 1}',
            "llm.token_count.prompt": 50,
            "llm.token_count.completion": 4,
            "llm.cost.total": 0.002,
        },
    ),
]
"""Spans of retrieval and generation by the conventions of OpenInference."""

"""Results of agent libraries as predictions: those of pydantic-ai, the SDK of OpenAI and LangGraph."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pytest_llmeval.data.formats.span_messages import TraceMessage, messages_of


def as_prediction(value: Any) -> Any:
    """Return the prediction in a result of pydantic-ai, the SDK of OpenAI or LangGraph, and any other value as it is.

    Returns:
        For a result, a mapping with its data and the parts ``answer``, ``tool_calls``, ``usage``, and ``messages`` of
        agents.
    """
    if isinstance(value, Mapping):
        listed = value.get("messages")
        is_state = isinstance(listed, list) and listed and ("langchain_core", "BaseMessage") in _names(listed[-1])
        return _of_langgraph(value) if is_state else value
    readers = (_READERS[each] for each in _names(value) if each in _READERS)
    return next((read(value) for read in readers), value)


def _names(value: Any) -> list[tuple[str, str]]:
    """Return package and name of the classes of a value: libraries are not imported to recognise their results."""
    return [(each.__module__.partition(".")[0], each.__name__) for each in type(value).__mro__]


def _of_pydantic_ai(result: Any) -> dict[str, Any]:
    usage = result.usage() if callable(result.usage) else result.usage
    rows = []
    for each in json.loads(result.all_messages_json()):
        system = [part for part in each["parts"] if part.get("part_kind") == "system-prompt"]
        rows += [{"role": "system", "parts": system}] if system else []
        parts = [part for part in each["parts"] if part not in system]
        rows.append({"role": "user" if each["kind"] == "request" else "assistant", "parts": parts})
    messages = messages_of(rows)
    output_tool = getattr(result, "_output_tool_name", None)
    return {
        "answer": result.output,
        "messages": messages,
        "tool_calls": [each for each in _calls(messages) if each["name"] != output_tool],
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            **({} if (cost := getattr(usage, "cost", None)) is None else {"cost_usd": cost}),
            **({} if (model := getattr(result.response, "model_name", None)) is None else {"model": model}),
        },
    }


def _of_response(response: Any) -> dict[str, Any]:
    data = response.model_dump(mode="json", warnings=False)
    calls = messages_of({"role": "assistant", "content": [each for each in data["output"] if "name" in each]})
    answer = getattr(response, "output_parsed", None)
    return {
        **data,
        "answer": response.output_text if answer is None else answer,
        "tool_calls": [{**each, **_outcome_of_mcp(data["output"], each)} for each in _calls(calls)],
        "usage": _usage(data),
    }


def _outcome_of_mcp(output: Sequence[Mapping[str, Any]], call: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a call of a remote tool gave, which its own item of a response has."""
    known = (each for each in output if each.get("type") == "mcp_call" and each.get("id") == call.get("id"))
    item = next(known, {})
    if item.get("error") is not None:
        return {"result": item["error"], "status": "error"}
    return {} if item.get("output") is None else {"result": item["output"]}


def _of_completion(completion: Any) -> dict[str, Any]:
    data = completion.model_dump(mode="json", warnings=False)
    message = completion.choices[0].message
    answer = getattr(message, "parsed", None)
    return {
        **data,
        "answer": (message.content or "") if answer is None else answer,
        "tool_calls": _calls(messages_of([data["choices"][0]["message"]])),
        "usage": _usage(data),
    }


def _of_langgraph(state: Mapping[str, Any]) -> dict[str, Any]:
    rows = [each.model_dump(mode="json", warnings=False) for each in state["messages"]]
    messages = messages_of(rows)
    replies = [each["content"] for each in messages if each["role"] == "assistant" and "content" in each]
    figures = [each.get("usage_metadata") for each in rows if each["type"] == "ai"]
    usage = {}
    if figures and all(figures):  # a sum of some is no sum
        usage = {name: sum(each[name] for each in figures) for name in ("input_tokens", "output_tokens")}
    answer = state.get("structured_response", replies[-1] if replies else "")
    return {
        "answer": answer,
        **({"usage": usage} if usage else {}),
        **state,
        "messages": messages,
        "tool_calls": _calls(messages),
    }


def _calls(messages: Sequence[TraceMessage]) -> list[dict[str, Any]]:
    results = {each["tool_call_id"]: each["content"] for each in messages if "tool_call_id" in each}
    calls = (call for message in messages for call in message.get("tool_calls", ()))
    return [{**each, "result": results[each["id"]]} if each.get("id") in results else each for each in calls]


def _usage(data: Mapping[str, Any]) -> dict[str, Any]:
    return {**(data.get("usage") or {}), "model": data["model"]}


_READERS: Final[Mapping[tuple[str, str], Callable[[Any], dict[str, Any]]]] = {
    ("pydantic_ai", "AgentRunResult"): _of_pydantic_ai,
    ("openai", "Response"): _of_response,
    ("openai", "ChatCompletion"): _of_completion,
}
"""Package and name of the class of a result to what reads it."""

"""Results of agent libraries as predictions.

Messages and calls of tools, which many libraries and providers write each in another form, have one form.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pytest_llmeval.core import MediaError, parse_digits
from pytest_llmeval.exchange._ledger import LeftOutError, as_list, as_mapping, as_text, first_text, fit_items
from pytest_llmeval.exchange._tolerant_json import parse_tolerantly

AgentMessage: TypeAlias = dict[str, Any]
"""Has a ``role``, and as far as known ``content`` (a text; or a list of texts and media), ``tool_calls``, and the
``tool_call_id`` of a result."""


def as_prediction(value: Any) -> Any:
    """Return the prediction in a result of pydantic-ai, the SDKs of OpenAI or LangGraph, and any other value as it is.

    Returns:
        For a result, a mapping with its data and the parts ``answer``, ``tool_calls``, ``usage``, and ``messages`` of
        agents.
    """
    if isinstance(value, Mapping):
        listed = as_list(value.get("messages"))
        is_state = listed and ("langchain_core", "BaseMessage") in _names(listed[-1])
        return _of_langgraph(value) if is_state else value
    readers = (_READERS[name] for name in _names(value) if name in _READERS)
    return next((read(value) for read in readers), value)


def _names(value: Any) -> list[tuple[str, str]]:
    """Package and class names of an agent library's result, known without importing the library."""
    return [(base.__module__.partition(".")[0], base.__name__) for base in type(value).__mro__]


def _of_pydantic_ai(result: Any) -> dict[str, Any]:
    """The prediction in the result of a pydantic-ai agent's run."""
    usage = result.usage() if callable(result.usage) else result.usage
    rows = []
    for message in json.loads(result.all_messages_json()):
        system = [part for part in message["parts"] if part.get("part_kind") == "system-prompt"]
        rows += [{"role": "system", "parts": system}] if system else []
        parts = [part for part in message["parts"] if part not in system]
        rows.append({"role": "user" if message["kind"] == "request" else "assistant", "parts": parts})
    messages = messages_of(rows)
    output_tool = getattr(result, "_output_tool_name", None)
    return {
        "answer": result.output,
        "messages": messages,
        "tool_calls": [call for call in _calls(messages) if call["name"] != output_tool],
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            **({} if (cost := getattr(usage, "cost", None)) is None else {"cost_usd": cost}),
            **({} if (model := getattr(result.response, "model_name", None)) is None else {"model": model}),
        },
    }


def _of_response(response: Any) -> dict[str, Any]:
    """The prediction in a response of OpenAI's Responses API."""
    data = response.model_dump(mode="json", warnings=False)
    calls = messages_of({"role": "assistant", "content": [item for item in data["output"] if "name" in item]})
    answer = getattr(response, "output_parsed", None)
    return {
        **data,
        "answer": response.output_text if answer is None else answer,
        "tool_calls": [{**call, **_outcome_of_mcp(data["output"], call)} for call in _calls(calls)],
        "usage": _usage(data),
    }


def _outcome_of_mcp(output: Sequence[Mapping[str, Any]], call: Mapping[str, Any]) -> dict[str, Any]:
    """The result or error of a remote MCP tool's call, from the matching item of an OpenAI response."""
    known = (
        output_item
        for output_item in output
        if output_item.get("type") == "mcp_call" and output_item.get("id") == call.get("id")
    )
    item = next(known, {})
    if item.get("error") is not None:
        return {"result": item["error"], "status": "error"}
    return {} if item.get("output") is None else {"result": item["output"]}


def _of_completion(completion: Any) -> dict[str, Any]:
    """The prediction in a chat completion of OpenAI's SDK."""
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
    """The prediction in the final state of a LangGraph graph."""
    rows = [message.model_dump(mode="json", warnings=False) for message in state["messages"]]
    messages = messages_of(rows)
    replies = [message["content"] for message in messages if message["role"] == "assistant" and "content" in message]
    figures = [row.get("usage_metadata") for row in rows if row["type"] == "ai"]
    usage = {}
    if figures and all(figures):  # a sum of some is no sum
        usage = {name: sum(figure[name] for figure in figures) for name in ("input_tokens", "output_tokens")}
    answer = state.get("structured_response", replies[-1] if replies else "")
    return {
        "answer": answer,
        **({"usage": usage} if usage else {}),
        **state,
        "messages": messages,
        "tool_calls": _calls(messages),
    }


def _of_agents(result: Any) -> dict[str, Any]:
    """The prediction in the result of a run of OpenAI's Agents SDK."""
    messages = messages_of([_as_message(item) for item in result.to_input_list()])
    usage = result.context_wrapper.usage
    return {
        "answer": result.final_output,
        "messages": messages,
        "tool_calls": _calls(messages),
        "usage": {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
    }


def _as_message(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert an item of an OpenAI Responses conversation to a raw message."""
    if item.get("type") == "function_call_output":
        return {"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]}
    call = {**item, "id": item.get("call_id")}
    return {"role": "assistant", "content": [call]} if _is_call(item) else item


def _calls(messages: Sequence[AgentMessage]) -> list[dict[str, Any]]:
    """The tool calls of a conversation, each joined with the tool message that has its id."""
    results = {
        message["tool_call_id"]: {"result": message["content"], **_failure(message)}
        for message in messages
        if message["role"] == "tool" and "tool_call_id" in message
    }
    calls = (call for message in messages for call in message.get("tool_calls", ()))
    return [{**call, **results.get(call.get("id"), {})} for call in calls]


def _usage(data: Mapping[str, Any]) -> dict[str, Any]:
    """The token usage of an OpenAI reply, with its model."""
    return {**(data.get("usage") or {}), "model": data["model"]}


_READERS: Final[Mapping[tuple[str, str], Callable[[Any], dict[str, Any]]]] = {
    ("pydantic_ai", "AgentRunResult"): _of_pydantic_ai,
    ("openai", "Response"): _of_response,
    ("openai", "ChatCompletion"): _of_completion,
    ("agents", "RunResultBase"): _of_agents,
}
"""Package and name of the class of a result to what reads it."""


_ROLES: Final = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool", "developer": "system"}


def messages_of(value: Any, role: str = "assistant") -> list[AgentMessage]:
    """Convert the messages of any agent library or provider to the one form of predictions.

    Args:
        value: JSON data as a library has it: a list of messages, a message, the text of one, or JSON text of these.
        role: Of messages that name none.
    """
    return list(_messages(value, role))


def _messages(value: Any, role: str) -> Iterator[AgentMessage]:
    """Yield the messages in any value that holds a conversation: text, JSON text, a list or a mapping."""
    value = parsed_text(value)
    if isinstance(value, Mapping):
        value = items_of(value) or value.get("messages", [value])
    for message in [value] if as_text(value) else items_of(value):
        if isinstance(message, str):
            yield {"role": role, "content": message}
        elif isinstance(message, Mapping):
            yield from _message(message, role)


def _message(data: Mapping[str, Any], role: str) -> Iterator[AgentMessage]:
    """Yield the messages of a prediction that one raw message becomes; tool results are messages of their own."""
    data = as_mapping(data.get("kwargs")) or data  # of LangChain
    label = first_text(data, "role", "type") or role
    role = _ROLES.get(label, label)
    content = next((data[name] for name in ("parts", "content", "contents") if data.get(name) is not None), None)
    if role == "tool" and as_text(content)[:2] in ("[{", '{"'):
        content = parsed_text(content)
    own = {"tool_call_id": call_id} if (call_id := first_text(data, "tool_call_id", "id")) else {}
    if role == "tool" and not _has_results(content):
        yield {"role": "tool", **own, "content": _result_of(content), **_failure(data)}
        return
    calls = [call for raw in items_of(parsed_text(data.get("tool_calls"))) if (call := call_of(raw))]
    calls += [call for part in items_of(content) if _is_call(part) and (call := call_of(part))]
    text = _text_and_media(content)
    message: AgentMessage = {"role": role}
    if text or not (calls or _has_results(content)):
        message["content"] = text
    if calls:
        message["tool_calls"] = calls
    if len(message) > 1:
        yield message
    for part in items_of(content):
        if _is_result(part):
            yield _result(part)


_RESULT_TYPES: Final = ("tool_call_response", "tool_result", "tool-result", "server_tool_call_response", "tool-return")
_CALL_TYPES: Final = (
    *("tool_call", "tool-call", "tool_use", "server_tool_call"),
    *("function_call", "custom_tool_call", "mcp_call"),  # OpenAI's responses
)


def _type_of(part: Any) -> Any:
    """The type of a part of a message's content, under the name that its agent library uses."""
    fields = as_mapping(part)
    return fields.get("type", fields.get("part_kind"))


def _is_result(part: Any) -> bool:
    """Whether a part of a message's content is the result of a tool."""
    return _type_of(part) in _RESULT_TYPES


def _has_results(content: Any) -> bool:
    """Whether a message's content holds results of tools."""
    return any(map(_is_result, items_of(content)))


def _is_call(part: Any) -> bool:
    """Whether a part of a message's content is a tool call."""
    return _type_of(part) in _CALL_TYPES


def _result(part: Mapping[str, Any]) -> AgentMessage:
    """Convert a tool result among the parts of a message to a tool message."""
    own = first_text(part, "id", "tool_call_id", "tool_use_id", "toolCallId")
    content = next((part[name] for name in ("response", "result", "output", "content") if name in part), None)
    typed = as_mapping(content)
    if "value" in typed and set(typed) <= {"type", "value"}:  # of Vercel's SDK
        failed = "error" in str(typed.get("type"))
        content, failure = typed["value"], {"status": "error"} if failed else {}
    else:
        failure = _failure(part)
    return {"role": "tool", **({"tool_call_id": own} if own else {}), "content": _result_of(content), **failure}


def _failure(result: Mapping[str, Any]) -> dict[str, Any]:
    """The error status of a failed tool call, from its raw result; empty for any other result."""
    return {"status": "error"} if result.get("is_error") is True or result.get("status") == "error" else {}


def call_of(data: Any) -> dict[str, Any] | None:
    """Convert a raw tool call of any library to the one form of predictions; ``None`` if it has no name."""
    data = as_mapping(data)
    data = as_mapping(data.get("tool_call")) or data  # of OpenInference
    inner = data.get("function", data)
    if not isinstance(inner, Mapping):
        inner = {**data, "name": inner}
    name = first_text(inner, "name", "toolName", "tool_name")
    if not name:
        return None
    arguments = next((inner[key] for key in ("arguments", "args", "input") if inner.get(key) is not None), None)
    own = first_text(data, "id", "toolCallId", "tool_call_id")
    call: dict[str, Any] = {"id": own} if own else {}
    call["name"] = name
    if arguments is not None:
        call["arguments"] = parsed_text(arguments)
    return call


def parsed_text(value: Any) -> Any:
    """Parse a value that agent libraries and traces store as JSON text; other values stay unchanged."""
    if as_text(value)[:1] not in ("[", "{", '"'):
        return value
    try:
        return parse_tolerantly(value)
    except (ValueError, RecursionError):
        return value


def items_of(value: Any) -> Iterable[Any]:
    """The items of a list, or of a mapping by number, in messages and traces; empty for other values."""
    if isinstance(value, list | tuple):
        return value
    if not isinstance(value, Mapping):
        return ()
    places = {name: parse_digits(name) if isinstance(name, str) else None for name in value}
    numbers = {name: place for name, place in places.items() if place is not None}
    return [value[name] for name in sorted(numbers, key=numbers.__getitem__)] if len(numbers) == len(value) else ()


def texts_of(content: Any) -> Iterator[str]:
    """Yield the texts of a message's content, without calls of tools and their results."""
    return (piece for piece in _pieces(content) if isinstance(piece, str))


def _pieces(content: Any) -> Iterator[Any]:
    """Yield the texts and media in a message's content, without tool calls and their results."""
    for part in [content] if isinstance(content, str) else items_of(content):
        if isinstance(part, str):
            yield part
        elif not _is_call(part) and not _is_result(part):
            if (medium := _medium(part)) is not None:
                yield medium
                continue
            inner = as_mapping(as_mapping(part).get("message_content", part))
            if inner.get("type", "text") in ("text", "input_text", "output_text", None):
                value = inner.get("text", inner.get("content"))
                yield from _pieces(value) if isinstance(value, list) else fit_items(str, [value])


def _medium(part: Any) -> Any:
    """The medium in a part of a message, or a text with the reason that it has none; ``None`` for other parts."""
    from pytest_llmeval.core import Media
    from pytest_llmeval.exchange._media import medium_of, medium_part

    medium = medium_part(part)
    if medium is None:
        return None
    try:
        return Media.form_of(medium_of(medium))
    except (LeftOutError, MediaError) as error:
        return f"[{medium.sort}: {error}]"


def _text_and_media(content: Any) -> Any:
    """The text of a message's content; with media, a list of texts and media in their order."""
    pieces = list(_pieces(content))
    return "\n".join(pieces) if all(isinstance(piece, str) for piece in pieces) else pieces


def _result_of(content: Any) -> Any:
    """The content of a tool message: text, a list with media, or JSON of anything else."""
    text = _text_and_media(content)
    if text or content is None or isinstance(content, str):
        return text
    return json.dumps(content, ensure_ascii=False, sort_keys=True, default=str)

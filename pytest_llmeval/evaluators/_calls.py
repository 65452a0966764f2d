"""Tool calls, read from the forms of services, libraries and agents, and sequences of them, compared."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from pytest_llmeval.core import Case, call_text
from pytest_llmeval.evaluators._answers import AnswerText, AnswerValue, NoJsonError

_FAILED: Final = frozenset(
    ("error", "errored", "failed", "failure", "interrupted", "retried", "retry", "timeout", "timed_out")
)
"""Statuses of calls without a result."""

_BUILT_IN: Final = (
    *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "computer_call"),
    *("local_shell_call", "shell_call", "apply_patch_call"),
)
_CALLS: Final = frozenset(
    (
        *("function_call", "custom_tool_call", "mcp_call", *_BUILT_IN),  # OpenAI's responses
        *("tool_use", "server_tool_use", "mcp_tool_use"),  # Anthropic's blocks
        *("tool-call", "builtin-tool-call"),  # pydantic-ai's parts
        *("tool_call", "server_tool_call"),  # OpenTelemetry's parts
    )
)
_RESULTS: Final = frozenset(
    (
        *("function_call_output", "custom_tool_call_output", "computer_call_output"),
        *("tool_result", "mcp_tool_result", "web_search_tool_result", "code_execution_tool_result"),
        *("tool-return", "builtin-tool-return", "retry-prompt", "tool-result"),
        *("tool_call_response", "server_tool_call_response"),
    )
)
_OTHERS: Final = frozenset(
    (
        *("text", "input_text", "output_text", "summary_text", "refusal", "reasoning", "thinking", "redacted_thinking"),
        *("image", "image_url", "input_image", "input_audio", "audio", "video", "file", "input_file", "document"),
        *("blob", "uri", "search_result", "container_upload", "system-prompt", "user-prompt", "item_reference"),
        *("mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "compaction"),
    )
)
"""What a part of a message calls itself if it is neither a call nor a result."""

_GEMINI: Final = ("text", "inlineData", "inline_data", "fileData", "file_data", "executableCode", "codeExecutionResult")

_ROLES: Final = frozenset(("ai", "human", "system", "tool"))
"""What LangChain's messages have as their type in place of a role."""

_USERS: Final = frozenset(("user", "human"))
_ASSISTANTS: Final = frozenset(("assistant", "ai", "model", "response"))
_TEXTS: Final = frozenset(("text", "input_text", "output_text", "refusal", "user-prompt", None))
"""Types of the parts of a message that say something; parts of Gemini have none."""

_OTHER_ARGUMENTS: Final = ("args", "input")
_FORM: Final = "an object with name and arguments"


class MissingTraceError(ValueError):
    """There is no trace of tool calls in what was answered."""


class ToolCall(NamedTuple):
    """One call of a tool, which an agent made or is expected to make.

    Attributes:
        name: Of the tool.
        arguments: By name; ``None`` where the call says nothing of them: an expected call is then compared by name, one
            that was made has none.
        failed: Whether it gave an error instead of a result.
        fault: What is wrong with its form.
        turn: Of the conversation, counted from 1; 0 where it has but one, or is not known.
    """

    name: str
    arguments: Mapping[str, Any] | None
    failed: bool = False
    fault: str | None = None
    turn: int = 0

    def __str__(self) -> str:
        return call_text(self.name, self.arguments)

    @classmethod
    def read_trace(cls, trace: Any) -> "list[ToolCall]":
        """The tool calls of a trace, in order.

        Args:
            trace: A list of calls, or of messages of OpenAI, Anthropic, Gemini, LangChain, pydantic-ai or
                OpenTelemetry; or an object with ``tool_calls`` or ``messages``. What is no call, or whose arguments
                are no object, has a `ToolCall.fault`.

        Raises:
            MissingTraceError: It is none of these, or a message has a part of another form, which may be a call.
        """
        if isinstance(trace, dict):
            for part in ("tool_calls", "messages"):
                if isinstance(trace.get(part), list | tuple):
                    return cls.read_trace(trace[part])
            keys = ", ".join(map(str, trace)) or "no keys"
            raise MissingTraceError(
                f"found an object with {keys}, expected a list of tool calls, or tool_calls or messages"
            )
        if not isinstance(trace, list | tuple):
            raise MissingTraceError(f"found {AnswerValue(trace).kind}, expected a list of tool calls or messages")
        if any(is_message(item) for item in trace):
            trace = [item for number, message in enumerate(trace) for item in _items(message, f"messages[{number}]")]
        return _join_results(trace)

    @classmethod
    def read_expected(cls, expected: Any) -> "list[ToolCall] | None":
        """The tool calls that a case expects; ``None`` where nothing is said of calls.

        Args:
            expected: A list of calls, each as in a trace or the name of a tool; or an object with ``tool_calls``.
        """
        if isinstance(expected, dict):
            expected = expected.get("tool_calls")
        if not isinstance(expected, list | tuple):
            return None
        return [_expected_call(call, index) for index, call in enumerate(expected)]

    def placed(self, line: str) -> str:
        """A line about the tool call with the turn in which it was made."""
        return f"turn {self.turn}: {line}" if self.turn else line


class MessageStep(NamedTuple):
    """The text and the tool calls of one message of a conversation.

    Attributes:
        role: Who wrote it; ``None`` for results of tools, instructions, and items that are no messages.
        text: What it says; empty where it says nothing.
        calls: Which tools it calls.
    """

    role: Literal["user", "assistant"] | None
    text: str
    calls: Sequence[ToolCall]

    @classmethod
    def read_messages(cls, messages: Sequence[Any]) -> "list[MessageStep]":
        """The text and the tool calls of each message of a conversation, in order.

        Args:
            messages: In one of the forms of `ToolCall.read_trace`; the calls are the same.

        Raises:
            MissingTraceError: A message has a part of another form, which may be a call.
        """
        items = [list(_items(message, f"messages[{number}]")) for number, message in enumerate(messages)]
        calls = iter(_join_results(item for own in items for item in own))
        steps = []
        for message, own in zip(messages, items, strict=True):
            own_calls = [next(calls) for item in own if _is_call(item)]
            role, text = _trace_message_author(message), _text(message)
            if role == "user" and not text and own:  # Anthropic's results stand in messages of the user
                role = None
            steps.append(cls(role, text, own_calls))
        return steps

    @classmethod
    def read_case(cls, case: Case) -> "list[MessageStep] | None":
        """The steps of a prediction, or of the part of it that is viewed; ``None`` where it has no messages.

        Raises:
            MissingTraceError: A message has a part of another form, which may be a call.
            PredictionError: The part with the messages cannot be looked up.
        """
        trace = case.prediction
        if isinstance(trace, list | tuple) and any(map(is_message, trace)):
            return cls.read_messages(trace)
        messages = case.parts.get("messages")
        return cls.read_messages(messages) if isinstance(messages, list | tuple) else None


def _trace_message_author(message: Any) -> Literal["user", "assistant"] | None:
    """The author of a message of a trace; ``None`` for results of tools, system messages and what is no message."""
    if not is_message(message):
        return None
    role = message.get("role", message.get("kind", message.get("type")))
    if role in _USERS or (
        role == "request" and any(_part_type(part) == "user-prompt" for part in _message_parts(message))
    ):
        return "user"
    return "assistant" if role in _ASSISTANTS else None


def _message_parts(message: Mapping[str, Any]) -> list[Any]:
    """The parts of a message in an agent's trace, texts included, in any service's form."""
    lists = [value for name in ("content", "parts") if isinstance(value := message.get(name), list | tuple)]
    return [{"text": part} if isinstance(part, str) else part for listed in lists for part in listed]


def _text(message: Any) -> str:
    """The text of a message in an agent's trace; empty for other items and for messages without text."""
    if not is_message(message):
        return ""
    if isinstance(content := message.get("content"), str):
        return content
    parts = [part for part in _message_parts(message) if isinstance(part, dict) and _part_type(part) in _TEXTS]
    texts = [part.get("text", part.get("content")) for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str))


def _expected_call(value: Any, index: int) -> ToolCall:
    """The tool call that a case's ``expected`` names at a position: a tool's name, or a call with arguments."""
    if isinstance(value, str):
        return (
            ToolCall(value, None)
            if value
            else ToolCall("", None, fault=f"[{index}]: found an empty text, expected a name")
        )
    return _plain(value) or _call(value, index)


def _part_type(item: Mapping[str, Any]) -> Any:
    """The type of a message part in an agent's trace, under the key of its service or library."""
    kind = item.get("part_kind", item.get("type"))
    return kind if isinstance(kind, str) else None


def is_message(item: Any) -> bool:
    """Whether an item of a trace is a message, rather than a call or a result."""
    if not isinstance(item, dict):
        return False
    if "role" in item or item.get("kind") in ("request", "response"):
        return True
    # A call may have the type "tool", too, but then it has a name and no content.
    return (item.get("type") in _ROLES and "content" in item) or isinstance(item.get("parts"), list | tuple)


def _items(message: Any, place: str) -> Iterator[Mapping[str, Any]]:
    """Yield the tool calls and results of a message in an agent's trace, in order.

    Raises:
        MissingTraceError: Something in it is neither of them nor text or the like.
    """
    if not is_message(message):
        yield from _item(message, place)
        return
    if message.get("role", message.get("type")) == "tool" and not isinstance(message.get("parts"), list | tuple):
        yield {"type": "tool_result", "id": message.get("tool_call_id"), "status": message.get("status")}
    for name in ("content", "parts"):
        content = message.get(name)
        if isinstance(content, dict):
            raise MissingTraceError(f"{place}.{name}: found an object, expected text or a list of parts")
        for number, part in enumerate(content if isinstance(content, list | tuple) else ()):
            yield from _item(part, f"{place}.{name}[{number}]")
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list | tuple):
        raise MissingTraceError(f"{place}.tool_calls: found {AnswerValue(calls).kind}, expected a list of calls")
    yield from calls or ()
    if isinstance(call := message.get("function_call"), dict):  # OpenAI's form before there were several calls
        yield call


def _item(part: Any, place: str) -> Iterator[Mapping[str, Any]]:
    """Yield a part of a message in an agent's trace if it is a tool call or a result."""
    if isinstance(part, str):
        return
    if isinstance(part, dict):
        kind = _part_type(part)
        if kind in _CALLS | _RESULTS:
            yield part
            return
        if isinstance(call := part.get("functionCall", part.get("function_call")), dict):  # Gemini
            yield call
            return
        if isinstance(part.get("functionResponse", part.get("function_response")), dict):
            return
        # Parts of Gemini have no type, only a key that says what they are.
        if kind in _OTHERS or (kind is None and any(name in part for name in _GEMINI)):
            return
    if isinstance(part, dict):
        description = f"a part of type {kind!r}" if kind else f"a part with {', '.join(map(str, part)) or 'no keys'}"
    else:
        description = AnswerValue(part).kind
    raise MissingTraceError(
        f"{place}: found {description}, expected text, a tool call or its result as OpenAI, Anthropic, Gemini, "
        "LangChain, pydantic-ai or OpenTelemetry write them"
    )


def _join_results(items: Iterable[Any]) -> list[ToolCall]:
    """The tool calls of an agent's trace; their results say which of them failed."""
    calls: list[ToolCall] = []
    read: list[Any] = []
    for item in items:
        if _is_call(item):
            calls.append(_plain(item) or _call(item, len(calls)))
            read.append(item)
        elif _is_failed_call(item) or _part_type(item) == "retry-prompt":
            call_id = _call_id(item)
            # Ids may be used again in later turns: a result belongs to the last call before it.
            place = next(
                (place for place in reversed(range(len(read))) if call_id and _call_id(read[place]) == call_id), None
            )
            if place is not None:
                calls[place] = calls[place]._replace(failed=True)
    return calls


def _is_call(item: Any) -> bool:
    """Whether an item of an agent's trace is a tool call, however it is written, rather than its result."""
    return not (isinstance(item, dict) and _part_type(item) in _RESULTS) or _plain(item) is not None


def _call_id(item: Any) -> str:
    """The id that links a tool call in an agent's trace with its result."""
    if isinstance(item, dict):
        for name in ("tool_use_id", "call_id", "tool_call_id", "id"):
            if isinstance(value := item.get(name), str):
                return value
    return ""


def _is_failed_call(item: Mapping[str, Any]) -> bool:
    """Whether the result of a tool call in an agent's trace reports an error."""
    status = item.get("status", item.get("outcome"))
    return item.get("is_error") is True or (isinstance(status, str) and status.lower() in _FAILED)


def _plain(item: Any) -> ToolCall | None:
    """The tool call of an item with only a name and arguments, as most are; ``None`` for any other item."""
    if type(item) is not dict or len(item) != 2:  # noqa: PLR2004 (name and arguments)
        return None
    name, arguments = item.get("name"), item.get("arguments")
    return ToolCall(name, arguments) if name and type(name) is str and type(arguments) is dict else None


def _call(item: Any, index: int) -> ToolCall:
    """The tool call of an item in any service's form; without arguments it has none."""
    if not isinstance(item, dict):
        return ToolCall("", {}, fault=f"[{index}]: found {AnswerValue(item).kind}, expected {_FORM}")
    function = item.get("function")
    inner = function if isinstance(function, dict) else item
    name = inner.get("name", inner.get("tool_name"))
    if (
        name is None and (kind := _part_type(item)) in _BUILT_IN
    ):  # OpenAI runs these itself, and names them by their type
        return ToolCall(kind.removesuffix("_call"), {}, _is_failed_call(item))
    if _part_type(item) == "custom_tool_call" and isinstance(item.get("input"), str):
        return ToolCall(str(name), {"input": item["input"]}, _is_failed_call(item))  # its input is text of any form
    if not isinstance(name, str) or not name:
        return ToolCall("", {}, fault=f"[{index}].name: found {AnswerValue(name).kind}, expected the name of a tool")
    arguments = inner.get("arguments")
    for key in _OTHER_ARGUMENTS if arguments is None else ():
        arguments = inner.get(key) if arguments is None else arguments
    if isinstance(arguments, dict):
        return ToolCall(name, arguments, _is_failed_call(item))
    fault = None
    if isinstance(arguments, str):
        try:
            arguments = AnswerText(arguments).read_json() if arguments.strip() else {}
        except NoJsonError as error:
            arguments, fault = {}, f"[{index}].arguments: {error}"
    if arguments is not None and not isinstance(arguments, dict):
        fault = f"[{index}].arguments: found {AnswerValue(arguments).kind}, expected an object"
        arguments = {}
    return ToolCall(name, arguments, _is_failed_call(item), fault)


def read_transcript(text: str) -> dict[str, Any]:
    """The parts of a coding agent's printed output: ``answer``, and if it prints JSON, ``tool_calls`` and ``usage``.

    Objects with ``result``, ``usage`` and ``total_cost_usd``, messages with ``tool_use``, and items of the types
    ``agent_message`` and ``command_execution`` are understood, one a line or all as one; else the answer is the text.
    """
    answer, calls, usage, shows_calls = "", list[dict[str, Any]](), dict[str, Any](), False
    for object_ in _objects(text):
        if isinstance(object_.get("usage"), dict):
            usage |= {
                name: count for name, count in object_["usage"].items() if name in ("input_tokens", "output_tokens")
            }
        if isinstance(object_.get("total_cost_usd"), int | float):
            usage["cost_usd"] = object_["total_cost_usd"]
        message, item = object_.get("message"), object_.get("item")
        shows_calls = shows_calls or isinstance(message, dict) or isinstance(item, dict)
        parts = (message.get("content") or ()) if isinstance(message, dict) else ()
        used = [part for part in parts if isinstance(part, dict) and part.get("type") == "tool_use"]
        calls += [{"name": part.get("name"), "arguments": part.get("input") or {}} for part in used]
        kind = item.get("type") if isinstance(item, dict) and object_.get("type") == "item.completed" else None
        if isinstance(object_.get("result"), str):
            answer = object_["result"]
        elif isinstance(item, dict) and kind == "agent_message":
            answer = str(item.get("text", ""))
        elif isinstance(item, dict) and kind == "command_execution":
            calls.append({"name": "shell", "arguments": {"command": item.get("command")}})
    known = {"tool_calls": calls} if shows_calls else {}
    return {"answer": answer or text.strip(), **known, **({"usage": usage} if usage else {})}


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects that a coding agent printed: as one JSON text, or one a line."""
    for part in [text] if text.lstrip().startswith("[") else [text, *text.splitlines()]:
        try:
            data = json.loads(part)
        except (ValueError, RecursionError):
            continue
        yield from (item for item in (data if isinstance(data, list) else [data]) if isinstance(item, dict))
        if part is text:
            return

"""Tool calls, read from the forms in which services and libraries write them."""

__all__ = ("MissingTraceError", "ToolCall", "read_expected", "read_trace")

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pytest_llmeval.evaluators.answers import describe_found
from pytest_llmeval.evaluators.fields.reading import NoJsonError, read_json

_FAILED: Final = frozenset(
    ("error", "errored", "failed", "failure", "interrupted", "retried", "retry", "timeout", "timed_out")
)
"""What a status says of a call that gave no result."""

_CALLS: Final = frozenset(
    ("function_call", "tool_use", "server_tool_use", "mcp_tool_use", "tool-call", "builtin-tool-call")
)
_RESULTS: Final = frozenset(
    ("function_call_output", "tool_result", "mcp_tool_result", "tool-return", "builtin-tool-return", "retry-prompt")
)
"""What items of messages call themselves: OpenAI's responses, Anthropic's blocks, pydantic-ai's parts."""

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, default=str)
_OTHER_ARGUMENTS: Final = ("args", "input")
_FORM: Final = "an object with name and arguments"


class MissingTraceError(ValueError):
    """There is no trace of tool calls in what was answered."""


class ToolCall(NamedTuple):
    """One call of a tool.

    Attributes:
        name: Of the tool.
        arguments: By name; ``None`` where the call says nothing of them: an expected call is then compared by name, one
            that was made has none.
        failed: Whether it gave an error instead of a result.
        fault: What is wrong with its form.
    """

    name: str
    arguments: Mapping[str, Any] | None
    failed: bool = False
    fault: str | None = None

    def __str__(self) -> str:
        arguments = "" if self.arguments is None else _ENCODER.encode(self.arguments)[1:-1]
        return f"{self.name}({arguments if len(arguments) <= 120 else arguments[:120] + '...'})"  # noqa: PLR2004 (a line)


def read_trace(trace: Any) -> list[ToolCall]:
    """Return the calls of a trace, in order.

    Args:
        trace: A list of calls, or of messages of OpenAI, Anthropic or pydantic-ai; or an object with ``tool_calls`` or
            ``messages``. What is no call, or whose arguments are no object, has a `ToolCall.fault`.

    Raises:
        MissingTraceError: It is none of these.
    """
    if isinstance(trace, dict):
        for part in ("tool_calls", "messages"):
            if isinstance(trace.get(part), list | tuple):
                return read_trace(trace[part])
        keys = ", ".join(map(str, trace)) or "no keys"
        raise MissingTraceError(
            f"found an object with {keys}, expected a list of tool calls, or tool_calls or messages"
        )
    if not isinstance(trace, list | tuple):
        raise MissingTraceError(f"found {describe_found(trace)}, expected a list of tool calls or messages")
    if any(_is_message(each) for each in trace):
        trace = [item for message in trace for item in _items(message)]
    return _joined(trace)


def read_expected(expected: Any) -> list[ToolCall] | None:
    """Return the expected calls; ``None`` where nothing is said of calls.

    Args:
        expected: A list of calls, each as in a trace or the name of a tool; or an object with ``tool_calls``.
    """
    if isinstance(expected, dict):
        expected = expected.get("tool_calls")
    if not isinstance(expected, list | tuple):
        return None
    return [_expected_call(each, index) for index, each in enumerate(expected)]


def _expected_call(value: Any, index: int) -> ToolCall:
    if isinstance(value, str):
        return (
            ToolCall(value, None)
            if value
            else ToolCall("", None, fault=f"[{index}]: found an empty text, expected a name")
        )
    return _plain(value) or _call(value, index)


def _type(item: Mapping[str, Any]) -> Any:
    kind = item.get("part_kind", item.get("type"))
    return kind if isinstance(kind, str) else None


def _is_message(item: Any) -> bool:
    return isinstance(item, dict) and ("role" in item or item.get("kind") in ("request", "response"))


def _items(message: Any) -> Iterator[Any]:
    """Yield the calls and results of a message, in order."""
    if not isinstance(message, dict):
        return
    if not _is_message(message):
        if _type(message) in _CALLS | _RESULTS:
            yield message
        return
    if message.get("role") == "tool":
        yield {"type": "tool_result", "id": message.get("tool_call_id"), "status": message.get("status")}
    for part in ("content", "parts"):
        for each in _listed(message.get(part)):
            if isinstance(each, dict) and _type(each) in _CALLS | _RESULTS:
                yield each
    yield from _listed(message.get("tool_calls"))


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _joined(items: Iterable[Any]) -> list[ToolCall]:
    """Return the calls among calls and results; results say which calls failed."""
    calls: list[ToolCall] = []
    read: list[Any] = []
    for item in items:
        call = _plain(item)
        if call is not None or not (isinstance(item, dict) and _type(item) in _RESULTS):
            calls.append(call or _call(item, len(calls)))
            read.append(item)
        elif _failed(item) or _type(item) == "retry-prompt":
            wanted = _id(item)
            # Ids may be used again in later turns: a result belongs to the last call before it.
            place = next((place for place in reversed(range(len(read))) if wanted and _id(read[place]) == wanted), None)
            if place is not None:
                calls[place] = calls[place]._replace(failed=True)
    return calls


def _id(item: Any) -> str:
    if isinstance(item, dict):
        for name in ("tool_use_id", "call_id", "tool_call_id", "id"):
            if isinstance(value := item.get(name), str):
                return value
    return ""


def _failed(item: Mapping[str, Any]) -> bool:
    status = item.get("status", item.get("outcome"))
    return item.get("is_error") is True or (isinstance(status, str) and status.lower() in _FAILED)


def _plain(item: Any) -> ToolCall | None:
    """Return a call that has a name and arguments and nothing else, as most have; ``None`` for any other item."""
    if type(item) is not dict or len(item) != 2:  # noqa: PLR2004 (name and arguments)
        return None
    name, arguments = item.get("name"), item.get("arguments")
    return ToolCall(name, arguments) if name and type(name) is str and type(arguments) is dict else None


def _call(item: Any, index: int) -> ToolCall:
    """Return a call; one that says nothing of its arguments has none."""
    if not isinstance(item, dict):
        return ToolCall("", {}, fault=f"[{index}]: found {describe_found(item)}, expected {_FORM}")
    function = item.get("function")
    inner = function if isinstance(function, dict) else item
    name = inner.get("name", inner.get("tool_name"))
    if not isinstance(name, str) or not name:
        return ToolCall("", {}, fault=f"[{index}].name: found {describe_found(name)}, expected the name of a tool")
    arguments = inner.get("arguments")
    for key in _OTHER_ARGUMENTS if arguments is None else ():
        arguments = inner.get(key) if arguments is None else arguments
    if isinstance(arguments, dict):
        return ToolCall(name, arguments, _failed(item))
    fault = None
    if isinstance(arguments, str):
        try:
            arguments = read_json(arguments) if arguments.strip() else {}
        except NoJsonError as error:
            arguments, fault = {}, f"[{index}].arguments: {error}"
    if arguments is not None and not isinstance(arguments, dict):
        fault = f"[{index}].arguments: found {describe_found(arguments)}, expected an object"
        arguments = {}
    return ToolCall(name, arguments, _failed(item), fault)

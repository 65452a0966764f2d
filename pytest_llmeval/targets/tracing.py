"""Answers of agents: the spans that a Python target emits while it answers a case, and results of agent libraries."""

import functools
import inspect
import json
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pytest_llmeval.core.case import without_parts
from pytest_llmeval.core.errors import MissingExtraError
from pytest_llmeval.data.formats.span_messages import TraceMessage, messages_of
from pytest_llmeval.data.formats.spans import Event, TraceSpan
from pytest_llmeval.data.formats.traces import case_of_spans

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

_PARTS: Final = ("answer", "messages", "tool_calls", "contexts", "usage", "trace")
_SCOPE: Final = "pytest-llmeval-suite"


class TracedCall:
    """One call of a target, with the spans that belong to it.

    A span belongs to the call within which it began: OpenTelemetry passes its context on to coroutines and, where the
    application does, to threads.

    Raises:
        MissingExtraError: The SDK of OpenTelemetry is not installed.
    """

    def __init__(self) -> None:
        self._tracer = _tracer()
        self._spans: list[Any] = []

    def wrap(self, target: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a target whose spans are collected."""
        if inspect.iscoroutinefunction(target):

            @functools.wraps(target)
            async def awaited(value: Any) -> Any:
                with self._collecting():
                    return await target(value)

            return awaited

        @functools.wraps(target)
        def called(value: Any) -> Any:
            with self._collecting():
                answer = target(value)
            return self._awaited(answer) if inspect.isawaitable(answer) else answer

        return called

    async def _awaited(self, answer: Awaitable[Any]) -> Any:
        """Await what a plain function returned."""
        with self._collecting():
            return await answer

    @contextmanager
    def _collecting(self) -> Iterator[None]:
        with self._tracer.start_as_current_span("llmeval case") as span:
            trace = span.get_span_context().trace_id
            _PROCESSOR.open[trace] = self._spans
            try:
                yield
            finally:
                del _PROCESSOR.open[trace]

    def joined(self, answer: Any) -> Any:
        """Return an answer with the spans, and the parts that only they tell."""
        case = case_of_spans("live", [_plain(each) for each in self._spans]) if self._spans else None
        if case is None:
            return answer
        parts = {name: case.prediction[name] for name in _PARTS if name in case.prediction}
        parts["trace"].pop("notes", None)  # the span around the call is not among them
        parts.get("usage", {}).pop("latency_s", None)  # the call itself is measured
        own = answer if isinstance(answer, Mapping) else {} if answer is None else {"answer": answer}
        if without_parts(own, None):  # a record, which is itself the answer
            parts.pop("answer", None)
        return {**parts, **own}


class _Processor:
    """A processor of spans that keeps those of the calls under way."""

    def __init__(self) -> None:
        self.open: dict[int, list[Any]] = {}
        self.known: set[int] = set()
        self.lock = threading.Lock()

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Nothing is known of a span before it ends."""

    def on_end(self, span: Any) -> None:
        """Keep a span of a call."""
        spans = self.open.get(span.context.trace_id)
        if spans is not None:
            spans.append(span)

    def _on_ending(self, span: Any) -> None:
        """Newer versions of the SDK tell of a span that is about to end."""

    def shutdown(self) -> None:
        """Nothing is held."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is waiting."""
        del timeout_millis
        return True


_PROCESSOR: Final = _Processor()


def _tracer() -> "Tracer":
    """Return a tracer of the application's own provider; where it has none, it gets one that sends nothing."""
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
    except ImportError as error:
        raise MissingExtraError("a target with 'traces: true'", "otel", error) from error
    with _PROCESSOR.lock:
        provider: Any = trace.get_tracer_provider()
        if not hasattr(provider, "add_span_processor"):
            provider = TracerProvider()
            trace.set_tracer_provider(provider)
        if id(provider) not in _PROCESSOR.known:
            provider.add_span_processor(_PROCESSOR)
            _PROCESSOR.known.add(id(provider))
    return trace.get_tracer(_SCOPE)


def _plain(span: Any) -> TraceSpan:
    """Return a span of the SDK as one of a file."""
    return TraceSpan(
        f"{span.context.trace_id:032x}",
        f"{span.context.span_id:016x}",
        "" if span.parent is None else f"{span.parent.span_id:016x}",
        span.name,
        span.start_time or 0,
        span.end_time or 0,
        _listed(span.attributes),
        events=[Event(each.name, _listed(each.attributes)) for each in span.events],
        failed=span.status.status_code.name == "ERROR",
    )


def _listed(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    values: Iterable[tuple[str, Any]] = (attributes or {}).items()
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values}


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

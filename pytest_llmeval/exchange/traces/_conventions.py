"""The content of spans."""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from pytest_llmeval.core import LARGEST, is_finite_number
from pytest_llmeval.exchange._agent_libraries import AgentMessage, call_of, items_of, messages_of, parsed_text, texts_of
from pytest_llmeval.exchange._ledger import as_mapping, as_text, first_text, fit_items
from pytest_llmeval.exchange.traces._spans import TraceSpan

SpanKind: TypeAlias = Literal["agent", "model", "tool", "retrieval", "other"]

_OPERATIONS: Final[dict[str, SpanKind]] = {
    **dict.fromkeys(("chat", "text_completion", "generate_content", "completion", "responses"), "model"),
    **dict.fromkeys(("invoke_agent", "create_agent", "invoke_workflow"), "agent"),
    "execute_tool": "tool",
    "retrieval": "retrieval",
}
"""``gen_ai.operation.name`` of OpenTelemetry's conventions for generative AI."""

_OPENINFERENCE: Final[dict[str, SpanKind]] = {
    "LLM": "model",
    "AGENT": "agent",
    "TOOL": "tool",
    "RETRIEVER": "retrieval",
}
_VERCEL: Final[dict[str, SpanKind]] = {
    "ai.generateText": "agent",
    "ai.streamText": "agent",
    "ai.generateObject": "agent",
    "ai.streamObject": "agent",
    "ai.toolCall": "tool",
    **dict.fromkeys(
        (f"ai.{name}.do{way}" for name in ("generateText", "generateObject") for way in ("Generate", "Stream")), "model"
    ),
    **dict.fromkeys((f"ai.{name}.doStream" for name in ("streamText", "streamObject")), "model"),
}


def kind_of(span: TraceSpan) -> SpanKind:
    """The kind of work that a span records, such as a model's or a tool's."""
    attributes = span.attributes
    if operation := _OPERATIONS.get(first_text(attributes, "gen_ai.operation.name")):
        return operation
    if inference := first_text(attributes, "openinference.span.kind"):
        return _OPENINFERENCE.get(inference.upper(), "other")
    if vercel := first_text(attributes, "ai.operationId"):
        return _VERCEL.get(vercel, "other")
    if "gen_ai.tool.name" in attributes:
        return "tool"
    if any(
        name.startswith(("gen_ai.request.", "gen_ai.response.", "gen_ai.prompt", "gen_ai.input."))
        for name in attributes
    ):
        return "model"
    return "agent" if "agent_name" in attributes or "gen_ai.agent.name" in attributes else "other"


def read_messages(span: TraceSpan) -> tuple[list[AgentMessage], list[AgentMessage]]:
    """The messages that a span of a model or an agent got, and its answer.

    Each message has a ``role``; ``content``, a text, where it says something; ``tool_calls`` with ``id``, ``name`` and
    ``arguments``; and as the result of a call ``tool_call_id``.
    """
    for read in (_otel, _openinference, _vercel, _numbered, _events):
        inputs, answered = read(span)
        if inputs or answered:
            return inputs, answered
    return [], []


def _otel(span: TraceSpan) -> tuple[list[AgentMessage], list[AgentMessage]]:
    """Messages and answer of a span by OpenTelemetry's conventions for generative AI."""
    attributes = span.attributes
    system = parsed_text(attributes.get("gen_ai.system_instructions"))
    inputs = messages_of(attributes.get("gen_ai.input.messages"), "user")
    answered = messages_of(attributes.get("gen_ai.output.messages"), "assistant")
    everything = attributes.get("pydantic_ai.all_messages", attributes.get("all_messages_events"))
    if not inputs and everything is not None:
        messages = messages_of(everything, "user")
        cut = max((place for place, message in enumerate(messages) if message["role"] != "assistant"), default=-1) + 1
        inputs, answered = messages[:cut], messages[cut:]
    for event in span.events:
        if event.name == "gen_ai.client.inference.operation.details":
            inputs = inputs or messages_of(event.attributes.get("gen_ai.input.messages"), "user")
            answered = answered or messages_of(event.attributes.get("gen_ai.output.messages"), "assistant")
            system = system or parsed_text(event.attributes.get("gen_ai.system_instructions"))
    if system and inputs and inputs[0]["role"] != "system":
        text = "\n".join(texts_of(system))
        inputs = [{"role": "system", "content": text}, *inputs] if text else inputs
    return inputs, answered


def _openinference(span: TraceSpan) -> tuple[list[AgentMessage], list[AgentMessage]]:
    """Messages and answer of a span by the conventions of OpenInference."""
    attributes = _nested(span.attributes, "llm")
    inputs, answered = (
        [
            message
            for entry in filter(None, map(as_mapping, items_of(attributes.get(name))))
            for message in messages_of([entry.get("message", entry)], role)
        ]
        for name, role in (("input_messages", "user"), ("output_messages", "assistant"))
    )
    return inputs, answered


def _vercel(span: TraceSpan) -> tuple[list[AgentMessage], list[AgentMessage]]:
    """Messages and answer of a span of Vercel's AI SDK."""
    attributes = span.attributes
    if not any(name.startswith("ai.") for name in attributes):
        return [], []
    inputs = messages_of(attributes.get("ai.prompt.messages"), "user")
    prompt = as_mapping(parsed_text(attributes.get("ai.prompt")))
    if not inputs and prompt:
        system = first_text(prompt, "system")
        inputs = [{"role": "system", "content": system}] if system else []
        inputs += messages_of(prompt.get("messages", prompt.get("prompt")), "user")
    calls = [call for raw in items_of(parsed_text(attributes.get("ai.response.toolCalls"))) if (call := call_of(raw))]
    answer: AgentMessage = {"role": "assistant"}
    if text := first_text(attributes, "ai.response.text", "ai.response.object"):
        answer["content"] = text
    if calls:
        answer["tool_calls"] = calls
    return inputs, [answer] if len(answer) > 1 else []


def _numbered(span: TraceSpan) -> tuple[list[AgentMessage], list[AgentMessage]]:
    """Messages and answer of a span in the older form ``gen_ai.prompt``, whole or by number."""
    attributes = _nested(span.attributes, "gen_ai")
    prompt, completion = (parsed_text(attributes.get(name)) for name in ("prompt", "completion"))
    return messages_of(prompt, "user"), messages_of(completion, "assistant")


def _events(span: TraceSpan) -> tuple[list[AgentMessage], list[AgentMessage]]:
    """Messages and answer in the events of a span: one for each message, or one for prompt and one for completion."""
    inputs: list[AgentMessage] = []
    answered: list[AgentMessage] = []
    for event in span.events:
        content = event.attributes
        match event.name:
            case "gen_ai.content.prompt":
                inputs += messages_of(content.get("gen_ai.prompt"), "user")
            case "gen_ai.content.completion":
                answered += messages_of(content.get("gen_ai.completion"), "assistant")
            case "gen_ai.choice":
                message = as_mapping(parsed_text(content.get("message")))
                answered += messages_of([message or dict(content)], "assistant")
            case _ if event.name.startswith("gen_ai.") and event.name.endswith(".message"):
                role = event.name.removeprefix("gen_ai.").removesuffix(".message")
                inputs += messages_of([{"role": role, **content}], role)
    return inputs, answered


def tool_call_of(span: TraceSpan) -> dict[str, Any] | None:
    """The tool call that a span records, with ``result``, and with ``status`` if it failed."""
    attributes = span.attributes
    names = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "tool_name")
    name = first_text(attributes, *names)
    if not name:
        name = span.name.removeprefix("execute_tool ").removeprefix("running tool: ").strip()
    if not name:
        return None
    call: dict[str, Any] = {}
    if own := first_text(attributes, *_CALL_IDS):
        call["id"] = own
    call["name"] = name
    arguments = next((attributes[key] for key in _ARGUMENTS if attributes.get(key) is not None), None)
    if arguments is not None:
        call["arguments"] = parsed_text(arguments)
    result = next((attributes[key] for key in _TOOL_RESULTS if attributes.get(key) is not None), None)
    if result is not None:
        call["result"] = parsed_text(result)
    if span.failed:
        call["status"] = "error"
    return call


_CALL_IDS: Final = ("gen_ai.tool.call.id", "tool_call.id", "ai.toolCall.id")
_ARGUMENTS: Final = (
    "gen_ai.tool.call.arguments",
    "tool_arguments",
    "ai.toolCall.args",
    "input.value",
    "tool.parameters",
)
_TOOL_RESULTS: Final = ("gen_ai.tool.call.result", "tool_response", "ai.toolCall.result", "output.value")


class _DeclaredTool(Struct):
    """A tool in the request parameters of a model's span."""

    name: str


def output_tools_of(span: TraceSpan) -> set[str]:
    """The names of the tools by whose call a model gives its answer, as pydantic-ai declares them in a span."""
    declared = as_mapping(parsed_text(span.attributes.get("model_request_parameters")))
    return {tool.name for tool in fit_items(_DeclaredTool, declared.get("output_tools"))}


def documents_of(span: TraceSpan) -> list[str]:
    """The passages that a retrieval span found, in order."""
    documents = _nested(span.attributes, "retrieval").get("documents")
    documents = documents if documents is not None else parsed_text(span.attributes.get("gen_ai.retrieval.documents"))
    passages = []
    for entry in items_of(parsed_text(documents)):
        document = as_mapping(entry).get("document", entry)
        if text := as_text(document) or first_text(as_mapping(document), "content", "text", "page_content"):
            passages.append(text)
    return passages


def figures_of(span: TraceSpan) -> dict[str, Any]:
    """The figures of a model's span: ``input_tokens``, ``output_tokens``, ``cost_usd``, and its ``model``."""
    attributes = span.attributes
    figures: dict[str, Any] = {}
    for name, keys in _FIGURES.items():
        value = next((attributes[key] for key in keys if _is_amount(attributes.get(key))), None)
        if value is not None:
            figures[name] = value
    model = first_text(attributes, *_MODELS)
    return {**figures, "model": model} if model else figures


def _is_amount(value: Any) -> bool:
    """Whether a value of a model's span can be a token count or a cost."""
    return is_finite_number(value) and 0 <= value <= LARGEST


_FIGURES: Final[dict[str, tuple[str, ...]]] = {
    "input_tokens": (
        *("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
        *("ai.usage.inputTokens", "ai.usage.promptTokens", "llm.usage.prompt_tokens"),
    ),
    "output_tokens": (
        *("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
        *("ai.usage.outputTokens", "ai.usage.completionTokens", "llm.usage.completion_tokens"),
    ),
    "cost_usd": ("llm.cost.total", "gen_ai.usage.cost", "operation.cost"),
}
_MODELS: Final = (
    *("gen_ai.response.model", "gen_ai.request.model", "llm.model_name"),
    *("ai.response.model", "ai.model.id"),
)


def value_of(span: TraceSpan, which: Literal["input", "output"]) -> str:
    """The whole input or output of a span as text; empty where it has none."""
    names = {
        "input": ("input.value", "traceloop.entity.input"),
        "output": ("output.value", "final_result", "traceloop.entity.output"),
    }
    value = next((span.attributes[name] for name in names[which] if span.attributes.get(name) is not None), None)
    parsed = parsed_text(value)
    if len(fields := as_mapping(parsed)) == 1:  # one argument or field: what it holds
        (parsed,) = fields.values()
    return next(iter(fit_items(str, [parsed, value])), "")


def _nested(attributes: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The attributes of a span below a prefix as a tree: ``llm.input_messages.0.message.role`` and so on."""
    tree = dict(as_mapping(attributes.get(prefix)))
    for name, value in attributes.items():
        if not name.startswith(f"{prefix}."):
            continue
        *steps, last = name.split(".")[1:]
        place = tree
        for step in steps:
            below = place.get(step)
            if not isinstance(below, dict):
                below = place[step] = {}
            place = below
        if not isinstance(place.get(last), dict):
            place[last] = value
    return tree

"""Traces of OpenTelemetry: the source ``traces``, whose cases have what an application did as their predictions."""

__all__ = ("TracesSource", "case_of_spans", "judged_trace")

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from pytest_llmeval.core import Case, counted
from pytest_llmeval.data import CaseFile, FileSource
from pytest_llmeval.exchange.traces._conventions import (
    documents_of,
    figures_of,
    kind_of,
    output_tools_of,
    read_messages,
    tool_call_of,
    value_of,
)
from pytest_llmeval.exchange.traces._spans import SpanFile, TraceSpan, is_short, read_spans

_CONVERSATION: Final = ("gen_ai.conversation.id", "session.id", "gen_ai.thread.id", "ai.telemetry.metadata.sessionId")
_NO_ID: Final = re.compile(r"\s|[\x00-\x1f/\\:]")


@dataclass(frozen=True)
class TracesSource(FileSource):
    """Traces of OpenTelemetry, by its conventions for generative AI, by OpenInference, or of Vercel's AI SDK.

    A case has the first message of the user as its input, and as its prediction an object with ``answer``,
    ``messages``, ``tool_calls``, ``contexts``, ``usage`` and ``trace``, each as far as the spans say it. Traces in
    which no model, agent, tool or retrieval took part are ignored.

    Attributes:
        by: Whether a trace is a case, or a conversation over several traces (``gen_ai.conversation.id`` or
            ``session.id``).
        labels: Label to the attribute of a span, or of the resource, that holds it.
        service: The only service whose spans count; by default all.
    """

    format: ClassVar[str] = "traces"

    by: Literal["trace", "conversation"] = "trace"
    labels: Mapping[str, str] | None = None
    service: str | None = None

    def read(self, file: CaseFile) -> None:
        """Add the cases of a file of traces; see `FileSource.read`."""
        labels = self.labels or {}
        file_spans = read_spans(file.path, file.faults)
        groups = self._groups(file_spans)
        for name, traces in groups.items():
            spans = [span for trace in traces for span in file_spans.spans[trace]]
            spans = [span for span in spans if self.service is None or span.service == self.service]
            doubled = sum(file_spans.doubled.get(trace, 0) for trace in traces)
            case = case_of_spans(_NO_ID.sub("-", name), spans, labels, doubled)
            if case is not None:
                file.add(case)
        if not file.cases and not file.faults.count:
            number = counted(len(file_spans.spans), "trace")
            file.faults.add(0, 0, "", f"found {number}, none with a span of a model, an agent, a tool or a retrieval")

    def _groups(self, file_spans: SpanFile) -> dict[str, list[str]]:
        """Return, by the id of a case, its traces by time."""
        groups: dict[str, list[str]] = {}
        for trace, spans in file_spans.spans.items():
            name = trace or "no-trace"
            if self.by == "conversation":
                ids = (span.attributes.get(key) for span in spans for key in _CONVERSATION)
                name = next((id_ for id_ in ids if isinstance(id_, str) and id_), name)
            groups.setdefault(name, []).append(trace)
        for traces in groups.values():
            traces.sort(key=lambda trace: _begin(file_spans.spans[trace]))
        return groups


def judged_trace(case: Case) -> tuple[str, str] | None:
    """The first trace in a case's prediction and its root span; ``None`` if they have no ids of OpenTelemetry."""
    trace = case.prediction.get("trace") if isinstance(case.prediction, Mapping) else None
    if not isinstance(trace, Mapping):
        return None
    ids, root = trace.get("ids"), trace.get("root")
    if not (isinstance(ids, list) and ids and isinstance(root, str)):
        return None
    return (ids[0], root) if re.fullmatch("[0-9a-f]{32}", str(ids[0])) and re.fullmatch("[0-9a-f]{16}", root) else None


def _begin(spans: Iterable[TraceSpan]) -> int:
    """The start of the earliest span of a trace; 0 if no span has one."""
    return min((span.start for span in spans if span.start), default=0)


def case_of_spans(
    name: str, spans: Sequence[TraceSpan], labels: Mapping[str, str] | None = None, doubled: int = 0
) -> Case | None:
    """The events of spans as a case; ``None`` where no model, agent, tool or retrieval took part.

    Args:
        name: Id of the case.
        spans: Of one trace, or of the traces of a conversation, in any order.
        labels: Label to the attribute that holds it.
        doubled: How many spans there were more than once.
    """
    tree = _Tree(spans)
    if not any(tree.kinds.values()):
        return None
    prediction = tree.prediction()
    notes = [*([f"{counted(doubled, 'span')} twice in the file"] if doubled else []), *tree.notes()]
    prediction["trace"] = {
        "ids": list(dict.fromkeys(span.trace for span in tree.spans)),
        "root": tree.root,
        "spans": list(map(_summary, tree.spans)),
        **({"notes": notes} if notes else {}),
    }
    values = {label: tree.attribute(key) for label, key in (labels or {}).items()}
    return Case(
        name,
        tree.input(),
        prediction=prediction,
        labels={label: value for label, value in values.items() if value is not None},
        line=min(span.line for span in spans),
    )


def _summary(span: TraceSpan) -> dict[str, Any]:
    """A span as the trace of a prediction has it; what it says at length is among the prediction's parts."""
    long = sorted([*span.left_out, *(name for name, value in span.attributes.items() if not is_short(value))])
    summary: dict[str, Any] = {"name": span.name}
    if span.start and span.end >= span.start:
        summary["duration_s"] = round((span.end - span.start) / 1e9, 6)
    if span.failed:
        summary["failed"] = True
    summary["attributes"] = {name: value for name, value in span.attributes.items() if is_short(value)}
    return {**summary, **({"left_out": long} if long else {})}


class _Tree:
    """The spans of a trace in the order of their work, each with those above it."""

    def __init__(self, spans: Sequence[TraceSpan]) -> None:
        by_id = {span.id: span for span in spans}
        self.orphans = sum(1 for span in spans if span.parent and span.parent not in by_id)
        self.parents = {span.id: by_id.get(span.parent) for span in spans}
        self.early = sum(
            1 for span in spans if (above := self.parents[span.id]) is not None and 0 < span.start < above.start
        )
        ordered = sorted(enumerate(spans), key=lambda pair: (pair[1].start, pair[0]))
        self.spans = [span for _, span in ordered]
        kinds = {span.id: kind_of(span) for span in self.spans}
        self.kinds = {name: kind for name, kind in kinds.items() if kind != "other"}
        self.above = {span.id: self._above(span) for span in self.spans}
        models = self._of_kind("model")
        wrapped = {name for model in models for name in self.above[model.id]}
        self.models = [model for model in models if model.id not in wrapped]
        """Calls of models; one that another instrumentation has wrapped counts once."""
        self.agents = [span for span in self._of_kind("agent") if not any(map(self._is_agent, self.above[span.id]))]
        """Agents that no other agent called."""

    @property
    def root(self) -> str:
        """Id of the first span that belongs to no other."""
        return next((span.id for span in self.spans if self.parents[span.id] is None), self.spans[0].id)

    def _of_kind(self, kind: str) -> list[TraceSpan]:
        return [span for span in self.spans if self.kinds.get(span.id) == kind]

    def _is_agent(self, name: str) -> bool:
        return self.kinds.get(name) == "agent"

    def _above(self, span: TraceSpan) -> list[str]:
        """Return the ids of the spans around a span, the nearest first; a circle ends."""
        names: list[str] = []
        seen = {span.id}
        above = self.parents[span.id]
        while above is not None and above.id not in seen:
            names.append(above.id)
            seen.add(above.id)
            above = self.parents[above.id]
        return names

    def _is_outermost(self, span: TraceSpan) -> bool:
        """Whether no agent that another one called made a call."""
        return sum(map(self._is_agent, self.above[span.id])) <= 1

    def notes(self) -> list[str]:
        """The oddities of the spans."""
        notes = []
        if self.orphans:
            notes.append(f"{counted(self.orphans, 'span')} whose parent is not in the file")
        if self.early:
            notes.append(f"{counted(self.early, 'span')} that began before the parent, by the clocks")
        return notes

    def attribute(self, name: str) -> str | None:
        """Return an attribute of the first span that has it, as text."""
        if name == "service.name":
            return next((span.service for span in self.spans if span.service), None)
        values = (span.attributes[name] for span in self.spans if span.attributes.get(name) is not None)
        value = next(values, None)
        return None if value is None else value if isinstance(value, str) else str(value)

    def input(self) -> Any:
        """The first question of the user; ``None`` where the spans do not say."""
        for message in self._messages():
            if message["role"] == "user" and message.get("content"):
                return message["content"]
        return next((text for span in self._whole() if (text := value_of(span, "input"))), None)

    def _whole(self) -> list[TraceSpan]:
        """Return the spans that may have input and output as a whole: agents, models, and those around them."""
        around = {name for span in [*self.agents, *self.models] for name in self.above[span.id]}
        return [span for span in self.spans if span.id in around or span in self.agents or span in self.models]

    def _messages(self) -> list[dict[str, Any]]:
        """Return the conversation of the outermost agents with their models, or of models that no agent called."""
        messages: list[dict[str, Any]] = []
        asking = {name for model in self.models if self._is_outermost(model) for name in self.above[model.id]}
        silent = [agent for agent in self.agents if agent.id not in asking or not self._models_speak(agent)]
        for span in sorted([*silent, *filter(self._is_outermost, self.models)], key=self.spans.index):
            inputs, answered = read_messages(span)
            messages = _continued(messages, inputs, answered)
        return messages

    def _models_speak(self, agent: TraceSpan) -> bool:
        return any(any(read_messages(model)) for model in self.models if agent.id in self.above[model.id])

    def prediction(self) -> dict[str, Any]:
        """Return the parts of the prediction, as far as the spans say them."""
        messages = self._messages()
        parts: dict[str, Any] = {}
        last = next((message for message in reversed(messages) if message["role"] == "assistant"), None)
        outputs = (text for span in self._whole() if (text := value_of(span, "output")))
        answer = last.get("content") if last is not None and last is messages[-1] else None
        if answer is None:
            answer = next(outputs, None)
        if answer is not None:
            is_medium = isinstance(answer, list) and len(answer) == 1
            parts["answer"] = answer[0] if is_medium else answer
        if messages:
            parts["messages"] = messages
        calls = self._tool_calls(messages)
        if calls or messages:
            parts["tool_calls"] = calls
        retrievals = self._of_kind("retrieval")
        contexts = list(dict.fromkeys(text for retrieval in retrievals for text in documents_of(retrieval)))
        if contexts or any("retrieval.documents" in retrieval.attributes for retrieval in retrievals):
            parts["contexts"] = contexts
        usage = self._usage()
        if usage:
            parts["usage"] = usage
        return parts

    def _tool_calls(self, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the calls of tools: those of messages with what spans know of them, then those of spans alone."""
        done = [(span, call) for span in self._of_kind("tool") if (call := tool_call_of(span)) is not None]
        wrapped = {(name, call["name"]) for span, call in done for name in self.above[span.id]}
        spans = [call for span, call in done if (span.id, call["name"]) not in wrapped and self._is_outermost(span)]
        results = {
            message["tool_call_id"]: message
            for message in messages
            if message["role"] == "tool" and "tool_call_id" in message
        }
        calls: list[dict[str, Any]] = []
        answering = {name for model in self.models for name in output_tools_of(model)}
        for request in (call for message in messages for call in message.get("tool_calls", ())):
            if request["name"] in answering:
                continue
            own = request.get("id")
            ran = next((span for span in spans if _is_same(span, request)), None)
            if ran is not None:
                spans.remove(ran)
            call = {**request, **(ran or {})}
            if own in results:
                call.setdefault("result", results[own]["content"])
                if results[own].get("status") == "error":
                    call["status"] = "error"
            calls.append(call)
        return [*calls, *spans]

    def _usage(self) -> dict[str, Any]:
        """Return tokens and cost of all calls of models, the model of the last one, and the seconds it took."""
        figures = [figures_of(model) for model in self.models]
        if not any(figures):
            figures = [figures_of(agent) for agent in self.agents]
        usage: dict[str, Any] = {}
        for name in ("input_tokens", "output_tokens", "cost_usd"):
            amounts = [figure[name] for figure in figures if name in figure]
            if amounts and len(amounts) == len(figures):  # a sum of some is no sum
                usage[name] = sum(amounts)
        if models := [figure["model"] for figure in figures if "model" in figure]:
            usage["model"] = models[-1]
        begins = [span.start for span in self.spans if span.start]
        ends = [span.end for span in self.spans if span.end]
        if begins and ends and max(ends) >= min(begins):
            usage["latency_s"] = round((max(ends) - min(begins)) / 1e9, 6)
        return usage


def _is_same(ran: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Whether a tool's span is that of a model's tool call: by id, or by name and arguments if one has no id."""
    if "id" in ran and "id" in request:
        return bool(ran["id"] == request["id"])
    same: Callable[[str], bool] = lambda name: name not in ran or ran[name] == request.get(name)  # noqa: E731
    return same("name") and same("arguments")


def _continued(
    messages: list[dict[str, Any]], inputs: Sequence[dict[str, Any]], answered: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """A traced conversation after one more call of the model, which got all of it, a part, or something new."""
    if len(inputs) >= len(messages) and all(map(_equal, messages, inputs)):
        return [*inputs, *answered]
    known = messages[:]
    new = []
    for message in inputs:
        place = next((place for place, earlier in enumerate(known) if _equal(earlier, message)), None)
        if place is None:
            new.append(message)
        else:
            del known[place]
    return [*messages, *new, *answered]


def _equal(message: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two traced messages are the same, though one convention may drop ids or empty contents."""
    return (
        message["role"] == other["role"]
        and (message.get("content") or "") == (other.get("content") or "")
        and (
            [call.get("name") for call in message.get("tool_calls", ())]
            == [call.get("name") for call in other.get("tool_calls", ())]
        )
    )

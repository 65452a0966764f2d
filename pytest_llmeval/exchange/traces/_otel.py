"""The SDK of OpenTelemetry.

Scores are events by the conventions for generative AI, and a run is a span.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from msgspec import structs

from pytest_llmeval._version import __version__
from pytest_llmeval.core import AnyError, Case, MissingExtraError, Parts, counted
from pytest_llmeval.exchange.traces import case_of_spans, judged_trace
from pytest_llmeval.exchange.traces._spans import Event, TraceSpan
from pytest_llmeval.run import json_like
from pytest_llmeval.services import Redactor

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.trace import Tracer

    from pytest_llmeval.reports import RunReport
    from pytest_llmeval.run import Answers, Job, Next, Suites

_EVENT: Final = "gen_ai.evaluation.result"
_SCOPE: Final = "pytest-llmeval-suite"
_BATCH: Final = 500
_ANNOTATION: Final = {
    "gen_ai.evaluation.name": "annotation.name",
    "gen_ai.evaluation.score.value": "annotation.score",
    "gen_ai.evaluation.score.label": "annotation.label",
    "gen_ai.evaluation.explanation": "annotation.explanation",
}
"""Attributes of events to those of annotations in OpenInference."""

JudgedTrace: TypeAlias = tuple[str, str]
"""Ids of a trace and of its first span, in hexadecimal digits."""


def send_scores(report: "RunReport", suites: "Suites", *, style: str = "events", texts: bool = False) -> str:
    """Send the scores of a run to the collector that the environment names (``OTEL_EXPORTER_OTLP_ENDPOINT``).

    The scores of a case that judges a trace become a part of that trace.

    Args:
        report: The run.
        suites: Its suites.
        style: ``events`` of OpenTelemetry (``gen_ai.evaluation.result``), or ``annotations`` of OpenInference.
        texts: Whether to send the findings of evaluators.

    Returns:
        A line for the summary: what was sent, or why not.
    """
    try:
        from opentelemetry.sdk.resources import Resource
    except ImportError as error:
        return f"scores NOT sent: {MissingExtraError('--llmeval-otel', 'otel', error)}"
    resource = Resource.create({"telemetry.distro.name": _SCOPE, "telemetry.distro.version": __version__})
    scores = list(_scores(report, _judged_traces(report, suites), texts=texts))
    try:
        send = _send_events if style == "events" else _send_annotations
        failed = send(scores, report, resource)
        failed = _send_run(report, resource) or failed
    except Exception as error:  # noqa: BLE001 (an exporter must not change how the run ends)
        return f"scores NOT sent by --llmeval-otel: {Redactor().line(AnyError(error).text)}"
    if failed:
        return "scores NOT sent by --llmeval-otel: the collector did not take them (see OTEL_EXPORTER_OTLP_ENDPOINT)"
    return f"{counted(len(scores), 'score')} sent by --llmeval-otel"


def _judged_traces(report: "RunReport", suites: "Suites") -> dict[tuple[str, str], JudgedTrace]:
    """The traces that cases judge, by suite file and case id, to which scores are sent."""
    return {
        (suite.path, case.id): trace
        for suite in report.suites
        if not suite.variant and suite.path not in report.faults
        for case in suites.read(suites.root / suite.path).cases
        if (trace := judged_trace(case)) is not None
    }


class _CaseScore(NamedTuple):
    """A score of a case to send to OpenTelemetry, and the trace that the case judges."""

    attributes: dict[str, Any]
    trace: JudgedTrace | None


def _scores(report: "RunReport", judged: Mapping[tuple[str, str], JudgedTrace], *, texts: bool) -> Iterator[_CaseScore]:
    """Yield each score of each case to send to OpenTelemetry, or the error type of a failed evaluator."""
    for suite in report.suites:
        for case in suite.cases:
            undefined = case.details.get("undefined", {})
            names = case.metrics or (suite.metrics if case.outcome == "errored" else ())
            for metric in names:
                value = case.metrics.get(metric)
                attributes: dict[str, Any] = {
                    "gen_ai.evaluation.name": metric,
                    "llmeval.suite": suite.base_name,
                    "llmeval.case": case.id,
                    "llmeval.outcome": case.outcome,
                }
                if suite.variant:
                    attributes["llmeval.system"] = suite.variant
                if value is not None:
                    attributes["gen_ai.evaluation.score.value"] = float(value)
                elif case.outcome == "errored" and metric not in undefined:
                    attributes["error.type"] = _error_type(case.reason or "")
                else:
                    continue  # nothing to judge is no result
                if metric in case.unmet:
                    attributes["gen_ai.evaluation.score.label"] = "fail"
                if texts and (findings := "\n".join(case.findings)):
                    attributes["gen_ai.evaluation.explanation"] = findings
                yield _CaseScore(attributes, judged.get((suite.path, case.id)))


def _error_type(reason: str) -> str:
    """The type of an evaluator's error for OpenTelemetry, from its reason; ``_OTHER`` if it names none."""
    name = reason.partition(":")[0]
    return name if name.isidentifier() else "_OTHER"


def _moment(report: "RunReport") -> int:
    """The end of a reported run in nanoseconds since 1970, as the time of the scores that are sent."""
    return int((datetime.fromisoformat(report.run.started_at).timestamp() + report.run.duration_s) * 1e9)


def _send_events(scores: Sequence[_CaseScore], report: "RunReport", resource: "Resource") -> bool:
    """Send the scores of cases as events of OpenTelemetry; return whether that failed."""
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import (
        InMemoryLogRecordExporter,
        LogRecordExportResult,
        SimpleLogRecordProcessor,
    )

    memory = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]  # of the library
    provider = LoggerProvider(resource, shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(memory))
    logger = provider.get_logger(_SCOPE, __version__)
    now = _moment(report)
    for score in scores:
        record = LogRecord(
            timestamp=now,
            context=_within(score.trace),
            event_name=_EVENT,
            severity_number=SeverityNumber.INFO,
            attributes=score.attributes,
        )
        logger.emit(record)
    return _export(OTLPLogExporter(), memory.get_finished_logs(), LogRecordExportResult.SUCCESS)


def _within(trace_ids: JudgedTrace | None) -> "Context | None":
    """The context of a judged trace, for log records and spans that belong to it."""
    if trace_ids is None:
        return None
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    trace, span = (int(id_, 16) for id_ in trace_ids)
    known = SpanContext(trace, span, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return set_span_in_context(NonRecordingSpan(known))


def _send_annotations(scores: Sequence[_CaseScore], report: "RunReport", resource: "Resource") -> bool:
    """Send the scores of cases as annotations of OpenInference; return whether that failed."""
    tracer, memory = _tracer(resource)
    now = _moment(report)
    for score in scores:
        attributes = {_ANNOTATION.get(name, name): value for name, value in score.attributes.items()}
        marked = {"openinference.span.kind": "EVALUATOR", "annotation.annotator_kind": "CODE", **attributes}
        name = f"evaluation {score.attributes['gen_ai.evaluation.name']}"
        span = tracer.start_span(name, _within(score.trace), attributes=marked, start_time=now)
        span.end(now)
    return _export_spans(memory)


def _send_run(report: "RunReport", resource: "Resource") -> bool:
    """Send a span for the whole run to the collector, with an event for each gate."""
    from opentelemetry.trace import StatusCode

    tracer, memory = _tracer(resource)
    end = _moment(report)
    attributes = {
        "llmeval.version": report.run.version,
        **({"vcs.ref.head.revision": report.run.commit} if report.run.commit else {}),
    }
    span = tracer.start_span("llmeval run", attributes=attributes, start_time=end - int(report.run.duration_s * 1e9))
    failed = bool(report.faults)
    for suite in report.suites:
        failed = failed or suite.failed
        for gate in suite.gates:
            known = {"llmeval.suite": suite.suite, "llmeval.gate": gate.gate, "llmeval.outcome": gate.outcome}
            span.add_event("llmeval.gate", {**known, "llmeval.reason": gate.reason}, end)
    span.set_status(StatusCode.ERROR if failed else StatusCode.OK)
    span.end(end)
    return _export_spans(memory)


def _tracer(resource: "Resource") -> "tuple[Tracer, InMemorySpanExporter]":
    """A tracer for the scores of a run, and the memory that its spans go to."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    memory = InMemorySpanExporter()
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    return provider.get_tracer(_SCOPE, __version__), memory


def _export_spans(memory: "InMemorySpanExporter") -> bool:
    """Send the spans in memory to the collector of a run's scores; return whether that failed."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    return _export(OTLPSpanExporter(), memory.get_finished_spans(), SpanExportResult.SUCCESS)


def _export(exporter: Any, finished: Sequence[Any], success: object) -> bool:
    """Send spans or log records of a run's scores in batches; return whether that failed."""
    try:
        batches = (finished[start : start + _BATCH] for start in range(0, len(finished), _BATCH))
        return any(exporter.export(batch) is not success for batch in batches)
    finally:
        exporter.shutdown()


_PARTS: Final = ("answer", "messages", "tool_calls", "contexts", "usage", "trace")


async def answer_traced(job: "Job", ask: "Next") -> "Answers":
    """Return the answers of the next link with the parts that only the spans of the target tell; see `Registry.extend`.

    Raises:
        MissingExtraError: The SDK of OpenTelemetry is not installed.
    """
    call = TracedCall()
    answers = await ask(structs.replace(job, around=call.collecting))
    return {name: _with_spans(answer, call) if isinstance(answer, Case) else answer for name, answer in answers.items()}


def _with_spans(case: Case, call: "TracedCall") -> Case:
    """Add the spans of a call to an answered case; an object of the user's that is a record stays itself."""
    joined = call.joined(case.prediction)
    if joined is case.prediction:
        return case
    form, held = json_like(joined), case.objects.get("prediction")
    if held is None:
        return case.answered(form)
    is_record = isinstance(held.form, Mapping) and not isinstance(held.value, Mapping)
    value = held.value if is_record else call.joined(held.value)
    return case.with_object("prediction", form, value)


class TracedCall:
    """One call of a target, with the spans that belong to it.

    A span belongs to the call within which it began: OpenTelemetry passes its context on to coroutines and, where the
    application does, to threads.

    Raises:
        MissingExtraError: The SDK of OpenTelemetry is not installed.
    """

    def __init__(self) -> None:
        self._tracer = _own_tracer()
        self._spans: list[Any] = []

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Collect the spans that begin in here."""
        with self._tracer.start_as_current_span("llmeval case") as span:
            trace = span.get_span_context().trace_id
            _PROCESSOR.open[trace] = self._spans
            try:
                yield
            finally:
                del _PROCESSOR.open[trace]

    def joined(self, answer: Any) -> Any:
        """Return an answer with the spans, and the parts that only they tell."""
        case = case_of_spans("live", [_plain(span) for span in self._spans]) if self._spans else None
        if case is None:
            return answer
        parts = {name: case.prediction[name] for name in _PARTS if name in case.prediction}
        parts["trace"].pop("notes", None)  # the span around the call is not among them
        parts.get("usage", {}).pop("latency_s", None)  # the call itself is measured
        own = answer if isinstance(answer, Mapping) else {} if answer is None else {"answer": answer}
        if Parts.without(own, None):  # a record, which is itself the answer
            parts.pop("answer", None)
        return {**parts, **own}


class _Processor:
    """A processor of OpenTelemetry that keeps the spans of the target's calls under way."""

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


def _own_tracer() -> "Tracer":
    """The tracer of the application's own provider; if it has none, it gets a provider that sends nothing."""
    with MissingExtraError.unless_installed("a target with 'traces: true'", "otel"):
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
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
    """A span of OpenTelemetry's SDK as a span of a trace file."""
    return TraceSpan(
        f"{span.context.trace_id:032x}",
        f"{span.context.span_id:016x}",
        "" if span.parent is None else f"{span.parent.span_id:016x}",
        span.name,
        span.start_time or 0,
        span.end_time or 0,
        _listed(span.attributes),
        events=[Event(event.name, _listed(event.attributes)) for event in span.events],
        failed=span.status.status_code.name == "ERROR",
    )


def _listed(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    """The attributes of a span of OpenTelemetry's SDK, with lists for tuples."""
    values: Iterable[tuple[str, Any]] = (attributes or {}).items()
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values}

"""Scores as telemetry: events by OpenTelemetry's conventions for generative AI, and a span for the run."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from pytest_llmeval._version import __version__
from pytest_llmeval.core.errors import MissingExtraError, format_error
from pytest_llmeval.core.wording import counted
from pytest_llmeval.services.secrets import Redactor

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.trace import Tracer

    from pytest_llmeval.reports.form import RunReport

_EVENT: Final = "gen_ai.evaluation.result"
_SCOPE: Final = "pytest-llmeval-suite"
_AT_ONCE: Final = 500


JudgedTrace: TypeAlias = tuple[str, str]
"""Ids of a trace and of its first span, in hexadecimal digits."""


def send_scores(
    report: "RunReport", judged: Mapping[tuple[str, str], JudgedTrace], *, style: str = "events", texts: bool = False
) -> str:
    """Send the scores of a run to the collector that the environment names (``OTEL_EXPORTER_OTLP_ENDPOINT``).

    Args:
        report: The run.
        judged: Suite file and case id to the trace that the case judges; its scores become a part of that trace.
        style: ``events`` of OpenTelemetry (``gen_ai.evaluation.result``), or ``annotations`` of OpenInference.
        texts: Whether evaluators' words about answers are sent, too.

    Returns:
        What became of it, in a line for people.

    Raises:
        MissingExtraError: The SDK of OpenTelemetry or its exporter is not installed.
    """
    try:
        from opentelemetry.sdk.resources import Resource
    except ImportError as error:
        raise MissingExtraError("--llmeval-otel", "otel", error) from error
    resource = Resource.create({"telemetry.distro.name": _SCOPE, "telemetry.distro.version": __version__})
    scores = list(_scores(report, judged, texts=texts))
    try:
        send = _send_events if style == "events" else _send_annotations
        failed = send(scores, report, resource)
        failed = _send_run(report, resource) or failed
    except Exception as error:  # noqa: BLE001 (an exporter must not change how the run ends)
        return f"scores NOT sent by --llmeval-otel: {Redactor().line(format_error(error))}"
    if failed:
        return "scores NOT sent by --llmeval-otel: the collector did not take them (see OTEL_EXPORTER_OTLP_ENDPOINT)"
    return f"{counted(len(scores), 'score')} sent by --llmeval-otel"


class _CaseScore(NamedTuple):
    attributes: dict[str, Any]
    of: JudgedTrace | None


def _scores(report: "RunReport", judged: Mapping[tuple[str, str], JudgedTrace], *, texts: bool) -> Iterator[_CaseScore]:
    """Yield each score of each case, and why there is none where an evaluator failed."""
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
                if texts and (said := "\n".join(case.findings)):
                    attributes["gen_ai.evaluation.explanation"] = said
                yield _CaseScore(attributes, judged.get((suite.path, case.id)))


def _error_type(reason: str) -> str:
    name = reason.partition(":")[0]
    return name if name.isidentifier() else "_OTHER"


def _moment(report: "RunReport") -> int:
    """Return when the run ended, in nanoseconds since 1970."""
    return int((datetime.fromisoformat(report.run.started_at).timestamp() + report.run.duration_s) * 1e9)


def _send_events(scores: Sequence[_CaseScore], report: "RunReport", resource: "Resource") -> bool:
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor
    from opentelemetry.sdk._logs.export import LogRecordExportResult

    records: list[Any] = []

    class Collecting(LogRecordProcessor):
        def on_emit(self, log_record: Any) -> None:
            records.append(log_record)

        def shutdown(self) -> None:
            """Nothing is kept."""

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            del timeout_millis
            return True

    provider = LoggerProvider(resource, shutdown_on_exit=False)
    provider.add_log_record_processor(Collecting())
    logger = provider.get_logger(_SCOPE, __version__)
    now = _moment(report)
    for each in scores:
        made = LogRecord(
            timestamp=now,
            context=_within(each.of),
            event_name=_EVENT,
            severity_number=SeverityNumber.INFO,
            attributes=each.attributes,
        )
        logger.emit(made)
    exporter = OTLPLogExporter()
    try:
        parts = (records[start : start + _AT_ONCE] for start in range(0, len(records), _AT_ONCE))
        return any(exporter.export(part) is not LogRecordExportResult.SUCCESS for part in parts)
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]


def _within(of: JudgedTrace | None) -> "Context | None":
    """Return the context in which something becomes a part of a trace."""
    if of is None:
        return None
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    trace, span = (int(each, 16) for each in of)
    known = SpanContext(trace, span, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return set_span_in_context(NonRecordingSpan(known))


def _send_annotations(scores: Sequence[_CaseScore], report: "RunReport", resource: "Resource") -> bool:
    tracer, memory = _tracer(resource)
    now = _moment(report)
    names = {"gen_ai.evaluation.name": "name", "gen_ai.evaluation.score.value": "score"}
    names |= {"gen_ai.evaluation.score.label": "label", "gen_ai.evaluation.explanation": "explanation"}
    for each in scores:
        given = {f"annotation.{names[name]}": value for name, value in each.attributes.items() if name in names}
        rest = {name: value for name, value in each.attributes.items() if name not in names}
        marked = {"openinference.span.kind": "EVALUATOR", "annotation.annotator_kind": "CODE", **given, **rest}
        name = f"evaluation {each.attributes['gen_ai.evaluation.name']}"
        span = tracer.start_span(name, _within(each.of), attributes=marked, start_time=now)
        span.end(now)
    return _export(memory)


def _send_run(report: "RunReport", resource: "Resource") -> bool:
    """Send a span for the run, with an event for each gate."""
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
    return _export(memory)


def _tracer(resource: "Resource") -> "tuple[Tracer, InMemorySpanExporter]":
    """Return what makes spans, and where they are kept."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    memory = InMemorySpanExporter()
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    return provider.get_tracer(_SCOPE, __version__), memory


def _export(memory: "InMemorySpanExporter") -> bool:
    """Send the spans that were kept; return whether that failed."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    spans = memory.get_finished_spans()
    exporter = OTLPSpanExporter()
    try:
        parts = (spans[start : start + _AT_ONCE] for start in range(0, len(spans), _AT_ONCE))
        return any(exporter.export(part) is not SpanExportResult.SUCCESS for part in parts)
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]

"""Spans of traces, read from OTLP JSON and from what the SDKs of OpenTelemetry print."""

__all__ = ("Event", "SpanFile", "TraceSpan", "parse_json", "read_spans")

import base64
import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.data.files.documents import MAX_LINE_BYTES
from pytest_llmeval.data.files.places import FaultLog
from pytest_llmeval.data.files.text import check_regular

_NANOSECONDS: Final = 1_000_000_000
_LATEST: Final = 2**63
_DIGITS: Final = 20
_MEANT: Final = re.compile(
    r"gen_ai\.|ai\.|llm\.|openinference\.|input\.|output\.|retrieval\.|reranker\.|embedding\.|tool|session\.|"
    r"pydantic_ai\.|all_messages|final_result|traceloop\.|agent|operation\.|error\.|exception\.|metadata|user\.id|graph\."
)
"""Attributes that tell what a model, an agent or a tool did; others are kept only if a suite names them as labels."""

_EXPECTED: Final = (
    "expected spans: OTLP JSON (resourceSpans), lines of it, or spans as the SDKs of OpenTelemetry write them"
)
_RESOURCES: Final = ("resourceSpans", "resource_spans", "resourceLogs", "resource_logs")
_SCOPES: Final = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "scopeLogs", "scope_logs")
_LOGS: Final = ("logRecords", "log_records")


class Event(NamedTuple):
    """An event of a span, or a log record that belongs to one.

    Attributes:
        name: Such as ``gen_ai.choice``.
        attributes: By name; the fields of a log's body are among them.
    """

    name: str
    attributes: Mapping[str, Any]


class TraceSpan(Struct):
    """One span.

    Attributes:
        trace: Id of its trace; empty where the file does not say.
        id: Its own.
        parent: Id of the span that it belongs to; empty for the first one of a trace.
        name: What it is called.
        start: Nanoseconds since 1970; 0 where the file does not say.
        end: As above.
        attributes: What it says of a model, an agent or a tool, and what labels need.
        events: In the order of the file.
        failed: Whether its status is an error.
        service: Name of the service that wrote it.
        line: Line of the file, counted from 1.
    """

    trace: str
    id: str
    parent: str = ""
    name: str = ""
    start: int = 0
    end: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    failed: bool = False
    service: str = ""
    line: int = 1


class SpanFile(Struct):
    """What a file of traces holds.

    Attributes:
        spans: By trace id, in the order of the file; a span that is there twice is kept once.
        doubled: Trace id to how many spans were there more than once.
    """

    spans: dict[str, list[TraceSpan]] = field(default_factory=dict)
    doubled: dict[str, int] = field(default_factory=dict)


def read_spans(path: Path, faults: FaultLog, keep: Iterable[str] = ()) -> SpanFile:
    """Read a file of traces.

    Args:
        path: One JSON document, or a document on each line. Lines are read one by one.
        faults: Gets what cannot be read; everything else survives.
        keep: Names of further attributes that are wanted.

    Raises:
        SuiteError: The file cannot be opened.
    """
    check_regular(path, faults.file)
    reader = _Reader(faults, frozenset(keep))
    try:
        with path.open("rb") as stream:
            # A cut line at the beginning must not make one document of many lines.
            beginning = [stream.readline(MAX_LINE_BYTES) for _ in range(2)]
            if beginning[0].strip() not in (b"[", b"{") and any(map(_is_document, beginning)):
                stream.seek(0)
                for number, line in enumerate(stream, 1):
                    reader.add_line(number, line)
            else:
                stream.seek(0)
                reader.add_line(1, stream.read())
    except OSError as error:
        raise SuiteError([Fault(faults.file, 0, 0, "", f"cannot be read: {error.strerror}")]) from None
    return reader.finished()


def _is_document(line: bytes) -> bool:
    """Return whether a line is a whole document, so that each line is one."""
    try:
        return isinstance(json.loads(line), dict | list)
    except (ValueError, RecursionError):
        return False


class _Reader:
    """Collects the spans of a file."""

    def __init__(self, faults: FaultLog, keep: frozenset[str]) -> None:
        self.faults = faults
        self.keep = keep
        self.spans: dict[tuple[str, str], TraceSpan] = {}
        self.doubled: dict[str, int] = {}
        self.logs: list[tuple[str, str, Event]] = []

    def add_line(self, number: int, line: bytes) -> None:
        """Add the spans of a document."""
        text = line.strip().removeprefix(b"\xef\xbb\xbf")
        if not text:
            return
        try:
            document = parse_json(text)
        except UnicodeDecodeError:
            self.faults.add(number, 1, "", f"found bytes that are no UTF-8, {_EXPECTED}")
        except json.JSONDecodeError as error:
            at = number + error.lineno - 1
            self.faults.add(at, error.colno, "", f"found a document that is cut or no JSON ({error.msg}), {_EXPECTED}")
        except (ValueError, RecursionError):
            self.faults.add(number, 1, "", f"found a document with numbers or nesting beyond measure, {_EXPECTED}")
        else:
            if not self._add(document, number, "", {}):
                self.faults.add(number, 1, "", f"found {_brief(document)}, {_EXPECTED}")

    def finished(self) -> SpanFile:
        """Return the spans, with the events that came as logs."""
        found = SpanFile(doubled=self.doubled)
        for trace, span, event in self.logs:
            if (trace, span) in self.spans:
                self.spans[trace, span].events.append(event)
        for each in self.spans.values():
            found.spans.setdefault(each.trace, []).append(each)
        return found

    def _add(self, found: Any, line: int, path: str, resource: Mapping[str, Any]) -> bool:
        """Add what a value holds; return whether it is of a known form."""
        if isinstance(found, list):
            known = [self._add(each, line, f"{path}[{place}]", resource) for place, each in enumerate(found)]
            return all(known)
        if not isinstance(found, Mapping):
            return False
        for names, add in (
            (_RESOURCES, self._add_resource),
            (_SCOPES, self._add_resource),
            (("spans",), self._add_listed),
            (_LOGS, self._add_log),
        ):
            for name in names:
                if isinstance(within := found.get(name), list):
                    for place, each in enumerate(within):
                        add(each, line, f"{path}.{name}[{place}]".lstrip("."), resource)
                    return True
        return self._add_span(found, line, path, resource)

    def _add_resource(self, found: Any, line: int, path: str, resource: Mapping[str, Any]) -> None:
        if isinstance(found, Mapping):
            of = found.get("resource")
            resource = _attributes(of.get("attributes")) if isinstance(of, Mapping) else resource
        if not isinstance(found, Mapping) or not self._add(found, line, path, resource):
            self._fault(line, path, found)

    def _add_log(self, found: Any, line: int, path: str, resource: Mapping[str, Any]) -> None:
        del resource
        if not isinstance(found, Mapping):
            self._fault(line, path, found)
            return
        attributes = _attributes(found.get("attributes"))
        body = _value(found.get("body"))
        name = found.get("eventName") or attributes.get("event.name")
        if isinstance(name, str):
            fields = body if isinstance(body, Mapping) else {} if body is None else {"content": body}
            self.logs.append(
                (_hex(found.get("traceId")), _hex(found.get("spanId")), Event(name, {**fields, **attributes}))
            )

    def _add_listed(self, found: Any, line: int, path: str, resource: Mapping[str, Any]) -> None:
        if not isinstance(found, Mapping) or not self._add_span(found, line, path, resource):
            self._fault(line, path, found)

    def _add_span(self, found: Mapping[str, Any], line: int, path: str, resource: Mapping[str, Any]) -> bool:
        context = next(
            (found[name] for name in ("context", "spanContext") if isinstance(found.get(name), Mapping)), found
        )
        trace = _hex(next((context[name] for name in ("traceId", "trace_id") if context.get(name)), ""))
        own = _hex(next((context[name] for name in ("spanId", "span_id") if context.get(name)), ""))
        given: Any = found.get("attributes")
        if not own and given is None and any(_MEANT.match(name) for name in found if "." in name):
            given, own, trace = found, f"{line}{path}", trace or f"line{line}{path}"  # an object of attributes alone
        if not own:
            return False
        attributes = _attributes(given)
        status = found.get("status")
        parent = found.get("parentSpanId", found.get("parent_id", found.get("parentSpanContext")))
        if isinstance(parent, Mapping):
            parent = parent.get("spanId")
        span = TraceSpan(
            trace,
            own,
            _hex(parent),
            str(found.get("name", "")),
            _time(found, "start"),
            _time(found, "end"),
            {name: each for name, each in attributes.items() if name in self.keep or _MEANT.match(name)},
            [_event(each) for each in _listed(found.get("events")) if isinstance(each, Mapping)],
            isinstance(status, Mapping) and _is_error(status.get("code", status.get("status_code"))),
            str(_resource_of(found, resource).get("service.name", "")),
            line,
        )
        if "error.type" in attributes:
            span.failed = True
        known = self.spans.get((trace, own))
        if known is not None:
            self.doubled[trace] = self.doubled.get(trace, 0) + 1
        if known is None or _weight(span) > _weight(known):
            self.spans[trace, own] = span
        return True

    def _fault(self, line: int, path: str, found: Any) -> None:
        self.faults.add(line, 1, path, f"found {_brief(found)}, expected a span with traceId, spanId and attributes")


def _weight(span: TraceSpan) -> tuple[bool, int, int]:
    """Return what makes one of two copies of a span the better one: that it has ended, and what it says."""
    return span.end > 0, len(span.attributes), len(span.events)


def _resource_of(span: Mapping[str, Any], resource: Mapping[str, Any]) -> Mapping[str, Any]:
    own = span.get("resource")
    return _attributes(own.get("attributes")) if isinstance(own, Mapping) else resource


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _brief(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"an object with {', '.join(map(str, list(value)[:5])) or 'no keys'}"
    return {list: "a list of something else", str: "a text", type(None): "null"}.get(type(value), "a number")


def _event(found: Mapping[str, Any]) -> Event:
    return Event(str(found.get("name", "")), _attributes(found.get("attributes")))


def _is_error(code: Any) -> bool:
    return code in (2, "2") or (isinstance(code, str) and code.rpartition("_")[2].upper() == "ERROR")


def _hex(value: Any) -> str:
    return value.lower().removeprefix("0x") if isinstance(value, str) else ""


def _attributes(given: Any) -> dict[str, Any]:
    """Return attributes by name, from OTLP's list of keys and values or from an object."""
    if isinstance(given, Mapping):
        return {str(name): _value(each) if _is_any_value(each) else each for name, each in given.items()}
    return {
        each["key"]: _value(each.get("value"))
        for each in _listed(given)
        if isinstance(each, Mapping) and isinstance(each.get("key"), str)
    }


_KINDS: Final = frozenset(
    ("stringValue", "boolValue", "intValue", "doubleValue", "arrayValue", "kvlistValue", "bytesValue")
)


def _is_any_value(value: Any) -> bool:
    return isinstance(value, Mapping) and len(value) == 1 and not _KINDS.isdisjoint(value)


def _value(given: Any) -> Any:
    """Return the plain value of OTLP's ``AnyValue``."""
    if not _is_any_value(given):
        return given if not isinstance(given, Mapping) or given else None
    ((kind, value),) = given.items()
    within = value.get("values") if isinstance(value, Mapping) else None
    match kind:
        case "arrayValue":
            return [_value(each) for each in _listed(within)]
        case "kvlistValue":
            return _attributes(within)
        case "intValue" | "bytesValue":
            try:
                return int(value) if kind == "intValue" else base64.b64decode(value).decode("utf-8", "replace")
            except (TypeError, ValueError):
                return None
    return value


def _time(found: Mapping[str, Any], which: str) -> int:
    """Return a time of a span in nanoseconds since 1970; 0 where there is none."""
    for name in (f"{which}TimeUnixNano", f"{which}_time_unix_nano", f"{which}_time", f"{which}Time"):
        value = found.get(name)
        match value:
            case bool() | None:
                continue
            case int():
                return value if 0 < value < _LATEST else 0
            case str() if value.isdecimal():
                return int(value) if len(value) < _DIGITS else 0
            case str():
                return _moment(value)
            case [int() as seconds, int() as nanoseconds] if 0 < seconds < _LATEST:
                return seconds * _NANOSECONDS + nanoseconds
    return 0


def _moment(text: str) -> int:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return 0
    since = (when if when.tzinfo else when.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return max(since // timedelta(microseconds=1) * 1_000, 0)


def _finite(literal: str) -> float | None:
    value = float(literal)
    return value if math.isfinite(value) else None


def parse_json(text: bytes | str) -> Any:
    """Return JSON data without what no report can hold: numbers that are not finite, and halves of surrogate pairs.

    Raises:
        ValueError: It is no JSON.
        RecursionError: It is nested too deeply.
    """
    data = json.loads(text, parse_constant=lambda _: None, parse_float=_finite)
    half = rb"\ud" if isinstance(text, bytes) else r"\ud"
    return _whole(data) if half in text.lower() else data  # type: ignore[operator]


def _whole(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_whole(name): _whole(each) for name, each in value.items()}
        case list():
            return [_whole(each) for each in value]
    return value

"""Spans of traces, read from JSON of any size and oddity."""

import base64
import json
import re
from codecs import getincrementaldecoder
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import islice
from json import JSONDecodeError
from pathlib import Path
from sys import intern
from typing import Any, BinaryIO, Final, NamedTuple

from msgspec import Struct, field

from pytest_llmeval.core import Fault, SuiteError
from pytest_llmeval.data import FaultLog, InputFile
from pytest_llmeval.exchange._ledger import as_list, as_mapping, as_text, first_text, fit_items
from pytest_llmeval.exchange._tolerant_json import TOLERANT, without_half_pairs

_PIECE: Final = 1 << 16
_NEAR_THE_END: Final = 16
"""A literal that is cut is at most so long; texts that are cut are reported where they begin."""

_BLANK: Final = " \t\r\n"


class JsonPieces:
    """JSON documents of a stream, one after the other; of a large one, only the values that are asked for are held.

    All methods raise `JSONDecodeError` for what is no JSON, and `UnicodeDecodeError` for what is no UTF-8.

    Attributes:
        line: Where the next value begins in the file, counted from 1.
    """

    def __init__(self, stream: BinaryIO, line: int) -> None:
        self.line = line
        self._stream = stream
        self._decode = getincrementaldecoder("utf-8-sig")().decode
        self._text = ""
        self._place = 0
        self._cut = 0
        self._ended = False

    def peek(self) -> str:
        """Return the first character of the next value or the sign before it; nothing at the end."""
        while True:
            begin = self._place
            while self._place < len(self._text) and self._text[self._place] in _BLANK:
                self._place += 1
            self.line += self._text.count("\n", begin, self._place)
            if self._place < len(self._text):
                return self._text[self._place]
            if self._ended:
                return ""
            self._read(_PIECE)

    def items(self) -> Iterator[int]:
        """Yield the place of each item of the list that is next; it has to be read before the next one is asked for."""
        self._take("[")
        place = 0
        while self.peek() != "]":
            if place:
                self._take(",")
            yield place
            place += 1
        self._take("]")

    def fields(self) -> Iterator[str]:
        """Yield each key of the object that is next; its value has to be read before the next one is asked for."""
        self._take("{")
        first = True
        while self.peek() != "}":
            if not first:
                self._take(",")
            first = False
            if self.peek() != '"':
                raise self._fault("Expecting a key in double quotes")
            key = self.value()
            self._take(":")
            yield key
        self._take("}")

    def value(self) -> Any:
        """Return the next value as a whole, as `parse_tolerantly` does.

        Raises:
            RecursionError: It is nested too deeply.
            ValueError: It is larger than a line of a file may be, or has a number of too many digits.
        """
        self.peek()
        while True:
            begin = self._place
            try:
                value, end = TOLERANT.raw_decode(self._text, begin)
            except JSONDecodeError as error:
                cut = "Unterminated" in error.msg or error.pos > len(self._text) - _NEAR_THE_END
                if self._ended or not cut:
                    raise
            else:
                if end < len(self._text) or self._ended:
                    self._place = end
                    written = self._text[begin:end]
                    self.line += written.count("\n")
                    return without_half_pairs(value, written)
            held = len(self._text) - begin
            if held > InputFile.MAX_LINE_BYTES:
                raise ValueError("a value is too large")
            self._read(max(held, _PIECE))

    def place_of(self, error: JSONDecodeError) -> tuple[int, int]:
        """Return line and column of an error in the file."""
        before = error.doc.rfind("\n", 0, error.pos)
        column = error.pos - before if before >= 0 else self._cut + error.pos + 1
        return self.line + error.doc.count("\n", self._place, error.pos), column

    def _take(self, sign: str) -> None:
        if self.peek() != sign:
            raise self._fault(f"Expecting {sign!r}")
        self._place += 1

    def _fault(self, message: str) -> JSONDecodeError:
        return JSONDecodeError(message, self._text, self._place)

    def _read(self, size: int) -> None:
        """Go on reading, and forget what has been read of the text."""
        gone = self._text[: self._place]
        self._cut = len(gone) - gone.rfind("\n") - 1 + (0 if "\n" in gone else self._cut)
        piece = self._stream.read(size)
        self._ended = not piece
        self._text = self._text[self._place :] + self._decode(piece, self._ended)
        self._place = 0


_NANOSECONDS: Final = 1_000_000_000
_LATEST: Final = 2**63
_DIGITS: Final = 20
_SHORT: Final = 500
_FEW: Final = 50
_MEANT: Final = re.compile(
    r"gen_ai\.|ai\.|llm\.|openinference\.|input\.|output\.|retrieval\.|reranker\.|embedding\.|tool|session\.|"
    r"pydantic_ai\.|all_messages|final_result|traceloop\.|agent|operation\.|error\.|exception\.|metadata|user\.id|graph\.|"
    r"model_request_parameters"
)
"""Attributes that tell what a model, an agent or a tool did."""

_EXPECTED: Final = (
    "expected spans: OTLP JSON (resourceSpans), lines of it, or spans as the SDKs of OpenTelemetry write them"
)
_RESOURCES: Final = ("resourceSpans", "resource_spans", "resourceLogs", "resource_logs")
_SCOPES: Final = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "scopeLogs", "scope_logs")
_LOGS: Final = ("logRecords", "log_records")
_NESTED: Final = frozenset((*_RESOURCES, *_SCOPES, *_LOGS, "spans"))


class Event(NamedTuple):
    """An event of a span, or a log record that belongs to one.

    Attributes:
        name: Such as ``gen_ai.choice``.
        attributes: By name; the fields of a log's body are among them.
    """

    name: str
    attributes: Mapping[str, Any]


class TraceSpan(Struct):
    """One span of a trace, in the form that all exporters' files are read into.

    Attributes:
        trace: Id of its trace; empty where the file does not say.
        id: Its own.
        parent: Id of the span that it belongs to; empty for the first one of a trace.
        name: What it is called.
        start: Nanoseconds since 1970; 0 where the file does not say.
        end: As above.
        attributes: By name.
        left_out: Names of attributes that are too long, and tell nothing of a model, an agent or a tool.
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
    left_out: tuple[str, ...] = ()
    events: list[Event] = field(default_factory=list)
    failed: bool = False
    service: str = ""
    line: int = 1


class SpanFile(Struct):
    """The spans in a file of traces.

    Attributes:
        spans: By trace id, in the order of the file; a span that is there twice is kept once.
        doubled: Trace id to how many spans were there more than once.
    """

    spans: dict[str, list[TraceSpan]] = field(default_factory=dict)
    doubled: dict[str, int] = field(default_factory=dict)


def read_spans(path: Path, faults: FaultLog) -> SpanFile:
    """Read a file of traces.

    Args:
        path: JSON documents, one after the other or on a line each. They are read in pieces.
        faults: Gets what cannot be read; everything else survives.

    Raises:
        SuiteError: The file cannot be opened.
    """
    InputFile(path, faults.file).check_regular()
    reader = _Reader(faults)
    try:
        with path.open("rb") as stream:
            # A cut line at the beginning must not make one document of many lines.
            beginning = [stream.readline(InputFile.MAX_LINE_BYTES) for _ in range(2)]
            stream.seek(0)
            if beginning[0].strip() not in (b"[", b"{") and any(map(_is_document, beginning)):
                for number, line in enumerate(stream, 1):
                    reader.add(BytesIO(line), number)
            else:
                reader.add(stream, 1)
    except OSError as error:
        raise SuiteError([Fault(faults.file, 0, 0, "", f"cannot be read: {error.strerror}")]) from None
    return reader.finished()


def _is_document(line: bytes) -> bool:
    """Whether a line of a trace file is a whole JSON document, so that each line is one."""
    try:
        return isinstance(json.loads(line), dict | list)
    except (ValueError, RecursionError):
        return False


class _Reader:
    """A collector of the spans in a trace file."""

    def __init__(self, faults: FaultLog) -> None:
        self.faults = faults
        self.spans: dict[tuple[str, str], TraceSpan] = {}
        self.doubled: dict[str, int] = {}
        self.logs: list[tuple[str, str, Event]] = []

    def add(self, stream: BinaryIO, line: int) -> None:
        """Add the spans of documents that begin in a line of the file."""
        text = JsonPieces(stream, line)
        try:
            while text.peek():
                self._add(text, "", {})
        except UnicodeDecodeError:
            self.faults.add(text.line, 1, "", f"found bytes that are no UTF-8, {_EXPECTED}")
        except json.JSONDecodeError as error:
            place = text.place_of(error)
            self.faults.add(*place, "", f"found a document that is cut or no JSON ({error.msg}), {_EXPECTED}")
        except (ValueError, RecursionError):
            self.faults.add(text.line, 1, "", f"found a document with numbers or nesting beyond measure, {_EXPECTED}")

    def finished(self) -> SpanFile:
        """Return the spans, with the events that came as logs."""
        file_spans = SpanFile(doubled=self.doubled)
        for trace, span, event in self.logs:
            if (trace, span) in self.spans:
                self.spans[trace, span].events.append(event)
        for trace_span in self.spans.values():
            file_spans.spans.setdefault(trace_span.trace, []).append(trace_span)
        return file_spans

    def _add(self, text: JsonPieces, path: str, resource: Mapping[str, Any]) -> None:
        """Add what the next value holds: a span, an export, or a list of them."""
        line = text.line
        if text.peek() == "[":
            for place in text.items():
                self._add(text, f"{path}[{place}]", resource)
            return
        if text.peek() != "{":
            self._fault(line, path, text.value())
            return
        begun, nested = len(self.spans), False
        fields: dict[str, Any] = {}
        for name in text.fields():
            if name not in _NESTED or text.peek() != "[":
                fields[name] = text.value()
                if name == "resource":
                    resource = _resource_of(fields, resource)
                    for span in islice(self.spans.values(), begun, None):  # the resource may come last
                        span.service = span.service or str(resource.get("service.name", ""))
                continue
            nested = True
            for place in text.items():
                within = f"{path}.{name}[{place}]".lstrip(".")
                if name in _LOGS:
                    self._add_log(text.value(), text.line, within)
                else:
                    self._add(text, within, resource)
        if not nested and not self._add_span(fields, line, path, resource):
            self._fault(line, path, fields)

    def _add_log(self, data: Any, line: int, path: str) -> None:
        if not isinstance(data, Mapping):
            self._fault(line, path, data)
            return
        attributes = _attributes(data.get("attributes"))
        body = _value(data.get("body"))
        if name := first_text(data, "eventName") or first_text(attributes, "event.name"):
            fields = body if isinstance(body, Mapping) else {} if body is None else {"content": body}
            self.logs.append((_hex(data, "traceId"), _hex(data, "spanId"), Event(name, {**fields, **attributes})))

    def _add_span(self, data: Mapping[str, Any], line: int, path: str, resource: Mapping[str, Any]) -> bool:
        context = as_mapping(data.get("context")) or as_mapping(data.get("spanContext")) or data
        trace, own = _hex(context, "traceId", "trace_id"), _hex(context, "spanId", "span_id")
        attribute_data: Any = data.get("attributes")
        if not own and attribute_data is None and any(_MEANT.match(name) for name in data if "." in name):
            attribute_data, own, trace = (
                data,
                f"{line}{path}",
                trace or f"line{line}{path}",
            )  # an object of attributes alone
        if not own:
            return False
        attributes = _attributes(attribute_data)
        long = tuple(name for name, value in attributes.items() if not (_MEANT.match(name) or is_short(value)))
        status = as_mapping(data.get("status"))
        parent = as_mapping(data.get("parentSpanContext"))
        span = TraceSpan(
            trace,
            own,
            _hex(data, "parentSpanId", "parent_id") or _hex(parent, "spanId"),
            str(data.get("name", "")),
            _time(data, "start"),
            _time(data, "end"),
            {name: value for name, value in attributes.items() if name not in long},
            long,
            [_event(event) for event in fit_items(dict, data.get("events"))],
            _is_error(status.get("code", status.get("status_code"))),
            str(_resource_of(data, resource).get("service.name", "")),
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

    def _fault(self, line: int, path: str, data: Any) -> None:
        expected = "expected a span with traceId, spanId and attributes" if path else _EXPECTED
        self.faults.add(line, 1, path, f"found {_brief(data)}, {expected}")


def is_short(value: Any) -> bool:
    """Whether the value of a span's attribute is short enough for a prediction."""
    if isinstance(value, list | dict):
        return len(value) <= _FEW and len(str(value)) <= _SHORT
    return not isinstance(value, str) or len(value) <= _SHORT


def _weight(span: TraceSpan) -> tuple[bool, int, int]:
    """The rank of one of two copies of a span: whether it has ended, then how much it says."""
    return span.end > 0, len(span.attributes), len(span.events)


def _resource_of(span: Mapping[str, Any], resource: Mapping[str, Any]) -> Mapping[str, Any]:
    """The attributes of a span's own resource, or those of the export around it."""
    own = as_mapping(span.get("resource"))
    return _attributes(own.get("attributes")) if own else resource


def _brief(value: Any) -> str:
    """The kind of a value in a trace file that is no span, for messages."""
    if isinstance(value, Mapping):
        return f"an object with {', '.join(map(str, list(value)[:5])) or 'no keys'}"
    return {list: "a list of something else", str: "a text", type(None): "null"}.get(type(value), "a number")


def _event(data: Mapping[str, Any]) -> Event:
    """An event of a span in a trace file."""
    return Event(str(data.get("name", "")), _attributes(data.get("attributes")))


def _is_error(code: Any) -> bool:
    """Whether the status code of a span means an error."""
    return code in (2, "2") or as_text(code).rpartition("_")[2].upper() == "ERROR"


def _hex(data: Mapping[str, Any], *names: str) -> str:
    """The first trace or span id in a span's data under some names; empty without one."""
    return first_text(data, *names).removeprefix("0x")


class _KeyValue(Struct):
    """An attribute of a span in OTLP's list."""

    key: str
    value: Any = None


def _attributes(data: Any) -> dict[str, Any]:
    """The attributes of a span by name, from OTLP's list of keys and values or from an object."""
    if isinstance(data, Mapping):
        return {intern(str(name)): _value(value) if _is_any_value(value) else value for name, value in data.items()}
    return {intern(pair.key): _value(pair.value) for pair in fit_items(_KeyValue, data)}


_KINDS: Final = frozenset(
    ("stringValue", "boolValue", "intValue", "doubleValue", "arrayValue", "kvlistValue", "bytesValue")
)


def _is_any_value(value: Any) -> bool:
    """Whether the value of a span's attribute has the form of OTLP's ``AnyValue``."""
    return isinstance(value, Mapping) and len(value) == 1 and not _KINDS.isdisjoint(value)


def _value(data: Any) -> Any:
    """The plain value of a span's attribute in the form of OTLP's ``AnyValue``."""
    if not _is_any_value(data):
        return None if data == {} else data
    ((kind, value),) = data.items()
    within = as_mapping(value).get("values")
    match kind:
        case "arrayValue":
            return [_value(item) for item in as_list(within)]
        case "kvlistValue":
            return _attributes(within)
        case "intValue" | "bytesValue":
            try:
                return int(value) if kind == "intValue" else base64.b64decode(value).decode("utf-8", "replace")
            except (TypeError, ValueError):
                return None
    return value


def _time(data: Mapping[str, Any], which: str) -> int:
    """A start or end time of a span in nanoseconds since 1970; 0 if there is none."""
    for name in (f"{which}TimeUnixNano", f"{which}_time_unix_nano", f"{which}_time", f"{which}Time"):
        value = data.get(name)
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
    """The ISO 8601 time of a span in nanoseconds since 1970; 0 if it cannot be read."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return 0
    since = (when if when.tzinfo else when.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return max(since // timedelta(microseconds=1) * 1_000, 0)

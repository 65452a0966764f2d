"""A collector of OpenTelemetry for tests: real HTTP on 127.0.0.1, which keeps what it is sent."""

__all__ = ("Collector", "collecting", "values")

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector(ThreadingHTTPServer):
    """The collector.

    Attributes:
        status: What it answers.
        logs: Records that came in.
        spans: Spans that came in.
        resources: Attributes of what sent them.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.logs: list[Any] = []
        self.spans: list[Any] = []
        self.resources: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


def values(attributes: Any) -> dict[str, Any]:
    """Return attributes by name."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if self.path.endswith("/v1/logs"):
            logs = ExportLogsServiceRequest.FromString(body)
            for each in logs.resource_logs:
                self.server.resources.append(values(each.resource.attributes))
                self.server.logs += [record for scope in each.scope_logs for record in scope.log_records]
        else:
            traces = ExportTraceServiceRequest.FromString(body)
            for part in traces.resource_spans:
                self.server.resources.append(values(part.resource.attributes))
                self.server.spans += [span for scope in part.scope_spans for span in scope.spans]
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name there)
        """Be silent."""


@contextmanager
def collecting() -> Iterator[Collector]:
    """Serve until the end of the block."""
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""The shop of the page "RAG in ten minutes": its service, and the judge that its engineer has, with its moods."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from scripted_judges import ClaimJudge
from servers import Call, LlmServer, Sent, reply, status

_OUT_OF_ORDER = 5
"""Each such call of the judge is refused at first."""


@contextmanager
def messy_judge() -> Iterator[LlmServer]:
    """Serve a model that judges claims: it is out of order at times, fences its replies, and leaves a verdict out."""

    def forgets(answer: Any) -> Any:
        return {name: items[:-1] for name, items in answer.items()}

    judge = ClaimJudge({"support": [lambda answer: answer, forgets]})

    def answer(call: Call) -> Sent:
        if call.number % _OUT_OF_ORDER == 0:
            return status(500, **{"retry-after-ms": "1"})(call)
        text = judge.reply(*(each["content"] for each in call.body["messages"]))
        return reply(f"Sure!\n```json\n{text}\n```")(call)

    with LlmServer(answer) as server:
        yield server


@contextmanager
def service(answer: Any) -> Iterator[str]:
    """Serve an application over HTTP: ``{question}`` as JSON by POST; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            content = json.dumps(answer(body["question"])).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/ask"
        finally:
            server.shutdown()
            thread.join()

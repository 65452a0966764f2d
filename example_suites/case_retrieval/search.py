"""A small search service: BM25 over the corpus beside this file, over HTTP. Needs ``pip install bm25s``."""

__all__ = ("Index", "serving", "tokens")

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).with_name("corpus.jsonl")
WORDS = re.compile(r"[\u4e00-\u9fff]+|[^\W\u4e00-\u9fff]+")


def tokens(text: str) -> list[str]:
    """Return the words of a text; of Chinese, which has no blanks, each pair of neighbouring characters."""
    out = []
    for word in WORDS.findall(text.lower()):
        chinese = "\u4e00" <= word[0] <= "\u9fff"
        out += [word[place : place + 2] for place in range(len(word) - 1)] if chinese else [word]
    return out


class Index:
    """A corpus that can be searched."""

    def __init__(self, documents: Sequence[dict[str, Any]]) -> None:
        import bm25s

        self.documents = documents
        self.bm25 = bm25s.BM25()
        self.bm25.index([tokens(each["fact"]) for each in documents], show_progress=False)

    def search(self, query: str, top_k: int) -> list[dict[str, Any]]:
        """Return the best documents, each with its score, the best first; ties in the order of the corpus."""
        scores = self.bm25.get_scores(tokens(query))
        best = sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:top_k]
        return [{**self.documents[place], "score": round(float(scores[place]), 4)} for place in best]


def _answering(index: Index) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found = [index.search(query, asked["top_k"]) for query in asked["queries"]]
            reply = json.dumps({"results": found}, ensure_ascii=False).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *arguments: Any) -> None:
            """Say nothing of each request."""

    return Handler


@contextmanager
def serving() -> Iterator[str]:
    """Serve ``POST /batch_search`` on a free port of this machine; yields the address."""
    index = Index([json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()])
    server = ThreadingHTTPServer(("127.0.0.1", 0), _answering(index))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/batch_search"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

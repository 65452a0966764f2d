"""Projects whose suites ask a judge: a local server, which remembers what it was asked about which answer."""

__all__ = ("Judged", "by_answer", "case", "entries_of", "shown_to")

import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_server import Answer, Call, LlmServer, Sent, reply

if TYPE_CHECKING:
    from conftest import Project

KEY = "key-of-tests-7f3a9c"
"""In the environment of every run; must turn up nowhere else."""


def case(word: str, **more: Any) -> dict[str, Any]:
    """Return a case whose prediction is the word, by which calls are told apart."""
    return {"id": word, "input": f"Say {word}!", "expected": word, "prediction": word, **more}


def shown_to(call: Call) -> dict[str, str]:
    """Return the texts that a judge was shown."""
    block = call.prompt.removeprefix("<data>").removesuffix("</data>")
    texts: dict[str, str] = json.loads(block)
    return texts


def by_answer(answers: Mapping[str, Answer | Sequence[Answer]], otherwise: Answer | None = None) -> Answer:
    """Answer by the answer that is judged; of several answers one after the other, of which the last stays."""
    lock = threading.Lock()
    left = {word: [each] if callable(each) else list(each) for word, each in answers.items()}

    def answer(call: Call) -> Sent:
        word = shown_to(call)["answer"]
        with lock:
            rest = left.get(word, [otherwise or reply("yes")])
            chosen = rest.pop(0) if len(rest) > 1 else rest[0]
        return chosen(call)

    return answer


def entries_of(path: Path) -> list[dict[str, Any]]:
    """Return the judgements that a file records."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Judged:
    """A project and the server that judges its suites.

    Attributes:
        project: The project.
        server: The judge.
    """

    def __init__(self, project: "Project", server: LlmServer) -> None:
        self.project = project
        self.server = server
        self._counted = 0

    def judge(self, **more: Any) -> dict[str, Any]:
        """Return ``judge`` of a suite."""
        return {"model": "openai:m", "base_url": self.server.base_url, "retries": 0, **more}

    def suite(self, name: str, cases: Sequence[dict[str, Any] | str], **top: Any) -> Path:
        """Write a suite whose judge says yes or no."""
        whole = [case(each) if isinstance(each, str) else each for each in cases]
        options: dict[str, Any] = {
            "evaluators": [{"judge": {"mode": "default_binary"}}],
            "judge": self.judge(),
            "confidence": None,
        }
        return self.project.suite(name, whole, **{**options, **top})

    def asked(self) -> dict[str, int]:
        """Return how often each answer was judged since this was called last."""
        calls = self.server.calls[self._counted :]
        self._counted = len(self.server.calls)
        return dict(sorted(Counter(shown_to(each)["answer"] for each in calls).items()))

    def recordings(self, suite: str = "s") -> Path:
        """Return where the judgements of a suite are recorded."""
        return self.project.path / "__llmeval__" / f"{suite}.judgements.jsonl"

    @property
    def cache(self) -> Path:
        """Where the working cache lies."""
        return self.project.path / ".llmeval" / "cache.sqlite3"

    def kept(self) -> list[str]:
        """Return the cases of the judgements in the working cache, sorted."""
        from pytest_llmeval.judge.replies.sqlite import SqliteReplies

        if not self.cache.exists():
            return []
        with SqliteReplies(self.cache) as cache:
            assert cache.verify() == []
            return sorted(each.case for each in cache.entries())

"""Help for tests of judged results: five results, and judges that are functions."""

__all__ = ("RESULTS", "Scripted", "awaited", "kept", "plain", "result", "scored")

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from pytest_llmeval.judge.contract import JudgeRequest
from pytest_llmeval.tasks.memory_qa.qa import EvalResult, QuestionType


def result(number: int, kind: str = "single_hop", answer: str = "In Paris", sample: str = "s") -> EvalResult:
    return EvalResult(sample, f"q{number}", QuestionType(kind), f"Where? {number}", "Paris", answer)


RESULTS = [result(number) for number in range(5)]


class Scripted:
    """A judge that answers by the number that ends the question, and counts."""

    def __init__(self, replies: Sequence[str | BaseException]) -> None:
        self.replies = replies
        self.prompts: list[str] = []

    def __call__(self, request: JudgeRequest) -> str:
        prompt = str(request)
        self.prompts.append(prompt)
        reply = self.replies[int(prompt.partition("Where? ")[2][0])]
        if isinstance(reply, BaseException):
            raise reply
        return reply


def scored(*scores: float) -> list[str | BaseException]:
    return [json.dumps({"score": score}) for score in scores]


def kept(path: Path) -> dict[str, float]:
    """Return the scores of a file, without the digests of its keys."""
    return {key.partition("#")[0]: score for key, score in json.loads(path.read_text(encoding="utf-8")).items()}


def plain(request: JudgeRequest) -> str:
    del request
    return "yes"


async def awaited(request: JudgeRequest) -> str:
    await asyncio.sleep(0)
    return plain(request)

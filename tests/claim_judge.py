"""A judge of claims that decides by words, can be told to answer badly, and obeys orders that are not clearly data."""

__all__ = ("ClaimJudge", "tokens")

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_llmeval.judge.contract import JudgeReply, JudgeRequest, Usage

_LINE = re.compile(r'"(?P<name>question|citations|(?:claim|passage|sentence)_[1-9][0-9]*)": "(?:[^"\\]|\\.)*",?')
_ANY_LINE = re.compile(r"(?m)^\W*((?:question|citations|(?:claim|passage|sentence)_\d+))\W+(.*)$")
_SMALL = {"a", "are", "at", "do", "how", "is", "it", "of", "the", "to", "的", "是"}
_ENOUGH = 0.75


def tokens(text: str) -> set[str]:
    """Return the words of a text, in the singular, and its Chinese characters, without small ones."""
    return {each.rstrip("s") for each in re.findall(r"[a-z0-9]+|[\u4e00-\u9fff]", text.lower())} - _SMALL


@dataclass
class ClaimJudge:
    """Answers as a careful model does.

    Attributes:
        changes: Kind of question (``claims``, ``support``, ``relevance``, ``citations``) to functions that change its
            replies, one each in order; afterwards they are right.
        asked: Kind of each question, in order.
        shown: The texts of each question.
        obeyed: Prompts in which it found orders that were not data.
    """

    changes: Mapping[str, list[Callable[[Any], Any]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    shown: list[Mapping[str, str]] = field(default_factory=list)
    obeyed: list[str] = field(default_factory=list)

    def complete(self, request: JudgeRequest) -> JudgeReply:
        return JudgeReply(self.reply(*(each.content for each in request.messages)), Usage(100, 10))

    def reply(self, instructions: str, prompt: str) -> str:
        """Return the reply to a prompt."""
        texts = _data(prompt)
        orders = texts is None or ("data, never instructions" not in instructions and "绝不是指令" not in instructions)
        if texts is None:
            texts = dict(_ANY_LINE.findall(prompt))
        if orders:
            self.obeyed.append(prompt)
        kind, answer = _answered(texts, obeying=orders)
        self.asked.append(kind)
        self.shown.append(texts)
        if left := self.changes.get(kind):
            answer = left.pop(0)(answer)
        return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _data(prompt: str) -> dict[str, str] | None:
    """Return the texts of a prompt that is one block of data, a text a line; ``None`` where some may be an order."""
    inside = prompt.removeprefix("<data>\n{\n").removesuffix("\n}\n</data>")
    if f"<data>\n{{\n{inside}\n}}\n</data>" != prompt or "<" in inside:
        return None
    if not all(_LINE.fullmatch(line) for line in inside.splitlines()):
        return None
    found: dict[str, str] = json.loads(f"{{{inside}}}")
    return found


def _answered(texts: Mapping[str, str], *, obeying: bool) -> tuple[str, Any]:
    """Return the kind of a question, and the right answer, or the one that orders ask for: all is well."""
    claims, passages, sentences = (_numbered(texts, name) for name in ("claim", "passage", "sentence"))
    if "citations" in texts:
        pairs = [tuple(map(int, re.findall(r"\d+", line))) for line in texts["citations"].splitlines()]
        return "citations", {
            "verdicts": [
                {"sentence": a, "passage": b, "supported": obeying or _follows(sentences[a], passages[b])}
                for a, b in pairs
            ]
        }
    if sentences:
        return "claims", {
            "sentences": [
                {"sentence": number, "claims": [] if obeying or text.endswith(("?", "？")) else [_unmarked(text)]}
                for number, text in sentences.items()
            ]
        }
    if claims and passages:
        first = list(passages)[:1]
        rests = {
            number: first if obeying else [at for at, each in passages.items() if _follows(text, each)]
            for number, text in claims.items()
        }
        return "support", {
            "verdicts": [
                {"claim": number, "reason": "", "supported": bool(by), "passages": by} for number, by in rests.items()
            ]
        }
    name, items = ("claim", claims) if claims else ("passage", passages)
    asked = tokens(texts["question"])
    near = {number: obeying or bool(asked & tokens(text)) for number, text in items.items()}
    return "relevance", {"verdicts": [{name: number, "relevant": each} for number, each in near.items()]}


def _numbered(texts: Mapping[str, str], name: str) -> dict[int, str]:
    return {int(key.rpartition("_")[2]): text for key, text in texts.items() if key.startswith(f"{name}_")}


def _unmarked(text: str) -> str:
    return re.sub(r"\s*\[[\d, -]+\]", "", text).strip()


def _follows(claim: str, passage: str) -> bool:
    """Return whether most words of a claim, and all its numbers, stand in a passage."""
    wanted, there = tokens(_unmarked(claim)), tokens(passage)
    return bool(wanted) and len(wanted & there) >= _ENOUGH * len(wanted) and {w for w in wanted if w.isdigit()} <= there

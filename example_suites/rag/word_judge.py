"""The judge that gave the recorded verdicts: rules on words, in place of a model."""

__all__ = ("judge",)

import json
import re
from collections.abc import Mapping
from typing import Any

from pytest_llmeval import JudgeRequest

_SMALL = {"a", "an", "and", "are", "at", "do", "does", "for", "from", "how", "i", "is", "it", "of", "on", "the", "to"}
_SMALL |= {"long", "much", "we", "what", "when", "吗", "多", "少", "的", "是", "可", "以", "在", "内", "都"}
_ENOUGH = 0.75
_NO_CLAIM = re.compile(r"I do not know|不知道|[?？]$")


def judge(request: JudgeRequest) -> str:
    """Answer a question about a criterion with yes or no, and one about claims or pairs of answers with an object."""
    shown = json.loads(request.messages[-1].content.removeprefix("<data>").removesuffix("</data>"))
    if "first" in shown:
        return json.dumps(_better(shown))
    return _criterion(shown) if "criterion" in shown else json.dumps(_claims(shown), ensure_ascii=False)


def _words(text: str) -> set[str]:
    """Return the words of a text without endings, its Chinese characters, and no small ones."""
    found = re.findall(r"[a-z0-9]+|[\u4e00-\u9fff]", re.sub(r"\[[\d, ]+\]", "", text.lower()))
    return {word[:5].rstrip("s") for word in found if word not in _SMALL}


def _criterion(shown: Mapping[str, str]) -> str:
    wanted = {word[:5] for word in re.findall(r"\w{3,}", shown["criterion"].lower())} - {"says", "that", "the"}
    there = {word[:5] for word in re.findall(r"\w{3,}", shown["answer"].lower())}
    share = len(wanted & there) / len(wanted)
    return f"{'yes' if share > 1 / 2 else 'no'}: the answer has {share:.0%} of the words of the criterion"


def _better(shown: Mapping[str, str]) -> dict[str, str]:
    """Prefer the answer with more words of the right one, or of the question, and the first where both have as many."""
    wanted = _words(shown.get("reference", shown["question"]))
    first, second = (len(wanted & _words(shown[name])) for name in ("first", "second"))
    counts = f"{first} and {second} of {len(wanted)} words of the right answer"
    return {"reasoning": f"The answers have {counts}.", "better": "second" if second > first else "first"}


def _claims(shown: Mapping[str, str]) -> dict[str, Any]:
    claims, passages, sentences = (_numbered(shown, name) for name in ("claim", "passage", "sentence"))
    if "citations" in shown:
        pairs = [tuple(map(int, re.findall(r"\d+", line))) for line in shown["citations"].splitlines()]
        return {"verdicts": [{"sentence": a, "passage": b, **_cited(sentences[a], passages[b])} for a, b in pairs]}
    if sentences:
        return {"sentences": [{"sentence": number, "claims": _said(text)} for number, text in sentences.items()]}
    if claims and passages:
        return {"verdicts": [{"claim": number, **_supported(text, passages)} for number, text in claims.items()]}
    name, items = ("claim", claims) if claims else ("passage", passages)
    return {"verdicts": [{name: number, **_relevant(text, shown["question"])} for number, text in items.items()]}


def _numbered(shown: Mapping[str, str], name: str) -> dict[int, str]:
    return {int(key.rpartition("_")[2]): text for key, text in shown.items() if key.startswith(f"{name}_")}


def _said(sentence: str) -> list[str]:
    return [] if _NO_CLAIM.search(sentence) else [re.sub(r"\s*\[[\d, ]+\]", "", sentence)]


def _missing(claim: str, passage: str) -> set[str]:
    return _words(claim) - _words(passage)


def _follows(claim: str, passage: str) -> bool:
    missing = _missing(claim, passage)
    return len(missing) <= (1 - _ENOUGH) * len(_words(claim)) and not any(word.isdigit() for word in missing)


def _supported(claim: str, passages: Mapping[int, str]) -> dict[str, Any]:
    by = [number for number, text in passages.items() if _follows(claim, text)]
    return {"reason": "" if by else "No passage says so.", "supported": bool(by), "passages": by}


def _cited(sentence: str, passage: str) -> dict[str, Any]:
    follows = _follows(sentence, passage)
    return {"reason": "" if follows else "The passage says something else.", "supported": follows}


def _relevant(text: str, question: str) -> dict[str, Any]:
    near = bool(_words(text) & _words(question))
    return {"reason": "" if near else "It is about something else.", "relevant": near}

"""Questions about numbered claims and passages: each item gets its verdict, or the reply cannot be read."""

__all__ = (
    "CLAIM_MODES",
    "ask_for_citations",
    "ask_for_claim_relevance",
    "ask_for_claims",
    "ask_for_passage_relevance",
    "ask_for_support",
    "claim_mode_version",
)

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

from pytest_llmeval.core.explanations import listed
from pytest_llmeval.judge.contract import Mode, Question, Verdict
from pytest_llmeval.judge.questions.listing import listing
from pytest_llmeval.judge.questions.modes import read_mode_file
from pytest_llmeval.judge.questions.replies import closing_object, plain, shortened, unreadable

CLAIM_MODES: Final = ("claims", "claim_support", "claim_relevance", "passage_relevance", "citation_support")
"""The modes of this module, each with a file of instructions."""

Passages: TypeAlias = Mapping[int, str]
"""Passages by number; numbers may be missing, as those of blank passages are."""

_Numbers: TypeAlias = tuple[int, ...]
_MOST_CLAIMS = float(10**6)


def claim_mode_version(name: str) -> str:
    """Return the version of one of `CLAIM_MODES`."""
    return str(read_mode_file(name)["version"])


def ask_for_claims(sentences: Sequence[str], question: str | None, language: str) -> Question:
    """Return the question that splits a text into claims.

    Its verdict has ``claims`` in its details: a list of ``{claim, sentence}``, each claim once.
    """
    texts = {"question": question} if question else {}
    return Question(_splitting(len(sentences)), {**texts, **_numbered("sentence", sentences)}, language)


def ask_for_support(claims: Sequence[str], passages: Passages, language: str) -> Question:
    """Return the question which passages support which claims.

    Its verdict has ``verdicts`` in its details: for each claim, in order, ``{supported, passages, reason}``.
    """
    shown = {f"passage_{number}": text for number, text in passages.items()}
    return Question(_supporting(len(claims), tuple(passages)), {**_numbered("claim", claims), **shown}, language)


def ask_for_claim_relevance(question: str, claims: Sequence[str], language: str) -> Question:
    """Return the question which claims bear on what was asked: ``{relevant, reason}`` for each, in order."""
    numbers = tuple(range(1, len(claims) + 1))
    texts = {"question": question, **_numbered("claim", claims)}
    return Question(_relevance("claim_relevance", "claim", numbers), texts, language)


def ask_for_passage_relevance(question: str, passages: Passages, language: str) -> Question:
    """Return the question which passages bear on what was asked: ``{relevant, reason}`` for each, in order."""
    texts = {"question": question, **{f"passage_{number}": text for number, text in passages.items()}}
    return Question(_relevance("passage_relevance", "passage", tuple(passages)), texts, language)


def ask_for_citations(
    sentences: Sequence[str], citations: Sequence[tuple[int, int]], passages: Passages, language: str
) -> Question:
    """Return the question which citations hold: ``{supported, reason}`` for each, in order.

    Args:
        sentences: All of the answer.
        citations: Number of the sentence, from 1, and of the passage that it cites.
        passages: Those that are cited.
        language: Of the instructions.
    """
    lines = "\n".join(f"sentence {sentence} cites passage {passage}" for sentence, passage in citations)
    shown = {f"passage_{number}": text for number, text in passages.items()}
    mode = _citing(len(sentences), tuple(citations), tuple(passages))
    return Question(mode, {**_numbered("sentence", sentences), **shown, "citations": lines}, language)


def _numbered(name: str, texts: Sequence[str]) -> dict[str, str]:
    return {f"{name}_{number}": text for number, text in enumerate(texts, 1)}


def _fields(name: str, numbers: Sequence[int]) -> list[str]:
    return [f"{name}_{number}" for number in numbers]


def _mode(
    name: str,
    fields: Sequence[str],
    read: Callable[[str], Verdict],
    schema: Mapping[str, Any],
    truth: str | None = None,
) -> Mode:
    """Return a mode that judges items, each true or not, or one that lists them, for which one juror is enough."""
    file = read_mode_file(name)
    return Mode(
        name,
        file["version"],
        file["instructions"],
        tuple(fields),
        (0.0, _MOST_CLAIMS if truth is None else 1.0),
        read,
        schema,
        asks_again=True,
        decides=True,
        listing=None if truth is None else listing(truth),
        asks_one=truth is None,
    )


@lru_cache(maxsize=256)
def _splitting(sentences: int) -> Mode:
    numbers = range(1, sentences + 1)
    texts = {"type": "array", "items": {"type": "string"}}
    return _mode(
        "claims",
        ["question", *_fields("sentence", numbers)],
        partial(_read_claims, numbers=tuple(numbers)),
        _schema("sentences", sentence=_INTEGER, claims=texts),
    )


@lru_cache(maxsize=256)
def _supporting(claims: int, passages: _Numbers) -> Mode:
    numbers = range(1, claims + 1)
    return _mode(
        "claim_support",
        [*_fields("claim", numbers), *_fields("passage", passages)],
        partial(_read_support, claims=tuple(numbers), passages=passages),
        _schema("verdicts", claim=_INTEGER, reason=_STRING, supported=_BOOLEAN, passages=_INTEGERS),
        "supported",
    )


@lru_cache(maxsize=256)
def _relevance(name: str, item: str, numbers: _Numbers) -> Mode:
    return _mode(
        name,
        ["question", *_fields(item, numbers)],
        partial(_read_relevance, item=item, numbers=numbers),
        _schema("verdicts", **{item: _INTEGER}, reason=_STRING, relevant=_BOOLEAN),
        "relevant",
    )


@lru_cache(maxsize=256)
def _citing(sentences: int, citations: tuple[tuple[int, int], ...], passages: _Numbers) -> Mode:
    return _mode(
        "citation_support",
        [*_fields("sentence", range(1, sentences + 1)), *_fields("passage", passages), "citations"],
        partial(_read_citations, citations=citations),
        _schema("verdicts", sentence=_INTEGER, passage=_INTEGER, reason=_STRING, supported=_BOOLEAN),
        "supported",
    )


_INTEGER: Final = {"type": "integer"}
_INTEGERS: Final = {"type": "array", "items": _INTEGER}
_STRING: Final = {"type": "string"}
_BOOLEAN: Final = {"type": "boolean"}


def _schema(key: str, **properties: Any) -> dict[str, Any]:
    item = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {
        "type": "object",
        "properties": {key: {"type": "array", "items": item}},
        "required": [key],
        "additionalProperties": False,
    }


def _read_claims(reply: str, numbers: _Numbers) -> Verdict:
    found = _items(reply, "sentences", ("sentence",), [(number,) for number in numbers])
    claims: dict[str, dict[str, Any]] = {}
    for number, item in zip(numbers, found, strict=True):
        texts = item.get("claims")
        if not isinstance(texts, list) or not all(isinstance(each, str) and each.strip() for each in texts):
            raise unreadable(reply, f"found no list of texts as claims of sentence {number}, expected one")
        for text in texts:
            # What is said twice in the same words is one claim, and counts once.
            claims.setdefault(" ".join(text.casefold().split()), {"claim": plain(text.strip()), "sentence": number})
    return Verdict(float(len(claims)), details={"claims": list(claims.values())})


def _read_support(reply: str, claims: _Numbers, passages: _Numbers) -> Verdict:
    verdicts = []
    for number, item in zip(claims, _items(reply, "verdicts", ("claim",), [(each,) for each in claims]), strict=True):
        what = f"claim {number}"
        supported, by = _truth(reply, item, "supported", what), item.get("passages")
        if not isinstance(by, list) or not all(type(each) is int for each in by):
            raise unreadable(reply, f"found no list of numbers as passages of {what}, expected one")
        if len(set(by)) < len(by):
            raise unreadable(reply, f"found a passage twice for {what}, expected each once")
        if unknown := [each for each in by if each not in passages]:
            raise unreadable(reply, f"found passage {unknown[0]} for {what}, expected one of {_shown(passages)}")
        if supported and not by:
            raise unreadable(reply, f"found {what} supported without a passage, expected those that support it")
        if by and not supported:
            raise unreadable(reply, f"found {what} not supported, but with passage {by[0]}, expected none")
        verdicts.append({"supported": supported, "passages": sorted(by), "reason": _reason(item)})
    return _verdicts(verdicts, "supported")


def _read_relevance(reply: str, item: str, numbers: _Numbers) -> Verdict:
    found = _items(reply, "verdicts", (item,), [(each,) for each in numbers])
    return _verdicts(
        [
            {"relevant": _truth(reply, each, "relevant", f"{item} {number}"), "reason": _reason(each)}
            for number, each in zip(numbers, found, strict=True)
        ],
        "relevant",
    )


def _read_citations(reply: str, citations: tuple[tuple[int, int], ...]) -> Verdict:
    found = _items(reply, "verdicts", ("sentence", "passage"), citations)
    return _verdicts(
        [
            {"supported": _truth(reply, each, "supported", f"sentence {place[0]}"), "reason": _reason(each)}
            for place, each in zip(citations, found, strict=True)
        ],
        "supported",
    )


def _verdicts(verdicts: list[dict[str, Any]], truth: str) -> Verdict:
    """Return verdicts on items as one; its score is the share of those that hold."""
    return Verdict(sum(each[truth] for each in verdicts) / len(verdicts), details={"verdicts": verdicts})


def _items(reply: str, key: str, names: Sequence[str], wanted: Sequence[_Numbers]) -> list[Mapping[str, Any]]:
    """Return the objects of a list in the order in which they are wanted.

    Args:
        reply: Ends with an object that has the list.
        key: Of the list.
        names: Of the numbers by which an object of it is known.
        wanted: The numbers of all of them.

    Raises:
        JudgeError: One is missing, unknown or there twice.
    """
    data = closing_object(reply, lambda _: {})
    if len(re.findall(rf'(?<!\\)"{key}"\s*:', reply.rpartition("</think>")[2])) > 1:
        raise unreadable(reply, f"found {key!r} twice, expected one list of them")
    found: dict[_Numbers, Mapping[str, Any]] = {}
    items = data.get(key)
    if not isinstance(items, list) or not all(isinstance(each, Mapping) for each in items):
        raise unreadable(reply, f"found no list of objects as {key}, expected one")
    for item in items:
        numbers = tuple(item.get(name) for name in names)
        if any(type(each) is not int for each in numbers) or numbers not in wanted:
            shown = ", ".join(f"{name} {shortened(repr(item.get(name)), 20)}" for name in names)
            expected = listed([_place(names, each) for each in wanted])
            raise unreadable(reply, f"found {shown}, expected each of {expected} once")
        if numbers in found:
            raise unreadable(reply, f"found {_place(names, numbers)} twice, expected each once")
        found[numbers] = item
    missing = [_place(names, each) for each in wanted if each not in found]
    if missing:
        raise unreadable(reply, f"found nothing on {listed(missing)}, expected each of {len(wanted)} once")
    return [found[each] for each in wanted]


def _place(names: Sequence[str], numbers: _Numbers) -> str:
    return " and ".join(f"{name} {number}" for name, number in zip(names, numbers, strict=True))


def _shown(numbers: _Numbers) -> str:
    return listed([str(each) for each in numbers], 10)


def _truth(reply: str, item: Mapping[str, Any], name: str, what: str) -> bool:
    value = item.get(name)
    if not isinstance(value, bool):
        found = "nothing" if name not in item else shortened(repr(value), 20)
        raise unreadable(reply, f"found {found} as {name!r} of {what}, expected true or false")
    return value


def _reason(item: Mapping[str, Any]) -> str:
    reason = item.get("reason")
    return plain(reason.strip()) if isinstance(reason, str) else ""

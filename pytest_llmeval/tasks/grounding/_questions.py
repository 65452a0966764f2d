"""Questions about numbered claims, passages, citations and instructions: each gets its verdict once.

A reply that leaves one out, adds one, or contradicts itself cannot be read.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from pytest_llmeval.core import JudgeError, excerpt, listed
from pytest_llmeval.judges import Listing, Mode, ModeFile, Question, ReplyObject, Verdict

PROMPTS: Final = Path(__file__).parent / "prompts"
_LONGEST_EXCERPT: Final = 40
_VERDICTS: Final = "verdicts"


def _items_schema(key: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a judge's reply with a list of verdicts on numbered items."""
    return ReplyObject.schema(**{key: {"type": "array", "items": ReplyObject.schema(**properties)}})


def _read_items(
    reply: str, key: str, names: Sequence[str], places: Sequence[tuple[int, ...]], truth: str | None = None
) -> list[ReplyObject]:
    """Read a judge's verdicts on numbered claims or passages, in the order of the numbers.

    Args:
        reply: Ends with an object that has the list.
        key: Of the list.
        names: Of the numbers by which an object of it is known.
        places: The numbers of all of them.
        truth: As in `ReplyObject.closing_list`.

    Raises:
        JudgeError: One is missing, unknown or there twice.
    """
    by_numbers: dict[tuple[int, ...], ReplyObject] = {}
    known = set(places)
    for item in ReplyObject.closing_list(reply, key, truth):
        if not isinstance(item, Mapping):
            raise JudgeError.unreadable(
                reply, f"found {excerpt(repr(item), _LONGEST_EXCERPT)} among {key}, expected objects"
            )
        numbers: tuple[Any, ...] = tuple(item.get(name) for name in names)
        if any(type(number) is not int for number in numbers) or numbers not in known:
            value_text = ", ".join(f"{name} {excerpt(repr(item.get(name)), _LONGEST_EXCERPT)}" for name in names)
            expected = listed([_place(names, place) for place in places])
            raise JudgeError.unreadable(reply, f"found {value_text}, expected each of {expected} once")
        if numbers in by_numbers:
            raise JudgeError.unreadable(reply, f"found {_place(names, numbers)} twice, expected each once")
        by_numbers[numbers] = ReplyObject(item)
    missing = [_place(names, place) for place in places if place not in by_numbers]
    if missing:
        raise JudgeError.unreadable(reply, f"{listed(missing)} missing, expected each of {len(places)} once")
    return [by_numbers[place] for place in places]


def _place(names: Sequence[str], numbers: tuple[int, ...]) -> str:
    """The numbered item that a judge's reply is about, such as ``sentence 2 and passage 1``, for messages."""
    return " and ".join(f"{name} {number}" for name, number in zip(names, numbers, strict=True))


def _read_truth(reply: str, item: Mapping[str, Any], name: str, what: str) -> bool:
    """Whether a judge's verdict on a claim, passage or citation is true under a name.

    Raises:
        JudgeError: It says neither.
    """
    value = item.get(name)
    if not isinstance(value, bool):
        fault = f"{name!r} of {what} is missing"
        if name in item:
            fault = f"found {excerpt(repr(value), _LONGEST_EXCERPT)} as {name!r} of {what}"
        raise JudgeError.unreadable(reply, f"{fault}, expected true or false")
    return value


def _listing(truth: str) -> Listing:
    """The way in which a panel's verdicts on numbered claims or passages are joined.

    Args:
        truth: The key of the object that says whether it is so. Its other values are a ``reason`` and lists.
    """
    return Listing(partial(_grades, truth), partial(_joined, truth))


def _grades(truth: str, verdict: Verdict) -> list[float]:
    """A juror's opinions on numbered claims or passages as 1 and 0, for joining a panel."""
    return [float(opinion[truth]) for opinion in verdict.details[_VERDICTS]]


def _joined(truth: str, verdicts: Sequence[Verdict], grades: Sequence[float]) -> Verdict:
    """Join the jurors' opinions on claims or passages, with the reasons of those who share the panel's view."""
    rows = zip(*(verdict.details[_VERDICTS] for verdict in verdicts), strict=True)
    joined = [
        _agreed([opinion for opinion in row if opinion[truth] == grade], {truth: bool(grade)})
        for row, grade in zip(rows, grades, strict=True)
    ]
    return Verdict(sum(grades) / len(grades), details={_VERDICTS: joined})


def _agreed(items: Sequence[Mapping[str, Any]], agreed: dict[str, Any]) -> dict[str, Any]:
    """Join the opinions of the jurors who agree on an item: passage numbers united, reasons in a row."""
    for name, value in items[0].items():
        if isinstance(value, list):
            agreed[name] = sorted({element for item in items for element in item[name]})
        elif name not in agreed:
            agreed[name] = "; ".join(dict.fromkeys(item[name] for item in items if item[name]))
    return agreed


CLAIM_MODES: Final = ("claims", "claim_support", "claim_relevance", "passage_relevance", "citation_support")
"""The modes of this module, each with a file of instructions."""

Passages: TypeAlias = Mapping[int, str]
"""Passages by number; numbers may be missing, as those of blank passages are."""

_ClaimNumbers: TypeAlias = tuple[int, ...]
_MOST_CLAIMS = float(10**6)


def claim_mode_version(name: str) -> str:
    """The version of a judge mode in `CLAIM_MODES`."""
    return str(ModeFile(name, PROMPTS).content["version"])


def ask_for_claims(sentences: Sequence[str], question: str | None, language: str) -> Question:
    """Return the judge's question that splits a text into claims.

    Its verdict has ``claims`` in its details: a list of ``{claim, sentence}``, each claim once.
    """
    texts = {"question": question} if question else {}
    return Question(_splitting(len(sentences)), {**texts, **_numbered("sentence", sentences)}, language)


def ask_for_support(claims: Sequence[str], passages: Passages, language: str) -> Question:
    """Return the judge's question about the passages that support each claim.

    Its verdict has ``verdicts`` in its details: for each claim, in order, ``{supported, passages, reason}``.
    """
    texts = {f"passage_{number}": text for number, text in passages.items()}
    return Question(_supporting(len(claims), tuple(passages)), {**_numbered("claim", claims), **texts}, language)


def ask_for_claim_relevance(question: str, claims: Sequence[str], language: str) -> Question:
    """Return the judge's question about each claim's relevance to the user's question, in order."""
    numbers = tuple(range(1, len(claims) + 1))
    texts = {"question": question, **_numbered("claim", claims)}
    return Question(_relevance("claim_relevance", "claim", numbers), texts, language)


def ask_for_passage_relevance(question: str, passages: Passages, language: str) -> Question:
    """Return the judge's question about each passage's relevance to the user's question, in order."""
    texts = {"question": question, **{f"passage_{number}": text for number, text in passages.items()}}
    return Question(_relevance("passage_relevance", "passage", tuple(passages)), texts, language)


def ask_for_citations(
    sentences: Sequence[str], citations: Sequence[tuple[int, int]], passages: Passages, language: str
) -> Question:
    """Return the judge's question whether each cited passage supports its sentence, in order.

    Args:
        sentences: All of the answer.
        citations: Number of the sentence, from 1, and of the passage that it cites.
        passages: Those that are cited.
        language: Of the instructions.
    """
    lines = "\n".join(f"sentence {sentence} cites passage {passage}" for sentence, passage in citations)
    texts = {f"passage_{number}": text for number, text in passages.items()}
    mode = _citing(len(sentences), tuple(citations), tuple(passages))
    return Question(mode, {**_numbered("sentence", sentences), **texts, "citations": lines}, language)


def _numbered(name: str, texts: Sequence[str]) -> dict[str, str]:
    """The texts of a judge's question under numbered fields, such as ``claim_1``."""
    return {f"{name}_{number}": text for number, text in enumerate(texts, 1)}


def _fields(name: str, numbers: Sequence[int]) -> list[str]:
    """The names of a question's numbered fields, such as ``claim_1``."""
    return [f"{name}_{number}" for number in numbers]


def _items_mode(
    name: str,
    fields: Sequence[str],
    read: Callable[[str], Verdict],
    schema: Mapping[str, Any],
    truth: str | None = None,
    *,
    shared: int = 0,
) -> Mode:
    """A judge mode that rules on numbered items, or one that lists claims, for which one juror is enough."""
    return ModeFile(name, PROMPTS).mode(
        fields=tuple(fields),
        scale=(0.0, _MOST_CLAIMS if truth is None else 1.0),
        read=read,
        reply_schema=schema,
        asks_again=True,
        decides=True,
        listing=None if truth is None else _listing(truth),
        asks_one=truth is None,
        shared=shared,
    )


@lru_cache(maxsize=256)
def _splitting(sentences: int) -> Mode:
    """The judge mode that splits an answer's numbered sentences into claims."""
    numbers = range(1, sentences + 1)
    texts = {"type": "array", "items": {"type": "string"}}
    return _items_mode(
        "claims",
        ["question", *_fields("sentence", numbers)],
        partial(_read_claims, numbers=tuple(numbers)),
        _items_schema("sentences", sentence=_INTEGER, claims=texts),
    )


@lru_cache(maxsize=256)
def _supporting(claims: int, passages: _ClaimNumbers) -> Mode:
    """The judge mode that asks which numbered passages support each claim."""
    numbers = range(1, claims + 1)
    return _items_mode(
        "claim_support",
        [*_fields("passage", passages), *_fields("claim", numbers)],
        partial(_read_support, claims=tuple(numbers), passages=passages),
        _items_schema("verdicts", claim=_INTEGER, reason=_STRING, supported=_BOOLEAN, passages=_INTEGERS),
        "supported",
        shared=len(passages),
    )


@lru_cache(maxsize=256)
def _relevance(name: str, item: str, numbers: _ClaimNumbers) -> Mode:
    """The judge mode that asks whether each numbered claim or passage is relevant to the question."""
    return _items_mode(
        name,
        ["question", *_fields(item, numbers)],
        partial(_read_truths, names=(item,), places=[(number,) for number in numbers], truth="relevant"),
        _items_schema("verdicts", **{item: _INTEGER}, reason=_STRING, relevant=_BOOLEAN),
        "relevant",
    )


@lru_cache(maxsize=256)
def _citing(sentences: int, citations: tuple[tuple[int, int], ...], passages: _ClaimNumbers) -> Mode:
    """The judge mode that asks whether each cited passage supports the sentence that cites it."""
    return _items_mode(
        "citation_support",
        [*_fields("passage", passages), *_fields("sentence", range(1, sentences + 1)), "citations"],
        partial(_read_truths, names=("sentence", "passage"), places=citations, truth="supported"),
        _items_schema("verdicts", sentence=_INTEGER, passage=_INTEGER, reason=_STRING, supported=_BOOLEAN),
        "supported",
        shared=len(passages),
    )


_INTEGER: Final = {"type": "integer"}
_INTEGERS: Final = {"type": "array", "items": _INTEGER}
_STRING: Final = {"type": "string"}
_BOOLEAN: Final = {"type": "boolean"}


def _read_claims(reply: str, numbers: _ClaimNumbers) -> Verdict:
    """Read the claims of an answer's sentences from a judge's reply; a repeated claim counts once."""
    sentences = _read_items(reply, "sentences", ("sentence",), [(number,) for number in numbers])
    claims: dict[str, dict[str, Any]] = {}
    for number, item in zip(numbers, sentences, strict=True):
        texts = item.texts("claims")
        if texts is None:
            raise JudgeError.unreadable(reply, f"expected a list of texts as claims of sentence {number}")
        for text in texts:
            # What is said twice in the same words is one claim, and counts once.
            claims.setdefault(" ".join(text.casefold().split()), {"claim": text, "sentence": number})
    return Verdict(float(len(claims)), details={"claims": list(claims.values())})


def _read_support(reply: str, claims: _ClaimNumbers, passages: _ClaimNumbers) -> Verdict:
    """Read from a judge's reply whether each claim is supported, and by which passages."""
    verdicts = []
    items = _read_items(reply, "verdicts", ("claim",), [(claim,) for claim in claims], "supported")
    for number, item in zip(claims, items, strict=True):
        what = f"claim {number}"
        supported, by = _read_truth(reply, item, "supported", what), item.get("passages")
        if not isinstance(by, list) or not all(type(passage) is int for passage in by):
            raise JudgeError.unreadable(reply, f"expected a list of numbers as passages of {what}")
        if len(set(by)) < len(by):
            raise JudgeError.unreadable(reply, f"found a passage twice for {what}, expected each once")
        if unknown := [passage for passage in by if passage not in passages]:
            raise JudgeError.unreadable(
                reply, f"found passage {unknown[0]} for {what}, expected one of {_listed(passages)}"
            )
        if supported and not by:
            raise JudgeError.unreadable(
                reply, f"found {what} supported without a passage, expected those that support it"
            )
        if by and not supported:
            raise JudgeError.unreadable(reply, f"found {what} not supported, but with passage {by[0]}, expected none")
        verdicts.append({"supported": supported, "passages": sorted(by), "reason": item.text("reason")})
    return _verdicts(verdicts, "supported")


def _read_truths(reply: str, names: Sequence[str], places: Sequence[tuple[int, ...]], truth: str) -> Verdict:
    """Read a judge's ``verdicts``, each with whether a claim, passage or citation holds, and the reason.

    Args:
        reply: Ends with an object that has the list.
        names: Of the numbers by which an item is known.
        places: The numbers of all of them, in the order of the verdicts.
        truth: The key that says whether it is so.

    Returns:
        The share of the items that are so; in the details ``verdicts``: for each item, whether it is so, and why.

    Raises:
        JudgeError: An item has no verdict or two, one that does not exist has one, or a verdict is unreadable.
    """
    items = _read_items(reply, "verdicts", names, places, truth)
    return _verdicts(
        [
            {truth: _read_truth(reply, item, truth, f"{names[0]} {place[0]}"), "reason": item.text("reason")}
            for place, item in zip(places, items, strict=True)
        ],
        truth,
    )


def _verdicts(verdicts: list[dict[str, Any]], truth: str) -> Verdict:
    """Join a judge's verdicts on items into one, whose score is the share that holds."""
    return Verdict(sum(verdict[truth] for verdict in verdicts) / len(verdicts), details={"verdicts": verdicts})


def _listed(numbers: _ClaimNumbers) -> str:
    """The numbers of claims or passages for a message about a judge's reply, cut after ten."""
    return listed([str(number) for number in numbers], 10)


_CHECKLIST_SCHEMA: Final = _items_schema("verdicts", instruction=_INTEGER, reason=_STRING, followed=_BOOLEAN)


@lru_cache(maxsize=256)
def checklist_mode(count: int) -> Mode:
    """The judge mode that checks an answer against a number of instructions."""
    question, answer = ModeFile("checklist", PROMPTS).content["fields"]
    fields = [question, *(f"instruction_{number}" for number in range(1, count + 1)), answer]
    return _items_mode("checklist", fields, partial(read_checklist, count=count), _CHECKLIST_SCHEMA, "followed")


def read_checklist(reply: str, count: int) -> Verdict:
    """Read a checklist judge's reply, whose ``verdicts`` have each instruction once.

    Args:
        reply: The text.
        count: How many instructions there are.

    Returns:
        The share of instructions that are followed; under ``verdicts`` of the details, in their order, whether each is,
        and why.

    Raises:
        JudgeError: An instruction has no verdict or two, one that does not exist has one, or a verdict is unreadable.
    """
    return _read_truths(reply, ("instruction",), [(number,) for number in range(1, count + 1)], "followed")

"""A model's answer to a claim: the JSON object in its reply, read as it is and never guessed at."""

__all__ = ("Answer", "find_object", "read_answer")

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pytest_llmeval.case import Missing
from pytest_llmeval.evaluators.answers import describe_found
from pytest_llmeval.evaluators.fact_check.verdicts import NOT_ENOUGH

_JUSTIFICATION: Final = ("justification", "reasoning")
_KEYS: Final = ("verdict", *_JUSTIFICATION)
_OPENING = re.compile(r'\{(?=\s*+["}])')
_EFFORT: Final = 8
"""How many times the length of a reply may be read in vain in search of an object."""
_SHARE: Final = 32
"""What a failed attempt costs besides, as a part of the reply's length: its error counts the lines before it."""
_EXPECTED: Final = "a JSON object with verdict and justification"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model answered.

    Attributes:
        verdict: As it stands there, whatever it is; "Not Enough Evidence" where there is none.
        justification: Its text; of a reply that cannot be read, all of it.
        confidence: As it stands there; ``None`` where absent.
        sources: What is listed as evidence: texts and objects.
        unparsed: Whether there is no object to read.
        faults: ``field: found ..., expected ...`` for everything of a wrong form; it counts as absent.
    """

    verdict: Any = NOT_ENOUGH
    justification: str = ""
    confidence: str | None = None
    sources: tuple[Any, ...] = ()
    unparsed: bool = False
    faults: tuple[str, ...] = ()


def read_answer(prediction: Any) -> Answer:
    """Read an answer.

    Args:
        prediction: An object, or the text of a reply: a JSON object, which may stand in a fenced block or in prose. Of
            several objects in prose the last one that has a verdict counts, or else the last with a justification.

    Returns:
        The answer. What is no object, or no text with one, is unparsed: it says "Not Enough Evidence", and its
        justification is the whole text.
    """
    data = find_object(prediction) if isinstance(prediction, str) else prediction
    if isinstance(data, Mapping):
        return _from_object(data)
    text = prediction if isinstance(prediction, str) else ""
    confidence = "Low" if text else None
    found = "nothing" if isinstance(prediction, Missing) else describe_found(prediction)
    return Answer(
        justification=text, confidence=confidence, unparsed=True, faults=(f"found {found}, expected {_EXPECTED}",)
    )


def find_object(text: str) -> Mapping[str, Any] | None:
    """Return the object that a reply is or has in it, or ``None``, in time proportional to its length."""
    try:
        whole = json.loads(text.strip("\ufeff \t\r\n"))
    except (ValueError, RecursionError):
        return _last_answer(text)
    return whole if isinstance(whole, dict) else None


def _last_answer(text: str) -> Mapping[str, Any] | None:
    """Return the object in prose that is most likely the answer."""
    best: Mapping[str, Any] | None = None
    decode = json.JSONDecoder().raw_decode
    behind, effort = 0, _EFFORT * len(text)
    for opening in _OPENING.finditer(text):
        start = opening.start()
        if start < behind:
            continue
        if effort < 0:
            break
        try:
            found, behind = decode(text, start)
        except json.JSONDecodeError as error:
            effort -= error.pos - start + len(text) // _SHARE
            continue
        except (ValueError, RecursionError):  # too long a number, too deep a nesting: how far it got is not told
            effort -= len(text)
            continue
        if any(key in found for key in _KEYS) and ("verdict" in found or best is None or "verdict" not in best):
            best = found
    return best


def _from_object(data: Mapping[str, Any]) -> Answer:
    faults: list[str] = []
    verdict = data.get("verdict", NOT_ENOUGH)
    if not isinstance(verdict, str):
        faults.append(f"verdict: found {describe_found(verdict)}, expected text")
    key = next((key for key in _JUSTIFICATION if not _is_blank(data.get(key))), _JUSTIFICATION[0])
    justification = data.get(key)
    if justification is not None and not isinstance(justification, str):
        faults.append(f"{key}: found {describe_found(justification)}, expected text")
    confidence = data.get("confidence")
    return Answer(
        verdict=verdict,
        justification=justification if isinstance(justification, str) else "",
        confidence=confidence if isinstance(confidence, str) else None,
        sources=_sources(data.get("evidence_sources"), faults),
        faults=tuple(faults),
    )


def _sources(value: Any, faults: list[str]) -> tuple[Any, ...]:
    if value is None:
        return ()
    if not isinstance(value, (list, tuple)):
        faults.append(f"evidence_sources: found {describe_found(value)}, expected a list")
        return ()
    for place, entry in enumerate(value):
        if not isinstance(entry, (str, Mapping)):
            found = describe_found(entry)
            faults.append(f"evidence_sources[{place}]: found {found}, expected text or an object with content and url")
    return tuple(value)


def _is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())

"""Scores as means over the probabilities of the tokens that could stand in their place."""

__all__ = ("TokenChoice", "are_probabilities", "enveloped", "expected_mode", "levels_fault", "score_probabilities")

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from pytest_llmeval.judge.contract import JudgeReply, JudgeRequest, Mode, Verdict
from pytest_llmeval.judge.questions.replies import read_text, unreadable

_DIGITS: Final = 9
_HIGHEST: Final = 9
_LEVEL = re.compile(r"[^\w.+-]*([0-9])[^\w.]*")
_REPLY, _PROBABILITIES = "reply", "probabilities"


class TokenChoice(NamedTuple):
    """A token of a reply.

    Attributes:
        text: The token.
        alternatives: Tokens that could stand in its place, itself among them, to the logarithms of their probabilities.
    """

    text: str
    alternatives: Mapping[str, float]


def levels_fault(levels: Sequence[float]) -> str | None:
    """Say why the scores of a mode have no expected value: each must be one token."""
    if all(each.is_integer() and 0 <= each <= _HIGHEST for each in levels):
        return None
    return f"expected a score of whole numbers from 0 to {_HIGHEST} (integer: true), each of which is one token"


def score_probabilities(tokens: Sequence[TokenChoice], field: str) -> dict[str, float] | None:
    """Return the probabilities of the digits that could be the value of a field.

    Args:
        tokens: Of a reply that ends in a JSON object.
        field: Of that object. Its last occurrence counts: quotation marks inside of texts are escaped.

    Returns:
        Digit to probability; ``None`` where the value is no digit of a token of its own.
    """
    text = "".join(each.text for each in tokens)
    names = list(re.finditer(rf'(?<!\\)"{re.escape(field)}"\s*:\s*(?=[0-9](?![0-9.eE]))', text))
    if not names:
        return None
    place = names[-1].end()
    for token in tokens:
        if place < len(token.text):
            break
        place -= len(token.text)
    found: dict[str, float] = {}
    for written, logarithm in token.alternatives.items():
        level = _LEVEL.fullmatch(written)
        if level is not None and logarithm <= 0:
            found[level[1]] = found.get(level[1], 0.0) + math.exp(logarithm)
    return found if _LEVEL.fullmatch(token.text) else None


def enveloped(request: JudgeRequest, reply: JudgeReply) -> JudgeReply:
    """Return a reply whose text holds its probabilities, too, where the request asks for them.

    So whatever keeps replies keeps what the score was computed of. The model's own text is a text in it, so it cannot
    claim probabilities.
    """
    if request.expected_of is None:
        return reply
    given = reply.probabilities or {}
    rounded = {level: round(given[level], _DIGITS) for level in sorted(given)}
    return replace(reply, text=json.dumps({_REPLY: reply.text, _PROBABILITIES: rounded}, ensure_ascii=False))


def expected_mode(mode: Mode, field: str, levels: Sequence[float]) -> Mode:
    """Return a mode whose score is the mean over the probabilities of the tokens at its place.

    Args:
        mode: Gives the score.
        field: Of the reply that has it.
        levels: The scores that it may have; probabilities of other digits do not count.
    """
    return replace(
        mode,
        version=f"{mode.version}+expected",
        read=partial(_read_expected, mode=mode, levels=frozenset(levels)),
        expected_of=field,
    )


def _read_expected(text: str, mode: Mode, levels: frozenset[float]) -> Verdict:
    reply, probabilities = _opened(text)
    verdict = read_text(mode, reply)
    if not probabilities:
        wanted = "expected them for score: expected, from a model that gives logprobs for a score of one token"
        raise unreadable(reply, f"found no probabilities of the score's tokens, {wanted}")
    shares = {int(level): share for level, share in probabilities.items() if int(level) in levels and share > 0}
    if int(verdict.score) not in shares:
        raise unreadable(reply, f"found no probability of the score {verdict.score:g} itself, expected one")
    total = math.fsum(shares.values())
    mean = math.fsum(level * share for level, share in shares.items()) / total
    named = {str(level): round(share / total, _DIGITS) for level, share in sorted(shares.items())}
    details = {**verdict.details, "chosen": verdict.score, _PROBABILITIES: named}
    return Verdict(round(mean, _DIGITS), verdict.reasoning, details)


def _opened(text: str) -> tuple[str, Mapping[str, float]]:
    """Return what `enveloped` put together; a text that it did not write has no probabilities."""
    try:
        data: Any = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict) or set(data) != {_REPLY, _PROBABILITIES} or not isinstance(data[_REPLY], str):
        return text, {}
    return data[_REPLY], data[_PROBABILITIES] if are_probabilities(data[_PROBABILITIES]) else {}


def are_probabilities(value: Any) -> bool:
    """Return whether untrusted data are digits with their probabilities."""
    return isinstance(value, Mapping) and all(
        isinstance(level, str)
        and re.fullmatch("[0-9]", level)
        and type(share) in (int, float)
        and 0 <= share <= 1 + 10**-_DIGITS
        for level, share in value.items()
    )

"""From the text of a judge's reply to a verdict. What cannot be read is an error, never a score."""

__all__ = (
    "EXPLANATION_SCHEMA",
    "FLAGS",
    "SCORE_SCHEMA",
    "read_explanation",
    "read_reply",
    "read_rubric",
    "read_score",
    "read_text",
    "read_yes_no",
    "rubric_schema",
)

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, Final

from pytest_llmeval.errors import JudgeError, said
from pytest_llmeval.judge.contract import JudgeReply, Mode, Verdict
from pytest_llmeval.judge.reply_json import closing_object, plain, shortened, unreadable

FLAGS: Final = (
    "logical_errors",
    "fabrication",
    "wrong_citation",
    "factual_errors",
    "knowledge_errors",
    "reasoning_errors",
)
"""The defects that an explanation can have."""

_HIGHEST_GRADE: Final = 100.0
_END_OF_THOUGHTS: Final = "</think>"
"""Some servers leave out the tag that opens them, since the prompt ends with it."""

_WORD = re.compile(r"(yes|no)\b[\s.,:;!\-\u2013\u2014]*")


def _schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
    # Providers that enforce a schema want every property required and no others.
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SCORE_SCHEMA: Final = _schema(reasoning={"type": "string"}, score={"type": "number"})
"""JSON Schema of what `read_score` reads."""

EXPLANATION_SCHEMA: Final = _schema(
    reasoning={"type": "string"}, **{flag: {"type": "boolean"} for flag in FLAGS}, score={"type": "number"}
)
"""JSON Schema of what `read_explanation` reads."""


def rubric_schema(levels: Sequence[float]) -> dict[str, Any]:
    """Return the JSON Schema of what `read_rubric` reads."""
    return _schema(reasoning={"type": "string"}, score={"type": "number", "enum": list(levels)})


def read_reply(mode: Mode, reply: JudgeReply) -> Verdict:
    """Read what a model answered to a question of a mode.

    Raises:
        JudgeError: It refused, was cut off, or gave no verdict.
    """
    if reply.stopped == "refusal":
        raise unreadable(reply.text, "found a refusal, expected a verdict")
    if reply.stopped == "length":
        raise unreadable(reply.text, "found a reply that was cut off, expected a whole one: raise max_tokens")
    return read_text(mode, reply.text)


def read_text(mode: Mode, text: str) -> Verdict:
    """Read the text of a reply as a mode does, which may be the user's own.

    Raises:
        JudgeError: It gave no verdict with a finite score, or its function failed.
    """
    try:
        verdict: Any = mode.read(text)
    except JudgeError:
        raise
    except Exception as error:
        raise unreadable(text, f"the mode {mode.name!r} failed to read the reply ({said(error)})") from error
    if isinstance(verdict, Verdict) and isinstance(verdict.score, Real) and math.isfinite(verdict.score):
        return replace(verdict, score=float(verdict.score))  # which may be true or false, or a number of numpy
    shown = shortened(repr(verdict), 60)
    raise unreadable(text, f"found {shown} as what the mode {mode.name!r} read, expected a Verdict with a finite score")


def read_score(reply: str) -> Verdict:
    """Read a JSON object with a ``score`` from 0 to 1.

    The score is a number, text that is one, or true (1) or false (0). It is brought into the range, and then
    ``details["clamped_from"]`` has the score as it came.

    Raises:
        JudgeError: No JSON object ends the reply, or it has no such score.
    """
    data = closing_object(reply)
    raw = _number(data, reply, booleans=True)
    score = min(1.0, max(0.0, raw))
    details = {} if score == raw else {"clamped_from": raw if math.isfinite(raw) else str(raw)}
    return Verdict(score, _reasoning(data), details)


def read_yes_no(reply: str) -> Verdict:
    """Read a reply that begins with the word yes (1) or no (0), in upper or lower case.

    What a reasoning model thinks aloud, up to the last ``</think>``, stands before the reply and says nothing.

    Raises:
        JudgeError: It begins with anything else.
    """
    text = reply.rpartition(_END_OF_THOUGHTS)[2].strip()
    word = _WORD.match(text.lower())
    if word is None:
        raise unreadable(reply, "found no verdict, expected a reply that begins with the word yes or no")
    return Verdict(float(word.group(1) == "yes"), plain(text[word.end() :]))


def read_explanation(reply: str) -> Verdict:
    """Read a JSON object with a ``score`` from 0 to 100 and true or false for each of `FLAGS`.

    The score is a number. It is brought into the range, and then ``details["clamped_from"]`` has it as it came. A flag
    may also be called ``has_FLAG``, and one that the reply does not name is false.

    Returns:
        A verdict whose details have the flags.

    Raises:
        JudgeError: No JSON object ends the reply, it has no such score, or a flag is neither true nor false.
    """
    data = closing_object(reply)
    if isinstance(data.get("score"), str):
        raise unreadable(reply, f"found {_shown(data, 'score')} as score, expected a number")
    score = _number(data, reply)
    clamped = min(max(score, 0.0), _HIGHEST_GRADE)
    flags = {}
    for flag in FLAGS:
        name = flag if flag in data else f"has_{flag}"
        if not isinstance(data.get(name, False), bool):
            raise unreadable(reply, f"found {_shown(data, name)} as {name}, expected true or false")
        flags[flag] = data.get(name, False)
    return Verdict(clamped, _reasoning(data), flags if clamped == score else {**flags, "clamped_from": score})


def read_rubric(reply: str, levels: Sequence[float]) -> Verdict:
    """Read a JSON object whose ``score`` is one of the levels.

    Raises:
        JudgeError: No JSON object ends the reply, or its score is none of the levels.
    """
    data = closing_object(reply)
    score = _number(data, reply)
    if score not in levels:
        known = ", ".join(str(int(level)) if level.is_integer() else repr(level) for level in levels)
        raise unreadable(reply, f"found the score {_shown(data, 'score')}, expected one of the levels {known}")
    return Verdict(score, _reasoning(data))


def _number(data: Mapping[str, Any], reply: str, *, booleans: bool = False) -> float:
    """Return the score of a reply as a number that is not NaN."""
    value: Any = data.get("score")
    if isinstance(value, str) or type(value) in (int, float) or (booleans and isinstance(value, bool)):
        try:
            score = float(value)
        except (ValueError, OverflowError):
            score = math.nan
        if not math.isnan(score):
            return score
    raise unreadable(reply, f"found {_shown(data, 'score')} as score, expected a number")


def _shown(data: Mapping[str, Any], name: str) -> str:
    if name not in data:
        return "nothing"
    return shortened(json.dumps(data[name], ensure_ascii=False), 60)


def _reasoning(data: Mapping[str, Any]) -> str:
    reasoning = data.get("reasoning")
    return plain(reasoning.strip()) if isinstance(reasoning, str) else ""

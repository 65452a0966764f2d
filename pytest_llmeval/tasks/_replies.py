"""The data that a model's reply holds: one reader for all tasks."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from pytest_llmeval.evaluators import AnswerText

_OBJECTS = re.compile(r'\{(?=\s*+"(?:[^"\\]|\\.)*+"\s*+:)|\[(?=\s*+\{)', re.DOTALL)
"""Beginning of an object, or of a list of objects; other brackets in prose do not match."""
_LISTS = re.compile(r'\{(?=\s*+"(?:[^"\\]|\\.)*+"\s*+:)|\[(?=\s*+[\[{"\]])', re.DOTALL)
"""Beginning of an object, or of a list of lists, objects or texts, or without items."""
_FAILURES: Final = 256
"""Number of broken values to skip: computing each error counts the lines before it."""
_REPAIRS: Final = 8
"""Number of values with a trailing comma to read again: each attempt reads the remaining reply."""
_TRAILING = re.compile(r",\s*+[}\]]")
_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{,:]\s*+,|,(?=\s*+[}\]])', re.DOTALL)
_TRAILING_COMMA: Final = "a comma behind the last entry was ignored"

Rank = Callable[[Any], int]
"""Returns how likely a value is the answer: 0, it is none; of the values with the highest rank the last one counts."""


class ReplyData(NamedTuple):
    """The JSON data of a model's reply, as the evaluators of structured answers read it.

    Attributes:
        value: The data; ``None`` if there is none, or `fault` is set.
        note: What was ignored to read it; empty if nothing.
        fault: Why the reply has no answer, if that is not simply that it has no data.
    """

    value: Any = None
    note: str = ""
    fault: str = ""


def read_reply(text: str, rank: Rank, *, lists: bool = False) -> ReplyData:
    r"""Return the JSON data that a model's reply is, or has in a fence or in prose, in time linear in its length.

    | reply | reading |
    |---|---|
    | JSON, also with white space or a byte order mark around it | that value |
    | thoughts, then any of these forms | what follows the thoughts |
    | a reply that ends inside its thoughts | no data, and a fault |
    | JSON in a fence, closed or not, or in prose, on either side | that value |
    | a list of one object | that object, unless it is a list that is looked for |
    | several answers | the last one of the highest rank, with a note |
    | a comma behind the last entry | ignored, with a note |
    | JSON that is cut off, or broken elsewhere | no data; what it contains is not read either |

    Args:
        text: The reply.
        rank: Tells answers from other data.
        lists: Whether a list can be the answer.

    Example:
        >>> read_reply('Draft {"a": 1}, final {"a": 2}', lambda value: "a" in value).value
        {'a': 2}
    """
    spoken, fault = AnswerText(text).spoken()
    if fault:
        return ReplyData(fault=fault)
    try:
        whole = _only_object(json.loads(spoken.strip("\ufeff \t\r\n")))
    except (ValueError, RecursionError):
        return _likeliest(spoken, rank, _LISTS if lists else _OBJECTS)
    return ReplyData(whole if lists or isinstance(whole, dict) else None)


def _likeliest(text: str, rank: Rank, opening: re.Pattern[str]) -> ReplyData:
    """The JSON value in the prose of a model's reply that is most likely the answer."""
    best, highest, answers = ReplyData(), 0, 0
    for raw, note in _values(text, opening):
        value = _only_object(raw)
        own = rank(value)
        if own and own >= highest:
            answers = answers + 1 if own == highest else 1
            best, highest = ReplyData(value, note), own
    if answers > 1:
        several = f"{answers} answers, of which the last counts"
        best = best._replace(note=f"{best.note}; {several}" if best.note else several)
    return best


def _values(text: str, opening: re.Pattern[str]) -> Iterator[tuple[Any, str]]:
    """Yield the JSON values in a model's reply, each with a note of what was ignored to read it."""
    decode = json.JSONDecoder().raw_decode
    behind = failures = repairs = 0
    for match in opening.finditer(text):
        start = match.start()
        if start < behind:
            continue
        if failures == _FAILURES:
            break
        try:
            value, behind = decode(text, start)
        except json.JSONDecodeError as error:
            # A part of a broken value is not an answer.
            behind, failures = error.pos, failures + 1
            if repairs == _REPAIRS or failures == _FAILURES or not _at_trailing_comma(text, start, error.pos):
                continue
            repairs += 1
            try:
                value, length = decode(_without_trailing_commas(text[start:]), 0)
            except (ValueError, RecursionError):
                failures += 1
                continue
            behind = start + length
            yield value, _TRAILING_COMMA
        except (ValueError, RecursionError):  # too long a number, too deep a nesting: its end is unknown
            break
        else:
            yield value, ""


def _only_object(value: Any) -> Any:
    """The only object of a list in a model's reply; anything else unchanged."""
    alone = isinstance(value, (list, tuple)) and len(value) == 1 and isinstance(value[0], Mapping)
    return value[0] if alone else value


def _at_trailing_comma(text: str, start: int, place: int) -> bool:
    """Whether a comma behind the last entry stopped the JSON decoder in a model's reply."""
    comma = text.rfind(",", start, place + 1)
    match = _TRAILING.match(text, comma) if comma >= 0 else None
    return match is not None and match.end() > place


def _without_trailing_commas(text: str) -> str:
    """Overwrite commas behind last entries in a reply's JSON with spaces, so that positions stay the same."""
    return _COMMA.sub(lambda match: " " if match[0] == "," else match[0], text)

"""The JSON object that ends a judge's reply."""

__all__ = ("closing_object", "plain", "shortened", "unreadable")

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from pytest_llmeval.errors import JudgeError
from pytest_llmeval.faults import MAX_DEPTH, TOO_DEEP

_MARK = re.compile(r'\\[\\"]|["{}\[\]]')
_FENCE = re.compile(r"```(?:json)?$", re.IGNORECASE)
_FENCE_LENGTH: Final = len("```json")
_LONGEST: Final = 200


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Return a text as a message shows it: `plain`, and at most `longest` characters."""
    return plain(text[: longest - 1] + "…" if len(text) > longest else text)


def plain(text: str) -> str:
    """Return a text that can be written as UTF-8: half of a surrogate pair becomes a replacement character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def unreadable(reply: str, message: str) -> JudgeError:
    """Return the error for a reply that gives no verdict, with the reply in it."""
    return JudgeError(f"{message}; the judge replied {shortened(reply)!r}", reply)


def closing_object(reply: str) -> dict[str, Any]:
    """Return the JSON object that ends a reply.

    Prose may stand before it, and a Markdown fence round it. After it nothing may stand, since that might take the
    verdict back. NaN and infinities are read, as models write them; a key that is there twice is not.

    Raises:
        JudgeError: No such object ends the reply.
    """
    text, was_fenced = _without_closing_fence(reply.strip())
    if not text.endswith("}"):
        found = "text after a JSON object" if "{" in text and "}" in text else "no JSON object"
        raise unreadable(reply, f"found {found}, expected the reply to end with a JSON object")
    start, depth = _start(text)
    before = text[: max(start, 0)].rstrip()
    if start < 0 or _goes_on(before):
        raise unreadable(reply, "found a closing bracket without its opening one, expected a whole JSON object")
    if was_fenced and not _FENCE.search(before[-_FENCE_LENGTH:]):
        raise unreadable(reply, "found a closing fence without an opening one before the JSON object, expected both")
    if depth > MAX_DEPTH:
        raise unreadable(reply, TOO_DEEP)
    try:
        data: dict[str, Any] = json.loads(text[start:], object_pairs_hook=_unique)
    except ValueError as error:
        raise unreadable(reply, f"found a JSON object that cannot be read ({error}), expected valid JSON") from None
    return data


def _without_closing_fence(text: str) -> tuple[str, bool]:
    return (text[:-3].rstrip(), True) if text.endswith("```") else (text, False)


def _start(text: str) -> tuple[int, int]:
    """Return where the value begins whose closing bracket ends the text (-1 if nowhere), and how deep it is nested.

    Read from the end, valid JSON has one reading only, and each character is looked at once: trying every opening
    bracket from the front would take time that grows with the square of a hostile reply's length.
    """
    depth = deepest = 0
    in_string = False
    for position, mark in _marks_from_the_end(text):
        if mark == '"':
            in_string = not in_string
        elif not in_string:
            depth += 1 if mark in "}]" else -1
            deepest = max(deepest, depth)
            if depth == 0:
                return position, deepest
    return -1, deepest


def _marks_from_the_end(text: str) -> Iterator[tuple[int, str]]:
    marks = [(match.start(), match.group()) for match in _MARK.finditer(text)]
    return ((position, mark) for position, mark in reversed(marks) if len(mark) == 1)


def _goes_on(before: str) -> bool:
    """Return whether an object is a member of a bigger one, which must then be broken."""
    return before.endswith(("[", "{")) or (before.endswith(":") and before[:-1].rstrip().endswith('"'))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        twice = next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number]))
        raise ValueError(f"the key {shortened(twice, 40)!r} is there twice")
    return data

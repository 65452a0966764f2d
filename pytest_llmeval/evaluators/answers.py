"""Reading answers: as text, references or JSON, bare or inside a fence; searches in them, and lines of words."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pytest_llmeval.core.case import Missing
from pytest_llmeval.core.errors import EvaluatorError
from pytest_llmeval.core.wording import listed, quotation

if TYPE_CHECKING:
    import regex

_LONGEST = 40
"""Characters of a text that a message quotes."""


_FENCED = re.compile(r"\A\s*```\w*\s*?\n(.*)\n\s*```\s*\Z", re.DOTALL)


def json_in(text: str) -> Any:
    r"""Return the JSON data that a text is, also within a fence; the text itself if it is none.

    >>> json_in("```json\n[1, 2]\n```"), json_in("[1, 2")
    ([1, 2], '[1, 2')
    """
    fenced = _FENCED.match(text)
    try:
        return json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        return text


def as_text(value: Any) -> str | None:
    """Return a JSON scalar as text: a string unchanged, a number or boolean as its JSON text.

    Returns:
        The text; ``None`` for null, a list, an object, or a value that was not given.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return None


def as_references(value: Any) -> list[str] | None:
    """Return the acceptable answers of a case's ground truth.

    Args:
        value: A scalar (one reference), a list of scalars (several), or null.

    Returns:
        The references as texts; empty where the ground truth is absent (null or an empty list); ``None``
        where it is of the wrong form (an object, or a list that holds anything but scalars).
    """
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        texts = [text for each in value if (text := as_text(each)) is not None]
        return texts if len(texts) == len(value) else None
    text = as_text(value)
    return None if text is None else [text]


def reference_fault(value: Any) -> str:
    """Say what is wrong with a ground truth from which `as_references` reads none.

    >>> reference_fault(["Paris", None])
    'found null in the list, expected text or a list of texts'
    """
    description = describe_found(value)
    if isinstance(value, (list, tuple)):
        description = next(describe_found(each) for each in value if as_text(each) is None) + " in the list"
    return f"found {description}, expected text or a list of texts"


def describe_found(value: Any) -> str:
    """Say what a value is: ``null``, ``a list``, ``an object``, ``number 3``, ``text 'abc...'``."""
    match value:
        case None:
            description = "null"
        case str():
            description = f"text {quotation(value, _LONGEST)}"
        case bool():
            description = json.dumps(value)
        case int() | float():
            description = f"number {json.dumps(value)}"
        case list() | tuple():
            description = "a list"
        case dict():
            description = "an object"
        case Missing():
            description = "nothing"
        case _:
            description = f"a value of type {type(value).__name__}"
    return description


_FENCE = re.compile(
    r"```[ \t]*(?:\w+(?=[\s{\[]))?(.*?)(?:\n[ \t]*```|```[ \t]*(?=[\r\n]|\Z)|\Z)",
    re.DOTALL,
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+("?)|[\[\]{}]', re.DOTALL)
_LAST_WORD = re.compile(r"[\w.+\\-]*\s*")


class NoJsonError(ValueError):
    """A text has no JSON in it that can be read."""


def read_json(text: str) -> Any:
    r"""Return the JSON value of an answer.

    Args:
        text: JSON, or prose with JSON in one fenced block.

    Raises:
        NoJsonError: It is not JSON, is cut off, repeats a key, or has several fenced blocks of JSON.

    Example:
        >>> read_json('Here you are:\n```json\n{"total": 12}\n```')
        {'total': 12}
        >>> read_json('{"total": 1')  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        pytest_llmeval.evaluators.answers.NoJsonError: found truncated JSON ...
    """
    whole = text.strip("\ufeff \t\r\n")
    fenced = [match.group(1).strip() for match in _FENCE.finditer(whole)]
    values, faults = [], []
    for candidate in [whole] if not fenced or whole[:1] in ("{", "[") else fenced:
        try:
            values.append(_parsed(candidate))
        except NoJsonError as error:
            faults.append(error)
    if len(values) == 1:
        return values[0]
    raise NoJsonError(f"found {len(values)} fenced blocks of JSON, expected one") if values else faults[-1]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        if _is_truncated(text, error):
            end = text[-20:]
            raise NoJsonError(f"found truncated JSON (the text ends with {end!r}), expected all of it") from None
        where = f"line {error.lineno}, column {error.colno}"
        raise NoJsonError(f"found {describe_found(text)}, expected JSON ({error.msg} at {where})") from None
    except RecursionError:
        raise NoJsonError("found JSON that is nested too deeply, expected less") from None
    except NoJsonError:
        raise
    except ValueError as error:
        raise NoJsonError(f"found JSON with a number that cannot be read ({error})") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NoJsonError(f"found the key {twice!r} twice in one object, expected it once")
    return data


def _constant(name: str) -> NoReturn:
    raise NoJsonError(f"found {name}, expected a finite number or null")


def _is_truncated(text: str, error: json.JSONDecodeError) -> bool:
    """Return whether the text is the beginning of JSON that ends before its last bracket or quote."""
    if text[:1] not in ("{", "["):
        return False
    depth = 0
    for match in _STRING.finditer(text):
        mark = match.group()
        if mark[0] == '"' and not match.group(1):
            return error.pos >= match.start()
        depth += (mark in "[{") - (mark in "]}")
    return depth > 0 and _LAST_WORD.fullmatch(text, error.pos) is not None


SEARCH_S: Final = 1.0
"""How long a regular expression may search."""


class PatternError(ValueError):
    """A text is no regular expression.

    Attributes:
        offset: Where in the text the fault is.
    """

    def __init__(self, message: str, offset: int) -> None:
        self.offset = offset
        super().__init__(message)


class SlowPatternError(EvaluatorError):
    """A search took too long."""


@lru_cache(maxsize=256)
def compiled(pattern: str, *, ignore_case: bool = False) -> "regex.Pattern[str]":
    """Return a regular expression.

    Raises:
        PatternError: It does not compile.
    """
    import regex

    try:
        return regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
    except regex.error as error:
        why, _, position = str(error).partition(" at position ")
        offset = int(position) if position.isdecimal() else 0
        message = f"found the pattern {pattern!r}, which does not compile ({why} at character {offset + 1})"
        raise PatternError(f"{message}, expected a regular expression", offset) from None


def found_by(pattern: "regex.Pattern[str]", text: str) -> "regex.Match[str] | None":
    """Return the first match in a text, or ``None``.

    Raises:
        SlowPatternError: It takes longer than a second.
    """
    try:
        return pattern.search(text, timeout=SEARCH_S)
    except TimeoutError:
        message = f"the pattern {pattern.pattern!r} searched for {SEARCH_S:g} s without result"
        raise SlowPatternError(message) from None


_MOST = 10


def word_lines(prediction: str, references: Iterable[str], split: Callable[[str], Sequence[str]]) -> list[str]:
    """Say which words an answer lacks and which it has too many, against the reference that shares most with it.

    Args:
        prediction: The answer.
        references: The right answers; nothing is said where one of them is the prediction.
        split: Returns the words of a text.

    >>> word_lines("It is Lyon", ["Paris", "It is Paris"], str.split)
    ['missing words: Paris', 'extra words: Lyon']
    """
    texts = list(references)
    if not texts or prediction.strip() in map(str.strip, texts):
        return []
    if not prediction.strip():
        return ["the answer is empty"]
    answered = Counter(split(prediction))
    expected = max(map(Counter, map(split, texts)), key=lambda words: _likeness(words, answered))
    lines = [
        f"{name} words: {listed(words.elements(), _MOST)}"
        for name, words in (("missing", expected - answered), ("extra", answered - expected))
        if words
    ]
    return lines or ["the same words, in another order, case or punctuation"]


def _likeness(left: "Counter[str]", right: "Counter[str]") -> float:
    total = left.total() + right.total()
    return 2 * (left & right).total() / total if total else 0.0

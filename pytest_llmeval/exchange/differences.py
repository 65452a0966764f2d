"""Differences of imported checks: answers whose verdict here is another than that of the tool, and in which way."""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Final


class Direction(StrEnum):
    """The direction in which verdicts differ."""

    STRICTER = "stricter here"
    LOOSER = "looser here"
    EITHER = "stricter or looser here"


@dataclass(frozen=True)
class VerdictDifference:
    """Answers that an imported check judges differently.

    Attributes:
        text: The reason.
        direction: Stricter: such an answer can pass there and fail here.
        example: An answer that decides differently, as JSON; empty if that depends on a judge, a model, a price or a
            service.
    """

    text: str
    direction: Direction = Direction.EITHER
    example: str = ""

    @property
    def line(self) -> str:
        """Reason, direction and example, for people."""
        example = f", such as the answer {self.example}" if self.example else ""
        return f"{self.text} ({self.direction.value}{example})"

    def negated(self) -> "VerdictDifference":
        """Return the difference of the negated check."""
        return VerdictDifference(self.text, _OPPOSITE[self.direction], self.example)


_OPPOSITE: Final = {
    Direction.STRICTER: Direction.LOOSER,
    Direction.LOOSER: Direction.STRICTER,
    Direction.EITHER: Direction.EITHER,
}
_LAST_FOLDED: Final = 0x1E944
"""The last character that has upper and lower case."""
_NUMERIC = re.compile(r"[-+.\deE]+")
_WORDS: Final = {"true": True, "false": False, "NaN": "NaN", "Infinity": "Infinity"}


def as_example(answer: Any) -> str:
    """Return an answer as reports show it."""
    return json.dumps(answer)


def of_composing(*texts: str) -> Iterator[VerdictDifference]:
    """Yield the difference of texts that have a decomposed form."""
    for text in texts:
        forms = (unicodedata.normalize("NFD", text), unicodedata.normalize("NFC", text))
        other = next((form for form in forms if form != text), None)
        if other is not None:
            yield VerdictDifference("texts are compared in composed form (NFC)", Direction.LOOSER, as_example(other))
            return


def of_folding(*texts: str) -> Iterator[VerdictDifference]:
    """Yield the difference of texts that case folding matches where lower case letters do not."""
    for text in texts:
        for folded, character in _folded_otherwise().items():
            if folded in text.casefold():
                example = text.casefold().replace(folded, character, 1)
                yield VerdictDifference("letters are compared by case folding", Direction.LOOSER, as_example(example))
                return


@cache
def _folded_otherwise() -> Mapping[str, str]:
    """Return folded texts of one character to a character whose lower case is another text."""
    characters = map(chr, range(0x80, _LAST_FOLDED))
    return {each.casefold(): each for each in characters if each.casefold() != each.lower()}


def of_scalar_text(text: str, *, whole: bool) -> Iterator[VerdictDifference]:
    """Yield the difference of a text that a number or a boolean can be, or hold, as JSON.

    Args:
        text: The text of a check.
        whole: Whether the answer must be the text, or contain it.
    """
    example: Any = next((value for word, value in _WORDS.items() if text == word or (not whole and text in word)), None)
    if example is None and _NUMERIC.fullmatch(text):
        example = _number(text) if _number(text) is not None else None if whole else "a number"
    if example is not None:
        written = example if isinstance(example, str) else as_example(example)
        yield VerdictDifference("numbers and booleans are read as their JSON text", Direction.LOOSER, written)


def _number(text: str) -> int | float | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, int | float) and json.dumps(value) == text else None


def of_json_text(value: Any) -> Iterator[VerdictDifference]:
    """Yield the differences of a JSON value where the tool compares Python values: texts, and booleans as numbers."""
    yield VerdictDifference(
        "an answer that is text is read as JSON", Direction.LOOSER, as_example(json.dumps(value, ensure_ascii=False))
    )
    yield from of_booleans(value)


def of_booleans(value: Any) -> Iterator[VerdictDifference]:
    """Yield the difference of a JSON value with 0, 1 or booleans, which are equal in Python."""
    swapped = _swapped(value)
    if as_example(swapped) != as_example(value):
        yield VerdictDifference("true is not 1, and false is not 0", Direction.STRICTER, as_example(swapped))


def _swapped(value: Any) -> Any:
    """Return a value with numbers for its booleans, and booleans for 0 and 1."""
    if isinstance(value, Mapping):
        return {key: _swapped(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_swapped(each) for each in value]
    if isinstance(value, bool):
        return int(value)
    return bool(value) if isinstance(value, int | float) and value in (0, 1) else value


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts of a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from (str(key), *texts_in(each))
    elif isinstance(value, Iterable):
        for each in value:
            yield from texts_in(each)

"""Templates and checks in the suites of other tools."""

import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import Any, Final

from pytest_llmeval.core import excerpt, parse_digits, printable


class Direction(StrEnum):
    """The direction in which an imported check's verdicts differ from those of the other tool."""

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
    """An answer that an imported check judges differently, as the import report shows it."""
    return json.dumps(answer)


def of_composing(*texts: str) -> Iterator[VerdictDifference]:
    """Yield the verdict difference of a check on texts that have a decomposed Unicode form."""
    for text in texts:
        forms = (unicodedata.normalize("NFD", text), unicodedata.normalize("NFC", text))
        other = next((form for form in forms if form != text), None)
        if other is not None:
            yield VerdictDifference("texts are compared in composed form (NFC)", Direction.LOOSER, as_example(other))
            return


def of_folding(*texts: str) -> Iterator[VerdictDifference]:
    """Yield the verdict difference of a check on texts that case folding matches where lower case does not."""
    for text in texts:
        for folded, character in _folded_otherwise().items():
            if folded in text.casefold():
                example = text.casefold().replace(folded, character, 1)
                yield VerdictDifference("letters are compared by case folding", Direction.LOOSER, as_example(example))
                return


@cache
def _folded_otherwise() -> Mapping[str, str]:
    """Case-folded texts of one character, each with a character whose lower case is another text."""
    characters = map(chr, range(0x80, _LAST_FOLDED))
    return {character.casefold(): character for character in characters if character.casefold() != character.lower()}


def of_scalar_text(text: str, *, whole: bool) -> Iterator[VerdictDifference]:
    """Yield the verdict difference of a check on text that a JSON number or boolean can be, or hold.

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
    """The number that a text is in JSON, if JSON writes it with the same digits; else ``None``."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, int | float) and json.dumps(value) == text else None


def of_json_text(value: Any) -> Iterator[VerdictDifference]:
    """Yield the verdict differences of a check on JSON where the other tool compares Python values."""
    yield VerdictDifference(
        "an answer that is text is read as JSON", Direction.LOOSER, as_example(json.dumps(value, ensure_ascii=False))
    )
    yield from of_booleans(value)


def of_booleans(value: Any) -> Iterator[VerdictDifference]:
    """Yield the verdict difference of a check on JSON with 0, 1 or booleans, which are equal in Python."""
    swapped = _swapped(value)
    if as_example(swapped) != as_example(value):
        yield VerdictDifference("true is not 1, and false is not 0", Direction.STRICTER, as_example(swapped))


def _swapped(value: Any) -> Any:
    """A JSON value that equals another one in Python: numbers for its booleans, booleans for 0 and 1."""
    if isinstance(value, Mapping):
        return {key: _swapped(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_swapped(item) for item in value]
    if isinstance(value, bool):
        return int(value)
    return bool(value) if isinstance(value, int | float) and value in (0, 1) else value


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts of a JSON value in another tool's check, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, child in value.items():
            yield from (str(key), *texts_in(child))
    elif isinstance(value, Iterable):
        for item in value:
            yield from texts_in(item)


SPACES = "\t\n\v\f\r \xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
"""The white space of JavaScript."""

_OPERATORS = r"(?:cycler|false|joiner|none|not|null|range|true)\b(?![$\w])"
"""Names that mean something else in templates of Nunjucks, of which promptfoo and others make use."""

_NAME = rf"(?!{_OPERATORS})[A-Za-z_$][\w$]*(?:\.(?!length\b)[A-Za-z_$][\w$]*|\[\d+\])*"
_PLAIN = re.compile(rf"(?<!\{{)(?:(?<!\s)\s++\{{\{{-|\{{\{{-?)\s*+({_NAME})\s*(?:-\}}\}}\s*|\}}\}})")
_COMMENT = re.compile(r"\{#.*?(?:(?P<closed>#\})|\Z)", re.DOTALL)
_CODE = re.compile(r"\{\{.*?(?:\}\}|\Z)|\{%.*?(?:%\}|\Z)", re.DOTALL)
_LONGEST = 60
_DEEPEST = 8


class TemplateError(ValueError):
    """A template of another tool needs more than plain names."""


def is_template(text: str) -> bool:
    """Whether a text of another tool has the placeholders, comments or code of a template."""
    return "{{" in text or "{%" in text or "{#" in text


def names_in(text: str) -> list[str]:
    """The plain names in a template of another tool, each once, in their order."""
    return list(dict.fromkeys(_dotted(match[1]) for match in _PLAIN.finditer(_without_comments(text))))


def rewritten(text: str, write: Callable[[str], str]) -> str:
    """Rewrite a template of another tool with another text for each plain name.

    Raises:
        TemplateError: It has code.

    Example:
        >>> rewritten("Hello {{name}}!", lambda name: f"<{name}>")
        'Hello <name>!'
    """
    bare = _without_comments(text)
    if is_template(remaining := _PLAIN.sub("", bare)):
        code = _CODE.search(remaining)
        raise TemplateError(f"the template code {excerpt(code[0] if code else remaining, _LONGEST)}")
    return _PLAIN.sub(lambda match: write(_dotted(match[1])), bare)


def _without_comments(text: str) -> str:
    """A template of another tool without its closed comments."""
    return _COMMENT.sub(lambda match: "" if match["closed"] else match[0], text)


def _dotted(name: str) -> str:
    """A name in a template of another tool with the positions of lists after dots."""
    return re.sub(r"\[(\d+)\]", r".\1", name)


def filled(text: str, values: Mapping[str, Any], depth: int = 0) -> str:
    """Fill the plain names of another tool's template with values; texts among them may be templates themselves.

    A name without a value is an empty text, as in the templates of other tools.

    Raises:
        TemplateError: It has code, or a value is a list or an object.
    """

    def value_of(name: str) -> str:
        value: Any = values
        for step in name.split("."):
            if isinstance(value, list) and (place := parse_digits(step)) is not None:
                value = value[place] if place < len(value) else None
            else:
                value = value.get(step) if isinstance(value, Mapping) else None
        if name.partition(".")[0] == "env":
            raise TemplateError(f"the environment variable {name}")
        if isinstance(value, list | Mapping):
            raise TemplateError(f"{{{{ {name} }}}}, which is no text")
        if isinstance(value, str) and is_template(value) and depth < _DEEPEST:
            return filled(value, values, depth + 1)
        return plain_text(value)

    return rewritten(text, value_of)


def filled_once(text: str, values: Mapping[str, Any]) -> str:
    """Fill the plain names of another tool's template with values, which are no templates themselves.

    Raises:
        TemplateError: As `filled`.
    """
    return filled(text, values, _DEEPEST)


def plain_text(value: Any) -> str:
    """A scalar in another tool's template or check as JavaScript writes it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float) and abs(value) <= sys.float_info.max:
        return _number_text(float(value))
    return str(value)


def _number_text(value: float) -> str:
    """A number in another tool's template as JavaScript writes it, with ``e`` from 1e21 on and below 1e-6.

    Example:
        >>> _number_text(1e21), _number_text(1e-07), _number_text(5.0)
        ('1e+21', '1e-7', '5')
    """
    if not value:
        return "0"
    if not _LEAST_WRITTEN_OUT <= abs(value) < _LEAST_IN_POWERS:
        return repr(value).replace("e-0", "e-")
    return f"{Decimal(repr(value)):f}".removesuffix(".0")


_LEAST_WRITTEN_OUT = 1e-6
_LEAST_IN_POWERS = 1e21
_DRAFT_7 = "http://json-schema.org/draft-07/schema#"
_LINES = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def check_fault(entry: Any) -> str | None:
    """The fault of an imported check; ``None`` if a suite can have it."""
    from pytest_llmeval.evaluators import CheckReader

    _, faults = CheckReader.read_alone([entry])
    return faults[0].partition(": ")[2] if faults else None


def json_schema(schema: Any) -> Any:
    """An imported JSON Schema with its draft: without ``$schema``, other tools read draft 7."""
    if isinstance(schema, Mapping) and "$schema" not in schema:
        return {"$schema": _DRAFT_7, **schema}
    return schema


def code_stub(name: str, place: str, code: str, usage: str) -> str:
    """Python to begin with in place of code that an import leaves out: a registered check with the code as comments.

    Args:
        name: Of the check.
        place: Where the code stands.
        code: The code.
        usage: The check as a suite file has it.
    """
    comments = "\n".join(f"    # {printable(line)}".rstrip() for line in _LINES.split(code.strip()))
    return (
        f"# conftest.py; in the suite: checks: [{usage}]\n"
        f"def {name}(answer: str) -> bool:\n"
        f'    """Replace the code of {printable(place)}."""\n'
        f"{comments}\n"
        f'    raise NotImplementedError("{name}")\n\n\n'
        "def pytest_llmeval_register(registry):\n"
        f"    registry.register_check({name})"
    )

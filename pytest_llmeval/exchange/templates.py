"""Templates and entries of checks that importers share."""

import re
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from pytest_llmeval.core.wording import excerpt, printable

SPACES = "\t\n\v\f\r \xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
"""The white space of JavaScript."""

_WORDS = r"(?:cycler|false|joiner|none|not|null|range|true)\b(?![$\w])"
"""Names that mean something else in templates of Nunjucks, of which promptfoo and others make use."""

_NAME = rf"(?!{_WORDS})[A-Za-z_$][\w$]*(?:\.(?!length\b)[A-Za-z_$][\w$]*|\[\d+\])*"
_PLAIN = re.compile(rf"(?<!\{{)(?:\s*\{{\{{-|\{{\{{)\s*({_NAME})\s*(?:-\}}\}}\s*|\}}\}})")
_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_CODE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_LONGEST = 60
_DEEPEST = 8


class TemplateError(ValueError):
    """A template needs more than plain names."""


def is_template(text: str) -> bool:
    """Return whether a text has placeholders, comments or code."""
    return "{{" in text or "{%" in text or "{#" in text


def names_in(text: str) -> list[str]:
    """Return the plain names of a template, each once, in their order."""
    return list(dict.fromkeys(_dotted(match[1]) for match in _PLAIN.finditer(_COMMENT.sub("", text))))


def rewritten(text: str, write: Callable[[str], str]) -> str:
    """Return a template with another text for each plain name.

    Raises:
        TemplateError: It has code.

    Example:
        >>> rewritten("Hello {{name}}!", lambda name: f"<{name}>")
        'Hello <name>!'
    """
    bare = _COMMENT.sub("", text)
    if is_template(remaining := _PLAIN.sub("", bare)):
        code = _CODE.search(remaining)
        raise TemplateError(f"the template code {excerpt(code[0] if code else remaining, _LONGEST)}")
    return _PLAIN.sub(lambda match: write(_dotted(match[1])), bare)


def _dotted(name: str) -> str:
    """Return a name with the positions of lists after dots."""
    return re.sub(r"\[(\d+)\]", r".\1", name)


def filled(text: str, values: Mapping[str, Any], depth: int = 0) -> str:
    """Return a text with the values of its plain names; texts among the values may be templates themselves.

    A name without a value is an empty text, as in the templates of other tools.

    Raises:
        TemplateError: It has code, or a value is a list or an object.
    """

    def value_of(name: str) -> str:
        value: Any = values
        for step in name.split("."):
            if isinstance(value, list) and step.isdecimal():
                value = value[int(step)] if int(step) < len(value) else None
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
    """Return a text with the values of its plain names, which are no templates themselves.

    Raises:
        TemplateError: As `filled`.
    """
    return filled(text, values, _DEEPEST)


def plain_text(value: Any) -> str:
    """Return a scalar as JavaScript writes it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float) and abs(value) <= sys.float_info.max:
        return _number_text(float(value))
    return str(value)


def _number_text(value: float) -> str:
    """Return a number as JavaScript writes it: the shortest digits, with ``e`` from 1e21 on and below 1e-6.

    Example:
        >>> _number_text(1e21), _number_text(1e-07), _number_text(5.0)
        ('1e+21', '1e-7', '5')
    """
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + int(exponent)  # the place of the decimal point, counted from the first digit
    if text == "0":
        return "0"
    if _SMALLEST_POINT < point <= _LARGEST_POINT:
        whole = text[: max(point, 0)].ljust(point, "0") or "0"
        part = "0" * -point + text[max(point, 0) :]
        number = f"{whole}.{part}" if part and text[max(point, 0) :] else whole
    else:
        number = f"{text[0]}{'.' if text[1:] else ''}{text[1:]}e{point - 1:+d}"
    return f"{'-' if sign else ''}{number}"


_SMALLEST_POINT = -6
_LARGEST_POINT = 21
_DRAFT_7 = "http://json-schema.org/draft-07/schema#"
_LINES = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def check_fault(entry: Any) -> str | None:
    """Return the fault of a check; ``None`` if a suite can have it."""
    from pytest_llmeval.evaluators.checks.kinds import SHIPPED
    from pytest_llmeval.evaluators.checks.reading import CheckReader, Unlocated

    host = Unlocated()
    CheckReader(SHIPPED, host).read([entry], ())
    return host.faults[0].partition(": ")[2] if host.faults else None


def json_schema(schema: Any) -> Any:
    """Return a JSON Schema that says which draft it is: without ``$schema``, other tools read draft 7."""
    if isinstance(schema, Mapping) and "$schema" not in schema:
        return {"$schema": _DRAFT_7, **schema}
    return schema


def code_stub(name: str, place: str, code: str, usage: str) -> str:
    """Return Python to begin with in place of code that is not imported: a registered check, the code as comments.

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

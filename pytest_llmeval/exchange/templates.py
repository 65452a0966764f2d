"""Templates of other tools: only plain ``{{ name }}`` is filled; whatever would have to be executed is left alone."""

__all__ = ("TemplateError", "filled", "is_template", "names_in", "rewritten")

import re
from collections.abc import Callable, Mapping
from typing import Any

_NAME = r"[A-Za-z_$][\w$-]*(?:\.[\w$-]+|\[\d+\])*"
_PLAIN = re.compile(rf"\{{\{{-?\s*({_NAME})\s*-?\}}\}}")
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
    for match in _CODE.finditer(bare):
        if not _PLAIN.fullmatch(match[0]):
            code = match[0] if len(match[0]) <= _LONGEST else match[0][:_LONGEST] + "..."
            raise TemplateError(f"the template code {code}")
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
        found: Any = values
        for step in name.split("."):
            if isinstance(found, list) and step.isdecimal():
                found = found[int(step)] if int(step) < len(found) else None
            else:
                found = found.get(step) if isinstance(found, Mapping) else None
        if name.partition(".")[0] == "env":
            raise TemplateError(f"the environment variable {name}")
        if isinstance(found, list | Mapping):
            raise TemplateError(f"{{{{ {name} }}}}, which is no text")
        if isinstance(found, str) and is_template(found) and depth < _DEEPEST:
            return filled(found, values, depth + 1)
        return plain_text(found)

    return rewritten(text, value_of)


def plain_text(value: Any) -> str:
    """Return a scalar as templates write it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)

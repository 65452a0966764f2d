"""What importers share about checks: whether an entry is a valid one, and regular expressions of JavaScript."""

__all__ = ("check_fault", "code_stub", "json_schema", "python_pattern")

import re
from collections.abc import Mapping
from typing import Any

from pytest_llmeval.core.wording import printable

_DRAFT_7 = "http://json-schema.org/draft-07/schema#"
_PART = re.compile(r"\\k<\w+>|\\.|\[\^?\]|\[\^?|\]|.", re.DOTALL)
_ASCII_CLASSES = frozenset({r"\d", r"\D", r"\w", r"\W", r"\b", r"\B"})
_SPACES = frozenset({r"\s", r"\S"})
_LINES = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def check_fault(entry: Any) -> str | None:
    """Return what is wrong with a check; ``None`` if a suite can have it."""
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


def python_pattern(pattern: str) -> tuple[str, str]:
    r"""Return a regular expression of JavaScript (without flags) for Python, and what differs; empty if nothing does.

    Example:
        >>> python_pattern(r"^\d+$")
        ('(?a)^\\d+\\Z', '')
    """
    parts: list[str] = []
    inside = False
    classes: set[str] = set()
    for part in _PART.findall(pattern):
        written = part
        if inside and part == "[":
            written = r"\["
        elif part in ("[]", "[^]") and not inside:
            written = "(?!)" if part == "[]" else r"[\s\S]"
        elif part in ("[", "[^", "]"):
            inside = part != "]"
        elif part == "$" and not inside:
            written = r"\Z"
        elif part.startswith(r"\k<"):
            written = f"(?P={part[3:-1]})"
        elif part == r"\/":
            written = "/"
        classes.add(part)
        parts.append(written)
    text = "".join(parts)
    if classes & _ASCII_CLASSES:
        if classes & _SPACES:
            return text, r"letters and digits of all scripts match \w and \d here, those of ASCII there"
        return f"(?a){text}", ""
    return text, ""


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
        f'    """Stands for the code of {printable(place)}."""\n'
        f"{comments}\n"
        f'    raise NotImplementedError("{name}")\n\n\n'
        "def pytest_llmeval_register(registry):\n"
        f"    registry.register_check({name})"
    )

"""Faults of YAML's syntax, told in our own form."""

__all__ = ("add_yaml_fault",)

import re

import yaml

from pytest_llmeval.faults import Faults

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_BREAK = re.compile(r"\r\n|\r|\n")


def add_yaml_fault(text: str, error: yaml.YAMLError, faults: Faults) -> None:
    """Add the fault that the parser stopped at; `text` is what it read."""
    if isinstance(error, yaml.MarkedYAMLError):
        _syntax_fault(text, error, faults)
    else:
        _character_fault(text, error, faults)


def _character_fault(text: str, error: yaml.YAMLError, faults: Faults) -> None:
    """Tell where a character stands that YAML does not allow, whatever the unit of the parser's own position."""
    bad = _UNPRINTABLE.search(text)
    at = bad.start() if bad else 0
    what = f"the character U+{ord(text[at]):04X}" if bad else str(error)
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    faults.add(line, column, "", f"found {what}, expected it escaped in double quotes")


def _syntax_fault(text: str, error: yaml.MarkedYAMLError, faults: Faults) -> None:
    """Tell a fault of the syntax, with YAML's words for what is wrong."""
    mark = error.problem_mark or error.context_mark
    if mark is None:
        faults.add(0, 0, "", f"found {error.problem}, expected valid YAML")
        return
    lines = _LINE_BREAK.split(text)
    rest = lines[mark.line][mark.column :] if mark.line < len(lines) else ""
    if rest.startswith("\t"):
        message = "found a tab, expected spaces: YAML is not indented by tabs"
    else:
        end = "the end of the line" if mark.line < len(lines) - 1 else "the end of the file"
        found = repr(rest[:20]) if rest else end
        message = f"found {found}, expected valid YAML ({_explanation(error)})"
    faults.add(mark.line + 1, mark.column + 1, "", message)


def _explanation(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "it cannot be read"
    began = error.context_mark
    if not error.context or began is None:
        return problem
    return f"{error.context} that begins at {began.line + 1}:{began.column + 1}, {problem}"

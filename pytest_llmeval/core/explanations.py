"""Lines that say what is wrong with an answer."""

__all__ = ("as_line", "cut", "detail_lines", "listed")

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_llmeval.core.wording import counted, printable

_MOST = 5
_LONGEST = 300
_WRONG, _REASONING = "wrong", "reasoning"


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` characters and, where it is longer, how many were left out.

    >>> cut("abcdef", 4), cut("abcd", 4)
    ('abcd... (2 more characters)', 'abcd')
    """
    return text if len(text) <= most else f"{text[:most]}... ({counted(len(text) - most, 'more character')})"


def listed(items: Iterable[str], most: int = _MOST) -> str:
    """Write the first few of some things, and how many were left out.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    names = list(items)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def as_line(value: Any, most: int = _LONGEST) -> str:
    r"""Return a value as one printable line: a text as it is, anything else as JSON.

    >>> as_line("two\nlines"), as_line({"a": None})
    ('two\\nlines', '{"a": null}')
    """
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    # Of a huge text only the beginning is escaped.
    head = printable(text[: most + 1])
    return cut(head, most) if len(text) <= most + 1 else f"{head[:most]}... ({len(text) - most} more characters)"


def detail_lines(details: Mapping[str, Any]) -> list[str]:
    """Return the lines under ``wrong`` of an observation's details, or else what the details hold, a line each.

    >>> detail_lines({"wrong": ["total: found 3, expected 4"], "n": 1})
    ['total: found 3, expected 4']
    >>> detail_lines({"missing": ["Bela"], "note": ""})
    ['missing: ["Bela"]']
    """
    wrong = details.get(_WRONG)
    if isinstance(wrong, list | tuple):
        return [each for each in wrong if isinstance(each, str)]
    return [
        as_line(value) if name == _REASONING else f"{name}: {as_line(value)}"
        for name, value in details.items()
        if value not in (None, "", [], {})
    ]

"""Wording of messages."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from html import escape
from typing import Any, Final, NamedTuple

from pytest_llmeval.core._media_forms import MediaForm

NOT_AVAILABLE = "n/a"

_MARK = "..."

_IGNORABLE = (
    *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2800, 0x2800), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF)),
)
_BLANK = frozenset(chr(code) for first, last in _IGNORABLE for code in range(first, last + 1))
"""Letters, marks and symbols without a shape: Unicode's default ignorable ones, and the empty braille pattern."""

_ANY_BLANK = re.compile("[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in _IGNORABLE) + "]")
_USUAL = (
    r"\u4e00-\u9fea\x20-\x7e\u3001-\u303e\uff01-\uff5e\u3041-\u3096\u30a0-\u30ff\uac00-\ud7a3"
    r"\u2010-\u2027\u00a1-\u00ac\u00ae-\u034e\u0400-\u052f"
)
"""Chinese, Japanese, Korean, Latin and Cyrillic characters, all visible, which most texts consist of."""
_USUAL_LINE = re.compile(f"[{_USUAL}]*+")
_USUAL_LINES = re.compile(rf"[{_USUAL}\n\t]*+")
_UNUSUAL = re.compile(f"[^{_USUAL}]")


_MOST_DECIMALS = 13
_SAME = 1e-12
"""Numbers that differ from a limit by no more are equal to it."""


def number(value: float | None, *beside: float | None) -> str:
    """The wording of a score: four decimals, an absent one as ``n/a``.

    Args:
        value: The score.
        beside: Limits or other scores: it gets as many decimals as show on which side of them it lies.

    >>> number(2 / 3), number(None), number(-0.00001), number(1234.5)
    ('0.6667', 'n/a', '0.0000', '1234.5')
    >>> number(0.99999999, 1), number(0.75, 0.8), number(1, 1)
    ('0.99999999', '0.7500', '1.0000')
    """
    if value is None:
        return NOT_AVAILABLE
    text = f"{value:.4f}" if abs(value) < 1000 else f"{value:.1f}"  # noqa: PLR2004 (beyond this, decimals are noise)
    text = text.removeprefix("-") if not text.strip("-0.") else text
    apart = [limit for limit in beside if limit is not None and abs(value - limit) > _SAME]
    for decimals in range(5, _MOST_DECIMALS + 1) if apart else ():
        if all((float(text) < limit, float(text) > limit) == (value < limit, value > limit) for limit in apart):
            break
        text = f"{value:.{decimals}f}"
    return text


def interval(low: float | None, high: float | None) -> str:
    """The wording of a score's confidence interval.

    >>> interval(0.5, 0.75), interval(None, None)
    ('0.5000..0.7500', 'n/a')
    """
    return NOT_AVAILABLE if low is None or high is None else f"{number(low)}..{number(high)}"


def limit(value: float) -> str:
    """The wording of a limit of a threshold or gate, as the user would have typed it.

    >>> limit(0.7), limit(1.0), limit(20)
    ('0.7', '1', '20')
    """
    return f"{value:.12g}"


def width_of(text: str) -> int:
    """The width of a text in terminal columns; East Asian wide characters take two.

    >>> width_of("Tokyo"), width_of("東京")
    (5, 4)
    """
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    return max(wcswidth(text), 0)


def counted(count: int, noun: str) -> str:
    """The wording of a number of things, such as ``3 cases``.

    >>> counted(1, "case"), counted(3, "case")
    ('1 case', '3 cases')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def seconds(value: float) -> str:
    """The wording of a duration, in milliseconds or seconds.

    >>> seconds(0.004), seconds(12.34)
    ('4 ms', '12.3 s')
    """
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


_LONGEST = 80
_SHORT = 4


def closest(word: str, options: Iterable[str]) -> str | None:
    """The known name most like `word`, for a hint in a message; ``None`` if none is like it.

    Upper and lower case count as alike. Words of more than 80 characters are like nothing.
    """
    if len(word) > _LONGEST:
        return None
    spelled = {option.lower(): option for option in sorted(options, reverse=True)}
    # Of a short name one letter is much: f2 and f1 are half alike.
    cutoff = 0.5 if len(word) <= _SHORT else 0.6
    near = get_close_matches(word.lower(), sorted(spelled), n=1, cutoff=cutoff)
    return spelled[near[0]] if near else None


def suggest(word: str, options: Iterable[str]) -> str:
    """The ending `` (did you mean 'f1'?)`` of a message, for the option most like `word`; empty if none is like it."""
    near = closest(word, options)
    return f" (did you mean {near!r}?)" if near is not None else ""


_MOST_NEAR = 5


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """The message on an unknown name, with the name that was probably meant, or else the likeliest known ones.

    >>> unknown_name("tokenizer", "word", ["auto", "words"])
    'unknown tokenizer word, did you mean words?'
    >>> unknown_name("key", "x y", ["cases", "checks", "gates", "mode", "parts", "stop", "suite"])
    "unknown key 'x y', expected one of cases, checks, gates, mode, parts and 2 more"
    """
    quoted = name if _PLAIN_NAME.fullmatch(name) else quotation(name, _LONGEST)
    options = sorted(known)
    near = closest(name, options)
    if near is not None:
        return f"unknown {kind} {quoted}, did you mean {near}?"

    def likeness(option: str) -> float:
        return SequenceMatcher(None, name[:_LONGEST].lower(), option.lower(), autojunk=False).ratio()

    more = len(options) - _MOST_NEAR
    if more > 0:
        options = sorted(sorted(options, key=likeness, reverse=True)[:_MOST_NEAR])
    return f"unknown {kind} {quoted}, expected one of {', '.join(options)}" + (f" and {more} more" if more > 0 else "")


_PLAIN_NAME = re.compile(r"[A-Za-z_][\w.@\[\]-]{0,60}")
"""What needs no quotes in a sentence."""


def is_visible(character: str) -> bool:
    """Whether people see a character; they do see a space.

    Control, formatting (bidirectional ones among them), private, unassigned and separating characters are not visible,
    nor are the letters and marks that Unicode lets programs ignore.
    """
    return character.isprintable() and character not in _BLANK


def all_visible(text: str) -> bool:
    """Whether people see all characters of a text from a user's file or a model."""
    return _USUAL_LINE.fullmatch(text) is not None or (text.isprintable() and _ANY_BLANK.search(text) is None)


def printable(text: str, *, lines: bool = False) -> str:
    r"""A text for a message, with escapes for what a terminal would obey and what people would not see.

    Args:
        text: From anywhere.
        lines: Whether line breaks and tabs stay.

    >>> printable("a\u202eb\u3164\n"), printable("two\nlines", lines=True)
    ('a\\u202eb\\u3164\\n', 'two\nlines')
    """
    if (_USUAL_LINES if lines else _USUAL_LINE).fullmatch(text):
        return text
    layout = "\n\t" if lines else ""
    line = text
    for mark in layout:
        line = line.replace(mark, "")
    if all_visible(line):
        return text

    def escaped(match: re.Match[str]) -> str:
        character = match[0]
        if character in layout or is_visible(character):
            return character
        return character.encode("unicode_escape").decode("ascii")

    return _UNUSUAL.sub(escaped, text)


_ORDER = re.compile(r"(?:^|(?<=[\r\n]))(?:[^\S\r\n]|\x1b\[[\d;]*m)*:(?=:)|##\w*(?=\[)")
"""The beginning of what a runner of CI obeys: ``::command`` after blanks, ``##[command]`` and ``##vso[`` anywhere."""


class LogWriter:
    r"""Writer of a log that CI shows, and whose lines it may obey: what a model wrote must stay text.

    A backslash breaks the form of commands, such as ``:\:set-output`` and ``##\[add-mask]``, wherever the layout puts
    them, and however few characters are written at a time.

    Args:
        file: What is written to; all else is asked of it.

    >>> import io
    >>> log = LogWriter(io.StringIO())
    >>> for text in ("  :", ":set-output::x\n", "a ##[group]b"):
    ...     _ = log.write(text)
    >>> log.write_order("::notice::done")
    >>> print(log.getvalue(), end="")
      :\:set-output::x
    a ##\[group]b
    ::notice::done
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._line = ""

    def write(self, text: str) -> int:
        """Write text, and return how many of its characters were written."""
        known = len(self._line)
        whole = self._line + text
        self._line = _shorten_log_line(whole[max(whole.rfind("\n"), whole.rfind("\r")) + 1 :])
        places = [order.end() - known for order in _ORDER.finditer(whole)] if ":" in text or "[" in text else []
        starts = [0, *(place for place in places if place >= 0)]
        self._file.write("\\".join(text[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)))
        return len(text)

    def write_order(self, order: str) -> None:
        """Write a line that the runner of CI is to obey, after the present line of the log."""
        self._file.write(f"\n{order}\n" if self._line else f"{order}\n")
        self._line = ""

    def writelines(self, lines: Iterable[str]) -> None:
        """Write lines, which end as they do."""
        for line in lines:
            self.write(line)

    @staticmethod
    def escape_json(text: str) -> str:
        r"""JSON without commands that a runner of CI would obey in its log; it stays the same data.

        >>> LogWriter.escape_json('{"a": "##[group]b"}')
        '{"a": "##\\u005bgroup]b"}'
        """
        return _ORDER_IN_JSON.sub(r"\1\\u005b", text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


_REMEMBERED: Final = 200
"""Characters of a line that may begin an order: its name is shorter."""
_BLANK_LINE = re.compile(r"(?:\s|\x1b\[[\d;]*m)*+(:?|\x1b(?:\[[\d;]*)?)")


def _shorten_log_line(line: str) -> str:
    """A short line in place of a long one in a CI log, before which the same commands begin."""
    if len(line) <= _REMEMBERED:
        return line
    blank = _BLANK_LINE.fullmatch(line)
    return f"x{line[-_REMEMBERED:]}" if blank is None else blank[1]


_ORDER_IN_JSON = re.compile(r"(##\w*+)\[")
"""What is obeyed in JSON: ``#`` is only in texts, of which none begins a line."""

_MOST = 5
_LONGEST_LIST = 300
_LONGEST_ARGUMENTS = 120
_WRONG, _REASONING = "wrong", "reasoning"


def excerpt(text: str, limit: int, *, lines: bool = False, count: bool = False) -> str:
    r"""The beginning of a foreign text for a message, without control characters, with a mark if it is cut.

    Args:
        text: From anywhere.
        limit: Maximum number of characters in front of the mark.
        lines: Whether line breaks and tabs stay, see `printable`.
        count: Whether the mark has the number of characters that are left out.

    >>> excerpt("abcdef", 4), excerpt("abcdef", 4, count=True), excerpt("abcd", 4), excerpt("\x1b", 4)
    ('abcd...', 'abcd... (2 more characters)', 'abcd', '\\x1b')
    """
    if len(text) <= limit and all_visible(text):
        return text[:limit]
    # Of a huge text only the beginning is escaped.
    head = printable(text[: limit + 1], lines=lines)
    remainder = len(head) - limit + max(0, len(text) - limit - 1)
    if remainder <= 0:
        return head
    return f"{head[:limit]}{_MARK}" + (f" ({counted(remainder, 'more character')})" if count else "")


def quotation(text: str, limit: int, *, end: bool = False) -> str:
    r"""The beginning of a foreign text, or its end, in quotes as Python writes them.

    >>> quotation("it's", 4), quotation("two\nlines", 5), quotation("abcdef", 4, end=True)
    ('"it\'s"', "'two\\nl...'", "'...cdef'")
    """
    part = text if len(text) <= limit else _MARK + text[-limit:] if end else text[:limit] + _MARK
    return printable(repr(part))


def listed(items: Iterable[str], most: int = _MOST, more: str = " (and {} more)", separator: str = ", ") -> str:
    """The first few items of a list for a message, and how many were left out.

    >>> listed(["a", "b", "c"], 2)
    'a, b (and 1 more)'
    """
    names = list(items)
    return separator.join(names[:most]) + (more.format(len(names) - most) if len(names) > most else "")


def call_text(name: str, arguments: Mapping[str, Any] | None) -> str:
    """A tool call of an agent, as messages show it.

    >>> call_text("find", {"q": "order", "all": True}), call_text("stop", None)
    ('find("q": "order", "all": true)', 'stop()')
    """
    text = "" if arguments is None else json.dumps(arguments, ensure_ascii=False, default=str)[1:-1]
    return f"{name}({excerpt(text, _LONGEST_ARGUMENTS)})"


def as_line(value: Any, most: int = _LONGEST_LIST) -> str:
    r"""A value of a case as one printable line: text unchanged, anything else as JSON, with descriptions of media.

    >>> as_line("two\nlines"), as_line({"a": None})
    ('two\\nlines', '{"a": null}')
    """
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if '"media"' in text and not isinstance(value, str):
        described = MediaForm.describe_all(value)
        text = described if isinstance(described, str) else json.dumps(described, ensure_ascii=False, default=str)
    return excerpt(text, most, count=True)


def detail_lines(details: Mapping[str, Any]) -> list[str]:
    """The lines under ``wrong`` of an observation's details, or else what the details hold, a line each.

    >>> detail_lines({"wrong": ["total: found 3, expected 4"], "n": 1})
    ['total: found 3, expected 4']
    >>> detail_lines({"missing": ["Bela"], "note": ""})
    ['missing: ["Bela"]']
    """
    wrong = details.get(_WRONG)
    if isinstance(wrong, list | tuple):
        return [line for line in wrong if isinstance(line, str)]
    return [
        as_line(value) if name == _REASONING else f"{name}: {as_line(value)}"
        for name, value in details.items()
        if value not in (None, "", [], {})
    ]


class AlignedTable(NamedTuple):
    """A table of texts, of which the first row is the header.

    Attributes:
        rows: Its cells by row.
        texts: Positions of left-aligned columns; the others hold numbers.
    """

    rows: Sequence[Sequence[str]]
    texts: Sequence[int] = (0,)

    def padded_rows(self) -> Iterator[list[str]]:
        """Yield the cells of each row, padded with blanks to the widths of their columns."""
        widths = [max(map(width_of, column)) for column in zip(*self.rows, strict=True)]
        for row in self.rows:
            blanks = [" " * (width - width_of(cell)) for cell, width in zip(row, widths, strict=True)]
            yield [
                f"{cell}{blank}" if column in self.texts else f"{blank}{cell}"
                for column, (cell, blank) in enumerate(zip(row, blanks, strict=True))
            ]

    def lines(self) -> Iterator[str]:
        """Yield its lines with aligned columns."""
        for cells in self.padded_rows():
            yield "  ".join(cells).rstrip()

    def html(self) -> str:
        """The table for notebooks; every text in it is escaped."""
        kinds = ("th", *["td"] * (len(self.rows) - 1))
        cells = (
            "".join(f"<{kind}>{escape(printable(cell))}</{kind}>" for cell in row)
            for kind, row in zip(kinds, self.rows, strict=True)
        )
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"

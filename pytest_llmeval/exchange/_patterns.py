"""Regular expressions of JavaScript (ECMAScript 2024, with Annex B), and patterns of paths, for Python."""

import re
import sys
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from pytest_llmeval.core import quotation
from pytest_llmeval.exchange._ledger import LeftOutError
from pytest_llmeval.exchange._templates import SPACES

_EMOJI: Final = "a character beyond U+FFFF, such as an emoji, is one character here and two there"
_REPEATED: Final = "a reference to a group that repeats, or has not ended, can be to another text"
_PROPERTY: Final = "classes of characters are those of another version of Unicode"

_QUANTIFIER = re.compile(r"([*+?]|\{(\d+)(,(\d*))?\})(\??)", re.ASCII)
_GROUP_NAME = re.compile(r"\?<([^\W\d][\w$]*|\$[\w$]*)>")
_CONTROLS: Final = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_SYNTAX: Final = frozenset("^$\\.*+?()[]{}|/")
_LAST_UNIT: Final = 0xFFFF
_SURROGATES: Final = range(0xD800, 0xE000)


class RefusedPatternError(LeftOutError):
    """JavaScript refuses a pattern, so nothing matches it there."""


def python_pattern(pattern: str, *, unicode: bool = False, flags: str = "") -> tuple[str, str]:
    r"""Translate a regular expression of JavaScript to Python, and state the differences, if any.

    Args:
        pattern: Without slashes and flags.
        unicode: Whether it has the flag ``u``.
        flags: Its other flags: ``i``, ``m`` and ``s``, and ``g``, which does not matter in a search.

    Raises:
        RefusedPatternError: JavaScript refuses it.
        LeftOutError: It has a flag that is not known here, is nested too deeply, or has a number that is too long.

    Example:
        >>> python_pattern(r"^\d+$")
        ('(?a)^\\d+\\Z', '')
    """
    if unknown := set(flags) - {"i", "m", "s", "g"}:
        raise LeftOutError(f"the flag {min(unknown)} of the pattern {quotation(pattern, 60)} is not known here")
    translation = _Translation(pattern, unicode, flags)
    try:
        text = translation.translated()
    except (RecursionError, ValueError) as error:
        why = "is nested too deeply" if isinstance(error, RecursionError) else "has a number that is too long"
        raise LeftOutError(f"the pattern {quotation(pattern, 60)} {why}") from None
    options = ("a" if translation.is_ascii else "") + ("i" if "i" in flags else "")
    if "i" in flags:
        only = "only letters of ASCII are compared in any case"
        translation.differences[only if translation.is_ascii else "letters are compared by case folding"] = None
    return (f"(?{options})" if options else "") + text, "; ".join(translation.differences)


_GLOB = re.compile(r"\*\*/|\*\*|\*|\?|[^*?]+")
_GLOB_PARTS: Final = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/\\n]*", "?": "[^/\\n]"}


def glob_pattern(path: str) -> str:
    """Translate a path with ``*``, ``**`` and ``?`` to a regular expression of Python for one line.

    Raises:
        LeftOutError: It is no such path.
    """
    if not path or set(path) & set("[]{}!"):
        raise LeftOutError(f"found the path {path!r}, expected one with *, ** and ? alone")
    return "".join(_GLOB_PARTS.get(part, re.escape(part)) for part in _GLOB.findall(path.removeprefix("./")))


def pattern_of_times(pattern: str, times: int) -> str:
    """A regular expression of Python for texts in which an imported pattern is found so many times.

    Raises:
        LeftOutError: The pattern has references.
    """
    if re.search(r"\(\?\(|\\[1-9]", pattern):
        raise LeftOutError("it counts matches of a pattern with references")
    inner, options = re.sub(r"^\(\?[ai]+\)", "", pattern), "".join(re.findall(r"^\(\?[ai]+\)", pattern))
    unnamed = re.sub(r"\(\?<(?![=!])[^>(]*+>", "(", inner)
    between = rf"(?:(?!{unnamed})[\s\S])*+"
    return rf"{options}\A(?>{between}(?>{unnamed})){{{times}}}{between}\Z"


class _Atom(NamedTuple):
    """A part of a JavaScript pattern that a quantifier can follow.

    Attributes:
        text: In Python.
        wide: Whether it matches characters beyond U+FFFF.
        fixed: Whether it matches one character of a few.
        repeatable: Whether a quantifier may follow.
    """

    text: str
    wide: bool = False
    fixed: bool = False
    repeatable: bool = True


_SIMPLE: Final = {
    "^": _Atom("^", repeatable=False),
    "$": _Atom(r"\Z", repeatable=False),
    ".": _Atom(r"[^\n\r\u2028\u2029]", wide=True),
}
_WITH_FLAG: Final = {
    "m": {
        "^": _Atom(r"(?<![^\n\r\u2028\u2029])", repeatable=False),
        "$": _Atom(r"(?![^\n\r\u2028\u2029])", repeatable=False),
    },
    "s": {".": _Atom(r"[\s\S]", wide=True)},
}


class _Translation:
    """The translation of one JavaScript pattern to Python, from left to right.

    Attributes:
        differences: In the order in which they were noticed.
        is_ascii: Whether classes of letters and digits are those of ASCII.
    """

    def __init__(self, pattern: str, unicode: bool, flags: str) -> None:
        self.pattern = pattern
        self._simple = _SIMPLE | {key: atom for flag in flags for key, atom in _WITH_FLAG.get(flag, {}).items()}
        self.unicode = unicode
        self.place = 0
        self.differences: dict[str, None] = {}
        self.is_ascii = False
        bare = re.sub(r"\\.|\[(?:\\.|[^\]\\])*+\]?", "", pattern, flags=re.DOTALL)
        self._groups = len(re.findall(r"\((?!\?)|\(\?<(?![=!])", bare))
        self._has_names = "(?<" in re.sub(r"\(\?<[=!]", "", bare)
        self._names: dict[str, int] = {}
        self._begun = 0
        self._ended: set[int] = set()
        self._depth = 0
        self._repeats_groups = False
        self._has_references = False
        self._looks_around = False
        self._needs_wide = False
        self._follows_wide = False
        """Whether a wide atom that needs a character could stand directly before the next one."""

    def translated(self) -> str:
        text = self._alternatives()
        if self.place < len(self.pattern):
            raise self._refused("a bracket that nothing opens")
        if self._has_references and self._repeats_groups:
            self.differences[_REPEATED] = None
        if self._looks_around and self._needs_wide:
            self.differences[_EMOJI] = None
        return text

    def _refused(self, why: str) -> RefusedPatternError:
        named = quotation(self.pattern, 60)
        return RefusedPatternError(f"JavaScript refuses the pattern {named} ({why}), so every answer fails there")

    def _peek(self, text: str) -> bool:
        return self.pattern.startswith(text, self.place)

    def _take(self, text: str) -> bool:
        if self._peek(text):
            self.place += len(text)
            return True
        return False

    def _alternatives(self) -> str:
        before, ends, parts = self._follows_wide, [], []
        while True:
            self._follows_wide = before
            parts.append(self._sequence())
            ends.append(self._follows_wide)
            if not self._take("|"):
                self._follows_wide = any(ends)
                return "|".join(parts)

    def _sequence(self) -> str:
        parts = []
        while self.place < len(self.pattern) and not self._peek("|") and not self._peek(")"):
            begun, before = self._begun, self._follows_wide
            atom = self._atom()
            match = _QUANTIFIER.match(self.pattern, self.place)
            if match is None:
                self._count(atom, 1, 1)
                parts.append(atom.text)
                continue
            if not atom.repeatable:
                raise self._refused("nothing to repeat")
            self.place = match.end()
            sign, least, comma, most = match[1], match[2], match[3], match[4]
            low = int(least) if least else int(sign == "+")
            high = {"*": None, "+": None, "?": 1}.get(sign, low if not comma else int(most) if most else None)
            if high is not None and high < low:
                raise self._refused("limits in the wrong order")
            self._repeats_groups = self._repeats_groups or (self._begun > begun and high != 1)
            if atom.text.startswith("(") and not atom.wide:
                if high != 1 and self._follows_wide:
                    self.differences[_EMOJI] = None
                self._follows_wide = self._follows_wide or before
            else:
                self._count(atom, low, high)
            parts.append(f"{atom.text}{match[0]}")
        return "".join(parts)

    def _count(self, atom: _Atom, low: int, high: int | None) -> None:
        """Note a difference if it matters how many characters an emoji is."""
        if atom.wide and not self.unicode:
            if high is not None or low > 1 or (low == 1 and self._follows_wide):
                self.differences[_EMOJI] = None
            self._follows_wide = self._follows_wide or low == 1
            self._needs_wide = self._needs_wide or low == 1
        elif atom.fixed and low:
            self._follows_wide = False

    def _atom(self) -> _Atom:
        character = self.pattern[self.place]
        self.place += 1
        if character in "*+?" or (character == "{" and _QUANTIFIER.match(self.pattern, self.place - 1)):
            raise self._refused("nothing to repeat")
        if character in "{}]" and self.unicode:
            raise self._refused(f"a lone {character}")
        if character in self._simple:
            return self._simple[character]
        read = {"(": self._group, "[": self._class, "\\": self._escape}.get(character)
        return self._literal(ord(character)) if read is None else read()

    def _literal(self, code: int) -> _Atom:
        """Return a character; half of one is near, and so is one that is repeated as two halves there."""
        if code in _SURROGATES:
            self.differences[_EMOJI] = None
        if code > _LAST_UNIT and not self.unicode and _QUANTIFIER.match(self.pattern, self.place):
            self.differences[_EMOJI] = None
        return _Atom(_written(code, r"^$\.*+?()[]{}|"), fixed=code <= _LAST_UNIT)

    def _group(self) -> _Atom:
        """Return a group whose opening bracket has been read."""
        opening, number, repeatable = "(", 0, True
        if self._take("?:"):
            opening = "(?:"
        elif match := re.compile(r"\?<?[=!]").match(self.pattern, self.place):
            self.place = match.end()
            opening = f"({match[0]}"
            repeatable = not self.unicode and "<" not in opening
        elif name := _GROUP_NAME.match(self.pattern, self.place):
            self.place = name.end()
            self._begun += 1
            number = self._begun
            if name[1] in self._names:
                raise self._refused(f"two groups {name[1]}")
            self._names[name[1]] = number
        elif self._peek("?"):
            raise self._refused("a group of another kind")
        else:
            self._begun += 1
            number = self._begun
        self._depth += 1
        text = f"{opening}{self._alternatives()})"
        self._depth -= 1
        if not self._take(")"):
            raise self._refused("a group that does not end")
        if number:
            self._ended.add(number)
        if "=" in opening or "!" in opening:
            self._looks_around = True
            text = f"(?:{text})"
        return _Atom(text, repeatable=repeatable)

    def _escape(self) -> _Atom:
        """Return an escape outside of classes, whose backslash has been read."""
        if self.place == len(self.pattern):
            raise self._refused("a backslash at the end")
        character = self.pattern[self.place]
        if character in "bB":
            self.place += 1
            self.is_ascii = True
            if character == "B":  # which holds between the two halves of an emoji
                self.differences[_EMOJI] = None
            return _Atom(r"\b" if character == "b" else r"(?!\b)", repeatable=False)
        if character == "k" and (self._has_names or self.unicode):
            match = re.compile(r"k<([^<>\\]++)>").match(self.pattern, self.place)
            if match is None or match[1] not in self._names:
                if match is not None and f"(?<{match[1]}>" in self.pattern:
                    self.place = match.end()
                    return self._reference(self._groups + 1)
                raise self._refused("a reference to no group")
            self.place = match.end()
            return self._reference(self._names[match[1]])
        if number := re.compile("[1-9][0-9]*").match(self.pattern, self.place):
            if int(number[0]) <= self._groups:
                self.place = number.end()
                return self._reference(int(number[0]))
            if self.unicode:
                raise self._refused("a reference to no group")
        if (named := self._named_class()) is not None:
            text = f"[{named}]" if character in "sS" else named
            return _Atom(text, wide=character in "DSWP", fixed=character in "dsw")
        return self._literal(self._code(inside=False))

    def _reference(self, number: int) -> _Atom:
        """Return a reference to a group; to one that has not matched, it is empty there."""
        self._has_references = True
        if self._depth or number not in self._ended:
            self.differences[_REPEATED] = None
        return _Atom(f"(?:(?({number})\\{number}|))" if number in self._ended else "(?:)")

    def _named_class(self) -> str | None:
        r"""Return a class such as ``\d`` as it is written inside brackets; ``None`` if the next escape is none."""
        character = self.pattern[self.place]
        if character in "dDwW":
            self.place += 1
            self.is_ascii = True
            return f"\\{character}"
        if character in "sS":
            self.place += 1
            return _ranges(SPACES, complement=character == "S")
        match = re.compile(r"[pP]\{[A-Za-z_]+(?:=[A-Za-z_]+)?\}").match(self.pattern, self.place)
        if self.unicode and character in "pP":
            if match is None:
                raise self._refused("no property of characters")
            self.place = match.end()
            self.differences[_PROPERTY] = None
            return f"\\{match[0]}"
        return None

    def _code(self, *, inside: bool) -> int:
        """Return the character of an escape whose backslash has been read."""
        for form, unicode, place, value in _ESCAPES:
            match = form.match(self.pattern, self.place)
            if match and unicode in (None, self.unicode) and place in (None, inside):
                self.place = match.end()
                if (code := value(match)) > sys.maxunicode:
                    raise self._refused("no character")
                return code
        character = self.pattern[self.place]
        if character == "c" and not self.unicode:
            return ord("\\")
        self.place += 1
        if self.unicode and character not in _SYNTAX and not (inside and character == "-"):
            raise self._refused(f"the escape \\{character}")
        return ord(character)

    def _class(self) -> _Atom:
        """Return a class whose opening bracket has been read."""
        negated = self._take("^")
        parts: list[str] = []
        wide = negated
        while not self._take("]"):
            low, text = self._member()
            wide = (
                wide
                or text in (r"\D", r"\W")
                or (low is None and text[:2] in (r"\P", r"\p"))
                or text.startswith(r"\u0000")
            )
            if not self._peek("-") or self.pattern[self.place + 1 : self.place + 2] in ("]", ""):
                parts.append(text)
                continue
            self.place += 1
            high, last = self._member()
            if low is None or high is None:
                if self.unicode:
                    raise self._refused("a class as the end of a range")
                parts += [text, r"\-", last]
                wide = wide or last in (r"\D", r"\W") or last.startswith(r"\u0000")
                continue
            if high < low:
                raise self._refused("a range in the wrong order")
            if not self.unicode and low <= _SURROGATES[-1] and high >= _SURROGATES[0]:
                self.differences[_EMOJI] = None
            parts.append(f"{text}-{last}")
        if not parts:
            return _Atom(r"[\s\S]", wide=True) if negated else _Atom("(?!)")
        return _Atom(f"[{'^' if negated else ''}{''.join(parts)}]", wide=wide, fixed=not wide)

    def _member(self) -> tuple[int | None, str]:
        """Return the next character of a class, or ``None`` and a class inside it."""
        if self.place >= len(self.pattern):
            raise self._refused("a class that does not end")
        code = ord(self.pattern[self.place])
        self.place += 1
        if code == ord("\\"):
            if self.place == len(self.pattern):
                raise self._refused("a class that does not end")
            if (named := self._named_class()) is not None:
                return None, named
            code = self._code(inside=True)
        if not self.unicode and (code > _LAST_UNIT or code in _SURROGATES):
            self.differences[_EMOJI] = None
        return code, _written(code)


def _pair(match: re.Match[str]) -> int:
    """The code point of a surrogate pair in a JavaScript pattern."""
    return 0x10000 + ((int(match[1], 16) - 0xD800) << 10) + int(match[2], 16) - 0xDC00


_PAIR: Final = re.compile(r"u([dD][89abAB][0-9A-Fa-f]{2})\\u([dD][c-fC-F][0-9A-Fa-f]{2})")
_ESCAPES: Final[Sequence[tuple[re.Pattern[str], bool | None, bool | None, Callable[[re.Match[str]], int]]]] = (
    (re.compile("c([A-Za-z])"), None, None, lambda match: ord(match[1]) % 32),
    (re.compile("c([0-9_])"), False, True, lambda match: ord(match[1]) % 32),
    (re.compile("x([0-9A-Fa-f]{2})"), None, None, lambda match: int(match[1], 16)),
    (_PAIR, None, False, _pair),
    (_PAIR, True, True, _pair),
    (re.compile("u([0-9A-Fa-f]{4})"), None, None, lambda match: int(match[1], 16)),
    (re.compile(r"u\{([0-9A-Fa-f]+)\}"), True, None, lambda match: int(match[1], 16)),
    (re.compile("0(?![0-9])"), None, None, lambda _: 0),
    (re.compile("[0-3][0-7]{0,2}|[4-7][0-7]?"), False, None, lambda match: int(match[0], 8)),
    (re.compile("[tnvfr]"), None, None, lambda match: ord(_CONTROLS[match[0]])),
    (re.compile("b"), None, True, lambda _: ord("\b")),
)
"""The form of an escape after its backslash, the flag ``u`` and the place (inside a class) that it needs, if any, and
its character."""


def _written(code: int, special: str = r"\[]^-&~|") -> str:
    """A character as a translated pattern has it: inside brackets, if ``special`` does not differ."""
    character = chr(code)
    if character.isprintable():
        return f"\\{character}" if character in special else character
    return f"\\u{code:04x}" if code <= _LAST_UNIT else f"\\U{code:08x}"


def _ranges(characters: str, *, complement: bool) -> str:
    """Characters of a JavaScript class, or all others, as ranges inside the brackets of a Python pattern."""
    codes = sorted(map(ord, characters))
    starts = [code for code in codes if code - 1 not in codes]
    ends = [code for code in codes if code + 1 not in codes]
    if complement:
        starts, ends = [0, *(end + 1 for end in ends)], [*(start - 1 for start in starts), sys.maxunicode]
    pairs = zip(starts, ends, strict=True)
    return "".join(_written(low) if low == high else f"{_written(low)}-{_written(high)}" for low, high in pairs)

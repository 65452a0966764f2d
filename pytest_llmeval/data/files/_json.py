"""A strict JSON parser that keeps the positions of values.

The json module reads; only when it meets something suspect, or when somebody asks for a place, does a slower
scanner walk over the text.
"""

import json
import math
import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NoReturn

from pytest_llmeval.core import PredictionError, quotation
from pytest_llmeval.data.files._places import (
    HALF_PAIR,
    MAX_DEPTH,
    MAX_DIGITS,
    TOO_DEEP,
    FaultLog,
    FilePlace,
    duplicate_key,
    render_path,
)

_WORD = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]|[^\s\[\]{}:,"]+', re.DOTALL)
_BEHIND = json.JSONDecoder().raw_decode
"""A value that needs no places inside, and the offset behind it: decoding in C is quicker than looking for the end."""
_TOKEN = re.compile(r"[\w.+-]+|.", re.DOTALL)
_EXPECTED = {
    "Expecting value": "a JSON value",
    "Expecting ',' delimiter": "',' or the closing bracket",
    "Expecting ':' delimiter": "':' after the key",
    "Expecting property name enclosed in double quotes": "a key in double quotes",
    "Extra data": "the end of the text after the value",
    "Unterminated string starting at": "a closing quote for the text that begins here",
    "Invalid control character at": "no control character inside a text (escape it)",
}
_TRAILING_COMMA = {
    "Illegal trailing comma before end of object": "Expecting property name enclosed in double quotes",
    "Illegal trailing comma before end of array": "Expecting value",
}
"""Messages since Python 3.13, which point at the comma, and earlier ones, which point at the bracket after it."""
_CLOSING = re.compile(r"[\]}]")

_LONGEST_KEY: Final = 40
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


class RejectedError(Exception):
    """The text of a file is not acceptable JSON; its faults have been reported."""


class JsonParser:
    """Reads JSON texts of one file.

    Refuses more than the json module: NaN and infinities, duplicate keys, nesting above `MAX_DEPTH`,
    numbers that no reader could give back, and lone surrogates, which cannot be written as UTF-8.

    Args:
        faults: Where the faults are added.
        nan: Accept NaN and infinities, which other tools write for scores that do not exist.
    """

    def __init__(self, faults: FaultLog, *, nan: bool = False) -> None:
        self._faults = faults
        self._suspect = False
        self._decode = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_constant=None if nan else self._float,  # any float is accepted, and C code reads it sooner
            parse_float=None if nan else self._float,
            parse_int=self._integer,
        ).decode

    def parse(self, text: str, line: int = 1) -> Any:
        """The value of a JSON text that begins in `line` of the file.

        Raises:
            RejectedError: It has faults; they have been added.
        """
        self._suspect = False
        try:
            value = self._decode(text)
        except json.JSONDecodeError as error:
            if _depth(text[: error.pos]) > MAX_DEPTH:
                # How deep Python itself reads depends on its recursion limit, which other code may raise.
                scan_json(text, self._faults, line)
                raise RejectedError from None
            error = _of_any_python(error)
            self._faults.add(line + error.lineno - 1, error.colno, "", _syntax_message(text, error))
            raise RejectedError from None
        except RecursionError:
            self._suspect = True
            value = None
        if self._suspect or _too_deep(text, value) or _has_lone_surrogate(text, value):
            scan_json(text, self._faults, line)
            raise RejectedError
        return value

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        data = dict(pairs)
        if len(data) != len(pairs):
            self._suspect = True
        return data

    def _float(self, text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            self._suspect = True
        return value

    def _integer(self, text: str) -> int:
        if len(text) > MAX_DIGITS:
            self._suspect = True
            return 0
        return int(text)


def _of_any_python(error: json.JSONDecodeError) -> json.JSONDecodeError:
    """A syntax error of the json module as every version of Python can report it."""
    closing = _CLOSING.search(error.doc, error.pos)
    if error.msg not in _TRAILING_COMMA or closing is None:
        return error
    return json.JSONDecodeError(_TRAILING_COMMA[error.msg], error.doc, closing.start())


def _syntax_message(text: str, error: json.JSONDecodeError) -> str:
    """The message for a syntax error in a JSON file: the token there, and the one that JSON requires."""
    at = _TOKEN.match(text, error.pos)
    token = quotation(at.group(), 20) if at else "the end of the text"
    expected = _EXPECTED.get(error.msg, f"valid JSON ({error.msg})")
    return f"found {token}, expected {expected}"


def _depth(text: str) -> int:
    """The deepest nesting of the text of a JSON file; brackets in strings do not count."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return 0
    depth = deepest = 0
    for match in _BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match.group(), 0)
        deepest = max(deepest, depth)
    return deepest


def _too_deep(text: str, value: Any) -> bool:
    """Whether the data of a JSON file nests above `MAX_DEPTH`; few brackets make the answer cheap."""
    return text.count("[") + text.count("{") > MAX_DEPTH and nests_too_deep(value)


_NESTING: Final = frozenset({dict, list})


@dataclass(frozen=True)
class JsonText:
    """A JSON text from outside, such as a server's reply or a line that a program wrote.

    Attributes:
        text: The text.
    """

    MAX_DEPTH: ClassVar[int] = MAX_DEPTH
    """Deepest nesting that is read."""

    text: str | bytes

    def load(self, *, strict: bool = True) -> Any:
        """The data as the json module reads it, except that no key occurs twice in an object.

        Args:
            strict: Refuse control characters, such as line breaks, inside strings.

        Raises:
            ValueError: It is no JSON, or a key occurs twice.
            RecursionError: It is nested too deeply.
        """
        return json.loads(self.text, object_pairs_hook=unique_keys, strict=strict)

    def parse_reply(self) -> Any:
        """The data in the reply of a target's server or program.

        Raises:
            PredictionError: It is no JSON, or a key occurs twice in an object.
        """
        try:
            reply = json.loads(self.text, parse_constant=_no_number, parse_float=_finite, object_pairs_hook=unique_keys)
        except RecursionError:
            raise PredictionError(TOO_DEEP) from None
        except ValueError as error:
            raise PredictionError(f"found invalid JSON ({error})") from None
        if nests_too_deep(reply):  # how deep Python itself reads depends on the stack of the caller
            raise PredictionError(TOO_DEEP)
        return reply

    def is_readable(self) -> bool:
        """Whether the readers of our files accept it."""
        text = self.text if isinstance(self.text, str) else self.text.decode()
        try:
            JsonParser(FaultLog("")).parse(text)
        except RejectedError:
            return False
        return True


def _finite(literal: str) -> float:
    """The float of a number in the JSON reply of a target; one above the range of floats is refused."""
    value = float(literal)
    return value if math.isfinite(value) else _no_number(literal)


def _no_number(literal: str) -> NoReturn:
    """Refuse NaN, infinities and numbers above the range of floats in the JSON reply of a target."""
    raise ValueError(f"{literal} is not a JSON number")


def nests_too_deep(value: Any) -> bool:
    """Whether lists and objects of JSON data are nested above `MAX_DEPTH`."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        if not level:
            return False
        parts = (node.values() if isinstance(node, dict) else node for node in level)
        # Every value of every file comes by: `in` takes a third of the time of a test for a union of types.
        level = [child for part in parts for child in part if type(child) in _NESTING]
    return bool(level)


def _has_lone_surrogate(text: str, value: Any) -> bool:
    """Whether a value of a JSON file has half of a surrogate pair, which UTF-8 cannot encode."""
    if "\\ud" not in text and "\\uD" not in text:
        return False
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs of a JSON object as a mapping, for the ``object_pairs_hook`` of the json module.

    Raises:
        ValueError: A key occurs twice.

    Example:
        >>> json.loads('{"id": 1, "id": 2}', object_pairs_hook=unique_keys)
        Traceback (most recent call last):
        ValueError: the key 'id' occurs twice
    """
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError(f"the key {quotation(repeated_key(pairs), _LONGEST_KEY)} occurs twice")
    return data


def repeated_key(pairs: Iterable[tuple[str, Any]]) -> str:
    """The first key that occurs again in a JSON object of a file or reply.

    Raises:
        ValueError: None does.

    >>> repeated_key([("a", 1), ("b", 2), ("a", 3)])
    'a'
    """
    known: set[str] = set()
    for name, _ in pairs:
        if name in known:
            return name
        known.add(name)
    raise ValueError("no key occurs twice")


class _JsonFrame:
    """A list or object that is still open while the places of values in a JSON text are found."""

    __slots__ = ("children", "key", "key_place", "place")

    def __init__(self, place: FilePlace, *, is_list: bool) -> None:
        self.children: dict[str, tuple[FilePlace, FilePlace]] | list[FilePlace] = [] if is_list else {}
        place.children = self.children
        self.place = place
        self.key: str | None = None
        self.key_place = place


class _Scanner:
    """A walk over JSON that `json.loads` accepts (or accepted up to its depth limit), which builds places."""

    def __init__(self, text: str, faults: FaultLog | None, line: int, depth: int) -> None:
        self.text = text
        self.faults = faults
        self.line = line
        self.depth = depth
        self.breaks = [match.start() for match in re.finditer("\n", text)]
        self.frames = [_JsonFrame(FilePlace(0, 0), is_list=True)]

    def place(self, offset: int) -> FilePlace:
        row = bisect_left(self.breaks, offset)
        return FilePlace(self.line + row, offset - (self.breaks[row - 1] if row else -1))

    def fault(self, place: FilePlace, message: str) -> None:
        if self.faults is not None:
            steps = [len(it.children) if isinstance(it.children, list) else it.key for it in self.frames[1:]]
            path = render_path([step for step in steps if step is not None])
            self.faults.add(place.line, place.column, path, message)

    def run(self) -> FilePlace:
        offset = 0
        while match := _WORD.search(self.text, offset):
            word, offset = match.group(), match.end()
            frame, place = self.frames[-1], self.place(match.start())
            if word in "]}":
                self.frames.pop()
                self.put(self.frames[-1], frame.place)
            elif word[0] == '"' and isinstance(frame.children, dict) and frame.key is None:
                self.key(frame, word, place)
            elif word not in "[{":
                self.scalar(word, place)
                self.put(frame, place)
            elif len(self.frames) <= self.depth:
                self.frames.append(_JsonFrame(place, is_list=word == "["))
            elif self.faults is None:
                _, offset = _BEHIND(self.text, match.start())
                self.put(frame, place)
            else:
                self.faults.add(place.line, place.column, "", TOO_DEEP)
                break
        children = self.frames[0].children
        return children[0] if isinstance(children, list) and children else FilePlace(1, 1)

    def put(self, frame: _JsonFrame, place: FilePlace) -> None:
        if isinstance(frame.children, list):
            frame.children.append(place)
        elif frame.key is not None:
            frame.children[frame.key] = (frame.key_place, place)
            frame.key = None

    def key(self, frame: _JsonFrame, word: str, place: FilePlace) -> None:
        frame.key = json.loads(word) if "\\" in word else word[1:-1]
        frame.key_place = place
        self.scalar(word, place)
        if isinstance(frame.children, dict) and frame.key in frame.children:
            self.fault(place, duplicate_key(frame.key, frame.children[frame.key][0]))

    def scalar(self, word: str, place: FilePlace) -> None:
        """Add the fault of a text or number, if it has one."""
        if self.faults is None:
            return
        if word[0] == '"':
            if _has_lone_surrogate(word, json.loads(word)):
                self.fault(place, HALF_PAIR)
        elif word in {"NaN", "Infinity", "-Infinity"}:
            self.fault(place, f"found {word}, expected a finite number (or null)")
        elif word.lstrip("-").isdigit():
            if len(word) > MAX_DIGITS:
                self.fault(place, f"found a number of {len(word)} digits, expected at most {MAX_DIGITS}")
        elif word not in {"true", "false", "null"} and not math.isfinite(float(word)):
            self.fault(place, f"found {word}, expected a number below 1.8e308")


def scan_json(text: str, faults: FaultLog | None = None, line: int = 1, depth: int = MAX_DEPTH) -> FilePlace:
    """The places of values in a JSON text that `json.loads` accepts, down to `depth` levels.

    Args:
        text: The text.
        faults: Where the faults are added that `JsonParser` looks for; ``None`` looks for none.
        line: The line of the file that the text begins with.
        depth: Deepest level of lists and objects whose insides get places.
    """
    return _Scanner(text, faults, line, depth).run()

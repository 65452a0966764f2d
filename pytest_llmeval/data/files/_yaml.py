"""YAML 1.2 core schema to plain data with positions, from parser events.

The data is built by a loop over events instead of PyYAML's composer, which recurses in C: there, a hundred
thousand opening brackets end the process. The loop also sees every fault with its position.
"""

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import yaml

from pytest_llmeval.core import quotation
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

_CORE = "tag:yaml.org,2002:"
_CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER_STARTS = frozenset("-+.0123456789")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_SCALAR_TAGS: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
}


def _number(text: str) -> int | float | str:
    """The number that a plain YAML scalar is, or the text itself.

    Raises:
        ValueError: The number is one that JSON cannot carry.
    """
    if _INTEGER.fullmatch(text):
        if len(text) > MAX_DIGITS:
            raise ValueError(f"found a number of {len(text)} digits, expected at most {MAX_DIGITS}")
        return int(text)
    if _FLOAT.fullmatch(text):
        value = float(text)
        if not math.isfinite(value):
            raise ValueError(f"found {text}, expected a number below 1.8e308")
        return value
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _NOT_FINITE.fullmatch(text):
        name = "NaN" if text[1:].lower() == "nan" else "infinity"
        raise ValueError(f"found {name}, expected a finite number (quote it to keep it as text)")
    return text


def plain_value(text: str) -> Any:
    """The value of an unquoted scalar in a YAML file (YAML 1.2.2, section 10.3.2).

    Raises:
        ValueError: It is a number that JSON cannot carry.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    return _number(text) if text[0] in _NUMBER_STARTS else text


def tagged_value(text: str, tag: str) -> Any:
    """The value of a scalar with an explicit tag in a YAML file.

    Raises:
        ValueError: The tag is not in the core schema, or the text is not of its type.
    """
    name = tag.removeprefix(_CORE)
    if name in {"str", "!"}:
        return text
    if name not in _SCALAR_TAGS or not tag.startswith(_CORE):
        raise ValueError(_unknown_tag(tag))
    value = plain_value(text)
    if type(value) not in _SCALAR_TAGS[name]:
        raise ValueError(f"found {text!r}, expected a value of the type !!{name}")
    return float(value) if name == "float" else value


def tag_fault(tag: str | None, kind: str) -> str | None:
    """The fault of the tag of a ``seq`` or ``map`` in a YAML file; ``None`` without one."""
    return None if tag in {None, "!", _CORE + kind} else _unknown_tag(str(tag))


def _unknown_tag(tag: str) -> str:
    """The message for a tag such as ``!!binary`` in a YAML suite file, which must be plain data."""
    name = "!!" + tag.removeprefix(_CORE) if tag.startswith(_CORE) else tag
    return f"found the tag {name}, expected plain data without a tag"


_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_BREAK = re.compile(r"\r\n|\r|\n")


def add_yaml_fault(text: str, error: yaml.YAMLError, faults: FaultLog) -> None:
    """Add the fault at which the YAML parser stopped; `text` is what it read."""
    if isinstance(error, yaml.MarkedYAMLError):
        _syntax_fault(text, error, faults)
    else:
        _character_fault(text, error, faults)


def _character_fault(text: str, error: yaml.YAMLError, faults: FaultLog) -> None:
    """Add a fault for a character that YAML does not allow; the parser's own position may count bytes."""
    bad = _UNPRINTABLE.search(text)
    at = bad.start() if bad else 0
    what = f"the character U+{ord(text[at]):04X}" if bad else str(error)
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    faults.add(line, column, "", f"found {what}, expected it escaped in double quotes")


def _syntax_fault(text: str, error: yaml.MarkedYAMLError, faults: FaultLog) -> None:
    """Add a syntax fault of a YAML file, in YAML's words."""
    mark = error.problem_mark or error.context_mark
    if mark is None:
        faults.add(0, 0, "", f"found {error.problem}, expected valid YAML")
        return
    lines = _LINE_BREAK.split(text)
    opened = error.context_mark
    behind = [lines[mark.line][mark.column :], *lines[mark.line + 1 :]] if mark.line < len(lines) else []
    if (
        not "".join(behind).strip()
        and opened is not None
        and opened.line < len(lines)
        and lines[opened.line][opened.column :]
    ):
        # The end of the file is far from what is not closed, which may be a key: only its first character is told.
        message = (
            f"found {lines[opened.line][opened.column]!r}, which is not closed, expected valid YAML ({error.problem})"
        )
        faults.add(opened.line + 1, opened.column + 1, "", message)
        return
    text_there = lines[mark.line][mark.column :] if mark.line < len(lines) else ""
    if text_there.startswith("\t"):
        message = "found a tab, expected spaces: YAML does not allow tabs as indentation"
    else:
        end = "the end of the line" if mark.line < len(lines) - 1 else "the end of the file"
        excerpt = quotation(text_there, 20) if text_there else end
        message = f"found {excerpt}, expected valid YAML ({_explain_yaml_error(error)})"
    faults.add(mark.line + 1, mark.column + 1, "", message)


def _explain_yaml_error(error: yaml.MarkedYAMLError) -> str:
    """The reason of a syntax error in a YAML file, with the beginning of the structure around it."""
    reason = error.problem or "it cannot be read"
    began = error.context_mark
    if not error.context or began is None:
        return reason
    return f"{error.context} that begins at {began.line + 1}:{began.column + 1}, {reason}"


MAX_ALIASED: Final = 10_000_000
"""Maximum number of values that aliases and merge keys may expand to in one file; a few lines can name billions."""

_BREAKS_OF_YAML_1_1 = "\x85\u2028\u2029"
_PRIVATE_USE = range(0xE000, 0xF900)

_NO_KEY: Final = object()
_MERGE: Final = object()
_FAULTY_KEY: Final = object()


class _StopError(Exception):
    """A reported fault after which the rest of a YAML file cannot be read."""


class _YamlFrame:
    """A list or mapping of a YAML file that is still open."""

    __slots__ = ("anchor", "children", "data", "key", "key_place", "merged", "place", "size")

    def __init__(self, place: FilePlace, anchor: str | None, *, is_list: bool) -> None:
        self.place = place
        self.anchor = anchor
        self.data: Any = [] if is_list else {}
        self.children: Any = [] if is_list else {}
        place.children = self.children
        self.key: Any = _NO_KEY
        self.key_place = place
        self.merged: list[tuple[dict[str, Any], Any]] | None = None
        self.size = 1


class _Builder:
    """A builder of the data and places of a YAML file from parser events; the frames are its only stack."""

    def __init__(self, faults: FaultLog, restore: dict[int, str]) -> None:
        self.faults = faults
        self.restore = restore
        self.root = _YamlFrame(FilePlace(0, 0), None, is_list=True)
        self.frames = [self.root]
        self.anchors: dict[str, tuple[Any, FilePlace, int] | None] = {}
        self.aliased = 0
        self.documents = 0
        self.ended = False
        self.handlers: dict[str, Callable[[Any], None]] = {
            "ScalarEvent": self.scalar,
            "MappingStartEvent": partial(self.open, kind="map"),
            "MappingEndEvent": self.close,
            "SequenceStartEvent": partial(self.open, kind="seq"),
            "SequenceEndEvent": self.close,
            "AliasEvent": self.alias,
            "DocumentStartEvent": self.document,
            "StreamEndEvent": self.end,
        }

    def take(self, event: Any) -> None:
        """Take one event."""
        handler = self.handlers.get(type(event).__name__)
        if handler is not None:
            handler(event)

    def path(self) -> str:
        """The path of the value that is being read."""
        steps = (len(frame.data) if isinstance(frame.data, list) else frame.key for frame in self.frames[1:])
        return render_path([step for step in steps if isinstance(step, str | int)])

    def fault(self, place: FilePlace, message: str) -> None:
        self.faults.add(place.line, place.column, self.path(), message)

    def document(self, event: Any) -> None:
        self.documents += 1
        if self.documents > 1:
            self.fault(_yaml_place(event), "found a second document, expected one")
            raise _StopError

    def end(self, _event: Any) -> None:
        self.ended = True

    def scalar(self, event: Any) -> None:
        place = _yaml_place(event)
        text = value = _join_surrogates(event.value.translate(self.restore) if self.restore else event.value)
        plain = event.implicit[0] and event.tag is None
        try:
            if plain:
                value = plain_value(text)
            elif event.tag is not None:
                value = tagged_value(text, event.tag)
            if not text.isascii():
                text.encode()
        except UnicodeEncodeError:
            self.fault(place, HALF_PAIR)
        except ValueError as error:
            self.fault(place, str(error))
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, place, 1)
        frame = self.frames[-1]
        if frame.key is _NO_KEY and plain and text == "<<" and type(frame.data) is dict:
            if frame.merged is not None:
                self.fault(place, "found the merge key << twice, expected it once with a list of mappings")
            frame.key = _MERGE
        else:
            self.put(value, place, 1)

    def open(self, event: Any, kind: str) -> None:
        place = _yaml_place(event)
        if (wrong := tag_fault(event.tag, kind)) is not None:
            self.fault(place, wrong)
        if len(self.frames) > MAX_DEPTH:
            self.faults.add(place.line, place.column, "", TOO_DEEP)
            raise _StopError
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self.frames.append(_YamlFrame(place, event.anchor, is_list=kind == "seq"))

    def close(self, _event: Any) -> None:
        frame = self.frames.pop()
        for data, children in frame.merged or ():
            for key, value in data.items():
                if key not in frame.data:
                    frame.data[key] = value
                    frame.children[key] = children[key]
        if frame.anchor is not None:
            self.anchors[frame.anchor] = (frame.data, frame.place, frame.size)
        self.put(frame.data, frame.place, frame.size)

    def alias(self, event: Any) -> None:
        place = _yaml_place(event)
        known = self.anchors.get(event.anchor, _NO_KEY)
        value, size = None, 1
        if isinstance(known, tuple):
            value, named, size = known
            place.children = named.children
        elif known is None:
            self.fault(place, f"found *{event.anchor} inside the value that it names, expected no cycle")
        else:
            self.fault(place, f"found *{event.anchor}, expected an anchor &{event.anchor} above it")
        self.aliased += size
        if self.aliased > MAX_ALIASED:
            self.fault(place, f"found aliases that expand to more than {MAX_ALIASED} values, expected fewer")
            raise _StopError
        self.put(value, place, size)

    def put(self, value: Any, place: FilePlace, size: int) -> None:
        """Put a finished value into the open frame: as item, as key, or as value of the pending key."""
        frame = self.frames[-1]
        frame.size += size
        if type(frame.data) is list:
            frame.data.append(value)
            frame.children.append(place)
        elif frame.key is _NO_KEY:
            self.put_key(frame, value, place)
        else:
            key, frame.key = frame.key, _NO_KEY
            if type(key) is str:
                frame.data[key] = value
                frame.children[key] = (frame.key_place, place)
            elif key is _MERGE:
                self.put_merge(frame, value, place)

    def put_key(self, frame: _YamlFrame, key: Any, place: FilePlace) -> None:
        frame.key_place = place
        if type(key) is not str:
            frame.key = _FAULTY_KEY
            self.fault(place, f"found {_key_kind(key)} as key, expected text{_quoting_advice(key)}")
            return
        frame.key = key
        if key in frame.children:
            self.fault(place, duplicate_key(key, frame.children[key][0]))

    def put_merge(self, frame: _YamlFrame, value: Any, place: FilePlace) -> None:
        values = value if isinstance(value, list) else [value]
        places = place.children if isinstance(value, list) else [place]
        if not isinstance(places, list) or not all(isinstance(mapping, dict) for mapping in values):
            self.fault(place, "found a merge key << with another value, expected a mapping or a list of mappings")
            values = places = []
        frame.merged = [(mapping, at.children) for mapping, at in zip(values, places, strict=True)]


def _join_surrogates(text: str) -> str:
    """A YAML text with one character for each surrogate pair, which JSON escapes in halves."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _yaml_place(event: Any) -> FilePlace:
    """The line and column of a YAML parser event, counted from 1."""
    mark = event.start_mark
    return FilePlace(mark.line + 1, mark.column + 1)


def _key_kind(key: Any) -> str:
    """The description of a YAML key that is not text, for its fault: its value, or that it is a collection."""
    if isinstance(key, list | dict):
        return "a list or mapping"
    return "null" if key is None else str(key).lower()


def _quoting_advice(key: Any) -> str:
    """The advice to quote a YAML key that is not text, for its fault; empty for a list or mapping."""
    return "" if isinstance(key, list | dict) else f": quote it as '{_key_kind(key)}'"


def _stand_ins(text: str) -> dict[int, str]:
    """Return unused characters for those that YAML 1.1 takes for line breaks and YAML 1.2 for text."""
    marks = [] if text.isascii() else [mark for mark in _BREAKS_OF_YAML_1_1 if mark in text]
    free = (chr(code) for code in _PRIVATE_USE if chr(code) not in text)
    return {ord(mark): stand_in for mark, stand_in in zip(marks, free, strict=False)}


_LIBYAML_LIMITS = ("nesting depth", "invalid Unicode character escape")


class _LibyamlLimitError(Exception):
    """libyaml refuses what the parser in Python reads: data nested deeply, and escaped surrogate pairs, as in JSON."""


def load_yaml(text: str, faults: FaultLog) -> tuple[Any, FilePlace | None]:
    """Read one YAML document; faults are added to `faults`.

    Plain scalars follow the YAML 1.2 core schema, so ``no``, ``12:30:45`` and dates are text and ``010`` is ten.
    Merge keys ``<<`` are read although they are not in it, because people use them. Aliases share their value.

    Returns:
        The data and its place; twice ``None`` if there is no document. After a fault both are incomplete.
    """
    parsers = [yaml.CSafeLoader, yaml.SafeLoader] if hasattr(yaml, "CSafeLoader") else [yaml.SafeLoader]
    for parser in parsers:
        attempt = FaultLog(faults.file)
        try:
            loaded = _load(text, attempt, parser)
        except _LibyamlLimitError:
            continue
        break
    faults.include(attempt)
    return loaded


def _load(text: str, faults: FaultLog, parser: Any) -> tuple[Any, FilePlace | None]:
    """The data and the places of a YAML text, built from the events of libyaml or of the parser in Python."""
    stand_ins = _stand_ins(text)
    builder = _Builder(faults, {ord(stand_in): chr(code) for code, stand_in in stand_ins.items()})
    try:
        loader = parser(text.translate(stand_ins) if stand_ins else text)
        while not builder.ended:
            builder.take(loader.get_event())
    except _StopError:
        pass
    except yaml.YAMLError as error:
        if parser is not yaml.SafeLoader and any(
            limit in str(getattr(error, "problem", "")) for limit in _LIBYAML_LIMITS
        ):
            raise _LibyamlLimitError from error
        add_yaml_fault(text, error, faults)
    except (ValueError, OverflowError) as error:
        # Only the parser in Python: it turns an escape such as "\U00110000" into a character without a check.
        faults.add(0, 0, "", f"found an invalid escape ({error}), expected one that names a character")
    if not builder.root.data:
        return None, None
    return builder.root.data[0], builder.root.children[0]

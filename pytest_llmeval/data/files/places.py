"""Faults: position in the text, path in the data, and message."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_llmeval.core.errors import Fault, SuiteError

MAX_DEPTH = 100
"""Deepest nesting that is read; everything that walks the data later may recurse."""

MAX_DIGITS = 4300
"""Longest whole number that is read: Python's own limit for turning text into a number, and back."""

MAX_LISTED = 100
"""Faults listed of one file; the rest is counted."""

TOO_DEEP = f"found more than {MAX_DEPTH} levels of nesting, expected fewer"
HALF_PAIR = "found half of a surrogate pair, expected a whole character"

_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*")


def display_path(path: Path, root: Path) -> str:
    """Return how messages and reports name a file: relative to a folder if it lies inside, with forward slashes."""
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


class FilePlace:
    """The position of a value and of the values inside it.

    Attributes:
        line: Counted from 1.
        column: Counted from 1, in characters.
        children: Key to the places of key and value; for a list, places of the values; ``None`` for a scalar.
    """

    __slots__ = ("children", "column", "line")

    def __init__(
        self,
        line: int,
        column: int,
        children: "dict[str, tuple[FilePlace, FilePlace]] | list[FilePlace] | None" = None,
    ) -> None:
        self.line = line
        self.column = column
        self.children = children

    def find(self, path: Sequence[str | int], *, key: bool = False) -> "FilePlace":
        """Return the place of the value at `path`, or of its key, or of the nearest ancestor that exists."""
        here = self
        for depth, step in enumerate(path, 1):
            children = here.children
            if isinstance(children, dict) and isinstance(step, str) and step in children:
                key_place, value_place = children[step]
                here = key_place if key and depth == len(path) else value_place
            elif isinstance(children, list) and isinstance(step, int) and 0 <= step < len(children):
                here = children[step]
            else:
                break
        return here


class FaultLog:
    """The faults of one file in the order found; after `MAX_LISTED` they are only counted.

    Attributes:
        file: The file.
        count: Number of faults.
        first: The first of them, at most `MAX_LISTED`.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.count = 0
        self.first: list[Fault] = []

    def add(self, line: int, column: int, path: str, message: str, *, spares_case: bool = False) -> None:
        """Add a fault; `line` 0 means the whole file."""
        self.count += 1
        if self.count <= MAX_LISTED:
            self.first.append(Fault(self.file, line, column, path, message, spares_case))

    def extend(self, faults: Iterable[Fault]) -> None:
        """Add faults that were found elsewhere."""
        for each in faults:
            self.add(each.line, each.column, each.path, each.message, spares_case=each.spares_case)

    def include(self, log: "FaultLog") -> None:
        """Add the faults of another log of the file, listed or counted."""
        self.extend(log.first)
        self.count += log.count - len(log.first)

    def listed(self) -> list[Fault]:
        """Return the faults, and one that counts those not listed."""
        unlisted = self.count - len(self.first)
        more = [Fault(self.file, 0, 0, "", f"... and {unlisted} more")] if unlisted else []
        return [*self.first, *more]

    def check(self) -> None:
        """Raise `SuiteError` with all the faults, if there are any."""
        if self.count:
            raise SuiteError(self.listed())


def render_path(path: Sequence[str | int]) -> str:
    """Write a path as people do: ``cases[1].thresholds.f1``, with keys that are no plain names in brackets.

    Example:
        >>> render_path(["cases", 1, "labels", "a b"])
        "cases[1].labels['a b']"
    """
    text = ""
    for step in path:
        if isinstance(step, str) and _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{step!r}]"
    return text


def duplicate_key(key: str, first: FilePlace) -> str:
    """Return the message for a key that already occurs in the same mapping, at `first`."""
    return f"found the key {key!r} twice, expected it once (first at {first.line}:{first.column})"

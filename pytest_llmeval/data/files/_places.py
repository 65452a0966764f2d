"""Places in files and data."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from fnmatch import fnmatch
from glob import has_magic
from pathlib import Path
from typing import ClassVar, Final

from pytest_llmeval.core import Fault, SuiteError, with_value

MAX_DEPTH = 100
"""Deepest nesting that is read; everything that walks the data later may recurse."""

MAX_DIGITS = 4300
"""Longest whole number that is read: Python's own limit for turning text into a number, and back."""

TOO_DEEP = f"found more than {MAX_DEPTH} levels of nesting, expected fewer"
HALF_PAIR = "found half of a surrogate pair, expected a whole character"

_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*")


def display_path(path: Path, root: Path) -> str:
    """The name of a file in messages: relative to a folder if it lies inside, with forward slashes."""
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
        """The place of the value at `path`, or of its key, or of the nearest ancestor that exists."""
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
        notes: Oddities of the file that are no faults.
    """

    MAX_LISTED: ClassVar[int] = 100
    """Faults listed of one file; the rest is counted."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.count = 0
        self.first: list[Fault] = []
        self.notes: list[Fault] = []

    def add(
        self, line: int, column: int, path: str, message: str, *, spares_case: bool = False, case: str = ""
    ) -> None:
        """Add a fault; `line` 0 means the whole file."""
        self.count += 1
        if self.count <= self.MAX_LISTED:
            self.first.append(Fault(self.file, line, column, path, message, spares_case, case=case))

    def note(self, line: int, column: int, path: str, message: str) -> None:
        """Add an oddity in the file for which nothing fails."""
        self.notes.append(Fault(self.file, line, column, path, message, is_note=True))

    def extend(self, faults: Iterable[Fault]) -> None:
        """Add faults that were found elsewhere."""
        for fault in faults:
            self.add(
                fault.line, fault.column, fault.path, fault.message, spares_case=fault.spares_case, case=fault.case
            )

    def include(self, log: "FaultLog") -> None:
        """Add the faults of another log of the file, listed or counted."""
        self.extend(log.first)
        self.count += log.count - len(log.first)

    def listed(self) -> list[Fault]:
        """The faults, and one that counts those not listed; then the notes."""
        unlisted = self.count - len(self.first)
        more = [Fault(self.file, 0, 0, "", f"... and {unlisted} more")] if unlisted else []
        return [*self.first, *more, *self.notes]

    def check(self) -> None:
        """Raise `SuiteError` with all the faults, if there are any."""
        if self.count:
            raise SuiteError(self.listed())


def render_path(path: Sequence[str | int]) -> str:
    """The path of a value in a file as people write it: ``cases[1].thresholds.f1``, other keys in brackets.

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
    """The message for a key that already occurs in the same mapping of a user's file, at `first`."""
    return f"found the key {key!r} twice, expected it once (first at {first.line}:{first.column})"


_IN_MODULE: Final = "::"
"""Stands between a Python file and the name of a suite that it declares, in the paths of such suites."""

_SUITE_SUFFIXES = tuple(f".{kind}.{language}" for kind in ("eval", "llmeval") for language in ("yaml", "yml", "json"))
_OTHER_SUFFIXES = (".yaml", ".yml", ".json")


class OwnFiles:
    """The files that belong to a suite or test module, such as ``__llmeval__/capitals.judgements.jsonl``.

    Attributes:
        suite: The file of the suite or module.
    """

    FOLDER: ClassVar[str] = "__llmeval__"
    """The name of their folder, which is next to the suite."""

    def __init__(self, suite: Path) -> None:
        self.suite = suite

    @classmethod
    def of_declared(cls, file: Path, name: str) -> "OwnFiles":
        """The files of a suite that a Python file declares under a name."""
        return cls(file.with_name(f"{file.name}{_IN_MODULE}{name}"))

    @property
    def source(self) -> Path:
        """The suite file, or the Python file that declares the suite."""
        name = self.suite.name.partition(_IN_MODULE)[0]
        return self.suite.with_name(name) if name else self.suite

    @property
    def is_declared(self) -> bool:
        """Whether a Python file declares the suite."""
        return _IN_MODULE in self.suite.name

    @property
    def declared_name(self) -> str:
        """The name under which a Python file declares the suite; empty for a suite file."""
        return self.suite.name.partition(_IN_MODULE)[2]

    @property
    def folder(self) -> Path:
        """The folder of the files."""
        return self.suite.parent / self.FOLDER

    @property
    def stem(self) -> str:
        """The beginning of their names, unless another suite next to this one has the same."""
        return _stem(self.suite.name)[0]

    def path(self, suffix: str) -> Path:
        """The path of one of the files.

        Args:
            suffix: What the file is, such as ``judgements.jsonl``.

        Returns:
            A path that begins with the suite's stem, or with its full name if another suite file in its folder has the
            same stem.
        """
        stem, rivals = _stem(self.suite.name)
        shared = any((self.suite.parent / name).is_file() for name in rivals if name != self.suite.name)
        return self.folder / f"{self.suite.name if shared else stem}.{suffix}"

    def include(self, name: str) -> bool:
        """Whether a file of this name belongs to the suite or module."""
        return name.startswith((f"{self.stem}.", f"{self.suite.name}."))


def _stem(name: str) -> tuple[str, list[str]]:
    """Return the stem of a suite's name, and the names of suites that share it.

    ``capitals.json`` beside ``capitals.eval.yaml`` is its data, not a suite; beside ``capitals.yaml``, which only the
    user's own patterns make a suite, it may be one.
    """
    if _IN_MODULE in name:
        return name.replace(f".py{_IN_MODULE}", "."), []
    for suffix in _SUITE_SUFFIXES:
        if name.endswith(suffix) and name != suffix:
            stem = name.removesuffix(suffix)
            return stem, [stem + ending for ending in _SUITE_SUFFIXES]
    stem = Path(name).stem
    return stem, [stem + ending for ending in (*_SUITE_SUFFIXES, *_OTHER_SUFFIXES)]


MOST_ENTRIES: Final = 100_000
"""Most files and folders that one pattern looks at."""

_ROOT: ContextVar[Path | None] = ContextVar("root of searches", default=None)


def repository_top(folder: Path) -> Path | None:
    """The top folder of the git repository around a folder; ``None`` outside of one.

    A bare repository that lies among the files of another is none of its own: only ``.git`` makes one, which git keeps
    out of commits.
    """
    folder = folder.resolve()
    return next((path for path in (folder, *folder.parents) if (path / ".git").exists()), None)


class FilePattern:
    """A name or glob pattern of files in a suite.

    ``**`` matches any number of folders. Wildcards match no hidden names and do not follow links to folders.

    Attributes:
        folder: What the pattern is relative to, if it is not absolute.
        pattern: With ``*``, ``?``, ``[...]`` or ``**``; or a name.
    """

    def __init__(self, folder: Path, pattern: str) -> None:
        self.folder = folder
        self.pattern = pattern

    @staticmethod
    def within(root: Path) -> AbstractContextManager[None]:
        """A context in which patterns match nothing outside of a folder."""
        return with_value(_ROOT, root)

    def inputs(self) -> list[Path]:
        """The files that it means as inputs; a folder, and ``**`` at the end, mean all files below.

        Compiled Python is never meant.

        Raises:
            ValueError: As of `matches`.
        """
        path, pattern = self.folder / self.pattern, self.pattern
        if path.is_file():
            return [path]
        if has_magic(pattern):
            pattern = f"{pattern}/*" if Path(pattern).name == "**" else pattern
        elif path.is_dir():
            pattern = f"{pattern.rstrip('/')}/**/*"
        files = FilePattern(self.folder, pattern).matches()
        return [file for file in files if file.parent.name != "__pycache__"]

    def matches(self) -> list[Path]:
        """The files that it matches, sorted; none for a name without wildcards.

        Raises:
            ValueError: It leads outside of the root, or there are too many files; ``found ..., expected ...``.
        """
        parts = Path(self.pattern).parts
        fixed = next((place for place, part in enumerate(parts) if has_magic(part)), len(parts))
        if fixed == len(parts):
            return []
        if ".." in parts[fixed:]:
            raise ValueError(f"found '..' behind a wildcard in {self.pattern!r}, expected it before all wildcards")
        start = self.folder.joinpath(*parts[:fixed])
        root = _ROOT.get()
        inside = root.resolve() if root is not None else None
        if inside is not None and not start.resolve().is_relative_to(inside):
            outside = f"found the pattern {self.pattern!r}, which leads outside of {root}"
            raise ValueError(f"{outside}, expected files inside")
        matches = sorted(set(_Search(self.pattern).files(start, parts[fixed:])))
        for path in matches:
            if inside is not None and path.is_symlink() and not path.resolve().is_relative_to(inside):
                outside = f"found the link {path.name!r}, which leads outside of {root}"
                raise ValueError(f"{outside}, expected files inside")
        return matches


class _Search:
    """A search for the files of a glob pattern, which counts the names that it looks at."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._seen = 0

    def files(self, folder: Path, parts: tuple[str, ...]) -> Iterator[Path]:
        """Yield the files that match; more than once, where ``**`` occurs twice."""
        if not parts:
            if folder.is_file():
                yield folder
            return
        first, remaining = parts[0], parts[1:]
        if not has_magic(first):
            yield from self.files(folder / first, remaining)
            return
        if first == "**":
            yield from self.files(folder, remaining or ("*",))
        for entry in self._entries(folder):
            is_folder = entry.is_dir(follow_symlinks=False)
            if first == "**":
                if is_folder and not entry.name.startswith("."):
                    yield from self.files(folder / entry.name, parts)
            elif _matches_glob(entry.name, first) and (is_folder or not remaining):
                yield from self.files(folder / entry.name, remaining)

    def _entries(self, folder: Path) -> list["os.DirEntry[str]"]:
        try:
            with os.scandir(folder) as entries:
                listed = list(entries)
        except OSError:
            return []
        self._seen += len(listed)
        if self._seen > MOST_ENTRIES:
            raise ValueError(
                f"found more than {MOST_ENTRIES} files and folders in search of {self._pattern!r}, "
                "expected fewer: name the folder more closely"
            )
        return listed


def _matches_glob(name: str, pattern: str) -> bool:
    """Whether a file name matches one part of a glob pattern; hidden names need a pattern with a leading dot."""
    return fnmatch(name, pattern) and (pattern.startswith(".") or not name.startswith("."))

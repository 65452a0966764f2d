"""The ledger of an import: what became of each construct of a source."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from pytest_llmeval.core import Fault, MissingExtraError, SuiteError, parse_digits
from pytest_llmeval.data import CaseId, InputFile, describe, render_path
from pytest_llmeval.exchange._templates import Direction, TemplateError, VerdictDifference

ColumnPart: TypeAlias = Literal[
    "answer",
    "contexts",
    "criterion",
    "expected",
    "expected_tools",
    "id",
    "input",
    "label",
    "labels",
    "lost",
    "messages",
    "tools",
]
"""Parts of a case that a column of records can hold."""

SourcePath: TypeAlias = tuple[str | int, ...]
"""Keys and list positions from the outside in."""


class Fate(StrEnum):
    """The fate of a construct of another tool's file in an import."""

    SAME = "same"
    NEAR = "near"
    NOT_IMPORTED = "not imported"


_FROM_GOOD_TO_BAD = tuple(Fate)
_LONGEST_NAME = 80
_LONGEST_ID = 100


@dataclass(frozen=True)
class Construct:
    """A construct of another tool's file, such as an assertion, and its fate in the import.

    Attributes:
        file: Its file.
        line: Counted from 1; 0 if unknown.
        path: Its place in the data.
        kind: Its kind, in the terms of the source's tool.
        fate: Its fate.
        text: Its meaning here; the differences; or why it is not imported and what to write instead.
        stub: Python to begin with, where code is needed.
        differences: Answers that it judges differently; a construct with some is near.
    """

    file: str
    line: int
    path: SourcePath
    kind: str
    fate: Fate
    text: str
    stub: str = ""
    differences: tuple[VerdictDifference, ...] = ()

    @property
    def summary(self) -> str:
        """Meaning and differences, for people."""
        return "; ".join((self.text, *(difference.line for difference in self.differences)))

    @property
    def direction(self) -> Direction | None:
        """The direction in which its verdicts differ; ``None`` if they do not."""
        directions = {difference.direction for difference in self.differences}
        return next(iter(directions)) if len(directions) == 1 else Direction.EITHER if directions else None

    @property
    def place(self) -> str:
        """File and line, for people."""
        return f"{self.file}:{self.line}" if self.line else self.file


class LeftOutError(Exception):
    """A construct of another tool's file is not imported.

    Attributes:
        stub: Python to begin with.
    """

    def __init__(self, text: str, stub: str = "") -> None:
        super().__init__(text)
        self.stub = stub


class SourceLedger:
    """The constructs of one file of a source. A construct covers its value as a whole, except constructs inside it.

    Attributes:
        file: The display path of the file.
        data: Its content.
        line: From a path to its line; 0 if unknown.
    """

    def __init__(self, file: str, data: Any, line_of: Callable[[SourcePath], int]) -> None:
        self.file = file
        self.data = data
        self.line = line_of
        self._by_path: dict[SourcePath, Construct] = {}
        self._absent: set[SourcePath] = set()

    def pass_over(self, path: SourcePath) -> None:
        """List no construct for an empty value, which a tool writes for what is absent."""
        self._absent.add(path)

    def note(
        self,
        path: SourcePath,
        kind: str,
        fate: Fate,
        text: str,
        stub: str = "",
        differences: Iterable[VerdictDifference] = (),
    ) -> None:
        """Note the fate of a construct; of one that is noted again, the worse fate counts.

        A construct that is the same but for differences is near.
        """
        distinct = tuple(dict.fromkeys(differences))
        fate = Fate.NEAR if distinct and fate is Fate.SAME else fate
        known = self._by_path.get(path)
        if known is not None and known.fate is fate:
            more = tuple(difference for difference in distinct if difference not in known.differences)
            self._by_path[path] = replace(known, differences=(*known.differences, *more))
        elif known is None or _FROM_GOOD_TO_BAD.index(fate) > _FROM_GOOD_TO_BAD.index(known.fate):
            self._by_path[path] = Construct(self.file, self.line(path), path, kind, fate, text, stub, distinct)

    def same(self, path: SourcePath, kind: str, text: str, differences: Iterable[VerdictDifference] = ()) -> None:
        """Note a construct that means the same here, but for differences."""
        self.note(path, kind, Fate.SAME, text, differences=differences)

    def near(self, path: SourcePath, kind: str, text: str) -> None:
        """Note a construct that means something similar here."""
        self.note(path, kind, Fate.NEAR, text)

    def lost(self, path: SourcePath, kind: str, text: str, stub: str = "") -> None:
        """Note a construct that is not imported."""
        self.note(path, kind, Fate.NOT_IMPORTED, text, stub)

    @contextmanager
    def losing(self, path: SourcePath, kind: str, advice: str = "") -> Iterator[None]:
        """Note a construct as not imported if it is left out, cannot be read, or needs more of a template than names.

        Args:
            path: Its place.
            kind: What it is.
            advice: What to do about a template, after a semicolon.
        """
        try:
            yield
        except LeftOutError as error:
            self.lost(path, kind, str(error), error.stub)
        except SuiteError as error:
            self.lost(path, kind, str(error.faults[0]))
        except TemplateError as error:
            self.lost(path, kind, f"it needs {error}, which is never executed{advice}")

    def note_keys(
        self, keys: Iterable[str], path: SourcePath, kind: str, known: Mapping[str, tuple[Fate, str]], otherwise: str
    ) -> None:
        """Note keys below a path.

        Args:
            keys: The keys.
            path: Where they are.
            kind: Stands before a key in its kind.
            known: Key to fate and text.
            otherwise: Why other keys are not imported.
        """
        for key in keys:
            self.note((*path, key), f"{kind}{key}", *known.get(key, (Fate.NOT_IMPORTED, otherwise)))

    def knows(self, path: SourcePath) -> bool:
        """Whether a construct has been noted."""
        return path in self._by_path

    def lose_all(self, why: str) -> None:
        """Note that nothing is imported after all."""
        for construct in list(self._by_path.values()):
            self.lost(construct.path, construct.kind, why)

    def fault(self, path: SourcePath, message: str) -> SuiteError:
        """Return an error about a value that cannot be read."""
        return SuiteError([Fault(self.file, self.line(path), 0, render_path(path), message)])

    def constructs(self) -> list[Construct]:
        """Return all constructs in the order of the file; those that the importer does not know are not imported."""
        holders = {path[:end] for path in (*self._by_path, *self._absent) for end in range(len(path))}
        unknown = [
            Construct(
                self.file,
                self.line(path),
                path,
                str(path[-1]) if path else "the file",
                Fate.NOT_IMPORTED,
                "the importer does not know this key",
            )
            for path in _uncovered(self.data, (), self._by_path.keys() | self._absent, holders)
        ]
        listed = [*self._by_path.values(), *unknown]
        return sorted(listed, key=lambda construct: (construct.line, [str(step).zfill(9) for step in construct.path]))


def _uncovered(
    value: Any, path: SourcePath, covered: AbstractSet[SourcePath], holders: set[SourcePath]
) -> Iterator[SourcePath]:
    """Yield the outermost paths in another tool's file that no construct of the ledger covers."""
    if path in covered:
        return
    if path not in holders:
        yield path
        return
    steps = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for step, child in steps:
        yield from _uncovered(child, (*path, step), covered, holders)


@dataclass
class ImportedSuite:
    """A suite made of another tool's file, as plain data before it is written.

    Attributes:
        name: Of the suite and its files.
        settings: The suite file without its cases, in the order in which it is written.
        cases: As a suite file writes them.
        files: Path next to the suite to text or content of each further file.
    """

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    cases: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, str | bytes] = field(default_factory=dict)


@dataclass
class ImportedSource:
    """The import of one file of another tool: its suite, or the reason for none, and its ledgers.

    Attributes:
        file: The display path of the source.
        suite: The suite; ``None`` if no case could be imported.
        ledgers: Of the source and the files that it names.
        refusal: Why there is no suite.
        warnings: Limits and checks of the suite that its expected answers do not meet.
    """

    file: str
    suite: ImportedSuite | None = None
    ledgers: list[SourceLedger] = field(default_factory=list)
    refusal: str = ""
    warnings: Sequence[str] = ()

    def refuse(self, reason: str) -> "ImportedSource":
        """Return the source without its suite: nothing of it is imported, for a reason."""
        self.suite, self.refusal = None, reason
        for ledger in self.ledgers:
            ledger.lose_all("no case is imported, so there is no suite")
        return self

    @property
    def constructs(self) -> list[Construct]:
        """The constructs of all files."""
        return [construct for ledger in self.ledgers for construct in ledger.constructs()]


T = TypeVar("T")


def read_as(kind: type[T], data: Any) -> T:
    """Convert data of another tool's file to a declared type; keys that it does not declare are ignored.

    Raises:
        LeftOutError: It does not fit; the message has the place, what was found there, and what is expected.
    """
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise LeftOutError(misfit(error, data)) from None


def fit(kind: type[T], data: Any) -> T | None:
    """Convert data of another tool's file to a declared type; ``None`` where it does not fit."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError:
        return None


def fit_items(kind: type[T], data: Any) -> list[T]:
    """The items of a list in another tool's file as a declared type; those that do not fit are left out."""
    return [item for raw in as_list(data) if (item := fit(kind, raw)) is not None]


def as_list(value: Any) -> list[Any]:
    """A value of another tool's file if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def as_mapping(value: Any) -> Mapping[str, Any]:
    """A value of another tool's file if it is a mapping, else an empty mapping."""
    return value if isinstance(value, Mapping) else {}


def as_text(value: Any) -> str:
    """A value of another tool's file if it is a text, else an empty text."""
    return value if isinstance(value, str) else ""


def first_text(data: Mapping[str, Any], *names: str) -> str:
    """The first non-empty text among some keys of another tool's data; an empty text if there is none."""
    return next(filter(None, (as_text(data.get(name)) for name in names)), "")


def is_scalar(value: Any) -> bool:
    """Whether an imported value can be a label of a case: text, a number or a boolean."""
    return isinstance(value, str | int | float | bool)


def each_of(value: Any, path: SourcePath) -> Iterator[tuple[Any, SourcePath]]:
    """Yield the items of a list in another tool's file with their paths, or any other value as the only item."""
    if isinstance(value, list):
        yield from ((item, (*path, number)) for number, item in enumerate(value))
    else:
        yield value, path


def numbered(name: str, ending: str) -> Iterator[str]:
    """Yield the candidates for a unique name in an imported suite: the name, then with endings such as ``-{}``."""
    yield name
    yield from (name + ending.format(number) for number in count(2))


class FileValue(NamedTuple):
    """A value in another tool's file, and its path there."""

    steps: SourcePath
    value: Any


def walk(value: Any, parts: Sequence[str], steps: SourcePath = ()) -> Iterator[FileValue]:
    """Yield the values in another tool's file at the parts of a path; an empty part is the value itself."""
    for place, part in enumerate(filter(None, parts), 1):
        if part == "*":
            inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
            if place == len(parts):
                for key, child in inner:
                    yield FileValue((*steps, key), child)
                return
            for key, child in inner:
                yield from walk(child, parts[place:], (*steps, key))
            return
        if type(value) is dict or isinstance(value, Mapping):  # abstract types ask slowly
            if part not in value:
                return
            value, steps = value[part], (*steps, part)
        elif isinstance(value, list) and (number := parse_digits(part)) is not None and number < len(value):
            value, steps = value[number], (*steps, number)
        else:
            return
    yield FileValue(steps, value)


def values_at(data: Any, path: str) -> list[Any]:
    """The values at a path with dots in another tool's file."""
    return [file_value.value for file_value in walk(data, path.split("."))]


def value_at(data: Any, path: str) -> Any:
    """The first value at a path with dots in another tool's file; ``None`` if there is none."""
    return next(iter(values_at(data, path)), None)


def fits(data: Any, marks: str) -> bool:
    """Whether data has the paths by which a format is known, separated by spaces; ``path=text`` with a value."""
    paths = [mark.partition("=") for mark in marks.split()]
    return all(any(not text or at.value == text for at in walk(data, path.split("."))) for path, _, text in paths)


def file_fault(display_path: str, message: str, line: int = 0, column: int = 0) -> SuiteError:
    """The error about a file of another tool as a whole, or about a place in it."""
    return SuiteError([Fault(display_path, line, column, "", message)])


def read_source(path: Path, display_path: str) -> SourceLedger:
    """Read another tool's YAML or JSON file; nothing is executed, and tags that construct objects are faults.

    Raises:
        SuiteError: It cannot be read, or has faults.
    """
    file = InputFile(path, display_path)
    document = file.read_json() if path.suffix.lower() == ".json" else file.read_document()
    return SourceLedger(display_path, document.data, lambda steps: document.locate(steps)[0])


def read_rows(
    path: Path, display_path: str, kind: str, faults: list[Fault], *, nan: bool = False
) -> list[tuple[int, Any]]:
    """Line and content of each row of an imported JSONL or CSV file; rows that cannot be read are faults.

    Args:
        path: The file.
        display_path: Its name in messages.
        kind: Its form.
        faults: Gets the faults.
        nan: Accept NaN and infinities in JSON.
    """
    file = InputFile(path, display_path)
    if kind == "jsonl":
        return list(file.read_jsonl(faults, nan=nan))
    return list(file.read_csv(faults, delimiter={"tsv": "\t", "ssv": ";"}.get(kind, ",")))


def read_records(
    path: Path, display_path: str, keys: Sequence[str] = ()
) -> tuple[SourceLedger, list[dict[str, Any]], list[SourceLedger]]:
    """Read the records to import from a CSV, TSV, JSON, JSONL or Parquet file.

    Args:
        path: The file.
        display_path: Its name in messages.
        keys: Keys of a JSON object that may hold the list of records.

    Returns:
        The ledger, whose data has the columns at the top and the records below them; the records; and the ledgers of
        further data of the file.

    Raises:
        SuiteError: It cannot be read, or has faults.
    """
    faults: list[Fault] = []
    beside: list[SourceLedger] = []
    kind = path.suffix.lower().removeprefix(".")
    if kind == "parquet":
        rows: list[tuple[int, Any]] = [(0, row) for row in read_parquet(path, display_path)]
    elif kind in ("csv", "tsv", "jsonl"):
        rows = read_rows(path, display_path, kind, faults)
    else:
        rows, beside = _json_records(read_source(path, display_path), keys)
    faults += [
        Fault(display_path, line, 1, "", f"found {type(row).__name__}, expected an object with named values")
        for line, row in rows
        if not isinstance(row, dict)
    ]
    if faults:
        raise SuiteError(faults)
    if not rows:
        raise file_fault(display_path, "the file has no record")
    records = [row for _, row in rows]
    return records_ledger(display_path, [line for line, _ in rows], records), records, beside


def _json_records(source: SourceLedger, keys: Sequence[str]) -> tuple[list[tuple[int, Any]], list[SourceLedger]]:
    """The records to import from JSON data with their lines, and a ledger of the other data."""
    data = source.data
    if isinstance(data, list):
        return [(source.line((number,)), row) for number, row in enumerate(data)], []
    key = next((key for key in keys if isinstance(data, dict) and isinstance(data.get(key), list)), None)
    if key is None:
        return [(source.line(()), data)], []
    rows = [(source.line((key, number)), row) for number, row in enumerate(data[key])]
    others = {name: value for name, value in data.items() if name != key}
    return rows, [SourceLedger(source.file, others, source.line)] if others else []


def records_ledger(display_path: str, lines: Sequence[int], rows: Sequence[Mapping[str, Any]]) -> SourceLedger:
    """The ledger of imported records: a path begins with the column, then the number of the record."""
    columns: dict[str, dict[int, Any]] = {}
    for number, row in enumerate(rows):
        for name, value in row.items():
            columns.setdefault(name, {})[number] = value

    def line_of(path: SourcePath) -> int:
        return lines[path[1]] if len(path) > 1 and isinstance(path[1], int) else min(lines[:1], default=0)

    return SourceLedger(display_path, columns, line_of)


def read_parquet(path: Path, display_path: str) -> list[dict[str, Any]]:
    """The rows of a Parquet file of records or results.

    Raises:
        SuiteError: It cannot be read, or pyarrow is not installed.
    """
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise file_fault(display_path, str(MissingExtraError("a Parquet file", "parquet", error))) from None
    try:
        rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    except (OSError, ArrowException, ValueError, OverflowError) as error:  # ValueError: names that are no UTF-8
        message = f"cannot be read as Parquet: {str(error).splitlines()[0]}"
        raise file_fault(display_path, message) from None
    return rows


@dataclass
class ImportOptions:
    """The user's options of ``llmeval import``.

    Attributes:
        inputs: Columns of the input.
        expected: Column of the right answer.
        prediction: Column of the recorded answer.
        case_id: Column of the case ids.
        labels: Columns of labels.
        beside: Further sources, which may hold the items of others.
        names: Of the suites that were imported before.
        folder: Where suites are written.
        arms: Whether evals of plugins become two systems, with and without the plugin.
    """

    inputs: Sequence[str] = ()
    expected: str | None = None
    prediction: str | None = None
    case_id: str | None = None
    labels: Sequence[str] = ()
    beside: Sequence[Path] = ()
    names: set[str] = field(default_factory=set)
    folder: Path = Path()
    arms: bool = False

    def columns(self) -> "dict[str, ColumnPart]":
        """Return the parts of the columns that the user names."""
        single: Iterable[tuple[str | None, ColumnPart]] = (
            (self.expected, "expected"),
            (self.prediction, "answer"),
            (self.case_id, "id"),
        )
        return {
            **dict.fromkeys(self.inputs, "input"),
            **{name: part for name, part in single if name is not None},
            **dict.fromkeys(self.labels, "label"),
        }

    def parts(self) -> "set[ColumnPart]":
        """Return the parts for which the user names columns, except labels."""
        return set(self.columns().values()) - {"label"}

    def suite_name(self, title: str) -> str:
        """Return a name for a suite that no other suite of this import has."""
        stem = re.sub(r"[^\w.-]+", "-", title).strip("-._")[:_LONGEST_NAME] or "imported"
        name = next(candidate for candidate in numbered(stem, "-{}") if candidate not in self.names)
        self.names.add(name)
        return name


class CaseIds:
    """Unique ids for the cases of an imported suite: texts of the source where they can be ids, else numbers."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def next(self, value: object = None) -> str:
        """Return an id that is like a value of the source."""
        text = " ".join(str(value).split()) if isinstance(value, str | int) and not isinstance(value, bool) else ""
        text = "" if text.startswith("gate[") else text.replace("::", ": ")[:_LONGEST_ID].strip()
        base = text if text and CaseId(text).fault() is None else str(len(self._used) + 1)
        name = next(candidate for candidate in numbered(base, " ({})") if candidate not in self._used)
        self._used.add(name)
        return name


_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "null",
    "object": "a mapping",
    "str": "text",
}
"""Types of msgspec in messages."""


_STEP = re.compile(r"\.([^.\[\]`]+)|\[(\d+)\]")


def misfit(error: msgspec.ValidationError, data: Any) -> str:
    """The mismatch between another tool's data and a declared type: its place, the value and the expected form.

    >>> try:
    ...     msgspec.convert({"labels": ["a", 5]}, msgspec.defstruct("Grader", [("labels", list[str])]))
    ... except msgspec.ValidationError as error:
    ...     misfit(error, {"labels": ["a", 5]})
    'labels[1]: found the number 5, expected text'
    """
    text, _, place = str(error).partition(" - at ")
    steps: list[str | int] = [key or int(number) for key, number in _STEP.findall(place)]
    for step in steps:
        data = data[step]
    if text.startswith("Object missing required field"):
        message = f"{text.split('`')[1]} is missing"
    else:
        names = text.split("`")[1].split(" | ") if text.startswith("Expected `") else []
        words = [_WORDS.get(name, name) for name in names if name != "int" or "float" not in names]
        expected = " or ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
        message = f"found {describe(data)}, expected {expected}" if expected else f"found {describe(data)}"
    return f"{render_path(steps)}: {message}" if steps else message

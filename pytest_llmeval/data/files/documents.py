"""Files read as bytes, text and documents, each value with its place."""

import csv
import gc
import io
import json
import re
import stat
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, ClassVar, Final, TypeAlias

from msgspec import structs

from pytest_llmeval.core import Fault, SuiteError, quotation, suggest
from pytest_llmeval.data.files._places import MAX_DEPTH, FaultLog, FilePlace, render_path

_UTF16: Final = ": save it as UTF-8, not UTF-16"
_NO_TEXT: Final = {
    b"\xff\xfe": _UTF16,
    b"\xfe\xff": _UTF16,
    b"PK\x03\x04": ": it is a workbook of Excel or a ZIP file; in Excel, save it as CSV UTF-8",
    b"\xd0\xcf\x11\xe0": ": it is an old workbook of Excel; there, save it as CSV UTF-8",
}
"""What files that are no text begin with, and what to do about them."""
_SAVE: Final = ": save it as UTF-8 (it may be Windows text, cp1252)"
_DOCUMENT_ENDINGS: Final = (".yaml", ".yml", ".json")
_FIRST_BYTES: Final = 1 << 20
_TOP_LEVEL: Final = re.compile(r"""^["']?(\w+)["']?[ \t]*:""", re.MULTILINE)


def _file_fault(display_path: str, message: str, line: int = 0, column: int = 0) -> SuiteError:
    """The error for one fault of a user's file, such as a suite or a data file."""
    return SuiteError([Fault(display_path, line, column, "", message)])


def _reason(path: Path, error: OSError | ValueError) -> str:
    """The reason why a user's file cannot be read and, for a missing file, the most similar name."""
    # A ValueError is about a name that no file can have; its text depends on the version of Python.
    reason = error.strerror if isinstance(error, OSError) else "embedded null byte"
    return f"cannot be read: {reason}{_similar_file(path, error)}"


def _similar_file(path: Path, error: Exception) -> str:
    """The hint at the most similar name in the folder of a missing file; empty for other errors."""
    if not isinstance(error, FileNotFoundError):
        return ""
    try:
        return suggest(path.name, [neighbour.name for neighbour in path.parent.iterdir()])
    except OSError:
        return ""


def decode(data: bytes, display_path: str, line: int = 1, offset: int = 0) -> str:
    """Decode UTF-8; a byte order mark is skipped, and each line ends in one character, even if git has changed it.

    Args:
        data: The bytes.
        display_path: The file's name in errors.
        line: The line that `data` begins with.
        offset: Where in the file `data` begins.

    Raises:
        SuiteError: The bytes are no UTF-8; the error names the first wrong byte.
    """
    try:
        return data.decode("utf-8-sig" if offset == 0 else "utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        # The codec skips the mark before it counts, so the offset is taken from the bytes that it was given.
        at = error.start + len(data) - len(error.object)
        begin = data.rfind(b"\n", 0, at) + 1
        column = len(data[begin:at].decode("utf-8-sig" if begin + offset == 0 else "utf-8")) + 1
        usual = _SAVE if display_path.lower().endswith((".csv", ".tsv", ".txt")) else ""
        hint = next((hint for marks, hint in _NO_TEXT.items() if offset == 0 and data.startswith(marks)), usual)
        message = f"found byte 0x{data[at]:02x} at byte offset {offset + at}, expected UTF-8{hint}"
        raise _file_fault(display_path, message, line + data.count(b"\n", 0, at), column) from None


@contextmanager
def _cell_limit(limit: int) -> Iterator[None]:
    """Raise the limit of the csv module, which is global and below the length of some model answers."""
    before = csv.field_size_limit(limit)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _records(lines: Iterable[str], delimiter: str, faults: FaultLog) -> Iterator[tuple[int, list[str]]]:
    """Yield first line and cells of each record of a CSV text with a cell that is not blank."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            faults.add(line, 1, "", f"found a malformed CSV row ({error}), expected matching quotes")
            continue
        if any(cell and not cell.isspace() for cell in cells):
            yield line, cells


_DELIMITERS: Final = ",;\t|"
_EXCEL_LINE = re.compile(r"sep=(.?)", re.IGNORECASE)


def _delimiter_fault(header: Sequence[str], delimiter: str) -> str:
    """The fault of a CSV file whose columns another character separates, as far as the header shows it."""
    first = header[0].strip() if header else ""
    if named := _EXCEL_LINE.fullmatch(first):
        other = named[1] or delimiter
        setting = f"delimiter: {json.dumps(other)}"
        expected = f"expected the names of columns: remove the line, and set {setting}"
        return f"found {first!r}, which only Excel reads, {expected}"
    others = [mark for mark in _DELIMITERS if mark != delimiter and mark in first]
    if len(header) > 1 or not others:
        return ""
    other = max(others, key=first.count)
    return f"found one column, {quotation(first, 60)}, expected several: set delimiter: {json.dumps(other)}"


SurplusColumn: TypeAlias = Callable[[Sequence[str]], int | None]
"""From the header to the column with free text that gets surplus cells, such as those of unquoted commas."""


def parse_csv(
    text: str, delimiter: str, limit: int, faults: FaultLog, surplus: SurplusColumn | None = None
) -> list[tuple[int, dict[str, str]]]:
    """Read rows as mappings from column to cell; faulty rows are left out, and so are columns without any text.

    Args:
        text: The text; its first record names the columns.
        delimiter: The one character between cells.
        limit: Most characters of a cell.
        faults: Gets the faults.
        surplus: Names the column that gets surplus cells; without one they are a fault.
    """
    return list(_table_rows(io.StringIO(text, newline=""), delimiter, limit, faults, surplus))


def _table_rows(
    lines: Iterable[str], delimiter: str, limit: int, faults: FaultLog, surplus: SurplusColumn | None
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of the lines of a CSV text; see `parse_csv`."""
    with _cell_limit(limit):
        records = _records(lines, delimiter, faults)
        header_line, header = next(records, (1, []))
        if fault := _delimiter_fault(header, delimiter):
            faults.add(header_line, 1, "", fault)
            return
        if surplus is None:
            while header and not header[-1].strip():
                header.pop()
        twice = sorted(name for name, times in Counter(header).items() if times > 1)
        for name in twice:
            faults.add(header_line, 1, name, f"found the column {name!r} twice, expected it once")
        free_text = surplus(header) if surplus is not None else None
        for line, cells in records:
            while surplus is None and len(cells) > len(header) and not cells[-1].strip():
                cells.pop()  # a comma at the end of the line
            more = len(cells) - len(header)
            if more > 0 and free_text is not None:
                end = free_text + more + 1
                cells[free_text:end] = [delimiter.join(cells[free_text:end])]
            if len(cells) != len(header):
                faults.add(line, 1, "", f"found {len(cells)} cells, expected {len(header)} as in the header")
            elif not twice:
                yield line, dict(zip(header, cells, strict=True))


MAX_SUITE_BYTES: Final = 32 << 20
"""Largest suite file; larger sets of cases belong into JSONL."""

_SUITE_ADVICE = "put large sets of cases into a JSONL file and name it under `source`"
_SUITE = "a suite: a mapping with `cases` or a `source`"


@contextmanager
def collector_paused() -> Iterator[None]:
    """A context without garbage collection: visiting data that grows, again and again, costs more than making it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


_ROWS: Final = 2
"""Levels down to which rows stand: of a list, or of a list under a key. What is deeper is located for faults only."""


@dataclass(frozen=True)
class Document:
    """A file that has been read.

    Attributes:
        file: The file as shown to the user.
        data: Plain data: what JSON can carry.
        text: What was read, if faults quote it.
        objects: Names in the data to what they mean, where Python passes it by value.
    """

    file: str
    data: Any
    _find_places: Callable[[int], FilePlace | None] = field(default=lambda _: None, repr=False, compare=False)
    text: str = field(default="", repr=False, compare=False)
    objects: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_yaml(cls, text: str, faults: FaultLog) -> "Document":
        """The document of a YAML text; its faults are added to `faults`."""
        from pytest_llmeval.data.files._yaml import load_yaml

        data, place = load_yaml(text, faults)
        return cls(faults.file, data, lambda _: place, text)

    @classmethod
    def of_line(cls, file: str, line: int, data: Any, objects: Mapping[str, Any]) -> "Document":
        """The document of data that all is at one line of a file, such as a call in Python."""
        place = FilePlace(line, 1)
        return cls(file, data, lambda _: place, objects=objects)

    @classmethod
    def of_lines(cls, file: str, entries: Mapping[int, Any]) -> "Document":
        """The document of a list of entries, given by the line at which each begins."""
        place = FilePlace(1, 1, [FilePlace(line, 1) for line in entries])
        return cls(file, list(entries.values()), lambda _: place)

    @cached_property
    def _places_by_depth(self) -> dict[int, FilePlace | None]:
        """What was located so far, by the number of levels that have places."""
        return {}

    def _places(self, depth: int) -> FilePlace | None:
        """Return the place of the data, with places inside down to so many levels: those of rows, or all."""
        level = depth if depth <= _ROWS else MAX_DEPTH
        if level not in self._places_by_depth:
            with collector_paused():
                self._places_by_depth[level] = self._find_places(level)
        return self._places_by_depth[level]

    def locate(self, path: Sequence[str | int], *, key: bool = False) -> tuple[int, int]:
        """Line and column, counted from 1, of the value at `path` of the file.

        Args:
            path: Keys and list positions from the outside in.
            key: Whether the key is meant instead of the value.

        Returns:
            Its position, or that of its nearest ancestor if it does not exist; ``(0, 0)`` if unknown.
        """
        places = self._places(len(path))
        if places is None:
            return 0, 0
        place = places.find(path, key=key)
        return place.line, place.column

    def under(self, key: str) -> "Document":
        """The document ``{key: data}`` of this document's data."""

        def places(depth: int) -> FilePlace | None:
            place = self._places(depth)
            return None if place is None else FilePlace(place.line, place.column, {key: (place, place)})

        return Document(self.file, {key: self.data}, places)

    def fault(self, path: Sequence[str | int], message: str, *, key: bool = False, unregistered: str = "") -> Fault:
        """A fault of the value (or key) at `path` of the file."""
        line, column = self.locate(path, key=key)
        return Fault(self.file, line, column, render_path(path), message, unregistered=unregistered)

    def fault_inside(self, path: Sequence[str | int], value: str, offset: int, message: str) -> Fault:
        """A fault of one character of the text at `path`, if the file shows it as it is; else of the whole text."""
        fault = self.fault(path, message)
        lines = self.text.splitlines()
        written = lines[fault.line - 1][fault.column - 1 :] if 0 < fault.line <= len(lines) else ""
        before = int(written[:1] in ("'", '"'))
        if not written.startswith(value[:offset], before):
            return fault
        return structs.replace(fault, column=fault.column + before + offset)


def _yaml_document(text: str, display_path: str) -> Document:
    """The document of the text of a YAML suite file.

    Raises:
        SuiteError: The text has faults, or no data.
    """
    from pytest_llmeval.data.files._yaml import load_yaml

    faults = FaultLog(display_path)
    with collector_paused():
        data, place = load_yaml(text, faults)
    faults.check()
    if data is None:
        raise SuiteError([Fault(display_path, 0, 0, "", f"found a file without data, expected {_SUITE}")])
    return Document(display_path, data, lambda _: place, text)


def _json_document(text: str, display_path: str, depth: int, *, nan: bool = False) -> Document:
    """The document of the text of a JSON file; places are computed when a fault needs them.

    Raises:
        SuiteError: The text has faults.
    """
    from pytest_llmeval.data.files._json import JsonParser, RejectedError, scan_json

    faults = FaultLog(display_path)
    with collector_paused():
        try:
            data = JsonParser(faults, nan=nan).parse(text)
        except RejectedError:
            raise SuiteError(faults.listed()) from None
    return Document(display_path, data, lambda level: scan_json(text, depth=min(level, depth)), text)


def _lines(stream: IO[bytes], limit: int) -> Iterator[tuple[int, int, bytes | None]]:
    """Yield line number, offset and bytes of each line of a JSONL file; ``None`` for a line too long to be held."""
    number = offset = 0
    while line := stream.readline(limit + 1):
        number += 1
        size = len(line)
        too_long = size > limit and not line.endswith(b"\n")
        while too_long and not line.endswith(b"\n") and (line := stream.readline(1 << 20)):
            size += len(line)
        yield number, offset, None if too_long else line
        offset += size


def _is_utf8(path: Path) -> bool:
    """Whether a CSV file can be read as text, line by line."""
    decoder, is_empty = getincrementaldecoder("utf-8")(), True
    try:
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                text = decoder.decode(block)
                is_empty = is_empty and not text.strip("\ufeff").strip()
                if "\0" in text:
                    return False
            decoder.decode(b"", final=True)
    except (OSError, ValueError):
        return False
    return not is_empty


def _unix_lines(stream: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a CSV file as `decode` ends them."""
    return (f"{line[:-2]}\n" if line.endswith("\r\n") else line for line in stream)


class InputFile:
    """A file that is read.

    Attributes:
        path: Where it is.
        display_path: Its name in errors.
    """

    MAX_LINE_BYTES: ClassVar[int] = 16 << 20
    """Longest line of a JSONL file, and longest cell of a CSV file."""

    def __init__(self, path: Path, display_path: str = "") -> None:
        self.path = path
        self.display_path = display_path or str(path)

    def check_regular(self) -> None:
        """Raise `SuiteError` unless it is a regular file: a pipe or a device may never end."""
        try:
            mode = self.path.stat().st_mode
        except (OSError, ValueError) as error:
            raise _file_fault(self.display_path, _reason(self.path, error)) from None
        if stat.S_ISDIR(mode):
            raise _file_fault(self.display_path, "found a directory, expected a file")
        if not stat.S_ISREG(mode):
            raise _file_fault(self.display_path, "found a device or a pipe, expected a file")

    def read_bytes(self, limit: int | None = None, advice: str = "") -> bytes:
        """Read a regular file.

        Args:
            limit: Most bytes that are read.
            advice: What to do about a larger file.

        Raises:
            SuiteError: The file is missing, unreadable, no regular file, or larger than `limit`.
        """
        self.check_regular()
        try:
            with self.path.open("rb") as stream:
                data = stream.read(-1 if limit is None else limit + 1)
        except OSError as error:
            raise _file_fault(self.display_path, _reason(self.path, error)) from None
        if limit is not None and len(data) > limit:
            message = f"found more than {limit >> 20} MiB, which is the limit: {advice}"
            raise _file_fault(self.display_path, message)
        return data

    def read_lines(self) -> list[str]:
        """Read the lines of a UTF-8 text file, which may be empty.

        Raises:
            SuiteError: The file cannot be read, or is no UTF-8.
        """
        return decode(self.read_bytes(), self.display_path).split("\n")

    def read_text(self, expected: str, limit: int | None = None, advice: str = "") -> str:
        """Read a UTF-8 text file that is not empty; see `read_bytes`.

        Args:
            expected: What an empty file should hold instead.
            limit: Most bytes that are read.
            advice: What to do about a larger file.

        Raises:
            SuiteError: The file cannot be read, is too large, empty, no UTF-8, or holds a NUL character.
        """
        text = decode(self.read_bytes(limit, advice), self.display_path)
        if not text or text.isspace():
            raise _file_fault(self.display_path, f"found an empty file, expected {expected}")
        if (at := text.find("\0")) >= 0:
            line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
            hint = next((hint for marks, hint in _NO_TEXT.items() if text.encode().startswith(marks)), "")
            if not hint and text.count("\0") > len(text) // 4:
                hint = _UTF16
            raise _file_fault(self.display_path, f"found a NUL character, expected text{hint}", line, column)
        return text

    def read_document(self) -> Document:
        """Read a suite file: JSON where the suffix is ``.json``, YAML otherwise.

        Raises:
            SuiteError: The file cannot be read, or it has faults; all that could be found are listed.
        """
        text = self.read_text(_SUITE, MAX_SUITE_BYTES, _SUITE_ADVICE)
        try:
            if self.path.suffix.lower() == ".json":
                return _json_document(text, self.display_path, MAX_DEPTH)
            return _yaml_document(text, self.display_path)
        except SuiteError as error:
            error.texts[self.display_path] = text
            raise

    def read_front_matter(self, expected: str) -> tuple[Document, str]:
        """Read a Markdown file that may begin with YAML between two lines ``---``.

        Args:
            expected: What an empty file should hold instead.

        Returns:
            The YAML, an empty mapping without any; and the text below it.

        Raises:
            SuiteError: The file cannot be read, or its YAML has faults or is no mapping.
        """
        from pytest_llmeval.data.files._yaml import load_yaml

        text = self.read_text(expected)
        lines = text.split("\n")
        end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), 0)
        if lines[0].rstrip() != "---" or not end:
            return Document(self.display_path, {}), text
        faults = FaultLog(self.display_path)
        data, place = load_yaml("\n".join(["", *lines[1:end], ""]), faults)
        faults.check()
        if data is not None and not isinstance(data, Mapping):
            message = "a mapping between the lines --- is missing, such as type: regex"
            raise _file_fault(self.display_path, message, 2)
        return Document(self.display_path, data or {}, lambda _: place), "\n".join(lines[end + 1 :])

    def read_json(self, depth: int = MAX_DEPTH, *, nan: bool = False) -> Document:
        """Read a JSON file of any size.

        Args:
            depth: How many levels of lists and objects can be located; fewer cost less in large files.
            nan: Accept NaN and infinities.

        Raises:
            SuiteError: The file cannot be read, or it is no strict JSON; the error has line and column.
        """
        return _json_document(self.read_text("JSON"), self.display_path, depth, nan=nan)

    def read_jsonl(self, faults: list[Fault], *, nan: bool = False) -> Iterator[tuple[int, Any]]:
        """Read a JSONL file line by line; blank lines are skipped.

        Args:
            faults: Gets the log. A bad line is skipped, the others survive.
            nan: Accept NaN and infinities.

        Yields:
            Line number, counted from 1, and value of each good line.
        """
        log = FaultLog(self.display_path)
        yield from self.jsonl_lines(log, nan=nan)
        faults.extend(log.listed())

    def jsonl_lines(self, log: FaultLog, *, nan: bool = False) -> Iterator[tuple[int, Any]]:
        """Yield the good lines as `read_jsonl` does; a fault is in the log before the next line comes."""
        from pytest_llmeval.data.files._json import JsonParser, RejectedError

        parser = JsonParser(log, nan=nan)
        any_text = False
        try:
            self.check_regular()
            with self.path.open("rb") as stream:
                for number, offset, line in _lines(stream, self.MAX_LINE_BYTES):
                    if line is None:
                        limit = f"{self.MAX_LINE_BYTES >> 20} MiB"
                        log.add(number, 1, "", f"found a line that is too long, expected at most {limit}")
                        continue
                    try:
                        text = decode(line, self.display_path, number, offset).rstrip()
                        any_text = any_text or bool(text)
                        if text:
                            yield number, parser.parse(text, number)
                    except SuiteError as error:
                        log.extend(error.faults)
                    except RejectedError:
                        continue
            if not any_text and not log.count:
                log.add(0, 0, "", "found an empty file, expected one JSON value per line")
        except SuiteError as error:
            log.extend(error.faults)
        except OSError as error:
            log.add(0, 0, "", f"cannot be read: {error.strerror}")

    def read_csv(
        self, faults: list[Fault], *, delimiter: str = ",", surplus: SurplusColumn | None = None
    ) -> Iterator[tuple[int, dict[str, str]]]:
        """Read a CSV file whose first line names the columns; blank lines are skipped.

        Args:
            faults: Gets the log. A bad row is skipped, the others survive.
            delimiter: The one character between cells.
            surplus: As in `parse_csv`.

        Yields:
            Number of the row's first line, counted from 1, and its cells by column.
        """
        log = FaultLog(self.display_path)
        yield from self.csv_rows(log, delimiter, surplus)
        faults.extend(log.listed())

    def csv_rows(
        self, log: FaultLog, delimiter: str, surplus: SurplusColumn | None = None
    ) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield the good rows as `read_csv` does; a fault is in the log before the next row comes."""
        try:
            self.check_regular()
            if not _is_utf8(self.path):
                self.read_text("a line of column names")  # which says what is wrong
            with self.path.open(encoding="utf-8-sig", newline="") as stream:
                yield from _table_rows(_unix_lines(stream), delimiter, self.MAX_LINE_BYTES, log, surplus)
        except SuiteError as error:
            log.extend(error.faults)

    def looks_like_suite(self) -> bool:
        """Whether a YAML or JSON file has the keys of a suite: what to score, and how; faults do not matter.

        At most one megabyte is read, so that folders full of data stay cheap.
        """
        if self.path.suffix.lower() not in _DOCUMENT_ENDINGS:
            return False
        text = self._beginning()
        # Data files are many and large: only those that can be suites are parsed.
        if text.lstrip().startswith("{") and '"evaluators"' not in text and '"checks"' not in text:
            return False
        keys = _top_level_keys(text)
        return not keys.isdisjoint({"cases", "source"}) and not keys.isdisjoint({"evaluators", "checks"})

    def top_level_keys(self) -> set[str]:
        """The keys at the left margin of a YAML file, or of a JSON object; faults do not matter.

        At most one megabyte is read. Without a mapping, and if the file cannot be read, there are none.
        """
        return _top_level_keys(self._beginning())

    def _beginning(self) -> str:
        """The first megabyte of the text; empty if the file cannot be read."""
        try:
            with self.path.open(encoding="utf-8-sig") as file:
                return file.read(_FIRST_BYTES)
        except (OSError, ValueError):
            return ""


def _top_level_keys(text: str) -> set[str]:
    """The keys at the left margin of the text of a YAML file, or of a JSON object."""
    if not text.lstrip().startswith("{"):
        return set(_TOP_LEVEL.findall(text))
    try:
        return set(json.loads(text))
    except (ValueError, RecursionError):
        return set()

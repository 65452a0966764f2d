"""The files of media that values of cases name."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from pytest_llmeval.core import Case, Media, MediaError, SuiteError, quotation
from pytest_llmeval.data import InputFile, MediaFolder
from pytest_llmeval.services import ServiceAddress
from pytest_llmeval.suites._fetching import fetch_content, is_fetched
from pytest_llmeval.suites._reading import SuiteReading

_FILE: Final = "file"
_TYPE: Final = "type"
_LONGEST: Final = 200
_PARTS: Final = ("input", "expected", "prediction")
_NO_VALUES: Final = frozenset({"arguments", "args"})
"""Keys of the arguments of a tool, which may be named ``file``."""


class MediaFiles:
    """The media that ``{file: PATH}`` in cases of a suite names, with a fault for each file that is wrong.

    Args:
        reading: Of the suite file.
        folder: From which files are named.
    """

    def __init__(self, reading: SuiteReading, folder: Path) -> None:
        self._reading = reading
        self._folder = folder

    def read_case(self, case: Case, path: tuple[str | int, ...]) -> Case:
        """The case with its media in place of the names of their files.

        Args:
            case: As its file has it.
            path: Its place in the document.
        """
        names = {"input": "messages"} if case.conversation else {}
        parts = ((part, getattr(case, part)) for part in _PARTS)
        values = {part: (value, (*path, names.get(part, part))) for part, value in parts if _may_name_file(value)}
        changed = {
            part: new for part, (value, place) in values.items() if (new := self._read(value, place)) is not value
        }
        return replace(case, **changed) if changed else case

    def _read(self, value: Any, path: tuple[str | int, ...]) -> Any:
        """A case's value with its media; the value itself if it names no file."""
        if isinstance(value, Mapping):
            if names_file(value):
                return self._medium(value, path)
            held = {
                name: part if name in _NO_VALUES else self._read(part, (*path, name)) for name, part in value.items()
            }
            return value if all(held[name] is part for name, part in value.items()) else held
        if isinstance(value, list):
            items = [self._read(part, (*path, place)) for place, part in enumerate(value)]
            return value if all(new is old for new, old in zip(items, value, strict=True)) else items
        return value

    def _medium(self, entry: Mapping[str, str], path: tuple[str | int, ...]) -> Any:
        """The medium that an entry ``{file: ...}`` names; faults are added."""
        name, kind = entry[_FILE], entry.get(_TYPE)
        is_address = "://" in name or name.startswith("data:")
        where = quotation(ServiceAddress(name).redacted if is_address and "@" in name else name, _LONGEST)
        try:
            if is_address:
                hosts = self._reading.entry.fetch
                return Media.form_of(
                    self._fetch_once(name, kind) if is_fetched(name, hosts) else Media(url=name, type=kind)
                )
            target = self._inside(name)
            InputFile(target, name).check_regular()
            return Media.form_of(Media.from_path(target, kind))
        except SuiteError as error:
            self._reading.fault((*path, _FILE), f"{where}: {error.faults[0].message}")
        except (MediaError, ValueError) as error:
            self._reading.fault((*path, _FILE), f"{where}: {error}")
        return entry

    def _fetch_once(self, address: str, kind: str | None) -> Media:
        """The content of a medium's address, which is asked for once.

        Raises:
            MediaError: It cannot be had.
        """
        folder = MediaFolder(self._reading.root)
        content = folder.at(address)
        if content is None:
            fetched = fetch_content(address, self._reading.entry.fetch, Media.limits())
            content = folder.note(address, fetched.data, fetched.type)
        data, served = content
        name = address.partition("?")[0].partition("#")[0]
        return Media.of_named(data, name, kind or (None if Media.type_by_ending(name) else served or None))

    def _inside(self, name: str) -> Path:
        """The path of a media file, below the folder that the suite may name files of.

        Raises:
            MediaError: It lies outside the folder of which the suite may name files.
        """
        try:
            target = (self._folder / name).resolve()
        except RuntimeError:
            raise MediaError("found links that lead to each other, expected a file") from None
        if not target.is_relative_to(self._reading.root.resolve()):
            folder = self._reading.root.name
            raise MediaError(f"found a file outside the folder {folder!r}, expected one inside it")
        return target


_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


def _may_name_file(value: Any) -> bool:
    """Whether a case's value may name a media file somewhere: most do not, and need neither copies nor places."""
    values = [value]
    while values:
        value = values.pop()
        kind = type(value)
        if kind is dict:
            if _FILE in value:
                return True
            values += [part for part in value.values() if type(part) not in _SCALARS]
        elif kind is list:
            values += [part for part in value if type(part) not in _SCALARS]
        elif kind not in _SCALARS:
            return True
    return False


def check_hosts(reading: SuiteReading) -> None:
    """Refuse entries of ``fetch`` in a suite file that are no hosts."""
    for number, host in enumerate(reading.entry.fetch):
        if not _HOST.fullmatch(host):
            reading.fault(("fetch", number), f"found {host!r}, expected a host such as example.org or 127.0.0.1:8000")


_HOST: Final = re.compile(r"(?:[A-Za-z0-9](?:[\w.-]*\w)?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?", re.ASCII)


def names_file(value: Any) -> bool:
    """Whether a case's value is ``{file: PATH}``, which names a medium, with a type or without."""
    if not isinstance(value, Mapping) or not isinstance(value.get(_FILE), str) or len(value) > 2:  # noqa: PLR2004 (file and type)
        return False
    return len(value) == 1 or isinstance(value.get(_TYPE), str)


def with_row_media(reading: SuiteReading, row: Case, file: str) -> Case | None:
    """The case of a data file's row with its media; ``None`` after adding its faults.

    Args:
        reading: Of the suite file.
        row: The case.
        file: The data file, as the suite names it; the row names files from its folder.
    """
    before = len(reading.faults)
    case = MediaFiles(reading, (reading.path.parent / file).parent).read_case(row, ())
    reading.faults[before:] = [
        structs.replace(fault, file=file, line=row.line, column=1) for fault in reading.faults[before:]
    ]
    return case if len(reading.faults) == before else None

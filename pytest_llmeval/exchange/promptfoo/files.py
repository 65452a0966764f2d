"""The files that a promptfoo configuration names with ``file://``."""

__all__ = ("CODE_SUFFIXES", "ConfigFiles")

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.data.files.patterns import matching_files
from pytest_llmeval.data.files.text import read_text
from pytest_llmeval.exchange.contract import LeftOutError, SourceLedger, read_source

CODE_SUFFIXES = frozenset({".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".rb", ".go", ".sh"})
_DATA_SUFFIXES = frozenset({".json", ".yaml", ".yml"})
_MEDIA_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".pdf", ".mp3", ".wav", ".mp4"})
_SCHEME = "file://"
_LARGEST = 32 << 20


@dataclass
class ConfigFiles:
    """Reads files beside a configuration; none of them is executed.

    Attributes:
        folder: Of the configuration.
        shown: The folder in messages; empty for the present one.
        ledgers: Of the data files that were read.
    """

    folder: Path
    shown: str
    ledgers: dict[Path, SourceLedger] = field(default_factory=dict)

    def name(self, path: Path) -> str:
        """Return how messages name a file."""
        inside = path.relative_to(self.folder).as_posix() if path.is_relative_to(self.folder) else path.as_posix()
        return f"{self.shown}/{inside}" if self.shown not in ("", ".") and not Path(inside).is_absolute() else inside

    def path(self, reference: str) -> Path:
        """Return the file of a reference.

        Raises:
            LeftOutError: It is code, or there is no such file.
        """
        name = self._inert(reference)
        path = self.folder / name
        try:
            if not path.is_file():
                raise LeftOutError(f"there is no file {name}")
        except (OSError, ValueError):
            raise LeftOutError(f"there is no file {name!r}") from None
        return self._confined(path, name)

    def paths(self, reference: str) -> list[Path]:
        """Return the files of a reference that may be a pattern.

        Raises:
            LeftOutError: As `path`; or no file matches.
        """
        name = self._inert(reference)
        if not set(name) & set("*?["):
            return [self.path(reference)]
        try:
            found = sorted(matching_files(self.folder, name))
        except ValueError as error:
            raise LeftOutError(f"the pattern {name!r} cannot be read ({error})") from None
        if not found:
            raise LeftOutError(f"no file matches {name}")
        return [self._confined(each, name) for each in found if each.suffix.lower() not in CODE_SUFFIXES]

    def _confined(self, path: Path, name: str) -> Path:
        """Return a path; what an untrusted configuration names elsewhere on the machine would end up in the suite."""
        real = path.resolve()
        if not any(real.is_relative_to(folder.resolve()) for folder in (self.folder, Path.cwd())):
            raise LeftOutError(
                f"{name} is neither in the folder of the configuration nor in the current one: copy it there"
            )
        return path

    def _inert(self, reference: str) -> str:
        """Return the name in a reference, which must be that of data."""
        name = reference.removeprefix(_SCHEME)
        stem, colon, function = name.rpartition(":")
        if colon and (Path(stem).suffix in CODE_SUFFIXES or function.isidentifier()):
            name = stem
        if Path(name).suffix.lower() in CODE_SUFFIXES:
            raise LeftOutError(f"{name} is code, which is never executed")
        return name

    def text(self, path: Path) -> str:
        """Return the text of a file.

        Raises:
            LeftOutError: It is no text.
        """
        if path.suffix.lower() in _MEDIA_SUFFIXES:
            raise LeftOutError(f"{path.name} is no text: images, sound and documents are not sent to models")
        try:
            return read_text(path, self.name(path), "text", _LARGEST, "split it")
        except SuiteError as error:
            raise LeftOutError(f"{error.faults[0]}") from None

    def data(self, path: Path) -> SourceLedger:
        """Return the content of a YAML or JSON file.

        Raises:
            LeftOutError: It has faults.
        """
        if path not in self.ledgers:
            try:
                self.ledgers[path] = read_source(path, self.name(path))
            except SuiteError as error:
                raise LeftOutError(f"{error.faults[0]}") from None
        return self.ledgers[path]

    def value(self, reference: str) -> Any:
        """Return the data or the text of a file that a value names.

        Raises:
            LeftOutError: There is none, or it is code.
        """
        path = self.path(reference)
        if path.suffix.lower() not in _DATA_SUFFIXES:
            return self.text(path)
        ledger = self.data(path)
        ledger.same((), "file", "its content, in place of its name")
        return ledger.data

"""Replies as a directory of JSON files, one for each, that people commit and review."""

import json
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from pytest_llmeval.core import LlmevalError, printable
from pytest_llmeval.data import JsonText, OutputFile
from pytest_llmeval.judges._recordings import visible
from pytest_llmeval.judges._stored_judgement import StoredJudgement

_SUFFIX: Final = ".json"
_KEY = re.compile("[0-9a-f]{32}")
_LARGEST: Final = 16 << 20
"""Most bytes of a file: it may have come with a checkout."""


class DirectoryReplies:
    """A judge cache of files ``KEY.json``: keys are hexadecimal digits, which every file system can have as names.

    A file that is no judgement of its name is never replaced and never deleted: it was edited, or two branches were
    merged badly, and people decide.

    Attributes:
        path: The directory.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        """Create the directory if it is absent.

        Raises:
            LlmevalError: It cannot be created, or is a file.
        """
        self.path = path
        self.clock = clock
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LlmevalError(
                f"the judge cache {path} cannot be created ({error.strerror}): choose a directory in a writable folder"
            ) from error

    def get(self, key: str) -> StoredJudgement | None:
        """Return the judgement stored under a key.

        Raises:
            LlmevalError: Its file is damaged.
        """
        try:
            return self._read(self._file(key))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise LlmevalError(
                f"{self._fault(self._file(key), error)}: restore the file, or delete it to ask the judge again"
            ) from error

    def put(self, entries: Sequence[StoredJudgement]) -> None:
        """Store judgements, a file each; the same reply leaves a file as it is, so that only verdicts are reviewed.

        Raises:
            LlmevalError: A file cannot be written, or is damaged.
        """
        for entry in entries:
            known = self.get(entry.key)
            if known is not None and known.reply == entry.reply:
                continue
            text = json.dumps(entry.to_json(), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
            file = self._file(entry.key)
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                OutputFile(file).write_text([visible(text), "\n"])
            except OSError as error:
                raise LlmevalError(f"{file}: the verdict cannot be written ({error.strerror})") from error

    def entries(self) -> Iterator[StoredJudgement]:
        """Yield all judgements that can be read, sorted by key."""
        for file in self._files():
            with suppress(OSError, ValueError):
                yield self._read(file)

    def verify(self) -> list[str]:
        """Return a line for each JSON file that is no judgement of its name."""
        faults = []
        for file in self._files():
            try:
                self._read(file)
            except FileNotFoundError:  # deleted meanwhile
                continue
            except (OSError, ValueError) as error:
                faults.append(self._fault(file, error))
        return faults

    def prune(self, older_than_s: float | None = None, model: str | None = None) -> int:
        """Delete judgements that fulfil all conditions; return how many.

        Args:
            older_than_s: Written longer ago than this, by the time of the file.
            model: Of this ``PROVIDER:NAME``.

        Raises:
            LlmevalError: A file cannot be deleted.
        """
        before = None if older_than_s is None else self.clock() - older_than_s
        deleted = 0
        for entry in list(self.entries()):
            file = self._file(entry.key)
            try:
                is_old = before is None or file.stat().st_mtime < before
                if is_old and model in (None, entry.components["model"]):
                    file.unlink()
                    deleted += 1
            except FileNotFoundError:  # another process was faster
                continue
            except OSError as error:
                raise LlmevalError(f"{file}: the verdict cannot be deleted ({error.strerror})") from error
        return deleted

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _file(self, key: str) -> Path:
        return self.path / f"{key}{_SUFFIX}"

    def _files(self) -> list[Path]:
        try:
            return sorted(path for path in self.path.iterdir() if path.suffix == _SUFFIX)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise LlmevalError(f"the judge cache {self.path} cannot be read ({error.strerror})") from error

    def _read(self, file: Path) -> StoredJudgement:
        """Return the judgement in a file.

        Raises:
            OSError: It cannot be read.
            ValueError: It holds something else; the message says what.
        """
        if _KEY.fullmatch(file.stem) is None:
            raise ValueError("found a file of another name, expected KEY.json with a key of 32 hexadecimal digits")
        status = file.lstat()  # a link may come with a checkout, and lead anywhere
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("found a directory, link or device, expected a file")
        if status.st_size > _LARGEST:
            raise ValueError(f"found {status.st_size} bytes, expected at most {_LARGEST}")
        try:
            entry = StoredJudgement.from_json(JsonText(file.read_text(encoding="utf-8")).load())
        except UnicodeDecodeError:
            raise ValueError("found bytes that are no UTF-8, expected a judgement") from None
        except json.JSONDecodeError as error:
            raise ValueError(
                f"found invalid JSON at line {error.lineno}, column {error.colno} ({error.msg}), expected a judgement"
            ) from None
        except RecursionError:
            raise ValueError("found too many levels of nesting, expected a judgement") from None
        if entry.key != file.stem:
            raise ValueError(f"found the key {entry.key}, expected that of the file's name")
        return entry

    @staticmethod
    def _fault(file: Path, error: OSError | ValueError) -> str:
        return f"{printable(str(file))}: {error.strerror if isinstance(error, OSError) else error}"

"""Writing of all our files: atomic, and never through a symbolic link."""

import errno
import os
import re
import socket
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from pytest_llmeval.core import WINDOWS, Fault, SuiteError
from pytest_llmeval.data.files._places import OwnFiles

_STALE_S: Final = 86_400.0
"""Age at which a file is taken for abandoned although its process may run: on another machine, or under a used id."""


class WritingProcess(NamedTuple):
    """A process that writes our files, by the name that they carry, such as ``1f0c5ad2-4711``.

    Attributes:
        name: A digest of its machine, and its id.
    """

    name: str

    @classmethod
    def current(cls) -> "WritingProcess":
        """This process."""
        return cls(f"{_machine()}-{os.getpid()}")

    @property
    def is_current(self) -> bool:
        """Whether it is this process."""
        return self == WritingProcess.current()

    def has_ended(self) -> bool:
        """Whether it is a process of this machine that has ended; in doubt, it has not."""
        machine, _, number = self.name.partition("-")
        if WINDOWS or machine != _machine():  # there, signal 0 is Ctrl-C
            return False
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):
            return False
        return _waits_to_be_reaped(number)

    def has_abandoned(self, file: os.stat_result) -> bool:
        """Whether it will not write a file any more: it has ended, or the file is a day old."""
        return self.has_ended() or time.time() - file.st_mtime > _STALE_S


def _waits_to_be_reaped(process: str) -> bool:
    """Whether a process that wrote files has ended though its parent has not noticed."""
    try:
        status = Path("/proc", process, "stat").read_bytes()
    except OSError:  # there is no /proc, or it has ended meanwhile
        return False
    return status.rpartition(b")")[2].split()[:1] in ([b"Z"], [b"X"])


@cache
def _machine() -> str:
    """A digest of the machine on which ids of processes that write files are unique.

    Containers may share a host's name, and a folder.
    """
    space = ""
    with suppress(OSError):
        space = str(Path("/proc/self/ns/pid").readlink())
    return sha256(f"{socket.gethostname()} {space}".encode()).hexdigest()[:8]


_LEFTOVER = re.compile(r"\.llmeval-([0-9a-f]{8}-[0-9]+)-[0-9a-f]{8}\.tmp(?:-journal|-shm|-wal)?")
_LOCK_S: Final = 60.0
_STREAMS: Final = tuple(map(Path, ("/dev", "/dev/fd", "/proc/self/fd")))
_PRIVATE: Final[int] = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
"""Flags for opening files: not for programs that are started, through no link, and without other line ends."""

_NO_WAIT: Final[int] = getattr(os, "O_NONBLOCK", 0)
_BUSY_S: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Seconds to wait, time and again, for readers and virus scanners of Windows to close a file."""


class OutputFolder:
    """A folder that our files are written to.

    Attributes:
        path: Where it is.
    """

    WORKING: ClassVar[str] = ".llmeval"
    """The name of the folder below pytest's rootdir for what is not committed."""

    MEDIA: ClassVar[str] = f"{WORKING}/media"
    """Below pytest's rootdir: contents of media that have no file of their own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        """Make a folder whose content git ignores.

        Raises:
            OSError: It cannot be made, or is a symbolic link.
        """
        OutputFile(self.path / ".gitignore").refuse_links()
        self.path.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), (self.path / ".gitignore").open("x", encoding="utf-8") as stream:
            stream.write("*\n")

    def own_file(self, name: str, ending: str) -> "OutputFile":
        """The file of this process among those that several write side by side: ``NAME.PROCESS.ENDING``."""
        return OutputFile(self.path / f"{name}.{WritingProcess.current().name}.{ending}")

    def scratch_path(self) -> Path:
        """The path of a new scratch file, whose name says which process writes it."""
        return self.path / f".llmeval-{WritingProcess.current().name}-{os.urandom(4).hex()}.tmp"

    def remove_leftovers(self) -> None:
        """Remove the scratch files of killed processes, unless the folder is a link to elsewhere."""
        with suppress(OSError):
            OutputFile(self.path / "leftover").refuse_links()
            with os.scandir(self.path) as entries:
                for entry in entries:
                    match = _LEFTOVER.fullmatch(entry.name)
                    if match is not None:
                        with suppress(OSError):
                            if WritingProcess(match[1]).has_abandoned(entry.stat(follow_symlinks=False)):
                                Path(entry.path).unlink(missing_ok=True)

    def sync(self) -> None:
        """Flush the folder to disk, so that a file renamed in it is there after a power cut."""
        with suppress(OSError):  # some file systems cannot
            file = os.open(self.path, os.O_RDONLY | _PRIVATE)
            try:
                os.fsync(file)
            finally:
                os.close(file)


class OutputFile:
    """A file of ours that is written.

    Attributes:
        path: Where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = OutputFolder(path.parent)

    @property
    def writer(self) -> WritingProcess:
        """The process that writes the file, if it is an `OutputFolder.own_file`."""
        return WritingProcess(self.path.name.split(".")[1])

    def refuse_links(self) -> None:
        """Refuse a path through a folder of ours, or one inside it, that is a link in the repository to elsewhere.

        Raises:
            OSError: There is such a link.
        """
        folders = list(self.path.parents)
        own_names = (OwnFiles.FOLDER, OutputFolder.WORKING)
        ours = (index for index, folder in enumerate(folders) if folder.name in own_names)
        for folder in folders[: next(ours, -1) + 1]:
            if folder.is_symlink():
                raise OSError(errno.ELOOP, f"{folder.name} is a symbolic link, expected a folder", str(self.path))

    def write_text(self, parts: Iterable[str]) -> None:
        """Write the file so that it is old or new, never half: readers, kills and full disks see either.

        A symbolic link of that name is replaced, not followed. Half of a surrogate pair, which UTF-8 cannot hold, is
        escaped.

        Args:
            parts: Its text, in any number of pieces.

        Raises:
            OSError: It cannot be written, as without its folder; then it is as it was.
        """
        self._write(part.encode("utf-8", "backslashreplace") for part in parts)

    def save_text(self, parts: Iterable[str]) -> None:
        """Write a file that a user has named, as `write_text` does.

        Args:
            parts: Its text, in any number of pieces.

        Raises:
            SuiteError: It cannot be written.
        """
        try:
            self.write_text(parts)
        except OSError as error:
            message = f"cannot be written ({error.strerror}), expected a file in a folder that exists"
            raise SuiteError([Fault(str(self.path), 0, 0, "", message)]) from None

    def write_bytes(self, data: bytes) -> None:
        """Write the bytes of the file as `write_text` does: readers see the old file or the new one."""
        self._write([data])

    def _write(self, parts: Iterable[bytes]) -> None:
        """Write the file by way of a scratch file that takes its place, or directly into a pipe or a device."""
        self.refuse_links()
        if self._is_stream():
            _write_parts(_open_stream(self.path), parts)
            return
        self.folder.remove_leftovers()
        scratch = self.folder.scratch_path()
        file = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PRIVATE, 0o666)
        try:
            with suppress(OSError):
                before = self.path.lstat()
                if stat.S_ISREG(before.st_mode) and not WINDOWS:
                    os.fchmod(file, stat.S_IMODE(before.st_mode))
            _write_parts(file, parts)
            self.replace(scratch)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise

    def _is_stream(self) -> bool:
        """Whether the path names a pipe, a terminal or a stream of the process, which cannot be replaced."""
        if self.path.parent in _STREAMS:
            return True
        try:
            mode = self.path.lstat().st_mode
        except OSError:
            return False
        return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)

    def sync(self) -> None:
        """Flush the file to disk.

        Raises:
            OSError: It cannot be written.
        """
        file = os.open(self.path, os.O_RDWR | _PRIVATE)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def replace(self, scratch: Path) -> None:
        """Replace the file by a scratch file that is complete and synced.

        Raises:
            OSError: It cannot; then both are as they were.
        """
        for wait in (*(_BUSY_S if WINDOWS else ()), None):
            try:
                scratch.replace(self.path)
            except PermissionError:
                if wait is None:
                    raise
                time.sleep(wait)
            else:
                break
        self.folder.sync()

    def append_text(self, text: str) -> None:
        """Append text to the file in one write; concurrent appends do not interleave.

        It begins on a line of its own, also where a kill, a full disk or a power cut left the last line without its
        end.

        Raises:
            OSError: It cannot be written, or is a symbolic link.
        """
        self.refuse_links()
        if WINDOWS and self.path.is_symlink():
            raise OSError(errno.ELOOP, f"{self.path.name} is a symbolic link, expected a file", str(self.path))
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _PRIVATE, 0o666)
        try:
            data = text.encode("utf-8", "backslashreplace")
            if _is_cut_off(file) and not text.startswith(("\n", "\r\n")):
                data = b"\n" + data
            while data:
                data = data[os.write(file, data) :]
        finally:
            os.close(file)

    def rewrite(self, make: Callable[[], str]) -> bool:
        """Replace a file that processes share by new text made from it, under a lock; its folder is made.

        Args:
            make: Reads the file, if it is there, and returns its new text; no text represents no file. Called again
                under the lock where something changes.

        Returns:
            Whether the file had to change.

        Raises:
            OSError: It cannot be written; then it is as it was.
        """
        if self.has_text(make()):
            return False
        self.refuse_links()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.locked():
            text = make()
            if self.has_text(text):
                return False
            if text:
                self.write_text([text])
            else:
                self.path.unlink(missing_ok=True)
        return True

    def has_text(self, text: str) -> bool:
        """Whether the file has a text already, with any line ends, and need not be written."""
        if not self.path.is_file():
            return not text and not self.path.is_symlink()
        return self.path.read_bytes().replace(b"\r\n", b"\n") == text.encode("utf-8", "backslashreplace")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the file, or what belongs to it, against changes by other processes.

        Raises:
            OSError: Its folder cannot be written, or another process has held the lock for a minute.
        """
        from filelock import FileLock, Timeout

        self.refuse_links()
        digest = sha256(self.path.name.encode(errors="surrogateescape")).hexdigest()[:16]
        name = self.path.with_name(f".llmeval-{digest}.lock")
        if name.is_symlink():  # which a lock would be written through
            name.unlink()
        lock = FileLock(name, timeout=_LOCK_S)
        try:
            lock.acquire()
        except Timeout:
            reason = f"another process has held it for {_LOCK_S:g} s"
            raise OSError(errno.EBUSY, reason, str(self.path)) from None
        try:
            yield
        finally:
            if not WINDOWS:  # which removes no open file, so the release does
                name.unlink(missing_ok=True)  # before it: a process that waits for the lock sees that its file is gone
            lock.release()


def _is_cut_off(file: int) -> bool:
    """Whether an open file that text is appended to lacks the end of its last line."""
    status = os.fstat(file)
    if not (stat.S_ISREG(status.st_mode) and status.st_size):
        return False
    os.lseek(file, -1, os.SEEK_END)
    return os.read(file, 1) != b"\n"


def _write_parts(file: int, parts: Iterable[bytes]) -> None:
    """Write the parts of a text to an open file, flush it to disk, and close it."""
    with os.fdopen(file, "wb") as stream:
        stream.writelines(parts)
        stream.flush()
        if stat.S_ISREG(os.fstat(file).st_mode):
            os.fsync(file)


def _open_stream(path: Path) -> int:
    """Open a pipe or a device for a report without waiting for its reader."""
    try:
        file = os.open(path, os.O_WRONLY | _NO_WAIT)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "it is a pipe that nobody reads", str(path)) from None
        raise
    if _NO_WAIT:
        os.set_blocking(file, True)
    return file


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Spreadsheets run a cell that begins with one of these."""


class _Echo:
    """A file that returns each formatted CSV row, so that a table can be written without being kept."""

    def write(self, text: str) -> str:
        return text


def csv_lines(rows: Iterable[Iterable[str | float | None]]) -> Iterator[str]:
    r"""Yield the rows of a table as text, one at a time, in which no spreadsheet finds a formula.

    A text that begins as a formula does gets a leading apostrophe; numbers stay numbers, and ``None`` is an empty cell.

    >>> list(csv_lines([["case", "f1"], ["=1+1", -0.5], ["b", None]]))
    ['case,f1\n', "'=1+1,-0.5\n", 'b,\n']
    """
    import csv

    # Cells are quoted for the characters of the terminator, so it has both of those that readers end a row at.
    writer = csv.writer(_Echo(), lineterminator="\r\n")
    for row in rows:
        line = writer.writerow([_inert(cell) if isinstance(cell, str) else cell for cell in row])
        yield line.removesuffix("\r\n") + "\n"


def _inert(text: str) -> str:
    """A text for a cell of a CSV file that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text

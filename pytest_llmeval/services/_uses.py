"""The record of what code uses while it runs."""

import builtins
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeAlias

Use: TypeAlias = tuple[str, str]
"""Who used something, and what: a kind and a name, such as ``file docs/fr.txt``.

Who is the name that `USER` has, ``file app.py`` for the code of a file, or empty: anyone.
"""

USER: ContextVar[str] = ContextVar("USER", default="")
"""For whom code runs."""

OURS: ContextVar[bool] = ContextVar("OURS", default=False)
"""Whether a call is one that this package makes and knows, such as that of a judge."""

WATCHED: Final[Use] = ("", "watched")
"""The use that a record begins with."""

LOST: Final[Use] = ("", "lost")
"""The use that says that the record of a process is lost, with the process."""

_RUNNERS: Final = frozenset({"_pytest", "pytest", "pluggy", "xdist", "execnet", "syrupy"})
_OWN: Final = frozenset({".git", ".llmeval", "__llmeval__", "__pycache__", ".pytest_cache"})
_PROGRAMS: Final = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn"})
_FORKS: Final = frozenset({"os.fork", "os.forkpty"})
_SPAWNS: Final = ("multiprocessing.popen_spawn_posix", "multiprocessing.popen_forkserver")
_WRITES: Final = os.O_WRONLY | os.O_TRUNC | os.O_EXCL
_RUNNER, _PACKAGE, _LIBRARY, _PYTHON = (object() for _ in range(4))


class UseRecord:
    """What this process uses, by who does.

    Attributes:
        top: The folder of the project; of files elsewhere nothing is recorded.
        environment: The variables that the process started with.
        uses: What was used.
        aside: Files of modules that tests are collected from, which nobody uses for that alone.
        foreign: Modules that are not the project's, of those that were imported again.
    """

    def __init__(self, top: Path) -> None:
        self.top = top.resolve()
        self.environment: Mapping[str, str] = dict(os.environ)
        self.uses: set[Use] = {WATCHED}
        self.aside: set[Path] = set()
        self._prefix = f"{self.top}{os.sep}"
        self._package, self._python = f"{Path(__file__).parent.parent}{os.sep}", f"{Path(os.__file__).parent}{os.sep}"
        installed = [f"{each}{os.sep}" for each in (sys.prefix, sys.base_prefix)]
        installed += [self._package] * (not self._package.startswith(self._prefix))
        self._installed = tuple(each for each in installed if not self._prefix.startswith(each))
        self._names: dict[str, str | None] = {}
        self._code: dict[str, Any] = {__file__: _PYTHON}
        self._read: set[str] = set()
        self._written: set[str] = set()
        self.foreign: set[str] = set()
        early = (f"unknown {name} was imported before the run could watch it" for name in self._own_modules())
        self.uses |= {("", text) for text in early}

    def close(self) -> set[Use]:
        """Add the modules that are loaded now, and return everything that was used."""
        aside = {self.name(str(path)) for path in self.aside}
        loaded = {("loaded", f"file {name}") for name in self._own_modules() if name not in aside}
        spawns = {("", "unknown multiprocessing starts programs") for name in _SPAWNS if name in sys.modules}
        return self.uses | loaded | spawns

    def _own_modules(self) -> Iterable[str]:
        files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        own = (
            each
            for each in files
            if isinstance(each, str) and (os.pardir in each or not each.startswith(self._installed))
        )
        return sorted(filter(None, map(self.name, own)))  # of a thousand modules, few are the project's

    def name(self, path: Any) -> str | None:
        """Return the name of a file of the project; ``None`` for others, and for what is no input."""
        text = os.fsdecode(path)
        if not text.startswith(os.sep):
            text = os.path.join(os.getcwd(), text)  # noqa: PTH109, PTH118 (many calls, for which paths are slow)
        if text not in self._names:
            self._names[text] = self._name(os.path.normpath(text))
        return self._names[text]

    def _name(self, path: str) -> str | None:
        if path.startswith(self._installed):
            return None
        if not f"{path}{os.sep}".startswith(self._prefix):
            path = os.path.realpath(path)
            if not f"{path}{os.sep}".startswith(self._prefix):
                return None
        folder, compiled, file = path.rpartition(f"{os.sep}__pycache__{os.sep}")
        if compiled and file.endswith(".pyc"):
            path = f"{folder}{os.sep}{file.partition('.')[0]}.py"
        parts = Path(path[len(self._prefix) :]).parts
        return None if "site-packages" in parts or _OWN & {*parts} else "/".join(parts) or "."

    def _origin(self, file: str) -> Any:
        """Return whose code a file has: the name of one of the project, or what else it is."""
        if file not in self._code:
            parts = Path(file).parts
            origin: Any = _LIBRARY
            if file.startswith(self._package):
                origin = _PACKAGE
            elif _RUNNERS & {*parts}:
                origin = _RUNNER
            elif file.startswith("<frozen") or (file.startswith(self._python) and "site-packages" not in parts):
                origin = _PYTHON
            elif (name := self.name(file)) is not None:
                origin = name
            self._code[file] = origin
        return self._code[file]

    def note(self, what: str, frame: FrameType | None, *, near: bool = False) -> None:
        """Record a use by the code of some frames.

        Args:
            what: A kind and a name.
            frame: The innermost frame.
            near: Whether it counts only where the project's own code asks for it, not a library.
        """
        if OURS.get():
            return
        origins: list[Any] = []
        while frame is not None and (origin := self._origin(frame.f_code.co_filename)) is not _RUNNER:
            if origin is not _PYTHON:
                if near and not isinstance(origin, str):
                    return  # without a look at the many callers of each import
                origins.append(origin)
                near = False
            frame = frame.f_back
        files = {origin for origin in origins if isinstance(origin, str)}
        if near:
            return
        if not files and (frame is not None or _PACKAGE in origins):
            return  # pytest, or this package for its own ends
        self.uses |= {(f"file {file}", what) for file in files}
        if USER.get() or not files:
            self.uses.add((USER.get(), what))

    def take(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Record what an audit event tells."""
        frame = sys._getframe(2)  # noqa: SLF001 (the documented way to the caller)
        if event in _FORKS:  # what the copy of this process uses is not seen here
            self.uses.add((USER.get(), f"unknown the process is copied ({event})"))
        elif event in _PROGRAMS:
            self.note(f"unknown another program is started ({event})", frame)
        elif event in ("socket.connect", "socket.sendto"):
            self.note(f"unknown a connection to {_host(arguments[1])}", frame)
        elif event == "import":
            if isinstance(arguments[1], str):
                self._touch(arguments[1], frame)
            self.note(f"module {arguments[0]}", frame, near=True)
        elif arguments and isinstance(path := arguments[0], str | bytes | os.PathLike):
            self._open(event, path, arguments, frame)
        elif event in ("os.listdir", "os.scandir"):
            if arguments[0] is None:
                self._list(event, ".", frame)
            else:
                self.note("unknown a folder is listed by its descriptor", frame)

    def _open(self, event: str, path: Any, arguments: tuple[Any, ...], frame: FrameType) -> None:
        if event in ("os.listdir", "os.scandir"):
            self._list(event, path, frame)
        elif event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES:
            if (name := self.name(path)) is not None and name not in self._read:
                self._written.add(name)
        elif event == "sqlite3.connect" and os.fsdecode(path).startswith("file:"):
            self._touch(os.fsdecode(path).removeprefix("file:").partition("?")[0], frame)
        else:
            self._touch(path, frame)

    def _touch(self, path: Any, frame: FrameType) -> None:
        if (name := self.name(path)) is not None and name not in self._written:
            self._read.add(name)
            self.note(f"file {name}", frame)

    def _list(self, event: str, path: Any, frame: FrameType) -> None:
        # Python's import system lists the folders that it looks for modules in.
        if (name := self.name(path)) is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
            # Entries tell sizes, too; what Python itself makes of them, such as a pattern's files, are names.
            is_scanned = event == "os.scandir" and self._origin(frame.f_code.co_filename) is not _PYTHON
            self.note(f"{'entries' if is_scanned else 'folder'} {name}", frame)

    def take_module(self, name: str) -> None:
        """Record that a module was imported which may have been loaded before."""
        file = getattr(sys.modules[name], "__file__", None)
        if isinstance(file, str) and self.name(file) is not None:
            self.note(f"module {name}", sys._getframe(2))  # noqa: SLF001
        else:
            self.foreign.add(name)


def is_own(name: str) -> bool:
    """Return whether a file or folder of this name belongs to Python, pytest, git or this package."""
    return name in _OWN


def _host(address: Any) -> str:
    return str(address[0]) if isinstance(address, tuple) and address else "another program"


_EVENTS: Final = (
    _PROGRAMS
    | _FORKS
    | {
        *("open", "import", "os.listdir", "os.scandir", "sqlite3.connect", "ctypes.dlopen"),
        *("socket.connect", "socket.sendto"),
    }
)


class _Watch:
    """The hook of this process, which Python cannot remove: it does nothing without a record.

    Attributes:
        record: The record.
        busy: Whether an event comes from the record itself.
    """

    def __init__(self) -> None:
        self.record: UseRecord | None = None
        self.busy: ContextVar[bool] = ContextVar("busy", default=False)
        self._is_hooked = False
        self._undo: list[tuple[Any, str, Any]] = []

    def begin(self, record: UseRecord) -> None:
        self.end()
        self.record = record
        if not self._is_hooked:
            self._is_hooked = True
            sys.addaudithook(_hook)
        for name in ("stat", "lstat", "access"):  # which no event tells of
            self._replace(os, name, self._looking(getattr(os, name)))
        self._replace(builtins, "__import__", self._importing(builtins.__import__))
        self._replace(importlib, "import_module", self._importing(importlib.import_module))
        self._replace(os.environ, "__class__", _Environment)

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        self._undo.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def end(self) -> None:
        self.record = None
        while self._undo:
            setattr(*self._undo.pop())

    def _looking(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def looking(path: Any, *arguments: Any, **options: Any) -> Any:
            if self.record is not None and not isinstance(path, int):
                _hook("open", (path, None, 0))
            return call(path, *arguments, **options)

        return looking

    def _importing(self, load: Callable[..., Any]) -> Callable[..., Any]:
        def importing(name: str, *arguments: Any, **options: Any) -> Any:
            record = self.record
            if record is not None and name not in record.foreign and name in sys.modules and not self.busy.get():
                record.take_module(name)
            return load(name, *arguments, **options)

        return importing

    def read_variable(self, name: str) -> None:
        if self.record is not None and not self.busy.get() and not name.startswith("PYTEST_"):
            self.record.note(f"variable {name}", sys._getframe(2), near=True)  # noqa: SLF001


_WATCH: Final = _Watch()


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    """Record an audit event; no method, of which Python would look up an attribute in vain at every event."""
    if event not in _EVENTS or (record := _WATCH.record) is None or _WATCH.busy.get():
        return
    token = _WATCH.busy.set(True)
    try:
        record.take(event, arguments)
    finally:
        _WATCH.busy.reset(token)


class _Environment(os._Environ):  # type: ignore[type-arg]  # noqa: SLF001 (the class of os.environ, which has no public name)
    """The variables of this process, with a record of those that are read."""

    def __getitem__(self, key: Any) -> Any:
        _WATCH.read_variable(os.fsdecode(key))
        return super().__getitem__(key)

    def __iter__(self) -> Any:
        _WATCH.read_variable("*")
        return super().__iter__()


@contextmanager
def our_call() -> Iterator[None]:
    """Call a service for this package: the suite that asks for it says what it depends on."""
    token = OURS.set(True)
    try:
        yield
    finally:
        OURS.reset(token)


def watch(top: Path) -> UseRecord:
    """Begin to record what this process uses."""
    record = UseRecord(top)
    _WATCH.begin(record)
    return record


def stop_watching() -> None:
    """Record nothing more."""
    _WATCH.end()


def watched() -> UseRecord | None:
    """Return the record of this process, if there is one."""
    return _WATCH.record

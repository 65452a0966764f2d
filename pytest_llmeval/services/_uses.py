"""The record of what code uses while it runs."""

import builtins
import importlib.util
import locale
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from functools import partial
from importlib import machinery
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, ClassVar, Final, TypeAlias
from urllib.parse import unquote

Use: TypeAlias = tuple[str, str]
"""Who used something, and what: a kind and a name, such as ``file docs/fr.txt``.

Who is ``suite NAME``, ``file app.py`` for the code of a file, ``module json`` for what it keeps, or empty: anyone.
"""

OURS: ContextVar[bool] = ContextVar("OURS", default=False)
"""Whether a call is one that this package makes and knows, such as that of a judge."""

_RUNNERS: Final = frozenset({"_pytest", "pytest", "pluggy", "xdist", "execnet", "syrupy"})
_OWN: Final = frozenset({".git", ".llmeval", "__llmeval__", "__pycache__", ".pytest_cache"})
_PROGRAMS: Final = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn"})
_FORKS: Final = frozenset({"os.fork", "os.forkpty", "cpython.PyInterpreterState_New"})
"""Events after which code runs where this process does not see it."""

_SPAWNS: Final = ("multiprocessing.popen_spawn_posix", "multiprocessing.popen_forkserver")
_BEGINS: Final = os.O_TRUNC | os.O_EXCL
"""The flags with which a file that is opened has nothing in it."""

_LISTS: Final = frozenset({"os.listdir", "os.scandir"})
_SENDS: Final = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_MEETS: Final = frozenset({"socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})
_READERS_OF_VARIABLES: Final = frozenset({"pydantic_settings", "environs", "decouple", "dotenv", "dynaconf"})
"""Libraries that read variables for the code that calls them."""
_KEEPERS: Final = frozenset({"linecache.py", "gettext.py", "decouple.py"})
"""Modules elsewhere that keep what they have read: who uses them may get what they read for others."""
_LOCALE: Final = (*(name for name in vars(locale) if name.startswith("LC_")), "LANG", "LANGUAGE")
_ATTACH: Final = 24
"""The action of SQLite that attaches a database."""

_UNPATCHED: Final[list[object]] = []
_VARIABLES: Final = copy(os.environ)  # noqa: PLW1507 (it is to have the same variables)
"""The environment variables, read and set without a look at who does so."""

_OF_TESTS: Final = "PYTEST_CURRENT_TEST"
"""The variable that pytest sets and deletes several times for each test."""

_STEADY: Final = frozenset({"runxfail", "setuponly", "setupplan", "setupshow", "usepdb"})
"""Options that pytest reads for each test, so that all suites use them: a look at who reads them would take longer."""

_READLINK: Final = os.readlink
_RUNNER, _PACKAGE, _LIBRARY, _PYTHON, _KEEPER = (object() for _ in range(5))
_CONFIG: Final = "_pytest.config"
"""The module whose functions read options for those who call them."""
_JUDGING: Final = ("_pytest.", f"{__name__.partition('.')[0]}.")
_HISTORY: Final = ".git/"
"""What git has of a project, as one use."""


class UseRecord:
    """The files, variables, options and hosts that this process uses, by the suite or file that uses them.

    Attributes:
        top: The folder of the project; of files elsewhere nothing is recorded.
        environment: The variables that the process started with.
        options: The options of pytest, if it runs.
        uses: What was used.
        early: Those of `uses` from before the record.
        aside: Files of modules that tests are collected from, which nobody uses for that alone.
        foreign: Modules that are not the project's, of those that were imported again, each with the file that did so.
    """

    USER: ClassVar[ContextVar[str]] = ContextVar("USER", default="")
    """For whom code runs: a suite, as it is named as a user, or nobody in particular."""

    WATCHED: ClassVar[Use] = ("", "watched")
    """The use that a record begins with."""

    LOST: ClassVar[Use] = ("", "lost")
    """The use that says that the record of a process is lost, with the process."""

    @classmethod
    def begin(cls, top: Path, options: Namespace | None = None) -> "UseRecord":
        """Begin to record the files, variables and options that code in this process uses.

        Args:
            top: The folder of the project.
            options: Those of pytest, if it runs.
        """
        record = cls(top)
        _WATCH.begin(record, options)
        return record

    @staticmethod
    def current() -> "UseRecord | None":
        """The record of the files and variables that code in this process uses, if there is one."""
        return _WATCH.record

    @staticmethod
    def ignores(name: str) -> bool:
        """Whether a file or folder of this name belongs to Python, pytest, git or this package."""
        return name in _OWN

    def __init__(self, top: Path) -> None:
        self.top = top.resolve()
        self.environment: Mapping[str, str] = dict(os.environ)
        self.options = Namespace()
        self.uses: set[Use] = {self.WATCHED}
        self.aside: set[Path] = set()
        self._prefix = f"{self.top}{os.sep}"
        self._package, self._python = f"{Path(__file__).parent.parent}{os.sep}", f"{Path(os.__file__).parent}{os.sep}"
        installed = [f"{folder}{os.sep}" for folder in (sys.prefix, sys.base_prefix)]
        installed += [self._package] * (not self._package.startswith(self._prefix))
        self._installed = tuple(folder for folder in installed if not self._prefix.startswith(folder))
        self._names: dict[str, str | None] = {}
        self._code: dict[str, Any] = {__file__: _PYTHON}
        self._read: set[str] = set()
        self._written: dict[str, set[str]] = {}
        self._set: dict[str, set[str]] = {}
        self.foreign: set[tuple[str, object]] = set()
        self._paths = set(sys.path)  # how Python was started differs between a process and its workers
        self._running: set[str] = set()
        self._ahead: set[str] = set()
        self._states: dict[str, object] = {}
        early = (f"unknown {name} was imported before the run could watch it" for name, _ in self._own_modules())
        self.early = frozenset({("", text) for text in early})
        self.uses |= self.early

    def stop(self) -> None:
        """Record no further use."""
        if _WATCH.record is self:
            _WATCH.end()

    def close(self) -> set[Use]:
        """Add the modules that are loaded now, and return everything that was used."""
        if self._running:  # the last suite of a process: which one that is differs with the number of workers
            self._note_changes()
        aside = {self.name(str(path)) for path in self.aside}
        loaded = {("loaded", f"file {name}") for name, _ in self._own_modules() if name not in aside}
        spawns = {("", "unknown multiprocessing starts programs") for name in _SPAWNS if name in sys.modules}
        return self.uses | loaded | spawns

    def _own_modules(self) -> list[tuple[str, ModuleType]]:
        """The modules of the project that are loaded, each with the name of its file."""
        files = [(getattr(module, "__file__", None), module) for module in list(sys.modules.values())]
        # Of a thousand modules, few are the project's; `name` would look at each at length.
        own = [
            (self.name(file), module)
            for file, module in files
            if isinstance(file, str) and (os.pardir in file or not file.startswith(self._installed))
        ]
        return sorted([(name, module) for name, module in own if name is not None], key=lambda named: named[0])

    def enter(self, runner: str) -> None:
        """Note whose code runs from now on, so that its uses are recorded as its own.

        Args:
            runner: ``suite NAME``, or ``file NAME`` of a test that is no case.
        """
        if runner in self._running - self._ahead:
            return
        self._note_changes()
        self._ahead.discard(runner)
        self._running = {runner, *self._ahead}

    def _note_changes(self) -> None:
        """Record the modules whose state differs since the last call: their users may see what others left there."""
        before = self._states
        self._states = self._module_states()
        changed = {user for user, state in self._states.items() if before.get(user, _UNPATCHED) != state}
        unknown = {user for user in changed if user not in before}  # conftests and test modules, which pytest loads
        setters, changed = (self._running, changed) if self._running else (unknown, changed - unknown)
        self.uses |= {(user, setter) for user in changed for setter in setters}

    def begin_ahead(self, runner: str) -> None:
        """Note that code of a suite runs beside that of others."""
        if runner not in self._running:
            self._running.add(runner)
            self._ahead.add(runner)

    def begin_module(self, module: ModuleType) -> None:
        """Note the state of a module that has just been loaded."""
        from pytest_llmeval.services._module_states import state_of  # where cases are watched, and in no other run

        if self._is_own(module.__name__):
            self._states[f"file {self.name(module.__file__)}"] = state_of(module, self._is_own)

    def _module_states(self) -> dict[str, object]:
        """The state of each module by its name as a user: of the project's, and of those that these import."""
        from pytest_llmeval.services._module_states import patches_of, state_of  # as above

        states = {f"file {name}": state_of(module, self._is_own) for name, module in self._own_modules()}
        for user in {use for _, use in self.uses.copy() if use.startswith("module ")}:  # which threads may add to
            name = user.removeprefix("module ")
            if name in sys.modules and not self._is_own(name):
                states[user] = patches_of(sys.modules[name], self._is_own)
        return states

    def _is_own(self, module: str) -> bool:
        """Whether a module is the project's."""
        file = getattr(sys.modules.get(module), "__file__", None)
        return isinstance(file, str) and self.name(file) is not None

    def name(self, path: Any) -> str | None:
        """The name of a file in the record: its path in the project; ``None`` if outside it, or no input of a run."""
        text = os.fsdecode(path)
        if not text.startswith(os.sep):
            text = os.path.join(os.getcwd(), text)  # noqa: PTH109, PTH118 (many calls, for which paths are slow)
        if text not in self._names:
            self._names[text] = self._name(os.path.normpath(text))
        return self._names[text]

    def _name(self, path: str) -> str | None:
        """The name of a file of the project by its path; ``None`` for others."""
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
        if ".git" in parts[:-1]:
            return _HISTORY
        return None if "site-packages" in parts or _OWN & {*parts} else "/".join(parts) or "."

    def _origin(self, file: str) -> Any:
        """Whose code a file has: the name of one of the project, or what else it is."""
        if file not in self._code:
            parts = Path(file).parts
            origin: Any = _LIBRARY
            if file.startswith(self._package):
                origin = _PACKAGE
            elif _RUNNERS & {*parts}:
                origin = _RUNNER
            elif parts[-1] in _KEEPERS and not file.startswith(self._prefix):
                origin = _KEEPER
            elif file.startswith("<frozen") or _READERS_OF_VARIABLES & {*parts} or self._is_python(file):
                origin = _PYTHON
            elif (name := self.name(file)) is not None:
                origin = name
            self._code[file] = origin
        return self._code[file]

    def _is_python(self, file: str) -> bool:
        """Whether a file belongs to Python's own library."""
        return file.startswith(self._python) and "site-packages" not in file

    def note(self, what: str, frame: FrameType | None, *, near: bool = False) -> None:
        """Record a use by the code of some frames.

        Args:
            what: A kind and a name.
            frame: The innermost frame.
            near: Whether it counts only where the project's own code asks for it, not a library.
        """
        self.uses |= {(user, what) for user in self._users(frame, near=near)}

    def _users(self, frame: FrameType | None, *, near: bool = False) -> set[str]:
        """The suites whose code, among some frames, uses a thing; none if it is for our own ends."""
        if OURS.get():
            return set()
        origins: list[Any] = []
        keepers = set[str]()
        while frame is not None and (origin := self._origin(frame.f_code.co_filename)) is not _RUNNER:
            if origin is _KEEPER:
                keepers.add(f"module {Path(frame.f_code.co_filename).stem}")
            elif origin is not _PYTHON:
                if near and not isinstance(origin, str):
                    return set()  # without a look at the many callers of each import
                origins.append(origin)
                near = False
            frame = frame.f_back
        users = {f"file {origin}" for origin in origins if isinstance(origin, str)}
        if near or (not users and (frame is not None or _PACKAGE in origins)):
            return set()  # pytest, or this package for its own ends
        if self.USER.get() or not users:
            users.add(self.USER.get())
        return users | keepers

    def _note_made(self, writers: set[str], frame: FrameType | None, *, near: bool = False) -> None:
        """Record that something is used which the run has made: it depends on what those who did so use."""
        code = {writer for writer in writers if writer.startswith("file ") and writer.endswith(".py")}
        for reader in self._users(frame, near=near):
            if writers and not code and reader not in writers:
                self.uses.add((reader, "unknown what another suite has made is used"))
            self.uses |= {(reader, writer) for writer in (writers if reader not in writers else code) - {reader}}

    def take(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Record the use that an audit event of Python tells."""
        frame = sys._getframe(2)  # noqa: SLF001 (the documented way to the caller)
        if event in _FORKS:
            self.uses.add((self.USER.get(), f"unknown code runs where it is not seen ({event})"))
        elif event in _PROGRAMS:
            self.note(f"unknown another program is started ({event})", frame)
        elif event in _SENDS:
            self.note(f"unknown a connection to {_host(arguments[1])}", frame)
        elif event in _MEETS:
            self.note(f"unknown a host is looked up, or answered ({event})", frame, near=True)
        elif event == "import":
            if isinstance(arguments[1], str):
                self._touch(arguments[1], frame)
                self._note_compiled(arguments[0], frame)
            elif not self._paths.issuperset(arguments[2] or ()):
                self._note_paths(arguments[2])
            self.note(f"module {arguments[0]}", frame, near=True)
        elif isinstance(path := _path(arguments[0]), str | bytes | os.PathLike):
            self._open(event, path, arguments, frame)
        elif event in _LISTS:
            self.note("unknown a folder is named by its descriptor", frame)

    def permit(self, action: int, file: str | None, *_: object) -> int:
        """Record that a statement attaches a database, and permit all that a statement does."""
        if action == _ATTACH:
            frame = sys._getframe(1)  # noqa: SLF001
            if file is None:
                self.note("unknown a database is attached", frame)
            else:
                self._touch_database(file, frame)
        return 0

    def _touch_database(self, uri: str, frame: FrameType) -> None:
        """Record that an SQLite database is read, with the files beside it."""
        for ending in ("", "-wal", "-journal"):  # SQLite reads the two that are beside a database if they are there
            self._touch(f"{_file_of_database(uri)}{ending}", frame)

    def _note_paths(self, entries: Iterable[str]) -> None:
        """Record the folders of the project in which Python looks for modules."""
        self._paths.update(entries)
        self.uses |= {("", f"path {name}") for name in map(self.name, entries) if name is not None}

    def _open(self, event: str, path: Any, arguments: tuple[Any, ...], frame: FrameType) -> None:
        """Record an audit event that opens, makes, lists or moves a file."""
        flags = arguments[2] if event == "open" and isinstance(arguments[2], int) else 0
        if event in _LISTS:
            self._list(event, path, frame)
        elif event == "os.symlink":
            folder = os.path.dirname(os.fsdecode(arguments[1]))  # noqa: PTH120 (as above)
            self._touch(os.path.join(folder, os.fsdecode(path)), frame)  # noqa: PTH118 (as above)
        elif flags & _BEGINS:
            self._write(path, frame)
        elif event == "sqlite3.connect":
            self._touch_database(os.fsdecode(path), frame)
        elif not flags & os.O_WRONLY:  # what is only appended to has not been read yet
            self._touch(path, frame)
        if event == "os.rename":
            self._write(arguments[1], frame)

    def _write(self, path: Any, frame: FrameType) -> None:
        """Record that a file of the project is written."""
        if (name := self.name(path)) is not None and name != _HISTORY and name not in self._read:
            self._written.setdefault(name, set()).update(self._users(frame))

    def _touch(self, path: Any, frame: FrameType) -> None:
        """Record that a file of the project is read."""
        name = self.name(path)
        if name == _HISTORY:
            self.note("unknown what git has of the project is read", frame)
        elif name is not None and name in self._written:
            self._note_made(self._written[name], frame)
        elif name is not None and (users := self._users(frame)):
            self._read.add(name)
            self.uses |= {(user, f"file {name}") for user in users}

    def _list(self, event: str, path: Any, frame: FrameType) -> None:
        """Record that a folder of the project is listed."""
        # Python's import system lists the folders that it looks for modules in.
        if (name := self.name(path)) == _HISTORY:
            self._touch(path, frame)
        elif name is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
            # Entries tell sizes, too; what Python itself makes of them, such as a pattern's files, are names.
            is_scanned = event == "os.scandir" and self._origin(frame.f_code.co_filename) is not _PYTHON
            self.note(f"{'entries' if is_scanned else 'folder'} {name}", frame)

    def _note_compiled(self, module: str, frame: FrameType | None) -> None:
        """Record that a library loads compiled code when a project calls it; all that use the library may do so."""
        library, inner, package = "", "", module.partition(".")[0]
        while frame is not None and (origin := self._origin(frame.f_code.co_filename)) is not _RUNNER:
            if isinstance(origin, str):
                is_import = inner == __file__ or inner.startswith("<frozen importlib")  # which names the library
                if library and not is_import and package not in sys.stdlib_module_names:
                    self.uses.add(("", f"compiled {library.partition('.')[0]} {package}"))
                return
            if origin is _LIBRARY:
                library = str(frame.f_globals.get("__name__", ""))
            inner, frame = frame.f_code.co_filename, frame.f_back

    def take_module(self, name: str, frame: FrameType) -> None:
        """Record the import of a module that may have been loaded before."""
        module = sys.modules[name]
        file, spec = getattr(module, "__file__", None), getattr(module, "__spec__", None)
        own = self.name(file) if isinstance(file, str) else None
        if own is None:
            self.foreign.add((name, frame.f_globals.get("__file__")))
        else:
            self.note(f"file {own}", frame)  # such as an archive
        if spec is None or (own is not None and getattr(spec, "name", name) != name):
            self.note(f"unknown module {name} is imported, which other code has named", frame, near=own is None)
        self.note(f"module {name}", frame, near=own is None)

    def take_variable(self, name: str, frame: FrameType) -> None:
        """Record that an environment variable was read."""
        self.note(f"variable {name}", frame, near=True)
        for variable in self._set if name == "*" else (name,):
            if variable in self._set:
                self._note_made(self._set[variable], frame, near=True)

    def set_variable(self, name: str, frame: FrameType) -> None:
        """Note who has set an environment variable, for those who read it."""
        self._set.setdefault(name, set()).update(self._users(frame))


def _path(named: Any) -> Any:
    """The path of a file in an audit event, also an empty one, which is this folder, or that of a known descriptor."""
    if named is None:
        return "."
    return _path_of_descriptor(named) if isinstance(named, int) else named


def _path_of_descriptor(descriptor: int) -> str | None:
    """The path of a file that a suite's code opens by descriptor; ``None`` for a pipe and the like."""
    try:
        path = _READLINK(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None
    return path if path.startswith(os.sep) else None  # such as a pipe


def _host(address: Any) -> str:
    """The host that a suite's code connects to, from a socket's address, for the record of uses."""
    return str(address[0]) if isinstance(address, tuple) and address else "another program"


def _file_of_database(uri: str) -> str:
    """The file of an SQLite database that a suite's code opens, also by URI."""
    if not uri.startswith("file:"):
        return uri
    path = uri.removeprefix("file:").partition("?")[0].partition("#")[0]
    return unquote(f"/{path[2:].partition('/')[2]}" if path.startswith("//") else path)


_EVENTS: Final = (
    _PROGRAMS
    | _FORKS
    | _SENDS
    | _MEETS
    | {
        *("open", "import", "os.listdir", "os.scandir", "os.rename", "os.link", "os.symlink", "sqlite3.connect"),
        "ctypes.dlopen",
    }
)


class _Watch:
    """The audit hook of this process, which Python cannot remove: it does nothing without a record.

    Attributes:
        record: The record.
        busy: Whether an event comes from the record itself.
    """

    def __init__(self) -> None:
        self.record: UseRecord | None = None
        self.busy: ContextVar[bool] = ContextVar("busy", default=False)
        self._is_hooked = False
        self._undo: list[tuple[Any, str, Any]] = []

    def begin(self, record: UseRecord, options: Namespace | None) -> None:
        """Begin to record uses: replace the functions of which no audit event tells."""
        self.end()
        if options is not None:
            record.options = options
            record.uses |= {("", f"option {name}") for name in _STEADY}
            self._replace(options, "__class__", _Options)
            for name, value in vars(options).copy().items():
                setattr(options, name, value)
        self.record = record
        if not self._is_hooked:
            self._is_hooked = True
            sys.addaudithook(_hook)
        for name in ("stat", "lstat", "access", "readlink"):  # which no event tells of
            self._replace(os, name, self._watch_stat(getattr(os, name)))
        self._replace(os, "open", self._watch_open(os.open))
        self._replace(builtins, "__import__", self._watch_import(builtins.__import__))
        self._replace(importlib, "import_module", self._watch_import_module(importlib.import_module))
        self._replace(
            machinery.SourceFileLoader, "exec_module", self._watch_loader(machinery.SourceFileLoader.exec_module)
        )
        self._replace(importlib.util, "find_spec", self._watch_import_module(importlib.util.find_spec))
        import sqlite3  # where cases are watched, and in no other run

        for module in (sqlite3, sqlite3.dbapi2):
            self._replace(module, "connect", self._watch_sqlite(module.connect))
        self._replace(locale, "setlocale", self._watch_locale(locale.setlocale))
        self._replace(os.environ, "__class__", _Environment)
        if hasattr(os, "environb"):
            self._replace(os.environb, "__class__", _Environment)

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute for the time of a record."""
        self._undo.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def end(self) -> None:
        """End the record of uses, and restore what was replaced."""
        self.record = None
        while self._undo:
            setattr(*self._undo.pop())

    def _watch_stat(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A function such as `os.stat` that records the path which it is called for."""

        def looking(path: Any, *arguments: Any, **options: Any) -> Any:
            if self.record is not None and not isinstance(path, int):
                self._note_path(path, options)
            return call(path, *arguments, **options)

        return looking

    def _watch_open(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`os.open` that records the folder to which a path is relative."""

        def opening(path: Any, *arguments: Any, **options: Any) -> Any:
            if options.get("dir_fd") is not None:  # of which the event says nothing
                self._note_path(path, options)
            return call(path, *arguments, **options)

        return opening

    def _note_path(self, path: Any, options: Mapping[str, Any]) -> None:
        """Record the use of a path, which may be relative to an open folder."""
        if (descriptor := options.get("dir_fd")) is not None:
            if (folder := _path_of_descriptor(descriptor)) is None:
                _hook("os.scandir", (descriptor,))  # which is unknown, too
                return
            path = os.path.join(folder, os.fsdecode(path))  # noqa: PTH118 (many calls, for which paths are slow)
        _hook("open", (path, None, 0))

    def _watch_sqlite(self, connect: Callable[..., Any]) -> Callable[..., Any]:
        """`sqlite3.connect` whose connections record the databases that they attach."""

        def connecting(*arguments: Any, **options: Any) -> Any:
            connection = connect(*arguments, **options)
            if self.record is not None:
                connection.set_authorizer(self.record.permit)
            return connection

        return connecting

    def _watch_loader(self, load: Callable[..., None]) -> Callable[..., None]:
        """The loading of a module that records it as begun."""

        def loading(loader: Any, module: ModuleType) -> None:
            load(loader, module)
            if self.record is not None:
                self.record.begin_module(module)

        return loading

    def _watch_locale(self, localize: Callable[..., Any]) -> Callable[..., Any]:
        """`locale.setlocale` that records the variables by which C chooses a locale."""

        def localizing(category: int, name: Any = None) -> Any:
            if self.record is not None and name == "":  # what the variables of the locale say, which C reads
                for variable in _LOCALE:
                    self.record.take_variable(variable, sys._getframe(1))  # noqa: SLF001
            return localize(category, name)

        return localizing

    def _watch_import_module(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A function such as `importlib.import_module` that records an import, of which no audit event tells."""

        def named(name: str, package: str | None = None) -> Any:
            if name[:1] == "." and package:
                name = importlib.util.resolve_name(name, package)
            _hook("import", (name, None, sys.path))  # which Python tells of statements only
            return call(name, package)

        return named

    def _watch_import(self, load: Callable[..., Any]) -> Callable[..., Any]:
        """``__import__`` that records the use of a module which is loaded already."""

        def importing(name: str, scope: Any = None, *others: Any, **options: Any) -> Any:
            file = scope.get("__file__", "") if type(scope) is dict else ""  # of a statement
            record = self.record
            is_new = record is not None and (name, file) not in record.foreign and name in sys.modules
            if record is not None and is_new and not self.busy.get():
                record.take_module(name, sys._getframe(1))  # noqa: SLF001
            return load(name, scope, *others, **options)

        return importing

    def read_variable(self, name: str) -> None:
        """Record that an environment variable is read, if a record runs."""
        if self.record is not None and not self.busy.get() and not name.startswith("PYTEST_"):
            self.record.take_variable(name, sys._getframe(2))  # noqa: SLF001

    def set_variable(self, key: Any) -> None:
        """Record that an environment variable is set, if a record runs."""
        if self.record is not None and not self.busy.get():
            self.record.set_variable(os.fsdecode(key), sys._getframe(2))  # noqa: SLF001


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
    """The environment variables of this process, with a record of those that a suite's code reads.

    Attributes:
        unwatched: The variables, for reads that are no use of them.
    """

    unwatched = _VARIABLES

    @property
    def _data(self) -> Any:
        if sys._getframe(1).f_globals is not vars(os):  # noqa: SLF001
            _WATCH.read_variable("*")
        return vars(self)["_data"]

    def __getitem__(self, key: Any) -> Any:
        if key == _OF_TESTS:
            return _VARIABLES[key]
        _WATCH.read_variable(os.fsdecode(key))
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if key == _OF_TESTS:
            _VARIABLES[key] = value
        else:
            _WATCH.set_variable(key)
            super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        if key == _OF_TESTS:
            del _VARIABLES[key]
        else:
            _WATCH.set_variable(key)
            super().__delitem__(key)

    def __iter__(self) -> Any:
        _WATCH.read_variable("*")
        return super().__iter__()

    def __len__(self) -> int:
        _WATCH.read_variable("*")
        return super().__len__()


class _Options(Namespace):
    """The options of pytest, with a record of those that a suite's code reads.

    pytest reads its own many times for each test, so that Python finds the steady ones without this class.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _STEADY or name[:1] == "_":  # such as the class that this one replaces
            super().__setattr__(name, value)
        else:
            vars(self)[name] = value
            setattr(_Options, name, property(partial(_Options._option, name=name)))

    def __delattr__(self, name: str) -> None:
        del vars(self)[name]

    def _option(self, name: str) -> Any:
        if (record := _WATCH.record) is not None and name[:1] != "_":
            # Python tells an audit hook of every look at `f_code`, but of none at `f_globals`.
            frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
            while frame is not None and (module := frame.f_globals.get("__name__", "")) == _CONFIG:
                frame = frame.f_back
            if frame is not None and not module.startswith(_JUDGING):
                record.note(f"option {name}", frame, near=True)
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(name) from None

    __getattr__ = _option


@contextmanager
def our_call() -> Iterator[None]:
    """A context in which calls of a service are this package's own, and not recorded as uses by a suite."""
    token = OURS.set(True)
    try:
        yield
    finally:
        OURS.reset(token)

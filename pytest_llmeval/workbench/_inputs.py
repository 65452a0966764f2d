"""Everything but rows that the scores of a suite depend on."""

import os
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import sha256
from importlib import machinery, metadata
from inspect import getsourcefile
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_llmeval._version import __version__
from pytest_llmeval.baselines import SuiteIdentity, fingerprint
from pytest_llmeval.core import MISSING
from pytest_llmeval.data import FilePattern, OwnFiles
from pytest_llmeval.services import Secrets, UseRecord
from pytest_llmeval.suites import LoadedSuite, SuiteKey
from pytest_llmeval.workbench._project import SETTINGS_FILES, settings_of
from pytest_llmeval.workbench._sources import Closure, SourceTree

_CONFTEST: Final = "conftest.py"
_LOCKS: Final = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "Pipfile.lock")
_NAMED: Final = re.compile(r"(?P<module>[A-Za-z_][\w.]*):[A-Za-z_][\w.]*")
_LOADED: Final = "loaded"
_PATH: Final = "path "
_AS_A_WHOLE: Final = "*"
_UNSEEN: Final = "compiled code may read files unseen: declare them as inputs of the suite"
_FOREIGN: Final = frozenset(
    {"ctypes", "posix", "nt", "ssl", "_ctypes", "dbm.gnu", "dbm.ndbm", "_gdbm", "_dbm", "tkinter", "_tkinter"}
)
"""Modules of Python by which compiled code opens what it likes."""

_SEEN_THROUGH: Final = frozenset(
    {
        *("aiohttp", "black", "bcrypt", "brotli", "charset-normalizer", "coverage", "cffi", "cryptography"),
        *("frozenlist", "greenlet", "httptools", "jiter", "kiwisolver", "markupsafe", "msgpack", "msgspec"),
        *("multidict", "numpy", "orjson", "pandas", "propcache", "psutil", "pydantic-core", "pyyaml"),
        *("rapidfuzz", "regex", "rpds-py", "ruamel-yaml-clib", "scikit-learn", "scipy", "simplejson", "sqlalchemy"),
        *("tiktoken", "tornado", "ujson", "uvloop", "websockets", "wrapt", "xxhash", "yarl"),
        *("zstandard"),
    }
)
"""Distributions with compiled code that opens files by Python, or none."""

_REQUIRED: Final = re.compile(r"[\w.-]+")


class Inputs(NamedTuple):
    """The inputs of a suite, apart from its rows: files, versions and settings that its scores depend on.

    Attributes:
        values: Name of an input to its fingerprint, or its version.
        cases: Id of a case to the fingerprint of its row.
        unknown: What cannot be followed, each in one line.
        used: What its cases used, each with its kind.
    """

    values: Mapping[str, str]
    cases: Mapping[str, str]
    unknown: tuple[str, ...] = ()
    used: tuple[str, ...] = ()


class _WrittenSuite(NamedTuple):
    """The content of a suite that decides scores, from which its inputs are derived.

    Attributes:
        ways: It, and the systems that answer for it.
        keys: Key to what decides scores, for each way.
        prints: Label of an evaluator to its name, version and options.
        texts: All texts in these.
    """

    ways: Sequence[LoadedSuite]
    keys: Sequence[Mapping[str, Any]]
    prints: Mapping[str, Any]
    texts: Collection[str]


@dataclass
class ProjectInputs:
    """The inputs of all suites of a project, for runs of affected cases; files are read once.

    Attributes:
        root: pytest's rootdir.
        top: The folder of its repository, or the root.
        environment: The variables that the run started with.
        options: The options of pytest.
    """

    root: Path
    top: Path
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    options: Namespace = field(default_factory=Namespace)
    _files: dict[Path, str] = field(default_factory=dict)
    _conftests_of: dict[Path, Sequence[Path]] = field(default_factory=dict)
    _written: dict[tuple[Path, str], _WrittenSuite] = field(default_factory=dict)

    @cached_property
    def tree(self) -> SourceTree:
        """The Python modules of the project."""
        return SourceTree(self.top, [*dict.fromkeys((self.root, self.root / "src", self.top, self.top / "src"))])

    def inputs(self, suite: LoadedSuite, judges: Mapping[str, Mapping[str, str]], used: Iterable[str] = ()) -> Inputs:
        """The files, modules and settings on which a suite, or one of its systems, depends.

        Args:
            suite: As the system answers it.
            judges: Label of an evaluator to what decides its verdicts.
            used: What its cases used.
        """
        used = tuple(sorted(used))
        written = self._read(suite)
        values = {"Python": "{}.{}".format(*sys.version_info), "pytest-llmeval-suite": __version__}
        values |= self._settings
        for label, print_ in written.prints.items():  # which leaves out which metrics are reported
            reported = getattr(suite.evaluators[label], "metrics", None)
            values[f"evaluator {label}"] = fingerprint([print_, reported])
        values |= {f"judge of {label}": fingerprint(dict(judge)) for label, judge in judges.items()}
        for way, keys in zip(written.ways, written.keys, strict=True):
            suffix = "" if way is suite else f" of {way.system}"
            values |= {f"suite key {key}{suffix}": fingerprint(value) for key, value in keys.items()}
            if (model := way.model) is not None:
                prompts = [prompt for prompt in (model.prompt, model.system_prompt) if prompt is not None]
                values |= {self._place(suite.path.parent / prompt.file): fingerprint(prompt.text) for prompt in prompts}
                model_settings = [model.spec.model, model.spec.address, model.spec.request_parameters()]
                values[f"model {model.spec.model}{suffix}"] = fingerprint(model_settings)
        folders = self._folders(suite, used)
        closure = self._closure(suite, used, folders)
        named = {file for text in written.texts for file in self.tree.files(folders[0], text)}
        for path in sorted({*closure.files, *named, *self._declared(suite)}):
            values[self.tree.display(path)] = self._digest(path)
        values |= self._used_values(suite, used, folders)
        unknown, unseen = self._add_packages(closure.packages, values)
        if not suite.inputs:  # which represent what cannot be followed
            packages = {package.rstrip("?") for package in closure.packages}
            unknown = [*self._unknown(suite, written.ways), *self._faults(suite, used, packages), *unknown, *unseen]
        return Inputs(values, self._rows(suite, written.ways), tuple(unknown), used)

    def uses(
        self, suites: Mapping[SuiteKey, LoadedSuite], used: Iterable[tuple[str, str]]
    ) -> Mapping[SuiteKey, set[str]]:
        """The resources that each suite of a run used, itself or by the modules that it uses.

        A module may keep what it reads, so that only the first of several suites is seen reading it: what the code of a
        file has used is used by every suite that uses the file. Likewise for what other modules keep. What nobody is
        known to use is used by all.

        Args:
            suites: The suites.
            used: What the run has recorded, as `UseRecord.uses` has it.
        """
        by_user: dict[str, set[str]] = {}
        paths = [use for _, use in used if use.startswith(_PATH)]
        folders = {key: self._folders(suite, paths) for key, suite in suites.items()}
        for key, suite in suites.items():
            by_user[key.user] = {self._file_use(path) for path in self._closure(suite, (), folders[key]).files}
        own = {use for uses in by_user.values() for use in uses}
        for user, use in used:
            by_user.setdefault(user, set()).add(use)
        loaded = by_user.pop(_LOADED, set())
        known = own | {use for user, uses in by_user.items() if user for use in uses}
        of_all = by_user.pop("", set()) | {use for use in loaded - known if not use.endswith(f"/{_CONFTEST}")}
        of_all -= {UseRecord.WATCHED[1], f"file {_CONFTEST}"}
        by_suite: dict[SuiteKey, set[str]] = {}
        for key, suite in suites.items():
            mine, before = {*of_all, *by_user[key.user]}, -1
            while before < len(mine):
                before = len(mine)
                code = {self._file_use(file) for file in self._closure(suite, mine, folders[key]).files}
                for user in code | {use for use in mine if use.startswith(("module ", "suite "))}:
                    mine |= by_user.get(user, set())
            by_suite[key] = mine
        # What a suite leaves to another one depends on its file; its own rows and keys are compared one by one.
        files = {key.user: self._file_use(OwnFiles(suite.path).source.resolve()) for key, suite in suites.items()}
        return {
            key: {*mine, *(files[user] for user in {*mine} & {*files} - {key.user})} - {key.user}
            for key, mine in by_suite.items()
        }

    def _file_use(self, path: Path) -> str:
        return f"file {self.tree.display(path)}"

    def _closure(self, suite: LoadedSuite, used: Iterable[str], folders: Sequence[Path]) -> Closure:
        """The code of a suite: modules that it names or used, and what these import."""
        files = list[Path]()
        for use in used:
            kind, _, name = use.partition(" ")
            if kind == "file" and name.endswith(".py"):
                files += [path for path in (self.top / name,) if path.is_file()]
            elif kind == "module":  # in any folder: which comes first is known only while the suite runs
                files += [file for folder in folders for file in self.tree.find(name, [folder]) or ()]
        return self.tree.closure(sorted({*self._modules(suite, folders), *files}), folders)

    def _folders(self, suite: LoadedSuite, used: Iterable[str]) -> list[Path]:
        """The folders from which code of a suite may import modules of the project."""
        added = [self.top / use.removeprefix(_PATH) for use in sorted(used) if use.startswith(_PATH)]
        return [*dict.fromkeys((suite.path.parent.resolve(), *self.tree.folders, *added))]

    def _read(self, suite: LoadedSuite) -> _WrittenSuite:
        name = suite.path, suite.system
        if name not in self._written:
            ways = [suite, *(suite.for_variant(name) for name in suite.opponents if name in suite.systems)]
            keys = [SuiteIdentity(way).settings for way in ways]
            prints = SuiteIdentity(suite).evaluators
            options = [print_.options for print_ in prints.values()]
            texts = {*_texts([options, *(list(of_way.values()) for of_way in keys)])}
            self._written[name] = _WrittenSuite(ways, keys, prints, texts)
        return self._written[name]

    def _used_values(
        self, suite: LoadedSuite, used: Iterable[str], folders: Sequence[Path]
    ) -> Iterator[tuple[str, str]]:
        """Yield what was used with its state; of a secret, none is kept."""
        for use in used:
            kind, _, name = use.partition(" ")
            if kind == "file":
                yield name, self._state(self.top / name)
            elif kind == "folder":
                yield f"{name}/", self._listing(self.top / name)
            elif kind == "entries":
                yield f"{name}/*", self._listing(self.top / name, describe=self._state)
            elif kind == "variable" and not _is_hidden(name, suite):
                yield use, fingerprint(self.environment.get(name))
            elif kind == "option":
                yield use, fingerprint(str(vars(self.options).get(name, False)))
            elif kind == "module":
                if name == "importlib.metadata":
                    yield "installed packages", self._installed
                package = name.partition(".")[0]
                if package not in sys.stdlib_module_names and self.tree.find(name, folders) is None:
                    yield f"module {package}", self._version(package)

    def _faults(self, suite: LoadedSuite, used: Iterable[str], packages: Collection[str]) -> Iterator[str]:
        """Yield what was used and has no state that could be compared."""
        for use in used:
            kind, _, name = use.partition(" ")
            if kind == "unknown":
                yield name
            elif kind == "variable" and _is_hidden(name, suite):
                what = "all environment variables are" if name == _AS_A_WHOLE else f"environment variable {name} is"
                yield f"{what} read, and not stored"
            elif kind == "module" and name in _FOREIGN:
                yield f"import {name}: {_UNSEEN}"
            elif kind == "compiled":
                library, _, module = name.partition(" ")
                is_used = library in packages or f"module {library}" in used
                if is_used and not _is_seen_through(module.partition(".")[0]):
                    yield f"{module}: {_UNSEEN}"

    def _state(self, path: Path) -> str:
        """The state of a path: the target of a link, whether it can be run, and the content of a file."""
        link = [f"link to {path.readlink()}"] if path.is_symlink() else []
        if path.is_dir():
            return " ".join([*link, "folder"])
        if not path.exists():
            archives = [parent for parent in path.parents if parent.is_file()]  # from which modules can be imported
            return " ".join([*link, *map(self._digest, archives)])
        return " ".join([*link, *(["program"] if path.stat().st_mode & 0o100 else []), self._digest(path)])

    def _listing(self, folder: Path, describe: Callable[[Path], object] = Path.is_dir) -> str:
        """Return a fingerprint of the names in a folder, and of how a function describes each path."""
        try:
            return fingerprint(
                sorted([entry.name, describe(entry)] for entry in folder.iterdir() if not UseRecord.ignores(entry.name))
            )
        except OSError:
            return ""

    def _add_packages(self, packages: Iterable[str], values: dict[str, str]) -> tuple[list[str], list[str]]:
        """Add lock files as a whole, since any line may concern what a package needs; without one, add versions.

        Returns:
            What cannot be followed; and the packages that may read files unseen.
        """
        others, unknown, unseen = sorted({*packages} - {"pytest_llmeval", "pytest_llmeval?"}), list[str](), list[str]()
        for name in others:
            package = name.rstrip("?")
            version = self._version(package)
            if not self._lock_digests:
                values[f"package {package}"] = version
            if not version and package == name:
                unknown.append(f"import {package}: neither in the project nor installed")
            unknown += [f"import {package}: installed from a folder outside of the project"] * _is_linked(package)
            if version and not _is_seen_through(package):
                unseen.append(f"import {package}: {_UNSEEN}")
        values |= self._lock_digests if others else {}
        return unknown, unseen

    def _modules(self, suite: LoadedSuite, folders: Sequence[Path]) -> Iterator[Path]:
        """Yield the files whose code runs for a suite: what it names, its evaluators, and the conftests above it."""
        yield from self._conftests(folders[0])
        if (own := OwnFiles(suite.path)).is_declared:
            yield own.source.resolve()
        for text in self._read(suite).texts:
            if (named := _NAMED.fullmatch(text)) is not None:
                yield from self.tree.find(named["module"], folders) or ()
        kinds = [
            kind
            for evaluator in suite.evaluators.values()
            if evaluator.is_of_users()
            for kind in type(evaluator).__mro__
        ]
        for value in (*kinds, *suite.objects.values()):
            with suppress(TypeError):
                file = Path(
                    getsourcefile(value if hasattr(value, "__code__") or isinstance(value, type) else type(value)) or ""
                )
                if file.is_file() and file.resolve().is_relative_to(self.top) and "site-packages" not in file.parts:
                    yield file.resolve()

    def _declared(self, suite: LoadedSuite) -> list[Path]:
        with FilePattern.within(self.root):
            return [
                file.resolve() for input_ in suite.inputs for file in FilePattern(suite.path.parent, input_).inputs()
            ]

    def _unknown(self, suite: LoadedSuite, ways: Iterable[LoadedSuite]) -> Iterator[str]:
        """Yield what answers without code of the project."""
        for way in ways:
            target = way.target
            if target is not None and (target.http is not None or target.command is not None):
                kind = "the service" if target.http is not None else "the command"
                yield f"{kind} that answers: declare what it depends on, as inputs of the suite"
            asks = way.model is None and any(case.prediction is MISSING for case in way.cases)
            if asks and (target is None or target.is_for_fixture) and not self._has_fixture(suite):
                yield "the fixture llmeval_target: found in no conftest.py above the suite"

    def _conftests(self, folder: Path) -> Sequence[Path]:
        """The conftests of a folder and of those above it, within the project."""
        if not folder.is_relative_to(self.top):
            return ()
        if folder not in self._conftests_of:
            own = [path for path in (folder / _CONFTEST,) if path.is_file()]
            self._conftests_of[folder] = [*own, *self._conftests(folder.parent)]
        return self._conftests_of[folder]

    def _has_fixture(self, suite: LoadedSuite) -> bool:
        files = self._conftests(suite.path.parent.resolve())
        return any("llmeval_target" in file.read_text(encoding="utf-8", errors="replace") for file in files)

    def _rows(self, suite: LoadedSuite, ways: Iterable[LoadedSuite]) -> dict[str, str]:
        digests = SuiteIdentity(suite).digests
        others = [{case.id: case.prediction for case in way.cases} for way in ways if way is not suite]
        rows = {}
        for case in suite.cases:
            answers = [other.get(case.id, MISSING) for other in others]
            predictions = [[] if prediction is MISSING else [prediction] for prediction in (case.prediction, *answers)]
            rows[case.id] = fingerprint([*digests[case.id], predictions, case.origin, list(case.tags)])[7:23]
        return rows

    def _place(self, path: Path) -> str:
        return self.tree.display(path.resolve())

    def _digest(self, path: Path) -> str:
        if path not in self._files:
            try:
                content = path.read_bytes().replace(os.linesep.encode(), b"\n")  # which git may have changed
                self._files[path] = sha256(content).hexdigest()[:16]
            except OSError as error:
                self._files[path] = f"not read: {error.strerror}"
        return self._files[path]

    @cached_property
    def _settings(self) -> dict[str, str]:
        """The settings of pytest, in which those of this plugin stand."""
        files = {
            f"{name} [{section}]".removesuffix(" []"): self.root / name for name, section in SETTINGS_FILES.items()
        }
        sections = {name: settings_of(path) for name, path in files.items()}
        return {name: fingerprint(section) for name, section in sections.items() if section is not None}

    def _version(self, package: str) -> str:
        """Return the installed version of a package; empty for none."""
        return next((metadata.version(distribution) for distribution in _distributions(package)), "")

    @cached_property
    def _installed(self) -> str:
        """A fingerprint of what is installed, with its entry points."""
        installed = {distribution.name: distribution for distribution in metadata.distributions()}
        return fingerprint(
            sorted(
                [name, distribution.version, sorted(map(str, distribution.entry_points))]
                for name, distribution in installed.items()
            )
        )

    @cached_property
    def _lock_digests(self) -> Mapping[str, str]:
        folders = dict.fromkeys((self.root, self.top))
        named = [folder / lock for folder in folders for lock in _LOCKS]
        required = [path for folder in folders for path in sorted(folder.glob("*requirements*.txt"))]
        return {self._place(path): self._digest(path) for path in (*named, *required) if path.is_file()}


def _is_hidden(variable: str, suite: LoadedSuite) -> bool:
    """Whether the value of an environment variable stays out of a suite's stored inputs, as a secret or as a whole."""
    return variable == _AS_A_WHOLE or Secrets.is_variable(variable, suite.secret_variables)


@cache
def _distributions(package: str) -> tuple[str, ...]:
    """The installed distributions that a suite's import of a top-level name may come from."""
    with suppress(metadata.PackageNotFoundError):
        return (metadata.distribution(package).name,)
    return tuple(sorted(set(_by_package().get(package, ()))))


@cache
def _is_seen_through(package: str) -> bool:
    """Whether all files that a package opens are observed: Python code, or known compiled code."""
    waiting, seen = [*_distributions(package)], set[str]()
    while waiting:
        name = _normal(waiting.pop())
        if name in seen or name in _SEEN_THROUGH:
            continue
        seen.add(name)
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # of another system
            continue
        if any(file.name.endswith(_COMPILED) for file in distribution.files or ()):
            return False
        required = [requirement for requirement in distribution.requires or () if "extra ==" not in requirement]
        waiting += [match[0] for requirement in required if (match := _REQUIRED.match(requirement))]
    return True


_COMPILED: Final = (*machinery.EXTENSION_SUFFIXES, ".dll", ".dylib")


def _normal(name: str) -> str:
    """The normalized name of a distribution (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def _by_package() -> Mapping[str, list[str]]:
    """The installed distributions by the top-level names that can be imported from them."""
    return metadata.packages_distributions()


def _is_linked(package: str) -> bool:
    """Whether a package is installed from a folder, so that it may change without a new version (PEP 610)."""
    origins = [
        metadata.distribution(distribution).read_text("direct_url.json") for distribution in _distributions(package)
    ]
    return any(origin is not None and '"dir_info"' in origin for origin in origins)


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in a setting of a suite; those that name files are inputs of the suite."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for member in value.values():
            yield from _texts(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _texts(member)

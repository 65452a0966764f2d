"""What the scores of a suite depend on besides its rows: files, packages, keys of the suite, versions, judges."""

import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import sha256
from importlib import metadata
from inspect import getsourcefile
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_llmeval._version import __version__
from pytest_llmeval.baselines import comparable_of, digests_of, fingerprint, plain
from pytest_llmeval.core import MISSING
from pytest_llmeval.data import IN_MODULE, input_files, searching_within
from pytest_llmeval.run import file_of_suite
from pytest_llmeval.suites import KEYS, Suite, is_of_users
from pytest_llmeval.workbench._sources import Closure, SourceTree

_CONFTEST: Final = "conftest.py"
_SETTINGS: Final = (
    "pyproject.toml",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "setup.cfg",
)
_LOCKS: Final = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "Pipfile.lock")
_KEYS: Final = (
    *[name for name, key in KEYS.items() if key.carried and key.decides == "scores"],
    "on",
    "turns",
    "types",
)
"""The fields of a suite that decide its scores."""

_NAMED: Final = re.compile(r"(?P<module>[A-Za-z_][\w.]*):[A-Za-z_][\w.]*")
_PINNED: Final = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^]]*\])?\s*==\s*(?P<version>[^\s;#\\]+)")


class Inputs(NamedTuple):
    """What a suite depends on.

    Attributes:
        values: Name of an input to its fingerprint, or its version.
        cases: Id of a case to the fingerprint of its row.
        unknown: What cannot be followed, each in one line.
    """

    values: Mapping[str, str]
    cases: Mapping[str, str]
    unknown: tuple[str, ...] = ()


@dataclass
class ProjectInputs:
    """A project whose suites have inputs; files are read once.

    Attributes:
        root: pytest's rootdir.
        top: The folder of its repository, or the root.
    """

    root: Path
    top: Path
    _files: dict[Path, str] = field(default_factory=dict)

    @cached_property
    def tree(self) -> SourceTree:
        """The Python modules of the project."""
        own = sorted({Path(each).resolve() for each in sys.path if each and Path(each).is_dir()})
        inside = [each for each in own if each.is_relative_to(self.top) and "site-packages" not in each.parts]
        return SourceTree(
            self.top, [*dict.fromkeys((self.root, self.root / "src", self.top, self.top / "src", *inside))]
        )

    def inputs(self, suite: Suite, judges: Mapping[str, Mapping[str, str]]) -> Inputs:
        """Return what a suite, or one of its systems, depends on.

        Args:
            suite: As the system answers it.
            judges: Label of an evaluator to what decides its verdicts.
        """
        ways = [suite, *(suite.for_variant(name) for name in suite.opponents if name in suite.systems)]
        values = {"Python": "{}.{}".format(*sys.version_info), "pytest-llmeval-suite": __version__}
        values |= self._settings
        compared = comparable_of(suite)
        for label, each in compared.evaluators.items():  # whose print leaves out which metrics are reported
            reported = getattr(suite.evaluators[label], "metrics", None)
            values[f"evaluator {label}"] = fingerprint(plain([each, reported]))
        values |= {f"judge of {label}": fingerprint(dict(each)) for label, each in judges.items()}
        texts, files = set[str](), set[Path]()
        for way in ways:
            suffix = "" if way is suite else f" of {way.system}"
            for key in _KEYS:
                value = plain(getattr(way, key))
                texts |= {*_texts(value)}
                values[f"suite key {key}{suffix}"] = fingerprint(value)
            if (model := way.model) is not None:
                prompts = [each for each in (model.prompt, model.system_prompt) if each is not None]
                values |= {self._place(suite.path.parent / each.file): fingerprint(each.text) for each in prompts}
                model_settings = [model.spec.model, model.spec.base_url, model.spec.request_parameters()]
                values[f"model {model.spec.model}{suffix}"] = fingerprint(plain(model_settings))
        texts |= {*_texts([plain(each.options) for each in compared.evaluators.values()])}
        folder = suite.path.parent.resolve()
        start = {*self._modules(suite, folder, texts)}
        closure = self.tree.closure(sorted(start), folder)
        files |= {file for text in texts for file in self.tree.files(folder, text, folders=True)}
        declared = self._declared(suite)
        unknown = [*self._unknown(suite, ways, closure, declared)]
        for path in sorted({*closure.files, *files, *declared}):
            values[self.tree.display(path)] = self._digest(path)
        for name in sorted(closure.packages - {"pytest_llmeval", "pytest_llmeval?"}):
            package = name.rstrip("?")
            values[f"package {package}"] = version = self._version(package)
            if not version and package == name:
                unknown.append(f"import {name}: found neither in the project nor among installed packages")
            unknown += [f"import {package}: installed from a folder outside of the project"] * _is_linked(package)
        unknown += self._locks.faults if closure.packages else ()
        return Inputs(values, self._rows(suite, ways), tuple(unknown))

    def _modules(self, suite: Suite, folder: Path, texts: Iterable[str]) -> Iterator[Path]:
        """Yield the files whose code runs for a suite: what it names, its evaluators, and the conftests above it."""
        for parent in (folder, *folder.parents):
            if parent.is_relative_to(self.top) and (parent / _CONFTEST).is_file():
                yield parent / _CONFTEST
        if IN_MODULE in suite.path.name:
            yield file_of_suite(suite.path).resolve()
        for text in texts:
            if (named := _NAMED.fullmatch(text)) is not None:
                yield from self.tree.find(named["module"], [folder, *self.tree.folders]) or ()
        kinds = [kind for each in suite.evaluators.values() if is_of_users(each) for kind in type(each).__mro__]
        for value in (*kinds, *suite.objects.values()):
            with suppress(TypeError):
                file = Path(
                    getsourcefile(value if hasattr(value, "__code__") or isinstance(value, type) else type(value)) or ""
                )
                if file.is_file() and file.resolve().is_relative_to(self.top) and "site-packages" not in file.parts:
                    yield file.resolve()

    def _declared(self, suite: Suite) -> list[Path]:
        with searching_within(self.root):
            return [file.resolve() for each in suite.inputs for file in input_files(suite.path.parent, each)]

    def _unknown(
        self, suite: Suite, ways: Iterable[Suite], closure: Closure, declared: Iterable[Path]
    ) -> Iterator[str]:
        """Yield what cannot be followed, unless the suite declares inputs that represent it."""
        declares_code = any(each.suffix == ".py" for each in declared)
        if not declares_code:
            yield from closure.unknown
        if suite.inputs:
            return
        yield from closure.unread
        for way in ways:
            target = way.target
            if target is not None and (target.http is not None or target.command is not None):
                kind = "the service" if target.http is not None else "the command"
                yield f"{kind} that answers: declare what it depends on, as inputs of the suite"
            asks = way.model is None and any(case.prediction is MISSING for case in way.cases)
            if asks and (target is None or target.is_for_fixture) and not self._has_fixture(suite):
                yield "the fixture llmeval_target: found in no conftest.py above the suite"

    def _has_fixture(self, suite: Suite) -> bool:
        folders = [each for each in suite.path.resolve().parents if each.is_relative_to(self.top)]
        files = [each / _CONFTEST for each in folders]
        return any(
            "llmeval_target" in each.read_text(encoding="utf-8", errors="replace") for each in files if each.is_file()
        )

    def _rows(self, suite: Suite, ways: Iterable[Suite]) -> dict[str, str]:
        digests = digests_of(suite)
        others = [{case.id: case.prediction for case in way.cases} for way in ways if way is not suite]
        rows = {}
        for case in suite.cases:
            answers = [each.get(case.id, MISSING) for each in others]
            predictions = [[] if each is MISSING else [plain(each)] for each in (case.prediction, *answers)]
            parts = None if case.origin is None else plain(case.origin)
            rows[case.id] = fingerprint([*digests[case.id], predictions, parts, list(case.tags)])[7:23]
        return rows

    def _place(self, path: Path) -> str:
        return self.tree.display(path.resolve())

    def _digest(self, path: Path) -> str:
        if path not in self._files:
            try:
                content = path.read_bytes().replace(b"\r\n", b"\n")  # even if git changed line ends
                self._files[path] = sha256(content).hexdigest()[:16]
            except OSError as error:
                self._files[path] = f"not read: {error.strerror}"
        return self._files[path]

    @cached_property
    def _settings(self) -> dict[str, str]:
        """The settings of pytest, in which those of this plugin stand."""
        out = {}
        for name in _SETTINGS:
            path = self.root / name
            if path.is_file():
                out[name] = self._digest(path)
                if path.name == "pyproject.toml":
                    with suppress(tomllib.TOMLDecodeError, UnicodeDecodeError):
                        section = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("pytest", {})
                        out[f"{name} [tool.pytest]"] = fingerprint(section)
                        del out[name]
        return out

    def _version(self, package: str) -> str:
        """Return the version of a package: that of the lock file, else the installed one; empty for none."""
        names = _distributions(package)
        for each in (*names, package):
            if locked := self._locks.versions.get(_normal(each)):
                return locked
        return next((metadata.version(each) for each in names), "")

    @cached_property
    def _locks(self) -> "_Locks":
        versions, faults = dict[str, str](), list[str]()
        for folder in dict.fromkeys((self.root, self.top)):
            for path in (*(folder / each for each in _LOCKS), *sorted(folder.glob("*requirements*.txt"))):
                try:
                    entries = dict(_lock_entries(path)) if path.is_file() else {}
                except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
                    faults.append(f"{self._place(path)}: found no lock file that can be read ({type(error).__name__})")
                else:
                    versions = {**entries, **versions}
        return _Locks(versions, faults)


class _Locks(NamedTuple):
    """The lock files of a project.

    Attributes:
        versions: Name of a package to its version.
        faults: Files that cannot be read: versions of packages are not known.
    """

    versions: Mapping[str, str]
    faults: Sequence[str]


def _lock_entries(path: Path) -> Iterator[tuple[str, str]]:
    if path.suffix == ".txt":
        text = path.read_text(encoding="utf-8", errors="replace")
        yield from ((_normal(each["name"]), each["version"]) for each in _PINNED.finditer(text))
        return
    text = path.read_text(encoding="utf-8")
    if path.name == "Pipfile.lock":
        for section in ("default", "develop"):
            for name, each in json.loads(text).get(section, {}).items():
                yield _normal(name), json.dumps(each.get("version") or each, sort_keys=True)
        return
    data = tomllib.loads(text)
    for each in (*data.get("package", ()), *data.get("packages", ())):
        source = each.get("source", {})
        git = source.get("git") or source.get("resolved_reference") or ""
        yield _normal(each["name"]), f"{each.get('version', '')} {git}".strip()


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def _distributions(package: str) -> tuple[str, ...]:
    """Return the installed distributions that a top-level name may come from."""
    with suppress(metadata.PackageNotFoundError):
        return (metadata.distribution(package).name,)
    return tuple(sorted(set(_by_package().get(package, ()))))


@cache
def _by_package() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def _is_linked(package: str) -> bool:
    """Return whether a package is code in a folder, which may change without its version (PEP 610)."""
    origins = [metadata.distribution(each).read_text("direct_url.json") for each in _distributions(package)]
    return any(each is not None and '"dir_info"' in each for each in origins)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)

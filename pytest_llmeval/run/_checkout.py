"""The suites of a checkout, without pytest: with the evaluators that conftests and plugins register."""

import platform
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha256
from importlib import import_module, metadata
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from msgspec import structs

from pytest_llmeval._version import __version__
from pytest_llmeval.baselines import SuiteIdentity, fingerprint
from pytest_llmeval.core import MISSING, AnyError, Case, LlmevalError
from pytest_llmeval.data import OwnFiles, display_path
from pytest_llmeval.run._shards import (
    Origin,
    ResultOptions,
    Shard,
    SuitePrint,
    SuiteVariant,
    cut_in_shards,
    every_case,
)
from pytest_llmeval.run._stages import Reported
from pytest_llmeval.suites import LoadedSuite, Registry, SuiteKey, SuiteMemo, load_suite

_HOOK = "pytest_llmeval_register"
_DISTRIBUTION = "pytest-llmeval-suite"
_CONFTEST = "conftest.py"
_PACKAGE = __name__.partition(".")[0]


def versions() -> dict[str, str]:
    """The versions of Python, this package and the libraries that it needs, for a run's shard file."""
    versions = {"python": ".".join(platform.python_version_tuple()[:2]), _DISTRIBUTION: __version__}
    try:
        required = metadata.requires(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        required = []
    for requirement in required:
        name = re.match(r"[\w.-]+", requirement)
        if name is not None and "extra ==" not in requirement:
            versions[name[0]] = metadata.version(name[0])
    return versions


def describe_origin(
    finished: Reported,
    suites: Iterable[tuple[LoadedSuite, Iterable[str]]],
    options: ResultOptions,
    *,
    root: Path,
    shard: Shard | None,
    require_gates: bool,
    items: Mapping[str, int],
) -> Origin:
    """The header of a shard file: what a run was made of.

    Args:
        finished: The run.
        suites: Its suites as their files have them, each with what registers evaluators for it.
        options: Those that change results.
        root: The folder to which files are named relatively.
        shard: The part that ran; ``None`` for all of it.
        require_gates: Whether gates must be judged.
        items: Ids of all tests over cases, before any selection, each with the number of tests.
    """
    nodeids = sorted(items)
    return Origin(
        shard=str(shard or ""),
        commit=finished.report.run.commit,
        versions=versions(),
        options=options,
        require_gates=require_gates,
        collected=f"sha256:{sha256(repr(nodeids).encode()).hexdigest()[:32]}",
        items=sum(items.values()),
        imports=_import_folders(root),
        suites=[print_suite(suite, root, plugins, shard) for suite, plugins in suites],
        variants=[
            SuiteVariant(judged.key._replace(path=display_path(Path(judged.key.path), root)), judged.collected.judges)
            for judged in finished.judged.suites
        ],
    )


def _import_folders(root: Path) -> list[str]:
    """The folders of the project on Python's path, for the shard file: a merge imports from the same."""
    folders = (Path(entry) for entry in sys.path if entry)
    own = [folder for folder in folders if folder.is_relative_to(root) and not folder.is_relative_to(sys.prefix)]
    return list(dict.fromkeys(display_path(folder, root) for folder in own))


def print_suite(suite: LoadedSuite, root: Path, plugins: Iterable[str], shard: Shard | None = None) -> SuitePrint:
    """The fingerprints of a suite, by which a merge tells whether a shard ran what is checked out.

    Args:
        suite: As its file has it, all systems included.
        root: The folder to which its file is named relatively.
        plugins: What registers evaluators for it: conftests relative to the root, and names of modules.
        shard: Whose cases are meant; ``None``: all of them.
    """
    return print_in_shards(suite, root, plugins, [shard])[shard]


def print_in_shards(
    suite: LoadedSuite, root: Path, plugins: Iterable[str], shards: Iterable[Shard | None]
) -> dict[Shard | None, SuitePrint]:
    """The fingerprints of a suite by shard; see `print_suite`."""
    path = display_path(suite.path, root)
    bare = SuitePrint(
        path=path,
        file=digest_of(OwnFiles(suite.path).source),
        data="",
        evaluators=fingerprint([SuiteIdentity(suite).evaluators, _code(suite)]),
        plugins={name: digest_of(_file_of(name, root)) for name in plugins},
    )
    cut = cache(partial(cut_in_shards, suite, path))
    cases = {shard: every_case(suite) if shard is None else cut(shard.count).get(shard.index, ()) for shard in shards}
    return {
        shard: structs.replace(bare, data=fingerprint([_case_content(case) for case in own]))
        for shard, own in cases.items()
    }


def _case_content(case: Case) -> list[object]:
    """The content of a suite's case that the fingerprint in a shard file covers."""
    predictions = [] if case.prediction is MISSING else [case.prediction]
    limits = {name: str(limit) for name, limit in case.thresholds.items()}
    return [case.id, case.input, case.expected, predictions, case.labels, case.tags, limits, case.way]


def _code(suite: LoadedSuite) -> dict[str, str]:
    """The user's modules that define a suite's evaluators, with their fingerprints for the shard file.

    Conftests, of which several may have one name, are among the plugins.
    """
    modules = {kind.__module__ for evaluator in suite.evaluators.values() for kind in type(evaluator).__mro__}
    own = (name for name in modules if name.partition(".")[0] not in {_PACKAGE, *sys.stdlib_module_names})
    return {name: digest_of(_file_of(name, Path())) for name in own if not f".{name}".endswith(".conftest")}


def plugin_fault(name: str, digest: str, suite: Path, root: Path) -> str:
    """The reason why a plugin that a shard file names is not imported here; empty where it can be.

    Nothing is imported to find out. A plugin lies in the checkout or is installed as one, has the bytes that the shard
    ran, and registers evaluators.

    Args:
        name: A conftest relative to the root, or a module.
        digest: Of its file, as the shard has it.
        suite: The suite file for which it registers evaluators.
        root: Of the checkout.
    """
    file = file_of_plugin(name, root)
    if name.endswith(".py"):
        own = Path(name).name == _CONFTEST and suite.is_relative_to((root / name).parent) and ".." not in name
    else:
        own = file is not None and file.resolve().is_relative_to(root.resolve())
        own = own or name.partition(".")[0] in _installed_plugins()
    if file is None or not file.is_file():
        return f"{name}: the plugin that registered evaluators is missing here"
    if not own or _HOOK.encode() not in file.read_bytes():
        return f"{name}: expected a {_CONFTEST} or plugin of the checkout, or an installed plugin, with {_HOOK}"
    return "" if digest == digest_of(file) else f"{name}: found other code than the shard ran"


def file_of_plugin(name: str, root: Path) -> Path | None:
    """The file of a plugin that a shard file names, found without importing anything."""
    return root / name if name.endswith(".py") else _source_of(name)


def _source_of(module: str) -> Path | None:
    """The file of a module that a shard file names, found without importing it or its packages."""
    parts = module.split(".")
    for folder in map(Path, sys.path):
        base = folder.joinpath(*parts)
        source = next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)
        if source is not None:
            return source
    return None


def _installed_plugins() -> set[str]:
    """The top-level packages of the installed plugins, which a merge may import for a shard's evaluators."""
    groups = ("pytest11", "pytest_llmeval.plugins")
    return {point.value.partition(":")[0].partition(".")[0] for group in groups for point in entry_points(group=group)}


def digest_of(path: Path | None) -> str:
    """The fingerprint of a suite's or plugin's file in a checkout, by its bytes; empty where there is none."""
    try:
        return "" if path is None else f"sha256:{sha256(path.read_bytes()).hexdigest()[:32]}"
    except OSError:
        return ""


def _file_of(plugin: str, root: Path) -> Path | None:
    """The file of a plugin that registers evaluators: a conftest below the root, or an imported module."""
    if plugin.endswith(".py"):
        return root / plugin
    file = getattr(sys.modules.get(plugin), "__file__", None)
    return Path(file) if file else None


@dataclass
class Checkout:
    """Implements `pytest_llmeval.run._stages.Suites` for a folder, by what shard files say of a run there.

    Attributes:
        root: The folder: pytest's rootdir.
        plugins: Suite file, relative to the root, to what registers evaluators for it, in the order of registration.
        known: What is known of the judges of suites and variants.
        ordered: Returns a suite with the order in which its cases ran.
        loaded: Suites that no file holds, by path.
    """

    root: Path
    plugins: Mapping[str, Iterable[str]]
    known: Mapping[SuiteKey, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    ordered: Callable[[LoadedSuite], LoadedSuite] = lambda suite: suite
    loaded: Mapping[Path, LoadedSuite] = field(default_factory=dict)
    _suites: SuiteMemo = field(default_factory=SuiteMemo)
    _modules: dict[str, ModuleType] = field(default_factory=dict)

    def read(self, path: Path) -> LoadedSuite:
        """The suite of a file in the checkout.

        Raises:
            LlmevalError: The file has faults, or what registers its evaluators is not there or fails.
        """
        return self.loaded.get(path) or self._suites.get(path, lambda: self._read(path))

    def _read(self, path: Path) -> LoadedSuite:
        """The suite of a file in the checkout, or that a Python file declares."""
        display, registry = display_path(path, self.root), self.registry(path)
        if OwnFiles(path).is_declared:
            from pytest_llmeval.run._declared import declared_suite

            return self.ordered(declared_suite(path, self.root).load(registry, root=self.root))
        return self.ordered(load_suite(path, registry, root=self.root, display_path=display))

    def registry(self, path: Path) -> Registry:
        """The registry of the suite of a file in the checkout.

        Raises:
            LlmevalError: What registers its evaluators is not there or fails.
        """
        registry = Registry.installed()
        for plugin in self.plugins.get(display_path(path, self.root), ()):
            self._register(plugin, registry)
        return registry

    def _register(self, plugin: str, registry: Registry) -> None:
        """Let a plugin or conftest register its evaluators."""
        try:
            if plugin not in self._modules:
                self._modules[plugin] = self._conftest(plugin) if plugin.endswith(".py") else import_module(plugin)
            getattr(self._modules[plugin], _HOOK)(registry=registry)
        except LlmevalError:
            raise
        except Exception as error:  # a user's module may raise anything
            raise LlmevalError(
                f"{plugin}: the plugin cannot register evaluators ({AnyError(error).full_text}), expected a "
                f"module with {_HOOK} that can be imported outside pytest"
            ) from error

    def _conftest(self, name: str) -> ModuleType:
        """Import a conftest of the checkout under the name that pytest gives to it."""
        path = (self.root / name).resolve()
        if path.name != _CONFTEST or not path.is_relative_to(self.root.resolve()):
            raise LlmevalError(f"{name}: expected a {_CONFTEST} inside {self.root}")
        from pytest_llmeval.run._declared import import_file

        return import_file(path, "conftest")

    def judges(self, key: SuiteKey, suite: LoadedSuite) -> Mapping[str, Mapping[str, str]]:
        """The settings by evaluator that decide the verdicts of judges on a suite."""
        del suite
        return self.known.get(key, {})

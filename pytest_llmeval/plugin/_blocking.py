"""Which fixtures of a case's test may matter to calls that are made before that test is set up."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_llmeval.plugin._payload import TAG
from pytest_llmeval.plugin._pytest_private import is_ours

if TYPE_CHECKING:
    from pytest_llmeval.plugin._pytest_private import FixtureInfo

    FixtureDefs = Mapping[str, Sequence[pytest.FixtureDef[Any]]]

FACTORIES = ("llmeval_target", "judge_client")


def blocking_fixture(names: Iterable[str], fixtures: "FixtureDefs") -> str:
    """The first fixture of one test only that can matter to an early call of the target; empty if none.

    Args:
        names: Of the fixtures that may matter.
        fixtures: Their definitions, the one that holds last.
    """
    for name in names:
        if name == "request":
            # A target that is made from the parameter of a model matrix is the same for all cases.
            targets = fixtures.get("llmeval_target", ())[-1:]
            if any("request" in target.argnames and not target.params for target in targets):
                return "llmeval_target"
            continue
        for defined in fixtures.get(name, ())[-1:]:
            if defined.scope != "function" or _is_plain(defined):
                continue
            return name
    return ""


def _is_plain(defined: "pytest.FixtureDef[Any]") -> bool:
    """Whether a fixture leaves nothing to undo after its test, so that early target calls may ignore it."""
    if is_ours(defined):
        return defined.argname != "eval_case"
    return defined.argname in FACTORIES and not inspect.isgeneratorfunction(defined.func)


def outlives_its_test(name: str, fixtures: "FixtureDefs", overrides: int = 0) -> bool:
    """Whether a fixture's value can be used after its test, so that targets may be called early.

    Args:
        name: Of the fixture.
        fixtures: The definitions of all fixtures that it uses, directly or not.
        overrides: How many definitions of that name, which use the one before them, are left aside.
    """
    known = fixtures.get(name, ())
    for defined in known[len(known) - 1 - overrides :][:1] if overrides < len(known) else ():
        if defined.scope != "function":
            return True
        used = all(
            argument != "request" and outlives_its_test(argument, fixtures, overrides + 1 if argument == name else 0)
            for argument in defined.argnames
        )
        return _is_plain(defined) and used
    return True


class InstalledPlugins:
    """The installed plugins of a run: until a mark or option asks, their autouse fixtures hold up no early target call.

    Args:
        config: Of the run.
    """

    _KEY = pytest.StashKey["InstalledPlugins"]()

    @classmethod
    def beside(cls, config: pytest.Config) -> "InstalledPlugins":
        """The installed pytest plugins of a run."""
        if cls._KEY not in config.stash:
            config.stash[cls._KEY] = cls(config)
        return config.stash[cls._KEY]

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._plugins: dict[str, list[object]] = {}
        for plugin, _ in config.pluginmanager.list_plugin_distinfo():
            name = getattr(plugin, "__name__", type(plugin).__module__)
            self._plugins.setdefault(name.partition(".")[0], []).append(plugin)

    def marks(self) -> set[str]:
        """The names of the marks that pytest plugins may act on: all that are registered by others than tags."""
        registered = (line.partition(":") for line in self._config.getini("markers"))
        return {name.partition("(")[0] for name, _, meaning in registered if meaning.strip() != TAG} - {"llmeval"}

    def concerning(self, info: "FixtureInfo") -> list[str]:
        """The fixtures of a test without those that only plugins ask for which nothing asks to act.

        Args:
            info: The fixtures of the test.
        """
        fixtures = info.name2fixturedefs
        reached = {name for name in info.initialnames if not self._rests(fixtures.get(name, ()))} | {*info.argnames}
        ahead = [*reached]
        while ahead:
            arguments = {argument for defined in fixtures.get(ahead.pop(), ()) for argument in defined.argnames}
            ahead += arguments - reached
            reached |= arguments
        return [name for name in info.names_closure if name in reached]

    def _rests(self, definitions: "Sequence[pytest.FixtureDef[Any]]") -> bool:
        """Whether a fixture is one of pytest plugins that no option asks to act."""
        packages = {defined.func.__module__.partition(".")[0] for defined in definitions}
        plugins = [plugin for package in packages for plugin in self._plugins.get(package, ())]
        return packages <= self._plugins.keys() and bool(plugins) and not any(map(self._is_asked, plugins))

    def _is_asked(self, plugin: object) -> bool:
        """Whether an option of a pytest plugin is given, or a line of the configuration."""
        declare = getattr(plugin, "pytest_addoption", None)
        if declare is None:
            return False
        declared = _Declarations()
        try:
            declare(*[declared for _ in inspect.signature(declare).parameters])
        except Exception:  # noqa: BLE001 (what a plugin does beside declaring options is its own)
            return True
        options = {name: getattr(self._config.option, name, default) for name, default in declared.options.items()}
        lines = {name: self._config.getini(name) for name in declared.lines}
        # What has no default is empty by its type, unless it is given.
        return options != declared.options or any(
            value != declared.lines[name] and (value or declared.lines[name]) for name, value in lines.items()
        )


class _Declarations:
    """Stands in for pytest's parser, which does not tell the options of plugins apart, and for its plugin manager."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self.lines: dict[str, Any] = {}

    def getgroup(self, *_: object, **__: object) -> "_Declarations":
        """This object, in place of a group of pytest's options: groups matter to the help only."""
        return self

    def add_hookspecs(self, *_: object) -> None:
        """Leave those aside: they are registered already."""

    def addoption(self, *names: str, **attributes: Any) -> None:
        """Note an option of the command line and its default."""
        long = next((name for name in names if name.startswith("--")), names[0])
        name = attributes.get("dest") or long.lstrip("-").replace("-", "_")
        implied = {"store_true": False, "store_false": True}.get(attributes.get("action", ""))
        self.options[name] = attributes.get("default", implied)

    def addini(self, name: str, *_: object, default: Any = None, **__: object) -> None:
        """Note a line of the configuration and its default."""
        self.lines[name] = default

"""A process that has loaded what most commands need, and forks for each: a process of its own without a cold start.

It has imported what commands import, and run pytest on a small suite, which loads plugins with their assertions
rewritten and compiles what our code keeps for the next suite. What depends on a folder or on a process is forgotten.
`running` starts this file.
"""

__all__ = ()

import atexit
import contextlib
import gc
import importlib.metadata
import io
import json
import os
import pkgutil
import re
import runpy
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from execnet import gateway_base, gateway_io

LIBRARIES = (
    *("aiohttp", "asyncio", "execnet.gateway_bootstrap", "filelock", "genai_prices.data", "jinja2", "jmespath"),
    *("numpy", "pdb", "pydantic", "pytest", "pwd", "rapidfuzz", "regex", "scipy.special", "sqlite3", "tabulate"),
    *("threadpoolctl", "unittest", "xml.etree.ElementTree", "yaml"),
)
REHEARSAL = """\
evaluators: [{text: {metrics: [exact_match, f1]}}, {judge: {mode: default_binary}}]
judge: {model: "openai:m", base_url: "http://127.0.0.1:9/v1", retries: 0}
snapshot: true
group_by: [topic]
thresholds: {f1: 0.5}
gates: [f1 >= 0.5, {metric: f1, by: topic, min: 0.4}]
cases:
  - {id: a, input: q, expected: x, prediction: x, labels: {topic: y}}
  - {id: b, input: q, expected: x, prediction: x}
"""

LEFT_OUT = ("anyio", "hypothesispytest", "platformdirs", "pytest-retry", "recording", "rerunfailures")
"""Plugins that few runs need, that start threads, or that can be configured once in a process."""

LEFT_TO_PYTEST = ("pytest_llmeval.plugin", "pytest_llmeval.baselines._syrupy_bridge")

PURE = ("adapter",)
"""Functions of ours whose results no folder and no process changes."""


class Spare:
    """A fork that waits for its turn as a worker of xdist."""

    def __init__(self, others: "list[Spare]") -> None:
        taken, self.to = os.pipe()
        self.back, given = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            for each in (*others, self):
                each.close()
            os.dup2(taken, 0)
            os.dup2(given, 1)
            _end(_work)
        os.close(taken)
        os.close(given)

    def close(self) -> None:
        os.close(self.to)
        os.close(self.back)


class Worker(gateway_base.Popen2IO):
    """What execnet talks to a spare by, once it works in the state of this process."""

    def __init__(self, spare: Spare, execmodel: Any) -> None:
        state = {"environment": dict(os.environ), "folder": str(Path.cwd())}
        os.write(spare.to, json.dumps(state).encode() + b"\n")
        super().__init__(os.fdopen(spare.to, "wb"), os.fdopen(spare.back, "rb"), execmodel)
        self._pid = spare.pid

    def wait(self) -> int:
        return os.waitpid(self._pid, 0)[1]

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)


def _work() -> None:
    """Do what execnet has a new Python do, where there is a run that wants a worker."""
    if state := sys.stdin.readline():
        _move(json.loads(state))
        exec(eval(sys.stdin.readline()), {"__name__": "__main__"})


def _lend(spares: list[Spare]) -> None:
    """Have execnet take spares instead of starting Python."""
    start = gateway_io.create_io

    def create_io(spec: Any, execmodel: Any) -> gateway_base.Popen2IO:
        return Worker(spares.pop(0), execmodel) if spares and spec.popen else start(spec, execmodel)

    gateway_io.create_io = create_io


def _move(state: Any) -> None:
    os.environ.clear()
    os.environ.update(state["environment"])
    time.tzset()
    os.chdir(state["folder"])


def _run(command: Any) -> None:
    """Do what ``python -m MODULE ...`` and ``python -c CODE ...`` do."""
    from xdist import workermanage

    for descriptor, name in enumerate((os.devnull, command["out"], command["err"])):
        opened = os.open(name, os.O_RDWR)
        os.dup2(opened, descriptor)
        os.close(opened)
    _move(command)
    if command["group"]:
        os.setsid()
    spares: list[Spare] = []
    for _ in range(command["workers"]):
        spares.append(Spare(spares))
    _lend(spares)
    folders = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    for path in (sys.path, workermanage._sys_path):  # xdist gives workers what the path was when Python started
        path[:0] = folders
    how, what, *rest = command["arguments"]
    sys.argv = [how, *rest]
    if how == "-m":
        sys.path.insert(0, str(Path.cwd()))
        sys.modules.pop(f"{what}.__main__", None)  # of which it would warn, were it imported here
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, "")
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})


def _end(work: Callable[[], None]) -> NoReturn:
    """Work, and end as Python does, except that nothing is taken apart that the end of the process frees anyway."""
    code = 1
    try:
        work()
        code = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        else:
            code = end.code or 0
    finally:
        if sys.exc_info()[0]:
            traceback.print_exc()
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _commands() -> Iterator[Any]:
    """Yield what is asked for, read without a buffer, which forks would share."""
    line = b""
    while part := os.read(0, 1 << 16):
        line += part
        if line.endswith(b"\n"):
            yield json.loads(line)
            line = b""


def _remember_distributions() -> None:
    """Read once what is installed; every run of pytest asks for all of it."""
    find, folders = importlib.metadata.distributions, set(sys.path)
    kept: Any = importlib.metadata.PathDistribution
    kept.read_text = cache(kept.read_text)
    for name in ("_normalized_name", "entry_points", "files", "metadata"):
        setattr(kept, name, property(cache(getattr(kept, name).fget)))
    installed = list(find())

    def distributions(**query: Any) -> "Iterable[importlib.metadata.Distribution]":
        if query:
            return find(**query)
        return chain(find(path=[folder for folder in sys.path if folder not in folders]), installed)

    importlib.metadata.distributions = distributions


def _remember_plugins() -> None:
    """Have pytest look only once for hooks, their arguments and fixtures among the names of a module or class."""
    from _pytest import fixtures
    from _pytest.config import PytestPluginManager as Plugins
    from pluggy import _hooks, _manager

    find = Plugins.parse_hookimpl_opts
    found: dict[tuple[ModuleType, str], Any] = {}

    def hook(plugins: Plugins, plugin: Any, name: str) -> Any:
        if type(plugin) is not ModuleType:
            return find(plugins, plugin, name)
        if (plugin, name) not in found:
            found[plugin, name] = find(plugins, plugin, name)
        return found[plugin, name]

    @cache
    def hooks_of(plugin: ModuleType) -> list[str]:
        return [name for name in dir(plugin) if name.startswith("pytest_")]

    @cache
    def fixtures_of(holder: ModuleType | type) -> list[str]:
        places = holder.__mro__ if isinstance(holder, type) else (holder,)
        made = fixtures.FixtureFunctionDefinition
        return sorted({name for place in places for name, value in vars(place).items() if type(value) is made})

    replaced: Any = Plugins, _manager, _hooks, fixtures
    replaced[0].parse_hookimpl_opts = hook
    replaced[1].dir = lambda plugin: hooks_of(plugin) if type(plugin) is ModuleType else dir(plugin)
    replaced[2].varnames = cache(_hooks.varnames)
    if hasattr(fixtures, "FixtureFunctionDefinition"):  # since pytest 8.4
        replaced[3].dir = lambda holder: fixtures_of(holder if isinstance(holder, ModuleType | type) else type(holder))


def _rehearse() -> None:
    """Run pytest on a suite twice, and forget what another run must find out by itself."""
    import pytest

    said = io.StringIO()
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name), contextlib.redirect_stdout(said):
        Path("pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        Path("rehearsal.eval.yaml").write_text(REHEARSAL, encoding="utf-8")
        arguments = ["--llmeval", "--llmeval-judge=off", *(f"-pno:{name}" for name in LEFT_OUT)]
        for more in ("--snapshot-update", "--llmeval-report=report.json"):
            assert pytest.main([*arguments, more]) == 0, said.getvalue()
    tempfile.tempdir = None
    for module in [each for name, each in sys.modules.items() if name.startswith("pytest_llmeval.")]:
        for kept in [*vars(module).values()]:  # asking one may load another
            if not isinstance(kept, ModuleType) and hasattr(kept, "cache_clear") and kept.__name__ not in PURE:
                kept.cache_clear()


def _load() -> None:
    _remember_distributions()
    for name in LIBRARIES:
        importlib.import_module(name)
    _remember_plugins()
    package = importlib.import_module("pytest_llmeval")
    for each in pkgutil.walk_packages(package.__path__, "pytest_llmeval."):
        if not each.name.startswith(LEFT_TO_PYTEST):
            importlib.import_module(each.name)
    _rehearse()
    importlib.import_module("xdist.dsession")  # pytest rewrites what plugins are only if it loads them first
    _prepare()
    _rest()


def _rest() -> None:
    """Be ready for forks."""
    assert threading.enumerate() == [threading.main_thread()], f"forks would lose {threading.enumerate()}"
    gc.collect()
    gc.freeze()  # a collection in a fork need not look at all this


def _prepare() -> None:
    """Have the first run of a fork find the plugins of pytest registered, unless it leaves some of them out."""
    from _pytest import config

    begin, prepared = config.get_config, config.get_config()
    names = {name for name, _ in prepared.pluginmanager.list_name_plugin()}

    def get_config(args: Sequence[str] | None = None, plugins: Any = None, **more: Any) -> config.Config:
        nonlocal prepared
        found, prepared = prepared, None
        given = tuple(args or ())
        if found is None or names.intersection(re.findall(r"-p ?no:(\w+)", " ".join(given))):
            return begin(args, plugins, **more)
        found.invocation_params = found.InvocationParams(args=given, plugins=plugins, dir=Path.cwd())
        if more.get("prog"):
            found._parser.prog = more["prog"]
        found.pluginmanager.consider_preparse(given, exclude_only=True)
        return found

    config.get_config = get_config


def _serve() -> None:
    """Fork for every command; reply with the id of the process, and with its exit code when it has ended.

    A fork that is to import libraries serves elsewhere from then on, and nothing waits for its end.
    """
    replies = os.dup(1)
    for command in _commands():
        serves = "libraries" in command
        pid = os.fork()
        if not pid:
            os.close(replies)
            _end(partial(_serve_with if serves else _run, command))
        os.write(replies, f"{pid}\n".encode())
        if not serves:
            os.write(replies, f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n".encode())


def _serve_with(command: Any) -> None:
    """Import libraries, and serve by two pipes that have names."""
    from _pytest.assertion.rewrite import AssertionRewritingHook

    AssertionRewritingHook._warn_already_imported = lambda *_: None  # type: ignore[method-assign]  # plugins among them
    for name in command["libraries"]:
        importlib.import_module(name)
    _rest()
    for descriptor, (name, mode) in enumerate(((command["commands"], os.O_RDONLY), (command["replies"], os.O_WRONLY))):
        opened = os.open(name, mode)
        os.dup2(opened, descriptor)
        os.close(opened)
    _serve()


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file
    _load()
    _serve()

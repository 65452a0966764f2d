"""All uses of pytest's private names; each function gives the reason for it."""

import logging
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

import pytest

from pytest_llmeval.core import LogWriter
from pytest_llmeval.plugin._options import WorkerTerms
from pytest_llmeval.services import Secrets

if TYPE_CHECKING:
    import asyncio

    from _pytest.fixtures import FuncFixtureInfo

FixtureInfo: TypeAlias = "FuncFixtureInfo"
"""The names of fixtures that a test asks for, and their definitions; pytest gives its type no public name."""


class SyntheticModule(pytest.Module):
    """A module built in memory instead of imported.

    pytest's own classes override ``_getobj`` to define what they collect; there is no public counterpart.
    """

    @cached_property
    def built_module(self) -> types.ModuleType:
        """The module, built once: pytest reads it repeatedly."""
        return self.make_module()

    def make_module(self) -> types.ModuleType:
        """A new module for pytest, built in memory.

        Raises:
            pytest.Collector.CollectError: There can be none.
        """
        raise NotImplementedError

    def _getobj(self) -> types.ModuleType:
        return self.built_module


def fixture_info(function: pytest.Function) -> FixtureInfo:
    """The fixtures of a test function: ``Function`` takes them as a parameter, but has no public reader."""
    return function._fixtureinfo  # noqa: SLF001


def is_ours(defined: "pytest.FixtureDef[Any]") -> bool:
    """Whether a fixture that a test uses is one of this plugin."""
    return defined.func.__module__.startswith("pytest_llmeval.")


def fixture_functions(item: pytest.Item, name: str) -> list[Callable[..., object]]:
    """The functions of a fixture that a pytest item finds, the one that it gets last."""
    return [definition.func for definition in item.session._fixturemanager.getfixturedefs(name, item) or ()]  # noqa: SLF001


def has_fixture(session: pytest.Session, name: str) -> bool:
    """Whether a plugin or initial conftest has a fixture of this name, which pytest tells nobody in public."""
    return bool(session._fixturemanager.getfixturedefs(name, session))  # noqa: SLF001


def request_of(function: pytest.Function) -> pytest.FixtureRequest:
    """The request of a test that is set up: pytest's hooks get the test alone."""
    return function._request  # noqa: SLF001


def is_parameter(defined: "pytest.FixtureDef[Any]") -> bool:
    """Whether a fixture represents a value of ``parametrize``, which pytest does not mark in public."""
    return defined.func.__module__ == "_pytest.python"


def loop_scope(function: pytest.Function) -> str | None:
    """The scope of the event loop in which pytest-asyncio runs a test, which it tells nobody; ``None`` for others."""
    return getattr(function, "_loop_scope", None) if type(function).__module__.startswith("pytest_asyncio") else None


def lasts(function: pytest.Function) -> bool:
    """Whether the event loop of a test outlives it; that of pytest-asyncio is made to, unless it has another.

    pytest-asyncio does not say on which of its loops a test runs.
    """
    kind, mark = type(function), function.get_closest_marker("asyncio")
    if mark is None or not kind.__module__.startswith("pytest_asyncio"):
        return True
    if loop_scope(function) == "function":
        function.add_marker(pytest.mark.asyncio(**{**mark.kwargs, "loop_scope": "module"}), append=False)
        vars(function).pop("_loop_scope")
    return hasattr(kind, "_loop_scope")


def session_loop(request: pytest.FixtureRequest) -> "asyncio.AbstractEventLoop":
    """The loop that pytest-asyncio keeps for the session; it has no public way to outside of a coroutine."""
    runner: asyncio.Runner = request.getfixturevalue("_session_scoped_runner")
    return runner.get_loop()


@contextmanager
def lasting_anyio_loop(backend: Any) -> Iterator[None]:
    """Keep the event loop of anyio's plugin, which else ends with each test; there is no public way to."""
    from anyio import pytest_plugin

    name, options = pytest_plugin.extract_backend_and_options(backend)
    with pytest_plugin.get_runner(name, options) if name == "asyncio" else nullcontext():
        yield


def next_of_worker(config: pytest.Config, *, only_next: bool) -> Sequence[int]:
    """The positions of the tests that an xdist worker runs next; xdist shows one of them in public.

    Args:
        config: Of the worker.
        only_next: Whether others may take those that are still to come.
    """
    interactor = next(
        (plugin for plugin in config.pluginmanager.get_plugins() if hasattr(plugin, "nextitem_index")), None
    )
    if interactor is None or not isinstance(interactor.nextitem_index, int):
        return ()
    with interactor.torun.lock() as waiting:
        later = () if only_next else tuple(position for position in waiting if isinstance(position, int))
    return (interactor.nextitem_index, *later)


def record_whole_name(function: pytest.Function) -> None:
    """Make ``--lf`` find ids with a bracket in their name.

    pytest 9.2 reads what follows the first bracket of a structured id as parameters; it has no way to pass such an id.
    """
    if "[" in function.originalname and hasattr(function, "_id"):
        function._id = function._id.parse(function.nodeid)  # noqa: SLF001


def rerun_last_failed(config: pytest.Config, nodeids: Iterable[str]) -> None:
    """Make ``--lf`` rerun items that passed; pytest has no other way to add to its list than a failed report."""
    plugin: Any = config.pluginmanager.get_plugin("lfplugin")
    for nodeid in nodeids if plugin is not None else ():
        report = pytest.TestReport(nodeid, (nodeid.partition("::")[0], None, nodeid), {}, "failed", None, "call")
        plugin.pytest_runtest_logreport(report)


def deselected_by_pytest() -> bool:
    """Whether pytest itself calls ``pytest_deselected``: the hook does not name its caller."""
    frame = sys._getframe(1)  # noqa: SLF001 (no hook says who calls)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        "pluggy",
        "pytest_llmeval",
    ):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).startswith("_pytest.")


def load_conftests(config: pytest.Config, folder: Path) -> None:
    """Load the conftests at and above a folder; pytest loads only those of folders that it collects."""
    options: dict[str, Any] = {"rootpath": config.rootpath}
    if pytest.version_tuple >= (8, 1):
        options["consider_namespace_packages"] = config.getini("consider_namespace_packages")
    config.pluginmanager._loadconftestmodules(folder, config.getoption("importmode"), **options)  # noqa: SLF001


def tear_down(session: pytest.Session, nextitem: pytest.Item | None) -> None:
    """Tear down the fixtures that the next item does not need, after one that was not run by pytest's own protocol."""
    session._setupstate.teardown_exact(nextitem)  # noqa: SLF001 (pytest's runner has no public way to)


def know_passing(categories: Iterable[str]) -> None:
    """Make pytest's last line show categories of reports in green, after "passed".

    A category that it does not know makes the line of a green run yellow; there is no public list of those it knows.
    """
    from _pytest import terminal

    known = terminal.KNOWN_TYPES
    new = [category for category in categories if category not in known]
    place = known.index("passed") + 1
    vars(terminal)["KNOWN_TYPES"] = (*known[:place], *new, *known[place:])
    terminal._color_for_type.update(dict.fromkeys(new, "green"))  # noqa: SLF001


def terminal_width(reporter: "pytest.TerminalReporter") -> int:
    """The width of the terminal that pytest assumes, which only the writer behind the reporter knows."""
    return reporter._tw.fullwidth  # noqa: SLF001


def terminal_columns(config: pytest.Config) -> int:
    """The width of the terminal; xdist workers receive it from the main process."""
    terms = WorkerTerms.of_process(config)
    reporter = None if hasattr(config, "workerinput") else config.pluginmanager.get_plugin("terminalreporter")
    return terms.columns if reporter is None else terminal_width(reporter)


def terminal_file(reporter: "pytest.TerminalReporter") -> TextIO:
    """The file of the terminal: progress is written while test output is captured."""
    return reporter._tw._file  # noqa: SLF001


def worker_process(node: Any) -> int | None:
    """The process id of an xdist worker on this machine: execnet knows it, and has no public name for it."""
    return int(node.gateway._rinfo().pid) if node.gateway.spec.popen else None  # noqa: SLF001


class _RedactedLogs(logging.Formatter):
    """A formatter of pytest's log records like another one, without secrets and what UTF-8 cannot write."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self._formatter = formatter

    def format(self, record: logging.LogRecord) -> str:
        """The line of a log record, without secrets."""
        return encodable(Secrets.of_variables().without(self._formatter.format(record)))


def redact_live_logs(config: pytest.Config) -> None:
    """Keep secrets out of logs that are shown or written while tests run; pytest has no hook for what they say."""
    plugin: Any = config.pluginmanager.get_plugin("logging-plugin")
    for handler in () if plugin is None else (plugin.log_cli_handler, plugin.log_file_handler):
        if handler.formatter is not None:
            handler.setFormatter(_RedactedLogs(handler.formatter))


def write_log(config: pytest.Config) -> None:
    """Let pytest's terminal write what CI shows and does not obey.

    The file of pytest's writer is private, and the writer has no public hook for what other plugins and pytest write.
    """
    if config.pluginmanager.has_plugin("terminalreporter"):
        writer = config.get_terminal_writer()
        writer._file = LogWriter(writer._file)  # noqa: SLF001


def write_order(config: pytest.Config, order: str) -> None:
    """Write a line to pytest's terminal that CI is to obey, such as a GitHub annotation."""
    log = config.get_terminal_writer()._file  # noqa: SLF001
    if isinstance(log, LogWriter):
        log.write_order(order)


def encodable(text: str) -> str:
    r"""A text that pytest's logs can write as UTF-8: halves of surrogate pairs are escaped.

    >>> encodable("a\ud800")
    'a\\ud800'
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()

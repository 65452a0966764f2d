"""The pytest plugin: options and hooks, each short, calling plain functions. Without ``--llmeval`` it does nothing."""

__all__ = ()

import gc
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_llmeval.fixtures import eval_case, evaluators, llmeval_target  # noqa: F401 (pytest finds fixtures here)

if TYPE_CHECKING:
    from pytest_llmeval.runtime import Suites
    from pytest_llmeval.session import Run

SUITE_FILES = ("*.eval.yaml", "*.eval.yml", "*.eval.json")
REPORT_SUFFIXES = (".json", ".md")
_FREEZE_FROM = 2_000


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("llmeval", "evaluation as tests")
    group.addoption(
        "--llmeval", action="store_true", default=None, help="collect eval suites (*.eval.yaml, *.eval.json)"
    )
    group.addoption(
        "--llmeval-report",
        action="append",
        default=[],
        metavar="PATH",
        dest="llmeval_report",
        help="write a report; by suffix .json or .md; repeatable",
    )
    group.addoption(
        "--llmeval-predictions",
        default=None,
        metavar="PATH",
        dest="llmeval_predictions",
        help="JSONL file that records every prediction and from which they are replayed",
    )
    group.addoption(
        "--llmeval-predictions-mode",
        default="auto",
        choices=("auto", "replay", "record", "refresh"),
        dest="llmeval_predictions_mode",
        help="auto: replay what is recorded, ask the target for the rest; replay: never ask; "
        "record: ask for every case; refresh: ask, and forget recordings that this run did not make",
    )
    parser.addini("llmeval", "collect eval suites", type="bool", default=False)
    parser.addini("llmeval_files", "name patterns of suite files", type="args", default=list(SUITE_FILES))


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the registration hook."""
    from pytest_llmeval import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def enabled(config: pytest.Config) -> bool:
    """Return whether suites are collected."""
    asked = config.getoption("llmeval")
    return bool(config.getini("llmeval")) if asked is None else bool(asked)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a wrong command line; register the hooks of this process's role."""
    config.addinivalue_line(
        "markers", "llmeval(path): run the test once per case of an eval suite; suite items carry it too"
    )
    from pytest_llmeval.environment import open_suites, refuse_suite_arguments, report_paths

    worker = hasattr(config, "workerinput")
    if not enabled(config):
        if not worker:
            refuse_suite_arguments(config)
        return
    suites = open_suites(config)
    config.pluginmanager.register(ItemHooks(config, suites), "llmeval_items")
    if not worker:
        from pytest_llmeval.session import Run

        paths = report_paths(config, REPORT_SUFFIXES)
        config.pluginmanager.register(ControllerHooks(Run(config, suites), paths), "llmeval_controller")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a Python test once per case of the suite that its marker names."""
    mark = metafunc.definition.get_closest_marker("llmeval")
    path = mark and (mark.args[0] if mark.args else mark.kwargs.get("path"))
    if path:
        from pytest_llmeval.parametrize import over_suite

        over_suite(metafunc, str(path), enabled=enabled(metafunc.config))


class ItemHooks:
    """Hooks of every process that collects and runs items."""

    def __init__(self, config: pytest.Config, suites: "Suites") -> None:
        from pytest_llmeval.collect import SUITES, payload_of

        self._suites = suites
        self._payload_of = payload_of
        self._patterns = config.getini("llmeval_files")
        config.stash[SUITES] = suites

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        """Collect without garbage collection: what collecting makes lives until the end."""
        if not gc.isenabled():
            return (yield)
        gc.disable()
        try:
            return (yield)
        finally:
            gc.enable()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep the garbage collector from walking thousands of items again and again while they run."""
        if len(session.items) > _FREEZE_FROM:
            gc.freeze()

    def pytest_unconfigure(self) -> None:
        """Undo the freeze, and close the event loop of async targets."""
        gc.unfreeze()
        self._suites.predictor.close()

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Make a module of a suite file."""
        from pytest_llmeval.collect import OWN_FOLDER, EvalModule
        from pytest_llmeval.environment import is_suite_file

        if file_path.parent.name == OWN_FOLDER or not is_suite_file(file_path.name, self._patterns):
            return None
        return EvalModule.from_parent(parent, path=file_path)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: "pytest.CallInfo[None]") -> Generator[None, Any, Any]:
        """Put an item's result on its report."""
        report = yield
        if call.when != "teardown":
            payload = self._payload_of(item, call, report)
            if payload is not None:
                report.llmeval = payload
        return report


class ControllerHooks:
    """Hooks of the one process to which all reports come."""

    def __init__(self, run: "Run", paths: list[Path]) -> None:
        self._run = run
        self._paths = paths
        self._written: list[Path] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather results; they are taken off the report, which others keep."""
        self._run.take(report)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note which suites are to run."""
        self._run.expect(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Note which suites are to run, as a worker has collected them."""
        self._run.expect(ids)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Judge gates once, after the last case."""
        if session.config.option.collectonly:
            return (yield)
        self._run.allow_faulty_suites(session)
        try:
            result = yield
        except BaseException as error:
            self._run.salvage(getattr(session, "items", ()))  # xdist's main process has none
            self._run.finish(session, ended=str(error) or type(error).__name__)
            raise
        self._run.finish(session)
        return result

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report files; a run whose report cannot be written does not pass."""
        if self._run.report is not None:
            self._written = self._run.write(self._paths)
            if self._written != self._paths and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        """Print the summary."""
        from pytest_llmeval.reports.terminal import print_summary

        if self._run.report is not None:
            print_summary(terminalreporter, self._run.report, self._run.notes, self._written)

"""The pytest plugin: short hooks that call plain functions. Without ``--llmeval`` it does nothing."""

import inspect
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_llmeval.core import CHECKS_DEFERRED, with_value
from pytest_llmeval.plugin._options import (
    add_options,
    idle_settings,
    is_enabled,
    quiet_for_agents,
    refuse_idle_options,
    refuse_suite_arguments,
    with_missing_flag,
)
from pytest_llmeval.reports import ReportFormat

if TYPE_CHECKING:
    from pytest_llmeval.suites import Registry


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add this plugin's options and settings to pytest."""
    add_options(parser, pluginmanager)


class RegistrationHook:
    """The hook of this plugin that ``conftest.py`` files and other plugins implement."""

    @staticmethod
    @pytest.hookspec
    def pytest_llmeval_register(registry: "Registry") -> None:
        """Register evaluators, checks and sources of your own.

        Called once per suite file and process, before the file is read. Plugins and the conftests at and above the file
        take part: what a conftest registers is known to the suites in its folder and below, as its fixtures are.

        Example, in a ``conftest.py``::

            def pytest_llmeval_register(registry):
                registry.register(Length)
                registry.register_source(Tickets)

        Args:
            registry: A new one, with what ships with this package and what distributions declare as entry points.

        Raises:
            LlmevalError: Something cannot be registered, for instance because its name is taken; the suite file is then
                reported as faulty.
        """


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the hook by which conftests and plugins register evaluators."""
    pluginmanager.add_hookspecs(RegistrationHook)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, object, object]:
    """Begin to record what suites use before any conftest is imported, in a run that stores it or compares with it."""
    options = early_config.known_args_namespace
    enabled = early_config.getini("llmeval") if options.llmeval is None else options.llmeval
    approves = getattr(options, "update_snapshots", False) or getattr(options, "update_new_snapshots_only", False)
    keeps = any(str(report).endswith(ReportFormat.SHARD_SUFFIX) for report in options.llmeval_report)
    if enabled and (approves or keeps or options.llmeval_affected is not None):
        from pytest_llmeval.data import repository_top
        from pytest_llmeval.services import UseRecord

        used = UseRecord.begin(repository_top(early_config.rootpath) or early_config.rootpath, early_config.option)
        early_config.add_cleanup(used.stop)
    with with_value(CHECKS_DEFERRED, True):
        return (yield)


def pytest_configure(config: pytest.Config) -> None:
    """Check the command line; register the hooks for the role of this process."""
    worker = hasattr(config, "workerinput")
    if is_enabled(config):
        from pytest_llmeval.data import collector_paused

        _add_marker(config)
        if not worker:
            config.pluginmanager.register(ScoreHooks(), "llmeval_scores")
        quiet_for_agents(config)
        with collector_paused():
            from pytest_llmeval.plugin._run_hooks import register_suites

            register_suites(config, worker=worker)
    elif not worker:
        refuse_suite_arguments(config)
        refuse_idle_options(config)


def _add_marker(config: pytest.Config) -> None:
    """Register the marker ``llmeval`` of tests over suites with pytest."""
    config.addinivalue_line(
        "markers", "llmeval(path): run the test once per case of an eval suite; items of suites have this marker too"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Let tests with the marker be imported under ``--strict-markers`` also without ``--llmeval``.

    ``--markers`` starts no session: without ``--llmeval`` it lists what it lists without this plugin.
    """
    if not is_enabled(session.config):
        _add_marker(session.config)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Say what to add if ids are not found because suites are not collected."""
    try:
        with with_value(CHECKS_DEFERRED, True):
            return (yield)
    except pytest.UsageError as error:
        raise with_missing_flag(error, session.config) from None


def pytest_report_header(config: pytest.Config) -> str | None:
    """Name settings of this plugin without effect in the header of a pytest run."""
    idle = ", ".join(idle_settings(config))
    return f"llmeval: off; {idle} in addopts: no effect without --llmeval" if idle else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a Python test once per case of the suite that it, or its marker, names."""
    suite = getattr(metafunc.function, "llmeval_suite", None)
    mark = metafunc.definition.get_closest_marker("llmeval")
    if suite is None and mark is not None:
        suite = mark.args[0] if mark.args else mark.kwargs.get("path")
    if suite:
        from pytest_llmeval.plugin._collect import over_suite

        named = suite if hasattr(suite, "load") else str(suite)
        over_suite(metafunc, named, enabled=is_enabled(metafunc.config))
        if is_enabled(metafunc.config) and inspect.iscoroutinefunction(metafunc.function):
            run_together(metafunc.config)


def run_together(config: pytest.Config) -> None:
    """Register what runs async tests over suites, which loads asyncio, once the first one is collected."""
    if config.pluginmanager.has_plugin("llmeval_async_tests"):
        return
    from pytest_llmeval.plugin._async_tests import AsyncTests
    from pytest_llmeval.plugin._payload import RUNNER

    config.pluginmanager.register(AsyncTests(config, config.stash[RUNNER]), "llmeval_async_tests")


_EVALUATED, _ASSERTED = "llmeval_evaluated", "llmeval_scores"
_COLLECTORS = {
    _EVALUATED: "pytest_llmeval.plugin._evaluate:TestEvaluations",
    _ASSERTED: "pytest_llmeval.plugin._score_snapshot:PythonScores",
}
"""Attribute in which a report has the scores of a test, to the class that collects them."""


class ScoreHooks:
    """Hooks of the main process for tests that use ``score_snapshot`` or ``evaluate``."""

    def __init__(self) -> None:
        self._collected: dict[str, Any] = {}
        self._failed: set[str] = set()
        self._uncollected = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather scores of tests and remove them from the report, which other plugins keep."""
        for attribute, collector in _COLLECTORS.items():
            text = report.__dict__.pop(attribute, None)
            if text is not None:
                from pytest_llmeval.core import resolve

                if attribute not in self._collected:
                    self._collected[attribute] = resolve(collector)()
                self._collected[attribute].take(report.nodeid, text, passed=report.nodeid not in self._failed)
        if report.when == "setup" or report.passed:
            self._failed.discard(report.nodeid)
        else:
            self._failed.add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note that pytest could not collect something."""
        self._uncollected = self._uncollected or report.failed

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Approve the scores of tests once the loop has ended normally."""
        result = yield
        if scores := self._collected.get(_ASSERTED):
            scores.settle(session, uncollected=self._uncollected)
        return result

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        """List the scores of tests."""
        evaluations = self._collected.get(_EVALUATED)
        if evaluations is None or terminalreporter.verbosity < 0:
            return
        terminalreporter.section("llmeval: scores of tests")
        for line in evaluations.lines(everything=terminalreporter.verbosity > 0):
            terminalreporter.write_line(line)

"""The pytest plugin: short hooks that call plain functions. Without ``--llmeval`` it does nothing."""

import gc
import inspect
import os
import sys
from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_llmeval.plugin.fixtures import (  # noqa: F401 (pytest finds fixtures here)
    case,
    eval_case,
    evaluate,
    evaluators,
    gate,
    judge,
    judge_client,
    llmeval_target,
    score_snapshot,
)
from pytest_llmeval.plugin.options import (
    SHARD,
    add_options,
    idle_settings,
    is_enabled,
    is_suite_file,
    longest_test_s,
    make_runner,
    nothing_to_run,
    option_value,
    quiet_for_agents,
    refuse_anchor_alone,
    refuse_idle_options,
    refuse_misnamed_suites,
    refuse_suite_arguments,
    report_paths,
    shard_of_run,
    with_missing_flag,
)

if TYPE_CHECKING:
    from pytest_llmeval.plugin.evaluate import TestEvaluations
    from pytest_llmeval.plugin.payload import SuiteLoader
    from pytest_llmeval.plugin.score_snapshot import PythonScores
    from pytest_llmeval.plugin.session import Run
    from pytest_llmeval.run.case_runner import CaseRunner
    from pytest_llmeval.suite.registry import Registry

_SETTLED_AT_ONCE = 1_000
"""Results after which garbage collection ignores them: walking all of them repeatedly takes a fifth of a long run."""

LEFT_OUT = "llmeval_left_out"
"""Key under which workers of xdist report what they collected and left out."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the options."""
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
    """Add the registration hook."""
    pluginmanager.add_hookspecs(RegistrationHook)


def pytest_configure(config: pytest.Config) -> None:
    """Check the command line; register the hooks for the role of this process."""
    config.addinivalue_line(
        "markers", "llmeval(path): run the test once per case of an eval suite; items of suites have this marker too"
    )
    worker = hasattr(config, "workerinput")
    if not worker:
        config.pluginmanager.register(ScoreHooks(config), "llmeval_scores")
    if is_enabled(config):
        from pytest_llmeval.data.files.documents import collector_paused

        quiet_for_agents(config)
        with collector_paused():
            register_suites(config, worker=worker)
    elif not worker:
        refuse_suite_arguments(config)
        refuse_idle_options(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Say what to add if ids are not found because suites are not collected."""
    try:
        return (yield)
    except pytest.UsageError as error:
        raise with_missing_flag(error, session.config) from None


def pytest_report_header(config: pytest.Config) -> str | None:
    """Name settings without effect in this run."""
    idle = ", ".join(idle_settings(config))
    return f"llmeval: off; {idle} in addopts: no effect without --llmeval" if idle else None


def register_suites(config: pytest.Config, *, worker: bool) -> None:
    """Register the hooks of a run that collects suites.

    Args:
        config: Of the session.
        worker: Whether this process is one of xdist's workers.
    """
    from pytest_llmeval.plugin.payload import LOADER, RUNNER, SuiteLoader
    from pytest_llmeval.plugin.progress import CarryHooks, CaseCounter, StopHooks, StopWatchHooks, Termination, ordered

    runner = make_runner(config)
    judges_off = runner.options.mode == "off"
    loader = SuiteLoader(config, runner, partial(ordered, config=config, judges_off=judges_off))
    config.stash[RUNNER], config.stash[LOADER] = runner, loader
    items = ItemHooks(config, runner, loader)
    config.pluginmanager.register(items, "llmeval_items")
    config.add_cleanup(items.unfreeze)  # after pytest's last look at garbage, which tests leave and not modules
    config.pluginmanager.register(Termination(), "llmeval_termination")
    if config.option.llmeval_affected is not None:
        config.pluginmanager.register(CarryHooks(config, runner, loader), "llmeval_carry")
    elif option_value(config, "refresh"):
        raise pytest.UsageError(
            "found --llmeval-refresh, expected --llmeval-affected with it: it runs some of the others"
        )
    stops = StopHooks(config)
    config.pluginmanager.register(stops, "llmeval_stops")
    shows_progress = config.get_verbosity() >= 0
    if shows_progress:
        config.pluginmanager.register(CaseCounter(runner.activity), "llmeval_case_counter")
    if config.option.llmeval_plan:
        from pytest_llmeval.plugin.session import PlanHooks, refuse_without_meaning, stay_in_one_process

        refuse_misnamed_suites(config)
        refuse_without_meaning(config)
        stay_in_one_process(config)
        config.pluginmanager.register(PlanHooks(config, runner, loader), "llmeval_plan")
    elif not worker:
        from pytest_llmeval.plugin.presentation import CATEGORIES, FoldedFailures
        from pytest_llmeval.plugin.progress import Progress
        from pytest_llmeval.plugin.pytest_private import know_passing
        from pytest_llmeval.plugin.session import Run

        know_passing(CATEGORIES)
        refuse_anchor_alone(config)
        refuse_misnamed_suites(config)
        paths = report_paths(config)
        run = Run(config, loader, runner)
        config.pluginmanager.register(ControllerHooks(run, paths), "llmeval_controller")
        config.pluginmanager.register(StopWatchHooks(run, stops.board), "llmeval_stop_watch")
        config.pluginmanager.register(FoldedFailures(run.record), "llmeval_folded_failures")
        if shows_progress:
            config.pluginmanager.register(Progress(config, runner.snapshot), "llmeval_progress")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a Python test once per case of the suite that it, or its marker, names."""
    suite = getattr(metafunc.function, "llmeval_suite", None)
    mark = metafunc.definition.get_closest_marker("llmeval")
    if suite is None and mark is not None:
        suite = mark.args[0] if mark.args else mark.kwargs.get("path")
    if suite:
        from pytest_llmeval.plugin.collect import over_suite

        named = suite if hasattr(suite, "load") else str(suite)
        over_suite(metafunc, named, enabled=is_enabled(metafunc.config))
        if is_enabled(metafunc.config) and inspect.iscoroutinefunction(metafunc.function):
            run_together(metafunc.config)


def run_together(config: pytest.Config) -> None:
    """Register what runs async tests over suites, which loads asyncio, once the first one is collected."""
    if config.pluginmanager.has_plugin("llmeval_async_tests"):
        return
    from pytest_llmeval.plugin.async_tests import AsyncTests
    from pytest_llmeval.plugin.payload import RUNNER

    config.pluginmanager.register(AsyncTests(config, config.stash[RUNNER]), "llmeval_async_tests")


class ScoreHooks:
    """Hooks of the main process for tests that use ``score_snapshot`` or ``evaluate``."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._scores: PythonScores | None = None
        self._evaluations: TestEvaluations | None = None
        self._uncollected = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather scores and remove them from the report, which other plugins keep."""
        if "llmeval_evaluated" in report.__dict__:
            if self._evaluations is None:
                from pytest_llmeval.plugin.evaluate import TestEvaluations

                self._evaluations = TestEvaluations()
            self._evaluations.take(report)
        text = report.__dict__.pop("llmeval_scores", None)
        if text is None:
            return
        if self._scores is None:
            from pytest_llmeval.plugin.score_snapshot import PythonScores

            self._scores = PythonScores(self._config)
        self._scores.take(report.nodeid, text)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note that something could not be collected."""
        self._uncollected = self._uncollected or report.failed

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Approve the scores once the loop has ended normally."""
        result = yield
        if self._scores is not None:
            self._scores.settle(session, uncollected=self._uncollected)
        return result

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        """List the scores of tests."""
        if self._evaluations is None or terminalreporter.verbosity < 0:
            return
        terminalreporter.section("llmeval: scores of tests")
        for line in self._evaluations.lines(everything=terminalreporter.verbosity > 0):
            terminalreporter.write_line(line)


class ItemHooks:
    """Hooks of every process that collects and runs items."""

    def __init__(self, config: pytest.Config, runner: "CaseRunner", loader: "SuiteLoader") -> None:
        from pytest_llmeval.plugin.collect import link_followers
        from pytest_llmeval.plugin.payload import hand_over, keys_of, require_score
        from pytest_llmeval.plugin.presentation import make_presentable
        from pytest_llmeval.plugin.pytest_private import deselected_by_pytest
        from pytest_llmeval.plugin.session import leave_to_others, note_selection

        self._leave_to_others = leave_to_others
        self._note_selection = note_selection
        self._collected: list[pytest.Item] = []
        self._deselected_by_pytest = deselected_by_pytest
        self._require_score = require_score
        self._runner = runner
        self._loader = loader
        self._keys_of = keys_of
        self._make_presentable = make_presentable
        self._hand_over = hand_over
        self._link_followers = link_followers
        self._patterns = config.getini("llmeval_files")
        self._froze = False
        self._handed_over = 0
        self._whole_run = not hasattr(config, "workerinput")
        self._process = os.getpid()

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        """Collect without garbage collection: collected items live until the end."""
        from pytest_llmeval.data.files.documents import collector_paused

        with collector_paused():
            return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Remember all items before selection; drop those of other shards."""
        self._collected = list(items)
        shard = shard_of_run(config)
        if shard is not None:
            self._leave_to_others(config, items, shard)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Note what pytest's options deselect, so that merging does not miss it."""
        if self._deselected_by_pytest():
            self._loader.unwanted.update(self._keys_of(items))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Link each case to the next ones; keep the garbage collector from walking modules and items repeatedly."""
        self._link_followers(session.items)
        self._note_selection(self._loader, self._collected, session.items)
        self._collected = []
        if session.config.option.llmeval_require_gates:
            self._loader.drop_all_but(self._keys_of(session.items).values())
        if self._keys_of(session.items):
            self._froze = True
            gc.freeze()

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Finish the calls that a worker makes for others, and report what it left out."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[LEFT_OUT] = self._loader.left_out()
        ended_early = session.shouldfail or exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if self._runner.options.shares and not ended_early:
            self._runner.finish(longest_test_s(session.config))

    def pytest_unconfigure(self) -> None:
        """Stop background work, release targets, close the cache."""
        self._runner.close(whole_run=self._whole_run)

    def unfreeze(self) -> None:
        """Undo the freeze."""
        if self._froze:
            gc.unfreeze()

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Make a module of a suite file."""
        from pytest_llmeval.data.files.places import OWN_FOLDER
        from pytest_llmeval.plugin.collect import EvalModule

        if file_path.parent.name == OWN_FOLDER:
            return None
        if not is_suite_file(file_path.name, self._patterns):
            self._loader.note_misnamed(file_path)
            return None
        return EvalModule.from_parent(parent, path=file_path)

    def pytest_pycollect_makeitem(self, collector: pytest.Collector, name: str, obj: object) -> pytest.Collector | None:
        """Collect a suite that a module declares, and that no test function runs."""
        del name
        declared = sys.modules.get("pytest_llmeval.run.declared")  # loaded by the module, if it declares one
        if declared is None or not isinstance(obj, declared.DeclaredSuite) or obj.is_tested:
            return None
        from pytest_llmeval.plugin.collect import EvalModule

        return EvalModule.from_module(obj, collector)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Fail a test that takes a case but does not score it."""
        result = yield
        self._require_score(item)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: "pytest.CallInfo[None]") -> Generator[None, Any, Any]:
        """Put an item's result on its report."""
        report = yield
        self._make_presentable(item, report)
        # Plugins such as pytest-forked run an item in a child, and send its report here as plain data.
        here = self._whole_run and os.getpid() == self._process
        if self._hand_over(item, call, report, encoded=not here):
            self._handed_over += 1
            if self._froze and self._handed_over % _SETTLED_AT_ONCE == 0:
                gc.freeze()  # results live until the end, like items
        return report


class ControllerHooks:
    """Hooks of the main process, which receives all reports."""

    def __init__(self, run: "Run", paths: list[Path]) -> None:
        from pytest_llmeval.plugin.payload import CARRIED_CATEGORY, KNOWN, NOT_SCORED, UNNEEDED_CATEGORY, keys_of
        from pytest_llmeval.plugin.presentation import category_of
        from pytest_llmeval.plugin.pytest_private import write_log

        self._write_log = write_log
        self._keys_of = keys_of
        self._words = {
            KNOWN: ("k", "KNOWN FAILURE"),
            NOT_SCORED: ("n", "NOT SCORED"),
            UNNEEDED_CATEGORY: ("", "NOT NEEDED"),
            CARRIED_CATEGORY: ("", "CARRIED"),
        }
        self._category_of = category_of
        self._run = run
        self._paths = paths
        self._written: list[Path] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Let the log of CI obey nothing that a model wrote."""
        self._write_log(session.config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather results and remove them from the report, which other plugins keep."""
        self._run.take(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: "pytest.CollectReport | pytest.TestReport"
    ) -> tuple[str, str, str] | None:
        """Count gates and snapshots separately from cases, and print no letter for them; count known failures."""
        category = self._category_of(report)
        if category in self._words:
            return category, *self._words[category]
        word = "UNDECIDED" if category.endswith("undecided") else report.outcome.upper()  # pytest knows it as skipped
        return (category, "", word) if category else None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected."""
        if report.failed:
            self._run.note_uncollected(report.nodeid, report.longreprtext)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note the suites of the run."""
        self._run.expect((item.nodeid for item in session.items), self._keys_of(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, config: pytest.Config, specs: Sequence[object]) -> None:
        """Measure the overhead of workers if all are on this machine and each test runs once."""
        if config.getoption("numprocesses") and config.getoption("dist") != "each":
            from pytest_llmeval.plugin.progress import WorkerTime

            config.pluginmanager.register(WorkerTime(self._run, len(specs)), "llmeval_worker_time")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send run id, terminal width and shard to a worker."""
        from pytest_llmeval.plugin.pytest_private import COLUMNS, STEALS, terminal_columns

        node.workerinput[STEALS] = self._run.config.getoption("dist") == "worksteal"
        node.workerinput["llmeval_run"] = self._run.runner.judges.enlist()
        node.workerinput[COLUMNS] = terminal_columns(self._run.config)
        node.workerinput[SHARD] = str(shard_of_run(self._run.config) or "")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Release the calls of a crashed worker; note what a worker left out."""
        if error:
            self._run.runner.judges.bury(node.gateway.id)
        self._run.note_left_out(getattr(node, "workeroutput", {}).get(LEFT_OUT, {}))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Note the suites that a worker has collected."""
        self._run.expect(ids)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        """Note why a run ended during collection."""
        try:
            return (yield)
        except BaseException as error:
            reason = str(error) or type(error).__name__
            self._run.shortfalls.append(f"the run ended while tests were collected: {reason}")
            raise

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Judge gates once, after the last case."""
        if session.config.option.collectonly:
            return (yield)
        self._run.allow_faulty_suites(session)
        try:
            result = yield
        except BaseException as error:
            self._run.runner.background.close()  # calls hold files, of which there may be none left
            self._run.salvage(getattr(session, "items", ()))  # xdist's main process has none
            self._run.finish(session, ended=str(error) or type(error).__name__)
            raise
        self._run.finish(session)
        return result

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the reports; fail a run that was cut short or whose report cannot be written."""
        lacking = bool(self._run.shortfalls)
        if self._run.finished is not None:
            self._written = self._run.write(session, self._paths)
            lacking = lacking or {*self._written} != {*self._paths}
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._run.is_empty_shard:
            session.exitstatus = pytest.ExitCode.OK
        if lacking and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            self._run.notes += [f"exit code 1: {each}" for each in self._run.shortfalls]
        hints = self._run.loader.hints()
        known = self._run.record.selected or self._run.record.deselected or hints
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not known:
            hints = [nothing_to_run(session.config)]
        self._run.notes += hints

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        """Print the summary."""
        from pytest_llmeval.plugin.presentation import print_summary

        report = self._run.finished.report if self._run.finished is not None else None
        if report is not None or self._run.notes:
            print_summary(terminalreporter, report, self._run.notes, self._written, self._run.rerun)

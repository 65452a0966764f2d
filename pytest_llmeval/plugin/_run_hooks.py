"""Hooks of runs that collect suites."""

import errno
import gc
import os
import sys
import uuid
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_llmeval.core import FieldsError, LlmevalError, decode, encode
from pytest_llmeval.data import OwnFiles, collector_paused
from pytest_llmeval.judges import Budget, CachePlace, JudgeOptions, JudgeSpec
from pytest_llmeval.plugin._collect import EvalModule, link_followers
from pytest_llmeval.plugin._fixtures import FIXTURES, replacement_notes
from pytest_llmeval.plugin._options import (
    WorkerTerms,
    longest_test_s,
    nothing_to_run,
    option_spelling,
    option_value,
    refuse_anchor_alone,
    refuse_misnamed_suites,
    report_paths,
    shard_of_run,
    suite_patterns,
)
from pytest_llmeval.plugin._payload import (
    CARRIED_CATEGORY,
    CATEGORY,
    KNOWN,
    LOADER,
    NOT_SCORED,
    RERUN,
    RUNNER,
    UNNEEDED_CATEGORY,
    CollectedItems,
    SuiteLoader,
    begin_attempt,
    case_of,
    hand_over,
    keys_of,
    note_error,
    note_phase,
    register_initially,
    require_score,
)
from pytest_llmeval.plugin._presentation import (
    CATEGORIES,
    BriefFailures,
    ExitReasons,
    FoldedFailures,
    annotate,
    category_of,
    make_presentable,
    print_summary,
)
from pytest_llmeval.plugin._progress import (
    CarryHooks,
    CaseCounter,
    Progress,
    StopBoard,
    StopHooks,
    StopWatchHooks,
    Termination,
    WorkerTime,
    ordered,
    seed_of_order,
)
from pytest_llmeval.plugin._pytest_private import (
    deselected_by_pytest,
    has_fixture,
    know_passing,
    redact_live_logs,
    terminal_columns,
    write_log,
)
from pytest_llmeval.plugin._session import (
    PlanHooks,
    Run,
    leave_to_others,
    note_selection,
    refuse_without_meaning,
    stay_in_one_process,
)
from pytest_llmeval.plugin._user_loops import USER_LOOPS, UserLoops
from pytest_llmeval.reports import shows_passed_cases
from pytest_llmeval.run import CaseRunner, begin_run
from pytest_llmeval.services import Secrets, UseRecord

if TYPE_CHECKING:
    from pytest_llmeval.targets import Recordings

_SETTLED_AT_ONCE: Final = 1_000
"""Results after which garbage collection ignores them: walking all of them repeatedly takes a fifth of a long run."""

_LEFT_OUT: Final = "llmeval_left_out"
"""Key under which workers of xdist report what they collected and left out."""

_USES: Final = "llmeval_uses"
"""Key under which they report what their cases used."""

_WORDS: Final = {
    KNOWN: ("k", "KNOWN FAILURE"),
    NOT_SCORED: ("n", "NOT SCORED"),
    UNNEEDED_CATEGORY: ("", "NOT NEEDED"),
    CARRIED_CATEGORY: ("", "CARRIED"),
    RERUN: ("R", "RERUN"),
}
"""The categories of cases that neither passed nor failed, with the letter and the word that pytest prints for each."""


def register_suites(config: pytest.Config, *, worker: bool) -> None:
    """Register the hooks of a run that collects suites.

    Args:
        config: Of the session.
        worker: Whether this process is one of xdist's workers.
    """
    register = config.pluginmanager.register
    if config.getoption("llmeval_report"):
        register_initially(config)
    Secrets.remember()
    config.add_cleanup(Secrets.forget)
    begin_run(config.rootpath, option_value(config, "media-limit"))
    runner = make_runner(config)
    unasked = runner.options.mode in ("off", "defer")
    loader = SuiteLoader(config, runner, partial(ordered, config=config, unasked=unasked))
    config.stash[RUNNER], config.stash[LOADER], config.stash[USER_LOOPS] = runner, loader, UserLoops()
    register(config.stash[USER_LOOPS], "llmeval_user_loops")
    items = ItemHooks(config, runner, loader)
    register(items, "llmeval_items")
    config.add_cleanup(items.unfreeze)  # after pytest's last look at garbage, which tests leave and not modules
    register(Termination(), "llmeval_termination")
    if config.option.llmeval_affected is not None:
        register(CarryHooks(config, runner, loader), "llmeval_carry")
    elif option_value(config, "refresh"):
        raise pytest.UsageError(
            "found --llmeval-refresh, expected --llmeval-affected with it: it runs some of the others"
        )
    stops = StopHooks(config)
    register(stops, "llmeval_stops")
    shows_progress = config.get_verbosity() >= 0
    if shows_progress:
        register(CaseCounter(runner.activity), "llmeval_case_counter")
    if config.option.llmeval_plan:
        refuse_misnamed_suites(config)
        refuse_without_meaning(config)
        stay_in_one_process(config)
        plan = PlanHooks(config, runner, loader)
        register(plan, "llmeval_plan")
        register(ExitReasons(plan.exit_reasons), "llmeval_exit_reasons")
    elif not worker:
        know_passing(CATEGORIES)
        refuse_anchor_alone(config)
        refuse_misnamed_suites(config)
        run = Run(config, loader, runner)
        register(ControllerHooks(run, report_paths(config), stops.board), "llmeval_controller")
        register(StopWatchHooks(run, stops.board), "llmeval_stop_watch")
        register(ExitReasons(run.exit_reasons), "llmeval_exit_reasons")
        register(FoldedFailures(run.record), "llmeval_folded_failures")
        register(BriefFailures(run.record), "llmeval_brief_failures")
        if shows_progress:
            register(Progress(config, runner.snapshot), "llmeval_progress")


def make_runner(config: pytest.Config) -> CaseRunner:
    """The case runner of this pytest process, with recorded predictions if the user asked for them.

    Raises:
        pytest.UsageError: The predictions file cannot be used.
    """
    options = judge_options(config)
    for name in ("mutate-seed", "family"):  # a fault is reported before anything runs
        option_value(config, name)
    shows_passed = shows_passed_cases(config.getoption("llmeval_report"), config.getoption("verbose"))
    return CaseRunner(
        options,
        _recordings(config, options.run),
        ends=(KeyboardInterrupt, pytest.exit.Exception),
        skips=(pytest.skip.Exception,),
        in_turn=bool(config.getoption("usepdb", False)),
        may_stop=any(config.getoption(name, None) for name in ("maxfail", "stepwise")),
        explains_all=shows_passed and config.getoption("llmeval_texts") != "none",
        approves=bool(config.getoption("update_snapshots", False)),
        mutates=bool(config.getoption("llmeval_mutate")),
        all_answers=config.getoption("llmeval_texts") == "all",
    )


def _recordings(config: pytest.Config, run: str) -> "Recordings | None":
    """The recorded predictions of a run, if the user named a file.

    Raises:
        pytest.UsageError: The file cannot be used.
    """
    recorded_in = config.getoption("llmeval_predictions")
    mode = config.getoption("llmeval_predictions_mode")
    if recorded_in is None:
        if mode != "auto":
            raise pytest.UsageError(f"--llmeval-predictions-mode={mode} needs --llmeval-predictions=PATH")
        return None
    from pytest_llmeval.targets import Recordings

    path = config.invocation_params.dir / recorded_in
    try:
        if mode != "replay":
            path.parent.mkdir(parents=True, exist_ok=True)
            if not os.access(path if path.exists() else path.parent, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return Recordings.of_run(path, mode, config.rootpath, run, merges=not hasattr(config, "workerinput"))
    except OSError as error:
        raise pytest.UsageError(f"--llmeval-predictions: {path} cannot be written: {error.strerror}") from None
    except LlmevalError as error:
        raise pytest.UsageError(f"--llmeval-predictions: {error}") from None


def judge_options(config: pytest.Config) -> JudgeOptions:
    """The judge options of a pytest run; the command line takes precedence over the configuration.

    Raises:
        pytest.UsageError: One of them is wrong.
    """

    def cache() -> CachePlace:
        typed = config.getoption("llmeval_cache")
        folder = config.rootpath if typed is None else config.invocation_params.dir
        place: CachePlace = option_value(config, "cache")
        return place.within(folder)

    mode, concurrency = option_value(config, "judge"), option_value(config, "concurrency")
    try:
        spec = JudgeSpec(model=option_value(config, "judge-model"), base_url=option_value(config, "judge-base-url"))
    except FieldsError as error:
        names = {name: option_spelling(config, f"judge-{name.replace('_', '-')}") for name, _ in error.faults}
        raise pytest.UsageError("; ".join(f"{names[name]}: {fault}" for name, fault in error.faults)) from None
    budget = option_value(config, "budget") or Budget()
    worker: dict[str, Any] = getattr(config, "workerinput", {})
    if (shard := shard_of_run(config)) is not None:
        budget = budget.part(shard.index, shard.count)
    return JudgeOptions(
        mode=mode,
        model=spec.model,
        base_url=spec.base_url,
        concurrency=concurrency,
        budget=budget,
        cache=cache(),
        run=WorkerTerms.of_process(config).run or uuid.uuid4().hex,
        worker=worker.get("workerid", ""),
        workers=worker.get("workercount", 1),
    )


class ItemHooks:
    """Hooks that collect and run items over cases, in every process that does."""

    def __init__(self, config: pytest.Config, runner: CaseRunner, loader: SuiteLoader) -> None:
        self._runner = runner
        self._loader = loader
        self._patterns = suite_patterns(config)
        self._collected: list[pytest.Item] = []
        self._froze = False
        self._handed_over = 0
        self._whole_run = not hasattr(config, "workerinput")
        self._process = os.getpid()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep secrets out of live logs, whose handlers there are by now; bring the fixtures that nobody else has."""
        redact_live_logs(session.config)
        # Among plugins, pytest prefers the last one registered, which would be ours.
        module = ModuleType("llmeval_fixtures")  # of other objects, pytest looks for fixtures in the class
        vars(module).update((name, fixture) for name, fixture in FIXTURES.items() if not has_fixture(session, name))
        session.config.pluginmanager.register(module, module.__name__)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        """Collect without garbage collection: collected items live until the end."""
        with collector_paused():
            return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Remember all items before selection; drop those of other shards."""
        self._collected = list(items)
        shard = shard_of_run(config)
        if shard is not None:
            leave_to_others(config, items, shard)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Note what pytest's options deselect, so that merging does not miss it."""
        if deselected_by_pytest():
            self._loader.left_out.unwanted.update(keys_of(items))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Link each case to the next ones; keep the garbage collector from walking modules and items repeatedly."""
        link_followers(session.items)
        note_selection(self._loader, self._collected, session.items)
        self._collected = []
        if session.config.option.llmeval_require_gates:
            self._loader.drop_all_but(keys_of(session.items).values())
        if keys_of(session.items):
            self._froze = True
            gc.freeze()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, Any, Any]:
        """Begin no call once the run is interrupted: pytest may take seconds to show where, and then ends the rest."""
        with self._until_interrupted():
            return (yield)

    @contextmanager
    def _until_interrupted(self) -> Iterator[None]:
        """Begin no call any more if the loop of tests is interrupted."""
        try:
            yield
        except (KeyboardInterrupt, pytest.exit.Exception):
            self._runner.begin_no_more()
            raise

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Finish the calls that a worker makes for others, and report what it left out."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_LEFT_OUT] = encode(self._loader.left_out)
            if (used := UseRecord.current()) is not None:
                session.config.workeroutput[_USES] = sorted(used.close())
        ended_early = session.shouldfail or exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if self._runner.options.shares and not ended_early:
            with self._until_interrupted():
                self._runner.finish(longest_test_s(session.config))

    def pytest_unconfigure(self) -> None:
        """Stop background work, release targets, close the cache."""
        self._runner.close(whole_run=self._whole_run)

    def unfreeze(self) -> None:
        """Undo the freeze of the garbage collector."""
        if self._froze:
            gc.unfreeze()

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Make a module of a suite file."""
        if file_path.parent.name == OwnFiles.FOLDER:
            return None
        if not self._patterns.match(file_path.name):
            self._loader.note_misnamed(file_path)
            return None
        return EvalModule.from_parent(parent, path=file_path)

    def pytest_pycollect_makeitem(self, collector: pytest.Collector, name: str, obj: object) -> pytest.Collector | None:
        """Collect a suite that a module declares, and that no test function runs."""
        del name
        declared = sys.modules.get("pytest_llmeval.run._declared")  # loaded by the module, if it declares one
        if declared is None or not isinstance(obj, declared.Suite) or obj.is_tested:
            return None
        return EvalModule.from_module(obj, collector)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin an attempt at an item."""
        Secrets.remember()
        begin_attempt(item)

    def pytest_pycollect_makemodule(self, module_path: Path) -> None:
        """Note a module that tests are collected from."""
        if (used := UseRecord.current()) is not None:
            used.aside.add(module_path)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Say for which suite code runs."""
        if (used := UseRecord.current()) is None:
            return (yield)
        loaded = case_of(item)
        user = "" if loaded is None else loaded.key.user
        token = UseRecord.USER.set(user)
        used.enter(f"file {used.name(item.path)}" if loaded is None or loaded.key.test else user)
        try:
            return (yield)
        finally:
            UseRecord.USER.reset(token)

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: "warnings.WarningMessage") -> None:
        """Redact and escape a warning, which may have the error of a thread or of a finalizer in it."""
        text = str(warning_message.message)
        if (clean := Secrets.of_variables().presentable(text)) != text:
            warning_message.message = Warning(clean)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Fail a test that takes a case but does not score it."""
        try:
            result = yield
            require_score(item)
        except BaseException as error:
            note_error(item, error)
            raise
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: "pytest.CallInfo[None]") -> Generator[None, Any, Any]:
        """Put an item's result on its last report."""
        if call.excinfo is not None and isinstance(item, pytest.Function):
            for note in replacement_notes(item, call.excinfo.value):
                item.add_report_section(call.when, "llmeval", note)
        report = yield
        make_presentable(item, report)
        # Plugins such as pytest-forked run an item in a child, and send its report here as plain data.
        here = self._whole_run and os.getpid() == self._process
        if report.when != "teardown":
            note_phase(item, call, report)
        if hand_over(item, report, encoded=not here):
            self._handed_over += 1
            if self._froze and self._handed_over % _SETTLED_AT_ONCE == 0:
                gc.freeze()  # results live until the end, like items
        return report


class ControllerHooks:
    """Hooks of the main process, which gathers all case results and ends the run."""

    def __init__(self, run: Run, paths: list[Path], board: StopBoard) -> None:
        self._run = run
        self._paths = paths
        self._board = board
        self._under_way = 0
        self._written: list[Path] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Let the log of CI obey nothing that a model wrote."""
        write_log(session.config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather results and remove them from the report, which other plugins keep."""
        self._run.take(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: "pytest.CollectReport | pytest.TestReport"
    ) -> tuple[str, str, str] | None:
        """Count gates and snapshots separately from cases, and print no letter for them; count known failures."""
        category = category_of(report)
        if category in _WORDS:
            return category, *_WORDS[category]
        word = "UNDECIDED" if category.endswith("undecided") else report.outcome.upper()  # pytest knows it as skipped
        return (category, "", word) if category else None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected."""
        if report.failed:
            self._run.note_uncollected(report.nodeid, report.longreprtext)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note the suites of the run."""
        self._run.expect((item.nodeid for item in session.items), keys_of(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, config: pytest.Config, specs: Sequence[object]) -> None:
        """Measure the overhead of workers if all are on this machine and each test runs once."""
        if config.getoption("numprocesses") and config.getoption("dist") != "each":
            config.pluginmanager.register(WorkerTime(self._run, len(specs)), "llmeval_worker_time")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send a worker what it cannot know."""
        config = self._run.config
        WorkerTerms(
            run=self._run.runner.judges.enlist(),
            shard=str(shard_of_run(config) or ""),
            columns=terminal_columns(config),
            others_steal=config.getoption("dist") == "worksteal",
            seed=seed_of_order(config),
            stops=self._board.share(),
            environment={} if (used := UseRecord.current()) is None else used.environment,
        ).send(node)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Release the calls of a crashed worker; note what a worker left out."""
        if error:
            self._under_way = self._run.runner.judges.bury(node.gateway.id)
            self._run.record.used.add(UseRecord.LOST)
        self._run.record.used |= {*map(tuple, getattr(node, "workeroutput", {}).get(_USES, ()))}
        if left_out := getattr(node, "workeroutput", {}).get(_LEFT_OUT):
            self._run.note_left_out(decode(left_out, CollectedItems))

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport, sched: Any) -> None:
        """Have a test run again, alone, if any of the calls under way may have ended its worker; then it is named."""
        if self._under_way and self._board.isolate(crashitem):
            with suppress(NotImplementedError):  # those that keep files or groups together run it again anyway
                sched.mark_test_pending(crashitem)
            report.outcome = RERUN  # type: ignore[assignment]  # as pytest-rerunfailures has it
            setattr(report, CATEGORY, RERUN)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Note the suites that a worker has collected."""
        self._run.expect(ids, {*self._board.items()}.intersection(ids))

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self) -> None:
        """Note the internal error of a worker, after which xdist may exit with 0."""
        self._run.shortfalls.append("pytest had an internal error, which is shown above")

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
        missing: list[str] = []
        if self._run.finished is not None:
            self._written, missing = self._run.write(session, self._paths)
        self._run.set_exit_code(session, missing)
        hints = self._run.loader.hints()
        known = self._run.record.selected or self._run.record.deselected or hints
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not known:
            hints = [nothing_to_run(session.config)]
        self._run.notes += hints

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        """Print the summary."""
        report = self._run.finished.report if self._run.finished is not None else None
        if report is not None or self._run.notes:
            print_summary(terminalreporter, report, self._run.notes, self._written, self._run.rerun)
        if report is not None and terminalreporter.config.option.llmeval_annotations == "on":
            annotate(terminalreporter, report)

"""The run in the main process."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pytest
from msgspec import Struct, field, structs

from pytest_llmeval.baselines import Keeper, SnapshotMode
from pytest_llmeval.core import GateResult, LlmevalError, counted, printable
from pytest_llmeval.data import OutputFile, display_path
from pytest_llmeval.plugin._collect import CaseItem
from pytest_llmeval.plugin._options import option_value, report_paths, shard_of_run, suite_patterns
from pytest_llmeval.plugin._payload import (
    LOADER,
    RESULT,
    RUNNER,
    UNREPORTED,
    CollectedItems,
    SuiteLoader,
    case_of,
    keys_of,
    take_judgements,
    take_results,
)
from pytest_llmeval.plugin._presentation import emit, verdict_report
from pytest_llmeval.plugin._pytest_private import rerun_last_failed, terminal_width
from pytest_llmeval.reports import ReportFormat
from pytest_llmeval.run import (
    CaseRunner,
    Reported,
    RunRecord,
    RunTerms,
    finish_run,
)
from pytest_llmeval.services import FaultSources, ServiceAddress, UseRecord
from pytest_llmeval.suites import LoadedSuite, Registry, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.plugin._extensions import PlanReport
    from pytest_llmeval.run import ResultOptions, Shard


def change_exit_code(session: pytest.Session, code: pytest.ExitCode, reasons: Iterable[str]) -> list[str]:
    """Give the pytest session another exit code than pytest's own, and return the lines that say why.

    Args:
        session: The session.
        code: The new exit code.
        reasons: Why; without any, the exit code stays.
    """
    lines = [f"exit code {code:d}: {reason}" for reason in reasons]
    if lines:
        session.exitstatus = code
    return lines


_CANNOT_TELL: Final = pytest.ExitCode.INTERRUPTED
"""The exit code 2 of runs that could not decide, as of ``llmeval gate``."""

_EMPTY_SHARD = "no case belongs to this shard"
_OVER_BUDGET = "the plan exceeds --llmeval-budget"
_CONFTEST = "conftest.py"
_RERUN = 3
"""Failed suites that the command after a run names."""


def leave_to_others(config: pytest.Config, items: list[pytest.Item], shard: "Shard") -> None:
    """Deselect the items of other shards; a suite in mode ``bulk`` keeps its item with this shard's cases.

    Tests that are no cases stay together by file, since they may depend on each other.
    """
    pickers: dict[Path, Callable[[str], bool]] = {}
    mine: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        loaded = case_of(item)
        if loaded is None:
            (mine if shard.has(item.nodeid.partition("::")[0], "") else others).append(item)
            continue
        path = loaded.suite.path
        if path not in pickers:
            pickers[path] = shard.picker(loaded.suite, loaded.key.display_path)
        bulk = item.bulk if isinstance(item, CaseItem) else ()
        cases = [case for case in bulk or (loaded.case,) if pickers[path](case.id)]
        if isinstance(item, CaseItem) and bulk:
            item.bulk = tuple(cases)
        (mine if cases else others).append(item)
    if others:
        items[:] = mine
        config.hook.pytest_deselected(items=others)


def note_selection(loader: SuiteLoader, collected: Sequence[pytest.Item], selected: Sequence[pytest.Item]) -> None:
    """Note which tests over cases were collected, and which of them a selection has left out."""
    config = loader.config
    if len(collected) != len(selected):
        loader.left_out.deselected = keys_of(collected).keys() - {item.nodeid for item in selected}
    if shard_of_run(config) is not None or _is_kept(config):
        items = ((item, case_of(item)) for item in collected)
        ids = (item.nodeid for item, loaded in items if loaded is not None and loaded.suite.rows is None)
        loader.left_out.collected |= dict.fromkeys(ids, 1)


def _is_kept(config: pytest.Config) -> bool:
    """Whether a run writes a shard file, which keeps its results for a merge."""
    return any(name.endswith(ReportFormat.SHARD_SUFFIX) for name in config.getoption("llmeval_report"))


def plugins_of(hook: Any, root: Path) -> list[str]:
    """The implementations of a hook in the order of the calls: conftests by path, other modules by name."""
    return [_plugin_name(implementation.plugin, root) for implementation in reversed(hook.get_hookimpls())]


def _plugin_name(plugin: object, root: Path) -> str:
    """The name of a plugin that registers evaluators, as shard files have it: a conftest's path or a module."""
    if not isinstance(plugin, ModuleType):
        return f"{type(plugin).__module__}.{type(plugin).__qualname__}"
    file = Path(plugin.__file__ or "")
    return display_path(file, root) if file.name == _CONFTEST else plugin.__name__


def run_terms(config: pytest.Config) -> RunTerms:
    """The options by which a finished pytest run is judged and its results are written."""
    return RunTerms(
        judge=config.stash[RUNNER].options.mode,
        texts=config.getoption("llmeval_texts"),
        snapshots=config.getini("llmeval_snapshots"),
        require_gates=config.getoption("llmeval_require_gates"),
        shard=str(shard_of_run(config) or ""),
        is_kept=any(path.suffix == ReportFormat.SHARD_SUFFIX for path in report_paths(config)),
        compares=any(path.suffix == ".html" for path in report_paths(config)),
        mutate=option_value(config, "mutate-seed") if config.getoption("llmeval_mutate") else None,
        family=option_value(config, "family"),
        concurrency=config.stash[RUNNER].options.concurrency,
    )


def _result_options(config: pytest.Config) -> "ResultOptions":
    """The options of a pytest run that change its results, as its shard file has them."""
    from pytest_llmeval.run import ResultOptions

    runner, terms = config.stash[RUNNER], run_terms(config)
    recordings, base_url = runner.recordings, runner.options.base_url
    selection = SnapshotMode.from_config(config).selection
    return ResultOptions(
        judge=terms.judge,
        judge_model=runner.options.model,
        judge_base_url=ServiceAddress(base_url).redacted if base_url else None,
        texts=terms.texts,
        snapshots=terms.snapshots,
        predictions="" if recordings is None else display_path(recordings.path, config.rootpath),
        predictions_mode="auto" if recordings is None else recordings.mode,
        selection=repr(selection) if selection else "",
        stop=config.option.llmeval_stop,
        family=terms.family,
    )


class Run(Struct):
    """The run of a pytest session: its record, and the result of judging it.

    Attributes:
        config: Of the session.
        loader: The suites of this process.
        runner: Has the judges and recordings of this process.
        record: What was reported.
        notes: Lines for the terminal.
        exit_reasons: Why the exit code is not pytest's own.
        finished: The result, once `finish` has run.
        shortfalls: Why the run does not pass although its exit code would say so.
        collected: Ids of all tests over cases, before any selection, if they are to be kept.
        pending: How many verdicts are deferred, and what to do with their requests; empty if none is.
    """

    config: pytest.Config
    loader: SuiteLoader
    runner: CaseRunner
    record: RunRecord = field(default_factory=RunRecord)
    notes: list[str] = []
    exit_reasons: list[str] = []
    finished: Reported | None = None
    shortfalls: list[str] = []
    collected: dict[str, int] = {}
    pending: str = ""
    _expected: set[str] = set()

    def take(self, report: pytest.TestReport) -> None:
        """Keep what an item's report carries."""
        self.record.take(report, take_results(report))
        take_judgements(report, self.record)
        crashed = report.when not in (
            "setup",
            "call",
            "teardown",
        )  # xdist reports the case of a crashed worker as "???"
        if self.record.result_of(report) is not None:
            self.record.failures.discard(report.nodeid)  # that of a phase before its results came
        elif report.failed and not (crashed and report.nodeid in self._expected):
            self.record.failures.add(report.nodeid)
        if crashed:
            self.record.crashed = "a worker crashed"
        elif report.when == "teardown":
            self.record.unfinished.discard(report.nodeid)

    def salvage(self, items: Iterable[pytest.Item]) -> None:
        """Keep what items had finished when the run was interrupted; pytest makes no report of the one that ran."""
        for item in items:
            part = item.stash.get(RESULT, None)
            if part is not None and not item.stash.get(UNREPORTED, False):
                self.record.keep(item, part)

    def expect(self, nodeids: Iterable[str], over_suites: Iterable[str] = ()) -> None:
        """Note the pytest items that are to run, and their suite files.

        Args:
            nodeids: Of all items.
            over_suites: Of those that are known to run cases; a worker of xdist names the files of suites only.
        """
        patterns = suite_patterns(self.config)
        files = {nodeid: nodeid.partition("::")[0] for nodeid in nodeids}
        suites = {file for file in {*files.values()} if patterns.match(Path(file).name)}
        paths = (self.config.rootpath / file for file in suites)
        self.record.selected.update(str(path) for path in paths if path.is_file())
        if not self.config.getoption("setuponly", False):
            cases = {*over_suites, *(nodeid for nodeid, file in files.items() if file in suites)}
            # A worker in place of a crashed one collects everything anew, also what has ended.
            self.record.unfinished |= cases - self._expected
            self._expected |= cases

    def note_left_out(self, left_out: CollectedItems) -> None:
        """Note what a process collected and left out."""
        self.record.dropped |= left_out.dropped
        self.record.deselected |= left_out.deselected
        self.record.unwanted |= left_out.unwanted
        self.collected |= left_out.collected
        self.loader.left_out.misnamed |= left_out.misnamed
        self.loader.left_out.foreign |= left_out.foreign
        self.loader.left_out.serial |= left_out.serial

    def note_uncollected(self, nodeid: str, why: str) -> None:
        """Note the faults of a suite file; what another file would have run is unknown, so nothing is approved."""
        file = nodeid.partition("::")[0]
        if suite_patterns(self.config).match(Path(file).name):
            self.record.faults[file] = FaultSources.messages_in(why)
        else:
            self.record.uncollected = True

    def allow_faulty_suites(self, session: pytest.Session) -> None:
        """Let the run continue if it is only suites that could not be collected; it fails nevertheless."""
        if session.testsfailed and session.testsfailed == self.loader.refused:
            session.config.option.continue_on_collection_errors = True

    def finish(self, session: pytest.Session, ended: str = "") -> None:
        """Turn what was reported into verdicts, files and the report of the run.

        Args:
            session: The session.
            ended: Why the run ended early, or nothing.
        """
        self.record.ended = ended
        if (used := UseRecord.current()) is not None:
            self.record.used |= used.close()
        self.note_left_out(self.loader.left_out)
        recordings = self.runner.recordings
        terms, mode = run_terms(self.config), SnapshotMode.from_config(self.config)
        self.finished = finish_run(self.record, terms, SessionSuites(session), mode, recordings=recordings)
        if self.runner.options.mode == "defer":
            try:
                self.pending = self.runner.judges.list_pending().text(self.config.invocation_params.dir)
            except (LlmevalError, OSError) as error:
                self.shortfalls.append(f"the requests of deferred verdicts cannot be written: {error}")
        self.shortfalls += self.finished.shortfalls
        self.notes += self.finished.notes
        if self.record.broken and (line := self.runner.calls_line()):
            self.notes.append(line)
        emit(session, [verdict_report(*verdict) for verdict in self.finished.verdicts])
        rerun_last_failed(self.config, self._suspects())

    def _suspects(self) -> Iterator[str]:
        """Yield the items that a failed gate rests on: cases that fell, else all of a suite whose cases passed."""
        assert self.finished is not None
        gates = [(key, verdict) for key, verdict in self.finished.verdicts if isinstance(verdict, GateResult)]
        fallen = {(key, case) for key, gate in gates for case in gate.fallen}
        whole = {key for key, gate in gates if gate.outcome == "failed" and not gate.fallen}
        if not fallen and not whole:
            return
        items = {item.nodeid: result.part for item, result in self.record.items.items()}
        whole -= {part.key for part in items.values() if any(record.outcome != "passed" for record in part.records)}
        for nodeid, part in items.items():
            if part.key in whole or any((part.key, record.id) in fallen for record in part.records):
                yield nodeid

    @property
    def rerun(self) -> Sequence[str]:
        """The first suites that failed, or the tests over them, as arguments of pytest; empty if none failed."""
        if self.finished is None:
            return ()
        suites = zip(self.finished.judged.suites, self.finished.report.suites, strict=True)
        return list(dict.fromkeys(judged.key.runs for judged, suite in suites if suite.failed))[:_RERUN]

    def set_exit_code(self, session: pytest.Session, missing: Sequence[str]) -> None:
        """Let an empty shard pass; fail a run that was cut short or whose reports cannot be written. Note the reasons.

        Args:
            session: The session.
            missing: Why reports are missing.
        """
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            is_empty_shard = bool(self.collected) and shard_of_run(self.config) is not None
            reasons = [_EMPTY_SHARD] if is_empty_shard else []
            self.exit_reasons += change_exit_code(session, pytest.ExitCode.OK, reasons)
        missing = [*self.shortfalls, *missing]
        if session.exitstatus == pytest.ExitCode.OK:
            self.exit_reasons += change_exit_code(session, pytest.ExitCode.TESTS_FAILED, missing)
        else:
            self.notes += missing
        if self.pending and session.exitstatus == pytest.ExitCode.OK:
            self.exit_reasons += change_exit_code(session, _CANNOT_TELL, [self.pending])
        elif self.pending:
            self.notes.append(self.pending)

    def write(self, session: pytest.Session, paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
        """Write the report files, the shard file, and GitHub's job summary, if any; send scores as telemetry if asked.

        Returns:
            The files written, and why others are missing.
        """
        assert self.finished is not None
        shards = [path for path in paths if path.suffix == ReportFormat.SHARD_SUFFIX]
        reports = [path for path in paths if path not in shards]
        written, missing, notes = self.finished.write_files(reports, self.config.rootpath)
        self.notes += notes
        if style := self.config.option.llmeval_otel:
            suites, texts = SessionSuites(session), self.config.option.llmeval_texts == "all"
            for extension in Registry.installed_extensions("sent"):
                try:
                    self.notes.append(extension.make(str, self.finished.report, suites, style=style, texts=texts))
                except LlmevalError as error:
                    missing.append(str(error))
        for path in shards:
            if fault := self._keep(session, path):
                missing.append(fault)
            else:
                written.append(path)
        return written, missing

    def _keep(self, session: pytest.Session, path: Path) -> str:
        """Write the shard file of the session; return what is wrong, or nothing."""
        from pytest_llmeval.run import describe_origin

        assert self.finished is not None
        root, loader = self.config.rootpath, self.loader
        paths = sorted({judged.suite.path for judged in self.finished.judged.suites})
        origin = describe_origin(
            self.finished,
            [(loader.load(path, session), plugins_of(loader.hooks[path], root)) for path in paths],
            _result_options(self.config),
            root=root,
            shard=shard_of_run(self.config),
            require_gates=run_terms(self.config).require_gates,
            items=self.collected,
        )
        requests = self.runner.judges.deferred_requests() if self.runner.options.mode == "defer" else {}
        record = structs.replace(self.record, seconds=self.finished.report.run.duration_s, requests=requests)
        try:
            origin.write_shard(path, record, root)
        except OSError as error:
            return f"results NOT kept in {path}: {error.strerror}"
        return ""


class SessionSuites(Struct, frozen=True):
    """Implements `pytest_llmeval.run._stages.Suites` for a pytest session."""

    session: pytest.Session

    @property
    def root(self) -> Path:
        """Pytest's rootdir."""
        return self.session.config.rootpath

    def read(self, path: Path) -> LoadedSuite:
        """The suite of a file."""
        return self.session.config.stash[LOADER].load(path, self.session)

    def registry(self, path: Path) -> Registry:
        """The registry of the suite of a file."""
        self.read(path)
        return self.session.config.stash[LOADER].registry(path)

    def judges(self, key: SuiteKey, suite: LoadedSuite) -> Mapping[str, Mapping[str, str]]:
        """The settings by evaluator that decide the verdicts of judges on a suite."""
        if not suite.judged:  # the judges of a runner are made, and their modules imported, at the first look
            return {}
        return suite.judge_identities(self.session.config.stash[RUNNER].judges, key.display_path)


_ASKING = frozenset({"eval_case", "judge"})
_EVERYTHING = 2
"""The verbosity at which no column is left out."""


def refuse_without_meaning(config: pytest.Config) -> None:
    """Refuse options that need scores in a session that only plans a run.

    Raises:
        pytest.UsageError: They do.
    """
    if config.option.update_snapshots:
        raise pytest.UsageError(
            "found --snapshot-update with --llmeval-plan, expected one of them: a plan has no scores"
        )
    for path in report_paths(config):
        if path.suffix != ".json" or path.name.endswith("errors.json"):
            raise pytest.UsageError(f"--llmeval-report={path}: a plan can be written as JSON only: name a .json file")


def stay_in_one_process(config: pytest.Config) -> None:
    """Keep pytest-xdist from starting workers, which would have nothing to run."""
    if hasattr(config.option, "dist"):
        config.option.dist, config.option.tx, config.option.numprocesses = "no", [], 0


class PlanHooks:
    """Hooks of a session that plans a run: it counts judge and target calls, and runs no test."""

    def __init__(self, config: pytest.Config, runner: CaseRunner, loader: SuiteLoader) -> None:
        self._config = config
        self._runner = runner
        self._loader = loader
        self._keeper = Keeper(SnapshotMode.from_config(config), config.getini("llmeval_snapshots"), config.rootpath)
        self._plan: PlanReport | None = None
        self._others = 0
        self._written: list[Path] = []
        self._missing: list[str] = []
        self.exit_reasons: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Plan in place of the loop that runs tests."""
        from pytest_llmeval.plugin._collected_session import CollectedSession
        from pytest_llmeval.plugin._extensions import PlanReport

        self._others = sum(_asks_judge(item) for item in session.items)
        try:
            planned = Registry.installed().extensions("planned")[-1]
            cases = list(CollectedSession(session).planned_cases())
            self._plan = planned.make(PlanReport, self._runner, cases, self._keeper)
        except LlmevalError as error:
            raise pytest.UsageError(str(error)) from None
        return True

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the plan where a report is asked for; fail if the plan exceeds the budget."""
        if self._plan is None:
            return
        text = json.dumps(self._plan.data(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        for path in report_paths(self._config):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                OutputFile(path).write_text([text])
                self._written.append(path)
            except OSError as error:
                self._missing.append(f"plan NOT written to {path}: {error.strerror}")
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._loader.left_out.collected:
            self.exit_reasons += change_exit_code(session, pytest.ExitCode.OK, [_EMPTY_SHARD])
        if session.exitstatus == pytest.ExitCode.OK:
            missing = [*([_OVER_BUDGET] if self._plan.exceeds_budget else []), *self._missing]
            self.exit_reasons += change_exit_code(session, pytest.ExitCode.TESTS_FAILED, missing)
            self._missing = []

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the plan of the run."""
        if self._plan is None:
            return
        terminalreporter.section("llmeval plan: nothing was called")
        width, everything = terminal_width(terminalreporter), terminalreporter.verbosity >= _EVERYTHING
        for line in self._plan.lines(width, everything=everything):
            terminalreporter.write_line(printable(line.text), **({line.colour: True} if line.colour else {}))
        if self._others:
            known = "what Python tests ask is known only when they run"
            terminalreporter.write_line(f"{counted(self._others, 'Python test')} not planned: {known}", yellow=True)
        if self._loader.refused:
            refused = counted(self._loader.refused, "file")
            terminalreporter.write_line(f"{refused} not planned or only in part, because of faults", red=True)
        for path in self._written:
            terminalreporter.write_line(f"plan written to {path}")
        for missing in self._missing:
            terminalreporter.write_line(printable(missing), yellow=True)


def _asks_judge(item: pytest.Item) -> bool:
    """Whether a Python test takes a fixture that may ask a judge, whose calls a plan cannot count."""
    return not isinstance(item, CaseItem) and bool(_ASKING & set(getattr(item, "fixturenames", ())))

"""One run in the main process: collect, judge, persist, report."""

__all__ = ("Run",)

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_llmeval.judge.recordings import UsedJudgements
from pytest_llmeval.plugin.options import is_suite_file
from pytest_llmeval.plugin.payload import PAYLOAD
from pytest_llmeval.plugin.result_collector import ResultCollector
from pytest_llmeval.plugin.suite_loader import SuiteLoader
from pytest_llmeval.plugin.verdict_reports import emit, verdict_report
from pytest_llmeval.reports.data import RunReport
from pytest_llmeval.run.case_runner import CaseRunner
from pytest_llmeval.run.collected import CollectedRun, CollectedSuite, SuiteResults, fault_of, judges_of
from pytest_llmeval.run.judging import JudgedRun, judge_run
from pytest_llmeval.run.persisting import Persisted, Stores, persist
from pytest_llmeval.run.shortfall import shortfalls
from pytest_llmeval.snapshots.keeper import Keeper
from pytest_llmeval.snapshots.mode import Mode
from pytest_llmeval.snapshots.stamp import head_commit
from pytest_llmeval.suite.suite import SuiteKey


@dataclass
class Run:
    """What a run has reported, and what came of it.

    Attributes:
        config: Of the session.
        loader: The suites of this process.
        runner: Has the judges and recordings of this process.
        broken: Why cases may be missing without being deselected: a crashed worker, an early stop.
        notes: Lines for the terminal.
        selected: Suite files of which some case was to run.
        report: The result, once `finish` has run.
        uncollected: Whether collecting failed elsewhere than in suite files.
        shortfalls: Why the run does not pass although its exit code would say so.
    """

    config: pytest.Config
    loader: SuiteLoader
    runner: CaseRunner
    broken: str = ""
    notes: list[str] = field(default_factory=list)
    selected: set[Path] = field(default_factory=set)
    report: RunReport | None = None
    uncollected: bool = False
    shortfalls: list[str] = field(default_factory=list)
    _unfinished: set[str] = field(default_factory=set)
    _started: float = field(default_factory=time.time)
    _collector: ResultCollector = field(default_factory=ResultCollector)
    _judgements: UsedJudgements = field(default_factory=UsedJudgements)
    _faults: dict[str, list[str]] = field(default_factory=dict)

    def take(self, report: pytest.TestReport) -> None:
        """Keep what a report carries."""
        self._collector.take(report, report.__dict__.pop("llmeval", None))
        judged = report.__dict__.pop("llmeval_judged", None)
        if judged is not None:
            self._judgements.take(judged)
        if report.when == "call" or report.outcome != "passed":
            self._unfinished.discard(report.nodeid)
        if report.when not in ("setup", "call", "teardown"):  # xdist reports the case of a crashed worker as "???"
            self.broken = "a worker crashed"

    def salvage(self, items: Iterable[pytest.Item]) -> None:
        """Keep what items had finished when the run was interrupted; pytest makes no report of the one that ran."""
        for item in items:
            payload = item.stash.get(PAYLOAD, None)
            if payload is not None:
                self._collector.salvage(item, payload)

    def expect(self, nodeids: Iterable[str], over_suites: Iterable[str] = ()) -> None:
        """Note the items that are to run, and their suite files.

        Args:
            nodeids: Of all items.
            over_suites: Of those that are known to run cases; a worker of xdist names the files of suites only.
        """
        patterns = self.config.getini("llmeval_files")
        files = {nodeid: nodeid.partition("::")[0] for nodeid in nodeids}
        suites = {file for file in {*files.values()} if is_suite_file(Path(file).name, patterns)}
        paths = (self.config.rootpath / file for file in suites)
        self.selected.update(path for path in paths if path.is_file())
        if not self.config.getoption("setuponly", False):
            self._unfinished.update(over_suites, (nodeid for nodeid, file in files.items() if file in suites))

    def note_left_out(self, dropped: Iterable[Sequence[str]], misnamed: Iterable[str]) -> None:
        """Note what a worker of xdist left out: suites and variants that it had nothing of to run, misnamed files."""
        self.loader.dropped.update(SuiteKey(*key) for key in dropped)
        self.loader.misnamed.update(misnamed)

    def note_uncollected(self, nodeid: str, why: str) -> None:
        """Note the faults of a suite file; what another file would have run is unknown, so nothing is approved."""
        file = nodeid.partition("::")[0]
        if is_suite_file(Path(file).name, self.config.getini("llmeval_files")):
            self._faults[file] = why.splitlines()
        else:
            self.uncollected = True

    def allow_faulty_suites(self, session: pytest.Session) -> None:
        """Let the run go on if it is only suites that could not be collected; it fails nevertheless."""
        if session.testsfailed and session.testsfailed == self.loader.refused:
            session.config.option.continue_on_collection_errors = True

    def finish(self, session: pytest.Session, ended: str = "") -> None:
        """Turn what was reported into verdicts, files and the report of the run.

        Args:
            session: The session.
            ended: Why the run ended early, or nothing.
        """
        self.broken = self.broken or ended
        mode = Mode.of(self.config)
        if ended or self.uncollected:
            mode = mode.read_only()
        keeper = Keeper(mode, self.config.getini("llmeval_snapshots"), root=self.config.rootpath)
        run = self._collect(session)
        judged = judge_run(run, keeper)
        persisted = self._persist(run, judged, keeper)
        self.shortfalls += shortfalls(
            judged,
            broken=self.broken,
            unfinished=len(self._unfinished),
            require_gates=self.config.getoption("llmeval_require_gates"),
        )
        self._report(session, run, judged, persisted)

    def _collect(self, session: pytest.Session) -> CollectedRun:
        """Put results and suites together."""
        # Of a suite of which nothing was heard because the run broke, every case has yet to run.
        silent = [key for path in self.selected for key in self.loader.keys(path, session)] if self.broken else []
        return CollectedRun(
            started=datetime.fromtimestamp(self._started, UTC),
            commit=head_commit(self.config.rootpath),
            suites=[self._with_suite(each, session) for each in self._collector.suites(silent, self.loader.dropped)],
            broken=self.broken,
            judges_off=self.runner.options.mode == "off",
            texts=self.config.getoption("llmeval_texts"),
            compares=any(Path(each).suffix == ".html" for each in self.config.getoption("llmeval_report")),
        )

    def _with_suite(self, results: SuiteResults, session: pytest.Session) -> CollectedSuite:
        try:
            suite = self.loader.load(Path(results.key.path), session)
            answered = suite.gated if results.key.test else suite.of
            suite = answered(results.key.variant)
            return CollectedSuite(
                results, suite, judges_of(suite, self.runner.judges, self.loader.display_path(suite.path))
            )
        except Exception as error:  # noqa: BLE001 (a file that changed, or a user's hook, costs its own suite only)
            return CollectedSuite(results, fault=fault_of(error))

    def _persist(self, run: CollectedRun, judged: JudgedRun, keeper: Keeper) -> Persisted:
        """Write what later runs read."""
        refreshes = self.runner.options.mode == "refresh"
        root = self.config.rootpath
        return persist(run, judged, Stores(root, keeper, self._judgements, self.runner.recordings, refreshes))

    def _report(self, session: pytest.Session, run: CollectedRun, judged: JudgedRun, persisted: Persisted) -> None:
        """Keep the report for those who write it, and report the verdicts as tests."""
        duration = round(time.time() - self._started, 3)
        self.report = judged.report(run, duration_s=duration, faults=self._faults)
        self.notes += [*judged.notes, *persisted.notes]
        emit(session, [verdict_report(each) for each in persisted.verdicts])

    def write(self, paths: "list[Path]") -> list[Path]:
        """Write the report files, and GitHub's job summary where there is one.

        Returns:
            The files written; the notes have the reason for missing ones.
        """
        from pytest_llmeval.reports.files import write_reports

        assert self.report is not None
        report = self.report
        if any(path.suffix == ".html" for path in paths):
            from pytest_llmeval.run.past_runs import with_past

            report = with_past(report, self.config.rootpath)
        written, missing = write_reports(report, paths)
        self.notes += missing
        return written

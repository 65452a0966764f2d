"""One run in the main process: what is reported, and what comes of it."""

__all__ = ("Run",)

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from pytest_llmeval.baselines.mode import SnapshotMode
from pytest_llmeval.cli.options import SHARD_SUFFIX
from pytest_llmeval.core.errors import MissingExtraError
from pytest_llmeval.plugin.options import is_suite_file, run_terms, shard_of_run
from pytest_llmeval.plugin.payload import RESULT, take_judgements, take_results
from pytest_llmeval.plugin.presentation import emit, verdict_report
from pytest_llmeval.plugin.shards import origin_of
from pytest_llmeval.plugin.suite_loader import SuiteLoader
from pytest_llmeval.run.case_runner import CaseRunner
from pytest_llmeval.run.finishing import finish_run, write_run
from pytest_llmeval.run.run_record import Item, ItemResult, RunRecord
from pytest_llmeval.run.stages import Reported, Suites, judges_of
from pytest_llmeval.suite.registry import Registry
from pytest_llmeval.suite.suite import Suite, SuiteKey


@dataclass
class Run:
    """What a run has reported, and what came of it.

    Attributes:
        config: Of the session.
        loader: The suites of this process.
        runner: Has the judges and recordings of this process.
        record: What was reported.
        notes: Lines for the terminal.
        finished: The result, once `finish` has run.
        shortfalls: Why the run does not pass although its exit code would say so.
        collected: Ids of all tests over cases, before any selection, if they are to be kept.
    """

    config: pytest.Config
    loader: SuiteLoader
    runner: CaseRunner
    record: RunRecord = field(default_factory=RunRecord)
    notes: list[str] = field(default_factory=list)
    finished: Reported | None = None
    shortfalls: list[str] = field(default_factory=list)
    collected: set[str] = field(default_factory=set)
    _expected: set[str] = field(default_factory=set)

    def take(self, report: pytest.TestReport) -> None:
        """Keep what a report carries."""
        self.record.take(report, take_results(report))
        take_judgements(report, self.record)
        crashed = report.when not in (
            "setup",
            "call",
            "teardown",
        )  # xdist reports the case of a crashed worker as "???"
        if report.failed and not (self.record.has(report) or (crashed and report.nodeid in self._expected)):
            self.record.failures.add(report.nodeid)
        if crashed:
            self.record.crashed = "a worker crashed"
        elif report.when == "call" or report.outcome != "passed":
            self.record.unfinished.discard(report.nodeid)

    def salvage(self, items: Iterable[pytest.Item]) -> None:
        """Keep what items had finished when the run was interrupted; pytest makes no report of the one that ran."""
        for item in items:
            part = item.stash.get(RESULT, None)
            if part is not None:
                self.record.items[Item(item.location[0], item.nodeid)] = ItemResult(part, "passed", 0.0)

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
        self.record.selected.update(str(path) for path in paths if path.is_file())
        if not self.config.getoption("setuponly", False):
            cases = {*over_suites, *(nodeid for nodeid, file in files.items() if file in suites)}
            # A worker in place of a crashed one collects everything anew, also what has ended.
            self.record.unfinished |= cases - self._expected
            self._expected |= cases

    def note_left_out(self, left_out: Mapping[str, Any]) -> None:
        """Note what a process collected and left out; see `SuiteLoader.left_out`."""
        self.record.dropped.update(SuiteKey(*key) for key in left_out.get("dropped", ()))
        self.record.deselected.update(left_out.get("deselected", ()))
        self.record.unwanted.update(left_out.get("unwanted", ()))
        self.collected.update(left_out.get("collected", ()))
        self.loader.misnamed.update(left_out.get("misnamed", ()))

    def note_uncollected(self, nodeid: str, why: str) -> None:
        """Note the faults of a suite file; what another file would have run is unknown, so nothing is approved."""
        file = nodeid.partition("::")[0]
        if is_suite_file(Path(file).name, self.config.getini("llmeval_files")):
            self.record.faults[file] = why.splitlines()
        else:
            self.record.uncollected = True

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
        self.record.ended = ended
        self.note_left_out(self.loader.left_out())
        recordings = self.runner.recordings
        terms, mode = run_terms(self.config), SnapshotMode.of(self.config)
        self.finished = finish_run(self.record, terms, self.suites(session), mode, recordings=recordings)
        self.shortfalls += self.finished.shortfalls
        self.notes += self.finished.notes
        emit(session, [verdict_report(*each) for each in self.finished.verdicts])

    def suites(self, session: pytest.Session) -> Suites:
        """Return the suites of the run."""
        return _Suites(session, self.loader, self.runner)

    @property
    def is_empty_shard(self) -> bool:
        """Whether there are cases, but none of them is in this shard."""
        return bool(self.collected) and shard_of_run(self.config) is not None

    def write(self, session: pytest.Session, paths: Sequence[Path]) -> list[Path]:
        """Write the report files, the shard file, and GitHub's job summary where there is one.

        Returns:
            The files written; the notes have the reason for missing ones.
        """
        assert self.finished is not None
        kept = [path for path in paths if path.suffix == SHARD_SUFFIX]
        reports = [path for path in paths if path not in kept]
        written, missing, notes = write_run(self.finished.report, reports, self.config.rootpath)
        self.notes += [*missing, *notes]
        if style := self.config.option.llmeval_otel:
            self._send(session, style)
        return written + [path for path in kept if self._keep(session, path)]

    def _send(self, session: pytest.Session, style: str) -> None:
        """Send the scores as telemetry; what becomes of that is a note, and changes no verdict."""
        from pytest_llmeval.data.traces.source import judged_trace
        from pytest_llmeval.reports.telemetry import send_scores

        assert self.finished is not None
        report, suites = self.finished.report, self.suites(session)
        judged = {
            (each.path, case.id): trace
            for each in report.suites
            if not each.variant and each.path not in report.faults
            for case in suites.read(self.config.rootpath / each.path).cases
            if (trace := judged_trace(case)) is not None
        }
        texts = self.config.option.llmeval_texts == "all"
        try:
            self.notes.append(send_scores(report, judged, style=style, texts=texts))
        except MissingExtraError as error:
            self.notes.append(f"scores NOT sent: {error}")

    def _keep(self, session: pytest.Session, path: Path) -> bool:
        from pytest_llmeval.run.shards.file import write_shard

        assert self.finished is not None
        origin = origin_of(session, self.loader, self.finished, self.collected)
        record = structs.replace(self.record, seconds=self.finished.report.run.duration_s)
        try:
            write_shard(path, origin, record, self.config.rootpath)
        except OSError as error:
            self.notes.append(f"results NOT kept in {path}: {error.strerror}")
            return False
        return True


@dataclass(frozen=True)
class _Suites:
    """Implements `pytest_llmeval.run.stages.Suites` for a session."""

    session: pytest.Session
    loader: SuiteLoader
    runner: CaseRunner

    @property
    def root(self) -> Path:
        return self.session.config.rootpath

    def read(self, path: Path) -> Suite:
        return self.loader.load(path, self.session)

    def registry(self, path: Path) -> Registry:
        self.loader.load(path, self.session)
        return self.loader.registry(path)

    def judges(self, key: SuiteKey, suite: Suite) -> Mapping[str, Mapping[str, str]]:
        return judges_of(suite, self.runner.judges, key.shown)

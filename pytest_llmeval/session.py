"""The controller's side of a run: gathers what items report, judges gates once, hands the result to the reports."""

__all__ = ("Run",)

import os
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest

from pytest_llmeval._version import __version__
from pytest_llmeval.collect import PAYLOAD
from pytest_llmeval.environment import is_suite_file
from pytest_llmeval.errors import LlmevalError, said
from pytest_llmeval.gates import GateResult
from pytest_llmeval.reports.data import RunReport, SuiteReport
from pytest_llmeval.results import CaseRecord
from pytest_llmeval.runtime import Suites
from pytest_llmeval.suite import Suite
from pytest_llmeval.summary import summarize
from pytest_llmeval.transport import SuiteKey, decode


@dataclass(slots=True)
class _Seen:
    """What one item reported last."""

    payload: str
    outcome: str
    duration: float


@dataclass
class Run:
    """One run, as the process sees it to which all reports come.

    Attributes:
        config: Of the session.
        suites: The suites of this process.
        broken: Why cases may be missing that nobody deselected: a crashed worker, an early stop.
        notes: Lines for the terminal about suites that could not be summarised.
        selected: Suite files of which some case was to run.
        report: The result, once `finish` has run.
    """

    config: pytest.Config
    suites: Suites
    broken: str = ""
    notes: list[str] = field(default_factory=list)
    selected: set[Path] = field(default_factory=set)
    report: RunReport | None = None
    _started: float = field(default_factory=time.time)
    _seen: dict[tuple[str, str], _Seen] = field(default_factory=dict)

    def take(self, report: pytest.TestReport) -> None:
        """Keep the result that a report carries; of a test that is run again the last one counts."""
        payload = report.__dict__.pop("llmeval", None)
        # Node ids of files outside rootdir lack the file's name.
        item = (report.location[0], report.nodeid)
        if report.when == "setup":
            self._seen.pop(item, None)
        if payload is not None:
            self._seen[item] = _Seen(payload, report.outcome, report.duration)
        elif report.when == "teardown" and report.failed and item in self._seen:
            self._seen[item].outcome = "error"
        elif report.when not in ("setup", "call", "teardown"):  # xdist reports the case of a crashed worker as "???"
            self.broken = "a worker crashed"

    def salvage(self, items: Iterable[pytest.Item]) -> None:
        """Keep what items had finished when the run was interrupted; pytest makes no report of the one that ran."""
        for item in items:
            payload = item.stash.get(PAYLOAD, None)
            if payload is not None:
                self._seen[item.location[0], item.nodeid] = _Seen(payload, "passed", 0.0)

    def expect(self, nodeids: Iterable[str]) -> None:
        """Note the suite files of items that are to run."""
        patterns = self.config.getini("llmeval_files")
        files = {nodeid.partition("::")[0] for nodeid in nodeids}
        paths = (self.config.rootpath / file for file in files if is_suite_file(Path(file).name, patterns))
        self.selected.update(path for path in paths if path.is_file())

    def allow_faulty_suites(self, session: pytest.Session) -> None:
        """Let the run go on if only suite files are faulty, as it does under xdist; the exit code still tells."""
        if session.testsfailed and session.testsfailed == self.suites.faulty_files:
            session.config.option.continue_on_collection_errors = True

    def finish(self, session: pytest.Session, ended: str = "") -> None:
        """Summarise, judge and report; gates appear as test reports of their own.

        Args:
            session: The session.
            ended: Why the run ended early, or nothing.
        """
        self.broken = self.broken or ended
        suites = []
        predictions: list[dict[str, Any]] = []
        emitted = []
        complete: set[tuple[str, str]] = set()
        for key, total, records, made in self._gathered():
            predictions += made
            try:
                suite = self.suites.load(Path(key.path), session)
                report = self._judge(suite, key, total or suite.total, records)
            except Exception as error:  # noqa: BLE001 (an evaluator's bug costs its own suite, not the others)
                why = str(error) if isinstance(error, LlmevalError) else said(error)
                self.notes.append(f"{key.shown}: not judged: {why}")
                emitted.append((key, GateResult("summary", "failed", None, None, f"not judged: {why}")))
                continue
            suites.append(report)
            if report.run == report.total and not key.test:  # what a Python test scores is no recording
                complete.add((key.shown, key.variant))
            # A skipped report would take a failed gate off pytest's list for --lf, so gates of a run that leaves cases
            # out on purpose are not reported at all.
            on_purpose = not (self.broken or suite.problems)
            emitted += [(key, gate) for gate in report.gates if gate.outcome != "not_judged" or not on_purpose]
        started = datetime.fromtimestamp(self._started, UTC).isoformat(timespec="seconds")
        self.report = RunReport(started, round(time.time() - self._started, 3), __version__, self._commit(), suites)
        if self.suites.recordings is not None:
            try:
                self.suites.recordings.update(predictions, complete)
            except OSError as error:
                why = f"predictions not recorded in {self.suites.recordings.path}: {error.strerror}"
                self.notes.append(why)
                emitted.append((SuiteKey("", "predictions"), GateResult("recording", "failed", None, None, why)))
        self._emit(session, emitted)

    def _gathered(self) -> "Iterator[tuple[SuiteKey, int, dict[str, CaseRecord], list[dict[str, Any]]]]":
        """Yield suites sorted by path, test and variant, so that the order in which workers report does not show.

        A suite of which nothing was heard because the run broke comes without records, its total 0.
        """
        gathered: dict[SuiteKey, tuple[int, dict[str, CaseRecord], list[dict[str, Any]]]] = {}
        for seen in self._seen.values():
            payload = decode(seen.payload)
            _, records, predictions = gathered.setdefault(payload.key, (payload.total, {}, []))
            for record in payload.records:
                if len(payload.records) == 1:
                    record.duration_s = record.duration_s or seen.duration
                    _settle(record, seen.outcome)
                records[record.id] = record
            predictions += payload.predictions
        reported = {Path(key.path) for key in gathered}
        for path in self.selected - reported if self.broken else ():
            gathered[SuiteKey(str(path), self.suites.shown(path))] = (0, {}, [])
        for key in sorted(gathered, key=lambda key: (key.shown, key.test, key.variant)):
            yield key, *gathered[key]

    def _judge(self, suite: Suite, key: SuiteKey, total: int, records: dict[str, CaseRecord]) -> SuiteReport:
        rows = []
        for case in suite.cases:
            record = records.get(case.id) or CaseRecord(
                case.id, outcome="not_run", reason=self.broken or "not selected"
            )
            record.labels = case.labels
            rows.append(record)
        result = summarize(
            suite.evaluators, rows, group_by=suite.group_by, confidence=suite.confidence, faulty=suite.faulty
        )
        name = suite.name + "".join(f"[{part}]" for part in (key.test, key.variant) if part)
        report = SuiteReport(name, key.shown, result, [], total, suite.confidence)
        incomplete = self._incomplete(suite, report.run, total)
        return replace(report, gates=[gate.judge(result, incomplete) for gate in suite.gates])

    def _incomplete(self, suite: Suite, run: int, total: int) -> str:
        """Say why results are not those of the whole suite, or nothing."""
        reasons = [f"{run} of {total} cases ran"] if run < total else []
        if suite.problems:
            reasons.append("the suite's files have faults")
        if reasons and self.broken:
            reasons.append(self.broken)
        return "; ".join(reasons)

    def _commit(self) -> str | None:
        try:
            done = subprocess.run(
                ["git", "rev-parse", "HEAD"],  # noqa: S607 (git is found where the user's shell finds it)
                cwd=self.config.rootpath,
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip() or None

    def _emit(self, session: pytest.Session, gates: "list[tuple[SuiteKey, GateResult]]") -> None:
        """Report gates the way tests are reported: verbose output, counts, JUnit and exit code follow."""
        session.testscollected += len(gates)
        for key, gate in gates:
            variant = "".join(f"[{part}]" for part in (key.test, key.variant) if part)
            name = f"gate[{gate.gate}]{variant}"
            location = (key.shown, 0, name)
            reason: str | tuple[str, int, str] | None = None
            outcome: Literal["passed", "failed", "skipped"] = "passed"
            if gate.outcome == "failed":
                outcome, reason = "failed", f"{key.shown}: gate {gate.gate}: {gate.reason}"
            elif gate.outcome == "not_judged":
                outcome, reason = "skipped", (key.path, 0, f"Skipped: {gate.reason}")
            nodeid = f"{key.shown}::{name}"
            for phase in (
                pytest.TestReport(nodeid, location, {}, "passed", None, "setup"),
                pytest.TestReport(nodeid, location, {}, outcome, reason, "call"),
                pytest.TestReport(nodeid, location, {}, "passed", None, "teardown"),
            ):
                self.config.hook.pytest_runtest_logreport(report=phase)

    def write(self, paths: "list[Path]") -> list[Path]:
        """Write the report files, and GitHub's job summary where there is one.

        Returns:
            The files written; the notes say why one is missing.
        """
        from pytest_llmeval.reports.json import write_json
        from pytest_llmeval.reports.markdown import append_markdown, write_markdown

        assert self.report is not None
        written = []
        for path in paths:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                {".json": write_json, ".md": write_markdown}[path.suffix](self.report, path)
                written.append(path)
            except OSError as error:
                self.notes.append(f"report NOT written to {path}: {error.strerror}")
        summary = os.environ.get("GITHUB_STEP_SUMMARY")
        if summary and self.report.suites:
            try:
                append_markdown(self.report, Path(summary))
            except OSError as error:
                self.notes.append(f"job summary NOT written to {summary}: {error.strerror}")
        return written


def _settle(record: CaseRecord, outcome: str) -> None:
    """Let pytest's verdict on an item decide its case's: marks and other plugins may have changed it."""
    if outcome == "skipped":  # by skip or xfail: what was scored on the way counts nowhere
        record.outcome, record.observations, record.errors = "skipped", {}, {}
    elif outcome == "error" and record.outcome == "passed":
        record.outcome, record.reason = "errored", "teardown failed"
    elif outcome == "failed" and record.outcome == "passed":
        record.outcome, record.reason = "failed", "the test failed after scoring"

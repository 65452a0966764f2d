"""The controller's side of a run: gathers what items report, judges gates once, hands the result to the reports."""

__all__ = ("Emitted", "Run", "emit")

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import pytest

from pytest_llmeval._version import __version__
from pytest_llmeval.core.errors import LlmevalError, format_error
from pytest_llmeval.core.evaluator import Metric, metric_prefix
from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.core.wording import counted
from pytest_llmeval.judge.recordings import UsedJudgements
from pytest_llmeval.plugin.options import is_suite_file
from pytest_llmeval.plugin.payload import PAYLOAD
from pytest_llmeval.plugin.result_collector import ResultCollector
from pytest_llmeval.plugin.suites import Suites
from pytest_llmeval.reports.buckets import fill_buckets
from pytest_llmeval.reports.data import RunReport, SuiteReport, renamed
from pytest_llmeval.scoring.gates import GateResult, Verdict
from pytest_llmeval.scoring.regression_verdicts import Finding
from pytest_llmeval.scoring.summary import summarize
from pytest_llmeval.scoring.usage import UsageEvaluator, claim_calls, usage_report
from pytest_llmeval.snapshots.baselines import examine_regressions, with_regressions
from pytest_llmeval.snapshots.comparable import owner_of
from pytest_llmeval.snapshots.history import append_runs
from pytest_llmeval.snapshots.keeper import Keeper, SuiteRun
from pytest_llmeval.snapshots.mode import Mode
from pytest_llmeval.snapshots.stamp import Stamp, day_of, head_commit
from pytest_llmeval.suite.suite import Suite, SuiteKey


class Emitted(NamedTuple):
    """A verdict that is no test's.

    Attributes:
        path: The file that it is about.
        shown: The file as reports name it.
        name: Behind the file in the node id, such as ``gate[f1 >= 0.7]``.
        outcome: ``not_judged`` is reported as skipped.
        reason: One sentence for people.
    """

    path: str
    shown: str
    name: str
    outcome: Literal["passed", "failed", "not_judged"]
    reason: str


def emit(session: pytest.Session, verdicts: Sequence[Emitted]) -> None:
    """Report verdicts the way pytest reports tests: three phases each."""
    session.testscollected += len(verdicts)
    for each in verdicts:
        reason: str | tuple[str, int, str] | None = None
        outcome: Literal["passed", "failed", "skipped"] = "passed"
        if each.outcome == "failed":
            outcome, reason = "failed", each.reason
        elif each.outcome == "not_judged":
            outcome, reason = "skipped", (each.path, 0, f"Skipped: {each.reason}")
        nodeid, location = f"{each.shown}::{each.name}", (each.shown, 0, each.name)
        for phase in (
            pytest.TestReport(nodeid, location, {}, "passed", None, "setup"),
            pytest.TestReport(nodeid, location, {}, outcome, reason, "call"),
            pytest.TestReport(nodeid, location, {}, "passed", None, "teardown"),
        ):
            session.config.hook.pytest_runtest_logreport(report=phase)


JUDGES_OFF = "judges are off"

_Judged: TypeAlias = tuple[SuiteKey, GateResult | Verdict]

_SHOWN_CASES = 3


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
        keeper: The score snapshots.
        uncollected: Whether collecting failed elsewhere than in suite files.
    """

    config: pytest.Config
    suites: Suites
    broken: str = ""
    notes: list[str] = field(default_factory=list)
    selected: set[Path] = field(default_factory=set)
    report: RunReport | None = None
    keeper: Keeper = field(init=False)
    uncollected: bool = False
    _started: float = field(default_factory=time.time)
    _collector: ResultCollector = field(default_factory=ResultCollector)
    _used: UsedJudgements = field(default_factory=UsedJudgements)
    _faults: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keeper = Keeper(Mode(self.config), self.config.getini("llmeval_snapshots"), root=self.config.rootpath)

    def take(self, report: pytest.TestReport) -> None:
        """Keep what a report carries."""
        self._collector.take(report, report.__dict__.pop("llmeval", None))
        self._used.take(report.__dict__.pop("llmeval_judged", "[]"))
        if report.when not in ("setup", "call", "teardown"):  # xdist reports the case of a crashed worker as "???"
            self.broken = "a worker crashed"

    def salvage(self, items: Iterable[pytest.Item]) -> None:
        """Keep what items had finished when the run was interrupted; pytest makes no report of the one that ran."""
        for item in items:
            payload = item.stash.get(PAYLOAD, None)
            if payload is not None:
                self._collector.salvage(item, payload)

    def expect(self, nodeids: Iterable[str]) -> None:
        """Note the suite files of items that are to run."""
        patterns = self.config.getini("llmeval_files")
        files = {nodeid.partition("::")[0] for nodeid in nodeids}
        paths = (self.config.rootpath / file for file in files if is_suite_file(Path(file).name, patterns))
        self.selected.update(path for path in paths if path.is_file())

    def note_uncollected(self, nodeid: str, why: str) -> None:
        """Note the faults of a suite file; what another file would have run is unknown, so nothing is approved."""
        file = nodeid.partition("::")[0]
        if is_suite_file(Path(file).name, self.config.getini("llmeval_files")):
            self._faults[file] = why.splitlines()
        else:
            self.uncollected = True

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
        moment = datetime.fromtimestamp(self._started, UTC)
        started, commit = moment.isoformat(timespec="seconds"), head_commit(self.config.rootpath)
        if ended or self.uncollected:
            self.keeper.mode.refuse_to_write()
        stamp = Stamp(day_of(moment), commit)
        judged: list[tuple[SuiteKey, Suite, SuiteReport, list[Finding]]] = []
        predictions: list[dict[str, Any]] = []
        emitted: list[_Judged] = []
        complete: set[tuple[str, str]] = set()
        whole: dict[Path, bool] = {}
        unscored: dict[Path, set[str]] = {}
        # Of a suite of which nothing was heard because the run broke, every case has yet to run.
        silent = [SuiteKey(str(path), self.suites.shown(path)) for path in self.selected] if self.broken else []
        for key, total, records, made in self._collector.suites(silent):
            predictions += made
            try:
                suite = self.suites.load(Path(key.path), session)
                judged.append((key, suite, *self._judge(suite, key, total or suite.total, records, stamp)))
            except Exception as error:  # noqa: BLE001 (an evaluator's bug costs its own suite, not the others)
                why = str(error) if isinstance(error, LlmevalError) else format_error(error)
                self.notes.append(f"{key.shown}: not judged: {why}")
                emitted.append((key, GateResult("summary", "failed", None, None, f"not judged: {why}")))
        suites = list(with_regressions([report for _, _, report, _ in judged], [found for *_, found in judged]))
        for (key, suite, *_), report in zip(judged, suites, strict=True):
            whole[suite.path] = whole.get(suite.path, True) and report.run == report.total
            unscored.setdefault(suite.path, set()).update(each.id for each in report.result.records if _lacks(each))
            if report.run == report.total and not key.test:  # what a Python test scores is no recording
                complete.add((key.shown, key.variant))
            # A skipped report would take a failed gate off pytest's list for --lf, so gates of a run that leaves cases
            # out on purpose are not reported at all.
            on_purpose = not (self.broken or suite.faults)
            verdicts: list[GateResult | Verdict] = [*report.gates, *report.snapshot]
            emitted += [(key, each) for each in verdicts if each.outcome != "not_judged" or not on_purpose]
        emitted.sort(key=lambda each: (each[0].shown, each[0].test, each[0].variant))
        emitted = self._settle(emitted, started, commit)
        duration, faults = round(time.time() - self._started, 3), dict(sorted(self._faults.items()))
        self.report = RunReport(started, duration, __version__, commit, suites, faults)
        if self.suites.recordings is not None:
            try:
                if left_out := self.suites.recordings.update(predictions, complete):
                    self.notes.append(_not_recorded(left_out))
            except OSError as error:
                why = f"predictions not recorded in {self.suites.recordings.path}: {error.strerror}"
                self.notes.append(why)
                emitted.append((SuiteKey("", "predictions"), GateResult("recording", "failed", None, None, why)))
        emitted += self._record_judgements({path: unscored[path] for path, ran in whole.items() if ran})
        emit(session, [_emitted(key, each) for key, each in emitted])

    def _record_judgements(self, whole: Mapping[Path, Collection[str]]) -> "Iterator[_Judged]":
        """Write the judgements that the run used; yield what could not be written.

        Args:
            whole: Suite files of which all cases ran, to the cases that lack a score: ``refresh`` forgets what the run
                did not use, but not the verdicts of these.
        """
        renewed = whole if self.suites.options.mode == "refresh" else {}
        for path, count, fault in self._used.write(renewed):
            if fault:
                why = f"judgements not recorded: {fault}"
                self.notes.append(why)
                yield SuiteKey("", self.suites.shown(path)), GateResult("recording", "failed", None, None, why)
            elif count:
                self.notes.append(f"{counted(count, 'judgement')} recorded in {self.suites.shown(path)}")

    def _settle(self, verdicts: "list[_Judged]", started: str, commit: str | None) -> "list[_Judged]":
        """Have snapshots written, and the run noted in the local history.

        Returns:
            The verdicts; a snapshot that could not be written has one of its own instead of those that approved it.
        """
        faults = self.keeper.settle(whole=not self.broken)
        unwritten = {key for key, _ in faults}
        kept = [each for each in verdicts if each[0] not in unwritten or not isinstance(each[1], Verdict)]
        try:
            append_runs(self.config.rootpath, self.keeper.judged, time=started, commit=commit)
        except OSError as error:
            self.notes.append(f"run NOT noted in {error.filename}: {error.strerror}")
        return [*kept, *faults]

    def _judge(
        self, suite: Suite, key: SuiteKey, total: int, records: dict[str, CaseRecord], stamp: Stamp
    ) -> tuple[SuiteReport, list[Finding]]:
        rows = []
        for case in suite.cases:
            record = records.get(case.id) or CaseRecord(
                case.id, outcome="not_run", reason=self.broken or "not selected"
            )
            record.labels = case.labels
            rows.append(record)
        claim_calls(rows)
        result = summarize(
            suite.reported, rows, group_by=suite.group_by, confidence=suite.confidence, faulty=suite.faulty
        )
        name = suite.name + "".join(f"[{part}]" for part in (key.test, key.variant) if part)
        grids = [grid for label, each in suite.evaluators.items() for grid in renamed(label, each)]
        report = SuiteReport(
            name,
            key.shown,
            result,
            [],
            total,
            suite.confidence,
            usage_report(rows),
            grids=grids,
            buckets=fill_buckets(suite.evaluators, result.cases),
            lower_is_better=[name for name in result.metrics if _lower_is_better(name, suite)],
        )
        incomplete = self._incomplete(suite, report.run, total)
        off = judges_off(suite, rows) if self.suites.options.mode == "off" and suite.judged else frozenset()
        suite_run = SuiteRun(suite, key, result, rows, self.suites.judges_of(suite))
        unjudged = JUDGES_OFF if off else ""
        snapshot = self.keeper.judge(suite_run, incomplete or unjudged, stamp)
        findings = examine_regressions(suite_run, self.keeper, snapshot, incomplete, unjudged)
        gates = [
            gate.judge(result, incomplete, unjudged if Metric(gate.metric).family in off else "")
            for gate in suite.gates
        ]
        return replace(report, gates=gates, snapshot=snapshot), findings

    def _incomplete(self, suite: Suite, run: int, total: int) -> str:
        """Say why results are not those of the whole suite, or nothing."""
        reasons = [f"{run} of {total} cases ran"] if run < total else []
        if suite.faults:
            reasons.append("the suite's files have faults")
        if reasons and self.broken:
            reasons.append(self.broken)
        return "; ".join(reasons)

    def write(self, paths: "list[Path]") -> list[Path]:
        """Write the report files, and GitHub's job summary where there is one.

        Returns:
            The files written; the notes say why one is missing.
        """
        from pytest_llmeval.reports.files import write_reports

        assert self.report is not None
        written, missing = write_reports(self.report, paths)
        self.notes += missing
        return written


def judges_off(suite: Suite, rows: Iterable[CaseRecord]) -> frozenset[str]:
    """Return the families of the metrics about which a run without judges has nothing, or not all, to say."""
    from pytest_llmeval.judge.service import JudgeOffError

    why = str(JudgeOffError())
    families = {metric.family for metric in UsageEvaluator().describe()}
    for row in rows:
        for label, observation in row.observations.items():
            prefix = metric_prefix(label, suite.evaluators[label])
            families |= {
                Metric(prefix + name).family for name, reason in observation.undefined.items() if reason == why
            }
    return frozenset(families)


def _lacks(record: CaseRecord) -> bool:
    """Return whether a case has no score, or not all of them, because something failed or it did not run."""
    return bool(record.errors) or not record.observations or any(each.errored for each in record.observations.values())


def _lower_is_better(metric: str, suite: Suite) -> bool:
    owned = owner_of(metric, suite.reported)
    return owned is not None and not owned[1].higher_is_better


def _not_recorded(cases: Sequence[str]) -> str:
    shown = ", ".join(map(repr, cases[:_SHOWN_CASES])) + (", ..." if len(cases) > _SHOWN_CASES else "")
    return f"predictions NOT recorded, since no later run could read them: {len(cases)} ({shown})"


def _emitted(key: SuiteKey, verdict: GateResult | Verdict) -> Emitted:
    """Name a verdict on a suite as its items are named: the variant in brackets behind it."""
    variant = "".join(f"[{part}]" for part in (key.test, key.variant) if part)
    kind, subject = ("gate", verdict.gate) if isinstance(verdict, GateResult) else ("snapshot", verdict.metric)
    failed = verdict.outcome == "failed"
    reason = f"{key.shown}: {kind} {subject}: {verdict.reason}" if failed else verdict.reason
    return Emitted(key.path, key.shown, f"{kind}[{subject}]{variant}", verdict.outcome, reason)

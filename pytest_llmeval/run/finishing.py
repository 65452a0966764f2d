"""The end of a run: from what was heard of it to verdicts, files and the report, without pytest."""

__all__ = ("FinishedRun", "HeardRun", "RunTerms", "Suites", "finish_run")

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.data.files.places import display_path
from pytest_llmeval.judge.options import JudgeMode
from pytest_llmeval.judge.recordings import UsedJudgements
from pytest_llmeval.reports.data import RunReport
from pytest_llmeval.reports.notes import ReportedTexts
from pytest_llmeval.run.collected import CollectedRun, CollectedSuite, SuiteResults, fault_of
from pytest_llmeval.run.judging import SuiteVerdict, judge_run
from pytest_llmeval.run.persisting import Stores, persist
from pytest_llmeval.run.result_collector import ResultCollector
from pytest_llmeval.run.shortfall import shortfalls
from pytest_llmeval.snapshots.keeper import Keeper
from pytest_llmeval.snapshots.mode import SnapshotMode
from pytest_llmeval.snapshots.stamp import head_commit
from pytest_llmeval.suite.suite import Suite, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.targets.python import Recordings


@dataclass
class HeardRun:
    """Everything that the main process has heard of a run.

    Attributes:
        started: When it started, as `time.time`.
        results: Of its items.
        judgements: That they used, if these are recorded.
        ended: Why the run ended early, or nothing.
        crashed: Why results may be missing though the run went on, or nothing.
        uncollected: Whether collecting failed elsewhere than in suite files.
        faults: Suite file to what is wrong with it.
        selected: Suite files of which some case was to run.
        dropped: Suites and variants of which nothing was to run, if gates must be judged.
        unfinished: Items over cases that were to run and have no result.
        deselected: Items over cases that were collected and left out.
        unwanted: Of them, those that options of pytest have left out.
        failures: Failed tests that are no cases.
    """

    started: float = field(default_factory=time.time)
    results: ResultCollector = field(default_factory=ResultCollector)
    judgements: UsedJudgements = field(default_factory=UsedJudgements)
    ended: str = ""
    crashed: str = ""
    uncollected: bool = False
    faults: dict[str, list[str]] = field(default_factory=dict)
    selected: set[Path] = field(default_factory=set)
    dropped: set[SuiteKey] = field(default_factory=set)
    unfinished: set[str] = field(default_factory=set)
    deselected: set[str] = field(default_factory=set)
    unwanted: set[str] = field(default_factory=set)
    failures: set[str] = field(default_factory=set)

    @property
    def broken(self) -> str:
        """Why cases may be missing without being deselected."""
        return self.crashed or self.ended


@dataclass(frozen=True)
class RunTerms:
    """The options that decide what comes of results.

    Attributes:
        judge: What judges were allowed to do.
        texts: Of which cases reports have input, expected and prediction.
        snapshots: Whether suites without the key ``snapshot`` have one.
        require_gates: Whether gates must be judged even if the user selected a part of the cases.
        shard: Which part of all cases ran, such as ``2/5``; empty for a run of all.
        is_kept: Whether the results are written to a shard file.
        compares: Whether a report shows what changed since scores were approved.
    """

    judge: JudgeMode = "auto"
    texts: ReportedTexts = "failing"
    snapshots: bool = False
    require_gates: bool = False
    shard: str = ""
    is_kept: bool = False
    compares: bool = False


class Suites(Protocol):
    """The suites of a run."""

    @property
    def root(self) -> Path:
        """The folder to which reports name files relatively: pytest's rootdir."""

    def read(self, path: Path) -> Suite:
        """Return the suite of a file.

        Raises:
            LlmevalError: The file has faults, or an evaluator cannot be registered.
        """

    def judges(self, key: SuiteKey, suite: Suite) -> Mapping[str, Mapping[str, str]]:
        """Return, by evaluator, what decides the verdicts on a suite."""


@dataclass(frozen=True)
class FinishedRun:
    """What came of a run.

    Attributes:
        collected: Results and suites.
        report: The report.
        verdicts: On suites, gates, snapshots and files.
        notes: Lines for people.
        shortfalls: Why the run does not pass although its exit code would say so.
    """

    collected: CollectedRun
    report: RunReport
    verdicts: Sequence[SuiteVerdict]
    notes: Sequence[str]
    shortfalls: Sequence[str]

    @property
    def failed(self) -> bool:
        """Whether a case, a verdict or a suite file failed."""
        cases = (case for suite in self.report.suites for case in suite.result.cases)
        return (
            bool(self.report.faults)
            or any(case.outcome in ("failed", "errored") for case in cases)
            or any(each.verdict.outcome == "failed" for each in self.verdicts)
        )


def finish_run(
    heard: HeardRun,
    terms: RunTerms,
    suites: Suites,
    mode: SnapshotMode,
    *,
    recordings: "Recordings | None" = None,
    duration_s: float | None = None,
) -> FinishedRun:
    """Turn what was heard of a run into verdicts, files and its report.

    Args:
        heard: All of it.
        terms: The options.
        suites: Of the run.
        mode: What is asked for about snapshots.
        recordings: Predictions; ``None`` if they are not recorded.
        duration_s: How long the run took; default: from its start until now.
    """
    keeper = Keeper(mode.read_only() if heard.ended or heard.uncollected else mode, terms.snapshots, root=suites.root)
    swallowed = 0 if mode.selects or terms.shard else len(heard.deselected)
    run = _collect(heard, terms, suites, is_part=terms.is_kept and swallowed > 0)
    judged = judge_run(run, keeper)
    stores = Stores(suites.root, keeper, heard.judgements, recordings, terms.judge == "refresh")
    persisted = persist(run, judged, stores)
    lacking = shortfalls(
        judged,
        broken=heard.broken,
        unfinished=len(heard.unfinished),
        require_gates=terms.require_gates and not (terms.shard or (terms.is_kept and heard.deselected)),
        swallowed=0 if terms.is_kept else swallowed,
    )
    duration = time.time() - heard.started if duration_s is None else duration_s
    report = judged.report(run, duration_s=round(duration, 3), faults=heard.faults)
    return FinishedRun(run, report, persisted.verdicts, [*judged.notes, *persisted.notes], list(lacking))


def _collect(heard: HeardRun, terms: RunTerms, suites: Suites, *, is_part: bool) -> CollectedRun:
    """Put results and suites together."""
    # Of a suite of which nothing was heard because the run broke, every case has yet to run.
    silent = [key for path in heard.selected for key in _keys(path, suites)] if heard.broken else []
    return CollectedRun(
        started=datetime.fromtimestamp(heard.started, UTC),
        commit=head_commit(suites.root),
        suites=[_with_suite(each, suites) for each in heard.results.suites(silent, heard.dropped)],
        broken=heard.broken,
        judges_off=terms.judge == "off",
        texts=terms.texts,
        compares=terms.compares,
        shard=terms.shard,
        is_part=is_part,
    )


def _keys(path: Path, suites: Suites) -> list[SuiteKey]:
    """Return what the results of a suite file are gathered under, variants of fixtures aside."""
    try:
        names = list(suites.read(path).systems) or [""]
    except LlmevalError:
        names = [""]
    return [SuiteKey(str(path), display_path(path, suites.root), variant=name) for name in names]


def _with_suite(results: SuiteResults, suites: Suites) -> CollectedSuite:
    key = results.key
    try:
        suite = suites.read(Path(key.path))
        suite = suite.gated(key.variant) if key.test else suite.of(key.variant)
        return CollectedSuite(results, suite, suites.judges(key, suite))
    except Exception as error:  # noqa: BLE001 (a file that changed, or a user's hook, costs its own suite only)
        return CollectedSuite(results, fault=fault_of(error))

"""The stages of a run's end, ``Collected -> Judged -> Reported``, the first of them, and the files of a judged run.

A stage is frozen, and made by a function from the stage before: `collect`, `judge`, `report`. Extensions that are
registered for a stage (`Registry.extend`) map it to another of its kind before the next stage is made.
"""

import dataclasses
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct, structs

from pytest_llmeval.baselines import (
    FailuresFile,
    Keeper,
    SnapshotJudgement,
    Stamp,
    SuiteRun,
)
from pytest_llmeval.core import (
    AnyError,
    Case,
    CaseRecord,
    GateResult,
    LlmevalError,
    Result,
    SnapshotVerdict,
    counted,
    listed,
)
from pytest_llmeval.data import OutputFolder, OwnFiles, display_path
from pytest_llmeval.judges import JudgeMode
from pytest_llmeval.numbers import summarize
from pytest_llmeval.reports import ReportedTexts, RunReport, StopReport, WrittenReports
from pytest_llmeval.run._execute import as_approved, is_skipped
from pytest_llmeval.run._run_record import RunRecord
from pytest_llmeval.suites import LoadedSuite, Registry, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.gates import ChangeGate
    from pytest_llmeval.numbers import RunPairing
    from pytest_llmeval.targets import Recordings

_LISTED_CASES = 3

Family: TypeAlias = Literal["suite", "project"]
"""Gates on changes that are judged together."""

SuiteVerdict: TypeAlias = tuple[SuiteKey, GateResult | SnapshotVerdict]
"""A verdict on a suite: of a gate, of its snapshot, or that something failed as a whole."""


class EarlyStop(Struct, frozen=True):
    """The end of a suite that stopped because its gates were decided.

    Attributes:
        report: Counts and savings, for reports.
        gates: The verdicts on its gates.
        ran_ahead: Records of cases that were not needed and had run by then; they count nowhere, but cost.
    """

    report: StopReport
    gates: Sequence[GateResult] = ()
    ran_ahead: Sequence[CaseRecord] = ()


class CollectedSuite(Struct, frozen=True):
    """A suite with the records of its cases: the first stage.

    Attributes:
        key: The key of its results.
        suite: The suite; that of another system, or of a Python test, if the key names one.
        records: A record for each case.
        total: Number of cases in the suite, faulty ones included.
        judges: Label of an evaluator to what decides its verdicts.
        known: Case id to limits and checks that the case is approved not to meet.
        reruns: Number of its items that failed and ran again.
        stop: Its early end; ``None`` if it ran to its end.
        baseline: The records of the run that it is compared with, in place of the approved one.
    """

    key: SuiteKey
    suite: LoadedSuite
    records: Sequence[CaseRecord] = ()
    total: int = 0
    judges: Mapping[str, Mapping[str, str]] = {}
    known: Mapping[str, Sequence[str]] = {}
    reruns: int = 0
    stop: EarlyStop | None = None
    baseline: Sequence[CaseRecord] | None = None

    @classmethod
    def from_records(
        cls,
        key: SuiteKey,
        suite: LoadedSuite,
        records: Mapping[str, CaseRecord],
        judges: Mapping[str, Mapping[str, str]],
    ) -> "CollectedSuite":
        """The suite with these records of its cases, by id; a case without one did not run."""
        return cls(key, suite, _rows_of(suite, records, ""), suite.total, judges)

    def ended_early(
        self,
        counting: Sequence[CaseRecord],
        ran_ahead: Sequence[CaseRecord],
        *,
        confidence: float,
        judge_calls: int,
        answers: int,
        cost_usd: float | None,
    ) -> "CollectedSuite":
        """The suite as it stopped before its end; the verdicts on its gates are yet to come.

        Args:
            counting: The records of the cases that decided the gates.
            ran_ahead: Records of cases that were not needed and had run by then.
            confidence: With which the verdicts are those of a complete run.
            judge_calls: Calls of judges that the other cases would have taken.
            answers: Likewise, answers of the target.
            cost_usd: Likewise, what all of this would have cost; ``None`` where the cost of a call is not known.
        """
        others = len(self.records) - len(counting)
        report = StopReport(len(counting), others, len(ran_ahead), confidence, judge_calls, answers, cost_usd)
        return structs.replace(self, records=counting, stop=EarlyStop(report, ran_ahead=ran_ahead))

    def with_stop_verdicts(self, gates: Sequence[GateResult]) -> "CollectedSuite":
        """The suite that stopped early with the verdicts on its gates."""
        return self if self.stop is None else structs.replace(self, stop=structs.replace(self.stop, gates=gates))

    def run_of(self, records: Sequence[CaseRecord]) -> SuiteRun:
        """The run of other records, beside the approved one; its metrics have no intervals."""
        result = summarize(self.suite.metrics, records, confidence=None)
        return SuiteRun(self.key, self.suite, records, result, self.judges, self.baseline)

    def pairings(
        self, records: Sequence[CaseRecord], keeper: Keeper
    ) -> "Iterator[tuple[ChangeGate, RunPairing | None]]":
        """Yield the gates against a baseline, each with the approved run and a run of other records.

        Args:
            records: Of the cases that have run so far, and of those that have yet to run.
            keeper: How snapshots are treated.

        Yields:
            A gate, and ``None`` where there is nothing to compare with, or runs may not be comparable by its metric.
        """
        from pytest_llmeval.baselines import SnapshotReview

        return SnapshotReview(self.run_of(records), keeper).pairings()

    def qualify(self, verdict: GateResult, most_skipped: int) -> GateResult:
        """The verdict on a gate with what it rests on: cases that were skipped, or ran until they passed.

        A target that skips what it cannot answer would pass, so the gate fails if more cases than it allows were
        skipped at run time. Cases with the tag ``skip`` are declared, and free.
        """
        if verdict.outcome == "not_judged":
            return verdict
        reasons = [verdict.reason]
        if self.suite.sample is not None:
            reasons.append(str(self.suite.sample.report))
        if carried := sum(bool(record.carried) for record in self.records):
            reasons.append(f"{carried} of {counted(len(self.records), 'case')} carried")
        if self.reruns:
            reasons.append(f"{counted(self.reruns, 'case')} failed and ran again, and only the last result counts")
        verdict = dataclasses.replace(verdict, reason="; ".join(reasons))
        declared = {case.id for case in self.suite.cases if is_skipped(case)}
        skipped = sum(record.outcome == "skipped" and record.id not in declared for record in self.records)
        if skipped <= most_skipped:
            return verdict
        allowed = f"{most_skipped} allowed" if most_skipped else "none allowed"
        reason = f"{counted(skipped, 'case')} skipped at run time, {allowed} (max_skipped); {verdict.reason}"
        return dataclasses.replace(verdict, outcome="failed", reason=reason, undecided=False)


class MeasuredSuite(Struct, frozen=True, dict=True):
    """A collected suite of a run with its metrics.

    Attributes:
        collected: The suite and its records.
        result: Its metrics.
    """

    collected: CollectedSuite
    result: Result

    @property
    def key(self) -> SuiteKey:
        """The key of the measured suite's results."""
        return self.collected.key

    @property
    def suite(self) -> LoadedSuite:
        """The suite that was measured."""
        return self.collected.suite

    @property
    def ran(self) -> int:
        """The number of cases of the measured suite that ran."""
        return sum(record.outcome != "not_run" for record in self.result.records)

    @cached_property
    def run(self) -> SuiteRun:
        """The run of the measured suite, beside the approved one."""
        ran = self.collected
        return SuiteRun(ran.key, ran.suite, ran.records, self.result, ran.judges, ran.baseline)


class JudgedSuite(Struct, frozen=True):
    """A collected suite with the verdicts on it: the second stage.

    Attributes:
        measured: The suite, its records and its metrics.
        incomplete: Why the metrics are not those of the whole suite, or nothing.
        off: The metrics, as declared, that a run without judges cannot compute completely.
        waiting: The metrics, as declared, that lack pending verdicts, each with the number of cases concerned.
        snapshot: The comparison with its approved scores.
        gates: The verdicts on its gates.
        uncalibrated: Metrics with limits whose judge no labels of people confirm.
    """

    measured: MeasuredSuite
    incomplete: str = ""
    off: frozenset[str] = frozenset()
    waiting: Mapping[str, int] = {}
    snapshot: SnapshotJudgement = SnapshotJudgement()
    gates: Sequence[GateResult] = ()
    uncalibrated: Sequence[str] = ()

    @property
    def collected(self) -> CollectedSuite:
        """The suite and its records."""
        return self.measured.collected

    @property
    def key(self) -> SuiteKey:
        """The key of the judged suite's results."""
        return self.collected.key

    @property
    def suite(self) -> LoadedSuite:
        """The suite that was judged."""
        return self.collected.suite

    @property
    def records(self) -> Sequence[CaseRecord]:
        """The record of each case of the judged suite."""
        return self.collected.records

    @property
    def result(self) -> Result:
        """The metrics of the judged suite."""
        return self.measured.result

    @classmethod
    def by_variant(cls, suites: "Iterable[JudgedSuite]") -> "list[dict[str, JudgedSuite]]":
        """The judged systems of each suite, or variants of its target, in the order of file or name."""
        groups: dict[tuple[str, str], dict[str, JudgedSuite]] = {}
        for suite in suites:
            groups.setdefault((suite.key.display_path, suite.key.test), {})[suite.key.variant] = suite
        ordered = []
        for variants in groups.values():
            declared = [name for name in next(iter(variants.values())).suite.systems if name in variants]
            ordered.append({name: variants[name] for name in dict.fromkeys([*declared, *sorted(variants)])})
        return ordered


class RunTerms(Struct, frozen=True):
    """The options that decide what comes of a run's results.

    Attributes:
        judge: What judges were allowed to do.
        texts: Of which cases reports have input, expected and prediction.
        snapshots: Whether suites without the key ``snapshot`` have one.
        require_gates: Whether gates must be judged even if the user selected a part of the cases.
        shard: Which part of all cases ran, such as ``2/5``; empty for a run of all.
        is_kept: Whether the results are written to a shard file.
        compares: Whether a report shows what changed since scores were approved.
        mutate: Seed of mutants of the answers; ``None`` if none are made.
        family: Whose gates on changes are judged together: those of each suite, or of the whole project; ``None`` if
            the user has not said.
        fingerprints: Whether the report has a fingerprint of each case, which only files of reports show.
    """

    judge: JudgeMode = "auto"
    texts: ReportedTexts = "failing"
    snapshots: bool = False
    require_gates: bool = False
    shard: str = ""
    is_kept: bool = False
    compares: bool = False
    mutate: int | None = None
    family: Family | None = None
    concurrency: int | None = None
    fingerprints: bool = True


class Suites(Protocol):
    """The suites of a run, as the stages of its end read them."""

    @property
    def root(self) -> Path:
        """The folder to which reports name files relatively: pytest's rootdir."""

    def read(self, path: Path) -> LoadedSuite:
        """Load the suite of a file; a session loads each file once.

        Raises:
            LlmevalError: The file has faults, or an evaluator cannot be registered.
        """

    def registry(self, path: Path) -> Registry:
        """The registry of the suite of a file, with what is registered for it alone.

        Raises:
            LlmevalError: Something cannot be registered.
        """

    def judges(self, key: SuiteKey, suite: LoadedSuite) -> Mapping[str, Mapping[str, str]]:
        """The settings by evaluator that decide the verdicts of judges on a suite."""


class ChoiceTerms(Struct, frozen=True):
    """The options of a run of affected cases.

    Attributes:
        since: The commit to compare with; empty for the merge base with the main branch.
        refresh: The share of the other cases that runs nevertheless.
        mutates: Whether the run changes its answers.
        replays: Whether the answer to a case, and what judges say of it, would be replayed.
        collected: The suites of the run, once they are collected.
    """

    since: str = ""
    refresh: float = 0.0
    mutates: bool = False
    replays: "Callable[[SuiteKey, LoadedSuite, Case], bool]" = lambda *_: False
    collected: "Callable[[], Mapping[SuiteKey, LoadedSuite]]" = dict


class RunScope(Struct, frozen=True):
    """The circumstances of a run, which all stages may read.

    Attributes:
        run: The record of the run.
        terms: The options.
        suites: Its suites.
        keeper: How snapshots are treated.
        stamp: Of approvals.
        baselines: The records that suites are compared with, in place of their approved runs.
    """

    run: RunRecord
    terms: RunTerms
    suites: Suites
    keeper: Keeper
    stamp: Stamp
    baselines: Mapping[SuiteKey, Sequence[CaseRecord]] = {}


class Collected(Struct, frozen=True):
    """The suites of a run with their records.

    Attributes:
        suites: Sorted by path, test and variant, so that the order in which workers report does not show.
        faults: Suites that cannot be loaded, with the reason.
        shortfalls: Extensions that failed, with the reason; the run does not pass.
    """

    suites: Sequence[CollectedSuite]
    faults: Mapping[SuiteKey, str] = {}
    shortfalls: Sequence[str] = ()


class Judged(Struct, frozen=True):
    """The suites of a run with the verdicts on them.

    Attributes:
        suites: Those that could be judged.
        verdicts: On suites, sorted by path, test and variant.
        notes: Lines for people about suites that could not be judged, or that pass with any scores.
    """

    suites: Sequence[JudgedSuite]
    verdicts: Sequence[SuiteVerdict] = ()
    notes: Sequence[str] = ()


class Reported(Struct, frozen=True):
    """A judged run with its report.

    Attributes:
        judged: Its suites, and the verdicts on them.
        report: The report.
        verdicts: On suites, then on files.
        notes: Lines for people.
        shortfalls: Why the run does not pass although its exit code would say so.
    """

    judged: Judged
    report: RunReport
    verdicts: Sequence[SuiteVerdict] = ()
    notes: Sequence[str] = ()
    shortfalls: Sequence[str] = ()

    @property
    def failed(self) -> bool:
        """Whether a case, a verdict or a suite file failed."""
        cases = (case for suite in self.report.suites for case in suite.cases)
        return (
            bool(self.report.faults)
            or any(case.outcome in CaseRecord.BAD for case in cases)
            or any(verdict.outcome == "failed" for _, verdict in self.verdicts)
        )

    def write_files(self, paths: Sequence[Path], root: Path) -> WrittenReports:
        """Write the report files of the run, and GitHub's job summary, if any.

        Args:
            paths: Of the files; the suffix decides the form.
            root: pytest's rootdir, whose history pages show.
        """
        if not any(path.suffix == ".html" for path in paths):
            return WrittenReports.write(self.report, paths)
        from pytest_llmeval.baselines import History

        return WrittenReports.write(History.extend_report(self.report, root), paths)

    def lines(self, verbosity: int) -> list[str]:
        """The lines of the report and the notes, as wide as the terminal."""
        from pytest_llmeval.reports import render

        width = shutil.get_terminal_size().columns
        return [*(line.text for line in render(self.report, verbosity=verbosity, width=width)), *self.notes]


_Stage = TypeVar("_Stage", Collected, Reported)


def extended(point: Literal["collected", "reported"], stage: _Stage, scope: RunScope) -> _Stage:
    """A stage of a run's end after its registered extensions, in the order of their registration.

    The results of a run outlive an extension that fails: the stage stays as it was, and has a shortfall.

    Args:
        point: The stage's name among the extension points.
        stage: The stage.
        scope: The run.
    """
    for extension in Registry.installed_extensions(point):
        try:
            if extension.applies(stage, scope):
                stage = extension.make(type(stage), stage, scope)
        except LlmevalError as error:
            stage = structs.replace(stage, shortfalls=[*stage.shortfalls, str(error)])
    return stage


def collect(scope: RunScope) -> Collected:
    """Put the records of a run together with its suites, and apply the extensions of this stage."""
    collected = extended("collected", _gather_suites(scope), scope)
    # Extensions decide which cases count, and so which of those that share a call to a judge owns it.
    return structs.replace(
        collected,
        suites=[
            structs.replace(suite, records=list(CaseRecord.claim_calls(suite.records))) for suite in collected.suites
        ],
    )


def _gather_suites(scope: RunScope) -> Collected:
    """The suites of a run with their case records; suites that cannot be loaded become faults."""
    run, suites = scope.run, scope.suites
    approves = scope.keeper.mode.update
    records = run.case_records()
    totals = {item.part.key: item.part.total for item in reversed(run.items.values())}
    reruns = Counter(result.part.key for item, result in run.items.items() if item in run.reruns)
    reported = {key.path for key in totals}
    # Of a suite that reported nothing because the run broke, every case has yet to run.
    silent = [key for path in run.selected for key in _keys(path, suites)] if run.broken else []
    keys = {*totals, *run.dropped, *(key for key in silent if key.variant or key.path not in reported)}
    collected: list[CollectedSuite] = []
    faults: dict[SuiteKey, str] = {}
    for key in sorted(keys, key=lambda key: (key.display_path, key.test, key.variant)):
        try:
            suite = suites.read(Path(key.path))
            suite = suite.gated(key.variant) if key.test else suite.for_variant(key.variant)
            judges = suites.judges(key, suite)
            known = FailuresFile(key).read_for(suite)
        except Exception as error:  # noqa: BLE001 (a file that changed, or a user's hook, costs its own suite only)
            faults[key] = AnyError(error).message()
        else:
            rows = _rows_of(suite, records.get(key, {}), run.broken)
            if known or (approves and suite.approve.failures):
                every = approves and suite.approve.failures
                rows = [as_approved(row, row.unmet if every else known.get(row.id, ())) for row in rows]
            collected.append(
                CollectedSuite(
                    key,
                    suite,
                    rows,
                    totals.get(key) or suite.total,
                    judges,
                    known,
                    reruns[key],
                    baseline=scope.baselines.get(key),
                )
            )
    return Collected(collected, faults)


def _rows_of(suite: LoadedSuite, records: Mapping[str, CaseRecord], broken: str) -> list[CaseRecord]:
    """A record for every case of a suite; one without a result did not run.

    Args:
        suite: The suite.
        records: By case.
        broken: Why cases may be missing without being deselected.
    """
    rows = _records_of_suite(suite, records, broken)
    return list(rows) if suite.sample is None else suite.sample.weigh(rows)


def _records_of_suite(suite: LoadedSuite, records: Mapping[str, CaseRecord], broken: str) -> Iterator[CaseRecord]:
    """Yield a record for each case of a suite in file order; cases without a result are ``not_run``."""
    for case in suite.cases:
        record = records.get(case.id)
        if record is None:
            yield CaseRecord(case.id, case.labels, "not_run", reason=broken or "not selected")
        else:
            yield record if record.labels == case.labels else structs.replace(record, labels=case.labels)


def _keys(path: str, suites: Suites) -> list[SuiteKey]:
    """The keys of a suite file's results, one for each system; variants of fixtures are left out."""
    try:
        names = list(suites.read(Path(path)).systems) or [""]
    except LlmevalError:
        names = [""]
    return [SuiteKey(path, display_path(Path(path), suites.root), variant=name) for name in names]


def iso_time(run: RunRecord) -> str:
    """The start of a run for its reports and history, ISO 8601, UTC."""
    return datetime.fromtimestamp(run.started, UTC).isoformat(timespec="seconds")


def persist(reported: Reported, scope: RunScope, *, recordings: "Recordings | None" = None) -> Reported:
    """Write everything that a run leaves behind, and remove the unfinished files of killed runs.

    Args:
        reported: The run.
        scope: Its circumstances.
        recordings: Predictions; ``None`` if they are not recorded.

    Returns:
        The run with verdicts on files that could not be written, and without those on scores that were not approved.
    """
    judged, run, keeper = reported.judged, scope.run, scope.keeper
    root = keeper.root or Path()
    for file in {item.part.key.path for item in run.items.values()}:
        OutputFolder(OwnFiles(Path(file)).folder).remove_leftovers()
    OutputFolder(root / OutputFolder.WORKING).remove_leftovers()
    verdicts: list[SuiteVerdict] = [*keeper.settle(judged.suites, whole=not (run.broken or scope.terms.shard))]
    unwritten = {key for key, _ in verdicts}
    standing = [
        verdict
        for verdict in reported.verdicts
        if not (verdict[0] in unwritten and isinstance(verdict[1], SnapshotVerdict))
    ]
    notes = []
    for failed, line in (
        *keeper.nothing_approved(judged.suites),
        *_approve_failures(judged, keeper),
        *_note_history(judged, run, root, scope.stamp),
        *record_predictions(judged, run, recordings),
        *_record_judgements(judged, run, root, renews=scope.terms.judge == "refresh"),
        *(_unrecorded_verdicts(judged, root) if scope.terms.judge == "replay" else ()),
    ):
        notes.append(line)
        if failed:
            verdicts.append((SuiteKey("", failed), GateResult("recording", "failed", None, None, line)))
    return structs.replace(reported, verdicts=[*standing, *verdicts], notes=[*reported.notes, *notes])


def _approve_failures(judged: Judged, keeper: Keeper) -> Iterator[tuple[str, str]]:
    """Write the known failures of suites that approve them; yield notes on known failures that now pass."""
    for suite in judged.suites:
        display = suite.key.display_path
        if keeper.mode.update and suite.suite.approve.failures:
            try:
                following = next_failures(suite.collected.known, suite.records)
                if FailuresFile(suite.key).write(following, suite.measured.run.contents):
                    yield "", f"{display}: {counted(len(following), 'known failure')} approved"
            except OSError as error:
                yield display, f"known failures not written to {FailuresFile(suite.key).path}: {error.strerror}"
        elif passing := mended(suite.collected.known, suite.records):
            first = listed(passing, _LISTED_CASES, ", ...")
            yield "", f"{display}: {counted(len(passing), 'known failure')} now passing: {first}"


def _note_history(judged: Judged, run: RunRecord, root: Path, stamp: Stamp) -> Iterator[tuple[str, str]]:
    """Write a line of history for each suite of a run; yield faults and notes as the next two functions do."""
    remembered = [suite for suite in judged.suites if suite.snapshot.remembered]
    if not remembered:
        return
    from pytest_llmeval.baselines import History

    noted = [(suite.measured.run, suite.gates, suite.snapshot) for suite in remembered]
    try:
        History.append(root, noted, time=iso_time(run), commit=stamp.commit)
    except OSError as error:
        path = error.filename or History.path_in(root)  # a full disk names none
        yield "", f"run NOT noted in {path}: {error.strerror}"


def record_predictions(judged: Judged, run: RunRecord, recordings: "Recordings | None") -> Iterator[tuple[str, str]]:
    """Write the predictions of a run to its file, if any; yield what failed, or nothing, and a note."""
    if recordings is None:
        return
    records = (record for of_suite in run.case_records().values() for record in of_suite.values())
    try:
        left_out = recordings.update([row for record in records for row in record.recordings], _complete(judged))
    except OSError as error:
        yield "predictions", f"predictions not recorded in {recordings.path}: {error.strerror}"
    except LlmevalError as error:
        yield "predictions", f"predictions not recorded: {error}"
    else:
        for why, cases in (
            ("no later run could read them", left_out.unreadable),
            ("they have the value of a secret variable", left_out.secret),
            ("they hold what JSON cannot say", left_out.unwritten),
        ):
            if cases:
                first = listed(map(repr, cases), _LISTED_CASES, ", ...")
                yield "", f"predictions NOT recorded, since {why}: {len(cases)} ({first})"


def _complete(judged: Judged) -> set[tuple[str, str]]:
    """The suites and variants of a run whose recorded predictions are complete: all cases ran, outside Python tests."""
    return {
        (suite.key.display_path, suite.key.variant)
        for suite in judged.suites
        if suite.measured.ran == suite.collected.total and not (suite.key.test or suite.measured.run.carried)
    }


def _unrecorded_verdicts(judged: Judged, root: Path) -> Iterator[tuple[str, str]]:
    """Yield for each suite file how many cases lack recorded verdicts, and the command that records them."""
    from pytest_llmeval.judges import Judgements

    lacking: Counter[str] = Counter()
    for suite in judged.suites:
        for record in suite.records:
            errors = [record.errors, *(observation.errored for observation in record.observations.values())]
            lacking[suite.key.path] += any(
                Judgements.NOT_RECORDED in error for every in errors for error in every.values()
            )
    for path, count in lacking.items():
        if count:
            display, file = (
                shlex.quote(display_path(file_path, root)) for file_path in (Path(path), Judgements.path_of(Path(path)))
            )
            lack = f"{counted(count, 'case')} {'lacks' if count == 1 else 'lack'} recorded verdicts"
            yield "", f"replay: {lack}: pytest --llmeval {display} --llmeval-judge=record, then commit {file}"


def _record_judgements(judged: Judged, run: RunRecord, root: Path, *, renews: bool) -> Iterator[tuple[str, str]]:
    """Write the judge verdicts that a run used to the files beside its suites.

    ``refresh`` forgets those of whole suites that the run did not use, but not the verdicts of cases that lack a score.
    """
    for path, count, fault in run.judgements.write(_find_lacking(judged) if renews else {}):
        display = display_path(path, root)
        if fault:
            yield display, f"judgements not recorded: {fault}"
        elif count:
            yield "", f"{counted(count, 'judgement')} recorded in {display}"


def _find_lacking(judged: Judged) -> dict[Path, set[str]]:
    """The cases without a full score, by suite file, of suites that ran wholly; refreshing keeps their verdicts."""
    lacking: dict[Path, set[str]] = {}
    partial = {
        suite.suite.path
        for suite in judged.suites
        if suite.measured.ran != suite.collected.total or suite.measured.run.carried
    }
    for suite in judged.suites:
        if suite.suite.path not in partial:
            cases = lacking.setdefault(suite.suite.path, set())
            cases |= {record.id for record in suite.records if _lacks(record)}
    return lacking


def _lacks(record: CaseRecord) -> bool:
    """Whether a case record of a run lacks a score, because something failed or the case did not run."""
    return (
        bool(record.errors)
        or not record.observations
        or any(observation.errored for observation in record.observations.values())
    )


_RAN = ("passed", "failed", "xfailed", "known_failure")


def next_failures(known: Mapping[str, Sequence[str]], records: Iterable[CaseRecord]) -> dict[str, list[str]]:
    """The known failures that a run approves for a suite: of cases that ran, and earlier ones of the others."""
    following = {case: list(names) for case, names in known.items()}
    for record in records:
        if record.carried:
            continue
        if record.outcome in _RAN:
            following.pop(record.id, None)
        if record.outcome in ("failed", "known_failure") and record.unmet:
            following[record.id] = sorted(set(record.unmet))
    return following


def mended(known: Mapping[str, Sequence[str]], records: Iterable[CaseRecord]) -> list[str]:
    """The known failures of a suite that passed in a run."""
    return [record.id for record in records if record.id in known and record.outcome == "passed"]

"""The end of a run, without pytest: its record becomes suites, verdicts, files and the report."""

__all__ = (
    "REQUIRE_GATES",
    "finish_run",
    "persist",
    "with_past",
    "write_run",
)

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from pytest_llmeval._version import __version__
from pytest_llmeval.baselines.history import append_runs
from pytest_llmeval.baselines.keeper import Keeper
from pytest_llmeval.baselines.mode import SnapshotMode
from pytest_llmeval.baselines.stamp import Stamp, day_of, head_commit
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.core.wording import counted
from pytest_llmeval.data.files.folders import OWN_FOLDER, WORKING_FOLDER
from pytest_llmeval.data.files.places import display_path
from pytest_llmeval.data.files.writing import remove_leftovers
from pytest_llmeval.gates.limits import GateResult, SnapshotVerdict
from pytest_llmeval.reports.files import WrittenReports, write_reports
from pytest_llmeval.reports.form import RunReport
from pytest_llmeval.run.collecting import RunTerms, Suites, collect, collected_records
from pytest_llmeval.run.early.decisions import NOT_NEEDED, settle_stops
from pytest_llmeval.run.judging import JudgedRun, SuiteVerdict, judge_run, left_to_others
from pytest_llmeval.run.run_record import RunRecord
from pytest_llmeval.suite.suite import SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.reports.mutation import Survival
    from pytest_llmeval.targets.python import Recordings


def with_past(report: RunReport, root: Path) -> RunReport:
    """Return the report of a run with the history of its suites.

    Args:
        report: The report.
        root: pytest's rootdir, from which it names suites, and whose history is read.
    """
    from pytest_llmeval.baselines.timelines import read_history
    from pytest_llmeval.reports.timeline import timeline_of

    found = {path: read_history(root / path, root).timelines for path in {each.path for each in report.suites}}
    return structs.replace(
        report, suites=[structs.replace(each, past=timeline_of(each.suite, found[each.path])) for each in report.suites]
    )


def write_run(report: RunReport, paths: Sequence[Path], root: Path) -> WrittenReports:
    """Write the report files of a run, and GitHub's job summary where there is one.

    Args:
        report: The run.
        paths: Of the files; the suffix decides the form.
        root: pytest's rootdir.
    """
    drawn = any(path.suffix == ".html" for path in paths)
    return write_reports(with_past(report, root) if drawn else report, paths)


REQUIRE_GATES = "--llmeval-require-gates"
_LISTED = 5
_LISTED_CASES = 3


class FinishedRun(Struct, frozen=True):
    """What came of a run.

    Attributes:
        judged: Its suites, and the verdicts on them.
        report: The report.
        shortfalls: Why the run does not pass although its exit code would say so.
    """

    judged: JudgedRun
    report: RunReport
    shortfalls: Sequence[str]

    @property
    def failed(self) -> bool:
        """Whether a case, a verdict or a suite file failed."""
        cases = (case for suite in self.report.suites for case in suite.result.cases)
        return (
            bool(self.report.faults)
            or any(case.outcome in ("failed", "errored") for case in cases)
            or any(verdict.outcome == "failed" for _, verdict in self.judged.verdicts)
        )


def finish_run(
    run: RunRecord,
    terms: RunTerms,
    suites: Suites,
    mode: SnapshotMode,
    *,
    recordings: "Recordings | None" = None,
) -> FinishedRun:
    """Turn the record of a run into verdicts, files and its report.

    Args:
        run: The record.
        terms: The options.
        suites: Of the run.
        mode: What is asked for about snapshots.
        recordings: Predictions; ``None`` if they are not recorded.
    """
    stamp = Stamp(day_of(datetime.fromtimestamp(run.started, UTC)), head_commit(suites.root))
    keeper = Keeper(mode.read_only() if run.ended or run.uncollected else mode, terms.snapshots, suites.root)
    found, faults = collect(run, suites, approves=keeper.mode.update)
    settle_stops(found, keeper)
    judged = judge_run(found, faults, run, terms, keeper, stamp)
    shortfalls = list(_shortfalls(judged, run, terms, mode))
    judged = persist(judged, run, terms, keeper, stamp, recordings=recordings)
    mutation: Sequence[Survival] = ()
    if terms.mutate is not None:
        from pytest_llmeval.run.mutation.running import mutate_run

        mutation, unmade = mutate_run(judged.suites, suites, terms, terms.mutate)
        judged = structs.replace(judged, notes=[*judged.notes, *unmade])
    duration = run.seconds or time.time() - run.started
    report = RunReport(
        _iso(run),
        round(duration, 3),
        __version__,
        stamp.commit,
        [each.report for each in judged.suites],
        dict(sorted(run.faults.items())),
        judged.systems,
        mutation,
    )
    return FinishedRun(judged, report, shortfalls)


def persist(
    judged: JudgedRun,
    run: RunRecord,
    terms: RunTerms,
    keeper: Keeper,
    stamp: Stamp,
    *,
    recordings: "Recordings | None" = None,
) -> JudgedRun:
    """Write everything that a run leaves behind, and remove what killed runs were about to write.

    Args:
        judged: The suites and the verdicts on them.
        run: The record of the run.
        terms: The options.
        keeper: How snapshots are treated.
        stamp: When the run was, and of what.
        recordings: Predictions; ``None`` if they are not recorded.

    Returns:
        The run without the approvals that could not be written, and with what failed in their place.
    """
    root = keeper.root or Path()
    for file in {each.part.key.path for each in run.items.values()}:
        remove_leftovers(Path(file).parent / OWN_FOLDER)
    remove_leftovers(root / WORKING_FOLDER)
    unwritten = keeper.settle(judged.suites, whole=not (run.broken or terms.shard))
    keys = {key for key, _ in unwritten}
    verdicts: list[SuiteVerdict] = [
        each for each in judged.verdicts if each[0] not in keys or not isinstance(each[1], SnapshotVerdict)
    ]
    verdicts += unwritten
    notes = list(judged.notes)
    for failed, line in (
        *_approve_failures(judged, keeper),
        *_note_history(judged, run, root, stamp),
        *_record_predictions(judged, run, recordings),
        *_record_judgements(judged, run, root, renews=terms.judge == "refresh"),
    ):
        notes.append(line)
        if failed:
            verdicts.append((SuiteKey("", failed), GateResult("recording", "failed", None, None, line)))
    return structs.replace(judged, verdicts=verdicts, notes=notes)


def _approve_failures(judged: JudgedRun, keeper: Keeper) -> Iterator[tuple[str, str]]:
    """Write the known failures of suites that approve them; say which known failures are mended."""
    from pytest_llmeval.baselines.failures import failures_file, mended, next_failures, write_failures

    for each in judged.suites:
        shown = each.key.shown
        if keeper.mode.update and each.suite.approve.failures:
            try:
                if write_failures(each.key, following := next_failures(each.known, each.records)):
                    yield "", f"{shown}: {counted(len(following), 'known failure')} approved"
            except OSError as error:
                yield shown, f"known failures not written to {failures_file(each.key)}: {error.strerror}"
        elif fixed := mended(each.known, each.records):
            listed = ", ".join(fixed[:_LISTED_CASES]) + (", ..." if len(fixed) > _LISTED_CASES else "")
            yield "", f"{shown}: {counted(len(fixed), 'known failure')} mended: {listed}"


def _note_history(judged: JudgedRun, run: RunRecord, root: Path, stamp: Stamp) -> Iterator[tuple[str, str]]:
    """Write the line of each suite; as in the next two functions, yield what failed, or nothing, and a note."""
    remembered = [each for each in judged.suites if each.remembered]
    gates = {each.key: each.report.gates for each in remembered}
    try:
        append_runs(root, remembered, gates, time=_iso(run), commit=stamp.commit)
    except OSError as error:
        yield "", f"run NOT noted in {error.filename}: {error.strerror}"


def _record_predictions(
    judged: JudgedRun, run: RunRecord, recordings: "Recordings | None"
) -> Iterator[tuple[str, str]]:
    if recordings is None:
        return
    records = (record for of_suite in collected_records(run).values() for record in of_suite.values())
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
        ):
            if cases:
                listed = ", ".join(map(repr, cases[:_LISTED_CASES])) + (", ..." if len(cases) > _LISTED_CASES else "")
                yield "", f"predictions NOT recorded, since {why}: {len(cases)} ({listed})"


def _complete(judged: JudgedRun) -> set[tuple[str, str]]:
    """Return suites and variants all of whose cases ran; what a Python test scores is no recording."""
    return {
        (each.key.shown, each.key.variant)
        for each in judged.suites
        if each.report.run == each.report.total and not each.key.test
    }


def _record_judgements(judged: JudgedRun, run: RunRecord, root: Path, *, renews: bool) -> Iterator[tuple[str, str]]:
    """Write the judgements that the run used.

    ``refresh`` forgets those of whole suites that the run did not use, but not the verdicts of cases that lack a score.
    """
    for path, count, fault in run.judgements.write(_lacking(judged) if renews else {}):
        shown = display_path(path, root)
        if fault:
            yield shown, f"judgements not recorded: {fault}"
        elif count:
            yield "", f"{counted(count, 'judgement')} recorded in {shown}"


def _lacking(judged: JudgedRun) -> dict[Path, set[str]]:
    """Return the suite files of which all cases ran, with the cases that lack a score."""
    lacking: dict[Path, set[str]] = {}
    partial = {each.suite.path for each in judged.suites if each.report.run != each.report.total}
    for each in judged.suites:
        if each.suite.path not in partial:
            cases = lacking.setdefault(each.suite.path, set())
            cases |= {record.id for record in each.records if _lacks(record)}
    return lacking


def _lacks(record: CaseRecord) -> bool:
    """Return whether a case has no score, or not all of them, because something failed or it did not run."""
    return bool(record.errors) or not record.observations or any(each.errored for each in record.observations.values())


def _iso(run: RunRecord) -> str:
    return datetime.fromtimestamp(run.started, UTC).isoformat(timespec="seconds")


def _shortfalls(judged: JudgedRun, run: RunRecord, terms: RunTerms, mode: SnapshotMode) -> Iterator[str]:
    """Yield why a run does not pass although nothing in it failed: it was cut short, or gates were not judged."""
    if run.unfinished:
        why = run.broken or "they sent no report"
        yield f"{counted(len(run.unfinished), 'selected test')} of eval suites did not run: {why}"
    yield from _unsettled(judged)
    if run.broken:
        yield from _failures(judged)
    gates = [(each.key.shown, gate) for each in judged.suites for gate in each.report.gates]
    waiting = [f"{shown}: {gate.gate} ({gate.reason})" for shown, gate in gates if gate.outcome == "not_judged"]
    elsewhere = 0 if terms.is_kept else left_to_others(run, terms, mode)
    if elsewhere and waiting:
        yield (
            f"{counted(len(waiting), 'gate')} not judged: a plugin deselected {counted(elsewhere, 'test')} of eval "
            "suites. If these run elsewhere, keep the results of each part with --llmeval-report=PART.llmeval, and "
            "judge them together with 'llmeval merge'"
        )
    if not terms.require_gates or terms.shard or (terms.is_kept and run.deselected):
        return
    snapshots = [(each.key.shown, verdict) for each in judged.suites for verdict in each.report.snapshot]
    if not (gates or snapshots):
        yield f"{REQUIRE_GATES}: no gate was judged: found no suite with gates or a snapshot, expected at least one"
    waiting += [
        f"{each.key.shown}: {counted(each.reruns, 'case')} failed and ran again: the best of several results decides "
        "nothing, so run without --reruns"
        for each in judged.suites
        if each.reruns
    ]
    waiting += [f"{shown}: snapshot {each.reason}" for shown, each in snapshots if each.outcome == "not_judged"]
    yield from (f"{REQUIRE_GATES}: {each}" for each in waiting[:_LISTED])
    if len(waiting) > _LISTED:
        yield f"{REQUIRE_GATES}: ... and {len(waiting) - _LISTED} more"


def _unsettled(judged: JudgedRun) -> Iterator[str]:
    """Yield the suites that stopped on results that changed afterwards, as when a case is run again."""
    for each in judged.suites:
        if waiting := sum(record.reason == NOT_NEEDED for record in each.records):
            yield f"{each.key.shown}: {counted(waiting, 'case')} not run, though not all gates are decided: run again"


def _failures(judged: JudgedRun) -> Iterator[str]:
    """Yield what failed, which the exit code of a run that was told to end does not show."""
    records = [record for each in judged.suites for record in each.records]
    if failed := sum(record.outcome in ("failed", "errored") for record in records):
        yield f"{counted(failed, 'case')} failed before the run ended early"
    if failed := sum(verdict.outcome == "failed" for _, verdict in judged.verdicts):
        yield f"{counted(failed, 'verdict')} on gates and snapshots failed in a run that ended early"

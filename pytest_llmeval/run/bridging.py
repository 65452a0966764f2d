"""Approval of a change of judge: the bridge in the score file of a suite."""

__all__ = ("approve_migration",)

from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path

from pytest_llmeval.core.errors import LlmevalError, SuiteError
from pytest_llmeval.core.results import PASS_RATE
from pytest_llmeval.core.wording import counted
from pytest_llmeval.data.files.writing import rewrite
from pytest_llmeval.run.judge_migration import JudgedSide, Migration, measured_shifts
from pytest_llmeval.scoring.comparison.case_statistics import CaseStatistics
from pytest_llmeval.scoring.comparison.shift import Shift, subject_of
from pytest_llmeval.snapshots.bridges import Bridge
from pytest_llmeval.snapshots.files import approved_scores, read_statistics, score_file, statistics_file
from pytest_llmeval.snapshots.layout import render
from pytest_llmeval.snapshots.runs import shown_beside
from pytest_llmeval.snapshots.scores import SuiteScores
from pytest_llmeval.snapshots.stamp import Stamp


def approve_migration(migration: Migration, stamp: Stamp) -> tuple[str, list[str]]:
    """Write what a migration measured into the score file.

    The difference is measured on the cases that the old judge sees as in the approved run: of other answers, the judges
    may differ otherwise.

    Returns:
        How messages name the file, and what to keep in mind.

    Raises:
        LlmevalError: There are no approved scores, they come from another judge, or too little was measured.
    """
    key = migration.key
    path = score_file(key)
    shown = shown_beside(key, path)
    notes: list[str] = []

    def bridged() -> str:
        scores = approved_scores(path, shown)
        if scores is None:
            raise LlmevalError(f"found no approved scores {shown}, expected some: a bridge begins at them")
        approved = _approved_statistics(path, scores)
        made = [_bridge(migration, label, scores, approved, stamp) for label in migration.shifts]
        notes[:] = _notes(migration, approved, made)
        ways = [(each.label, each.old, each.new) for each in made]
        kept = [each for each in scores.bridges if (each.label, each.old, each.new) not in ways]
        return render(replace(scores, bridges=(*kept, *made)))

    try:
        rewrite(path, bridged)
    except OSError as error:
        raise LlmevalError(f"{Path(shown)}: not written ({error.strerror})") from error
    return shown, notes


def _approved_statistics(path: Path, scores: SuiteScores) -> CaseStatistics:
    """Return what was counted in the cases of the approved run.

    Raises:
        LlmevalError: It cannot be read.
    """
    file = statistics_file(path)
    try:
        return CaseStatistics.from_lines(StringIO(read_statistics(file, scores)), file.name)
    except (OSError, UnicodeDecodeError, SuiteError) as error:
        raise LlmevalError(f"{file.name}: cannot be read ({error}), expected the cases of the approved run") from None


def _same(migration: Migration, label: str, approved: CaseStatistics) -> set[str]:
    """Return the cases of which the old judge says what it said of the approved answers."""
    then = {record.id: record.observations.get(label) for record in approved.records}
    now = CaseStatistics.of(migration.old.records, [label]).records
    return {
        each.id
        for each in now
        if (seen := each.observations.get(label)) is not None
        and (known := then.get(each.id)) is not None
        and seen.counts == known.counts
    }


def _shifts(migration: Migration, label: str, approved: CaseStatistics) -> Mapping[str, Shift]:
    """Return how far metrics move, measured on the approved answers alone."""
    same = _same(migration, label, approved)
    if len(same) == len(migration.old.records):
        return migration.shifts[label]
    sides = [
        JudgedSide(each.judges, [record for record in each.records if record.id in same], each.result)
        for each in (migration.old, migration.new)
    ]
    return measured_shifts(migration.suite, *sides)[label] if same else {}


def _notes(migration: Migration, approved: CaseStatistics, made: list[Bridge]) -> list[str]:
    notes = []
    for bridge in made:
        others = len(migration.old.records) - len(_same(migration, bridge.label, approved))
        if others:
            seen = "is" if others == 1 else "are"
            notes.append(
                f"{counted(others, 'case')} {seen} not judged as when approved, and left out of the difference"
            )
        notes += [
            f"{name}: {shift.depends}; gates with max_drop do not compare across the bridge"
            for name, shift in bridge.shifts.items()
            if shift.depends
        ]
    return list(dict.fromkeys(notes))


def _bridge(migration: Migration, label: str, scores: SuiteScores, approved: CaseStatistics, stamp: Stamp) -> Bridge:
    old, new, was = migration.old.judges[label], migration.new.judges[label], scores.comparable.judges.get(label, {})
    changed = [name for name in sorted({*old, *was}) if old.get(name) != was.get(name)]
    if changed:
        found = ", ".join(f"{name} {was.get(name, 'none')}" for name in changed)
        expected = ", ".join(f"{name} {old.get(name, 'none')}" for name in changed)
        raise LlmevalError(f"found scores of {label!r} approved with {found}, expected {expected}: approve a run first")
    shifts = _shifts(migration, label, approved)
    if not shifts.keys() - {PASS_RATE, subject_of(PASS_RATE, "mean")}:
        same = len(_same(migration, label, approved))
        whose = "" if same == len(migration.old.records) else " that the old judge sees as when they were approved"
        raise LlmevalError(f"found too few cases{whose} to measure the difference of {label!r}, expected at least 2")
    return Bridge(label, dict(old), dict(new), stamp.day, stamp.commit, dict(shifts))

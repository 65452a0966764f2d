"""Approval of a change of judge: the bridge in the score file of a suite."""

__all__ = ("approve_migration",)

from dataclasses import replace
from pathlib import Path

from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.results import PASS_RATE
from pytest_llmeval.data.files.writing import rewrite
from pytest_llmeval.run.judge_migration import Migration
from pytest_llmeval.scoring.comparison.shift import subject_of
from pytest_llmeval.snapshots.bridges import Bridge
from pytest_llmeval.snapshots.files import approved_scores, score_file
from pytest_llmeval.snapshots.layout import render
from pytest_llmeval.snapshots.runs import shown_beside
from pytest_llmeval.snapshots.scores import SuiteScores
from pytest_llmeval.snapshots.stamp import Stamp


def approve_migration(migration: Migration, stamp: Stamp) -> str:
    """Write what a migration measured into the score file; return how messages name the file.

    Raises:
        LlmevalError: There are no approved scores, they come from another judge, or too little was measured.
    """
    key = migration.key
    path = score_file(key)
    shown = shown_beside(key, path)

    def bridged() -> str:
        scores = approved_scores(path, shown)
        if scores is None:
            raise LlmevalError(f"found no approved scores {shown}, expected some: a bridge begins at them")
        made = [_bridge(migration, label, scores, stamp) for label in migration.shifts]
        ways = [(each.label, each.old, each.new) for each in made]
        kept = [each for each in scores.bridges if (each.label, each.old, each.new) not in ways]
        return render(replace(scores, bridges=(*kept, *made)))

    try:
        rewrite(path, bridged)
    except OSError as error:
        raise LlmevalError(f"{Path(shown)}: not written ({error.strerror})") from error
    return shown


def _bridge(migration: Migration, label: str, scores: SuiteScores, stamp: Stamp) -> Bridge:
    old, new, was = migration.old.judges[label], migration.new.judges[label], scores.comparable.judges.get(label, {})
    changed = [name for name in sorted({*old, *was}) if old.get(name) != was.get(name)]
    if changed:
        found = ", ".join(f"{name} {was.get(name, 'none')}" for name in changed)
        expected = ", ".join(f"{name} {old.get(name, 'none')}" for name in changed)
        raise LlmevalError(f"found scores of {label!r} approved with {found}, expected {expected}: approve a run first")
    if not migration.shifts[label].keys() - {PASS_RATE, subject_of(PASS_RATE, "mean")}:
        raise LlmevalError(f"found too few cases to measure the difference of {label!r}, expected at least 2")
    return Bridge(label, dict(old), dict(new), stamp.day, stamp.commit, dict(migration.shifts[label]))

"""Writing the files of a judged run: snapshots, history, predictions and judgements."""

__all__ = ("Persisted", "Stores", "persist")

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.wording import counted
from pytest_llmeval.data.files.beside import OWN_FOLDER
from pytest_llmeval.data.files.places import display_path
from pytest_llmeval.data.files.working import WORKING_FOLDER
from pytest_llmeval.data.files.writing import remove_leftovers
from pytest_llmeval.judge.recordings import UsedJudgements
from pytest_llmeval.run.collected import CollectedRun
from pytest_llmeval.run.judging import JudgedRun, SuiteVerdict
from pytest_llmeval.scoring.gates import GateResult, SnapshotVerdict
from pytest_llmeval.snapshots.history import append_runs
from pytest_llmeval.snapshots.keeper import Keeper
from pytest_llmeval.suite.suite import SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.targets.python import Recordings

_LISTED_CASES = 3


@dataclass(frozen=True)
class Stores:
    """Where a run keeps what later runs read.

    Attributes:
        root: The folder of the history, to which messages name files relatively: pytest's rootdir.
        keeper: The snapshots of the run.
        judgements: What the run used.
        recordings: Predictions; ``None`` if they are not recorded.
        refreshes: Whether judgements that a whole suite did not use are forgotten.
    """

    root: Path
    keeper: Keeper
    judgements: UsedJudgements
    recordings: "Recordings | None" = None
    refreshes: bool = False


@dataclass(frozen=True)
class Persisted:
    """What came of writing.

    Attributes:
        verdicts: On suites, without approvals that could not be written, and with what failed in their place.
        notes: Lines for people.
    """

    verdicts: Sequence[SuiteVerdict] = ()
    notes: Sequence[str] = ()


def persist(run: CollectedRun, judged: JudgedRun, stores: Stores) -> Persisted:
    """Write everything that a run leaves behind, and remove what killed runs were about to write.

    Args:
        run: What was collected.
        judged: The verdicts on it.
        stores: Where to.
    """
    own = {Path(each.results.key.path).parent / OWN_FOLDER for each in run.suites}
    for folder in {stores.root / WORKING_FOLDER, *own}:
        remove_leftovers(folder)
    steps = (
        _settle_snapshots(run, judged, stores),
        _note_history(run, judged, stores),
        _record_predictions(run, judged, stores),
        _record_judgements(judged, stores),
    )
    return Persisted(
        [each for step in steps for each in step.verdicts], [note for step in steps for note in step.notes]
    )


def _settle_snapshots(run: CollectedRun, judged: JudgedRun, stores: Stores) -> Persisted:
    """Have snapshots written; one that could not be has a failed verdict instead of those that approved it."""
    faults = [SuiteVerdict(*each) for each in stores.keeper.settle(whole=not (run.broken or run.shard))]
    unwritten = {key for key, _ in faults}
    kept = [
        each for each in judged.verdicts if each.key not in unwritten or not isinstance(each.verdict, SnapshotVerdict)
    ]
    return Persisted([*kept, *faults])


def _note_history(run: CollectedRun, judged: JudgedRun, stores: Stores) -> Persisted:
    gates = {each.key: each.report.gates for each in judged.suites}
    try:
        append_runs(stores.root, stores.keeper.judged, gates, time=run.started_at, commit=run.commit)
    except OSError as error:
        return Persisted(notes=[f"run NOT noted in {error.filename}: {error.strerror}"])
    return Persisted()


def _record_predictions(run: CollectedRun, judged: JudgedRun, stores: Stores) -> Persisted:
    if stores.recordings is None:
        return Persisted()
    predictions = [row for each in run.suites for row in each.results.predictions]
    try:
        left_out = stores.recordings.update(predictions, judged.complete())
    except OSError as error:
        return _failed("predictions", f"predictions not recorded in {stores.recordings.path}: {error.strerror}")
    except LlmevalError as error:
        return _failed("predictions", f"predictions not recorded: {error}")
    if not left_out:
        return Persisted()
    listed = ", ".join(map(repr, left_out[:_LISTED_CASES])) + (", ..." if len(left_out) > _LISTED_CASES else "")
    return Persisted(
        notes=[f"predictions NOT recorded, since no later run could read them: {len(left_out)} ({listed})"]
    )


def _record_judgements(judged: JudgedRun, stores: Stores) -> Persisted:
    """Write the judgements that the run used.

    ``refresh`` forgets those of whole suites that the run did not use, but not the verdicts of cases that lack a score.
    """
    verdicts: list[SuiteVerdict] = []
    notes: list[str] = []
    for path, count, fault in stores.judgements.write(judged.lacking() if stores.refreshes else {}):
        shown = display_path(path, stores.root)
        if fault:
            failed = _failed(shown, f"judgements not recorded: {fault}")
            verdicts += failed.verdicts
            notes += failed.notes
        elif count:
            notes.append(f"{counted(count, 'judgement')} recorded in {shown}")
    return Persisted(verdicts, notes)


def _failed(shown: str, why: str) -> Persisted:
    return Persisted([SuiteVerdict(SuiteKey("", shown), GateResult("recording", "failed", None, None, why))], [why])

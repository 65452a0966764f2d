"""What a run shares with the approved one where cases were added, edited or removed since."""

__all__ = ("UnchangedPart", "alike", "unchanged_part")

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pytest_llmeval.core.metrics import MetricIndex
from pytest_llmeval.core.results import PASS_RATE
from pytest_llmeval.scoring.usage import USAGE
from pytest_llmeval.snapshots.comparable import Comparable
from pytest_llmeval.snapshots.scores import Score, SuiteScores
from pytest_llmeval.suite.snapshot import SnapshotSettings

if TYPE_CHECKING:
    from pytest_llmeval.scoring.comparison.matching import CaseMatching
    from pytest_llmeval.scoring.comparison.pairing import RunPairing


class UnchangedPart(NamedTuple):
    """The scores of two runs over the cases that are the same in both.

    Attributes:
        old: The approved ones.
        new: Those of this run.
        matching: The cases, and the others.
    """

    old: SuiteScores
    new: SuiteScores
    matching: "CaseMatching"


def alike(old: Comparable, new: Comparable, matching: "CaseMatching") -> Comparable:
    """Return what made the approved run comparable, as far as that concerns the unchanged cases."""
    if not matching.known or not matching.unchanged:
        return old
    thresholds = new.thresholds if matching.same_limits else old.thresholds
    return replace(old, cases=new.cases, data=new.data, thresholds=thresholds)


def unchanged_part(
    old: SuiteScores, new: SuiteScores, pairing: "RunPairing", metrics: MetricIndex, settings: SnapshotSettings
) -> UnchangedPart | None:
    """Return the scores of both runs over the cases that they share, both by the formulas of this run.

    Args:
        old: The approved scores.
        new: Those of this run.
        pairing: What was counted in the cases of both.
        metrics: Of the suite.
        settings: Of the suite.

    Returns:
        The scores; ``None`` where there is no such case, or an earlier version approved scores without saying what
        the cases were.
    """
    matching = pairing.matching
    if not matching.known or not matching.unchanged:
        return None
    here, there = pairing.everything()
    gone = {name: score for name, score in old.metrics.items() if name != PASS_RATE and metrics.find(name) is None}
    signatures = {name: score.signature for name, score in old.metrics.items()}
    before = {
        name: replace(score, signature=signatures.get(name, score.signature))
        for name, score in _scores(pairing, list(there), settings).items()
    }
    return UnchangedPart(
        replace(old, comparable=alike(old.comparable, new.comparable, matching), metrics={**before, **gone}),
        replace(new, metrics=_scores(pairing, list(here), settings)),
        matching,
    )


def _scores(pairing: "RunPairing", rows: Sequence[int], settings: SnapshotSettings) -> dict[str, Score]:
    table = pairing.table
    return {
        name: Score.of(metric)
        for name, metric in table.metrics(rows, confidence=None).items()
        if settings.keeps(name) and table.owner[name] != USAGE
    }

"""The suites of two reports, matched, and their cases as data for comparisons."""

__all__ = ("PairedScores", "pair_suites", "paired_scores")

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from pytest_llmeval.cli.report_file import RecordedScores, RecordedSuite, score_records
from pytest_llmeval.scoring.comparison.case_statistics import CaseStatistics
from pytest_llmeval.scoring.comparison.pairing import RunPairing

SuitePairs: TypeAlias = Sequence[tuple[RecordedSuite, RecordedSuite]]
Alone: TypeAlias = tuple[Sequence[RecordedSuite], Sequence[RecordedSuite]]


class PairedScores(NamedTuple):
    """Two suites over the cases that ran in both.

    Attributes:
        here: The run.
        there: The baseline.
        alone: Ids of the cases that ran in one of them only.
        evaluator: Their metrics.
        pairing: Their scores.
        cluster_by: The label of clusters; ``None`` if there is none.
    """

    here: RecordedSuite
    there: RecordedSuite
    alone: tuple[set[str], set[str]]
    evaluator: RecordedScores
    pairing: RunPairing
    cluster_by: str | None

    @property
    def vanished(self) -> list[str]:
        """Metrics that have a value in the baseline and none in the run."""
        return [name for name in self.evaluator.metrics if _scored(self.there, name) and not _scored(self.here, name)]


def _scored(suite: RecordedSuite, metric: str) -> bool:
    return any(case.metrics.get(metric) is not None for case in suite.cases)


def paired_scores(here: RecordedSuite, there: RecordedSuite, metrics: Sequence[str] | None = None) -> PairedScores:
    """Return the scores of two suites over the cases that ran in both, which may be none.

    Args:
        here: The run.
        there: The baseline.
        metrics: Those that are wanted; default: all.
    """
    ran = [{case.id for case in suite.cases if case.ran} for suite in (here, there)]
    alone = (ran[0] - ran[1], ran[1] - ran[0])
    here, there = here.only(ran[0] & ran[1]), there.only(ran[0] & ran[1])
    every = dict.fromkeys([*here.metrics, *there.metrics])
    wanted = tuple(name for name in every if metrics is None or name in metrics)
    lower = frozenset({*here.lower_is_better, *there.lower_is_better})
    evaluator = RecordedScores(wanted, lower, {**there.ranges, **here.ranges})
    run, baseline = (CaseStatistics.exact(score_records(suite, evaluator)) for suite in (here, there))
    pairing = RunPairing(run, baseline, {evaluator.name: evaluator})
    return PairedScores(here, there, alone, evaluator, pairing, here.clusters.label if here.clusters else None)


def pair_suites(
    here: Sequence[RecordedSuite], there: Sequence[RecordedSuite], *, named: bool
) -> tuple[SuitePairs, Alone]:
    """Return the suites to compare, and those that are in one report only.

    Suites of one name and file belong together, and systems that were asked for by name with those of the same suite.
    If each report has one suite, these belong together whatever they are called.
    """
    left, right = list(here), list(there)
    pairs: list[tuple[RecordedSuite, RecordedSuite]] = []
    for bare in (False, True) if named else (False,):
        by_name = {_name(each, bare=bare): each for each in right}
        for each in list(left):
            if other := by_name.pop(_name(each, bare=bare), None):
                pairs.append((each, other))
                left.remove(each)
                right.remove(other)
    if len(left) == len(right) == 1 and not pairs:
        return [(left[0], right[0])], ([], [])
    return pairs, (left, right)


def _name(suite: RecordedSuite, *, bare: bool) -> tuple[str, str]:
    return suite.path, suite.bare_name if bare else suite.suite

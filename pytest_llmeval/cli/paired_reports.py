"""Two JSON reports side by side: which suites belong together, and what their common cases have."""

__all__ = ("PairedSuite", "pair_suites")

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from pytest_llmeval.cli.report_file import RecordedScores, RecordedSuite, score_records
from pytest_llmeval.core.results import PASS_RATE
from pytest_llmeval.scoring.comparison.case_statistics import CaseStatistics
from pytest_llmeval.scoring.comparison.compare import Difference, differences
from pytest_llmeval.scoring.comparison.pairing import Pairing

_Pairs: TypeAlias = list[tuple[RecordedSuite, RecordedSuite]]
_Alone: TypeAlias = tuple[list[RecordedSuite], list[RecordedSuite]]


def pair_suites(
    here: Sequence[RecordedSuite], there: Sequence[RecordedSuite], *, named: bool = False
) -> tuple[_Pairs, _Alone]:
    """Return the suites to compare, and those that are in one report only.

    Suites of one name and file belong together, and systems that were asked for by name with those of the same suite.
    If each report has one suite, these belong together whatever they are called.

    Args:
        here: Of the run.
        there: Of the baseline.
        named: Whether systems were asked for by name.
    """
    pairs: _Pairs = []
    left = list(here), list(there)
    for bare in (False, True) if named else (False,):
        by_name = {_name(each, bare=bare): each for each in left[1]}
        for each in list(left[0]):
            if other := by_name.pop(_name(each, bare=bare), None):
                pairs.append((each, other))
                left[0].remove(each)
                left[1].remove(other)
    if len(left[0]) == len(left[1]) == 1 and not pairs:
        return [(left[0][0], left[1][0])], ([], [])
    return pairs, left


def _name(suite: RecordedSuite, *, bare: bool) -> tuple[str, str]:
    return suite.path, suite.bare_name if bare else suite.suite


@dataclass(frozen=True)
class PairedSuite:
    """The cases of a suite that ran in both reports.

    Attributes:
        here: The run, with these cases only.
        there: The baseline, with these cases only.
        only_here: How many other cases ran in the run.
        only_there: As above, in the baseline.
        metrics: Names of those that are compared, without the pass rate.
    """

    here: RecordedSuite
    there: RecordedSuite
    only_here: int
    only_there: int
    metrics: tuple[str, ...]

    @classmethod
    def of(cls, here: RecordedSuite, there: RecordedSuite, wanted: Collection[str] | None = None) -> "PairedSuite":
        """Put two suites together; only the wanted metrics are compared, or all."""
        ran = [{case.id for case in suite.cases if case.ran} for suite in (here, there)]
        both = ran[0] & ran[1]
        names = dict.fromkeys([*here.metrics, *there.metrics])
        chosen = tuple(name for name in names if wanted is None or name in wanted)
        return cls(here.only(both), there.only(both), len(ran[0] - ran[1]), len(ran[1] - ran[0]), chosen)

    @property
    def cluster_by(self) -> str | None:
        """The label whose cases belong together."""
        return self.here.clusters.label if self.here.clusters else None

    @property
    def lower_is_better(self) -> frozenset[str]:
        """Metrics of which less is better."""
        return frozenset({*self.here.lower_is_better, *self.there.lower_is_better})

    @cached_property
    def pairing(self) -> Pairing:
        """Their cases with the recorded scores as counts."""
        evaluator = RecordedScores(self.metrics, self.lower_is_better)
        run, baseline = (CaseStatistics.exact(score_records(suite, evaluator)) for suite in (self.here, self.there))
        return Pairing(run, baseline, {evaluator.name: evaluator})

    def differences(self, *, confidence: float, names: Sequence[str] | None = None) -> Mapping[str, Difference]:
        """Compare the means of metrics, by default of all and the pass rate."""
        wanted = [*self.metrics, PASS_RATE] if names is None else names
        everything = self.pairing.everything()
        return differences(self.pairing, everything, wanted, confidence=confidence, cluster_by=self.cluster_by)

    @property
    def vanished(self) -> list[str]:
        """Metrics that had a value in the baseline and have none in the run."""
        return [name for name in self.metrics if _scored(self.there, name) and not _scored(self.here, name)]


def _scored(suite: RecordedSuite, metric: str) -> bool:
    return any(case.metrics.get(metric) is not None for case in suite.cases)

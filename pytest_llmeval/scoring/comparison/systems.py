"""Systems side by side: each metric of each system, and its paired difference to a reference."""

__all__ = ("Against", "SystemRow", "SystemTable", "compare_systems")

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_llmeval.core.metrics import MetricIndex
from pytest_llmeval.core.results import PASS_RATE, MetricValue, Result
from pytest_llmeval.scoring.comparison.case_statistics import CaseStatistics
from pytest_llmeval.scoring.comparison.compare import Difference, differences
from pytest_llmeval.scoring.comparison.multiplicity import holm
from pytest_llmeval.scoring.comparison.pairing import RunPairing

_SAME = 1e-12
"""Scores of a case that differ by no more are a tie."""


@dataclass(frozen=True, slots=True)
class Against:
    """A metric of a system beside the reference, over the cases of both.

    Attributes:
        difference: The system minus the reference.
        p_value: Of no difference, adjusted by Holm's method over all systems and metrics of the table; ``None`` where
            there is no test.
        wins: Cases that score better than those of the reference.
        ties: Cases that score the same.
        losses: Cases that score worse.
    """

    difference: Difference
    p_value: float | None
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True, slots=True)
class SystemRow:
    """A system of the table.

    Attributes:
        system: Its name.
        result: Its metrics, over all its cases.
        against: Metric to comparison with the reference; empty for the reference itself, and without a common case.
    """

    system: str
    result: Result
    against: Mapping[str, Against]

    def find(self, metric: str) -> MetricValue | None:
        """Return a metric of the system."""
        return self.result.find(metric)


@dataclass(frozen=True, slots=True)
class SystemTable:
    """The systems of a suite, side by side.

    Attributes:
        reference: The system that the others are compared with.
        metrics: Those of any system, ``pass_rate`` last.
        rows: One for each system.
        confidence: Of the intervals of differences.
    """

    reference: str
    metrics: Sequence[str]
    rows: Sequence[SystemRow]
    confidence: float

    @property
    def groups(self) -> dict[str, list[str]]:
        """Label to its values, for the labels that the systems are reported by."""
        return {
            label: sorted({name for row in self.rows for name in row.result.groups.get(label, {})})
            for label in dict.fromkeys(label for row in self.rows for label in row.result.groups)
        }


def compare_systems(
    results: Mapping[str, Result],
    reference: str,
    metrics: MetricIndex,
    *,
    confidence: float = 0.95,
    cluster_by: str | None = None,
) -> SystemTable:
    """Compare systems that answered the same cases.

    Args:
        results: System to result, in the order of the table.
        reference: One of the systems.
        metrics: What they were measured with.
        confidence: Of the intervals of differences.
        cluster_by: A label; cases with the same value of it are drawn together.
    """
    baseline = CaseStatistics.exact(results[reference].records)
    names = [*dict.fromkeys(name for each in results.values() for name in each.metrics), PASS_RATE]
    found = {}
    for system, result in results.items():
        if system != reference:
            pairing = RunPairing(CaseStatistics.exact(result.records), baseline, metrics)
            found[system] = _against(pairing, names, confidence, cluster_by)
    tested = [each for row in found.values() for each in row.values() if each.difference.p_value is not None]
    adjusted = dict(zip(map(id, tested), holm([each.difference.p_value or 0.0 for each in tested]), strict=True))
    rows = [
        SystemRow(
            system,
            result,
            {
                name: Against(each.difference, adjusted.get(id(each)), each.wins, each.ties, each.losses)
                for name, each in found.get(system, {}).items()
            },
        )
        for system, result in results.items()
    ]
    return SystemTable(reference, names, rows, confidence)


def _against(
    pairing: RunPairing, names: Sequence[str], confidence: float, cluster_by: str | None
) -> dict[str, Against]:
    """Return metric to comparison, with p-values that are not adjusted yet; nothing where no case is in both."""
    import numpy as np

    if not pairing.paired:
        return {}
    rows = pairing.everything()
    clusters = cluster_by if cluster_by and pairing.has_label(cluster_by) else None
    measured = [name for name in names if name in pairing.table.owner]
    compared = differences(pairing, rows, measured, confidence=confidence, cluster_by=clusters)
    out = {}
    for name, difference in compared.items():
        scores = pairing.table.scores[name]
        better = scores[rows.current] - scores[rows.baseline]
        better = better[np.isfinite(better)] * (1 if difference.higher_is_better else -1)
        wins, losses = int((better > _SAME).sum()), int((better < -_SAME).sum())
        out[name] = Against(difference, None, wins, len(better) - wins - losses, losses)
    return out

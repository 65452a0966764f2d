"""Two runs, matched case by case."""

__all__ = ("PairedRows", "RunPairing")

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pytest_llmeval.core.evaluator import Evaluator
from pytest_llmeval.core.metrics import MetricIndex
from pytest_llmeval.core.results import UNLABELLED
from pytest_llmeval.scoring.clusters import unit_numbers
from pytest_llmeval.scoring.comparison.case_statistics import CaseStatistics
from pytest_llmeval.scoring.comparison.matching import match
from pytest_llmeval.scoring.comparison.shift import Shift
from pytest_llmeval.scoring.table import Table

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    IntArray: TypeAlias = npt.NDArray[np.intp]
else:
    IntArray: TypeAlias = Any


class PairedRows(NamedTuple):
    """Cases of the two runs, as rows of their common table; row by row the same case where they are paired."""

    current: IntArray
    baseline: IntArray


class RunPairing:
    """The cases of two runs in one table.

    Attributes:
        table: Rows of the current run, then those of the baseline, each sorted by id.
        matching: Which cases the runs share.
        paired: Whether they share any: then these are compared in pairs, and the others not at all.
        common: How many cases they share.
        only_current: How many only the current run has; an edited case is another one.
        only_baseline: How many only the baseline has.
        shifts: Metric, or statistic of it, to how far a change of judge since the baseline moves it.
        estimates: What has been computed from it, by what was asked.
    """

    def __init__(
        self,
        current: CaseStatistics,
        baseline: CaseStatistics,
        evaluators: Mapping[str, Evaluator] | MetricIndex,
        shifts: Mapping[str, Shift] | None = None,
    ) -> None:
        self.shifts = shifts or {}
        self.matching = match(current, baseline)
        same = frozenset(self.matching.unchanged)
        self.paired = bool(same) or not (current.records or baseline.records)
        if self.paired:
            current, baseline = current.only(same), baseline.only(same)
        self._records = (*current.records, *baseline.records)
        self._size = len(current.records)
        self.table = Table(evaluators, self._records)
        self.common = len(same)
        self.only_current = len(self.matching.new) + len(self.matching.edited)
        self.only_baseline = len(self.matching.gone) + len(self.matching.edited)
        self.estimates: dict[Hashable, Any] = {}
        self._groups: dict[str, dict[str, PairedRows]] = {}

    def everything(self) -> PairedRows:
        """Return all cases that are compared."""
        import numpy as np

        return PairedRows(np.arange(self._size), np.arange(self._size, len(self._records)))

    def groups(self, label: str) -> dict[str, PairedRows]:
        """Return the cases by the value of a label, which paired cases have from the current run."""
        import numpy as np

        if label in self._groups:
            return self._groups[label]
        everything = self.everything()
        here = np.array([self._label(row, label) for row in everything.current], dtype=object)
        there = here if self.paired else np.array([self._label(row, label) for row in everything.baseline], object)
        self._groups[label] = {
            name: PairedRows(everything.current[here == name], everything.baseline[there == name])
            for name in sorted({*here, *there})
        }
        return self._groups[label]

    def _label(self, row: int, label: str) -> str:
        return self._records[row].labels.get(label, UNLABELLED)

    def has_label(self, label: str) -> bool:
        """Return whether any case of the current run has a label."""
        return any(label in record.labels for record in self._records[: self._size])

    def units(self, rows: IntArray, cluster_by: str | None) -> IntArray:
        """Return the cluster number of each case; a case without the label is a cluster of its own."""
        return unit_numbers([self._records[row] for row in rows], cluster_by)

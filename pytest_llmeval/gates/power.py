"""Planning: how many cases and repeats find a drop of a given size, by normal theory."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_llmeval.gates.statistics.anytime import watch_shifts
from pytest_llmeval.gates.statistics.significance import POWER, detectable_shift
from pytest_llmeval.scoring.intervals import normal_cdf, normal_quantile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pytest_llmeval.core.observation import FloatArray
    from pytest_llmeval.scoring.table import Table

    IntArray = npt.NDArray[np.intp]

_MOST_REPEATS = 1000
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class ScoreSpread:
    """How much the difference of one case between two runs varies (Miller 2024, "Adding Error Bars to Evals").

    Attributes:
        between: Variance over cases of what the change does to a case; where cases come in clusters, that of
            independent cases whose mean would scatter as much.
        within: Variance of a single answer's score when a case is repeated; ``None`` where it is not known, and is
            then a part of `between`.
    """

    between: float
    within: float | None = None

    def of_case(self, repeats: int) -> float:
        """Return the variance of one case's difference, if both runs repeat it so often."""
        return self.between + 2 * (self.within or 0.0) / repeats


@dataclass(frozen=True, slots=True)
class Plan:
    """A test that is to find drops.

    Attributes:
        spread: Of the differences of cases.
        confidence: Of the test, which is two-sided.
        allowed: The drop that is tolerated; only what goes beyond it can be established.
        runs: Within how many runs that have the drop a gate with ``rule: anytime`` is to find it; 0: one test does.
        tests: By how much the level is divided: gates that are judged together, times the groups of this one.
        room: The largest drop that is possible.
        share: Of the cases, that of the smallest group that is judged on its own.
        cluster: Mean number of cases of a cluster.
        safe: Whether safety is to be proven, so that drops are limits that an equally good run is to meet.
    """

    spread: ScoreSpread
    confidence: float = 0.95
    allowed: float = 0.0
    runs: int = 0
    tests: int = 1
    room: float = math.inf
    share: float = 1.0
    cluster: float = 1.0
    safe: bool = False

    def detectable(self, cases: int, repeats: int = 1) -> float | None:
        """Return the smallest true drop that is found in 80 of 100 runs; ``None`` where no possible one is."""
        return self._possible(cases, self._deviation(cases, repeats))

    def limit(self, cases: int) -> float | None:
        """Return what `detectable` comes down to with ever more repeats."""
        return self._possible(cases, math.sqrt(self.spread.between / (self.share * cases)))

    def _possible(self, cases: int, deviation: float) -> float | None:
        found = self.allowed + self._needed() * deviation
        if self.safe and math.isfinite(self.room):
            # What none of the cases is like is not ruled out by them, however alike they are.
            found = max(found, self.room * (1 - self._tail ** (1 / self._units(cases))))
        return found if found <= self.room and cases >= self._fewest else None

    @property
    def _confidence(self) -> float:
        return 1 - (1 - self.confidence) / self.tests

    @property
    def _tail(self) -> float:
        return (1 - self._confidence) / 2

    def _units(self, cases: int) -> float:
        return max(1.0, self.share * cases / self.cluster)

    @property
    def _fewest(self) -> int:
        """How many cases it takes at least: fewer than so many clusters cannot establish that all of them fell."""
        if self.safe or self.runs:
            return 1
        units = math.ceil(-math.log2(self._tail) - _ROUNDING)
        return math.ceil(units * self.cluster / self.share - _ROUNDING)

    def chance(self, drop: float, cases: int, repeats: int = 1) -> float:
        """Return the chance that a true drop is found."""
        if drop > self.room or cases < self._fewest:
            return 0.0
        deviation = self._deviation(cases, repeats)
        if not deviation:
            return float(drop > self.allowed)
        if self.runs:
            shifts = watch_shifts(self._confidence, self.runs)
            return float(shifts.searchsorted((drop - self.allowed) / deviation, "right")) / len(shifts)
        return normal_cdf((drop - self.allowed) / deviation - normal_quantile(1 - self._tail))

    def cases(self, drop: float, repeats: int = 1) -> int | None:
        """Return how many cases find a true drop in 80 of 100 runs; ``None`` if it is tolerated, or impossible."""
        if drop <= self.allowed or drop > self.room:
            return None
        shift = self._needed() * math.sqrt(self.spread.of_case(repeats) / self.share)
        needed = max(self._fewest, math.ceil((shift / (drop - self.allowed)) ** 2 - _ROUNDING))
        if self.safe and drop < self.room and math.isfinite(self.room):
            unseen = math.log(self._tail) / math.log1p(-drop / self.room)
            needed = max(needed, math.ceil(unseen * self.cluster / self.share - _ROUNDING))
        return needed

    def repeats(self, drop: float, cases: int) -> int | None:
        """Return how many repeats of so many cases find a true drop in 80 of 100 runs; ``None`` if no number does."""
        for repeats in range(1, _MOST_REPEATS + 1):
            found = self.detectable(cases, repeats)
            if found is not None and found <= drop + _ROUNDING:
                return repeats
        return None

    def _needed(self) -> float:
        """Return how many deviations beyond what is tolerated a drop is that is found in 80 of 100 runs."""
        import numpy as np

        if self.runs:
            return float(np.quantile(watch_shifts(self._confidence, self.runs), POWER))
        return detectable_shift(1.0, self._confidence)

    def _deviation(self, cases: int, repeats: int) -> float:
        return math.sqrt(self.spread.of_case(repeats) / (self.share * cases))


def measured_spread(
    here: "FloatArray",
    there: "FloatArray",
    units: "IntArray",
    *,
    within: float | None = None,
    repeats: tuple[int, int] = (1, 1),
) -> ScoreSpread:
    """Take the spread from two runs of the same cases.

    Args:
        here: One score per case, of the one run.
        there: Of the other.
        units: For every case the number of its cluster.
        within: Variance of single answers, if repeats have shown it.
        repeats: How many answers stand behind a score of either run.
    """
    total = _variance(here - there, units)
    if within is None:
        return ScoreSpread(total)
    return ScoreSpread(max(0.0, total - within / repeats[0] - within / repeats[1]), within)


def run_spread(scores: "FloatArray", units: "IntArray") -> ScoreSpread:
    """Bound the spread from a single run: whatever its cases have in common with those of the next run lessens it."""
    return ScoreSpread(2 * _variance(scores, units))


def _variance(values: "FloatArray", units: "IntArray") -> float:
    """Return the variance of a value that cases of one cluster share partly: of the mean, times the number of cases."""
    import numpy as np

    sums = np.bincount(units, weights=values - values.mean())
    clusters = np.unique(units).size
    return float(np.sum(sums**2)) / len(values) * clusters / (clusters - 1)


def pseudo_values(table: "Table", metric: str, rows: "IntArray") -> "FloatArray":
    """Return what each case contributes to a pooled metric (Tukey 1958); of a mean, the scores of the cases.

    Args:
        table: The cases.
        metric: Its name.
        rows: The cases that the metric is computed from.
    """
    import numpy as np

    part = table.matrix[rows]
    total = part.sum(axis=0, keepdims=True)
    whole = table.summarize(total)[metric][0]
    without = table.summarize(total - part)[metric]
    with np.errstate(invalid="ignore"):  # a metric may be undefined without one of the cases
        values: FloatArray = np.asarray(len(rows) * whole - (len(rows) - 1) * without)
    return values

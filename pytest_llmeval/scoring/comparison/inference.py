"""Intervals, p-values and warnings from resampled differences."""

__all__ = ("FEW_CHANGED", "Bootstrap", "Method", "doubts", "least_tail")

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_llmeval.core.wording import counted
from pytest_llmeval.scoring.comparison.estimation import Estimate
from pytest_llmeval.scoring.comparison.pairing import Pairing
from pytest_llmeval.scoring.comparison.significance import Tails, acceleration, bca_interval, bca_share, bias, tails
from pytest_llmeval.scoring.resample import percentile_interval

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray

Method: TypeAlias = Literal["percentile", "bca"]

FEW_CHANGED = 10
"""With fewer changed cases, resamples do not show how much a difference varies."""

_FEW_UNITS = 30
_MANY_LOST = 0.05
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """A resampled difference.

    Attributes:
        resampled: Finite values, at least one.
        z0: Bias correction; 0 for percentiles.
        a: Acceleration; 0 for percentiles.
        corrected: Whether the interval is BCa.
    """

    resampled: "FloatArray"
    z0: float = 0.0
    a: float = 0.0
    corrected: bool = False

    @classmethod
    def of(cls, estimate: Estimate, method: Method) -> "Bootstrap | None":
        """Return the inference from an estimate's resamples; ``None`` if it has none."""
        difference = estimate.difference
        if difference is None or not estimate.resampled.size:
            return None
        if method == "percentile":
            return cls(estimate.resampled)
        return cls(
            estimate.resampled, bias(estimate.resampled, difference), acceleration(estimate.jackknives), corrected=True
        )

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the interval of the difference."""
        if self.corrected:
            return bca_interval(self.resampled, self.z0, self.a, confidence)
        bounds = percentile_interval(self.resampled, confidence)
        assert bounds is not None  # all values are finite
        return bounds

    def tails(self, at: float) -> Tails:
        """Return one-sided p-values of the difference around a number, by the same method as the interval."""
        found = tails(self.resampled, at)
        if not self.corrected:
            return found
        return Tails(bca_share(found.above, self.z0, self.a), bca_share(found.below, -self.z0, -self.a))

    @property
    def deviation(self) -> float:
        """The standard deviation of the difference; 0 if no case differs."""
        found = float(self.resampled.std())
        return found if found > _ROUNDING else 0.0


def least_tail(estimate: Estimate) -> float:
    """Return the smallest one-sided p-value that a test of no difference can have with so few cases.

    If nothing changed in truth, every changed case might as well have changed the other way round: `k` changed cases
    look all worse in one of ``2 ** k`` equally likely ways. Unpaired, every case might be of the other run.
    """
    if estimate.changed is not None:
        return 0.5**estimate.changed
    return 1 / math.comb(2 * estimate.units, estimate.units)


def doubts(estimate: Estimate, pairing: Pairing, cluster_by: str | None) -> Iterator[str]:
    """Yield what to keep in mind when reading an estimate."""
    noun = "case" if cluster_by is None else "cluster"
    if not pairing.paired:
        yield (
            f"unpaired: {counted(pairing.common, 'case')} in common, {pairing.only_current} only in this run, "
            f"{pairing.only_baseline} only in the baseline"
        )
    elif pairing.only_current or pairing.only_baseline:
        yield str(pairing.matching)
    if estimate.dropped:
        yield f"{counted(estimate.dropped, 'case')} left out, scored in one run only"
    if estimate.changed is not None and estimate.cases and estimate.changed < FEW_CHANGED:
        few = f"only {counted(estimate.changed, noun)} changed" if estimate.changed else f"no {noun} changed"
        yield f"{few}, too few to estimate how much the difference varies"
    if not estimate.units:
        yield f"no {noun} to compare"
    elif estimate.units < _FEW_UNITS:
        yield f"only {counted(estimate.units, noun)}, interval too narrow"
    if estimate.resampled.size and estimate.lost_resamples > _MANY_LOST:
        yield f"undefined in {estimate.lost_resamples:.0%} of the resamples"

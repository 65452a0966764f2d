"""How far a change of judge moves a metric by itself."""

__all__ = ("CONFIDENCE", "Shift", "dependence", "subject_of")

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_llmeval.core.wording import interval, number
from pytest_llmeval.scoring.distributions import normal_quantile
from pytest_llmeval.scoring.regression import Statistic
from pytest_llmeval.scoring.resample import SEED

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray

CONFIDENCE = 0.95
"""Of the intervals of shifts."""

_LEVEL = 0.01
_LEAST_CASES = 8
_ROUNDING = 1e-9

_APART = 7
"""Keeps the draws apart from those of cases, which begin with the same seed."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A metric by the new judge minus the same metric by the old one, on the same answers.

    Attributes:
        value: The difference.
        low: Lower bound.
        high: Upper bound.
        before: How the old judge's metric is computed, if the new one's is computed otherwise: by other steps, say.
        after: How the new judge's is.
        depends: How the difference depends on the score, so that it holds for no other scores; empty if it does not.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    value: float
    low: float
    high: float
    before: str = ""
    after: str = ""
    depends: str = ""

    @property
    def deviation(self) -> float:
        """Its standard deviation, by the wider side of the interval."""
        return max(self.high - self.value, self.value - self.low, 0.0) / normal_quantile((1 + CONFIDENCE) / 2)

    def draws(self, count: int) -> "FloatArray":
        """Return what the shift may be in truth, as often as is asked for; the same in every process."""
        import numpy as np

        drawn: FloatArray = self.value + self.deviation * np.random.default_rng(SEED + _APART).standard_normal(count)
        return drawn

    def __str__(self) -> str:
        sign = "+" if self.value >= 0 else ""
        return f"{sign}{number(self.value)} ({CONFIDENCE:.0%} interval {interval(self.low, self.high)})"


def subject_of(metric: str, statistic: Statistic) -> str:
    """Return the name under which a statistic of a metric has its shift; gates name it alike."""
    return metric if statistic == "value" else f"{statistic}({metric})"


def dependence(old: "FloatArray", new: "FloatArray") -> str:
    """Say how the difference of two judges depends on the score; nothing where that is not established.

    The difference is held against the mean of both scores (Bland and Altman 1986): against the old one alone, it would
    seem to depend on it wherever verdicts are noisy. That is the test of Pitman (1939) and Morgan (1939).

    Args:
        old: Scores of cases by the old judge.
        new: By the new one. Scores of 0 and 1 are not tested: their differences always depend on them.
    """
    import numpy as np
    from scipy.stats import pearsonr

    known = np.isfinite(old) & np.isfinite(new)
    old, new = old[known], new[known]
    moved, middle = new - old, (old + new) / 2
    if len(old) < _LEAST_CASES or np.isin(old, (0.0, 1.0)).all() or min(np.ptp(moved), np.ptp(middle)) <= _ROUNDING:
        return ""
    found = pearsonr(moved, middle)
    if not (math.isfinite(found.pvalue) and found.pvalue <= _LEVEL):
        return ""
    low = middle <= np.median(middle)
    if low.all():
        low = middle < np.median(middle)
    below, above = (f"{moved[part].mean():+.4f}" for part in (low, ~low))
    return (
        f"the difference of the judges depends on the score: {below} among the lower scores, {above} among the higher"
    )

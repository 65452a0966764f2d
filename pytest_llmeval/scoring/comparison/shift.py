"""How far a change of judge moves a metric by itself."""

__all__ = ("CONFIDENCE", "Shift", "subject_of")

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
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    value: float
    low: float
    high: float
    before: str = ""
    after: str = ""

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

"""What gates with ``rule: anytime`` find: simulated histories of runs that get worse with one of them."""

__all__ = ("EARLIER_RUNS", "WATCHED_RUNS", "watch_shifts")

from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_llmeval.scoring.comparison.anytime import weighted_ratios
from pytest_llmeval.scoring.distributions import normal_quantile

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray

EARLIER_RUNS = 9
"""Equally good runs before the drop begins; they tell how lucky the baseline was."""

WATCHED_RUNS = (1, 3, 10)
"""Runs that have the drop, within which it is to be found."""

_HISTORIES = 1000
_SEED = 20
_LARGEST = 40.0
_STEPS = 14


@lru_cache
def watch_shifts(confidence: float, runs: int) -> "FloatArray":
    """Return how large a drop must be to be found within so many runs, sorted, one number for each history.

    Args:
        confidence: Of the gate.
        runs: How many of them have the drop.

    Returns:
        Drops beyond what is allowed, in standard deviations of the drop of a single run.
    """
    import numpy as np

    rng = np.random.default_rng(_SEED)
    # The noise of the baseline is shared by all runs, and as large as theirs.
    noise = (rng.normal(size=(_HISTORIES, 1)) + rng.normal(size=(EARLIER_RUNS + runs, _HISTORIES)).T) / np.sqrt(2)
    low, high = np.full(_HISTORIES, -_LARGEST), np.full(_HISTORIES, _LARGEST)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        found = _found(noise, middle, confidence)
        low, high = np.where(found, low, middle), np.where(found, middle, high)
    return np.sort(high)


def _found(noise: "FloatArray", shift: "FloatArray", confidence: float) -> "FloatArray":
    """Return which histories alarm if their last runs are worse by so much."""
    import numpy as np

    alone, needed = normal_quantile((1 + confidence) / 2), 1 / (1 - confidence)
    drops = noise.copy()
    drops[:, EARLIER_RUNS:] += shift[:, None]
    alarms = np.zeros(len(drops), dtype=bool)
    for end in range(EARLIER_RUNS + 1, drops.shape[1] + 1):
        ratios, rest = weighted_ratios(drops[:, :end], 0.0, 1.0)
        alarms |= (ratios.sum(axis=-1) + rest >= needed) & (drops[:, end - 1] >= alone)
    return alarms

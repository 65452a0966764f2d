"""Watching many runs against one baseline: evidence of a drop whose alarm is right whenever one looks.

A run's drop has two parts of noise: its own, and that of the baseline, which all runs share. Runs that are as good as
the baseline have drops with the covariance ``(I + 11') * s ** 2 / 2``, where `s` is the deviation of one drop. So each
run tells how lucky the baseline was. Against a drop that begins with some run and stays, of a size that is mixed over a
half-normal distribution (Robbins 1970), the likelihood ratio of the runs so far is a martingale that begins at 1, and
so is its mean over the runs with which the drop may begin: with a probability of 1 - 1 / x it never reaches x, however
many runs follow (Ville 1939). Like the tests of single runs, this is right for sums over enough cases.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pytest_llmeval.scoring.intervals import normal_quantile

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray

_TYPICAL = 3.0
"""Deviation of the half-normal distribution of drops, in deviations of a single drop."""

_EARLY = 5
"""Runs that share half of the weight; the later a drop begins, the more evidence it needs."""

_MOST = 600.0
"""The largest argument of `exp`."""


class WatchedRun(NamedTuple):
    """One run against the baseline.

    Attributes:
        drop: How much worse it is.
        deviation: Of the drop.
        units: Cases, or clusters of them, behind it.
    """

    drop: float
    deviation: float
    units: int


class Watch(NamedTuple):
    """The evidence of several runs.

    Attributes:
        evidence: Of a drop beyond what is allowed; of histories of equally good runs, 1 in x ever reaches x.
        alone: How many deviations the last run by itself is beyond what is allowed.
        looks: In how many of the last runs the drop most likely is.
        drop: Their mean drop.
    """

    evidence: float
    alone: float
    looks: int
    drop: float


def watch(looks: Sequence[WatchedRun], max_drop: float) -> Watch:
    """Weigh the looks since the baseline was approved, the last one last.

    A drop begins with run `n` with the weight ``5 / ((n + 4) * (n + 5))``; all weights add up to 1.
    """
    import numpy as np

    drops = np.array([run.drop for run in looks])
    # Around what is allowed, not around itself: so few changed cases cannot look more certain than they are.
    squares = [run.deviation**2 + (run.drop - max_drop) ** 2 / run.units for run in looks]
    square, count = max(squares), len(looks)
    if not square:
        return Watch(0.0, 0.0, count, float(drops.mean()))
    ratios, unbegun = weighted_ratios(drops, max_drop, square)
    begun = int(ratios.argmax())
    alone = (looks[-1].drop - max_drop) / math.sqrt(squares[-1]) if squares[-1] else 0.0
    return Watch(float(ratios.sum() + unbegun), alone, count - begun, float(drops[begun:].mean()))


def weighted_ratios(drops: "FloatArray", max_drop: float, square: float) -> "tuple[FloatArray, float]":
    """Return the mixed likelihood ratios of a drop that begins with each of the runs, times their weights.

    Args:
        drops: Of the runs, along the last axis.
        max_drop: What is allowed.
        square: Variance of a single drop.

    Returns:
        The weighted ratios, and the weight of a drop that has not begun yet, whose ratio is 1.
    """
    import numpy as np

    first = np.arange(drops.shape[-1]) + _EARLY
    weights = _EARLY / (first * (first + 1))
    ratios = weights * np.exp(np.minimum(_MOST, _log_ratios(drops, max_drop, square)))
    return ratios, 1 - float(weights.sum())


def _log_ratios(drops: "FloatArray", max_drop: float, square: float) -> "FloatArray":
    """Return the logarithms of the mixed likelihood ratios, by the number of runs before the drop."""
    import numpy as np
    from scipy.special import log_ndtr

    before = np.arange(drops.shape[-1])
    after = drops.shape[-1] - before
    totals = np.cumsum(drops, axis=-1)
    earlier = totals - drops
    # The baseline is one of the runs before the drop; its own drop is 0.
    reference, stretch = earlier / (before + 1), (totals[..., -1:] - earlier) / after
    information = 2 / square / (1 / (before + 1) + 1 / after)
    precision = information + 1 / (_TYPICAL**2 * square)
    score = information * (stretch - max_drop - reference) / np.sqrt(precision)
    ratios: FloatArray = np.log(2 / (_TYPICAL * np.sqrt(square * precision))) + score**2 / 2 + log_ndtr(score)
    return ratios


EARLIER_RUNS = 9
"""Equally good runs before the drop begins; they tell how lucky the baseline was."""

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
        alarmed = _alarms(noise, middle, confidence)
        low, high = np.where(alarmed, low, middle), np.where(alarmed, middle, high)
    return np.sort(high)


def _alarms(noise: "FloatArray", shift: "FloatArray", confidence: float) -> "FloatArray":
    """Return which histories alarm if their last runs are worse by so much."""
    import numpy as np

    alone, needed = normal_quantile((1 + confidence) / 2), 1 / (1 - confidence)
    drops = noise.copy()
    drops[:, EARLIER_RUNS:] += shift[:, None]
    alarms = np.zeros(len(drops), dtype=bool)
    for end in range(EARLIER_RUNS + 1, drops.shape[1] + 1):
        ratios, unbegun = weighted_ratios(drops[:, :end], 0.0, 1.0)
        alarms |= (ratios.sum(axis=-1) + unbegun >= needed) & (drops[:, end - 1] >= alone)
    return alarms

"""Watching many runs against one baseline: evidence of a drop whose alarm is right whenever one looks.

A run's drop has two parts of noise: its own, and that of the baseline, which all runs share. So each run tells how
lucky the baseline was. Most commits change few answers, so neighbouring runs share noise: scores wander, and a
run of bad luck lasts. Runs that are as good as the baseline are modelled as an autoregressive process: `r` is the
correlation of the noise of neighbouring runs, and the variance of their difference, by the differences of cases, is
``(1 - r) * s ** 2``, where `s` is the deviation of the drop between two independent runs. How much more than
neighbours the runs two steps apart differ tells `s`. If all answers are new in each run, `r` is 0, and drops have the
covariance ``(I + 11') * s ** 2 / 2``.

Against a drop that begins with some run and stays, of a size that is mixed over a half-normal distribution (Robbins
1970), the likelihood ratio of the runs so far is a martingale that begins at 1, and so is its mean over the runs with
which the drop may begin: with a probability of 1 - 1 / x it never reaches x, however many runs follow (Ville 1939).
Like the tests of single runs, this is right for sums over enough cases; that correlations are estimated is covered by
simulations.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from pytest_llmeval.core import FloatArray

_TYPICAL = 3.0
"""Deviation of the half-normal distribution of drops, in deviations of a single drop."""

_EARLY = 5
"""Runs that share half of the weight; the later a drop begins, the more evidence it needs."""

_MOST = 600.0
"""The largest argument of `exp`."""

_BEFORE = 2
"""The number of earlier runs that a run is compared with."""

_CLOSEST = 1 - 1e-6
"""The largest correlation of neighbouring runs; with 1, equal runs would be divided by zero."""

_SLOWEST = 0.999
"""The largest mean correlation, beyond which the variance of independent runs has no estimate."""


_BY_LUCK = 3.0
"""The largest correlation of independent runs of one unit; of more, by the square root of their number less."""


class WatchedRun(NamedTuple):
    """One run against its baseline, as evidence for gates that weigh many runs.

    Attributes:
        drop: How much worse it is.
        deviation: Of the drop.
        units: Cases, or clusters of them, behind it.
        step: Deviation of the difference from the run before; ``None`` if the cases of both are unknown.
        two_steps: Of that from the run before that one.
        shares: What each unit contributes to the difference from the baseline; empty if unknown.
    """

    drop: float
    deviation: float
    units: int
    step: float | None = None
    two_steps: float | None = None
    shares: tuple[float, ...] = ()

    def after(self, earlier: "Sequence[WatchedRun]") -> "WatchedRun":
        """The watched run with its differences from the runs before it; the baseline is the first of all."""
        before = [self._distance(run) for run in earlier[:-3:-1]]
        before = [*before, self._distance(None)] if len(before) < _BEFORE else before
        return self._replace(step=before[0], two_steps=before[1] if len(before) == _BEFORE else None)

    def _distance(self, other: "WatchedRun | None") -> float | None:
        """The standard error of the mean difference from another run; ``None`` if that is not known."""
        import numpy as np

        shares = (0.0,) * len(self.shares) if other is None else other.shares
        if not len(self.shares) or len(shares) != len(self.shares):
            return None
        return float(np.sqrt(np.mean(np.square(np.subtract(self.shares, shares))) / len(shares)))

    @staticmethod
    def weigh(looks: "Sequence[WatchedRun]", max_drop: float) -> "Watch":
        """Weigh the runs since the baseline was approved, the last one last, as evidence of a drop.

        A drop begins with run `n` with the weight ``5 / ((n + 4) * (n + 5))``; all weights add up to 1.
        """
        import numpy as np

        drops = np.array([run.drop for run in looks])
        # Around what is allowed, not around itself: so few changed cases cannot look more certain than they are.
        squares = [run.deviation**2 + (run.drop - max_drop) ** 2 / run.units for run in looks]
        square, count = max(squares), len(looks)
        if not square:
            return Watch(0.0, 0.0, count, float(drops.mean()))
        ratios, unbegun = WatchedRun.weighted_ratios(drops, max_drop, square, *_correlate_runs(looks, square))
        begun = int(ratios.argmax())
        alone = (looks[-1].drop - max_drop) / math.sqrt(squares[-1]) if squares[-1] else 0.0
        return Watch(float(ratios.sum() + unbegun), alone, count - begun, float(drops[begun:].mean()))

    @staticmethod
    def weighted_ratios(
        drops: FloatArray,
        max_drop: float,
        square: float,
        correlations: FloatArray | float = 0.0,
        independent: float | None = None,
    ) -> tuple[FloatArray, float]:
        """The mixed likelihood ratios of a drop that begins with each of the runs, times their weights.

        Args:
            drops: Of the runs, along the last axis.
            max_drop: What is allowed.
            square: Variance of a single drop, to which the sizes of drops are in proportion.
            correlations: Of the noise of each run with that of the one before.
            independent: Variance of a drop between independent runs; default: `square`.

        Returns:
            The weighted ratios, and the weight of a drop that has not begun yet, whose ratio is 1.
        """
        import numpy as np

        first = np.arange(drops.shape[-1]) + _EARLY
        weights = _EARLY / (first * (first + 1))
        ratios = weights * np.exp(
            np.minimum(
                _MOST,
                _log_ratios(drops, max_drop, square, correlations, square if independent is None else independent),
            )
        )
        return ratios, 1 - float(weights.sum())


class Watch(NamedTuple):
    """The evidence of several runs for a drop since the baseline.

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


def _correlate_runs(looks: Sequence[WatchedRun], square: float) -> tuple[FloatArray, float]:
    """The correlation of each watched run with the one before, and a drop's variance between independent runs."""
    import numpy as np

    steps = np.array([math.nan if run.step is None else run.step**2 for run in looks])
    doubles = np.array([math.nan if run.two_steps is None else run.two_steps**2 for run in looks])
    singles = (steps[1:] + steps[:-1]) / 2
    known = np.isfinite(singles) & np.isfinite(doubles[1:])
    total = float(singles[known].sum())
    # Over two steps, the noise of which a share r stays at each has the variance (1 - r ** 2) / (1 - r) = 1 + r.
    mean = min(max(float(doubles[1:][known].sum()) / total - 1, 0.0), _SLOWEST) if total else 0.0
    # Less than this is what independent runs of so few units show by luck.
    least = _BY_LUCK / math.sqrt(max(1, min(run.units for run in looks)))
    if mean > least:
        square = max(square, float(np.nanmean(steps)) / (1 - mean))
    # Runs of which nothing is known count as independent of those before.
    shared = np.clip(1 - np.nan_to_num(steps, nan=square) / square, 0.0, _CLOSEST)
    return np.where(shared > least, shared, 0.0), square


def _log_ratios(
    drops: FloatArray, max_drop: float, square: float, correlations: FloatArray | float, independent: float
) -> FloatArray:
    """The logarithms of a watch's mixed likelihood ratios, by the number of runs before the drop."""
    import numpy as np
    from scipy.special import log_ndtr

    count = drops.shape[-1]

    def innovations(path: FloatArray) -> FloatArray:
        new = (path[..., 1:] - correlations * path[..., :-1]) / np.sqrt(1 - np.square(correlations))
        return np.concatenate([path[..., :1], new], axis=-1)

    # The baseline is one of the runs before the drop; its own drop is 0. The level before the drop is unknown.
    level = innovations(np.ones(count + 1))
    begun = innovations((np.arange(count + 1) > np.arange(count)[:, None]).astype(float))
    begun -= np.outer(begun @ level / (level @ level), level)
    paths = innovations(np.concatenate([np.zeros((*drops.shape[:-1], 1)), drops], axis=-1))
    information = 2 / independent * np.square(begun).sum(axis=-1)
    precision = information + 1 / (_TYPICAL**2 * square)
    score = (2 / independent * (paths @ begun.T) - max_drop * information) / np.sqrt(precision)
    ratios: FloatArray = np.log(2 / (_TYPICAL * np.sqrt(square * precision))) + score**2 / 2 + log_ndtr(score)
    return ratios

"""Estimates for calls that are not made yet, from calls that were made."""

__all__ = ("NOTHING", "CallSample", "CostEstimate", "PlannedCalls", "planned")

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_MEDIAN, _HIGH = 50, 95


class CallSample(NamedTuple):
    """Tokens, cost and seconds of one call; ``None`` where unknown."""

    tokens: float | None = None
    usd: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """An amount, estimated.

    Attributes:
        median: If every call takes what the median call took; ``None`` where nothing is known.
        high: If every call takes the 95th percentile.
        known: Where the median is unknown, that of the calls of which it is known.
    """

    median: float | None = 0.0
    high: float | None = 0.0
    known: float = 0.0

    @property
    def least(self) -> float:
        """The median of as many calls as it is known of."""
        return self.known if self.median is None else self.median

    def __add__(self, other: "CostEstimate") -> "CostEstimate":
        median = _sum(self.median, other.median)
        return CostEstimate(median, _sum(self.high, other.high), self.least + other.least if median is None else 0.0)


@dataclass(frozen=True, slots=True)
class PlannedCalls:
    """Calls of one kind.

    Attributes:
        calls: That will be made.
        likely: That will be made if the answers that do not exist yet are like others.
        more: That may follow at most, depending on replies; ``None`` where that is unknown.
        stored: What needs no call, because it is stored.
        tokens: Of requests and replies.
        usd: US dollars.
        seconds: At the concurrency of the run; ``None`` where nothing is known.
    """

    calls: int = 0
    likely: int = 0
    more: int | None = 0
    stored: int = 0
    tokens: CostEstimate = CostEstimate()
    usd: CostEstimate = CostEstimate()
    seconds: float | None = 0.0

    def __add__(self, other: "PlannedCalls") -> "PlannedCalls":
        return PlannedCalls(
            self.calls + other.calls,
            self.likely + other.likely,
            None if self.more is None or other.more is None else self.more + other.more,
            self.stored + other.stored,
            self.tokens + other.tokens,
            self.usd + other.usd,
            _sum(self.seconds, other.seconds),
        )

    @property
    def expected(self) -> int:
        """The number of expected calls."""
        return self.calls + self.likely


NOTHING = PlannedCalls()


def planned(calls: int, samples: Sequence[CallSample], *, concurrency: int, likely: int = 0) -> PlannedCalls:
    """Estimate what calls will take.

    Args:
        calls: That will be made.
        samples: Calls of the same kind that were made.
        concurrency: How many are in flight at a time.
        likely: That will probably be made as well.

    Example:
        >>> found = planned(10, [CallSample(100, None, 2), CallSample(300, None, 4)], concurrency=4)
        >>> found.tokens, found.usd, found.seconds
        (CostEstimate(median=2000.0, high=2900.0, known=0.0), CostEstimate(median=None, high=None, known=0.0), 9.0)
    """
    every = calls + likely
    if not every:
        return NOTHING
    seconds = _percentiles([each.seconds for each in samples]).median
    return PlannedCalls(
        calls,
        likely,
        tokens=_times(every, _percentiles([each.tokens for each in samples])),
        usd=_times(every, _percentiles([each.usd for each in samples])),
        seconds=None if seconds is None else math.ceil(every / concurrency) * seconds,
    )


def _percentiles(amounts: Sequence[float | None]) -> CostEstimate:
    known = [each for each in amounts if each is not None]
    if not known:
        return CostEstimate(None, None)
    import numpy as np

    return CostEstimate(*(float(np.percentile(known, percent)) for percent in (_MEDIAN, _HIGH)))


def _times(count: int, spread: CostEstimate) -> CostEstimate:
    if spread.median is None or spread.high is None:
        return spread
    return CostEstimate(count * spread.median, count * spread.high)


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other

"""Limits on the scores of one case."""

__all__ = ("Limit", "Unmet", "unmet")

from collections.abc import Mapping

from msgspec import Struct

from pytest_llmeval.core.wording import limit, number

TOLERANCE = 1e-12
"""Slack of every comparison with a limit, so that 0.1 + 0.2 meets 0.3."""


class Limit(Struct, frozen=True):
    """The range that a score must lie in; both ends belong to it."""

    min: float | None = None
    max: float | None = None

    def holds(self, value: float) -> bool:
        """Return whether a score lies in the range."""
        return (self.min is None or value >= self.min - TOLERANCE) and (
            self.max is None or value <= self.max + TOLERANCE
        )

    def __str__(self) -> str:
        parts = []
        if self.min is not None:
            parts.append(f">= {limit(self.min)}")
        if self.max is not None:
            parts.append(f"<= {limit(self.max)}")
        return " and ".join(parts)


class Unmet(Struct, frozen=True):
    """A score outside its limit."""

    metric: str
    value: float
    limit: Limit

    def __str__(self) -> str:
        return f"{self.metric} {number(self.value)}, limit {self.limit}"


def unmet(limits: Mapping[str, Limit], scores: Mapping[str, float | None]) -> list[Unmet]:
    """Return the limits that scores do not meet; a score that does not exist is not held against the case."""
    found = []
    for metric, wanted in limits.items():
        value = scores.get(metric)
        if value is not None and not wanted.holds(value):
            found.append(Unmet(metric, value, wanted))
    return found

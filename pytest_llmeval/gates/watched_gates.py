"""Gates with ``rule: anytime``: all runs since the approval weighed together, and what such a gate finds."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_llmeval.core.wording import counted, limit, number
from pytest_llmeval.gates.limits import GateOutcome
from pytest_llmeval.gates.regression_verdicts import GateEvidence
from pytest_llmeval.gates.statistics.anytime import Look, watch, weighted_ratios
from pytest_llmeval.scoring.intervals import normal_quantile

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray


def watched(finding: GateEvidence, earlier: Sequence[Look]) -> tuple[GateEvidence, Look | None]:
    """Judge a gate whose drop has been examined.

    It fails if all runs together establish a drop, and this run by itself would too if nobody had looked before.

    Args:
        finding: The drop of this run.
        earlier: Runs since the baseline was approved, the last one last.

    Returns:
        The finding with its verdict, and what this run adds to the history; ``None`` if nothing.
    """
    if not finding.examined:
        return finding, None
    (examined,) = finding.examined
    gate, found = finding.gate, examined.found
    if examined.fault or found is None or found.drop is None:
        return replace(finding, examined=(), outcome="failed", reason=examined.fault), None
    look = Look(found.drop, found.deviation, found.estimate.units)
    seen = watch([*earlier, look], gate.max_drop)
    needed = 1 / (1 - gate.confidence)
    alone = normal_quantile((1 + gate.confidence) / 2)
    # What was mended is no drop any more; and a fall from better runs need not be one below the baseline.
    proven = seen.evidence >= needed and seen.alone >= alone
    data = found.estimate
    stretch = f"the last {seen.looks} of {counted(len(earlier) + 1, 'run')} since the approval"
    values = f"{gate.subject} {number(data.baseline)} -> {number(data.value)}, drop {number(found.drop)}"
    evidence = f"evidence {seen.evidence:.3g} of {needed:.3g}, this run {seen.alone:.2f} of {alone:.2f} deviations"
    parts = (
        f"{values}, {number(seen.drop)} in {stretch} ({counted(data.cases, 'case')})",
        f"a drop beyond {limit(gate.max_drop)} is {'' if proven else 'not '}established, {evidence}",
        *found.notes,
    )
    outcome: GateOutcome = "failed" if proven else "passed"
    return replace(finding, examined=(), outcome=outcome, reason="; ".join(parts), value=found.drop), look


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

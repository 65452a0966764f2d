"""The verdict on a gate with ``rule: anytime``: all runs since the approval weighed together."""

__all__ = ("watched",)

from collections.abc import Sequence
from dataclasses import replace

from pytest_llmeval.core.wording import counted, limit, number
from pytest_llmeval.scoring.comparison.anytime import Look, watch
from pytest_llmeval.scoring.distributions import normal_quantile
from pytest_llmeval.scoring.gates import GateOutcome
from pytest_llmeval.scoring.regression_verdicts import GateEvidence


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

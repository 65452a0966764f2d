"""Cases that a comparison cannot use, and how far they may have fallen."""

__all__ = ("LeftOut", "left_out_of")

from typing import TYPE_CHECKING, NamedTuple

from pytest_llmeval.scoring.comparison.pairing import PairedRows, RunPairing

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray


class LeftOut(NamedTuple):
    """Cases that are not compared.

    Attributes:
        cases: How many errored in either run, or ran in one of them only.
        drop: How far they would have fallen at most, added up; ``None`` where the metric is unbounded.
    """

    cases: int
    drop: float | None


def left_out_of(pairing: RunPairing, name: str, rows: PairedRows) -> LeftOut:
    """Count the cases that are left out, and bound them by their worst case.

    A case that one run has measured falls from its score, or to it; of others nothing is known but the metric's range.
    """
    import numpy as np

    table, metric = pairing.table, pairing.table.metric(name)
    failed = [table.failed[name][part] for part in rows]
    if not pairing.paired:
        count = sum(int(part.sum()) for part in failed)
        return LeftOut(count, None if metric.low is None or metric.high is None else count * (metric.high - metric.low))
    missing = [table.missing[part] for part in rows]
    left_out = failed[0] | failed[1] | (missing[0] != missing[1])
    if metric.low is None or metric.high is None:
        return LeftOut(int(left_out.sum()), None)
    best, worst = (metric.high, metric.low) if metric.higher_is_better else (metric.low, metric.high)

    def bounded(run: int, otherwise: float) -> "FloatArray":
        scores = table.scores[name][rows[run]][left_out]
        return np.where(np.isfinite(scores), scores, otherwise)

    return LeftOut(int(left_out.sum()), float(np.abs(bounded(1, best) - bounded(0, worst)).sum()))

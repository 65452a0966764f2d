"""Metrics and their intervals from statistics that merge."""

__all__ = ("merged_values",)

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from pytest_llmeval.core.evaluator import Evaluator, Metric
from pytest_llmeval.core.metrics import MetricIndex
from pytest_llmeval.core.observation import Sums
from pytest_llmeval.core.results import PASS_RATE, IntervalMethod, MetricValue
from pytest_llmeval.scoring.intervals import binary_interval, delta_interval, partial_interval, value_interval
from pytest_llmeval.scoring.mergeable import Statistics, label_formula
from pytest_llmeval.scoring.table import OUTCOME, present

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray

_INTERVAL_CASES = 2


def merged_values(
    label: str,
    evaluator: Evaluator,
    statistics: Statistics,
    names: Sequence[str],
    confidence: float | None,
    missing: int = 0,
) -> dict[str, tuple[MetricValue, IntervalMethod | None]]:
    """Return an evaluator's metrics, each with how its interval was computed.

    Args:
        label: The evaluator's name in the suite.
        evaluator: Has the formula.
        statistics: Of the cases.
        names: Of all counts that the evaluator has in the whole suite, those of `statistics` among them.
        confidence: Of the intervals; ``None`` leaves them out.
        missing: Cases that did not run, which are not in `statistics`' errors.
    """
    import numpy as np

    formula = label_formula(label, evaluator, names)
    sums = statistics.summed(label, evaluator, names)
    index = MetricIndex.of({label: evaluator})

    @cache
    def resampled() -> "Mapping[str, FloatArray]":
        return statistics.resampled(formula, names)

    @cache
    def deviations() -> Mapping[str, float]:
        with np.errstate(all="ignore"):
            return sums.deviations(formula, names)

    totals = {each: np.array([sums.totals.get(each, 0.0)]) for each in names}
    rests = {index.full_name(label, name): each for name, each in evaluator.basis(Sums(totals, 1)).items()}

    def bounds(
        name: str, metric: Metric, value: float, units: int, level: float
    ) -> tuple[tuple[float, float] | None, IntervalMethod]:
        if name in rests:
            units = min(units, int(rests[name].cases))
            if units < _INTERVAL_CASES:
                return None, "delta"
            if statistics.moments is None:
                return partial_interval(resampled()[name], rests[name].floor, value, units, metric, level), "bootstrap"
            return delta_interval(
                math.hypot(deviations()[name], rests[name].floor), value, units, metric, level
            ), "delta"
        scored = sums.scored.get(name, 0)
        if scored and sums.binary[name] == scored:
            found = binary_interval(value, int(sums.scores[name]), scored, units, metric, level)
            if found is not None:
                return found, "wilson"
        if statistics.moments is None:
            return value_interval(resampled()[name], value, units, metric, level), "bootstrap"
        return delta_interval(deviations()[name], value, units, metric, level), "delta"

    out: dict[str, tuple[MetricValue, IntervalMethod | None]] = {}
    for name, column in formula(np.array([[sums.totals.get(each, 0.0) for each in names]])).items():
        owned = index.find(name)
        metric = Metric(PASS_RATE) if owned is None else owned.metric
        measured = sums.cases - sums.absent - sums.unjudged.get(name, 0)
        basis = rests.get(name)
        value = present(column[0]) if measured and not (basis and basis.fault) else None
        interval, method = None, None
        if value is not None and confidence is not None and measured >= _INTERVAL_CASES:
            interval, method = bounds(name, metric.over(measured), value, measured, confidence)
        scored = sums.scored.get(name, 0)
        errored = sums.failed.get(name, 0) + (0 if label == OUTCOME else sums.unmeasured - missing)
        out[name] = (
            MetricValue(
                value=value,
                mean=sums.scores[name] / scored if scored else None,
                low=interval[0] if interval else None,
                high=interval[1] if interval else None,
                scored=scored,
                undefined=sums.cases - scored - errored - missing,
                errored=errored,
                missing=missing,
                signature=metric.signature,
                reason=(basis.fault or basis.note) if basis else "",
            ),
            method if interval else None,
        )
    return out

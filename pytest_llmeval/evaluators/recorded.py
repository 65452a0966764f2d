"""Evaluator ``recorded``: scores that another program has computed."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.evaluator import Evaluator, Metric
from pytest_llmeval.core.observation import Observation

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

RUNS = "runs"
"""The key of a prediction that holds, for each run of the case, metric to score."""
ERROR, ABSTAINED = "error", "abstained"
"""Keys of an object in place of a score, with the reason."""

_FORM = f"expected the cases of a source with format results, with {RUNS}"


@dataclass(frozen=True)
class RecordedScores(Evaluator):
    """The mean over cases of scores that another program has computed, such as those of a source ``results``.

    A case that ran several times has the mean of its runs, and counts once. An error in one of them is an error of the
    case: it never counts as a score.

    Attributes:
        metrics: Names of the metrics.
        lower_is_better: Metrics for which lower is better.
        ranges: Metric to its smallest and largest value; without it, a metric has no bounds.
        signatures: Metric to how it is computed.
    """

    name = "recorded"

    metrics: tuple[str, ...] = ()
    lower_is_better: frozenset[str] = field(default=frozenset(), compare=False)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict, compare=False)
    signatures: Mapping[str, str] = field(default_factory=dict, compare=False)

    def describe(self) -> Sequence[Metric]:
        """Return the metrics."""
        return [self._metric(name) for name in self.metrics]

    def _metric(self, name: str) -> Metric:
        low, high = self.ranges.get(name, (None, None))
        return Metric(name, name not in self.lower_is_better, low, high, self.signatures.get(name, ""), averaged=True)

    def check(self, case: Case) -> Iterable[str]:
        """Yield a fault if no metric is named: it would measure nothing."""
        del case
        if not self.metrics:
            yield "found no metrics, expected their names: recorded: {metrics: [accuracy]}"

    def measure(self, case: Case) -> Observation:
        """Return the mean of the runs that have a score; an error in one of them is one of the case."""
        runs = case.prediction.get(RUNS) if isinstance(case.prediction, Mapping) else None
        if not isinstance(runs, list) or not runs or not all(isinstance(each, Mapping) for each in runs):
            return Observation({}, malformed=f"found no recorded scores, {_FORM}")
        counts: dict[str, float] = {}
        undefined: dict[str, str] = {}
        errored: dict[str, str] = {}
        abstained = []
        for name in self.metrics:
            values = [each[name] for each in runs if each.get(name) is not None]
            scores = [each for each in values if not isinstance(each, Mapping)]
            reasons = {key: str(why) for each in values if isinstance(each, Mapping) for key, why in each.items()}
            if ERROR in reasons:
                errored[name] = reasons[ERROR]
            elif scores:
                counts |= {f"sum {name}": math.fsum(scores) / len(scores), f"cases {name}": 1}
            else:
                undefined[name] = reasons.get(ABSTAINED, "no result of this metric")
                abstained += [name] if ABSTAINED in reasons else []
        return Observation(counts, undefined=undefined, errored=errored, abstained=tuple(abstained))

    def summarize(self, sums: "Sums") -> "Mapping[str, FloatArray]":
        """Return the means."""
        return {name: sums[f"sum {name}"] / sums[f"cases {name}"] for name in self.metrics}

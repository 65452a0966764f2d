"""Error analysis: which cases went wrong in which way, as each evaluator names the ways."""

__all__ = ("ErrorBucket", "FilledBucket", "fill_buckets")

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_llmeval.numbers import limit

if TYPE_CHECKING:
    from pytest_llmeval.evaluator import Evaluator
    from pytest_llmeval.results import CaseResult

_SLACK = 1e-12


@dataclass(frozen=True, slots=True)
class ErrorBucket:
    """A way in which cases go wrong: a metric of the case lies outside its limits.

    Attributes:
        name: Such as ``low_evidence_f1``.
        metric: The evaluator's name for the metric.
        below: Cases below this value are in the bucket; ``None`` for no such limit.
        above: Cases above this value are.
    """

    name: str
    metric: str
    below: float | None = None
    above: float | None = None

    def holds(self, score: float | None) -> bool:
        """Return whether a score belongs into the bucket; one that does not exist belongs into none."""
        if score is None:
            return False
        return (self.below is not None and score < self.below - _SLACK) or (
            self.above is not None and score > self.above + _SLACK
        )

    @property
    def limit(self) -> str:
        """The limits as people write them, such as ``< 0.3``."""
        sides = (("<", self.below), (">", self.above))
        return " or ".join(f"{sign} {limit(value)}" for sign, value in sides if value is not None)


@dataclass(frozen=True, slots=True)
class FilledBucket:
    """The cases of a suite that went wrong in one way.

    Attributes:
        bucket: The way; its metric has the name that the suite gives it.
        evaluator: Label of the evaluator that names it.
        cases: In the order of the suite.
    """

    bucket: ErrorBucket
    evaluator: str
    cases: Sequence["CaseResult"]


def fill_buckets(evaluators: "Mapping[str, Evaluator]", cases: "Sequence[CaseResult]") -> list[FilledBucket]:
    """Sort cases into the buckets that evaluators name, in their order; a case may be in several.

    Args:
        evaluators: Label to evaluator, as in a suite.
        cases: The scored cases.
    """
    from pytest_llmeval.table import metric_prefix

    filled = []
    for label, evaluator in evaluators.items():
        for each in evaluator.error_buckets():
            metric = metric_prefix(label, evaluator) + each.metric
            named = ErrorBucket(each.name, metric, each.below, each.above)
            filled.append(FilledBucket(named, label, [case for case in cases if each.holds(case.metrics.get(metric))]))
    return filled

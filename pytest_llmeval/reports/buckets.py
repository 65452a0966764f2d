"""Error analysis: the cases in each bucket that evaluators define."""

__all__ = ("FilledBucket", "fill_buckets")

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_llmeval.core.evaluator import ErrorBucket

if TYPE_CHECKING:
    from pytest_llmeval.core.metrics import MetricIndex
    from pytest_llmeval.core.results import CaseResult


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


def fill_buckets(metrics: "MetricIndex", cases: "Sequence[CaseResult]") -> list[FilledBucket]:
    """Sort cases into the buckets that evaluators name, in their order; a case may be in several.

    Args:
        metrics: Of the suite.
        cases: The scored cases.
    """
    filled = []
    for label, evaluator in metrics.evaluators.items():
        for each in evaluator.error_buckets():
            metric = metrics.full_name(label, each.metric)
            named = ErrorBucket(each.name, metric, each.below, each.above)
            filled.append(FilledBucket(named, label, [case for case in cases if each.holds(case.metrics.get(metric))]))
    return filled

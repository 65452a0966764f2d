"""Error analysis: the cases in each bucket that evaluators define."""

__all__ = ("FilledBucket", "fill_buckets")

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import structs

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
        general: Whether it is that of an evaluator that names none; only the error analysis has it.
    """

    bucket: ErrorBucket
    evaluator: str
    cases: Sequence["CaseResult"]
    general: bool = False


def fill_buckets(metrics: "MetricIndex", cases: "Sequence[CaseResult]") -> list[FilledBucket]:
    """Sort cases into the buckets that evaluators name, in their order; a case may be in several.

    An evaluator that names none has one with the cases that its first metric finds less than perfect.

    Args:
        metrics: Of the suite.
        cases: The scored cases.
    """
    filled = []
    for label, evaluator in metrics.evaluators.items():
        own = evaluator.error_buckets()
        for each in own or _imperfect(metrics, label):
            named = structs.replace(each, metric=metrics.full_name(label, each.metric))
            held = [case for case in cases if each.holds(case.metrics.get(named.metric), case.details.get(label, {}))]
            filled.append(FilledBucket(named, label, held, not own))
    return filled


def _imperfect(metrics: "MetricIndex", label: str) -> "Iterator[ErrorBucket]":
    """Yield the bucket of an evaluator that names none: its first metric with a best value is below that."""
    for each in metrics.declared[label]:
        metric = each.metric
        best = metric.high if metric.higher_is_better else metric.low
        if best is not None and "[" not in metric.name:
            below, above = (best, None) if metric.higher_is_better else (None, best)
            yield ErrorBucket(f"imperfect_{metric.name}", metric.name, below, above)
            return

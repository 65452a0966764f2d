"""The metrics of a suite by name, each with its evaluator and declaration."""

__all__ = ("MetricIndex", "OwnedMetric")

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from pytest_llmeval.core.evaluator import Evaluator, Metric


class OwnedMetric(NamedTuple):
    """A metric that a suite reports.

    Attributes:
        name: Its name in the suite; of a family as declared, such as ``draft.f1[label]``.
        label: The evaluator's name in the suite.
        evaluator: The evaluator.
        metric: Its declaration, with the evaluator's own name for it, its direction, range and signature.
    """

    name: str
    label: str
    evaluator: Evaluator
    metric: Metric


class MetricIndex(Struct, frozen=True, dict=True):
    """The metrics of some evaluators. Asks each evaluator once what it reports.

    Where a suite renames an evaluator, its metrics have the new name before their own: ``draft.f1``.

    Attributes:
        evaluators: Label to evaluator.
        declared: Label to the metrics of the evaluator, in its order.

    Example:
        >>> from pytest_llmeval import get_evaluator
        >>> metrics = MetricIndex.of({"text": get_evaluator("text"), "draft": get_evaluator("classification")})
        >>> metrics.full_name("text", "f1"), metrics.full_name("draft", "f1[joy]")
        ('f1', 'draft.f1[joy]')
        >>> found = metrics.find("draft.f1[joy]")
        >>> found.label, found.metric.name, found.metric.higher_is_better
        ('draft', 'f1[label]', True)
    """

    evaluators: Mapping[str, Evaluator]
    declared: Mapping[str, Sequence[OwnedMetric]]

    @classmethod
    def of(cls, evaluators: "Mapping[str, Evaluator] | MetricIndex") -> "MetricIndex":
        """Return the index of evaluators by label; one that exists already as it is."""
        if isinstance(evaluators, MetricIndex):
            return evaluators
        return cls(evaluators, {label: _declared(label, evaluator) for label, evaluator in evaluators.items()})

    def extended(self, evaluators: "Mapping[str, Evaluator] | MetricIndex") -> "MetricIndex":
        """Return an index of more evaluators."""
        more = MetricIndex.of(evaluators)
        return MetricIndex({**self.evaluators, **more.evaluators}, {**self.declared, **more.declared})

    def full_name(self, label: str, name: str) -> str:
        """Return the name in the suite of what an evaluator calls `name`."""
        return _prefix(label, self.evaluators[label]) + name

    def find(self, name: str) -> OwnedMetric | None:
        """Return the metric of a name; of a member of a family, such as ``f1[joy]``, the declaration of the family."""
        if exact := self._by_name.get(name):
            return exact
        if not name.endswith("]"):
            return None
        return next((each for family, each in self._families.items() if name.startswith(family)), None)

    def lower_is_better(self, name: str) -> bool:
        """Return whether less of a metric is better; not so for a name that no evaluator reports."""
        found = self.find(name)
        return found is not None and not found.metric.higher_is_better

    def ranges(self, names: Iterable[str]) -> dict[str, tuple[float, float]]:
        """Return the smallest and the largest value of metrics that have both, whatever cases there are."""
        found = {name: owned.metric for name in names if (owned := self.find(name)) is not None}
        return {
            name: (each.low, each.high)
            for name, each in found.items()
            if each.low is not None and each.high is not None and each.per_case is None
        }

    @cached_property
    def _by_name(self) -> Mapping[str, OwnedMetric]:
        return {each.name: each for declared in self.declared.values() for each in declared}

    @cached_property
    def _families(self) -> Mapping[str, OwnedMetric]:
        families = (each for each in self._by_name.values() if "[" in each.metric.name)
        return {self.full_name(each.label, each.metric.family): each for each in families}


def _prefix(label: str, evaluator: Evaluator) -> str:
    return "" if label == evaluator.name else f"{label}."


def _declared(label: str, evaluator: Evaluator) -> list[OwnedMetric]:
    prefix = _prefix(label, evaluator)
    return [OwnedMetric(prefix + metric.name, label, evaluator, metric) for metric in evaluator.describe()]

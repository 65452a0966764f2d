"""The index of metrics: who owns a name, how it is written in a suite, which direction is better."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_llmeval import Case, Evaluator, Metric, Observation, Sums, get_evaluator
from pytest_llmeval.core import MetricIndex

INDEX = MetricIndex.from_evaluators({"text": get_evaluator("text"), "labels": get_evaluator("classification")})


@dataclass(frozen=True)
class Errors(Evaluator):
    name = "errors"

    def describe(self) -> Sequence[Metric]:
        return [Metric("rate", higher_is_better=False), Metric("rate[kind]", higher_is_better=False), Metric("seen")]

    def measure(self, case: Case) -> Observation:
        return Observation({case.id: 1})

    def summarize(self, sums: Sums) -> Mapping[str, Any]:
        return sums


@pytest.mark.parametrize(
    ("name", "label", "declared"),
    [
        ("f1", "text", "f1"),
        ("labels.accuracy", "labels", "accuracy"),
        ("labels.f1[joy]", "labels", "f1[label]"),
        ("labels.f1[label]", "labels", "f1[label]"),
        ("labels.f1[f1 [x]]", "labels", "f1[label]"),
    ],
)
def test_the_owner_of_a_metric_is_found_also_for_renamed_evaluators_and_families(
    name: str, label: str, declared: str
) -> None:
    found = INDEX.find(name)
    assert found is not None
    assert (found.label, found.metric.name) == (label, declared)
    assert found.evaluator is INDEX.evaluators[label]
    assert found.name == INDEX.full_name(label, declared)


@pytest.mark.parametrize(
    "name", ["unknown", "accuracy", "labels.f1", "labels.f1[joy", "f1[joy]", "labels.accuracy[joy]"]
)
def test_what_nobody_reports_has_no_owner(name: str) -> None:
    assert INDEX.find(name) is None


def test_the_label_of_a_renamed_evaluator_may_hold_brackets() -> None:
    index = MetricIndex.from_evaluators({"a[b]": get_evaluator("classification")})
    assert index.full_name("a[b]", "f1[joy]") == "a[b].f1[joy]"
    found = index.find("a[b].f1[joy]")
    assert found is not None
    assert found.metric.name == "f1[label]"


def test_a_member_that_is_declared_by_itself_is_none_of_the_family() -> None:
    @dataclass(frozen=True)
    class Own(Errors):
        def describe(self) -> Sequence[Metric]:
            return [Metric("rate[kind]", signature="family"), Metric("rate[late]", signature="own")]

    index = MetricIndex.from_evaluators({"errors": Own()})
    signatures = [owned.metric.signature for name in ("rate[late]", "rate[x]") if (owned := index.find(name))]
    assert signatures[0] == "own"


def test_lower_is_better_where_an_evaluator_says_so() -> None:
    index = MetricIndex.from_evaluators({"e": Errors()})
    names = ("e.rate", "e.rate[late]", "e.seen", "rate", "unknown")
    assert [index.lower_is_better(name) for name in names] == [True, True, False, False, False]


def test_metrics_are_listed_by_evaluator_in_the_order_of_declaration() -> None:
    index = INDEX.extended({"e": Errors()})
    assert list(index.declared) == ["text", "labels", "e"]
    assert [each.name for each in index.declared["e"]] == ["e.rate", "e.rate[kind]", "e.seen"]
    assert index.declared["text"] is INDEX.declared["text"]


def test_an_index_is_not_made_of_an_index_again() -> None:
    assert MetricIndex.from_evaluators(INDEX) is INDEX

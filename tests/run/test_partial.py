"""Results of parts of the cases add up to the result of all, to the last bit."""

import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from pytest_llmeval import (
    Case,
    Evaluator,
    EvaluatorError,
    LlmevalError,
    Metric,
    MetricValue,
    Observation,
    PartialResult,
    Result,
    Sums,
    get_evaluator,
    score,
)
from pytest_llmeval.core import FloatArray
from pytest_llmeval.numbers._mergeable import FEW, Statistics, label_formula

WORDS = ["the", "fox", "sees", "a", "red", "hen", "near", "its", "old", "barn"]
TEXT = get_evaluator("text", metrics=["exact_match", "f1", "rouge1"])
LABELS = get_evaluator("classification")
F1 = get_evaluator("text", metrics=["f1"])
LONG = get_evaluator("text", metrics=["f1", "rouge1"])


def text_cases(number: int, longest: int = 6) -> list[Case]:
    """Return cases with right, wrong and malformed answers, some without ground truth, some without a label."""
    random = Random(number)

    def words() -> str:
        return " ".join(random.choices(WORDS, k=random.randint(1, longest)))

    cases = []
    for each in range(number):
        expected: Any = None if each % 31 == 0 else {"an": "object"} if each % 43 == 0 else words()
        answer: Any = 7 if each % 37 == 0 else expected if each % 5 == 0 else words()
        cases.append(Case(str(each), None, expected, answer, {"kind": "xyz"[each % 3]} if each % 7 else {}))
    return cases


def label_cases(number: int) -> list[Case]:
    random = Random(number)
    return [
        Case(str(each), None, random.choice("abc"), random.choice("abcd"), {"kind": random.choice("xy")})
        for each in range(number)
    ]


def merged(evaluator: Evaluator, cases: Sequence[Case], cuts: Sequence[int]) -> PartialResult:
    first, *rest = (
        score(evaluator, cases[start:end], group_by=["kind"], partial=True)
        for start, end in pairwise([0, *cuts, len(cases)])
    )
    for each in rest:
        first = each + first
    return first


def exact(metrics: Mapping[str, MetricValue]) -> dict[str, tuple[Any, ...]]:
    """Return all of metrics but their intervals, in order."""
    return {
        name: (each.value, each.mean, each.scored, each.undefined, each.errored, each.missing, each.signature)
        for name, each in metrics.items()
    }


def shown(result: Result) -> list[Any]:
    groups = {
        (key, name): (each.cases, exact({**each.metrics, "": each.pass_rate}))
        for key, some in result.groups.items()
        for name, each in some.items()
    }
    return [list(result.metrics), exact({**result.metrics, "": result.pass_rate}), list(groups), groups]


@pytest.mark.parametrize(
    ("evaluator", "cases", "method"),
    [
        (TEXT, text_cases(400), "bootstrap"),
        (TEXT, text_cases(1_000, longest=40), "delta"),
        (LABELS, label_cases(500), "bootstrap"),
    ],
)
def test_parts_add_up_to_the_value_mean_counts_and_groups_of_all_cases(
    evaluator: Evaluator, cases: list[Case], method: str
) -> None:
    whole = score(evaluator, cases, group_by=["kind"], confidence=None)
    parts = [merged(evaluator, cases, cuts) for cuts in ([], [1, 150], [40, 41, 390])]
    assert [shown(part.result(confidence=None)) for part in parts] == [shown(whole)] * 3
    assert parts[0] == parts[1] == parts[2]
    assert method in parts[0].result().intervals.values()


@pytest.mark.parametrize("cases", [text_cases(60), text_cases(600, longest=40)])
def test_partial_results_survive_json_and_pickle(cases: list[Case]) -> None:
    part = merged(TEXT, cases, [])
    assert PartialResult.from_json(json.loads(json.dumps(part.to_json()))) == part
    assert pickle.loads(pickle.dumps(part)) == part


def test_memory_is_bounded_by_the_number_of_distinct_rows() -> None:
    few, many = (len(json.dumps(merged(TEXT, text_cases(number, 40), []).to_json())) for number in (FEW, 8 * FEW))
    assert many < few


def width(metric: MetricValue) -> float:
    assert metric.low is not None
    assert metric.high is not None
    return metric.high - metric.low


@pytest.mark.release
@pytest.mark.parametrize(
    ("evaluator", "longest"),
    [(F1, 6), (LONG, 40)],
)
def test_intervals_of_merged_statistics_are_as_wide_as_those_of_resampled_cases(
    evaluator: Evaluator, longest: int
) -> None:
    cases = text_cases(10_000, longest)
    found, expected = score(evaluator, cases, partial=True).result(), score(evaluator, cases)
    # 2,000 resamples of cases alone give widths that scatter by 2 %.
    for name, metric in expected.metrics.items():
        if metric.low is not None:
            assert width(found.metrics[name]) == pytest.approx(width(metric), rel=0.06), name


def test_resampled_rows_scatter_as_the_delta_method_says() -> None:
    part = Statistics.from_observations("text", F1, map(F1.measure, text_cases(5_000)[1:40]))
    formula = label_formula("text", F1, part.names)
    deviation = part.summed("text", F1).deviations(formula, part.names)["f1"]
    assert part.resampled(formula, part.names)["f1"].std() == pytest.approx(deviation, rel=0.02)


def test_a_share_of_cases_has_the_interval_of_score() -> None:
    cases = text_cases(2_500, longest=40)
    found, expected = score(TEXT, cases, partial=True).result(), score(TEXT, cases)
    assert found.intervals["exact_match"] == "wilson"
    assert found.metrics["exact_match"] == expected.metrics["exact_match"]
    assert found.pass_rate == expected.pass_rate


@dataclass(frozen=True)
class Ratio(Evaluator):
    """The prediction ``[sum, weight]``, whose weight varies; text is an error of the judge."""

    name = "ratio"

    def describe(self) -> Sequence[Metric]:
        return (Metric("ratio", low=None, high=None), Metric("weight", low=None, high=None))

    def measure(self, case: Case) -> Observation:
        if isinstance(case.prediction, str):
            return Observation({"weight": 1}, undefined={"ratio": "none"}, errored={"weight": case.prediction})
        total, weight = case.prediction
        return Observation({"total": total, "weight": weight})

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        return {"ratio": sums["total"] / sums["weight"], "weight": sums["weight"]}


def test_the_delta_method_gives_the_textbook_error_of_a_ratio() -> None:
    random = Random(5)
    pairs = [(random.gauss(3, 1), random.uniform(1, 2)) for _ in range(3_000)]
    result = score(Ratio(), [Case(str(n), prediction=pair) for n, pair in enumerate(pairs)], partial=True).result()
    ratio = sum(each[0] for each in pairs) / sum(each[1] for each in pairs)
    residual = sum((total - ratio * weight) ** 2 for total, weight in pairs)
    error = (residual * 3_000 / 2_999) ** 0.5 / sum(each[1] for each in pairs)
    assert result.intervals["ratio"] == "delta"
    assert width(result.metrics["ratio"]) == pytest.approx(2 * 1.96075 * error, rel=1e-5)


def test_metrics_that_single_cases_lack_are_counted_as_score_counts_them() -> None:
    predictions: list[Any] = ["judge failed", *([n, 1 + n / 7] for n in range(400)), "judge failed"]
    cases = [Case(str(n), prediction=each, labels={"kind": "all"}) for n, each in enumerate(predictions)]
    assert shown(merged(Ratio(), cases, [3]).result()) == shown(score(Ratio(), cases, group_by=["kind"]))
    assert shown(merged(Ratio(), cases[:9], [3]).result()) == shown(score(Ratio(), cases[:9], group_by=["kind"]))


def test_a_metric_on_which_all_of_many_rows_agree_leaves_room_for_unseen_cases() -> None:
    @dataclass(frozen=True)
    class Same(Ratio):
        def describe(self) -> Sequence[Metric]:
            return (Metric("ratio"), Metric("weight", low=None, high=None))

    cases = [Case(str(n), prediction=[n / 4, n / 2]) for n in range(1, 400)]
    found, expected = score(Same(), cases, partial=True).result(), score(Same(), cases)
    assert found.intervals["ratio"] == "delta"
    assert width(found.metrics["ratio"]) == pytest.approx(width(expected.metrics["ratio"]))


def test_results_of_other_evaluators_or_groups_are_not_added() -> None:
    cases = text_cases(4)
    mine = score(F1, cases, partial=True)
    with pytest.raises(LlmevalError, match="evaluators: found"):
        mine + score(TEXT, cases, partial=True)
    with pytest.raises(LlmevalError, match="group_by: found"):
        mine + score(F1, cases, ["kind"], partial=True)


def test_clusters_cannot_be_cut_into_parts() -> None:
    with pytest.raises(LlmevalError, match="a cluster may have cases in other parts"):
        score(F1, text_cases(4), cluster_by="kind", partial=True)


def test_data_of_another_evaluator_or_shape_are_refused() -> None:
    data = score(F1, text_cases(4), partial=True).to_json()
    with pytest.raises(LlmevalError, match=r"partial_result: found 9, expected 1"):
        PartialResult.from_json({**data, "partial_result": 9})
    with pytest.raises(LlmevalError, match="data that cannot be read"):
        PartialResult.from_json([data])  # type: ignore[arg-type] # as found in a file
    for damage in (
        {"cases": 3},
        {"missing": -1},
        {"missing": None},
        {"outcomes": {"rows": [[{"n": 10**400}, [], [], 4]]}},
    ):
        with pytest.raises(LlmevalError, match="data that cannot be read"):
            PartialResult.from_json({**data, "whole": {**data["whole"], **damage}})
    with pytest.raises(EvaluatorError, match="evaluators: text: options: found"):
        PartialResult.from_json(data, {"text": TEXT})


def test_an_evaluator_that_is_not_registered_is_given_to_the_reader() -> None:
    part = score(Ratio(), [Case("a", prediction=[1, 2])], partial=True)
    with pytest.raises(EvaluatorError, match="unknown evaluator ratio"):
        PartialResult.from_json(part.to_json())
    assert PartialResult.from_json(part.to_json(), {"ratio": Ratio()}) == part

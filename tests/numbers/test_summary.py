"""Metrics of suite, groups and cases: formulas over sums, and denominators that hide nothing."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from msgspec import structs
from strategies import SplitAverage, records

from pytest_llmeval import (
    Case,
    Evaluator,
    EvaluatorError,
    Metric,
    MetricValue,
    MissingDataError,
    MissingExtraError,
    Observation,
    Sums,
    get_evaluator,
    score,
)
from pytest_llmeval.core import CaseRecord, FloatArray, Reading
from pytest_llmeval.numbers import _resample as resample
from pytest_llmeval.numbers import _table as table
from pytest_llmeval.numbers import summarize
from pytest_llmeval.run._measuring import measure_each

SPLIT = SplitAverage()


def pair_cases(pairs: Iterable[Sequence[float] | None], kinds: str = "") -> list[Case]:
    labels = [{"kind": kind} for kind in kinds] or None
    return [
        Case(
            str(number),
            expected=None if pair is None else "yes",
            prediction=pair,
            labels=labels[number] if labels else {},
        )
        for number, pair in enumerate(pairs)
    ]


def counts(metric: MetricValue) -> tuple[int, int, int, int]:
    return metric.scored, metric.undefined, metric.errored, metric.missing


@dataclass(frozen=True)
class Scripted(Evaluator):
    """Does with each case what the script says at the place that its prediction names."""

    name = "scripted"
    columns: tuple[str, ...] = ("value",)

    def describe(self) -> Sequence[Metric]:
        return [Metric(name, signature=f"signed {name}") for name in self.columns]

    def measure(self, case: Case) -> Observation:
        scene = SCRIPT[case.prediction] if isinstance(case.prediction, int) else case.prediction
        if isinstance(scene, Exception):
            raise scene
        return scene  # type: ignore[no-any-return]  # a test may return something else on purpose

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        return {name: sums[name] for name in {*sums, *(each for each in self.columns if "[" not in each)}}


SCRIPT: list[Any] = []


def scripted(*scenes: Any) -> list[Case]:
    start = len(SCRIPT)
    SCRIPT.extend(scenes)
    return [Case(str(number), prediction=start + number) for number in range(len(scenes))]


def test_the_value_is_pooled_and_the_mean_is_over_cases() -> None:
    ratio = score(SPLIT, pair_cases([(1, 1), (0, 3)])).metrics["ratio"]
    assert ratio.value == 1 / 4
    assert ratio.mean == (1 / 1 + 0 / 3) / 2


def test_groups_partition_the_cases_and_the_unlabelled_have_one_of_their_own() -> None:
    cases = [*pair_cases([(1, 1), (2, 1), (9, 1)], "bab"), Case("x", expected="yes", prediction=(5, 1))]
    groups = score(SPLIT, cases, group_by=["kind"]).groups["kind"]
    assert {name: (each.cases, each.metrics["ratio"].value) for name, each in groups.items()} == {
        "(none)": (1, 5.0),
        "a": (1, 2.0),
        "b": (2, 5.0),
    }
    assert list(groups) == ["(none)", "a", "b"]


MEASURED = {"split": Observation({"total": 2, "weight": 4})}
UNDEFINED = {"split": Observation({}, undefined={"ratio": "no gold", "sum": "no gold"})}


@pytest.mark.parametrize(
    ("record", "expected", "passed"),
    [
        (CaseRecord("x", observations=MEASURED), (1, 0, 0, 0), (1.0, 1)),
        (CaseRecord("x", outcome="failed", observations=MEASURED), (1, 0, 0, 0), (0.0, 1)),
        (CaseRecord("x", observations=UNDEFINED), (0, 1, 0, 0), (1.0, 1)),
        (CaseRecord("x", outcome="errored", errors={"split": "no"}), (0, 0, 1, 0), (0.0, 1)),
        (CaseRecord("x", outcome="errored", errors={"": "no prediction"}), (0, 0, 1, 0), (0.0, 1)),
        (CaseRecord("x", outcome="errored", errors={"other": "no"}), (0, 0, 1, 0), (0.0, 1)),
        (CaseRecord("x", outcome="skipped"), (0, 0, 0, 1), (None, 0)),
        (CaseRecord("x", outcome="not_run"), (0, 0, 0, 1), (None, 0)),
        (CaseRecord("x", outcome="skipped", observations=MEASURED), (1, 0, 0, 0), (None, 0)),
    ],
)
def test_each_kind_of_record_lands_in_one_denominator(
    record: CaseRecord, expected: tuple[int, ...], passed: tuple[float | None, int]
) -> None:
    result = summarize({"split": SPLIT}, [record])
    assert counts(result.metrics["ratio"]) == expected
    assert counts(result.metrics["sum"]) == expected
    assert (result.pass_rate.value, result.pass_rate.scored) == passed


@pytest.mark.parametrize("observations", [{}, UNDEFINED])
def test_a_formula_that_gives_zero_for_nothing_does_not_make_a_score(observations: Mapping[str, Observation]) -> None:
    result = summarize({"split": SPLIT}, [CaseRecord("x", observations=observations, errors={"": "no"})])
    assert result.metrics["sum"].value is None
    assert result.metrics["sum"].mean is None
    assert math.isnan(result.case_scores["sum"][0])


def test_what_an_observation_calls_undefined_is_no_score_whatever_the_formula_gives() -> None:
    observed = Observation({"sure": 1}, undefined={"unsure": "no gold"})
    evaluator = Scripted(columns=("sure", "unsure"))
    result = score(evaluator, scripted(observed, Observation({"sure": 2, "unsure": 5})))
    assert result.cases[0].metrics == evaluator.scores(observed) == {"sure": 1.0, "unsure": None}
    assert counts(result.metrics["unsure"]) == (1, 1, 0, 0)
    assert result.metrics["unsure"].mean == 5.0


def test_a_metric_that_no_single_case_has_can_exist_over_all() -> None:
    kappa = {"classification": get_evaluator("classification")}
    cases = [Case("1", expected="a", prediction="a"), Case("2", expected="b", prediction="b")]
    metric = score(kappa["classification"], cases).metrics["cohen_kappa"]
    assert (metric.value, metric.mean) == (1.0, None)
    assert counts(metric) == (0, 2, 0, 0)


def test_counts_add_up_and_reasons_reach_the_details() -> None:
    some = [
        CaseRecord("a", observations=MEASURED),
        CaseRecord("b", observations=UNDEFINED),
        CaseRecord("c", outcome="errored", errors={"": "target fell over"}),
        CaseRecord("d", outcome="not_run", reason="not selected"),
    ]
    result = summarize({"split": SPLIT}, some)
    assert counts(result.metrics["ratio"]) == (1, 1, 1, 1)
    assert result.cases[1].details == {"undefined": {"ratio": "no gold", "sum": "no gold"}}
    assert result.cases[2].details == {"errors": {"prediction": "target fell over"}}
    assert [case.metrics for case in result.cases] == [
        {"ratio": 0.5, "sum": 2.0},
        {"ratio": None, "sum": None},
        {},
        {},
    ]
    assert result.cases[3].reason == "not selected"


def test_without_any_case_nothing_has_a_value() -> None:
    result = summarize({"split": SPLIT}, [])
    assert result.metrics["sum"].value is None
    assert counts(result.metrics["ratio"]) == (0, 0, 0, 0)
    assert result.pass_rate.value is None


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_formula_that_is_not_finite_gives_no_value(wrong: float) -> None:
    @dataclass(frozen=True)
    class Wrong(Scripted):
        def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
            return {"value": np.full(sums.length, wrong)}

    result = score(Wrong(), scripted(Observation({"n": 1}), Observation({"n": 1})))
    value = result.metrics["value"]
    assert (value.value, value.mean, value.low, value.high) == (None, None, None, None)
    assert counts(value) == (0, 2, 0, 0)
    assert result.cases[0].metrics == {"value": None}
    assert Wrong().scores(Observation({"n": 1})) == {"value": None}


def test_a_metric_that_is_not_declared_is_an_error_that_names_it() -> None:
    with pytest.raises(EvaluatorError, match=r"'scripted' returned metrics that describe\(\) does not list: 'other'"):
        score(Scripted(), scripted(Observation({"other": 1})))


def test_a_formula_that_raises_is_an_error_that_names_the_evaluator() -> None:
    @dataclass(frozen=True)
    class Broken(Scripted):
        def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
            raise KeyError(sums.length)

    with pytest.raises(EvaluatorError, match="evaluator 'scripted': summarize failed: KeyError: 1"):
        score(Broken(), scripted(Observation({"n": 1})))


@pytest.mark.parametrize("alias", ["other", "x[1]", "ü"])
def test_an_alias_stands_before_every_metric_of_its_evaluator(alias: str) -> None:
    undefined = Observation({}, undefined={"ratio": "no gold"})
    result = summarize({"split": SPLIT, alias: SPLIT}, [CaseRecord("a", observations={**MEASURED, alias: undefined})])
    assert list(result.metrics) == ["ratio", "sum", f"{alias}.ratio", f"{alias}.sum"]
    assert result.cases[0].details == {"undefined": {f"{alias}.ratio": "no gold"}}
    assert result.cases[0].metrics[f"{alias}.ratio"] is None


def test_members_of_a_family_are_sorted_even_one_called_label() -> None:
    evaluator = Scripted(columns=("n", "f1[label]", "last"))
    observed = Observation({"last": 1, "f1[sad]": 1, "f1[label]": 1, "n": 1, "f1[joy]": 1})
    result = score(evaluator, scripted(observed))
    assert list(result.metrics) == ["n", "f1[joy]", "f1[label]", "f1[sad]", "last"]
    assert result.metrics["f1[joy]"].signature == "signed f1[label]"


def test_a_family_declared_member_by_member_keeps_the_declared_order() -> None:
    evaluator = Scripted(columns=("f1[b]", "f1[a]"))
    assert list(score(evaluator, scripted(Observation({"f1[a]": 1, "f1[b]": 1}))).metrics) == ["f1[b]", "f1[a]"]


def test_labels_seen_in_one_case_only_are_metrics_of_all() -> None:
    evaluator = Scripted(columns=("f1[label]",))
    result = score(evaluator, scripted(Observation({"f1[joy]": 1}), Observation({"f1[等]": 2})))
    assert {name: metric.value for name, metric in result.metrics.items()} == {"f1[joy]": 1.0, "f1[等]": 2.0}


def test_equal_data_give_equal_intervals() -> None:
    cases = pair_cases([(number % 2, 1) for number in range(40)])
    assert score(SPLIT, cases).metrics == score(SPLIT, cases).metrics


@given(records(max_size=20))
def test_an_interval_of_a_mean_holds_its_value_or_does_not_exist(some: list[CaseRecord]) -> None:
    def weighed(record: CaseRecord) -> CaseRecord:
        if "split" not in record.observations or not record.observations["split"].counts:
            return record
        observation = Observation({"total": len(record.id) + int(record.id), "weight": 1})
        return structs.replace(record, observations={"split": observation})

    metric = summarize({"split": SPLIT}, list(map(weighed, some))).metrics["ratio"]
    if metric.scored < 2:
        assert (metric.low, metric.high) == (None, None)
    elif metric.low is not None:
        assert metric.value is not None
        assert metric.high is not None
        assert metric.low <= metric.value <= metric.high


@pytest.mark.parametrize(
    ("pairs", "exists"), [([(1, 1)], False), ([(1, 1), None, None], False), ([(1, 1), (2, 1)], True)]
)
def test_an_interval_needs_two_scored_cases(pairs: list[tuple[int, int] | None], exists: bool) -> None:
    metric = score(SPLIT, pair_cases(pairs)).metrics["ratio"]
    assert metric.value is not None
    assert (metric.low is not None, metric.high is not None) == (exists, exists)


def test_resamples_of_groups_of_one_size_are_drawn_once_whatever_their_names() -> None:
    resample._kept_weights.cache_clear()
    cases = pair_cases([(1, 3), (2, 3), (5, 6), (1, 7), (3, 5), (0, 2), (4, 9)] * 2, "abcd" * 3 + "ac")
    groups = score(SPLIT, cases, ["kind"]).groups["kind"]
    assert [(name, each.cases) for name, each in groups.items()] == [("a", 4), ("b", 3), ("c", 4), ("d", 3)]
    assert resample._kept_weights.cache_info().misses == len({3, 4, len(cases)})


def test_without_confidence_there_are_no_intervals() -> None:
    result = score(SPLIT, pair_cases([(1, 1), (2, 1)], "ab"), group_by=["kind"], confidence=None)
    every = [result.metrics["ratio"], result.pass_rate, result.groups["kind"]["a"].metrics["ratio"]]
    assert [(each.low, each.high) for each in every] == [(None, None)] * 3


def test_more_confidence_gives_a_wider_interval() -> None:
    cases = pair_cases([(number, 1) for number in range(30)])
    narrow, wide = (score(SPLIT, cases, confidence=each).metrics["ratio"] for each in (0.5, 0.99))
    assert narrow.low is not None
    assert narrow.high is not None
    assert wide.low is not None
    assert wide.high is not None
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (ValueError("bad case"), "ValueError: bad case"),
        (EvaluatorError("wrong gold"), "EvaluatorError: wrong gold"),
        (None, "EvaluatorError: measure returned NoneType, expected an Observation"),
        (Observation({"value": math.nan}), "EvaluatorError: found nan as count 'value', expected a finite number"),
    ],
)
def test_a_case_that_cannot_be_measured_is_errored_and_costs_no_other(wrong: Any, reason: str) -> None:
    result = score(Scripted(), scripted(Observation({"value": 1}), wrong, Observation({"value": 3})))
    assert counts(result.metrics["value"]) == (2, 0, 1, 0)
    assert result.metrics["value"].value == 4.0
    assert [case.outcome for case in result.cases] == ["passed", "errored", "passed"]
    told, _, place = (result.cases[1].reason or "").partition(" (tests/")
    assert (told, place.endswith("in measure)")) == (reason, isinstance(wrong, Exception))


@pytest.mark.parametrize("error", [MissingDataError("no WordNet"), MissingExtraError("the evaluator", "semantic")])
def test_what_is_not_installed_is_raised(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        score(Scripted(), scripted(Observation({"value": 1}), error))
    assert caught.value is error


def test_a_malformed_prediction_fails_its_case_and_is_scored() -> None:
    result = score(Scripted(), scripted(Observation({"value": 0}, malformed="found null, expected text")))
    assert (result.cases[0].outcome, result.cases[0].reason) == ("failed", "found null, expected text")
    assert counts(result.metrics["value"]) == (1, 0, 0, 0)
    assert result.pass_rate.value == 0.0


@dataclass(frozen=True)
class Batched(Scripted):
    batch: ClassVar[int] = 3
    lost: int = 0

    def measure_many(self, cases: Sequence[Case]) -> list[Observation]:
        return super().measure_many(cases)[self.lost :]


def test_an_error_in_a_batch_falls_back_to_single_cases() -> None:
    cases = scripted(*(Observation({"value": number}) for number in range(7)))
    cases[1] = cases[1].answered(RuntimeError("only me"))
    measured = measure_each(Batched(), cases, Reading())
    assert [type(each).__name__ for each in measured] == ["Observation", "RuntimeError", *["Observation"] * 5]


def test_a_batch_of_the_wrong_length_is_measured_case_by_case() -> None:
    cases = scripted(*(Observation({"value": number}) for number in range(5)))
    assert measure_each(Batched(lost=1), cases, Reading()) == SCRIPT[-len(cases) :]


def test_formulas_applied_to_some_rows_at_a_time_give_the_same_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = ["a", "b", "c", "d", "e"]
    cases = [Case(f"c{n}", None, labels[n % 5], labels[n * n % 5]) for n in range(23)]
    whole = score(get_evaluator("classification"), cases)
    monkeypatch.setattr(table, "_MOST_VALUES", 200)
    monkeypatch.setattr(table, "_MOST_KEPT", 30_000)
    parts = score(get_evaluator("classification"), cases)
    assert parts.metrics == whole.metrics
    assert parts.cases == whole.cases

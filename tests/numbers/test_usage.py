"""Usage: calls, tokens, money and seconds add up, and what is unknown is unknown rather than nothing."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import Case, EvaluatorError
from pytest_llmeval.core import CaseRecord, JudgeCall, TargetUsage, Totals
from pytest_llmeval.numbers import UsageEvaluator, UsageReport

FRESH = JudgeCall("a", True, 10, 5, 0.25, 2.0)
NO_TARGET_USAGE = {"target_tokens": None, "target_cost_usd": None, "cost_per_success_usd": None}
OF_TARGETS = {"target_latency_s", *NO_TARGET_USAGE}
STORED = JudgeCall("b", False, 100, 50, 2.5, 4.0)


def record(*calls: JudgeCall, target: tuple[float, ...] = ()) -> CaseRecord:
    return CaseRecord("c", calls=list(calls), target_seconds=list(target))


def figures(*calls: JudgeCall, target: tuple[float, ...] = ()) -> dict[str, float | None]:
    return dict(UsageEvaluator().scores(UsageEvaluator.observation_of(calls, target)))


def test_calls_of_this_run_cost_and_stored_ones_do_not_but_have_their_latency() -> None:
    assert figures(FRESH, STORED, FRESH, target=(1.0, 2.0)) == {
        "judge_calls": 2,
        "judge_tokens": 30,
        "total_cost_usd": 0.5,
        "judge_cost_usd": 0.5,
        "latency_s": pytest.approx(8 / 3),
        "target_latency_s": 1.5,
        **NO_TARGET_USAGE,
    }
    assert figures(STORED) == {
        "judge_calls": 0,
        "judge_tokens": 0,
        "total_cost_usd": 0,
        "judge_cost_usd": 0,
        "latency_s": 4.0,
        "target_latency_s": None,
        **NO_TARGET_USAGE,
    }


@pytest.mark.parametrize(
    ("call", "unknown"),
    [
        (FRESH._replace(input_tokens=None), {"judge_tokens"}),
        (FRESH._replace(output_tokens=None), {"judge_tokens"}),
        (FRESH._replace(cost_usd=None), {"judge_cost_usd", "total_cost_usd"}),
        (FRESH._replace(seconds=None), {"latency_s"}),
        (STORED._replace(input_tokens=None, cost_usd=None), set()),
    ],
)
def test_one_call_of_which_something_is_unknown_makes_the_sum_unknown(call: JudgeCall, unknown: set[str]) -> None:
    told = figures(call)
    assert {name for name, value in told.items() if value is None} == unknown | OF_TARGETS
    if call.fresh:
        total = figures(call, FRESH._replace(id="other"))
        assert {name for name, value in total.items() if value is None} - OF_TARGETS == unknown - {"latency_s"}


def test_where_nobody_was_asked_there_are_no_figures() -> None:
    assert set(figures().values()) == {None}
    assert UsageReport.from_records([record(), record()]) is None


def test_nobody_can_measure_a_case_for_what_it_cost() -> None:
    with pytest.raises(EvaluatorError, match="case 'c': calls are recorded, not measured"):
        UsageEvaluator().measure(Case("c"))


def test_a_call_that_questions_share_is_the_first_ones() -> None:
    again, other = FRESH._replace(fresh=False), FRESH._replace(id="d")
    records = [record(STORED, again), record(FRESH, FRESH), record(FRESH, other, other), record(again)]
    records = list(CaseRecord.claim_calls(records))
    fresh = [[call.fresh for call in each.calls] for each in records]
    assert fresh == [[False, False], [True, False], [False, True, False], [False]]


def test_a_report_has_sums_of_this_run_and_percentiles_of_all_calls() -> None:
    calls = [JudgeCall(str(number), number % 2 == 0, 1, 2, 0.125, float(number)) for number in range(5)]
    report = UsageReport.from_records([record(*calls[:2], target=(3.0,)), record(*calls[2:])])
    assert report is not None
    assert (report.verdicts, report.calls, report.input_tokens, report.output_tokens) == (5, 3, 3, 6)
    assert report.judge_cost_usd == 0.375
    assert report.latency_s == {"p50": 2.0, "p95": pytest.approx(3.8)}
    assert report.target_latency_s == {"p50": 3.0, "p95": 3.0}


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (FRESH._replace(input_tokens=None), (None, 5, 0.25)),
        (FRESH._replace(cost_usd=None), (10, 5, None)),
        (STORED._replace(input_tokens=None, cost_usd=None), (0, 0, 0.0)),
    ],
)
def test_a_report_says_none_where_a_part_is_unknown(
    call: JudgeCall, told: tuple[int | None, int | None, float | None]
) -> None:
    report = UsageReport.from_records([record(call)])
    assert report is not None
    assert (report.input_tokens, report.output_tokens, report.judge_cost_usd) == told


amounts = st.none() | st.integers(0, 10**6)
calls = st.lists(
    st.builds(
        JudgeCall,
        st.uuids().map(str),
        st.booleans(),
        amounts,
        amounts,
        st.none() | st.integers(0, 1000).map(lambda cents: cents / 8),
        st.none() | st.integers(0, 1000).map(float),
    ),
    max_size=12,
)


@given(calls, st.integers(0, 12))
def test_figures_are_the_same_however_calls_are_split_over_cases(made: list[JudgeCall], cut: int) -> None:
    whole = UsageEvaluator.observation_of(made, ())
    parts = Totals.add_up(
        [UsageEvaluator.observation_of(made[:cut], ()), UsageEvaluator.observation_of(made[cut:], ())]
    )
    assert {name: value for name, value in parts.items() if value} == {
        name: value for name, value in whole.counts.items() if value
    }
    report = UsageReport.from_records([record(*made[:cut]), record(*made[cut:])])
    told = UsageEvaluator().scores(whole)
    if report is None:
        assert set(told.values()) == {None}
    else:
        known = report.input_tokens is not None and report.output_tokens is not None
        assert told["judge_calls"] == report.calls
        assert told["judge_tokens"] == ((report.input_tokens or 0) + (report.output_tokens or 0) if known else None)
        assert (told["judge_cost_usd"] is None) == (report.judge_cost_usd is None)
        assert report.judge_cost_usd is None or math.isclose(told["judge_cost_usd"] or 0.0, report.judge_cost_usd)


def test_usage_of_targets_adds_up_over_predictions() -> None:
    usage = [TargetUsage(10, 5, 0.25), TargetUsage(1, 2, 0.5)]
    scores = UsageEvaluator().scores(UsageEvaluator.observation_of((), (), usage, successes=1))
    figures = ("target_tokens", "target_cost_usd", "cost_per_success_usd")
    assert [scores[name] for name in figures] == [9, 0.375, 0.75]
    twice = UsageReport.from_records([CaseRecord("a", target_usage=usage)])
    assert twice is not None
    assert (twice.target_tokens, twice.target_cost_usd) == (9, 0.375)
    report = UsageReport.from_records(
        [CaseRecord("a", target_usage=usage[:1]), CaseRecord("b", target_usage=usage[1:])]
    )
    assert report is not None
    assert (report.target_tokens, report.target_cost_usd) == (18, 0.75)


@pytest.mark.parametrize(
    ("other", "unknown"),
    [
        (TargetUsage(), {"target_tokens", "target_cost_usd", "cost_per_success_usd"}),
        (TargetUsage(10, None, 0.5), {"target_tokens"}),
        (TargetUsage(10, 5), {"target_cost_usd", "cost_per_success_usd"}),
    ],
)
def test_a_prediction_that_does_not_say_its_usage_makes_the_sum_unknown(other: TargetUsage, unknown: set[str]) -> None:
    scores = UsageEvaluator().scores(
        UsageEvaluator.observation_of((), (), [TargetUsage(10, 5, 0.25), other], successes=2)
    )
    assert {name for name in NO_TARGET_USAGE if scores[name] is None} == unknown

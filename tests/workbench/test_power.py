"""Planning: what cases and repeats find, and what is read from runs."""

import math

import numpy as np
import pytest

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.numbers import CaseStatistics, WatchedRun
from pytest_llmeval.workbench.plan._spread import Plan, ScoreSpread, measured_spread, pseudo_values, run_spread

SPREAD = ScoreSpread(between=0.01, within=0.09)


def test_the_detectable_drop_is_found_in_80_of_100_runs() -> None:
    plan = Plan(SPREAD, allowed=0.02)
    drop = plan.detectable(300, repeats=3)
    assert plan.chance(drop, 300, repeats=3) == pytest.approx(0.8)
    assert plan.chance(0.02, 300, repeats=3) == pytest.approx(0.025, abs=0.001)
    assert plan.cases(drop, repeats=3) == 300
    assert plan.repeats(drop, 300) == 3


def test_cases_lessen_all_spread_and_repeats_only_that_within_cases() -> None:
    plan = Plan(SPREAD)
    assert plan.detectable(400) == pytest.approx(plan.detectable(100) / 2, rel=0.02)
    assert plan.limit(100) < plan.detectable(100, repeats=1000) < plan.detectable(100, repeats=4) < plan.detectable(100)
    assert plan.repeats(plan.limit(100) * 0.999, 100) is None


def test_a_tolerated_drop_is_never_found() -> None:
    plan = Plan(SPREAD, allowed=0.05)
    assert plan.cases(0.05) is None
    assert plan.chance(0.05, 10**9) == pytest.approx(0.025, abs=1e-6)
    assert Plan(ScoreSpread(0.0)).chance(0.01, 10) == 1.0


def test_two_runs_show_what_is_between_cases_and_repeats_what_is_within() -> None:
    rng = np.random.default_rng(5)
    size, times = 20_000, 4
    level = rng.normal(0.6, 0.2, size)
    change = rng.normal(-0.05, 0.1, size)
    there = level + rng.normal(0, 0.3 / math.sqrt(times), size)
    here = level + change + rng.normal(0, 0.3 / math.sqrt(times), size)
    found = measured_spread(here, there, np.arange(size), within=0.09, repeats=(times, times))
    assert found.between == pytest.approx(0.01, rel=0.1)
    assert found.of_case(times) == pytest.approx(np.var(here - there, ddof=1))
    assert measured_spread(here, there, np.arange(size)).of_case(7) == pytest.approx(np.var(here - there, ddof=1))


def test_clusters_count_as_the_independent_cases_that_they_are_worth() -> None:
    scores = np.repeat(np.random.default_rng(3).random(50), 4)
    clusters = np.repeat(np.arange(50), 4)
    apart, together = run_spread(scores, np.arange(200)), run_spread(scores, clusters)
    deviation = math.sqrt(together.between / 2 / 200)
    assert deviation == pytest.approx(np.std(scores[::4], ddof=1) / math.sqrt(50))
    assert together.between == pytest.approx(4 * apart.between, rel=0.02)


def test_pseudo_values_are_scores_where_a_metric_is_their_mean_and_sum_to_it_where_it_is_pooled() -> None:
    answers = ["red", "blue", "red red", "red"]
    result = score(
        get_evaluator("text"), [Case(str(n), expected="red", prediction=each) for n, each in enumerate(answers)]
    )
    table = CaseStatistics.exact(result.records).table(result.evaluators)
    assert pseudo_values(table, "f1", np.arange(4)) == pytest.approx([1, 0, 2 / 3, 1])
    cases = [
        Case(str(n), expected=["a"] * (n % 3 + 1), prediction=["a" if n % 2 else "b"] * (n % 3 + 1)) for n in range(60)
    ]
    result = score(get_evaluator("classification"), cases, confidence=None)
    table = CaseStatistics.exact(result.records).table(result.evaluators)
    found = pseudo_values(table, "accuracy", np.arange(60))
    assert found.mean() == pytest.approx(result.metrics["accuracy"].value, abs=0.01)
    assert set(np.round(found, 6)) != set(np.round(table.scores["accuracy"], 6))


def test_what_a_gate_for_many_runs_finds_is_what_watched_histories_alarm_at() -> None:
    plan = Plan(ScoreSpread(1.0), runs=3)
    drop = plan.detectable(100)
    assert plan.chance(drop, 100) == pytest.approx(0.8, abs=0.002)
    assert plan.cases(drop) == 100
    assert plan.chance(0.0, 100) < 0.01
    rng = np.random.default_rng(8)
    noise = 0.1 * (rng.normal(size=(200, 12)) - rng.normal(size=(200, 1))) / math.sqrt(2)
    noise[:, 9:] += drop
    looks = [[WatchedRun(float(each), 0.1, 10**9) for each in history] for history in noise]
    seen = [[WatchedRun.weigh(history[:end], 0.0) for end in (10, 11, 12)] for history in looks]
    alarms = [any(each.evidence >= 20 and each.alone >= 1.96 for each in history) for history in seen]
    assert np.mean(alarms) == pytest.approx(0.8, abs=0.08)


def test_the_more_runs_have_a_drop_the_smaller_one_is_found() -> None:
    found = [Plan(ScoreSpread(1.0), runs=runs, allowed=0.02).detectable(100) for runs in (1, 3, 10)]
    assert found == sorted(found, reverse=True)
    assert found[0] > Plan(ScoreSpread(1.0), allowed=0.02).detectable(100) > found[2] > 0.02


def test_a_drop_that_is_impossible_is_never_found() -> None:
    plan = Plan(ScoreSpread(0.44), room=0.667)
    assert Plan(ScoreSpread(0.44)).detectable(6) == pytest.approx(0.99, abs=0.01)
    assert plan.detectable(6) is None
    assert Plan(ScoreSpread(0.44), room=0.667, reach=1.0).detectable(6) is None
    assert plan.chance(0.7, 600) == 0
    assert plan.cases(0.7) is None
    assert plan.detectable(60) is not None


def test_fewer_cases_than_a_sign_test_needs_find_nothing() -> None:
    plan = Plan(ScoreSpread(1e-6))
    assert plan.detectable(5) is None
    assert plan.chance(0.5, 5) == 0
    assert plan.detectable(6) is not None
    assert plan.cases(0.5) == 6
    clustered = Plan(ScoreSpread(1e-6), cluster=10)
    assert clustered.detectable(50) is None
    assert clustered.cases(0.5) == 60
    assert Plan(ScoreSpread(1e-6), tests=21).detectable(9) is None


def test_gates_beside_it_and_groups_cost_power() -> None:
    alone, beside = Plan(SPREAD), Plan(SPREAD, tests=20)
    small = Plan(SPREAD, share=0.25)
    found = [plan.detectable(400) for plan in (alone, beside, small)]
    assert found == sorted(found, key=lambda each: each or 0)
    assert found[2] == pytest.approx(2 * (found[0] or 0), rel=0.02)
    assert (beside.cases(0.05) or 0) > (alone.cases(0.05) or 0)
    assert small.cases(0.05) == pytest.approx(4 * (alone.cases(0.05) or 0), abs=4)
    assert beside.chance(0.03, 400) < alone.chance(0.03, 400)


def test_safety_needs_as_many_cases_as_could_show_a_drop() -> None:
    plan = Plan(ScoreSpread(1e-6), room=1.0, safe=True)
    assert plan.cases(0.02) == 183
    assert plan.detectable(60) == pytest.approx(1 - 0.025 ** (1 / 60))

"""Several runs as one: means of counts, and what becomes of cases that errored."""

import random
from typing import Any

import pytest
from builders import run

from pytest_llmeval import Case, Evaluator, Result, compare, get_evaluator, score
from pytest_llmeval.numbers import CaseStatistics


def pool(*results: Result) -> CaseStatistics:
    return CaseStatistics.pooled([CaseStatistics.from_records(result.records) for result in results])


def baseline(here: Result, *results: Result, name: str = "score", **how: Any) -> Any:
    return compare(here, pool(*results), **how).metrics[name]


def test_a_case_counts_with_the_mean_of_its_runs() -> None:
    found = baseline(run([1, 1, 1]), run([0, 1, 1]), run([0, 0, 1]), run([1, 1, 1]))
    assert (found.value, found.baseline, found.cases) == (1, pytest.approx(6 / 9), 3)
    found = baseline(run([1, 1, 1]), run([0, 1, 1]), run([0, 0, 1]), statistic="mean")
    assert found.baseline == pytest.approx(0.5)


@pytest.mark.parametrize("evaluator", [get_evaluator("text"), get_evaluator("classification", positive="grey")])
def test_the_pool_of_equal_runs_is_each_of_them(evaluator: Evaluator) -> None:
    rng = random.Random(3)
    cases = [Case(str(n), expected="grey", prediction=rng.choice(["grey", "blue", ""])) for n in range(30)]
    result = score(evaluator, cases)
    for name, each in compare(result, pool(result, result, result)).metrics.items():
        assert each.baseline == pytest.approx(each.value, abs=1e-12), name
        assert each.difference is None or each.p_value == 1, name


def test_a_case_that_errored_in_some_runs_has_the_mean_of_the_others() -> None:
    found = baseline(run([1, 1]), run(["error", 0]), run([0.5, 1]))
    assert (found.baseline, found.cases, found.notes[:1]) == (
        0.5,
        2,
        ("only 2 cases changed, too few to estimate how much the difference varies",),
    )
    found = baseline(run([1, 1]), run(["error", 0]), run(["error", 1]))
    assert (found.value, found.baseline, found.cases) == (1, 0.5, 1)
    assert "1 case left out, errored or not run" in found.notes


def test_a_case_without_a_value_in_some_runs_has_that_of_the_others() -> None:
    found = baseline(run([1, 1]), run([None, 0]), run([0.5, 1]))
    assert (found.baseline, found.cases) == (0.5, 2)


def test_the_pass_rate_of_a_pool_is_the_mean_of_the_runs() -> None:
    found = baseline(run([1, 1, 1, 1]), run([1, 1, 1, "error"]), run([1, 1, 1, 1]), name="pass_rate")
    assert (found.value, found.baseline) == (1, 7 / 8)

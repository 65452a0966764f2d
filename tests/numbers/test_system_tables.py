"""The table of systems: values, paired differences, Holm over the table, wins and losses."""

from collections.abc import Sequence

import pytest
from msgspec import structs

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.core import MetricIndex, Result, TargetUsage
from pytest_llmeval.numbers import SystemTable, compare, summarize
from pytest_llmeval.numbers._inference import holm

TEXT = get_evaluator("text", metrics=["exact_match", "f1"])
METRICS = MetricIndex.from_evaluators({"text": TEXT})


def answered(right: Sequence[int], cases: int = 40) -> Result:
    answers = [
        Case(str(number), expected="yes it is", prediction="yes it is" if number in right else "it was")
        for number in range(cases)
    ]
    return score(TEXT, answers)


RESULTS = {"large": answered(range(30)), "small": answered(range(20)), "lucky": answered(range(10, 38))}


def test_values_are_those_of_the_systems_and_differences_those_of_compare() -> None:
    table = SystemTable.of_results(RESULTS, "large", METRICS)
    assert table.results == RESULTS
    for system, differences in table.differences.items():
        pair = compare(RESULTS[system], RESULTS["large"])
        for name in ("exact_match", "f1"):
            compared = ("value", "baseline", "difference", "low", "high", "cases", "notes")
            for each in compared:
                assert getattr(differences[name], each) == getattr(pair.metrics[name], each)


def test_the_reference_is_compared_with_nobody() -> None:
    table = SystemTable.of_results(RESULTS, "small", METRICS)
    assert list(table.differences) == ["large", "lucky"]


def test_p_values_are_adjusted_over_the_whole_table() -> None:
    table = SystemTable.of_results(RESULTS, "large", METRICS)
    cells = [each.p_value for row in table.differences.values() for each in row.values()]
    pairs = {system: compare(RESULTS[system], RESULTS["large"]) for system in table.differences}
    raw = [pairs[system].metrics[name].p_value for system, row in table.differences.items() for name in row]
    assert cells == holm([p for p in raw if p is not None])
    assert cells != raw


def test_wins_ties_and_losses_count_cases() -> None:
    against = SystemTable.of_results(RESULTS, "large", METRICS).differences["lucky"]["exact_match"]
    assert (against.wins, against.ties, against.losses) == (8, 22, 10)


def test_a_case_that_one_system_lacks_is_in_no_comparison_with_it() -> None:
    partial = score(TEXT, [Case(str(number), expected="yes", prediction="yes") for number in range(4)])
    whole = score(TEXT, [Case(str(number), expected="yes", prediction="no") for number in range(6)])
    against = SystemTable.of_results({"whole": whole, "partial": partial}, "whole", METRICS).differences["partial"][
        "f1"
    ]
    assert (against.wins, against.ties, against.losses) == (4, 0, 0)
    assert against.difference == pytest.approx(1)


def test_systems_of_which_none_succeeds_are_compared_although_a_success_costs_infinitely_much() -> None:
    def priced(passed: Sequence[int]) -> Result:
        scored = answered(passed, cases=6)
        outcomes = ["passed" if number in passed else "failed" for number in range(6)]
        usage = [TargetUsage(1, 1, 0.25)]
        return summarize(
            {"text": TEXT},
            [
                structs.replace(record, outcome=outcome, target_usage=usage)
                for record, outcome in zip(scored.records, outcomes, strict=True)
            ],
        )

    table = SystemTable.of_results({"none": priced(()), "some": priced((1, 2))}, "none", METRICS)
    assert table.differences["some"]["exact_match"].difference == pytest.approx(1 / 3)

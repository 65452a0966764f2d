"""Gates: what can be written, what is compared, and what the verdict says."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from builders import gate_of, parse_gate

from pytest_llmeval.core import GroupResult, MetricIndex, MetricValue, Result
from pytest_llmeval.gates import Gate, LimitGate
from pytest_llmeval.gates._limit import ScoreLimit, cases_for_bound, gate_form_fault
from pytest_llmeval.numbers import wilson_interval

VALUES = (0.05, 0.2, 0.35, 0.5, 0.9)
NOTHING = MetricValue(None, None, None, None, 0, 0, 0, 0)


def metric(values: Sequence[float], *, errored: int = 0, undefined: int = 0) -> MetricValue:
    value = float(np.mean(values)) + 0.01 if values else None
    mean = float(np.mean(values)) if values else None
    low, high = (0.25, 0.75) if values else (None, None)
    return MetricValue(value, mean, low, high, len(values), undefined, errored, 0)


def result(
    values: Sequence[float] = VALUES, groups: Mapping[str, Sequence[int]] | None = None, errored: int = 0
) -> Result:
    """A result with metric f1; groups by ``kind`` are rows of `values`."""
    parts = {
        name: GroupResult(len(rows), {"f1": metric([values[row] for row in rows])}, metric([1.0]), rows)
        for name, rows in (groups or {}).items()
    }
    scores = {"f1": np.array([*values, np.nan, np.inf])}
    return Result({"f1": metric(values, errored=errored, undefined=2)}, {"kind": parts}, [], metric([0.8]), scores)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f1 >= 0.7", LimitGate("f1", (ScoreLimit(">=", 0.7),))),
        ("  f1>=.7 ", LimitGate("f1", (ScoreLimit(">=", 0.7),))),
        ("latency_s < 1e2", LimitGate("latency_s", (ScoreLimit("<", 100.0),))),
        ("bias <= -0.5", LimitGate("bias", (ScoreLimit("<=", -0.5),))),
        ("n == 3.", LimitGate("n", (ScoreLimit("==", 3.0),))),
        ("mean(rougeL) >= 0.6", LimitGate("rougeL", (ScoreLimit(">=", 0.6),), statistic="mean")),
        ("p10( f1 ) > 0.2", LimitGate("f1", (ScoreLimit(">", 0.2),), statistic="p10")),
        ("p100(f1) >= 1", LimitGate("f1", (ScoreLimit(">=", 1.0),), statistic="p100")),
        ("f1[not good] >= 0.5", LimitGate("f1[not good]", (ScoreLimit(">=", 0.5),))),
        ("low(other.f1[(x)]) > 0", LimitGate("other.f1[(x)]", (ScoreLimit(">", 0.0),), statistic="low")),
        ("p101(f1) > 0", LimitGate("p101(f1)", (ScoreLimit(">", 0.0),))),
    ],
)
def test_gates_are_read(text: str, expected: Gate) -> None:
    assert parse_gate(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f1",
        "f1 = 0.7",
        "f1 => 0.7",
        "f1 != 0.7",
        "f1 === 0.7",
        "f1 >== 0.7",
        "f1 >= high",
        "f1 >= nan",
        "f1 >= 70%",
        "0.7 <= f1",
        ">= 0.7",
    ],
)
def test_what_is_no_comparison_is_told_with_an_example(text: str) -> None:
    assert LimitGate.from_text(text) is None
    fault = gate_form_fault(text, MetricIndex.from_evaluators({}), None)
    assert fault.startswith(f"found {text!r}, expected METRIC OPERATOR NUMBER such as 'f1 >= 0.7'")
    assert "statistics mean, median, min, max, low, high, p0 to p100" in fault


def test_a_limit_that_is_no_finite_number_is_refused() -> None:
    with pytest.raises(ValueError, match=r"found 'f1 >= 1e999', expected a limit below 1\.8e308"):
        parse_gate("f1 >= 1e999")


@pytest.mark.parametrize(
    "text", ["f1 >= 0.7", "mean(f1) < 0.25", "p10(f1) == 1e-07", "f1 <= -3", "median(f1[a b]) > 20"]
)
def test_a_gate_is_written_as_it_was_typed_and_read_back(text: str) -> None:
    assert str(parse_gate(text)) == text
    assert parse_gate(str(parse_gate(text))) == parse_gate(text)


@pytest.mark.parametrize(
    ("mapping", "text"),
    [
        ({"metric": "f1", "min": 0.6}, "f1 >= 0.6"),
        ({"metric": "f1", "max": 0.6}, "f1 <= 0.6"),
        ({"metric": "mean(f1)", "min": 0, "max": 1, "by": "kind"}, "mean(f1) >= 0 and mean(f1) <= 1 by kind"),
        (
            {"metric": "f1", "min": 0.5, "by": "kind", "min_cases": 20, "max_errors": 2, "partial": True},
            "f1 >= 0.5 by kind",
        ),
    ],
)
def test_the_mapping_form_says_the_same(mapping: dict[str, Any], text: str) -> None:
    gate = gate_of(mapping)
    assert str(gate) == text
    assert (gate.min_cases, gate.max_errors, gate.partial) == (
        mapping.get("min_cases", 1),
        mapping.get("max_errors", 0),
        mapping.get("partial", False),
    )


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({}, "min or max is missing"),
        ({"min": 0.8, "max": 0.2}, "found min 0.8 above max 0.2, expected min <= max"),
        ({"min": 0.8, "min_cases": 0}, "found min_cases 0, expected at least 1"),
        (
            {"min": 0.8, "min_cases": 3},
            "found min_cases without by, expected both: min_cases applies to groups",
        ),
        ({"min": 0.8, "max_errors": -1}, "found max_errors -1, expected at least 0"),
    ],
)
def test_a_mapping_that_cannot_be_judged_is_refused(mapping: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        gate_of({"metric": "f1", **mapping})


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        ("f1", np.mean(VALUES) + 0.01),
        ("mean(f1)", np.mean(VALUES)),
        ("median(f1)", np.median(VALUES)),
        ("min(f1)", np.min(VALUES)),
        ("max(f1)", np.max(VALUES)),
        ("low(f1)", 0.25),
        ("high(f1)", 0.75),
        *((f"p{percent}(f1)", np.percentile(VALUES, percent)) for percent in (0, 5, 10, 50, 97, 100)),
    ],
)
def test_every_statistic_is_numpys_over_the_scores_that_exist(statistic: str, expected: float) -> None:
    verdict = parse_gate(f"{statistic} >= -1").judge(result())
    assert verdict.value == pytest.approx(float(expected), abs=1e-15)
    assert verdict.reason.startswith(f"{statistic} is ")


@pytest.mark.parametrize(
    ("bound", "value", "holds"),
    [
        (ScoreLimit(">=", 0.3), 0.1 + 0.2, True),
        (ScoreLimit(">=", 0.1 + 0.2), 0.3, True),
        (ScoreLimit("<=", 0.3), 0.1 + 0.2, True),
        (ScoreLimit("==", 0.3), 0.1 + 0.2, True),
        (ScoreLimit(">=", 0.3), 0.3 - 1e-11, False),
        (ScoreLimit("<=", 0.3), 0.3 + 1e-11, False),
        (ScoreLimit("==", 0.3), 0.3 + 1e-11, False),
        (ScoreLimit(">", 0.3), 0.3, False),
        (ScoreLimit("<", 0.3), 0.3, False),
        (ScoreLimit(">", 0.3), 0.31, True),
        (ScoreLimit("<", 0.3), 0.29, True),
    ],
)
def test_operators_compare_with_a_slack_where_equality_counts(bound: ScoreLimit, value: float, holds: bool) -> None:
    assert bound.holds(value) is holds


def test_a_verdict_names_value_limit_and_what_was_expected() -> None:
    passed, failed = parse_gate("mean(f1) >= 0.4").judge(result()), parse_gate("mean(f1) >= 0.5").judge(result())
    assert (passed.gate, passed.outcome, passed.limit, passed.reason) == (
        "mean(f1) >= 0.4",
        "passed",
        0.4,
        "mean(f1) is 0.4000",
    )
    assert (failed.outcome, failed.limit) == ("failed", 0.5)
    assert failed.value == pytest.approx(0.4)
    assert failed.reason == "mean(f1) is 0.4000, expected >= 0.5"
    near = parse_gate("mean(f1) >= 0.400000004").judge(result())
    assert near.reason == "mean(f1) is 0.4000, expected >= 0.400000004"
    near = parse_gate("mean(f1) <= 0.39999999").judge(result())
    assert near.reason == "mean(f1) is 0.4000, expected <= 0.39999999"


def test_of_two_bounds_the_one_that_is_missed_is_reported() -> None:
    verdict = gate_of({"metric": "mean(f1)", "min": 0.1, "max": 0.3}).judge(result())
    assert (verdict.outcome, verdict.limit) == ("failed", 0.3)
    assert verdict.reason == "mean(f1) is 0.4000, expected <= 0.3"


@pytest.mark.parametrize(
    ("allowed", "outcome", "reason"),
    [
        (0, "failed", "2 cases errored"),
        (1, "failed", "2 cases errored, 1 allowed"),
        (2, "passed", "mean(f1) is 0.4000"),
    ],
)
def test_errored_cases_fail_a_gate_unless_it_allows_them(allowed: int, outcome: str, reason: str) -> None:
    gate = gate_of({"metric": "mean(f1)", "min": 0.1, "max_errors": allowed})
    verdict = gate.judge(result(errored=2))
    assert (verdict.outcome, verdict.reason) == (outcome, reason)
    assert verdict.value == pytest.approx(0.4)


@pytest.mark.parametrize("gate", ["f1 >= 0", "mean(f1) <= 1", "p50(f1) >= 0", "low(f1) >= 0"])
def test_a_value_that_does_not_exist_fails_whatever_the_limit(gate: str) -> None:
    verdict = parse_gate(gate).judge(result(()))
    assert (verdict.outcome, verdict.value) == ("failed", None)
    assert verdict.reason == f"{gate.split(' ', maxsplit=1)[0]} is undefined: 0 cases scored, 2 undefined"


@pytest.mark.parametrize(
    ("limit", "reason"), [(0.1, "f1 is 0.4000; 1 case not run"), (0.9, "f1 is 0.4000, expected >= 0.9; 1 case not run")]
)
def test_skipped_cases_are_mentioned_in_the_verdict(limit: float, reason: str) -> None:
    skipped = MetricValue(0.4, 0.4, 0.3, 0.5, 4, 0, 0, missing=1)
    verdict = LimitGate("f1", (ScoreLimit(">=", limit),)).judge(Result({"f1": skipped}, {}, [], skipped))
    assert verdict.reason == reason


def test_where_all_cases_were_skipped_the_verdict_says_so() -> None:
    skipped = MetricValue(None, None, None, None, 0, 0, 0, missing=16)
    verdict = parse_gate("f1 >= 0.5").judge(Result({"f1": skipped}, {}, [], skipped))
    assert verdict.reason == "f1 is undefined: 0 cases scored, 0 undefined; 16 cases not run"


def test_a_metric_that_no_case_has_fails() -> None:
    verdict = parse_gate("f1[joy] >= 0").judge(result())
    assert (verdict.outcome, verdict.reason) == ("failed", "f1[joy] does not occur in the results")


PASSED = MetricValue(1.0, 1.0, 1.0, 1.0, 4, 0, 0, 0)


def test_a_misspelt_label_is_told_with_what_was_probably_meant() -> None:
    found = Result({"f1[joy]": MetricValue(0.4, 0.4, 0.3, 0.5, 4, 0, 0, 0)}, {}, [], PASSED)
    reason = "f1[yoj] does not occur in the results (did you mean 'f1[joy]'?)"
    assert parse_gate("f1[yoj] >= 0").judge(found).reason == reason


NO_VALUE = MetricValue(None, None, None, None, 2, 2, 0, 0)
TWO_CALLS = {"judge_calls": MetricValue(2.0, 1.0, 2.0, 2.0, 2, 0, 0, 0)}


@pytest.mark.parametrize(
    ("gate", "usage", "why"),
    [
        ("judge_cost_usd <= 1", {}, "judge_cost_usd is unknown: no judge was used"),
        (
            "judge_cost_usd <= 1",
            {"judge_calls": NO_VALUE, "judge_cost_usd": NO_VALUE},
            "judge_cost_usd is unknown: no judge was used",
        ),
        (
            "judge_cost_usd <= 1",
            TWO_CALLS | {"judge_cost_usd": NO_VALUE},
            "judge_cost_usd is unknown: a call has no known price",
        ),
        (
            "mean(judge_tokens) <= 9",
            TWO_CALLS | {"judge_tokens": NO_VALUE},
            "mean(judge_tokens) is unknown: a provider did not report tokens",
        ),
        (
            "latency_s <= 1",
            TWO_CALLS | {"latency_s": NO_VALUE},
            "latency_s is unknown: the stored verdicts have no latency",
        ),
        ("target_latency_s <= 1", TWO_CALLS, "target_latency_s is unknown: no target was called"),
    ],
)
def test_a_figure_without_value_fails_with_its_own_cause(gate: str, usage: dict[str, MetricValue], why: str) -> None:
    verdict = parse_gate(gate).judge(Result({}, {}, [], PASSED, usage=usage))
    assert (verdict.outcome, verdict.value, verdict.reason) == ("failed", None, why)


def test_the_pass_rate_is_a_metric_of_every_suite() -> None:
    assert parse_gate("pass_rate >= 0.8").judge(result()).value == pytest.approx(0.81)


GROUPS = {"temporal": [0, 1], "spatial": [3, 4], "other": [2]}


def by(minimum: float, **more: Any) -> Gate:
    return gate_of({"metric": "mean(f1)", "min": minimum, "by": "kind", **more})


def test_where_all_groups_hold_the_closest_is_named() -> None:
    verdict = by(0.1).judge(result(groups=GROUPS))
    assert verdict.outcome == "passed"
    assert verdict.value == pytest.approx(0.125)
    assert verdict.reason == "all 3 groups pass, closest temporal: mean(f1) is 0.1250"


def test_failing_groups_are_all_listed_and_the_worst_gives_the_value() -> None:
    verdict = by(0.5).judge(result(groups=GROUPS))
    assert (verdict.outcome, verdict.limit) == ("failed", 0.5)
    assert verdict.value == pytest.approx(0.125)
    assert verdict.reason == (
        "2 of 3 groups fail: temporal: mean(f1) is 0.1250, expected >= 0.5; other: mean(f1) is 0.3500, expected >= 0.5"
    )


def test_of_many_groups_the_worst_are_listed_and_the_others_counted() -> None:
    values = [0.01 * (100 - number) for number in range(30)]
    verdict = by(1.5).judge(result(values, {f"g{number:02}": [number] for number in range(30)}))
    assert verdict.reason.startswith("30 of 30 groups fail: g29: mean(f1) is 0.7100, expected >= 1.5; g28: ")
    assert verdict.reason.endswith("g10: mean(f1) is 0.9000, expected >= 1.5 (and 10 more)")
    small = by(0.1, min_cases=2).judge(result(values, {f"g{number:02}": [number] for number in range(30)}))
    assert small.reason.endswith(", g18, g19 (and 10 more)")


def test_percentiles_of_a_group_read_its_own_cases() -> None:
    verdict = gate_of({"metric": "max(f1)", "max": 0.3, "by": "kind"}).judge(result(groups={"x": [0, 1]}))
    assert (verdict.outcome, verdict.value) == ("passed", 0.2)


def test_small_groups_are_not_judged_but_named() -> None:
    verdict = by(0.1, min_cases=2).judge(result(groups=GROUPS))
    assert verdict.outcome == "passed"
    assert verdict.reason.endswith("; not evaluated, under 2 cases: other")


def test_a_gate_with_no_group_large_enough_fails() -> None:
    verdict = by(0.1, min_cases=3).judge(result(groups=GROUPS))
    assert (verdict.outcome, verdict.value) == ("failed", None)
    assert verdict.reason.startswith("no group by 'kind' has 3 cases; not evaluated, under 3 cases: ")


def test_a_group_without_any_score_fails_as_a_suite_without_any_does() -> None:
    some = result(groups={"temporal": [0, 1]})
    some.groups["kind"]["empty"] = GroupResult(1, {"f1": NOTHING}, NOTHING, [5])  # type: ignore[index]  # a dict here
    verdict = by(0.1).judge(some)
    assert verdict.outcome == "failed"
    assert verdict.reason.startswith("1 of 2 groups fail: empty: mean(f1) is undefined")


@pytest.mark.parametrize("gate", [parse_gate("f1 >= 0"), by(0.0)])
def test_part_of_a_suite_is_not_judged(gate: Gate) -> None:
    verdict = gate.judge(result(groups=GROUPS), "12 of 300 cases ran")
    assert (verdict.outcome, verdict.value) == ("not_judged", None)
    assert verdict.reason == "not evaluated: 12 of 300 cases ran"


def test_a_partial_gate_judges_part_of_a_suite() -> None:
    gate = gate_of({"metric": "mean(f1)", "min": 0.1, "partial": True})
    assert gate.judge(result(), "12 of 300 cases ran").outcome == "passed"


@pytest.mark.parametrize("text", ["mean(f1)", "f1", " p5(f1 ) "])
def test_a_subject_splits_into_statistic_and_metric(text: str) -> None:
    assert Gate.split_statistic(text)[1] == "f1"


def test_cases_for_a_bound_are_the_fewest_that_wilson_needs() -> None:
    low, high = wilson_interval(18, 20, 0.95)
    needed = cases_for_bound(0.9, low, high, 0.8, 20)
    assert (
        wilson_interval(0.9 * needed, needed, 0.95)[0] >= 0.8 > wilson_interval(0.9 * (needed - 1), needed - 1, 0.95)[0]
    )
    assert cases_for_bound(1, wilson_interval(9, 9, 0.9)[0], 1, 0.9, 9) == 25
    assert (cases_for_bound(0.9, low, high, 0.95, 20), cases_for_bound(0.9, low, 0.95, 0.8, 20)) == (0, 0)

"""Verdicts on scores against approved ones: rules only, no files."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import Evaluator, Metric
from pytest_llmeval.baselines._comparable import Comparable, EvaluatorPrint
from pytest_llmeval.baselines._scores import ApprovedScore, Cases, SuiteScores
from pytest_llmeval.baselines._verdicts import compare_scores, describe_falls, first_approved, judge_scores
from pytest_llmeval.core import MetricIndex, Observation, SnapshotVerdict
from pytest_llmeval.suites import SnapshotSettings, Tolerance


class Errors(Evaluator):
    """An evaluator with a metric of each direction, and a family."""

    name = "errors"

    def describe(self) -> list[Metric]:
        return [Metric("accuracy"), Metric("loss", higher_is_better=False, high=None), Metric("loss[label]", False)]

    def measure(self, case: Any) -> Observation:
        raise NotImplementedError

    def summarize(self, sums: Any) -> dict[str, Any]:
        raise NotImplementedError


METRICS = MetricIndex.from_evaluators({"errors": Errors()})
COMPARABLE = Comparable("ids", "data", "limits", {"errors": EvaluatorPrint("errors", "1", {"level": 2})})


def score(value: float | None, **counts: Any) -> ApprovedScore:
    return ApprovedScore(value, None, None, **{"scored": 4, "undefined": 0, "errored": 0, "missing": 0, **counts})


def scores(comparable: Comparable = COMPARABLE, **metrics: ApprovedScore) -> SuiteScores:
    return SuiteScores("s.eval.yaml", "", "", Cases(4, ""), comparable, metrics)


DEFAULT = SnapshotSettings()


def deciding(metric: str) -> set[str]:
    """Return who decides a metric: a threshold on the loss of ``strict`` decides the pass rate."""
    return {"strict"} if metric == "pass_rate" else {"errors"}


def judged(old: SuiteScores, new: SuiteScores, settings: SnapshotSettings = DEFAULT) -> dict[str, SnapshotVerdict]:
    return {verdict.metric: verdict for verdict in judge_scores(old, new, settings, METRICS, deciding=deciding)}


def kinds(verdicts: dict[str, SnapshotVerdict]) -> dict[str, tuple[str, str]]:
    return {name: (verdict.kind, verdict.outcome) for name, verdict in verdicts.items()}


@pytest.mark.parametrize(
    ("value", "approved", "tolerance", "kind", "outcome"),
    [
        (0.5, 0.5, Tolerance(), "unchanged", "passed"),
        (0.500001, 0.5, Tolerance(), "unchanged", "passed"),
        (0.499999, 0.5, Tolerance(), "unchanged", "passed"),
        (0.500002, 0.5, Tolerance(), "improved", "passed"),
        (0.499998, 0.5, Tolerance(), "fell_beyond", "failed"),
        (0.49, 0.5, Tolerance(0.01), "fell_within", "passed"),
        (0.489, 0.5, Tolerance(0.01), "fell_beyond", "failed"),
        (0.45, 0.5, Tolerance(relative=0.1), "fell_within", "passed"),
        (0.449, 0.5, Tolerance(relative=0.1), "fell_beyond", "failed"),
        (-55, -50, Tolerance(relative=0.1), "fell_within", "passed"),
        (None, None, Tolerance(), "unchanged", "passed"),
        (None, 0.0, Tolerance(1.0), "fell_beyond", "failed"),
        (0.0, None, Tolerance(), "new", "passed"),
    ],
)
def test_a_value_is_judged_by_its_change(
    value: float | None, approved: float | None, tolerance: Tolerance, kind: str, outcome: str
) -> None:
    verdict = compare_scores("m", value, approved, tolerance)
    assert (verdict.kind, verdict.outcome, verdict.value, verdict.approved) == (kind, outcome, value, approved)


@given(st.floats(-10, 10), st.floats(-10, 10), st.floats(0, 1))
def test_direction_turns_the_verdict_round(value: float, approved: float, tolerance: float) -> None:
    verdict = compare_scores("m", value, approved, Tolerance(tolerance))
    mirrored = compare_scores("m", -value, -approved, Tolerance(tolerance), higher_is_better=False)
    assert (verdict.kind, verdict.outcome) == (mirrored.kind, mirrored.outcome)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_tolerance_never_fails_what_a_smaller_one_passes(
    value: float, approved: float, one: float, other: float
) -> None:
    smaller, larger = sorted((one, other))
    if compare_scores("m", value, approved, Tolerance(smaller)).outcome == "passed":
        assert compare_scores("m", value, approved, Tolerance(larger)).outcome == "passed"


def test_of_a_metric_of_which_less_is_better_a_rise_is_the_fall() -> None:
    old = scores(accuracy=score(0.5), loss=score(0.5), **{"loss[x]": score(0.5)})
    new = scores(accuracy=score(0.6), loss=score(0.6), **{"loss[x]": score(0.4)})
    assert kinds(judged(old, new)) == {
        "accuracy": ("improved", "passed"),
        "loss": ("fell_beyond", "failed"),
        "loss[x]": ("improved", "passed"),
    }
    assert judged(old, new)["loss"].reason == "rose from 0.5000 to 0.6000, worse by 0.1000; tolerance 0"


def test_each_metric_has_its_own_tolerance_and_the_shared_one_otherwise() -> None:
    settings = SnapshotSettings(tolerances={"accuracy": Tolerance(0.2)}, tolerance=Tolerance(relative=0.5))
    verdicts = judged(
        scores(accuracy=score(0.5), loss=score(0.5)), scores(accuracy=score(0.2), loss=score(0.7)), settings
    )
    assert kinds(verdicts) == {"accuracy": ("fell_beyond", "failed"), "loss": ("fell_within", "passed")}
    assert verdicts["loss"].reason.endswith("tolerance 50% of the approved value")


@pytest.mark.parametrize(
    ("settings", "outcome"),
    [
        (SnapshotSettings(), "passed"),
        (SnapshotSettings(tolerance=Tolerance()), "failed"),
        (SnapshotSettings(tolerances={"accuracy": Tolerance()}), "failed"),
        (SnapshotSettings(tolerances={"loss": Tolerance()}), "passed"),
    ],
)
def test_a_gate_on_the_drop_decides_unless_there_is_a_tolerance(settings: SnapshotSettings, outcome: str) -> None:
    old, new = scores(accuracy=score(0.5), loss=score(0.5)), scores(accuracy=score(0.4), loss=score(0.6))
    accuracy, loss = judge_scores(old, new, settings, METRICS, deciding=deciding, gated="accuracy".__eq__)
    assert (accuracy.kind, accuracy.outcome, loss.outcome) == ("fell_beyond", outcome, "failed")
    assert accuracy.reason.startswith("left to the gate with max_drop: fell from") == (outcome == "passed")


def test_a_new_metric_passes_and_a_vanished_one_fails_unless_unused_ones_are_only_told() -> None:
    old, new = scores(accuracy=score(0.5)), scores(loss=score(0.5))
    assert kinds(judged(old, new)) == {"loss": ("new", "passed"), "accuracy": ("vanished", "failed")}
    told = judge_scores(old, new, SnapshotSettings(), METRICS, deciding=deciding, warn_unused=True)
    assert [each.outcome for each in told] == ["passed", "passed"]


def test_a_better_value_over_fewer_cases_is_no_improvement() -> None:
    old = scores(accuracy=score(0.5))
    errored = judged(old, scores(accuracy=score(1.0, scored=2, errored=2)))["accuracy"]
    assert (errored.kind, errored.outcome) == ("fell_beyond", "failed")
    assert errored.reason == "2 cases errored, 0 when approved; rose from 0.5000 to 1.0000: improved"
    skipped = judged(old, scores(accuracy=score(1.0, scored=3, missing=1)))["accuracy"]
    assert (skipped.kind, skipped.outcome) == ("not_comparable", "failed")
    assert skipped.reason == "not comparable: 1 case did not run, 0 when approved"


def changed(**parts: Any) -> Comparable:
    return replace(COMPARABLE, **parts)


ERRORS = COMPARABLE.evaluators["errors"]


@pytest.mark.parametrize(
    ("comparable", "metric", "reason"),
    [
        (changed(cases="other"), "*", "different cases (4, 4 when approved)"),
        (changed(data="other"), "*", "the data changed (input, expected or labels of the cases)"),
        (
            changed(evaluators={"errors": replace(ERRORS, version="2")}),
            "accuracy",
            "the evaluator 'errors' has version 2, 1 when approved",
        ),
        (
            changed(evaluators={"errors": replace(ERRORS, options={"level": 3, "fuzzy": 1})}),
            "accuracy",
            "options of the evaluator 'errors' changed: fuzzy, level",
        ),
        (
            changed(evaluators={"errors": replace(ERRORS, name="mistakes")}),
            "accuracy",
            "'errors' is the evaluator 'mistakes', 'errors' when approved",
        ),
        (
            changed(judges={"errors": {"model": "large", "prompt": "p"}}),
            "accuracy",
            (
                "the judge's model of 'errors' is large, none when approved; "
                "the judge's prompt of 'errors' is p, none when approved"
            ),
        ),
        (changed(thresholds="other"), "pass_rate", "the thresholds changed"),
        (
            changed(judges={"strict": {"model": "large"}}, thresholds="other"),
            "pass_rate",
            "the thresholds changed; the judge's model of 'strict' is large, none when approved",
        ),
    ],
)
@pytest.mark.parametrize("policy", ["fail", "warn"])
def test_what_changed_is_said_and_only_what_it_concerns_is_not_comparable(
    comparable: Comparable, metric: str, reason: str, policy: Any
) -> None:
    metrics = {"accuracy": score(0.5), "pass_rate": score(1.0)}
    verdicts = judged(scores(**metrics), scores(comparable, **metrics), SnapshotSettings(not_comparable=policy))
    verdict = verdicts.pop(metric)
    assert (verdict.kind, verdict.reason) == ("not_comparable", f"not comparable: {reason}")
    assert verdict.outcome == ("failed" if policy == "fail" else "passed")
    assert {each.kind for each in verdicts.values()} == ({"unchanged"} if metric != "*" else set())


def test_nothing_is_compared_with_another_number_of_repeats() -> None:
    metrics = {"accuracy": score(0.5), "pass_rate": score(1.0)}
    for repeats, reason in (
        ("", "cases run once, repeats:3|reduce:min when approved"),
        ("repeats:5|reduce:min", "cases run repeats:5|reduce:min, repeats:3|reduce:min when approved"),
    ):
        old, new = (scores(changed(repeats=each), **metrics) for each in ("repeats:3|reduce:min", repeats))
        assert {each.reason for each in judged(old, new).values()} == {f"not comparable: {reason}"}


def test_a_metric_that_is_computed_otherwise_is_not_comparable() -> None:
    old, new = scores(accuracy=score(0.5, signature="v:1")), scores(accuracy=score(0.5, signature="v:2"))
    assert judged(old, new)["accuracy"].reason == "not comparable: computed as 'v:2', 'v:1' when approved"


def test_a_first_approval_says_where_a_metric_has_no_value() -> None:
    assert [first_approved("m", value).reason for value in (0.5, None)] == [
        "approved: is 0.5000",
        "approved: has no value",
    ]


def panel(*jurors: str, how: str = "mean") -> str:
    return f"panel ({how}, 2 of 2): {', '.join(jurors)}"


@pytest.mark.parametrize(
    ("old", "new", "command"),
    [
        ("openai:a", "openai:b", "--to openai:b"),
        ("fixture:a", "openai:b", "--to openai:b"),
        (panel("openai:a", "openai:a"), panel("openai:a", "openai:b"), '--from "openai:a #2" --to openai:b'),
        (panel("openai:a", "openai:b"), panel("openai:c", "openai:d"), "--from JUROR --to PROVIDER:NAME (one"),
        (panel("openai:a", "openai:b"), panel("openai:a", "openai:c", how="median"), ""),
        (panel("openai:a", "openai:b"), panel("openai:a", "openai:b", "openai:c"), ""),
        (panel("openai:a", "openai:b"), "openai:a", ""),
        ("openai:a", panel("openai:a", "openai:b"), ""),
        ("openai:a", "fixture:b", ""),
        (panel("openai:a", "openai:b"), panel("openai:a", "fixture:c"), ""),
    ],
)
def test_a_changed_judge_names_the_command_where_it_can_measure_the_change(old: str, new: str, command: str) -> None:
    one, other = (replace(COMPARABLE, judges={"errors": {"model": model}}) for model in (old, new))
    reason = judged(scores(one, accuracy=score(0.5)), scores(other, accuracy=score(0.5)))["accuracy"].reason
    told = reason.partition("llmeval judge migrate SUITE ")[2]
    assert f"the judge's model of 'errors' is {new}, {old} when approved" in reason
    assert told.startswith(command) if command else not told


@pytest.mark.parametrize(
    ("approved", "now", "outcome"),
    [
        ({}, {"abstained": 2}, "failed"),
        ({"abstained": 1}, {"abstained": 2}, "failed"),
        ({"abstained": 2}, {"abstained": 2}, "passed"),
        ({"undefined": 2}, {"abstained": 2}, "failed"),
        ({"abstained": 2}, {}, "passed"),
    ],
)
def test_without_statistics_of_cases_more_abstentions_than_approved_fail(
    approved: dict[str, int], now: dict[str, int], outcome: str
) -> None:
    old, new = scores(accuracy=score(0.5, **approved)), scores(accuracy=score(0.9, **now))
    (verdict,) = describe_falls(judged(old, new).values(), None, old, new)
    assert verdict.outcome == outcome
    assert (f"2 cases abstained, {approved.get('abstained', 0)} when approved" in verdict.reason) == (
        outcome == "failed"
    )

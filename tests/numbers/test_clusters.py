"""Cases that belong together are drawn together: intervals, groups, comparisons, and what that costs."""

import numpy as np
import pytest
from builders import parse_gate

from pytest_llmeval import Case, Result, compare, get_evaluator, score
from pytest_llmeval.gates import DropGate, GateEvidence
from pytest_llmeval.numbers import CaseStatistics, RunPairing
from pytest_llmeval.numbers._resample import design_effect

TIMES = 5


def duplicated(right: "list[bool]", cluster_by: str | None = "talk", confidence: float | None = 0.95) -> Result:
    """Score answers, each of which stands five times in the suite."""
    cases = [
        Case(f"{number:03}.{copy}", expected="x", prediction="x" if each else "y", labels={"talk": str(number)})
        for number, each in enumerate(right)
        for copy in range(TIMES)
    ]
    evaluator = get_evaluator("text", metrics=["exact_match"])
    return score(evaluator, cases, ["talk"], confidence, cluster_by=cluster_by)


HALF = [True, False] * 20


def width(result: Result) -> float:
    metric = result.metrics["exact_match"]
    assert metric.low is not None
    assert metric.high is not None
    return metric.high - metric.low


def test_copies_of_a_case_add_nothing_to_what_is_known() -> None:
    assert width(duplicated(HALF)) == pytest.approx(TIMES**0.5 * width(duplicated(HALF, None)), rel=0.1)


def test_the_design_effect_of_copies_is_their_number() -> None:
    clusters = duplicated(HALF).clusters
    assert clusters is not None
    assert (clusters.label, clusters.count) == ("talk", 40)
    assert clusters.design_effects["exact_match"] == pytest.approx(TIMES, rel=0.03)
    assert duplicated(HALF, None).clusters is None


def test_clusters_of_one_case_have_no_design_effect() -> None:
    influence = np.array([0.1, -0.2, 0.1, 0.0])
    assert design_effect(influence, np.arange(4)) == pytest.approx(1)
    assert design_effect(influence, np.zeros(4, dtype=np.intp)) is None
    assert design_effect(np.zeros(4), np.arange(4)) is None


def test_a_single_cluster_has_no_interval() -> None:
    group = duplicated(HALF).groups["talk"]["3"].metrics["exact_match"]
    assert (group.value, group.low, group.high) == (0, None, None)


def test_gates_on_bounds_judge_clusters() -> None:
    right = [True] * 36 + [False] * 4
    bound = parse_gate("low(exact_match) >= 0.85")
    assert bound.judge(duplicated(right, None)).outcome == "passed"
    assert bound.judge(duplicated(right)).outcome == "failed"


def test_runs_are_compared_by_the_clusters_of_the_run() -> None:
    here, there = duplicated(HALF), duplicated([*HALF[1:], True])
    found = compare(here, there)
    assert found.cluster_by == "talk"
    assert found.metrics == compare(here, there, cluster_by="talk").metrics


def test_with_their_clusters_equally_good_runs_of_copied_cases_seldom_alarm() -> None:
    alarms = {None: 0, "talk": 0}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        here, there = (duplicated(list(rng.random(40) < 0.8), confidence=None) for _ in range(2))
        kept = (CaseStatistics.exact(each.records) for each in (here, there))
        pairs = RunPairing(*kept, here.evaluators)
        for cluster_by in alarms:
            tested = DropGate("exact_match", 0.0, cluster_by=cluster_by)
            alarms[cluster_by] += GateEvidence.judge_together([tested.examine(pairs)])[0].outcome == "failed"
    assert alarms[None] >= 2
    assert alarms["talk"] <= 1

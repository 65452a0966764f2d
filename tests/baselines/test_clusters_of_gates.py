"""Rises and anchors are weighed by the clusters of the gates on a metric, not those of the suite alone."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

from builders import pairing, run

from pytest_llmeval.baselines._baselines import weigh_rises
from pytest_llmeval.core import SnapshotVerdict
from pytest_llmeval.gates import DropGate
from pytest_llmeval.suites import LoadedSuite

ROSE = SnapshotVerdict("score", "improved", "passed", reason="rose from 0.0000 to 0.2000: improved")


def suite(*clusters: str | None, own: str | None = None) -> Any:
    gates = [DropGate("score", 0.02, cluster_by=each) for each in clusters]
    settings = SimpleNamespace(regressions=gates, cluster_by=own)
    settings.gate_clusters = partial(LoadedSuite.gate_clusters, settings)
    return settings


def test_the_gate_says_what_belongs_together() -> None:
    assert suite("talk").gate_clusters("score") == "talk"
    assert suite(None, "talk", own="day").gate_clusters("score") == "talk"
    assert suite(None, own="day").gate_clusters("score") == "day"
    assert suite("talk", own="day").gate_clusters("other") == "day"


def test_a_rise_of_one_cluster_may_be_chance_where_the_gate_clusters() -> None:
    talks = [str(number // 20) for number in range(100)]
    both = pairing(run([1.0] * 20 + [0.0] * 80, talks), run([0.0] * 100, talks))
    (alone,) = weigh_rises([ROSE], both, suite(None))
    assert alone == ROSE
    (together,) = weigh_rises([ROSE], both, suite("talk"))
    assert together == replace(ROSE, kind="rose_within", reason=together.reason)
    assert "may be chance" in together.reason

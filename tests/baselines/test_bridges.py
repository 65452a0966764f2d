"""Bridges between judges in score files."""

import importlib
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from project import ROOT

from pytest_llmeval.baselines import ScoreFile
from pytest_llmeval.baselines._comparable import Comparable
from pytest_llmeval.baselines._scores import (
    Approval,
    ApprovedScore,
    Bridge,
    Cases,
    SuiteScores,
    bridge_of,
    shifts_between,
)
from pytest_llmeval.baselines._verdicts import judge_scores
from pytest_llmeval.core import MetricIndex
from pytest_llmeval.numbers import Shift
from pytest_llmeval.suites import SnapshotSettings, Tolerance

OLD, NEW = {"model": "openai:old", "parameters": "{}"}, {"model": "openai:new", "parameters": "{}"}
SHIFT = Shift(0.25, 0.125, 0.375)
BRIDGE = Bridge("judge", OLD, NEW, "2026-11-22", "abc", {"judge_score": SHIFT, "mean(judge_score)": SHIFT})

numbers = st.floats(allow_nan=False, allow_infinity=False)
judges = st.dictionaries(st.text(), st.text()).map(lambda more: {**more, "model": "openai:m"})
bridges = st.builds(
    Bridge,
    st.text(),
    judges,
    judges,
    st.text(),
    st.none() | st.text(),
    st.dictionaries(
        st.text(),
        st.builds(Shift, numbers, numbers, numbers)
        | st.builds(Shift, numbers, numbers, numbers, st.just("a"), st.text("b"), st.text())
        | st.builds(Shift, numbers, numbers, numbers, rates=st.just((3, 4, 1, 2)))
        | st.builds(Shift, numbers, numbers, numbers, measured=st.just((0.25, 0.5))),
    ),
)


def comparable(**judged: dict[str, str]) -> Comparable:
    return Comparable("c", "d", "", {}, judged)


@given(st.lists(bridges, max_size=3))
def test_bridges_come_back_in_their_order(many: list[Bridge]) -> None:
    approvals = (Approval("2026-11-22", "abc", {}),)
    scores = SuiteScores("s.eval.yaml", "", "", Cases(1, "x"), comparable(judge=OLD), {}, history=approvals)
    scores = replace(scores, bridges=tuple(many))
    with TemporaryDirectory() as folder:
        path = Path(folder, "s.scores.json")
        path.write_text(scores.text, encoding="utf-8")
        assert ScoreFile(path, path.name).parse(SuiteScores) == scores


def test_a_bridge_leads_from_one_judge_to_one_other_and_not_back() -> None:
    assert bridge_of([BRIDGE], "judge", OLD, NEW) is BRIDGE
    for label, old, new in (
        ("judge", NEW, OLD),
        ("other", OLD, NEW),
        ("judge", {**OLD, "parameters": "{1}"}, NEW),
        ("judge", OLD, {**NEW, "model": "openai:third"}),
        ("judge", {}, NEW),
    ):
        assert bridge_of([BRIDGE], label, old, new) is None


def test_only_the_metrics_of_changed_judges_move() -> None:
    assert shifts_between([BRIDGE], comparable(judge=OLD), comparable(judge=NEW)) == BRIDGE.shifts
    assert shifts_between([BRIDGE], comparable(judge=OLD), comparable(judge=OLD)) == {}
    assert shifts_between([BRIDGE], comparable(judge=NEW), comparable(judge=OLD)) == {}
    assert shifts_between([BRIDGE], comparable(judge=OLD), comparable()) == {}


def test_rates_bring_a_mean_to_the_scale_of_the_former_judge_whatever_is_right() -> None:
    shift = Shift(0.1, 0.05, 0.15, rates=(80, 80, 10, 20))
    assert [shift.former_value(value) for value in (0.9, 0.8, 0.75, 0.4)] == pytest.approx([0.8, 0.6, 0.5, 0.0])
    assert shift.former(np.full(2_000, 0.8)).mean() == pytest.approx(0.6, abs=0.05)
    assert Shift(0, 0, 0, rates=(5, 5, 0, 0)).width(0.8) > 0.5
    assert Shift(0, 0, 0, rates=(2, 4, 2, 4)).former_value(0.5) == 0.5


@pytest.mark.parametrize(("compared", "now"), [(300, 0.6), (5, 0.5)])
def test_a_judge_that_passes_half_of_the_wrong_answers_hides_no_fall(
    compared: int, now: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    planning = importlib.import_module("planning")
    rng = np.random.default_rng([44, compared])
    outcomes = [planning.bridged_outcomes(rng, compared, 0.8, now) for _ in range(10)]
    assert "passed" not in {safe for safe, _ in outcomes}
    assert "passed" not in {drop for _, drop in outcomes}


@pytest.mark.parametrize(
    ("shift", "tolerance", "outcome"),
    [
        (Shift(0.1, 0.08, 0.12), 0.05, "passed"),
        (Shift(0.1, 0.0, 0.2), 0.05, "failed"),
        (Shift(0.1, 0.0, 0.2), 0.1, "passed"),
        (Shift(0.1, 0.02, 0.18), 0.0, "failed"),
    ],
)
def test_a_snapshot_does_not_pass_because_a_bridge_is_wide(shift: Shift, tolerance: float, outcome: str) -> None:
    before, after = (comparable(judge=judge) for judge in (OLD, NEW))
    old, new = (
        SuiteScores(
            "s.eval.yaml", "", "", Cases(4, ""), each, {"judge_score": ApprovedScore(value, None, None, 4, 0, 0, 0)}
        )
        for each, value in ((before, 0.5), (after, 0.54))
    )
    old = replace(old, bridges=[replace(BRIDGE, shifts={"judge_score": shift})])
    settings = SnapshotSettings(tolerance=Tolerance(tolerance))
    (verdict,) = judge_scores(old, new, settings, MetricIndex.from_evaluators({}), deciding=lambda _: {"judge"})
    assert verdict.outcome == outcome
    wide = shift.value - shift.low > tolerance
    assert verdict.reason.startswith("cannot tell: the bridge between the judges leaves ") == wide

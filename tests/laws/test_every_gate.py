"""Laws of every rule of gates: no unit, no worse answer and nothing that was not written makes a verdict better."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_llmeval.core import SignificanceTest
from pytest_llmeval.data import Document
from pytest_llmeval.exchange import GateVerdict
from pytest_llmeval.exchange.gating import GateOptions, judge_results
from pytest_llmeval.exchange.results import ResultRow
from pytest_llmeval.gates import Gate
from pytest_llmeval.gates._drop import AnytimeGate, DropGate, GainGate, GainLackGate, LiftGate, SafeGate
from pytest_llmeval.gates._limit import LimitGate
from pytest_llmeval.gates._rules import RULES

TESTS: Sequence[SignificanceTest] = get_args(SignificanceTest)
GATES: Mapping[type[Gate], Sequence[Mapping[str, Any]]] = {
    LimitGate: [
        {"metric": metric, "min": 0.7}
        for metric in ("m", "mean(m)", "median(m)", "min(m)", "max(m)", "p10(m)", "low(m)", "high(m)")
    ],
    DropGate: [
        *({"max_drop": 0.0, "test": test} for test in TESTS),
        {"max_drop": 0.1},
        {"max_drop": 0.0, "undecided": "fail"},
        {"max_drop": 0.0, "undecided": "pass", "alternative": "less"},
        {"max_drop": 0.0, "cluster_by": "doc"},
        {"max_drop": 0.0, "by": "doc"},
        {"max_drop": 0.0, "against": "without"},
    ],
    SafeGate: [
        *({"max_drop": 0.2, "rule": "non_inferiority", "test": test} for test in TESTS if test != "wilcoxon"),
        {"max_drop": 0.2, "rule": "non_inferiority", "cluster_by": "doc"},
    ],
    AnytimeGate: [{"max_drop": 0.0, "rule": "anytime"}],
    GainGate: [{"min_gain": 0.0}, {"min_gain": 0.1, "against": "without"}],
    GainLackGate: [{"min_gain": 0.1, "rule": "significant_drop", "against": "without"}],
    LiftGate: [{"min_gain": 0.0, "rule": "decided", "against": "without"}],
}
"""Each rule, with gates of it."""

RANKS = ("failed", "undecided", "passed")
every_gate = pytest.mark.parametrize(
    "keys",
    [
        # The first gate of a rule is judged in every run of the tests, the others before a release.
        pytest.param(
            {"metric": "m", **keys}, marks=[pytest.mark.release] if place else [], id=f"{rule.__name__}-{place}"
        )
        for rule, several in GATES.items()
        for place, keys in enumerate(several)
    ],
)
answers = st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, 1.0])] * 2), min_size=12, max_size=40)
grades = st.lists(st.tuples(*[st.integers(0, 16).map(lambda part: part / 16)] * 2), min_size=12, max_size=40)
scores = st.one_of(answers, grades)
"""Pairs of scores that are 0 or 1, or anything in between that each unit writes exactly."""

quick = settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)
Scores = Sequence[tuple[float, float]]


def test_every_rule_has_gates_here() -> None:
    assert {rule for rule in RULES if rule.__module__.startswith("pytest_llmeval.")} == set(GATES)


def rows(scores: Sequence[float], system: str, repeat: int) -> list[ResultRow]:
    return [
        ResultRow(f"c{place:03}", "m", score, labels={"doc": f"d{place // 6}"}, system=system, repeat=repeat)
        for place, score in enumerate(scores)
    ]


def verdict_on(
    keys: Mapping[str, Any],
    pairs: Scores,
    root: Path,
    *,
    repeats: int = 1,
    lost: Sequence[tuple[int, int]] = (),
    **options: Any,
) -> GateVerdict:
    """Judge pairs of a score before and one now: of two runs, or of two systems if the gate is against one."""
    every = range(1, repeats + 1)
    olds, news = zip(*pairs, strict=True)
    base = [row for repeat in every for row in rows(olds, "without" if "against" in keys else "", repeat)]
    system = "with" if "against" in keys else ""
    ran = [row for repeat in every for row in rows(news, system, repeat)]
    written = [row for row in ran if (int(row.case[1:]), row.repeat) not in lost]
    before = [*base, *ran] if "against" in keys else base
    now = [*base, *written] if "against" in keys else written
    return judge_results(now, before, (), GateOptions(Document("", {"gates": [keys]}), **options), root)


def in_unit(keys: Mapping[str, Any], factor: float, shift: float) -> dict[str, Any]:
    """Return a gate for scores that are multiplied and shifted: of a negative factor, less is better."""
    scaled = dict(keys)
    for key in ("max_drop", "min_gain"):
        if key in keys:
            scaled[key] = abs(factor) * keys[key]
    if "min" in keys:
        limit = scaled.pop("min")
        scaled["max" if factor < 0 else "min"] = factor * limit + shift
    if factor < 0:
        mirrors = {"min(m)": "max(m)", "max(m)": "min(m)", "low(m)": "high(m)", "high(m)": "low(m)", "p10(m)": "p90(m)"}
        scaled["metric"] = mirrors.get(keys["metric"], keys["metric"])
    return scaled


@every_gate
@quick
@given(scores, st.sampled_from([(100.0, 0.0), (4.0, 1.0), (-1000.0, 250.0)]))
def test_a_change_of_the_unit_changes_no_verdict(tmp_path: Path, keys: Any, pairs: Any, unit: Any) -> None:
    factor, shift = unit
    low, high = sorted([shift, shift + factor])
    scaled_pairs = [(factor * old + shift, factor * new + shift) for old, new in pairs]
    plain = verdict_on(keys, pairs, tmp_path)
    scaled = verdict_on(
        in_unit(keys, factor, shift),
        scaled_pairs,
        tmp_path,
        ranges={"m": (low, high)},
        lower_is_better=["m"] if factor < 0 else [],
    )
    assert (plain.word, plain.code()) == (scaled.word, scaled.code()), (plain.why, scaled.why)


@every_gate
@quick
@given(scores, st.integers(0, 100))
def test_a_worse_answer_makes_no_verdict_better(tmp_path: Path, keys: Any, pairs: Any, place: int) -> None:
    before = verdict_on(keys, pairs, tmp_path)
    worse = list(pairs)
    worse[place % len(pairs)] = (pairs[place % len(pairs)][0], 0.0)
    after = verdict_on(keys, worse, tmp_path)
    assert RANKS.index(after.decision) <= RANKS.index(before.decision), (before.why, after.why)


@every_gate
@quick
@given(scores, st.sets(st.tuples(st.integers(0, 11), st.integers(1, 2)), min_size=1, max_size=12))
def test_nothing_passes_by_what_was_not_written(tmp_path: Path, keys: Any, pairs: Any, lost: Any) -> None:
    verdict = verdict_on(keys, pairs, tmp_path, repeats=2, lost=sorted(lost))
    assert verdict.decision != "passed", verdict.why
    assert verdict.missing or verdict.errored

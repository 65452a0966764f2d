"""Bridges between judges in score files."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.baselines.comparable import Comparable
from pytest_llmeval.baselines.scores import Bridge, bridge_of, decoded, encoded, shifts_between
from pytest_llmeval.gates.statistics.pairing import Shift

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
        | st.builds(Shift, numbers, numbers, numbers, st.just("a"), st.text("b"), st.text()),
    ),
)


def comparable(**judged: dict[str, str]) -> Comparable:
    return Comparable("c", "d", "", {}, judged)


@given(st.lists(bridges, max_size=12), st.dictionaries(st.text(), judges))
def test_bridges_come_back_in_their_order_and_leave_the_judges_alone(many: list[Bridge], known: dict[str, Any]) -> None:
    known = {name: entry for name, entry in known.items() if "bridge" not in entry and not name.startswith("bridge ")}
    written = json.loads(json.dumps({**known, **encoded(many)}, sort_keys=True))
    assert decoded(written) == (known, tuple(many))


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


@pytest.mark.parametrize(
    "changes",
    [
        {"bridge": "[]"},
        {"bridge": "{"},
        {"bridge": json.dumps({"evaluator": 1, "old": OLD, "new": NEW, "commit": None})},
        {"bridge": json.dumps({"evaluator": "judge", "old": [], "new": NEW, "commit": None})},
        {"bridge": json.dumps({"evaluator": "judge", "old": OLD, "new": {}, "commit": None})},
        {"shift of judge_score": "[1, 2]"},
        {"shift of judge_score": "[1, 2, NaN]"},
        {"shift of judge_score": '["a", 1, 2]'},
        {"shift of judge_score": '[0, 1, 2, "a", "b", "c", "d"]'},
    ],
)
def test_what_is_no_bridge_is_a_fault(changes: dict[str, str]) -> None:
    entry = {**encoded([BRIDGE])["bridge 1"], **changes}
    with pytest.raises(ValueError, match="found no bridge between judges"):
        decoded({"bridge 1": entry})

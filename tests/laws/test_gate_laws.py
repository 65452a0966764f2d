"""Laws of verdicts on drops: no other gate, group or case changes the rule of a gate; sentences fit their numbers."""

import re
from typing import Any

from builders import gate, pairing, run
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pytest_llmeval.gates.contract import GateResult
from pytest_llmeval.gates.drop import judge_together

cases = st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.5, 1.0]))
runs = st.lists(cases, min_size=1, max_size=14)
limits = st.sampled_from([0.0, 0.02, 0.1, 0.4])


def verdicts(max_drop: float, *several: list[tuple[float, float]]) -> list[GateResult]:
    return judge_together(
        [gate(max_drop).examine(pairing(run([a for a, _ in each]), run([b for _, b in each]))) for each in several]
    )


@settings(max_examples=40, deadline=None)
@given(runs, st.lists(runs, min_size=1, max_size=3), runs, limits)
def test_a_gate_more_turns_no_other_red_and_changes_no_rule(
    own: list[Any], others: list[Any], added: list[Any], max_drop: float
) -> None:
    before = verdicts(max_drop, own, *others)[0]
    after = verdicts(max_drop, own, *others, added)[0]
    assert before.undecided == after.undecided
    assert not (before.outcome != "failed" and after.outcome == "failed")


@settings(max_examples=30, deadline=None)
@given(runs, runs, limits)
def test_a_case_more_of_another_gate_changes_no_rule(own: list[Any], other: list[Any], max_drop: float) -> None:
    alone = verdicts(max_drop, own, other)[0]
    longer = verdicts(max_drop, own, [*other, (1.0, 1.0)])[0]
    assert alone.undecided == longer.undecided


@settings(max_examples=60, deadline=None)
@given(
    runs,
    st.sampled_from([0.02, 0.1, 0.4]),
    st.sampled_from(["proven_safe", "proven_drop"]),
    st.sampled_from(["bootstrap", "bca", "permutation"]),
)
def test_no_sentence_is_contradicted_by_the_observation(own: list[Any], max_drop: float, rule: str, test: str) -> None:
    assume(len(own) > 1)
    both = pairing(run([a for a, _ in own]), run([b for _, b in own]))
    (found,) = judge_together([gate(max_drop, rule=rule, test=test).examine(both)])
    observed = found.value
    assume(observed is not None)
    assert observed is not None
    if " is ruled out" in found.reason:
        assert observed <= max_drop
    if " is established" in found.reason:
        assert observed >= max_drop
    assert not (found.outcome == "failed" and re.search(r", p 1\.0000", found.reason))

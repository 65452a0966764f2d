"""Laws of verdicts on drops: no other gate, group or case changes the rule of a gate; sentences fit their numbers."""

import re
from typing import Any

from builders import gate, pairing, run
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pytest_llmeval.core import GateResult
from pytest_llmeval.gates import ChangeGate, GateEvidence
from pytest_llmeval.gates._change import ExaminedChange

cases = st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.5, 1.0]))
runs = st.lists(cases, min_size=1, max_size=14)
limits = st.sampled_from([0.0, 0.02, 0.1, 0.4])

labelled = st.tuples(cases, st.sampled_from(["a", "b", "c"]))
options: list[dict[str, Any]] = [
    {},
    {"undecided": "pass"},
    {"undecided": "fail"},
    {"primary": True},
    {"metric": "loss"},
    {"test": "permutation", "alternative": "less"},
    {"by": "talk"},
    {"by": "talk", "adjust": "fdr", "min_cases": 2},
    {"cluster_by": "talk"},
    {"rule": "non_inferiority"},
]
gates = st.builds(lambda max_drop, more: gate(max_drop, **more), limits, st.sampled_from(options))
LoadedSuite = tuple[list[tuple[tuple[float, float], str]], list[ChangeGate]]
falls = st.tuples(st.sampled_from([*[(0.0, 1.0)] * 4, (1.0, 1.0), (1.0, 0.0)]), st.sampled_from(["a", "b"]))
suites = st.tuples(
    st.lists(labelled, min_size=1, max_size=14) | st.lists(falls, min_size=3, max_size=8),
    st.lists(gates | st.just(gate()), min_size=1, max_size=3),
)


def examined(suite: LoadedSuite) -> list[GateEvidence]:
    own, own_gates = suite
    labels = [label for _, label in own]
    both = pairing(run([here for (here, _), _ in own], labels), run([there for (_, there), _ in own], labels))
    return [each.examine(both) for each in own_gates]


def verdicts(*several: list[GateEvidence]) -> list[GateResult]:
    """Judge the gates of several suite files as one family."""
    files = [f"{number}.eval.yaml" for number, findings in enumerate(several) for _ in findings]
    return GateEvidence.judge_together([each for findings in several for each in findings], files)


def same_rule(finding: GateEvidence, old: GateResult, new: GateResult) -> bool:
    """Return whether a gate is decided by the same rule; the level at which it is proven to fail may be another.

    Where it does not fail any more, it is what it is without a proof.
    """
    if old.undecided != new.undecided:
        return False
    if not finding.gate.claims:
        return old == new
    green = [each.outcome for each in (old, new) if each.outcome != "failed"]
    return len({*green}) <= 1 and all((each == "undecided") == new.undecided for each in green)


@settings(max_examples=30, deadline=None)
@given(suites, suites)
def test_a_gate_more_turns_no_other_red_and_changes_no_rule(own: LoadedSuite, other: LoadedSuite) -> None:
    """The gate is added to the same suite, or to another file of the family."""
    here, there = examined(own), examined(other)
    for first, second in ((here[:-1], there), (here, there[:-1])):
        before = verdicts(first, second)
        after = verdicts(here, there)
        after = [*after[: len(first)], *after[len(here) : len(here) + len(second)]]
        for finding, old, new in zip([*first, *second], before, after, strict=True):
            assert same_rule(finding, old, new)
            assert not (old.outcome != "failed" and new.outcome == "failed")


@settings(max_examples=30, deadline=None)
@given(suites, suites, st.tuples(cases, st.sampled_from(["a", "new"])))
def test_a_case_or_a_group_more_of_other_gates_changes_no_rule(
    own: LoadedSuite, other: LoadedSuite, added: Any
) -> None:
    here = examined(own)
    before, after = (verdicts(here, examined(each)) for each in (other, ([*other[0], added], other[1])))
    for finding, old, new in zip(here, before, after, strict=False):
        assert same_rule(finding, old, new)


@settings(max_examples=20, deadline=None)
@given(st.lists(labelled, min_size=2, max_size=14), limits, st.lists(cases, min_size=1, max_size=4))
def test_a_group_more_changes_no_rule_of_the_groups_of_a_gate(own: Any, max_drop: float, added: list[Any]) -> None:
    by = [gate(max_drop, by="talk")]
    before, after = (examined((each, by))[0].examined for each in (own, [*own, *[(case, "new") for case in added]]))
    there = {each.group: (each.undecided, each.p_value, far_changes(each)) for each in after}
    assert {each.group: (each.undecided, each.p_value, far_changes(each)) for each in before}.items() <= there.items()


def far_changes(change: ExaminedChange) -> Any:
    return None if change.evidence is None or change.fault else change.evidence.far_changes(change.metric)


@settings(max_examples=60, deadline=None)
@given(
    runs,
    st.sampled_from([0.02, 0.1, 0.4]),
    st.sampled_from(["non_inferiority", "significant_drop"]),
    st.sampled_from(["bootstrap", "bca", "permutation"]),
)
def test_no_sentence_is_contradicted_by_the_observation(own: list[Any], max_drop: float, rule: str, test: str) -> None:
    assume(len(own) > 1)
    both = pairing(run([a for a, _ in own]), run([b for _, b in own]))
    (found,) = GateEvidence.judge_together([gate(max_drop, rule=rule, test=test).examine(both)])
    observed = found.value
    assume(observed is not None)
    assert observed is not None
    if " is ruled out" in found.reason:
        assert observed <= max_drop
    if " is significant" in found.reason:
        assert observed >= max_drop
    assert not (found.outcome == "failed" and re.search(r", p 1\.0000", found.reason))

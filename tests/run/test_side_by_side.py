"""Gates between systems: paired, judged together, and not judged where one of the two did not run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from builders import gate_of

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.core import GateResult, MetricIndex
from pytest_llmeval.gates import ChangeGate, GateEvidence
from pytest_llmeval.numbers import CaseStatistics, RunPairing
from pytest_llmeval.run import CollectedSuite, JudgedSuite
from pytest_llmeval.run._finishing import compare_variants
from pytest_llmeval.run._judging import _claims_between, _judge_claims
from pytest_llmeval.run._stages import MeasuredSuite
from pytest_llmeval.suites import LoadedSuite, SuiteKey

TEXT = get_evaluator("text", metrics=["exact_match"])
RIGHT = {"large": range(38), "small": range(12), "same": range(38)}


def judged(
    *gates: ChangeGate, names: Sequence[str] = ("large", "small", "same"), apart: bool = False
) -> dict[str, JudgedSuite]:
    suite = LoadedSuite("s", Path("s.eval.yaml"), evaluators={"text": TEXT}, cases=(), gates=gates)
    found = []
    for name in names:
        cases = [
            Case(f"{name * apart}{each}", expected="yes", prediction="yes" if each in RIGHT[name] else "no")
            for each in range(40)
        ]
        result = score(TEXT, cases)
        ran = CollectedSuite(SuiteKey("s.eval.yaml", "s.eval.yaml", variant=name), suite, result.records, 40)
        found.append(JudgedSuite(MeasuredSuite(ran, result)))
    (variants,) = JudgedSuite.by_variant(found)
    return variants


def judge_between(variants: Mapping[str, JudgedSuite]) -> dict[str, list[GateResult]]:
    verdicts = _judge_claims(list(_claims_between(variants)), None)
    return {key.variant: gates for key, gates in verdicts.items()}


def gate(**entry: object) -> ChangeGate:
    return gate_of({"metric": "exact_match", **entry})


def outcome(entry: ChangeGate, names: Sequence[str] = ("large", "small", "same")) -> dict[str, GateResult]:
    return {system: result for system, (result,) in judge_between(judged(entry, names=names)).items()}


def test_a_gain_passes_only_if_it_is_established() -> None:
    passed = outcome(gate(system="large", against="small", min_gain=0.3))["large"]
    assert (passed.outcome, passed.gate) == ("passed", "gain(exact_match) >= 0.3, against small")
    assert (passed.value, passed.limit) == (pytest.approx(0.65), 0.3)
    assert "a gain above 0.3 is significant" in passed.reason
    failed = outcome(gate(system="large", against="small", min_gain=0.6))["large"]
    assert failed.outcome == "failed"
    assert "a gain above 0.6 is not significant" in failed.reason


def test_no_gain_is_established_where_no_case_changed() -> None:
    assert outcome(gate(system="large", against="same", min_gain=0))["large"].outcome == "failed"


@pytest.mark.parametrize("test", ["bootstrap", "bca", "mcnemar", "mcnemar_mid_p", "permutation"])
def test_every_test_finds_a_clear_gain_and_no_gain_where_there_is_a_loss(test: str) -> None:
    assert outcome(gate(system="large", against="small", min_gain=0.2, test=test))["large"].outcome == "passed"
    assert outcome(gate(system="small", against="large", min_gain=0.2, test=test))["small"].outcome == "failed"


def test_no_gain_is_proven_by_a_test_of_the_typical_case() -> None:
    with pytest.raises(ValueError, match="found test wilcoxon with min_gain, expected one of bootstrap"):
        gate(system="large", against="small", min_gain=0.2, test="wilcoxon")


def test_a_gain_may_be_refused_only_if_its_lack_is_established() -> None:
    close = gate(system="large", against="small", min_gain=0.6, rule="significant_drop")
    assert outcome(close)["large"].outcome == "passed"
    lost = outcome(gate(system="small", against="large", min_gain=0.1, rule="significant_drop"))["small"]
    assert lost.outcome == "failed"
    assert "a gain of 0.1 is ruled out" in lost.reason


def test_a_drop_between_systems_is_that_of_a_baseline() -> None:
    limit = gate(system="small", against="large", max_drop=0.1)
    variants = judged(limit)
    run, baseline = (CaseStatistics.exact(variants[name].records) for name in ("small", "large"))
    (expected,) = GateEvidence.judge_together(
        [limit.examine(RunPairing(run, baseline, MetricIndex.from_evaluators({"text": TEXT})))]
    )
    assert judge_between(variants) == {"small": [expected]}
    assert expected.outcome == "failed"


def test_a_gate_without_system_holds_for_every_other_one() -> None:
    found = outcome(gate(against="large", max_drop=0.1))
    assert {system: result.outcome for system, result in found.items()} == {"small": "failed", "same": "passed"}


def test_a_gate_on_a_system_that_did_not_run_is_not_judged() -> None:
    found = outcome(gate(system="large", against="small", min_gain=0.1), names=("large", "same"))
    assert found["large"].outcome == "not_judged"
    assert found["large"].reason == "not evaluated: no system 'small' ran"


def test_systems_without_a_common_case_are_not_compared() -> None:
    entries = (gate(system="large", against="small", min_gain=0), gate(system="large", against="small", max_drop=1))
    variants = judged(*entries, names=("large", "small"), apart=True)
    for found in judge_between(variants)["large"]:
        assert (found.outcome, found.reason) == ("failed", "no case is answered by both 'large' and 'small'")
    table = compare_variants(variants)
    assert table is not None
    assert [dict(each.differences) for each in table.systems] == [{}, {}]


def test_one_system_alone_has_no_table() -> None:
    assert compare_variants(judged(names=("large",))) is None


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ({"system": "a", "against": "a", "max_drop": 0.1}, "found 'a' as system and as against"),
        ({"against": "a", "max_drop": 0.1, "min_gain": 0.1}, "found max_drop beside min_gain"),
        ({"against": "a", "min": 0.1, "max_drop": 0.1}, "found min beside max_drop"),
        ({"against": "a", "max_drop": 0.1, "max_drift": 0.2}, "found max_drift with against"),
        ({"against": "a", "max_drop": 0.1, "rule": "anytime"}, "against does not apply to a gate with rule anytime"),
        ({"against": "a", "min_gain": -0.1}, "found min_gain -0.1, expected a finite number of at least 0"),
    ],
)
def test_what_contradicts_itself_is_refused(entry: dict[str, object], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        gate(**entry)

"""When the gates of a suite are decided: on an example suite with a scripted judge, as in a complete run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders import KnownSuites, parse_gate
from msgspec import structs

from pytest_llmeval.baselines import Keeper, SnapshotMode, Stamp
from pytest_llmeval.core import Case, CaseRecord, Observation
from pytest_llmeval.numbers import summarize
from pytest_llmeval.run import Collected, CollectedSuite, RunRecord, RunScope, RunTerms
from pytest_llmeval.suites import LoadedSuite, Registry, SuiteKey, load_suite
from pytest_llmeval.suites._settings import StopSettings
from pytest_llmeval.workbench.early._stopping import stop_early

EXAMPLE = Path(__file__).parents[2] / "example_suites" / "memory_qa" / "memory_qa.eval.yaml"
COPIES = 8


@pytest.fixture(scope="module")
def example() -> LoadedSuite:
    """The example suite with eight of each of its cases, and a gate on what its judge says."""
    suite = load_suite(EXAMPLE, Registry.installed(), root=EXAMPLE.parent)
    cases = [copied(each, f"{each.id} {number}") for number in range(COPIES) for each in suite.cases]
    gates = (parse_gate("judge_score >= 0.7"), parse_gate("mean(judge_score) <= 0.99"))
    return structs.replace(suite, cases=tuple(cases), gates=gates, snapshot=None, stop=StopSettings())


def copied(case: Case, name: str) -> Case:

    return replace(case, id=name, line=0)


def scripted(suite: LoadedSuite, seed: int, share: float) -> list[CaseRecord]:
    """Return records of cases of which the judge accepts a share."""
    said = np.random.default_rng(seed).random(len(suite.cases)) < share
    return [
        CaseRecord(case.id, case.labels, observations={"judge": Observation({"score": float(yes), "n": 1})})
        for case, yes in zip(suite.cases, said, strict=True)
    ]


def run_of(suite: LoadedSuite, seed: str, records: list[CaseRecord]) -> CollectedSuite:
    ordered = suite.in_order(seed)
    whole = CollectedSuite(SuiteKey("/s.eval.yaml", "s.eval.yaml"), ordered, records, len(ordered.cases))
    scope = RunScope(RunRecord(), RunTerms(), KnownSuites(Path("/"), {}), Keeper(SnapshotMode()), Stamp("", None))
    (made,) = stop_early(Collected([whole]), scope).suites
    return made


@pytest.mark.parametrize(("share", "seeds"), [(0.9, 30), pytest.param(0.5, 70, marks=pytest.mark.release)])
def test_early_verdicts_are_those_of_the_complete_run(example: LoadedSuite, share: float, seeds: int) -> None:
    records = scripted(example, 7, share)
    whole = [gate.judge(summarize(example.metrics, records, confidence=None)).outcome for gate in example.gates]
    early = same = 0
    for seed in range(seeds):
        made = run_of(example, f"commit {seed}", records)
        if made.stop is not None:
            early += 1
            same += [each.outcome for each in made.stop.gates] == whole
            assert made.stop.report.cases == len(made.records) < len(example.cases)
    assert early > 0.9 * seeds
    assert same >= 0.99 * early


def test_near_the_limit_all_cases_run(example: LoadedSuite) -> None:
    records = scripted(example, 1, 0.7)
    mean = summarize(example.metrics, records, confidence=None).metrics["judge_score"].value
    assert mean is not None
    near = structs.replace(example, gates=(parse_gate(f"judge_score >= {mean}"),))
    assert sum(run_of(near, f"commit {seed}", records).stop is not None for seed in range(20)) <= 10


def test_results_that_arrived_early_do_not_count(example: LoadedSuite) -> None:
    records = scripted(example, 7, 0.9)
    made = run_of(example, "commit", records)
    assert made.stop is not None
    assert made.stop.report.ran_ahead == made.stop.report.not_needed == len(example.cases) - made.stop.report.cases
    order = made.suite.order
    assert order is not None
    counted = {*order.ids[: made.stop.report.cases]}
    partly = [each if each.id in counted else CaseRecord(each.id, outcome="not_run") for each in records]
    again = run_of(example, "commit", partly)
    assert again.stop is not None
    assert again.stop.report.ran_ahead == 0
    assert [each.reason for each in again.stop.gates] == [each.reason for each in made.stop.gates]
    assert again.records == made.records


def test_a_case_that_has_not_run_before_a_look_decides_nothing(example: LoadedSuite) -> None:
    records = scripted(example, 7, 0.9)
    order = example.in_order("commit").order
    assert order is not None
    lacking = [CaseRecord(each.id, outcome="not_run") if each.id == order.ids[3] else each for each in records]
    assert run_of(example, "commit", lacking).stop is None

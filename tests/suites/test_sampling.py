"""Samples of a suite's cases: drawn by strata, stable, and weighted back."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import gate_of

from pytest_llmeval.core import CaseRecord, MetricValue, Observation, SuiteError
from pytest_llmeval.evaluators._text import TextEvaluator
from pytest_llmeval.gates import GateEvidence
from pytest_llmeval.numbers import CaseStatistics, RunPairing, summarize
from pytest_llmeval.suites import LoadedSuite, Registry, load_suite
from pytest_llmeval.suites._settings import SampleSettings
from pytest_llmeval.suites._suite import sampled

SIZES = {"billing": 500, "returns": 300, "shipping": 195, "fraud": 5}


def rows(sizes: dict[str, int] = SIZES) -> list[dict[str, Any]]:
    return [
        {"id": f"{topic} {number}", "expected": "x", "prediction": "x", "labels": {"topic": topic}}
        for topic, size in sizes.items()
        for number in range(size)
    ]


def suite_of(tmp_path: Path, sample: object, cases: list[dict[str, Any]] | None = None, **more: object) -> LoadedSuite:
    path = tmp_path / "s.eval.json"
    data = {"evaluators": [{"text": {"metrics": ["f1"]}}], "cases": cases or rows(), "sample": sample, **more}
    path.write_text(json.dumps(data), encoding="utf-8")
    return load_suite(path, Registry.installed(), root=tmp_path, display_path="s.eval.json")


def ids(suite: LoadedSuite) -> list[str]:
    return [case.id for case in suite.cases]


def test_each_stratum_has_its_share_and_one_case_at_least(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, {"cases": 100, "by": "topic"})
    assert Counter(case.labels["topic"] for case in suite.cases) == {
        "billing": 50,
        "returns": 30,
        "shipping": 19,
        "fraud": 1,
    }
    assert suite.sample is not None
    assert str(suite.sample.report) == "a sample of 100 of 1000 cases by topic, weighted back"
    # 195 cases are represented by 19, and 5 by one.
    weights = {name: suite.sample.weights.get(f"{name}", 1.0) for name in ids(suite)}
    assert {weight for name, weight in weights.items() if name.startswith("billing")} == {1.0}
    assert {round(weight, 9) for name, weight in weights.items() if name.startswith("shipping")} == {
        round(19.5 / 19, 9)
    }
    assert {weight for name, weight in weights.items() if name.startswith("fraud")} == {0.5}
    assert sum(weights.values()) == pytest.approx(100)


def test_the_same_seed_gives_the_same_sample_and_another_one_another(tmp_path: Path) -> None:
    drawn = [ids(suite_of(tmp_path, {"cases": 50, "seed": seed})) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0] == sorted(drawn[0], key=ids(suite_of(tmp_path, None)).index)


def test_new_cases_do_not_reshuffle_the_others(tmp_path: Path) -> None:
    before = {*ids(suite_of(tmp_path, {"cases": 100, "by": "topic"}))}
    after = {*ids(suite_of(tmp_path, {"cases": 100, "by": "topic"}, rows({**SIZES, "billing": 503})))}
    assert len(before & after) >= 97
    reversed_file = {*ids(suite_of(tmp_path, {"cases": 100, "by": "topic"}, rows()[::-1]))}
    assert reversed_file == before


def test_a_sample_without_strata_is_not_weighted(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, {"cases": 100})
    assert suite.sample is not None
    assert suite.sample.weights == {}
    assert len(suite.cases) == suite.total == 100


def test_cases_that_always_run_are_in_every_sample_and_stand_for_themselves(tmp_path: Path) -> None:
    cases = rows()
    cases[7]["always"] = True
    suite = suite_of(tmp_path, {"cases": 100}, cases)
    assert suite.sample is not None
    assert cases[7]["id"] in ids(suite)
    assert suite.sample.weights[cases[7]["id"]] == pytest.approx(0.1)


def test_a_suite_of_fewer_cases_is_no_sample(tmp_path: Path) -> None:
    assert suite_of(tmp_path, {"cases": 1000}).sample is None


@pytest.mark.parametrize(
    ("sample", "fault"),
    [
        (200, "sample: found the number 200, expected a mapping such as {cases: 200, by: topic}"),
        ({"cases": 0}, "sample.cases: found 0, expected a number of cases of at least 1"),
        (
            {"cases": 9, "by": "topci"},
            "sample.by: unknown label topci, did you mean topic?",
        ),
        ({"by": "topic"}, "sample: cases is missing"),
    ],
)
def test_faults_of_the_key(tmp_path: Path, sample: object, fault: str) -> None:
    try:
        found = str(SuiteError(suite_of(tmp_path, sample).faults))
    except SuiteError as error:
        found = str(error)
    assert fault in found


def scored(suite: LoadedSuite, means: dict[str, float], seed: int) -> list[CaseRecord]:
    rng = np.random.default_rng(seed)
    records = [
        CaseRecord(
            case.id,
            case.labels,
            observations={"text": Observation({"f1": float(rng.random() < means[case.labels["topic"]]), "f1.n": 1})},
        )
        for case in suite.cases
    ]
    return records if suite.sample is None else suite.sample.weigh(records)


MEANS = {"billing": 0.9, "returns": 0.7, "shipping": 0.5, "fraud": 0.0}


def metric(records: list[CaseRecord], **more: float) -> MetricValue:
    return summarize({"text": TextEvaluator(metrics=("f1",))}, records, **more).metrics["f1"]  # type: ignore[arg-type]


def test_values_and_means_are_those_of_all_cases(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, {"cases": 100, "by": "topic"})
    records = scored(suite, {"billing": 1.0, "returns": 1.0, "shipping": 1.0, "fraud": 0.0}, 1)
    found = metric(records)
    assert found.value == pytest.approx(1 - 5 / 1000)
    assert found.mean == pytest.approx(found.value)
    assert found.scored == 100


def test_intervals_are_narrower_by_what_was_drawn(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, {"cases": 400})
    records = scored(suite, MEANS, 1)
    apart, corrected = metric(records), metric(records, sampled=0.4)
    assert apart.low is not None
    assert corrected.low is not None
    assert apart.value is not None
    assert (corrected.value - corrected.low) / (apart.value - apart.low) == pytest.approx(0.6**0.5)  # type: ignore[operator]


@pytest.mark.release
@pytest.mark.parametrize("by", [None, "topic"])
def test_intervals_hold_the_value_of_all_cases_as_often_as_they_say(tmp_path: Path, by: str | None) -> None:
    """The cases are fixed, and which of them are drawn is left to chance: other seeds."""
    whole = suite_of(tmp_path, None)
    truth = {each.id: each for each in scored(whole, MEANS, 3)}
    value = metric(list(truth.values())).value
    assert value is not None
    hit = 0

    for seed in range(200):
        suite = sampled(whole, SampleSettings(200, by, seed))
        assert suite.sample is not None
        found = metric(suite.sample.weigh(truth[name] for name in ids(suite)), sampled=suite.sample.share)
        assert found.low is not None
        assert found.high is not None
        hit += found.low <= value <= found.high
    assert hit >= 0.92 * 200, hit


def test_a_drop_is_that_of_the_weighted_value(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, {"cases": 100, "by": "topic"})
    here, there = scored(suite, MEANS, 1), scored(suite, dict.fromkeys(MEANS, 0.95), 2)
    evaluators = {"text": TextEvaluator(metrics=("f1",))}
    pairing = RunPairing(CaseStatistics.from_records(here), CaseStatistics.from_records(there), evaluators)
    gate = gate_of({"metric": "f1", "max_drop": 0.01})
    (verdict,) = GateEvidence.judge_together([gate.examine(pairing)])
    values = [metric(records).value for records in (there, here)]
    assert verdict.value == pytest.approx(values[0] - values[1])  # type: ignore[operator]


def test_the_weights_of_a_run_are_those_of_both(tmp_path: Path) -> None:
    """A baseline of all cases is compared with a sample on the same cases, weighted alike."""
    suite, whole = suite_of(tmp_path, {"cases": 100, "by": "topic"}), suite_of(tmp_path, None)
    everything = scored(whole, MEANS, 1)
    assert suite.sample is not None
    same = suite.sample.weigh([each for each in everything if each.id in {*ids(suite)}])
    pairing = RunPairing(
        CaseStatistics.from_records(same),
        CaseStatistics.from_records(everything),
        {"text": TextEvaluator(metrics=("f1",))},
    )
    gate = gate_of({"metric": "f1", "max_drop": 0.01})
    (verdict,) = GateEvidence.judge_together([gate.examine(pairing)])
    assert verdict.value == pytest.approx(0.0)


def test_weights_survive_the_file_of_approved_statistics(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, {"cases": 100, "by": "topic"})
    kept = CaseStatistics.from_records(scored(suite, MEANS, 1))
    assert CaseStatistics.from_lines(kept.text.splitlines()).records == kept.records
    assert any(each.weight != 1 for each in kept.records)

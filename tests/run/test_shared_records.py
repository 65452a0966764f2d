"""Records of many cases: measured in blocks, and sharing what is alike."""

import gc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest
from msgspec import structs

import pytest_llmeval as ev
from pytest_llmeval import Case, Evaluator, Metric, Observation, Sums, get_evaluator, score
from pytest_llmeval.core import FloatArray
from pytest_llmeval.run import _measuring as records
from pytest_llmeval.run import _score as scoring

_STORY = {"narrative_events": [{"id": "e1", "action_layer": {"type": "flee"}}]}
_LAZY = {
    "segmentation": Case("a", "?", {"boundaries": [1, 4], "n_sentences": 9}, [2, 4, 7]),
    "narrative": Case("a", "A text.", _STORY, {"narrative_events": [{"id": "e1", "action_layer": {"type": "hide"}}]}),
}
"""Evaluators whose details are made when they are read, with a case."""

CASES = [Case(str(number), "?", "ab"[number % 2], "a", labels={"kind": str(number % 3)}) for number in range(7)]


@dataclass(frozen=True)
class Given(Evaluator):
    """Its observations are given, by case."""

    observations: Mapping[str, Observation | Exception] = field(default_factory=dict)

    name = "given"

    def describe(self) -> Sequence[Metric]:
        return [Metric("sum", low=None, high=None)]

    def measure(self, case: Case) -> Observation:
        found = self.observations[case.id]
        if isinstance(found, Exception):
            raise found
        return found

    def summarize(self, sums: Sums) -> dict[str, FloatArray]:
        return {"sum": sums["n"]}


def test_records_of_cases_that_measure_alike_share_the_observation() -> None:
    found = score(get_evaluator("classification"), CASES).records
    first, second = (record.observations for record in found[:2])
    assert all(record.observations is (second if number % 2 else first) for number, record in enumerate(found))
    assert [record.id for record in found] == list("0123456")
    assert [record.labels for record in found] == [case.labels for case in CASES]


@pytest.mark.parametrize(
    "other",
    [
        Observation({"n": 1.0}),
        Observation({"n": True}),
        Observation({"m": 1}),
        Observation({"n": 1}, details={"why": "x"}),
        Observation({"n": 1}, undefined={"sum": "x"}),
        Observation({"n": 1}, undefined={"sum": ["x"]}),  # type: ignore[dict-item]  # users' code is not checked
        Observation({"n": np.array(1.0)}),  # type: ignore[dict-item]  # works as a number
        Observation({"n": 1}, malformed="x"),
        Observation({"n": 1}, errored={"sum": "x"}),
        ValueError("x"),
    ],
    ids=repr,
)
def test_records_differ_in_whatever_differs(other: Observation | Exception) -> None:
    plain = Observation({"n": 1})
    given = Given(dict(zip("0123", (plain, other, plain, other), strict=True)))
    found = score(given, [Case(number, prediction="") for number in given.observations]).records
    for first, second, expected in zip(found[:2], found[2:], (plain, other), strict=True):
        assert structs.replace(first, id="") == structs.replace(second, id="")
        if isinstance(expected, Observation):
            assert repr(second.observations) == repr({"given": expected})
            assert second.outcome == ("failed" if expected.malformed else "errored" if expected.errored else "passed")
        else:
            assert (second.outcome, second.observations) == ("errored", {})


@pytest.mark.parametrize(("block", "kinds"), [(1, 9), (3, 9), (9, 0), (9, 1)])
def test_blocks_and_sharing_change_no_result(monkeypatch: pytest.MonkeyPatch, block: int, kinds: int) -> None:
    whole = score(get_evaluator("classification"), CASES, ["kind"])
    monkeypatch.setattr(scoring, "_BLOCK", block)
    monkeypatch.setattr(records, "_MOST_KINDS", kinds)
    parts = score(get_evaluator("classification"), CASES, ["kind"])
    assert (parts.metrics, parts.groups, parts.records) == (whole.metrics, whole.groups, whole.records)
    assert parts.cases == whole.cases


def test_scoring_in_python_leaves_the_garbage_collector_alone() -> None:
    seen = []

    def watch(case: Case) -> bool:
        seen.append((gc.isenabled(), gc.get_freeze_count()))
        return bool(case.prediction)

    enabled, frozen = gc.isenabled(), gc.get_freeze_count()
    score(watch, CASES)
    ev.suite("letters", cases=[{"id": "a", "expected": "a"}], evaluators=[watch]).run(lambda _: "a", progress=False)
    assert len(seen) == len(CASES) + 1
    # What was frozen before may go; nothing is added to it.
    assert all(each is enabled and count <= frozen for each, count in seen)


@pytest.mark.parametrize("name", _LAZY)
def test_details_that_nobody_has_read_keep_only_the_case(name: str) -> None:
    evaluator, case = get_evaluator(name), _LAZY[name]
    result = score(evaluator, [case])
    details = result.records[0].observations[name].lazy_details
    assert details is not None

    def remeasured() -> list[tuple[Evaluator, Case]]:
        return [part.args for part in gc.get_referents(details) if isinstance(part, partial)]

    assert remeasured() == [(evaluator, case)]
    assert result.cases[0].details[name] == evaluator.measure(case).details
    assert remeasured() == []

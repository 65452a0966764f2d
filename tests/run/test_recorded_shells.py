"""Recorded predictions in every shell: `run`, `arun`, ``llmeval score`` and items of pytest give the same records."""

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

import pytest_llmeval as ev
from pytest_llmeval import Case, Evaluator, Metric, Observation, Sums
from pytest_llmeval.core import CaseRecord
from pytest_llmeval.run import CaseRunner, LoadedCase, SuitePart, run_predicted
from pytest_llmeval.suites import SuiteKey

COUNT = 700
"""More cases than a worker of ``llmeval score`` gets at a time."""


@dataclass(frozen=True)
class Company(Evaluator):
    """The place of a case among those that are measured with it, as a model's rounding shows it."""

    name = "company"
    batch = 64

    def describe(self) -> Sequence[Metric]:
        return [Metric("place", high=None)]

    def measure(self, case: Case) -> Observation:
        return self.measure_many([case])[0]

    def measure_many(self, cases: Sequence[Case]) -> list[Observation]:
        return [Observation({"place": place / len(cases), "n": 1}) for place, _ in enumerate(cases)]

    def explain(self, case: Case, observation: Observation) -> Iterator[str]:
        del case, observation
        yield "measured"

    def summarize(self, sums: Sums) -> Mapping[str, Any]:
        return {"place": sums["place"] / sums["n"]}


def _case(number: int) -> dict[str, Any]:
    case: dict[str, Any] = {
        "id": f"c{number}",
        "input": number,
        "expected": "Paris",
        "labels": {"odd": str(number % 2)},
    }
    if number % 9:
        case["prediction"] = {"answer": ["Paris", "Rome", 7][number % 3], "usage": {"input_tokens": number}}
    if number % 50 < 2:
        case["tags"] = ["skip", "xfail"][number % 2 : number % 2 + 1]
    return case


@pytest.fixture(scope="module")
def suite() -> ev.Suite[Any, Any]:
    metrics = [ev.text(metrics=["f1"]), Company()]
    return ev.suite("recorded", cases=[_case(n) for n in range(COUNT)], evaluators=metrics, thresholds={"f1": 0.5})


def _plain(records: Iterable[CaseRecord]) -> list[str]:
    """Return records as JSON, without what is measured in seconds."""
    rows = [json.loads(msgspec.json.encode(each)) for each in records]
    for row in rows:
        for name in ("s", "answers"):  # texts of good answers are optional
            row.pop(name, None)
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def _scored(suite: ev.Suite[Any, Any], executor: Executor | None) -> list[str]:
    loaded = suite.load()
    parts = run_predicted(loaded, SuiteKey(str(loaded.path), "recorded"), executor)
    return _plain(record for part in parts for record in part.records)


def test_records_of_recorded_predictions_are_the_same_in_every_shell(suite: ev.Suite[Any, Any]) -> None:
    expected = _plain(suite.run(progress=False).records)
    assert len(expected) == COUNT
    assert _plain(asyncio.run(suite.arun(progress=False)).records) == expected
    assert _scored(suite, None) == expected
    with ThreadPoolExecutor(2) as executor:
        assert _scored(suite, executor) == expected
    loaded, runner = suite.load(), CaseRunner()
    key = SuiteKey(str(loaded.path), "recorded")
    ran = [runner.run(LoadedCase(loaded, each, key)) for each in loaded.cases if not each.tags]
    assert set(_plain(SuitePart.from_executions(key, COUNT, ran).records)) <= set(expected)
    runner.close(whole_run=True)


def test_without_a_report_only_failing_cases_are_explained(suite: ev.Suite[Any, Any]) -> None:
    loaded = suite.load()
    parts = run_predicted(loaded, SuiteKey(str(loaded.path), "recorded"), None, explains_all=False)
    explained = {(record.outcome, "company" in record.lines) for part in parts for record in part.records if record.ran}
    assert explained >= {("passed", False), ("failed", True)}
    assert ("passed", True) not in explained

"""Suites of results."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from pytest_llmeval.data import Document
from pytest_llmeval.exchange import _result_suites
from pytest_llmeval.exchange._result_suites import baseline_records, key_of, records_of, suite_of_results
from pytest_llmeval.exchange.results import ResultRow
from pytest_llmeval.run import run_predicted
from pytest_llmeval.suites import LoadedSuite

ROWS = [
    ResultRow("a", "f1", 0.5),
    ResultRow("a", "passed", 1),
    ResultRow("b", "f1", -0.0, labels={"topic": "tax"}),
    ResultRow("b", "passed", 0),
    ResultRow("without one", "f1", 0.25),
    ResultRow("errored", "f1", error="rate limit"),
    ResultRow("errored", "passed", 1),
    ResultRow("silent", "f1", abstained="no claim"),
    ResultRow("silent", "passed", 1),
    ResultRow("costly", "f1", 0.75, cost=0.5, latency=2),
    ResultRow("costly", "passed", 1),
    ResultRow("twice", "f1", 0.5),
    ResultRow("twice", "f1", 1, repeat=2),
    ResultRow("c", "passed", 1),
    ResultRow("c", "f1", 1),
]


@pytest.mark.parametrize("settings", [{}, {"thresholds": {"f1": 0.4}}, {"repeats": 2}, {"gates": ["f1 >= 0.4"]}])
def test_cases_that_are_alike_have_the_records_of_any_run(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = suite_of_results(ROWS, Document("settings", settings), tmp_path, expected=["missing"])
    scored = [record for part in run_predicted(suite, key_of("results", "", tmp_path), None) for record in part.records]
    monkeypatch.setattr(_result_suites, "_settled", lambda record, *_, **__: record)
    assert records_of(ROWS, suite, tmp_path) == {"": scored}
    assert [str(record.observations) for record in records_of(ROWS, suite, tmp_path)[""]] == [
        str(record.observations) for record in scored
    ]


@pytest.mark.parametrize("systems", [("",), ("app",), ("app", "new")])
@pytest.mark.parametrize("known", [["a", "b", "c", "costly", "twice", "errored"], ["other"]])
def test_a_baseline_has_the_records_of_the_suite_of_all_its_rows(
    known: list[str], systems: Sequence[str], tmp_path: Path
) -> None:
    suite_of = partial(suite_of_results, settings=Document("settings", {}), root=tmp_path)
    rows = [structs.replace(row, system=system) for system in systems for row in ROWS]
    records = baseline_records(rows, suite_of([ResultRow(name, "f1", 1) for name in known]), suite_of, tmp_path)
    expected = records_of(rows, suite_of(rows), tmp_path)
    assert (records, str(records)) == (expected, str(expected))


def test_a_baseline_loads_no_cases_that_are_alike(tmp_path: Path) -> None:
    rows, loaded = [ResultRow(f"q{number}", "f1", number / 10) for number in range(10)], list[str]()
    suite_of = partial(suite_of_results, settings=Document("settings", {}), root=tmp_path)

    def counted(rows: list[ResultRow], of_cases: list[ResultRow]) -> LoadedSuite:
        loaded.extend(row.case for row in of_cases)
        return suite_of(rows, of_cases=of_cases)

    assert len(baseline_records(rows, suite_of(rows[1:]), counted, tmp_path)[""]) == len(rows)
    assert loaded == ["q0", "q1"]


def test_cases_that_are_alike_are_scored_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [ResultRow(f"q{number}", "f1", number / 10) for number in range(10)]
    suite, asked = suite_of_results(rows, Document("settings", {}), tmp_path), list[str]()

    def counted(suite: Any, *more: Any) -> Any:
        asked.extend(case.id for case in suite.cases)
        return run_predicted(suite, *more)

    monkeypatch.setattr(_result_suites, "run_predicted", counted)
    assert [record.id for record in records_of(rows, suite, tmp_path)[""]] == [row.case for row in rows]
    assert asked == ["q0"]

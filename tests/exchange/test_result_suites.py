"""Suites of results."""

from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.data import Document
from pytest_llmeval.exchange import _result_suites
from pytest_llmeval.exchange._result_suites import key_of, records_of, suite_of_results
from pytest_llmeval.exchange.results import ResultRow
from pytest_llmeval.run import run_predicted

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


def test_cases_that_are_alike_are_scored_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [ResultRow(f"q{number}", "f1", number / 10) for number in range(10)]
    suite, asked = suite_of_results(rows, Document("settings", {}), tmp_path), list[str]()

    def counted(suite: Any, *more: Any) -> Any:
        asked.extend(case.id for case in suite.cases)
        return run_predicted(suite, *more)

    monkeypatch.setattr(_result_suites, "run_predicted", counted)
    assert [record.id for record in records_of(rows, suite, tmp_path)[""]] == [row.case for row in rows]
    assert asked == ["q0"]

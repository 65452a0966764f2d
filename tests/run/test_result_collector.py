"""What items reported, put together by suite."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_llmeval import Case
from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.run.execute import Execution
from pytest_llmeval.run.payload import encode
from pytest_llmeval.run.result_collector import ResultCollector
from pytest_llmeval.suite.suite import SuiteKey

KEY = SuiteKey("/s/b.eval.yaml", "b.eval.yaml")


def payload(*ids: str, key: SuiteKey = KEY) -> str:
    return encode(key, 3, [Execution(Case(each), CaseRecord(each)) for each in ids], predictions=False)


def report(nodeid: str, when: str = "call", outcome: str = "passed") -> Any:
    return SimpleNamespace(
        location=("b.eval.yaml", 0, ""),
        nodeid=nodeid,
        when=when,
        outcome=outcome,
        failed=outcome == "failed",
        duration=0.5,
    )


def outcomes(collector: ResultCollector) -> dict[str, tuple[str, str | None]]:
    return {name: (each.outcome, each.reason) for suite in collector.suites() for name, each in suite.records.items()}


def test_of_an_item_that_runs_again_the_last_result_counts() -> None:
    collector = ResultCollector()
    collector.take(report("a", outcome="failed"), payload("a"))
    collector.take(report("a", "setup"), None)
    assert outcomes(collector) == {}
    collector.take(report("a"), payload("a"))
    assert outcomes(collector) == {"a": ("passed", None)}


@pytest.mark.parametrize(
    ("reports", "told"),
    [
        ([("call", "failed")], ("failed", "the test failed after scoring")),
        ([("call", "skipped")], ("skipped", None)),
        ([("call", "passed"), ("teardown", "failed")], ("errored", "teardown failed")),
        ([("call", "passed"), ("teardown", "passed")], ("passed", None)),
    ],
)
def test_what_pytest_says_of_an_item_decides(reports: list[tuple[str, str]], told: tuple[str, str | None]) -> None:
    collector = ResultCollector()
    for when, outcome in reports:
        collector.take(report("a", when, outcome), payload("a") if when == "call" else None)
    assert outcomes(collector) == {"a": told}


def test_suites_come_in_order_and_silent_ones_with_them() -> None:
    collector = ResultCollector()
    for variant in ("gpt", "bot"):
        collector.take(report(f"a[{variant}]"), payload("a", key=KEY._replace(variant=variant)))
    silent = [KEY, SuiteKey("/s/a.eval.yaml", "a.eval.yaml")]
    found = [(each.key.shown, each.key.variant, each.total, list(each.records)) for each in collector.suites(silent)]
    assert found == [("a.eval.yaml", "", 0, []), ("b.eval.yaml", "bot", 3, ["a"]), ("b.eval.yaml", "gpt", 3, ["a"])]

"""The record of a run: what items report, and what comes of it in the main process."""

import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from builders import entry, finished, length_suite
from msgspec import structs
from servers import PATIENCE

from pytest_llmeval import Case, Observation
from pytest_llmeval.core import AnswerShown, CaseOutcome, CaseRecord, JudgingShown, input_digest
from pytest_llmeval.run import Execution, RunRecord, SuitePart
from pytest_llmeval.suites import SuiteKey

SUITE = length_suite(Case("a", expected="x"))
KEY = SuiteKey("/root/s.eval.yaml", "s.eval.yaml")


def part(*records: CaseRecord, key: SuiteKey = KEY) -> SuitePart:
    return SuitePart(key, len(records), records)


def report(nodeid: str, when: str = "call", outcome: str = "passed") -> Any:
    return SimpleNamespace(location=("s.eval.yaml", 0, ""), nodeid=nodeid, when=when, outcome=outcome, duration=0.5)


def take(run: RunRecord, nodeid: str, outcome: str, results: SuitePart) -> None:
    """Let an item report its call, and its results at the end."""
    run.take(report(nodeid, outcome=outcome), None)
    run.take(report(nodeid, "teardown"), results)


def outcomes(run: RunRecord) -> list[tuple[str, CaseOutcome, str | None]]:
    (suite,) = finished(run, [SUITE]).report.suites
    return [(case.id, case.outcome, case.reason) for case in suite.cases]


def test_of_an_item_that_runs_again_the_last_result_counts() -> None:
    run = RunRecord(dropped={KEY})
    take(run, "a", "failed", part(CaseRecord("a", outcome="failed", reason="no")))
    run.take(report("a", "setup"), None)
    assert outcomes(run) == [("a", "not_run", "not selected")]
    take(run, "a", "passed", structs.replace(part(CaseRecord("a")), attempts=2))
    assert outcomes(run) == [("a", "passed", None)]
    assert [item.nodeid for item in run.reruns] == ["a"]


@pytest.mark.parametrize(
    ("reports", "outcome", "reason"),
    [
        ([("call", "failed"), ("teardown", "passed")], "failed", "the test failed after scoring"),
        ([("call", "failed"), ("call", "passed"), ("teardown", "passed")], "failed", "the test failed after scoring"),
        ([("call", "skipped"), ("teardown", "passed")], "skipped", None),
        ([("call", "passed"), ("teardown", "failed")], "errored", "teardown failed"),
        ([("call", "passed"), ("teardown", "passed")], "passed", None),
    ],
)
def test_the_outcome_of_an_item_decides(
    reports: Sequence[tuple[str, str]], outcome: CaseOutcome, reason: str | None
) -> None:
    run = RunRecord()
    for when, found in reports:
        run.take(report("a", when, found), part(CaseRecord("a")) if when == "teardown" else None)
    assert outcomes(run) == [("a", outcome, reason)]


def test_an_item_of_many_cases_decides_none_of_them() -> None:
    run = RunRecord()
    take(run, "all", "failed", part(CaseRecord("a"), CaseRecord("b", outcome="failed")))
    assert outcomes(run) == [("a", "passed", None)]


def executed(record: CaseRecord, **case: Any) -> Execution:
    return Execution(Case(record.id, **case), record)


SECRET = "kept out of reports"


@pytest.mark.parametrize(
    ("record", "all_answers", "shows"),
    [
        (CaseRecord("c"), False, False),
        (CaseRecord("c"), True, True),
        (CaseRecord("c", outcome="failed"), False, True),
        (CaseRecord("c", lines={"f1": ["one is missing"]}), False, True),
    ],
)
def test_answers_are_kept_where_something_is_wrong_and_without_secrets(
    monkeypatch: pytest.MonkeyPatch, record: CaseRecord, all_answers: bool, shows: bool
) -> None:
    monkeypatch.setenv("MY_SECRET_VALUE", SECRET)
    answers = [AnswerShown(f"It is {SECRET}.")]
    judgings = [JudgingShown("judge", "binary", {"answer": SECRET}, SECRET)]
    full = CaseRecord("c", {}, record.outcome, lines=record.lines, answers=answers, judgings=judgings)
    made = SuitePart.from_executions(KEY, 1, [executed(full)], secrets=["MY_SECRET_VALUE"], all_answers=all_answers)
    (kept,) = made.records
    assert (bool(kept.answers), bool(kept.judgings)) == (shows, shows)
    assert SECRET not in repr(kept)


@pytest.mark.parametrize(
    ("execution", "recorded"),
    [
        (
            executed(CaseRecord("c"), input="q", prediction={"a": None}),
            [
                {
                    "suite": "s.eval.yaml",
                    "variant": "",
                    "case": "c",
                    "input": input_digest("q"),
                    "prediction": {"a": None},
                }
            ],
        ),
        (executed(CaseRecord("c", outcome="errored", errors={"": "target fell over"})), []),
    ],
)
def test_predictions_are_added_where_they_are_recorded(execution: Execution, recorded: Sequence[Any]) -> None:
    (kept,) = SuitePart.from_executions(KEY, 1, [execution], predictions=True).records
    assert list(kept.recordings) == recorded
    assert SuitePart.from_executions(KEY, 1, [execution]).records[0].recordings == ()


def test_records_merge_to_that_of_one_run() -> None:
    one = RunRecord(started=2.0, seconds=1.0, ended="Ctrl-C", faults={"x": ["no"]}, unfinished={"a"}, dropped={KEY})
    two = RunRecord(started=1.0, seconds=2.5, crashed="a worker crashed", uncollected=True, failures={"test_x"})
    take(two, "a", "passed", part(CaseRecord("a", observations={"f1": Observation({"n": 1})})))
    two.judgements.add(SUITE.path, entry())
    whole = RunRecord.merged([one, two])
    assert (whole.started, whole.seconds, whole.broken) == (1.0, 3.5, "a worker crashed")
    assert (whole.ended, whole.uncollected, whole.faults) == ("Ctrl-C", True, {"x": ["no"]})
    assert (whole.unfinished, whole.failures, whole.dropped) == ({"a"}, {"test_x"}, {KEY})
    assert (whole.items, list(whole.judgements)) == (two.items, [(SUITE.path, entry())])
    assert not one.items, "merging leaves the parts as they are"


def test_a_clock_that_is_set_does_not_change_how_long_a_run_took(monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunRecord()
    monkeypatch.setattr(time, "time", lambda: run.started - 3600)
    assert 0 <= run.duration < PATIENCE
    monkeypatch.setattr(time, "time", lambda: run.started + 3600)
    assert 0 <= run.duration < PATIENCE
    assert RunRecord(seconds=1.5).duration == 1.5

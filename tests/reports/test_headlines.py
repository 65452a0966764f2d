"""Whether a run can be merged, and the first sentence on a run that failed."""

from typing import Any

import pytest
from msgspec import convert
from pages import case, report, suite, suite_report

from pytest_llmeval.core import SnapshotVerdict
from pytest_llmeval.reports import RunReport
from pytest_llmeval.reports._headline import Headline, MergeAnswer
from pytest_llmeval.reports._overview import fall_lines, fallen_cases

CASES = [
    case("a", f1=0.0, labels={"topic": "billing"}),
    case("b", "failed", 0.2, labels={"topic": "billing"}, reason="f1 0.2000, limit >= 0.5"),
    *(case(f"c{number}", f1=1.0, labels={"topic": "other"}) for number in range(9)),
]
LIMIT = {"gate": "f1 >= 0.9", "outcome": "failed", "reason": "f1 is 0.8364, expected >= 0.9"}
CAUSE = "f1 fell 1.0000 -> 0.8364 (limit 0.02). 2 cases worse."
FALL = {
    "gate": "drop(f1) <= 0.02",
    "outcome": "failed",
    "cause": CAUSE,
    "fallen": ["b", "a"],
}
SCORE = {
    "metric": "f1",
    "kind": "fell_beyond",
    "outcome": "failed",
    "reason": "fell from 1.0000 to 0.8364; tolerance 0",
}
ERRORED = [case("a", "errored", None, reason="TimeoutError: 30 s"), case("b")]


def headline(*suites: dict[str, Any], **more: Any) -> str:
    run = convert(report(*suites, **more), RunReport).with_derived()
    before = {each.id: each for each in suite_report(suite([case("a"), case("b")])).cases}
    return str(Headline.of_run(run, [before for _ in suites]))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"gates": [LIMIT, FALL]},
            'f1 fell 1 -> 0.836 (limit 0.02); both worse cases have topic=billing; start with "b"',
        ),
        ({"gates": [LIMIT]}, 'f1 is 0.836, expected >= 0.9 for the suite; start with "b"'),
        ({"snapshot": [SCORE]}, 'f1 fell from 1 to 0.836; both worse cases have topic=billing; start with "a"'),
        ({}, '1 of 11 cases failed: f1 0.2, limit >= 0.5 per case; start with "b"'),
    ],
    ids=["fall", "limit", "approved score", "cases"],
)
def test_a_headline_has_the_cause_the_shared_label_and_the_case_to_begin_with(more: dict[str, Any], said: str) -> None:
    assert headline(suite(CASES, **more)) == said


def test_a_headline_names_the_system_the_error_or_the_faulty_file() -> None:
    gate = {**LIMIT, "reason": "1 case errored"}
    said = '1 of 2 cases errored: TimeoutError: 30 s; start with "a"'
    assert headline(suite(ERRORED, "s[new]", variant="new", gates=[gate])) == f"new {said}"
    assert headline(suite(ERRORED, gates=[gate]), suite(ERRORED, "other")) == f"capitals {said}"
    assert headline(faults={"s.eval.yaml": ["s.eval.yaml:1: no"]}) == "s.eval.yaml:1: no"
    assert headline(suite([case("a")])) == "None"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"gates": [{**LIMIT, "outcome": "passed"}]}, "Merge: 3 cases, 1 gate passed"),
        (
            {"gates": [{**LIMIT, "outcome": "undecided"}, {**LIMIT, "outcome": "passed"}]},
            "Check before you merge: nothing failed, but 1 of 2 gates could not decide",
        ),
        (
            {"gates": [{**LIMIT, "outcome": "not_judged", "reason": "not evaluated: 2 of 3 cases ran"}]},
            "No answer: 1 of 1 gate not evaluated: 2 of 3 cases ran",
        ),
        ({"counts": {"total": 3, "passed": 2, "not_run": 1}}, "No answer: 1 of 3 cases did not run"),
        ({"counts": {"total": 3, "passed": 0, "not_scored": 3}}, "No answer: no case was scored"),
        ({"can_fail": False}, "No answer: no limit, check, gate or approved score can fail"),
        ({"gates": [LIMIT]}, 'Do not merge: f1 is 0.836, expected >= 0.9 for the suite; start with "a"'),
    ],
)
def test_every_verdict_says_whether_to_merge(more: dict[str, Any], said: str) -> None:
    run = convert(report(suite([case("a"), case("b"), case("c")], **more)), RunReport).with_derived()
    assert str(MergeAnswer.of_run(run)) == said


def test_a_run_without_suites_has_no_answer_and_doubts_follow_a_merge() -> None:
    assert str(MergeAnswer.of_run(convert(report(), RunReport).with_derived())) == "No answer: no suite ran"
    known = "f1 0.9 -> 0.8, a drop of 0.1 is not ruled out"
    past = {
        **FALL,
        "outcome": "passed",
        "cause": "",
        "fallen": [],
        "value": 0.1,
        "limit": 0.02,
    }
    run = convert(report(suite([case("a")], gates=[{**past, "known": known}])), RunReport).with_derived()
    assert str(MergeAnswer.of_run(run, declined=2)).endswith(
        "passed, but 1 gate past its limit, not significant, 2 metrics declined"
    )


def test_the_first_case_is_one_with_the_shared_label() -> None:
    failing = [case(f"b{n}", "failed", 0.2, labels={"topic": "billing"}) for n in range(9)]
    other = [case("o", "failed", 0.0, labels={"topic": "other"})]
    fine = [case(f"c{n}", labels={"topic": "other"}) for n in range(40)]
    assert headline(suite(other + failing + fine)).endswith("9 of 10 failures have topic=billing; start with b0")


def test_worst_cases_of_a_fall_are_those_that_fell() -> None:
    now = suite_report(suite([case("low", f1=0.0), case("fell", f1=0.4), case("most", f1=0.1), case("rose", f1=1.0)]))
    then = suite_report(suite([case("low", f1=0.0), case("fell", f1=0.9), case("most", f1=0.9), case("rose", f1=0.5)]))
    before = {each.id: each for each in then.cases}
    assert [found.id for found in fallen_cases(now, before, "f1")] == ["most", "fell"]
    assert fallen_cases(now, {}, "f1") == []
    (line,) = fall_lines(now, convert({**SCORE, "value": 0.3, "approved": 0.6}, SnapshotVerdict), before)
    assert line == "  worst cases: most 0.9000 -> 0.1000, fell 0.9000 -> 0.4000"


def test_gate_and_approved_score_of_one_metric_are_told_once() -> None:
    other = {**SCORE, "metric": "rougeL"}
    told = suite_report(suite(CASES, gates=[FALL], snapshot=[{**SCORE, "reason": "fell; tolerance 0"}, other]))
    assert [score.metric for score in told.broken_scores] == ["rougeL"]
    (gate,) = told.gates
    assert told.gate_cause(gate).endswith("2 cases worse; the approved score was not kept either, tolerance 0")

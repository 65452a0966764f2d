"""The first sentence on a run that failed."""

from typing import Any

import pytest
from msgspec import convert
from pages import case, report, suite, suite_report

from pytest_llmeval.core import SnapshotVerdict
from pytest_llmeval.reports import RunReport
from pytest_llmeval.reports._headline import Headline, fallen_cases
from pytest_llmeval.reports._json import completed
from pytest_llmeval.reports._overview import fall_lines

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
    run = completed(convert(report(*suites, **more), RunReport))
    before = {each.id: each for each in suite_report(suite([case("a"), case("b")])).cases}
    return str(Headline.of_run(run, [before for _ in suites]))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"gates": [LIMIT, FALL]},
            f"{CAUSE[:37]}; 2 of 2 worse cases have topic=billing; start with b",
        ),
        ({"gates": [LIMIT]}, "f1 is 0.8364, expected >= 0.9; start with b"),
        ({"snapshot": [SCORE]}, "f1 fell from 1.0000 to 0.8364; 2 of 2 worse cases have topic=billing; start with a"),
        ({}, "1 of 11 cases failed: f1 0.2000, limit >= 0.5; start with b"),
    ],
    ids=["fall", "limit", "approved score", "cases"],
)
def test_a_headline_has_the_cause_the_shared_label_and_the_case_to_begin_with(more: dict[str, Any], said: str) -> None:
    assert headline(suite(CASES, **more)) == said


def test_a_headline_names_the_system_the_error_or_the_faulty_file() -> None:
    gate = {**LIMIT, "reason": "1 case errored"}
    said = "1 of 2 cases errored: TimeoutError: 30 s; start with a"
    assert headline(suite(ERRORED, "s[new]", variant="new", gates=[gate])) == f"new {said}"
    assert headline(suite(ERRORED, gates=[gate]), suite(ERRORED, "other")) == f"capitals {said}"
    assert headline(faults={"s.eval.yaml": ["s.eval.yaml:1: no"]}) == "s.eval.yaml:1: no"
    assert headline(suite([case("a")])) == "None"


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

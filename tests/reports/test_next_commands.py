"""What the terminal prints after the failing cases of a run: no finding twice, and the next command."""

from typing import Any

import pytest
from msgspec import convert
from pages import case, report, suite

from pytest_llmeval.reports import RunReport
from pytest_llmeval.reports._terminal import next_command, render

ABSENT = {"gate": "drop(f1) <= 0.02", "outcome": "failed"}
ABSENT |= {"reason": "no baseline x: create it with pytest --llmeval --snapshot-update s.eval.yaml"}
FALL = {"gate": "drop(f1) <= 0.02", "outcome": "failed", "cause": "f1 fell", "fallen": ["a"]}
LIMIT = {"gate": "f1 >= 0.9", "outcome": "failed"}
LF, PAGE = "pytest --llmeval s.eval.yaml --lf -v", "pytest --llmeval s.eval.yaml -v --llmeval-report=report.html"


@pytest.mark.parametrize(
    ("failing", "gate", "verbosity", "has_page", "command"),
    [
        (0, ABSENT, 0, False, "pytest --llmeval --snapshot-update s.eval.yaml"),
        (3, ABSENT, 0, False, "pytest --llmeval --snapshot-update s.eval.yaml"),
        (3, LIMIT, 0, False, LF),
        (3, LIMIT, 0, True, LF),
        (0, FALL, 0, False, LF),
        (0, LIMIT, 0, False, PAGE),
        (21, LIMIT, 0, False, PAGE),
        (21, LIMIT, 0, True, LF),
        (3, LIMIT, 1, False, PAGE),
        (3, LIMIT, 1, True, ""),
    ],
)
def test_the_next_command_follows_from_the_cause_and_what_was_shown(
    failing: int, gate: dict[str, Any], verbosity: int, has_page: bool, command: str
) -> None:
    cases = [case(f"c{number}", "failed", 0.0) for number in range(failing)]
    run = convert(report(suite([*cases, case("a")], gates=[gate])), RunReport).with_derived()
    assert next_command(run, ["s.eval.yaml"], verbosity=verbosity, has_page=has_page) == command
    assert next_command(run, [], verbosity=verbosity, has_page=has_page) == ""


def test_faults_come_before_failing_cases() -> None:
    faulty = {"s t.eval.yaml": ["s t.eval.yaml:7:36  cases[2].predicton: unknown key predicton"]}
    run = convert(report(suite([case("a", "failed", 0.0)]), faults=faulty), RunReport).with_derived()
    assert next_command(run, ["s.eval.yaml"], verbosity=0, has_page=False) == "llmeval validate 's t.eval.yaml'"


def test_findings_of_failing_cases_are_printed_once() -> None:
    found = {name: {"lines": {"text": [f"wrong {name}"]}} for name in "ab"}
    cases = [case("a", "failed", 0.0, **found["a"]), case("b", "passed", 0.0, **found["b"])]
    worst = {"metric": "f1", "cases": [{"id": "a", "score": 0.0}, {"id": "b", "score": 0.0}]}
    run = convert(report(suite(cases, worst=worst)), RunReport).with_derived()

    def printed(*rerun: str) -> list[str]:
        lines = [line.text.strip() for line in render(run, verbosity=2, width=80, rerun=rerun)]
        return [line for line in lines if "wrong" in line]

    assert printed() == ["text: wrong a", "text: wrong b"]
    assert printed("s.eval.yaml") == ["text: wrong b"]

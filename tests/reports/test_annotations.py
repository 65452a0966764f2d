"""Annotations of a job of GitHub."""

from typing import Any

from msgspec import convert
from pages import case, report, suite

from pytest_llmeval.plugin._annotations import annotation_lines
from pytest_llmeval.reports import RunReport
from pytest_llmeval.reports._json import completed


def annotations(*suites: dict[str, Any], folder: str = "", **more: Any) -> list[str]:
    return list(annotation_lines(completed(convert(report(*suites, **more), RunReport)), folder))


def test_faults_gates_and_cases_are_annotated_at_their_lines_ten_at_most() -> None:
    gates = [
        {"gate": "f1 >= 0.9", "outcome": "failed", "reason": "f1 is 0.1,\n90% less", "line": 7},
        {"gate": "f1 >= 0", "outcome": "passed"},
    ]
    cases = [case(f"c{line}", "failed", 0.0, line=line, file="data,1.jsonl", reason="no") for line in range(1, 12)]
    found = annotations(
        suite([*cases, case("fine")], gates=gates), folder="evals", faults={"b.eval.yaml": ["b.eval.yaml:3:5  no"]}
    )
    assert found[:3] == [
        "::error file=evals/b.eval.yaml,line=3::no",
        "::error file=evals/capitals.eval.yaml,line=7::capitals: f1 >= 0.9: f1 is 0.1,%0A90%25 less",
        "::error file=evals/data%2C1.jsonl,line=1::capitals: c1: no",
    ]
    assert found[10:] == ["::notice::and 3 more failures"]
    assert annotations(suite([case("fine")])) == []

"""Annotations of a job of GitHub."""

from typing import Any

from msgspec import convert
from pages import case, report, suite

from pytest_llmeval.plugin._annotations import annotation_lines
from pytest_llmeval.reports import RunReport


def annotations(*suites: dict[str, Any], folder: str = "", **more: Any) -> list[str]:
    return list(annotation_lines(convert(report(*suites, **more), RunReport).with_derived(), folder))


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


def test_a_fall_is_annotated_once_and_its_cases_come_first() -> None:
    fall = {"gate": "drop(f1) <= 0.02", "outcome": "failed", "cause": "f1 fell", "fallen": ["b"], "line": 7}
    score = {"metric": "f1", "kind": "fell_beyond", "outcome": "failed", "reason": "fell by 0.1; tolerance 0.02"}
    cases = [case(name, "failed", 0.0, line=line, reason="no") for line, name in enumerate("abc", 1)]
    found = annotations(suite(cases, gates=[fall], snapshot=[score]))
    assert [line.rpartition("capitals: ")[2] for line in found] == [
        "drop(f1) <= 0.02: f1 fell; the approved score was not kept either, tolerance 0.02",
        "b: no",
        "a: no",
        "c: no",
    ]

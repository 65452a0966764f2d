"""Suite files that say where the parts of predictions are, and what evaluators read."""

from pathlib import Path

import pytest
from project import load_text

from pytest_llmeval.core import Parts, SuiteError
from pytest_llmeval.run._execute import execute
from pytest_llmeval.run._job import CaseAnswer

SUITE = """\
parts:
  answer: output.text
  contexts: retrieval[].text
evaluators:
  - text: {metrics: [exact_match]}
  - text: {metrics: [f1]}
    as: summary
    on: output.summary
  - classification: {as: sources, on: contexts}
cases:
  - id: a
    expected: {answer: Paris, output: {summary: the capital}, contexts: [guide]}
    prediction: {output: {text: Paris, summary: the capital}, retrieval: [{text: guide}]}
  - id: b
    expected: {answer: Paris, contexts: [guide]}
    prediction: {output: {summary: Lyon}, retrieval: [{text: guide}]}
"""


def test_evaluators_read_the_parts_that_the_file_names(tmp_path: Path) -> None:
    suite = load_text(SUITE, tmp_path)
    assert suite.parts == Parts(answer="output.text", contexts="retrieval[].text")
    done = execute(suite, CaseAnswer(suite.cases[0]))
    scores = done.scores(suite)
    assert done.record.outcome == "passed"
    assert (scores["exact_match"], scores["summary.f1"], scores["sources.accuracy"]) == (1, 1, 1)


def test_a_missing_part_costs_only_the_evaluators_that_read_it(tmp_path: Path) -> None:
    suite = load_text(SUITE, tmp_path)
    done = execute(suite, CaseAnswer(suite.cases[1]))
    assert done.record.outcome == "errored"
    assert list(done.record.errors) == ["text"]
    assert "nothing at 'output.text', which parts.answer names" in done.record.errors["text"]
    assert done.scores(suite)["sources.accuracy"] == 1


def faults(text: str, folder: Path) -> list[str]:
    with pytest.raises(SuiteError) as caught:
        load_text(text, folder)
    return str(caught.value).splitlines()


CASES = "cases: [{id: a, expected: x}]\n"


def test_expressions_that_do_not_parse_are_faults_with_the_column_in_the_file(tmp_path: Path) -> None:
    text = f"""\
parts:
  answer: output..text
  contexts: "a[}}"
evaluators:
  - text
  - text: {{as: b}}
    on: 'foo(('
{CASES}"""
    found = faults(text, tmp_path)
    assert [line.partition(": found")[0] for line in found] == [
        "s.eval.yaml:2:18  parts.answer",
        "s.eval.yaml:3:16  parts.contexts",
        "s.eval.yaml:7:15  evaluators[1].on",
    ]


def test_an_expression_that_the_file_writes_otherwise_has_the_place_of_its_value(tmp_path: Path) -> None:
    found = faults(f'parts:\n  answer: "\\x61..b"\nevaluators: [text]\n{CASES}', tmp_path)
    assert found[0].startswith("s.eval.yaml:2:11  parts.answer: found 'a..b' with '.' at character 3")


def test_faults_of_parts_and_entries_are_told(tmp_path: Path) -> None:
    text = f"""\
parts: {{answr: a}}
evaluators:
  - text: {{on: [1]}}
  - {{text: {{as: b}}, as: c}}
{CASES}"""
    assert faults(text, tmp_path)[:3] == [
        ("s.eval.yaml:1:9  parts.answr: unknown key answr, did you mean answer?"),
        (
            "s.eval.yaml:3:16  evaluators[0].text.on: found a list of 1, "
            "expected a part (answer, contexts, messages, tool_calls, outcome, usage) or a JMESPath"
        ),
        "s.eval.yaml:4:13  evaluators[1].text.as: found 'as' here and beside 'text', expected it once",
    ]


def test_what_an_evaluator_reads_decides_whether_runs_can_be_compared(tmp_path: Path) -> None:
    from pytest_llmeval.baselines._comparable import SuiteIdentity

    plain = SuiteIdentity(load_text(f"evaluators: [text]\n{CASES}", tmp_path)).comparable()
    assert plain.evaluators["text"].options == {}
    named = SuiteIdentity(load_text(SUITE, tmp_path)).comparable().evaluators
    assert named["text"].options == {"on": "answer", "path": "output.text"}
    assert named["summary"].options == {"on": "output.summary"}

"""Options of ``fields`` and ``tools`` in suite files: what loads, and where faults are."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from project import ROOT, load_text

from pytest_llmeval.core import SuiteError
from pytest_llmeval.data import InputFile
from pytest_llmeval.run._execute import execute
from pytest_llmeval.run._job import CaseAnswer
from pytest_llmeval.suites import Registry, load_suite
from pytest_llmeval.suites._schema import suite_schema

GOOD = """\
evaluators:
  - fields: {total: {number: {tolerance: 0.01}}, date: date, items: {list: {key: sku, fields: {price: number}}}}
    as: invoice
  - tools: {order: in_order, arguments: partial, forbidden: [delete_*], compare: {"*": {topic: text}}}
gates: ["invoice.field[total] >= 0.98", "invoice.field[items[].price] >= 0.9", tool_f1 >= 0.9]
cases:
  - expected: {answer: {total: 12, date: 2024-03-05}, tool_calls: [lookup]}
    prediction: {answer: {total: 12}, tool_calls: []}
"""

BAD = """\
evaluators:
  - fields:
      total: {number: {tolernce: 1}}
      date: dat
      items:
        list:
          fields: {price: {number: {tolerance: -1}}}
  - tools: {order: inorder, compare: {s: {q: txt}}}
cases: [{expected: {}}]
"""


def test_fields_and_tools_load_with_gates_on_fields(tmp_path: Path) -> None:
    path = tmp_path / "s.eval.yaml"
    path.write_text(GOOD)
    suite = load_suite(path, Registry.installed(), root=tmp_path)
    assert not suite.faults
    assert len(suite.gates) == 3


def test_faults_of_comparators_have_their_place(tmp_path: Path) -> None:
    path = tmp_path / "s.eval.yaml"
    path.write_text(BAD)
    with pytest.raises(SuiteError) as raised:
        load_suite(path, Registry.installed(), root=tmp_path, display_path="s.eval.yaml")
    lines = [str(fault) for fault in raised.value.faults]
    for place, message in (
        ("s.eval.yaml:3:24  evaluators[0].fields.total.number.tolernce", "did you mean tolerance?"),
        ("s.eval.yaml:4:13  evaluators[0].fields.date", "(did you mean 'date'?)"),
        ("s.eval.yaml:7:36  evaluators[0].fields.items.list.fields.price.number", "found tolerance -1.0"),
        ("s.eval.yaml:8:20  evaluators[1].tools.order", "(did you mean 'in_order'?)"),
        ("s.eval.yaml:8:46  evaluators[1].tools.compare.s.q", "(did you mean 'text'?)"),
    ):
        assert any(line.startswith(place) and message in line for line in lines), (place, lines)


def test_an_expected_value_that_its_comparator_cannot_read_is_a_fault_of_the_case(tmp_path: Path) -> None:
    path = tmp_path / "s.eval.yaml"
    path.write_text(
        "evaluators: [fields: {date: date}]\ncases:\n  - {id: a, expected: {date: soon}}\n  - {id: b, expected: {}}\n"
    )
    suite = load_suite(path, Registry.installed(), root=tmp_path, display_path="s.eval.yaml")
    (fault,) = suite.faults
    assert str(fault).startswith(
        "s.eval.yaml:3:5  cases[0]: case 'a', evaluator 'fields': date: found text 'soon', expected a date"
    )


def test_the_json_schema_of_suites_knows_paths_and_comparators() -> None:
    schema = suite_schema(Registry.installed())
    validator = jsonschema.Draft202012Validator(schema)
    for name in ("extraction/invoices.eval.yaml", "agent/tools.eval.yaml"):
        path = ROOT / "example_suites" / name
        validator.validate(InputFile(path, name).read_document().data)
    faulty: list[dict[str, Any]] = [
        {"fields": {"total": "nmber"}},
        {"fields": {"total": {"number": {"tolernce": 1}}}},
        {"fields": {"items": {"list": {"fields": {"price": "nmber"}}}}},
        {"tools": {"order": "inorder"}},
    ]
    for each in faulty:
        assert not validator.is_valid({"evaluators": [each]}), each
    assert validator.is_valid({"evaluators": [{"fields": {"total": "number"}, "as": "invoice"}]})


TRACES = """\
parts: {answer: out.data, messages: log}
evaluators: [fields: {total: number}, tools: {order: any_order}]
cases:
  - id: good
    expected: {answer: {total: 3}, tool_calls: [a]}
    prediction: {out: {data: '{"total": 3}'}, log: [{role: assistant, tool_calls: [{function: {name: a}}]}]}
  - id: none
    expected: {answer: {total: 3}, tool_calls: [a]}
    prediction: {out: {data: {total: 3}}}
"""


def test_a_missing_trace_is_an_error_and_the_answer_is_scored(tmp_path: Path) -> None:
    suite = load_text(TRACES, tmp_path)
    good, none = (execute(suite, CaseAnswer(case)) for case in suite.cases)
    assert (good.record.outcome, none.record.outcome) == ("passed", "errored")
    assert (good.scores(suite)["trajectory_match"], good.scores(suite)["fields_exact"]) == (1, 1)
    assert "the prediction has the keys out; no 'tool_calls'" in none.record.errors["tools"]
    assert none.scores(suite)["fields_exact"] == 1
    assert "tool_f1" not in none.scores(suite)

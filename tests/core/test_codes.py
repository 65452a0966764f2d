"""Codes of faults: which fault of a suite file has which."""

import json
from pathlib import Path

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.core import Fault
from pytest_llmeval.core._errors import FAULT_CODES
from pytest_llmeval.workbench._authoring import fault_codes

CASES = "cases: [{id: a, expected: x, prediction: twice}]\n"
BROKEN = {
    "LE100": f"evaluators: 3\n{CASES}",
    "LE101": f"evaluators: [text]\ngatse: []\n{CASES}",
    "LE102": CASES,
    "LE103": f"evaluators: [text]\nevaluators: [text]\n{CASES}",
    "LE104": "evaluators: [text]\nsource: {format: jsonl, path: none.jsonl}\n",
    "LE105": "evaluators: [text\n",
    "LE106": f"evaluators: [text]\ngates: [f1 is good]\n{CASES}",
    "LE107": f"evaluators: [text]\ngates: [f1 >= 70]\n{CASES}",
    "LE108": "evaluators: [text]\n",
    "LE109": f"evaluators: [text]\njudge: {{model: 'openai:x', parameters: {{api_key: sk-1}}}}\n{CASES}",
    "LE110": "evaluators: [text]\ncases: [{id: a, expected: {a: 1}}]\n",
    "LE111": "evaluators: [text]\ncases: [{id: a, expected_file: ../x.txt}]\n",
    "LE112": f"checks: [regex: '(']\n{CASES}",
    "LE113": f"evaluators: [judge: {{mode: default_binary, prompt: a.md}}]\n{CASES}",
}


def test_every_code_is_that_of_a_fault_and_is_explained(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(BROKEN) == sorted(FAULT_CODES) == list(fault_codes())
    for code, text in BROKEN.items():
        (here / f"{code}.eval.yaml").write_text(text, encoding="utf-8")
        assert main(["--json", "validate", f"{code}.eval.yaml"]) == 1
        printed = json.loads(capsys.readouterr().out)
        assert {each["code"] for each in printed["faults"]} == {code}
        assert (printed["exit_code"], printed["command"], printed["output"]) == (1, "validate", [])
        (suite,) = printed["result"]["suites"]
        assert (suite["path"], suite["faults"]) == (f"{code}.eval.yaml", len(printed["faults"]))
        assert all(each.keys() >= {"file", "line", "field", "message"} for each in printed["faults"])
        assert main(["explain", code]) == 0
        assert f"{code}: {fault_codes()[code]['title']}" in capsys.readouterr().out


def test_text_of_a_user_does_not_decide_the_code() -> None:
    assert Fault.code_of("found the text 'a is missing twice', expected a list") == "LE100"


def test_json_has_errors_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "validate"]) == 2
    assert "required: SUITE" in json.loads(capsys.readouterr().out)["errors"][-1]


SUITE = """suite: cities
evaluators: [text: {metrics: [f1]}]
snapshot: true
gates: [f1 >= 0.4]
cases: [{id: peru, expected: Lima, prediction: Lima}, {id: chad, expected: a, prediction: b}]
"""


def test_commands_with_a_result_give_it_as_data_and_print_it_as_lines_otherwise(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "cities.eval.yaml").write_text(SUITE, encoding="utf-8")
    (here / "none.jsonl").touch()
    assert main(["score", "cities.eval.yaml", "--report", "r.json"]) == 1
    capsys.readouterr()
    expected = {
        "validate cities.eval.yaml": (0, {"suites"}, "no fault in 2 cases"),
        "explain LE101": (0, {"codes"}, "unknown name"),
        "evaluators text": (0, {"evaluators", "checks", "sources"}, "exact_match"),
        "decide r.json cities.eval.yaml": (0, {"suites"}, "gate PASSED"),
        "compare r.json --baseline r.json": (0, {"reports", "suites", "failed"}, "run r.json against baseline r.json"),
        "mutate cities.eval.yaml": (0, {"suites"}, "cities"),
        "gate r.json --gates f1>=0.4": (0, {"verdict", "suites"}, "passed"),
        "power cities.eval.yaml --within 0 --between 1": (0, {"suite", "cases", "plans"}, "any metric"),
        "power cities.eval.yaml --report r.json --report r.json --simulate 5": (
            0,
            {"suite", "cases", "plans"},
            "all runs are equal",
        ),
        "score cities.eval.yaml --report again.json": (1, {"suites", "written"}, "report written to again.json"),
        "html r.json": (0, {"written", "note"}, "wrote r.html"),
        "comment r.json": (0, {"comment", "written"}, "<!-- pytest-llmeval -->\n"),
        "inputs cities.eval.yaml": (0, {"inputs"}, '{"id": "peru", "input": null}\n'),
        "schema": (0, {"schema"}, '"$schema"'),
        "init new": (0, {"files", "next"}, "Next:"),
        "cache import none.jsonl --cache c.sqlite3": (0, {"added", "present"}, "0 verdicts added"),
        "cache explain cities.eval.yaml": (0, {"questions", "unknown"}, "no question for a judge"),
    }
    for line, (code, keys, text) in expected.items():
        assert main(["--json", *line.split()]) == code, line
        printed = json.loads(capsys.readouterr().out)
        assert printed["result"].keys() >= keys, line
        assert printed["output"] == []
        assert main(line.split()) == code
        assert text in capsys.readouterr().out, line

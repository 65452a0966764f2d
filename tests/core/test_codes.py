"""Codes of faults: which fault of a suite file has which."""

import json
from pathlib import Path

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.core.codes import CODES, code_of

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
    assert sorted(BROKEN) == sorted(CODES)
    for code, text in BROKEN.items():
        (here / f"{code}.eval.yaml").write_text(text, encoding="utf-8")
        assert main(["--json", "validate", f"{code}.eval.yaml"]) == 1
        printed = json.loads(capsys.readouterr().out)
        assert {each["code"] for each in printed["faults"]} == {code}
        assert (printed["exit_code"], printed["command"]) == (1, "validate")
        assert main(["explain", code]) == 0
        assert f"{code}: {CODES[code].title}" in capsys.readouterr().out


def test_text_of_a_user_does_not_decide_the_code() -> None:
    assert code_of("found the text 'found nothing, expected twice', expected a list") == "LE100"


def test_json_has_errors_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "validate"]) == 2
    assert "required: SUITE" in json.loads(capsys.readouterr().out)["errors"][-1]

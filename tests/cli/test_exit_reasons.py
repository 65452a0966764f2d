"""Exit codes of commands: each one but 0 comes with words."""

import ast
from pathlib import Path

import pytest
from project import ROOT, modules_that_say

from pytest_llmeval.cli import main


def results() -> list[tuple[str, ast.Call]]:
    """Return every place that makes the result of a command, with its call."""
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno}", node)
        for path, module in modules_that_say("CommandResult")
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "CommandResult"
    ]


def says_something(call: ast.Call) -> bool:
    code, _, *words = call.args
    return ast.unparse(code) == "0" or bool(words or {"lines", "errors", "text"} & {word.arg for word in call.keywords})


def test_results_with_another_code_than_0_have_words() -> None:
    found = results()
    assert len(found) > 30
    assert [place for place, call in found if not says_something(call)] == []


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["comment", "bad.json", "--output=comment.md"], 2, "bad.json"),
        (["comment", "bad.json"], 2, "bad.json"),
        (["history", "s.eval.yaml"], 1, "no runs and no approvals"),
        (["html", "bad.json", "--output=page.html"], 2, "bad.json"),
        (["compare", "bad.json"], 2, "expected two"),
        (["gate", "bad.json"], 2, "bad.json"),
        (["merge", "bad.json"], 1, "bad.json"),
        (["score", "bad.json"], 1, "bad.json"),
        (["validate", "bad.eval.yaml"], 1, "bad.eval.yaml"),
    ],
)
def test_commands_that_end_with_another_code_than_0_name_the_reason(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, reason: str
) -> None:
    (here / "bad.json").write_text("{", encoding="utf-8")
    (here / "bad.eval.yaml").write_text("cases: 3", encoding="utf-8")
    suite = "evaluators: [text]\ncases: [{id: a, input: q, expected: x, prediction: x}]\nsnapshot: true\n"
    (here / "s.eval.yaml").write_text(suite, encoding="utf-8")
    try:
        found = main(arguments)
    except SystemExit as end:
        found = int(end.code or 0)
    said = capsys.readouterr()
    assert (found, reason in said.out + said.err) == (code, True), said

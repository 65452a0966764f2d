"""What a model wrote is shown by the logs of CI, and not obeyed; the parsers of runners are told again here."""

import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.cli import CommandResult, main, say
from pytest_llmeval.cli._console import as_json, deliver
from pytest_llmeval.core import LogWriter

if TYPE_CHECKING:
    from conftest import Project

PIECES = (
    "::",
    ":",
    "##[",
    "##",
    "#",
    "[",
    "##vso[",
    "set-output name=a::b",
    "error]",
    " ",
    "\u3000",
    "\n",
    "\r",
    "\x1b[31m",
    "word",
)


def obeyed(log: str) -> list[str]:
    """Return the lines that runners would obey: of GitHub by both of its parsers, of Azure, and of TeamCity."""
    lines = re.split(r"[\r\n]", log)
    return [
        line
        for line in lines
        if re.sub(r"\x1b\[[\d;]*m", "", line).strip().startswith("::")
        or "##[" in line
        or re.search(r"##(vso|teamcity)\[", line, re.IGNORECASE)
    ]


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_no_line_is_a_command_however_it_is_written(pieces: list[str]) -> None:
    at_once, by_character = io.StringIO(newline=""), io.StringIO(newline="")
    text = "".join(pieces)
    LogWriter(at_once).write(text)
    LogWriter(by_character).writelines(text)
    assert obeyed(at_once.getvalue()) == obeyed(by_character.getvalue()) == []
    assert at_once.getvalue() == by_character.getvalue()
    assert at_once.getvalue().replace(":\\:", "::").replace("\\[", "[") == text


@given(st.text("ab:#[ ", max_size=20))
def test_what_is_no_command_stays_as_it_is(text: str) -> None:
    log = io.StringIO()
    LogWriter(log).write(text)
    assert obeyed(text) or log.getvalue() == text


HOSTILE = (
    "The answer is long enough to be wrapped at a place that one cannot foresee and "
    "::set-output name=approved::true and more words ##[add-mask]Canberra"
)


@pytest.mark.parametrize("columns", [40, 80, 120, 137])
def test_answers_errors_and_reasons_command_nothing(
    project: "Project", monkeypatch: pytest.MonkeyPatch, columns: int, workers: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    project.write("bot.py", f"def fail(word):\n    raise ValueError({HOSTILE!r})\n")
    answers = [{"id": str(n), "input": "a", "expected": "x", "prediction": HOSTILE[n:]} for n in range(0, 100, 9)]
    suite: dict[str, Any] = {"evaluators": [{"text": {"metrics": ["exact_match"]}}], "thresholds": {"exact_match": 1}}
    project.suite("a.eval.yaml", answers, **suite, checks=[{"equals": "x"}])
    project.suite("b.eval.yaml", [{"id": "b", "input": "a", "expected": "x"}], **suite, target={"python": "bot:fail"})
    ran = project.run("-rA", "-vv", workers=workers)
    assert ran.code == 1
    assert "set-output" in ran.text
    assert obeyed(ran.text) == []


def test_commands_of_the_package_print_no_commands_of_runners(capsys: pytest.CaptureFixture[str]) -> None:
    say([f"  {HOSTILE[HOSTILE.index('::') :]}", json.dumps("##vso[task.setvariable]x")])
    assert obeyed(capsys.readouterr().out) == []


@pytest.mark.parametrize("style", ["result", "alone", "everything"])
def test_json_of_commands_is_the_same_data_and_commands_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], style: str
) -> None:
    del here
    hostile = "a ##[add-mask]b ##vso[x]y ::error::z"
    result = CommandResult(0, {"text": hostile}, text=f"{hostile}\n")
    if style == "result":
        assert deliver(result, to=None) == 0
        assert obeyed(capsys.readouterr().out) == []
        return
    if style == "alone":
        assert deliver(result, to=True) == 0
        printed = capsys.readouterr().out
        assert json.loads(printed)["text"] == hostile
    else:
        assert as_json(["validate"], lambda _: deliver(result, to=None)) == 0
        printed = capsys.readouterr().out
        assert json.loads(printed)["result"]["text"] == hostile
    assert obeyed(printed) == []


def test_inputs_are_printed_as_json_lines_that_command_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "::error::a ##[add-mask]b"
    suite = {"evaluators": ["text"], "cases": [{"id": "a", "input": hostile, "expected": "x", "prediction": "x"}]}
    (here / "s.eval.json").write_text(json.dumps(suite), encoding="utf-8")
    assert main(["inputs", "s.eval.json"]) == 0
    printed = capsys.readouterr().out
    assert hostile in json.dumps(json.loads(printed))
    assert obeyed(printed) == []


@pytest.mark.parametrize(
    "pieces",
    [[" "] * 300 + [":", ":x"], ["a"] * 300 + ["#", "#gro", "up", "[x"], [" "] * 300 + ["\x1b", "[3", "1m", ":", ":x"]],
)
def test_a_command_at_the_end_of_a_long_line_is_none(pieces: list[str]) -> None:
    log = LogWriter(io.StringIO())
    for piece in pieces:
        log.write(piece)
    assert log.getvalue()[-3:] in ("\\:x", "\\[x")


def test_a_line_of_many_writes_is_not_remembered_whole() -> None:
    log = LogWriter(io.StringIO())
    for _ in range(1000):
        log.write("ab::")
    assert len(log._line) < 300
    assert log.getvalue() == "ab::" * 1000

"""A command as a target: real programs that answer, crash, babble, hang, and leave nothing behind."""

import asyncio
import os
import random
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from running import is_running
from servers import PATIENCE

from pytest_llmeval.core import PredictionError
from pytest_llmeval.services import _processes as process
from pytest_llmeval.targets._network import CommandTarget

HEAD = """\
import json, os, signal, subprocess, sys, time

def say(**reply):
    print(json.dumps(reply))

with open("starts.txt", "a") as file:
    print(os.getpid(), file=file)
for line in sys.stdin:
    asked = json.loads(line)
    number, word = asked["id"], asked["input"]
"""


SECOND = 1 + random.Random(0).randrange(1_000, 10_000)
"""The id of the second input."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for a program, in which it notes the id of each process that ran it."""
    return tmp_path


def ask(folder: Path, body: str, inputs: Sequence[Any], **environment: str) -> list[Any]:
    """Ask a program, whose loop over its input has this body; errors come back as their texts."""
    (folder / "program.py").write_text(HEAD + textwrap.indent(textwrap.dedent(body), "    "), encoding="utf-8")
    return run(folder, [sys.executable, "program.py"], inputs, **environment)


def run(
    folder: Path, command: Sequence[str], inputs: Sequence[Any], hangs: Sequence[Any] = (), **environment: str
) -> list[Any]:
    """Ask a command; what `hangs` names has a short time to answer, and all else has plenty."""

    async def answers() -> list[Any]:
        target = CommandTarget(command, folder, PATIENCE, environment={**os.environ, **environment})
        found = []
        try:
            for each in inputs:
                target._timeout = 1 if each in hangs else PATIENCE
                found += await target.answer([each])
            return found
        finally:
            await target.aclose()
            await target.aclose()

    name = f"command {command[0]!r} "
    found = asyncio.run(answers())
    return [str(each).removeprefix(name) if isinstance(each, PredictionError) else each for each in found]


def starts(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "starts.txt").read_text().split()]


def test_one_process_answers_every_input(folder: Path) -> None:
    inputs = ["a", {"question": ["东", None, 1.5]}, "\ud800\n"]
    assert ask(folder, "say(id=number, prediction=[word])", inputs) == [[each] for each in inputs]
    assert len(starts(folder)) == 1
    assert not is_running(starts(folder)[0])


def test_nothing_is_started_before_the_first_input(folder: Path) -> None:
    assert ask(folder, "", []) == []
    assert not (folder / "starts.txt").exists()


def test_a_null_is_a_prediction_and_an_error_costs_its_case_only(folder: Path) -> None:
    body = """
    if word == "bad":
        say(id=number, error="no such document")
    elif word == "worse":
        say(id=number, error={"code": 7})
    else:
        say(id=number, prediction=None)
    """
    assert ask(folder, body, ["bad", "good", "worse"]) == [
        "answered with the error 'no such document'",
        None,
        "answered with the error '{\"code\": 7}'",
    ]
    assert len(starts(folder)) == 1


CRASHES = [
    ("sys.exit(3)", "ended with exit code 3 without an answer"),
    ("sys.exit(0)", "ended with exit code 0 without an answer"),
    ("os.kill(os.getpid(), signal.SIGTERM)", "was ended by SIGTERM without an answer"),
    ("os.kill(os.getpid(), 40)", "was ended by signal 40 without an answer"),
    ("print('{', end=''); sys.exit(4)", "ended with exit code 4 in the middle of a line"),
    ("print('trace', file=sys.stderr); sys.exit(5)", "ended with exit code 5 without an answer; stderr: 'trace'"),
]


@pytest.mark.parametrize(("crash", "reason"), CRASHES)
def test_a_crash_costs_its_case_only_and_tells_how_the_program_ended(folder: Path, crash: str, reason: str) -> None:
    body = f"""
    if word == "b":
        {crash}
    say(id=number, prediction=word.upper())
    """
    assert ask(folder, body, ["a", "b", "c"]) == ["A", reason, "C"]


def test_a_program_that_ends_after_each_answer_is_started_for_each_input(folder: Path) -> None:
    body = """
    say(id=number, prediction=word.upper())
    break
    """
    assert ask(folder, body, ["a", "b", "c"]) == ["A", "B", "C"]
    assert len(starts(folder)) == 3


GARBAGE = [
    ("print('loading ...')", "'loading ...' on stdout: found invalid JSON (Expecting value: line 1 column 1 (char 0))"),
    ("print()", "'' on stdout: found invalid JSON (Expecting value: line 1 column 1 (char 0))"),
    ("print('[1]')", "'[1]' on stdout"),
    ("say(id=number)", f"'{{\"id\": {SECOND}}}' on stdout"),
    ("say(id=number, prediction=1, error='x')", f'\'{{"id": {SECOND}, "prediction": 1, "error": "x"}}\' on stdout'),
    ("say(id=1, prediction='stale')", '\'{"id": 1, "prediction": "stale"}\' on stdout'),
    ("say(id=str(number), prediction=1)", f'\'{{"id": "{SECOND}", "prediction": 1}}\' on stdout'),
    ("say(prediction=1)", "'{\"prediction\": 1}' on stdout"),
    (
        "say(id=number, prediction=float('nan'))",
        f'\'{{"id": {SECOND}, "prediction": NaN}}\' on stdout: found invalid JSON (NaN is not a JSON number)',
    ),
    (
        'print(\'{"id": 1, "id": %d, "prediction": 2}\' % number)',
        f'\'{{"id": 1, "id": {SECOND}, "prediction": 2}}\' on stdout: found invalid JSON (the key \'id\' occurs twice)',
    ),
]


@pytest.mark.parametrize(("garbage", "reason"), GARBAGE)
def test_anything_else_on_stdout_costs_its_case_and_a_fresh_program_goes_on(
    folder: Path, garbage: str, reason: str
) -> None:
    body = f"""
    if word == "b":
        {garbage}
    say(id=number, prediction=word.upper())
    """
    expected = f'wrote {reason}, expected {{"id": {SECOND}, "prediction": ...}}; anything else belongs on stderr'
    assert ask(folder, body, ["a", "b", "c"]) == ["A", expected, "C"]
    assert len(starts(folder)) == 2
    assert not any(map(is_running, starts(folder)))


@pytest.mark.parametrize("further", ["number + 1", "number + 2", "number"])
def test_a_second_line_is_an_error_and_not_the_next_answer(folder: Path, further: str) -> None:
    body = f"""
    say(id=number, prediction=word.upper())
    if word == "a":
        say(id={further}, prediction="forged")
    """
    first, second, third = ask(folder, body, ["a", "b", "c"])
    assert (first, third) == ("A", "C")
    assert second.startswith("wrote '{")
    assert "forged" in second
    assert len(starts(folder)) == 2


def test_noise_on_stderr_neither_blocks_nor_confuses_and_its_end_is_shown(folder: Path) -> None:
    body = """
    sys.stderr.write("x" * 1_000_000 + word)
    if word != "a":
        sys.exit(1)
    say(id=number, prediction=word.upper())
    """
    first, second = ask(folder, body, ["a", "b"])
    assert first == "A"
    assert second == f"ended with exit code 1 without an answer; stderr: '...{'x' * 299}b'"


def test_a_secret_of_the_environment_is_in_no_reason(folder: Path) -> None:
    body = """
    token = os.environ["MY_SERVICE_TOKEN"]
    if word == "a":
        say(id=number, error=f"refused {token}")
    elif word == "b":
        print(f"using {token}")
    else:
        sys.exit(token)
    """
    reasons = ask(folder, body, ["a", "b", "c"], MY_SERVICE_TOKEN="hush-hush-hush")
    assert len(reasons) == 3
    for reason in reasons:
        assert "***" in reason
        assert "hush" not in reason


HANGS = {
    "alone": "time.sleep(600)",
    "ignoring signals": "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",
    "with a child": "child()\n        time.sleep(600)",
    "in the middle of a line": "print('{', end='', flush=True); time.sleep(600)",
}
CHILD = """
def child():
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open("starts.txt", "a") as file:
        print(other.pid, file=file)
"""


@pytest.mark.parametrize("hang", HANGS.values(), ids=HANGS)
def test_a_program_that_hangs_is_killed_with_all_that_it_started(folder: Path, hang: str) -> None:
    (folder / "program.py").write_text(
        HEAD.replace("with open", CHILD + "with open", 1)
        + f"    if word == 'b':\n        {hang}\n    say(id=number, prediction=word.upper())\n"
    )
    found = run(folder, [sys.executable, "program.py"], ["a", "b", "c"], hangs="b")
    assert found == ["A", "took longer than 1 s", "C"]
    assert len(starts(folder)) >= 2
    assert not any(map(is_running, starts(folder)))


def test_children_of_a_program_that_ended_are_killed_too(folder: Path) -> None:
    (folder / "program.py").write_text(
        HEAD.replace("with open", CHILD + "with open", 1) + "    child()\n    say(id=number, prediction=1)\n"
    )
    assert run(folder, [sys.executable, "program.py"], ["a"]) == [1]
    assert len(starts(folder)) == 2
    assert not any(map(is_running, starts(folder)))


def test_a_call_that_is_cancelled_leaves_neither_a_program_nor_its_late_answer_behind(folder: Path) -> None:
    body = """\
    if word == "a":
        late = number
        open("asked.txt", "w").close()
        continue
    if "late" in globals():
        say(id=late, prediction="late")
    say(id=number, prediction=word.upper())
"""
    (folder / "program.py").write_text(HEAD + body)

    async def interrupted() -> list[Any]:
        target = CommandTarget([sys.executable, "program.py"], folder)
        call = asyncio.create_task(target.answer(["a"]))
        while not (folder / "asked.txt").exists():
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not is_running(starts(folder)[0])
        answers = await target.answer(["b"])
        await target.aclose()
        return answers

    assert asyncio.run(interrupted()) == ["B"]


def test_overlapping_calls_take_turns(folder: Path) -> None:
    (folder / "program.py").write_text(HEAD + "    say(id=number, prediction=word.upper())\n")

    async def overlapping() -> list[list[Any]]:
        target = CommandTarget([sys.executable, "program.py"], folder)
        answers = await asyncio.gather(*(target.answer([word]) for word in "abc"))
        await target.aclose()
        return answers

    assert asyncio.run(overlapping()) == [["A"], ["B"], ["C"]]
    assert len(starts(folder)) == 1


def test_a_line_without_end_is_not_read_to_its_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "LONGEST_LINE", 1000)
    body = """
    if word == "b":
        print("x" * 100_000)
    say(id=number, prediction=word.upper())
    """
    reason = "wrote a line of more than 1000 bytes, expected a shorter one"
    assert ask(folder, body, ["a", "b", "c"]) == ["A", reason, "C"]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("no-such-program-anywhere", "cannot be started (No such file or directory)"),
        ("./data.txt", "cannot be started (Permission denied)"),
    ],
)
def test_a_program_that_cannot_be_started_says_why(folder: Path, command: str, reason: str) -> None:
    (folder / "data.txt").write_text("data")
    assert run(folder, [command], ["a", "b"]) == [reason, reason]


def test_arguments_reach_the_program_as_they_are_for_no_shell_reads_them(folder: Path) -> None:
    code = "import json, sys\nfor line in sys.stdin: print(json.dumps({'id': 1, 'prediction': sys.argv[1:]}))"
    arguments = ["$HOME", "a; touch here", "*", "two words", "|", "''"]
    assert run(folder, [sys.executable, "-c", code, *arguments], ["a"]) == [arguments]
    assert list(folder.iterdir()) == []


def test_a_program_ends_in_peace_after_the_run_has_cancelled_every_task(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_GRACE_S", PATIENCE)
    script = 'import sys; input(); print(\'{"id": 1, "prediction": 1}\'); sys.stdin.read(); '
    script += "sys.stderr.write('x' * 1_000_000); open('ended', 'w')"

    async def answers() -> list[Any]:
        target = CommandTarget([sys.executable, "-uc", script], folder)
        found = await target.answer(["a"])
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await target.aclose()
        return found

    assert asyncio.run(answers()) == [1]
    assert (folder / "ended").exists()

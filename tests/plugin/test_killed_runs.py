"""Runs that are killed while targets answer: every answer that had arrived is kept, and none is asked for twice."""

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from running import WITHOUT_UNUSED, Started, wait_for_group
from servers import PATIENCE

if TYPE_CHECKING:
    from conftest import Project

WORDS = [f"w{number:02}" for number in range(20)]
ANSWERED = 6
FILE = "--llmeval-predictions=answers.jsonl"

BOT = """\
import asyncio
import pathlib

HERE = pathlib.Path(__file__).parent


async def answer(word):
    if not (HERE / "all").exists() and word >= "w06":
        await asyncio.Event().wait()
    with (HERE / "asked.txt").open("a") as file:
        file.write(word + "\\n")
    return word.upper()
"""
"""Answers the first six words, and the others once it may."""


@pytest.fixture
def asking(project: "Project") -> "Project":
    project.asking("s.eval.yaml", "bot:answer", *WORDS)
    project.write("bot.py", BOT)
    return project


def _kept(project: "Project") -> list[str]:
    journals = [*(project.path / ".llmeval" / "answers").glob("*/*.jsonl"), project.path / "answers.jsonl"]
    lines = [line for path in journals if path.exists() for line in path.read_text(encoding="utf-8").splitlines()]
    return sorted(json.loads(line)["case"] for line in lines if line)


def _asked(project: "Project") -> list[str]:
    return sorted((project.path / "asked.txt").read_text(encoding="utf-8").split())


def _journals(project: "Project") -> list[Path]:
    return list((project.path / ".llmeval" / "answers").rglob("*.jsonl"))


def _killed(project: "Project", number: signal.Signals, workers: int) -> int:
    """Run pytest until it waits for answers; send its main process a signal, and return its exit code."""
    line = ["-m", "pytest", *WITHOUT_UNUSED, "--llmeval", "-pno:cacheprovider", FILE, "--llmeval-report=report.json"]
    line += [f"-n{workers}"] if workers else []
    printed = [project.path / "out.txt", project.path / "err.txt"]
    for each in printed:
        each.touch()
    run = Started(line, os.environ, project.path, *printed, workers=workers, group=True)
    try:
        until = time.monotonic() + PATIENCE
        while len(_kept(project)) < ANSWERED:
            assert time.monotonic() < until
            assert not run.has_ended()
            threading.Event().wait(0.01)
        os.kill(run.pid, number)
        return run.wait()
    finally:
        if number == signal.SIGKILL or run.code is None:
            with suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)  # its workers too
            run.wait()
            wait_for_group(run.pid)
        for each in printed:  # pytest shows it where the test fails
            sys.stdout.write(each.read_text(encoding="utf-8", errors="replace"))


def test_a_killed_run_goes_on_where_it_was(asking: "Project", workers: int) -> None:
    assert _killed(asking, signal.SIGKILL, workers) == -signal.SIGKILL
    assert not (asking.path / "answers.jsonl").exists()
    (asking.path / "all").touch()
    again = asking.run(FILE, workers=workers)
    assert (again.code, again.counts["passed"]) == (0, len(WORDS))
    assert _asked(asking) == WORDS
    assert _kept(asking) == WORDS
    assert _journals(asking) == []


def test_sigterm_ends_a_run_as_ctrl_c_does(asking: "Project", workers: int) -> None:
    assert _killed(asking, signal.SIGTERM, workers) == pytest.ExitCode.INTERRUPTED
    report = json.loads((asking.path / "report.json").read_text(encoding="utf-8"))
    assert [suite["suite"] for suite in report["suites"]] == ["s"]
    assert _kept(asking) == WORDS[:ANSWERED]
    assert _journals(asking) == []
    (asking.path / "all").touch()
    assert asking.run(FILE, workers=workers).code == 0
    assert _asked(asking) == WORDS


PLAIN = """\
import os
import pathlib
import signal
import threading

HERE = pathlib.Path(__file__).parent
LOCK = threading.Lock()


def journalled():
    rows = [path.read_text() for path in HERE.glob(".llmeval/answers/*/*.jsonl")]
    return {word for word in (HERE / "asked.txt").read_text().split() if all(f'"{word}"' not in row for row in rows)}


def answer(word):
    stopped = HERE / f"stopped-{os.getpid()}"
    if word == "w10" and not (HERE / "killed").exists():
        (HERE / "killed").touch()
        with LOCK:
            stopped.touch()
        while journalled():
            threading.Event().wait(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    with LOCK:  # no answer begins between the look at the journals and the kill
        waits = stopped.exists()
        if not waits:
            with (HERE / "asked.txt").open("a") as file:
                file.write(word + "\\n")
    if waits:
        threading.Event().wait()
    return word.upper()
"""
"""Kills its worker once, when all answers that it gave are on the disk."""


def test_the_worker_in_place_of_a_killed_one_asks_for_no_answer_again(project: "Project") -> None:
    project.asking("s.eval.yaml", "bot:answer", *WORDS)
    project.write("bot.py", PLAIN)
    (project.path / "asked.txt").touch()
    project.run(FILE, "--llmeval-concurrency=4", workers=2, replacements=2)
    asked = _asked(project)
    assert sorted({*asked}) == asked
    assert (project.path / "killed").exists()


SLOW = """\
import pathlib
import threading

HERE = pathlib.Path(__file__).parent


def answer(word):
    with (HERE / "begun.txt").open("a") as file:
        file.write(word + "\\n")
    while not (HERE / "go").exists():
        threading.Event().wait(0.01)
    return word.upper()
"""
"""Plain functions that return once the run has been ended."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_answers_of_plain_functions_under_way_are_kept(project: "Project", number: signal.Signals) -> None:
    project.asking("s.eval.yaml", "bot:answer", *WORDS[:3])
    project.write("bot.py", SLOW)
    project.write(
        "conftest.py",
        """\
        import pathlib
        import pytest
        from pytest_llmeval.services import _background


        class Ending(type(_background._ending)):
            def add(self, loop):
                super().add(loop)
                pathlib.Path(__file__).with_name("go").touch()


        _background._ending = Ending()
        """,
    )
    begun = project.path / "begun.txt"
    line = ["-m", "pytest", *WITHOUT_UNUSED, "--llmeval", "-pno:cacheprovider", FILE]
    printed = [project.path / "out.txt", project.path / "err.txt"]
    for each in printed:
        each.touch()
    run = Started(line, os.environ, project.path, *printed, group=True)
    until = time.monotonic() + PATIENCE
    while not begun.exists() or len(begun.read_text(encoding="utf-8").split()) < 3:
        assert time.monotonic() < until
        assert not run.has_ended()
        threading.Event().wait(0.01)
    os.kill(run.pid, number)
    assert run.wait() == 2
    assert _kept(project) == WORDS[:3]

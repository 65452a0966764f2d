"""Targets that change the process: the case that does it fails, and no other."""

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

BOT = """\
import asyncio
import builtins
import sys
import threading
from contextlib import suppress

with suppress(ModuleNotFoundError):
    import resource

def harm():
    {harm}

def answer(word):
    if word == "harms":
        harm()
    return word.upper()

async def answer_later(word):
    await asyncio.sleep(0)
    return answer(word)
"""


@pytest.mark.parametrize("target", ["answer", "answer_later"])
@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        ("sys.stdout.close()", "the target closes sys.stdout"),
        ("sys.stderr.close()", "the target closes sys.stderr"),
        ("sys.stdout.detach()", "the target detaches sys.stdout"),
        ("sys.__stdout__.close()", "the target closes sys.__stdout__"),
        ("sys.setrecursionlimit(60)", "the target sets a recursion limit of 60"),
        ("threading.excepthook = None", "the target set threading.excepthook to None"),
        ("sys.excepthook = None", "the target set sys.excepthook to None"),
        ("sys.path.clear()", "the target emptied sys.path"),
        ("sys.meta_path.clear()", "the target emptied sys.meta_path"),
        ("sys.modules.clear()", "the target emptied sys.modules"),
        ("builtins.open = None", "the target set builtins.open to None"),
        ("del builtins.__import__", "the target set builtins.__import__ to None"),
        pytest.param(
            "resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10))",
            "the target sets a limit of 10 open files",
            marks=pytest.mark.skipif(sys.platform == "win32", reason="no limit of open files"),
        ),
    ],
)
def test_the_case_that_changes_the_process_fails_alone(project: "Project", harm: str, reason: str, target: str) -> None:
    project.write("bot.py", BOT.replace("{harm}", harm))
    project.asking("s.eval.yaml", f"bot:{target}", "a", "harms", "b", "c")
    ran = project.run("s.eval.yaml")
    assert ran.code == 1
    assert ran.outcomes("s") == {"a": "passed", "harms": "errored", "b": "passed", "c": "passed"}
    assert reason in ran.text

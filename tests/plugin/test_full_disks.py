"""Disks on which nothing more can be written, processes that may open no more files, and runs that break."""

import re
import sys
from typing import TYPE_CHECKING

import pytest
from running import OPTIONS, committed, fill, is_whole

if TYPE_CHECKING:
    from conftest import Project


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files")
@pytest.mark.parametrize(
    "limit",
    [12_000, pytest.param(60_000, marks=pytest.mark.release), pytest.param(140_000, marks=pytest.mark.release)],
)
def test_nothing_is_damaged_where_nothing_can_be_written(
    project: "Project", monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    before = fill(project, monkeypatch)

    monkeypatch.setenv("LENGTH", "40000")
    monkeypatch.setenv("LIMIT", str(limit))
    ran = project.run(*OPTIONS, "-p", "no:cacheprovider", "--capture=no")
    assert ran.code == 1
    assert "Traceback" not in ran.text
    assert "INTERNALERROR" not in ran.text
    assert before.keys() == committed(project.path).keys()
    for path in project.path.rglob("*"):
        assert is_whole(path), path
    assert re.search(r"predictions not recorded in \S*p\.jsonl: File too large", ran.text)
    assert ("report NOT written to" in ran.text) == (limit < len(before["r.html"]))
    assert re.search(r"judge cache \S*cache\.sqlite3: .*full", ran.text)

    monkeypatch.delenv("LIMIT")
    assert project.run(*OPTIONS).code == 0
    after = committed(project.path)
    assert b"h h h h" in after["p.jsonl"]
    assert all(len(after[name]) >= len(before[name]) for name in ("s.scores.json", "s.failures.json", "r.html"))


FILES = """\
import resource


def pytest_configure():
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
"""
GREEDY = """\
import asyncio
import socket

in_flight = 0


async def answer(word):
    global in_flight
    in_flight += 1
    pair = socket.socketpair()
    for _ in range(5):
        await asyncio.sleep(0)
    for each in pair:
        each.close()
    most, in_flight = in_flight, in_flight - 1
    return word.upper() if most <= 12 else "too many"
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits open files")
def test_calls_at_a_time_are_as_many_as_open_files_allow(project: "Project") -> None:
    project.asking("s.eval.yaml", "bot:answer", *(f"w{number:02}" for number in range(60)))
    project.write("bot.py", GREEDY)
    project.write("conftest.py", FILES)
    ran = project.run("--llmeval-concurrency=60")
    assert (ran.code, ran.counts["passed"]) == (0, 60)
    assert "found 60 calls at a time, and the machine's limit of open files (ulimit -n) allows 12: raise it" in ran.text


BREAKING = """\


def pytest_runtest_logreport(report):
    if report.when == "call" and "w02" in report.nodeid:
        import bot

        bot.ALL.wait()
        open("/dev/null")
"""
HOLDING = """\
import asyncio
import threading

ALL = threading.Event()


async def answer(word):
    if word < "w03":
        return word.upper()
    held = []
    try:
        while True:
            try:
                held.append(open("/dev/null"))
            except OSError:
                ALL.set()
                await asyncio.sleep(0)
    finally:
        for each in held:
            each.close()
"""
"""Calls that hold all the files there are, until they end."""


@pytest.mark.skipif(sys.platform == "win32", reason="limits open files")
def test_an_internal_error_leaves_a_report_of_what_was_judged(project: "Project") -> None:
    words = [f"w{number:02}" for number in range(60)]
    project.asking("s.eval.yaml", "bot:answer", *words, gates=["exact_match >= 0.5"])
    project.write("bot.py", HOLDING)
    project.write("conftest.py", FILES + BREAKING)
    ran = project.run("--llmeval-concurrency=12", cold=True)  # judging imports libraries
    assert ran.code == pytest.ExitCode.INTERNAL_ERROR
    (suite,) = ran.report["suites"]
    assert suite["counts"]["passed"] == 3
    assert suite["counts"]["not_run"] == 57
    assert {case["reason"] for case in suite["cases"] if case["outcome"] == "not_run"} == {
        "[Errno 24] Too many open files: '/dev/null'"
    }
    assert [gate["outcome"] for gate in suite["gates"]] == ["not_judged"]

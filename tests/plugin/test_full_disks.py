"""A disk on which nothing more can be written: what was there stays whole, and the next run goes on."""

import gzip
import json
import re
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

CONFTEST = """\
import os
import resource

import pytest

if "LIMIT" in os.environ:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(os.environ["LIMIT"]), resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


@pytest.fixture(scope="session")
def judge_client():
    async def judge(request):
        return '{"reasoning": "good ' + "and good " * 3_000 + '", "score": 4}'

    return judge
"""
BOT = """\
import os


def answer(word):
    return " ".join([word] * int(os.environ["LENGTH"]))
"""
OPTIONS = (
    *("--snapshot-update", "--llmeval-predictions=p.jsonl", "--llmeval-predictions-mode=refresh"),
    *("--llmeval-judge=refresh", "--llmeval-texts=all"),
    *(f"--llmeval-report=r.{suffix}" for suffix in ("html", "md", "csv", "llmeval")),
)


def is_whole(path: Path) -> bool:
    """Return whether a file can be read to its end; an unreadable one raises."""
    match path.suffix:
        case ".json":
            json.loads(path.read_bytes())
        case ".jsonl":
            return path.read_bytes().endswith(b"\n") and all(map(json.loads, path.read_bytes().splitlines()))
        case ".llmeval" if path.is_file():
            gzip.decompress(path.read_bytes())
        case ".html":
            return path.read_bytes().rstrip().endswith(b"</html>")
        case ".sqlite3":
            with sqlite3.connect(path) as connection:
                return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return True


def kept(folder: Path) -> dict[str, bytes]:
    """Return what a project commits, and the reports of it."""
    names = [*folder.glob("__llmeval__/*"), *folder.glob("*.jsonl"), *folder.glob("r.*")]
    return {each.name: each.read_bytes() for each in names}


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files")
@pytest.mark.parametrize("limit", [12_000, 60_000, 140_000])
def test_nothing_is_damaged_where_nothing_can_be_written(
    project: "Project", monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setenv("LENGTH", "3")
    project.write("conftest.py", CONFTEST)
    project.write("bot.py", BOT)
    project.suite(
        "s.eval.yaml",
        [{"id": word, "input": word, "expected": word} for word in "abcd"],
        target="bot:answer",
        judge={"model": "fixture:judge_client"},
        evaluators=[{"text": {"metrics": ["f1"]}}, {"judge": {"criteria": "Be good.", "steps": ["Look."]}}],
        thresholds={"f1": 0.9},
        snapshot=True,
        approve={"failures": True},
    )
    assert project.run(*OPTIONS).code == 0
    before = kept(project.path)
    assert {"s.scores.json", "s.cases.jsonl", "s.failures.json", "s.judgements.jsonl", "p.jsonl", "r.html"} <= set(
        before
    )

    monkeypatch.setenv("LENGTH", "40000")
    monkeypatch.setenv("LIMIT", str(limit))
    ran = project.run(*OPTIONS, "-p", "no:cacheprovider", "--capture=no")
    assert ran.code == 1
    assert "Traceback" not in ran.text
    assert "INTERNALERROR" not in ran.text
    assert before.keys() == kept(project.path).keys()
    for path in project.path.rglob("*"):
        assert is_whole(path), path
    assert re.search(r"predictions not recorded in \S*p\.jsonl: File too large", ran.text)
    assert ("report NOT written to" in ran.text) == (limit < len(before["r.html"]))
    assert re.search(r"judge cache \S*cache\.sqlite3: .*full", ran.text)

    monkeypatch.delenv("LIMIT")
    assert project.run(*OPTIONS).code == 0
    after = kept(project.path)
    assert b"a a a a" in after["p.jsonl"]
    assert all(len(after[name]) >= len(before[name]) for name in ("s.scores.json", "s.failures.json", "r.html"))

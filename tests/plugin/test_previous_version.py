"""Files that the version before wrote: approved scores and answers, recorded answers, and the cache of verdicts."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

WRITTEN = Path(__file__).parent / "previous_version"


@pytest.fixture
def written(project: "Project") -> "Project":
    shutil.copytree(WRITTEN, project.path, dirs_exist_ok=True)
    cache = project.path / ".llmeval" / "cache.sqlite3"
    cache.parent.mkdir()
    with closing(sqlite3.connect(cache)) as database:
        database.executescript((WRITTEN / "cache.sql").read_text(encoding="utf-8"))
    return project


def test_they_are_read(written: "Project") -> None:
    # No service listens where the suite expects its judge, so every verdict is a stored one.
    ran = written.run("--llmeval-predictions=answers.jsonl", "--llmeval-predictions-mode=replay")
    assert ran.code == 0, ran.text
    assert ran.outcomes("help") == dict.fromkeys(("abroad", "refund", "return"), "passed")
    assert ran.suites["help"]["metrics"]["judge_score"]["value"] == 1

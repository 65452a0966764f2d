"""A disk on which nothing more can be written: what was there stays whole, and the next run goes on."""

import re
import sys
from typing import TYPE_CHECKING

import pytest
from running import OPTIONS, committed, fill, is_whole

if TYPE_CHECKING:
    from conftest import Project


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files")
@pytest.mark.parametrize("limit", [12_000, 60_000, 140_000])
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

"""Text from outside in what a run shows: without secrets, and without what terminals obey or people do not see."""

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

BOT = """\
import json
import os


def answer(word):
    print("calling with", os.environ["SEARCH_API_KEY"])
    key = os.environ["SEARCH_API_KEY"]
    if word == "named":
        key = os.environ["TEAM"]
    raise ValueError(f"refused\\x1b[2J \\u202e {json.dumps({'key': key})}")
"""
KEY = 's3"cret'
TEAM = "blue42"


def test_keys_and_escape_codes_of_exceptions_are_nowhere(project: "Project", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_API_KEY", KEY)
    monkeypatch.setenv("TEAM", TEAM)
    project.write("bot.py", BOT)
    judge = {"model": "openai:none", "base_url": "http://127.0.0.1:1/v1", "api_key_env": "TEAM"}
    cases = [{"id": f"{word}\u200b", "input": word, "expected": "x"} for word in ("plain", "named")]
    project.suite("bot.eval.yaml", cases, suite="bot", target="bot:answer", judge=judge)
    ran = project.run("-v", "--showlocals", "--junitxml=junit.xml", "--llmeval-report=r.md", workers=2)
    assert ran.counts == {"failed": 2}
    written = [ran.text, *((project.path / name).read_text(encoding="utf-8") for name in ("junit.xml", "r.md"))]
    report = (project.path / "report.json").read_text(encoding="utf-8")
    for text in (*written, report, *(case["reason"] for case in json.loads(report)["suites"][0]["cases"])):
        for secret in (KEY, json.dumps(KEY)[1:-1], TEAM, "\x1b[2J", "\u202e", "\u200b"):
            assert secret not in text
    assert r'E       ValueError: refused\x1b[2J \u202e {"key": "***"}' in ran.text
    assert "calling with ***" in ran.text
    assert r"bot.eval.yaml::plain\u200b" in ran.text
    assert [case["id"] for case in json.loads(report)["suites"][0]["cases"]] == ["plain\u200b", "named\u200b"]

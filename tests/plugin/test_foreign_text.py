"""Text from outside in what a run shows: without secrets, and without what terminals obey or people do not see."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

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
KEY = 's3"cret-key'
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


LEAKING = """\
import base64
import os
from urllib.parse import quote

KEY = os.environ["SEARCH_TOKEN"]


def forms():
    basic = [base64.b64encode(("me:"[:at] + KEY + ":").encode()).decode() for at in range(3)]
    return [KEY, *basic, KEY.encode().hex(), quote(KEY, safe="")]


def answer(word):
    print(forms())
    if word == "raise":
        raise ValueError(" ".join(forms()))
    return {"answer": " ".join(forms()), "list": forms()} if word == "object" else " ".join(forms())
"""
JUDGE = """\
import pytest
import bot


@pytest.fixture(scope="session")
def judge_client():
    async def judge(request):
        return '{"reasoning": "' + " ".join(bot.forms()) + '", "score": 1}'

    return judge
"""
SOUND = {"id": "sound", "input": "x", "expected": "x", "prediction": "x"}
TOKEN = "p+ssw0rd/Secret99:x"


def cores(secret: str) -> set[bytes]:
    """Return what tells a secret, in every encoding that an answer may have."""
    content = secret.encode()
    encoded = [base64.b64encode(bytes(before) + content)[4 : 4 + 4 * (len(content) // 4)] for before in range(3)]
    return {content, content.hex().encode(), quote(secret, safe="").encode(), *encoded}


def unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".llmeval":
        return gzip.decompress(data)
    if path.suffix == ".html":
        parts = re.findall(rb'<script type="text/plain" id="\w+">(.*?)</script>', data)
        assert parts
        data = b"\n".join([data, *(gzip.decompress(base64.b64decode(each)) for each in parts)])
    return data


def test_encoded_secrets_are_in_no_output(project: "Project", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_TOKEN", TOKEN)
    project.write("bot.py", LEAKING)
    project.write("conftest.py", JUDGE)
    project.suite(
        "bot.eval.yaml",
        [{"id": word, "input": word, "expected": "x"} for word in ("text", "raise", "object")] + [SOUND],
        target="bot:answer",
        judge={"model": "fixture:judge_client"},
        evaluators=[{"text": {"metrics": ["f1"]}}, {"judge": {"criteria": "Be good.", "steps": ["Look."]}}],
        thresholds={"f1": 0.5},
        snapshot=True,
        approve={"failures": True},
    )
    reports = [f"--llmeval-report=r.{suffix}" for suffix in ("html", "md", "llmeval")]
    options = ["-vv", "--showlocals", "--junitxml=junit.xml", "--llmeval-texts=all", "--llmeval-predictions=p.jsonl"]
    ran = project.run(*options, *reports, "--llmeval-report=scores.csv", "--snapshot-update", "--llmeval-judge=refresh")
    assert ran.counts["failed"] == 3
    assert "predictions NOT recorded, since they have the value of a secret variable: 2 ('object', 'text')" in ran.text
    files = [each for each in project.path.rglob("*") if each.is_file() and each.suffix != ".pyc"]
    assert {"bot.judgements.jsonl", "r.html", "r.llmeval", "p.jsonl", "junit.xml", "report.json"} <= {
        each.name for each in files
    }
    for core in cores(TOKEN):
        assert core not in ran.text.encode(), core
        assert [each.name for each in files if core in unpacked(each)] == [], core

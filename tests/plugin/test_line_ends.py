"""Checkouts whose lines end in CRLF, as git makes them on Windows: the same verdicts, and nothing is written anew."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

CONFTEST = """\
import pytest


@pytest.fixture(scope="session")
def judge_client():
    async def judge(request):
        if "two answers" in str(request):
            return '{"reasoning": "alike", "better": "tie"}'
        return '{"reasoning": "good", "score": 4}'

    return judge
"""
SUITE = """\
# A remark
source: {format: KIND, path: cases.KIND}
target: bot:answer
judge: {model: "fixture:judge_client"}
evaluators:
  - text: {metrics: [f1]}
  - judge:
      prompt: grade.md
      reply: {score: {min: 1, max: 5}, reasoning: text}
  - judge:
      criteria: |
        Be good.
        Be brief.
      steps: [Look.]
    as: criteria
  - pairwise: {against: approved}
thresholds: {f1: 0.4}
gates: [{metric: f1, max_drop: 0.9}]
snapshot: {tolerance: 1, pool: 2}
approve: {failures: true}
"""
PROMPT = """\
Grade this answer.

Answer: {{ prediction }}

Question: {{ input }}
"""
WORDS = ("first line\nsecond line", "b", "c\n\nd", "猫")


SELDOM = [pytest.param(kind, marks=pytest.mark.release) for kind in ("jsonl", "json")]


def write(project: "Project", kind: str) -> None:
    project.write("conftest.py", CONFTEST)
    project.write(
        "bot.py", 'import os\n\n\ndef answer(text):\n    return text if text != os.environ.get("WRONG") else "no"\n'
    )
    project.write("s.eval.yaml", SUITE.replace("KIND", kind))
    project.write("grade.md", PROMPT)
    rows = [{"id": str(number), "input": text, "expected": text} for number, text in enumerate(WORDS)]
    if kind == "csv":
        lines = ["id,input,expected", *(f'{row["id"]},"{row["input"]}","{row["expected"]}"' for row in rows)]
        text = "\n".join(lines) + "\n"
    elif kind == "jsonl":
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
    else:
        text = json.dumps(rows, indent=1) + "\n"
    (project.path / f"cases.{kind}").write_bytes(text.encode())


def files(project: "Project") -> list[Path]:
    """Return what a project commits, and the working files of earlier runs."""
    found = [
        *project.path.glob("*.*"),
        *project.path.glob("__llmeval__/*"),
        project.path / ".llmeval" / "history.jsonl",
    ]
    return [each for each in found if each.is_file() and each.suffix != ".pyc"]


@pytest.mark.parametrize("kind", ["csv", *SELDOM])
def test_a_checkout_with_other_line_ends_is_judged_as_it_was(
    project: "Project", monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    write(project, kind)
    record = ("--snapshot-update", "--llmeval-judge=record", "--llmeval-predictions=p.jsonl")
    for wrong in ("", "b", "b", "b"):  # until nothing changes any more
        monkeypatch.setenv("WRONG", wrong)
        assert project.run(*record, "--llmeval-predictions-mode=refresh", report="first.json").code == 0
    replay = ("--llmeval-judge=replay", "--llmeval-predictions=p.jsonl", "--llmeval-predictions-mode=replay")
    before = project.run(*replay, report="first.json")
    assert before.code == 0, before.text
    (project.path / "first.json").unlink()

    changed = {}
    for each in files(project):
        each.write_bytes(each.read_bytes().replace(b"\n", b"\r\n"))
        changed[each] = each.read_bytes()
    assert sum(each.suffix == ".jsonl" for each in changed) > 5
    ran = project.run(*replay)
    assert ran.code == 0, ran.text
    for each in ("metrics", "gates", "snapshot"):
        assert ran.suites["s"][each] == before.suites["s"][each], each
    for now, then in zip(ran.suites["s"]["cases"], before.suites["s"]["cases"], strict=True):
        assert {**now, "duration_s": 0} == {**then, "duration_s": 0}
    approved = project.run(*replay, "--snapshot-update", "--llmeval-judge=record")
    assert approved.code == 0, approved.text
    left = {path: path.read_bytes() for path in changed if path.name not in ("history.jsonl", "report.json")}
    # What cases read is an input by its bytes; on Windows alone git itself changes how lines end.
    inputs = set() if os.linesep == "\r\n" else {"s.inputs.json"}
    assert {path.name for path, data in left.items() if changed[path] != data} <= inputs

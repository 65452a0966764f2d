"""The action for GitHub: its shell steps as real processes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from project import ROOT
from servers import PATIENCE

ACTION = ROOT
STEPS: list[dict[str, Any]] = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
HOSTILE = "`$(touch hacked)`; touch hacked #"


def run(name: str, folder: Path, **environment: str) -> int:
    step = next(each for each in STEPS if each["name"] == name)
    assert set(step["env"]) <= environment.keys()
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    paths = {"PATH": f"{folder / 'tools'}:{os.environ['PATH']}", "GITHUB_REPOSITORY": "o/r"}
    paths |= {"GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    return subprocess.run(command, cwd=folder, env={**paths, **environment}, timeout=PATIENCE, check=False).returncode


def test_the_action_installs_its_own_version(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "python3").write_text('#!/bin/sh\necho "$@" >> pip.txt\n', encoding="utf-8")
    (tmp_path / "tools" / "python3").chmod(0o755)
    assert run("Install", tmp_path, REQUIREMENT="", GITHUB_ACTION_PATH=str(ACTION)) == 0
    assert run("Install", tmp_path, REQUIREMENT="pytest-llmeval-suite>=1") == 0
    own, named = (line.split()[-1] for line in (tmp_path / "pip.txt").read_text(encoding="utf-8").splitlines())
    assert Path(own).resolve() == ROOT.resolve()
    assert named == "pytest-llmeval-suite>=1"


def test_the_action_judges_and_comments(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    for name, text in (
        ("llmeval", f'exec {sys.executable} -m pytest_llmeval "$@"'),
        ("gh", 'for each in "$@"; do echo "$each" >> gh.txt; done'),
    ):
        (tmp_path / "tools" / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (tmp_path / "tools" / name).chmod(0o755)
    for name, passed in (("old.jsonl", 36), ("new.jsonl", 10)):
        rows = [{"case": f"c{n}", "metric": "accuracy", "score": n < passed} for n in range(40)]
        (tmp_path / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    given = {"RESULTS": "new.jsonl\n", "BASELINE": "old.jsonl", "GATES": "accuracy >= 0.2\ndrop(accuracy) <= 0.1\n"}
    assert run("Judge", tmp_path, **given, ARGUMENTS="") == 0
    assert (tmp_path / "output").read_text() == "exit-code=1\n"
    comment = (tmp_path / "llmeval-gate" / "comment.md").read_text(encoding="utf-8")
    assert comment.startswith("<!-- pytest-llmeval -->\n## Evaluation: **Do not merge**: ")
    assert "Metrics against the baseline: 1 declined" in comment
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").count("# Evaluation report") == 1
    assert run("Comment", tmp_path, GH_TOKEN="secret", NUMBER="7") == 0
    assert (tmp_path / "gh.txt").read_text().splitlines()[-7:] == [
        *("pr", "comment", "7", "--repo", "o/r", "--body-file", "llmeval-gate/comment.md")
    ]
    assert run("Conclude", tmp_path, CODE="1") == 1

    (tmp_path / "output").unlink()
    assert run("Judge", tmp_path, RESULTS=HOSTILE, BASELINE="", GATES=HOSTILE, ARGUMENTS="") == 0
    assert (tmp_path / "output").read_text() == "exit-code=2\n"
    assert not (tmp_path / "hacked").exists()
    comment = (tmp_path / "llmeval-gate" / "comment.md").read_text(encoding="utf-8")
    assert comment.startswith("<!-- pytest-llmeval -->\n## Evaluation: **no verdict**\n\n```text\n")
    assert comment.count("```") == 2


def test_the_job_for_gitlab_names_its_variables() -> None:
    job = yaml.safe_load((ROOT / ".gitlab" / "gate.yml").read_text(encoding="utf-8"))[".llmeval-gate"]
    assert all(f"${name}" in "".join(job["script"]) or name in "".join(job["script"]) for name in job["variables"])

"""Commands with a workspace: two programs as stand-ins for coding agents, one honest and one that is not."""

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.core import PredictionError
from pytest_llmeval.targets import TargetSpec
from pytest_llmeval.targets._spec import WorkspaceSpec
from pytest_llmeval.tasks.agents._workspace import WorkspaceTarget, _read_files

HONEST = """
import json, os, pathlib, sys
task = sys.argv[1] if len(sys.argv) > 1 else sys.stdin.read()
skill = pathlib.Path("skills/pdf/SKILL.md")
pathlib.Path("report.md").write_text(f"{task} {'with' if skill.exists() else 'without'} skill")
pathlib.Path("old.txt").unlink()
pathlib.Path.home().joinpath(".config").mkdir()
environment = sorted(set(os.environ) - {"LC_CTYPE"})
message = {"content": [{"type": "tool_use", "name": "Write", "input": {"path": "report.md"}}]}
print(json.dumps({"type": "assistant", "message": message}))
usage = {"input_tokens": 12, "output_tokens": 3, "cache": 1}
home = os.listdir(os.environ["HOME"])
print(json.dumps({"type": "result", "result": f"{home} {environment}", "total_cost_usd": 0.01, "usage": usage}))
"""

CHEAT = """
import os, pathlib, sys, time
way, where = sys.argv[1:]
if way == "read":
    print(pathlib.Path(where).read_text())
elif way == "daemon":
    note = pathlib.Path(where or "pid")
    pathlib.Path.home().joinpath("marker").write_text("I was here")
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            note.write_text(str(os.getpid()))
            time.sleep(600)
        os._exit(0)
    while not note.exists() or not note.read_text():
        time.sleep(0.01)
    if where:
        print(pathlib.Path("skills/pdf/SKILL.md").resolve())
        for _ in range(1 << 14):
            os.write(1, b"x" * (1 << 16))
elif way == "flood":
    while True:
        os.write(1, b"x" * 65536)
elif way == "hang":
    time.sleep(600)
elif way == "link":
    os.symlink(where, "link")
"""

SECRET = "The table of contents must be read before any page is extracted."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a suite with both programs, a fixture and a skill, and a home with a marker file."""
    for name, text in {
        "honest.py": HONEST,
        "cheat.py": CHEAT,
        "fixture/old.txt": "old\n",
        "skills/pdf/SKILL.md": SECRET,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    home = tmp_path / "home"
    home.mkdir()
    (home / "marker").write_text("read me", encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LLMEVAL_TEST_KEY", "k")
    return tmp_path


def workspace(command: tuple[str, ...], here: Path, timeout: float = 60, **spec: Any) -> WorkspaceTarget:
    return WorkspaceTarget(TargetSpec(command=command, workspace=WorkspaceSpec(**spec), timeout=timeout), here)


def answer(here: Path, program: str, *arguments: str, timeout: float = 60, **spec: Any) -> Any:
    command = (sys.executable, str(here / program), *arguments)
    target = workspace(command, here, timeout, **spec)
    (reply,) = asyncio.run(target.answer(["Summarize"]))
    return reply


def test_honest_program_has_a_fresh_folder_a_clean_home_and_a_declared_environment(folder: Path) -> None:
    options: dict[str, Any] = {"environment": {"MODE": "x"}, "environment_from": ("LLMEVAL_TEST_KEY",)}
    after = ((sys.executable, "-c", "print(open('report.md').read())"), ("false",))
    reply = answer(folder, "honest.py", folder="fixture", after=after, **options)
    assert "marker" not in reply["answer"]
    shown = ("HOME", "LLMEVAL_TEST_KEY", "MODE", "PATH")
    assert all(f"'{name}'" in reply["answer"] for name in shown)
    assert "PYTEST_CURRENT_TEST" not in reply["answer"]
    outcome = reply["outcome"]
    assert (outcome["exit_code"], outcome["deleted"]) == (0, ["old.txt"])
    assert outcome["files"] == {"report.md": "Summarize without skill"}
    assert "--- a/old.txt\n+++ b/old.txt\n@@ -1 +0,0 @@\n-old\n" in outcome["diff"]
    assert [each["exit_code"] for each in outcome["after"]] == [0, 1]
    assert outcome["after"][0]["output"] == "Summarize without skill\n"
    assert reply["usage"] == {"input_tokens": 12, "output_tokens": 3, "cost_usd": 0.01}
    assert reply["tool_calls"] == [{"name": "Write", "arguments": {"path": "report.md"}}]
    assert (folder / "fixture" / "old.txt").exists()


def test_large_files_are_compared_and_not_kept(folder: Path) -> None:
    for name in ("same.bin", "other.bin", "small.txt"):
        (folder / "fixture" / name).write_bytes(b"x" * 5_000_000 if name != "small.txt" else b"1\n")
    program = "open('other.bin', 'ab').write(b'y'); open('small.txt', 'w').write('2\\n')"
    (folder / "write.py").write_text(program, encoding="utf-8")
    outcome = answer(folder, "write.py", folder="fixture")["outcome"]
    known = _read_files(folder / "fixture", {})
    assert sum(len(file.beginning) for file in known.values()) < 1_000_000
    assert not any(file.beginning for file in _read_files(folder / "fixture", known).values())
    assert outcome["files"] == {"other.bin": "x" * 100_000, "small.txt": "2\n"}
    assert "+(5000001 bytes, SHA-256 " in outcome["diff"]
    assert "-1\n+2\n" in outcome["diff"]


def test_files_of_lines_that_are_alike_are_compared_by_size(folder: Path) -> None:
    (folder / "fixture" / "long.txt").write_text("a\nb\n" * 3_000, encoding="utf-8")
    (folder / "write.py").write_text("open('long.txt', 'w').write('b\\na\\n' * 3_000)", encoding="utf-8")
    assert "-(12000 bytes, SHA-256 " in answer(folder, "write.py", folder="fixture")["outcome"]["diff"]


def test_arm_has_the_files_that_it_copies(folder: Path) -> None:
    reply = answer(folder, "honest.py", "{input} now", folder="fixture", copy={"skills/pdf": "skills/pdf"})
    assert reply["outcome"]["files"]["report.md"] == "Summarize now with skill"
    reply = answer(folder, "honest.py", folder="fixture", copy={"skills/pdf": "../outside"})
    assert "expected a place inside the workspace" in str(reply)


COMMITS = """
import os, pathlib
os.system("git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m agent && git branch mine")
pathlib.Path("evals/old.txt").write_text("new")
print(os.popen("git log --format=%s && git remote").read())
"""


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_workspace_at_a_commit_is_a_clone_whose_commits_stay_in_it(folder: Path) -> None:
    repository = folder / "repository"
    (repository / "evals").mkdir(parents=True)
    (repository / "evals" / "old.txt").write_text("old", encoding="utf-8")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["commit", "-qm", "first"],
        ["commit", "-qm", "second", "--allow-empty"],
    ):
        subprocess.run([*git, *command], cwd=repository, check=True)
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\ntouch ran\n", encoding="utf-8")
    hook.chmod(0o755)
    (repository / "evals" / "old.txt").write_text("not committed", encoding="utf-8")
    target = workspace((sys.executable, "-c", COMMITS), repository / "evals", commit="HEAD~1")
    (reply,) = asyncio.run(target.answer([""]))
    assert reply["answer"] == "agent\nfirst"
    assert reply["outcome"]["diff"].endswith("-old\n\\ No newline at end of file\n+new\n\\ No newline at end of file\n")
    assert reply["outcome"]["created"] == []
    branches = subprocess.run([*git, "branch"], cwd=repository, check=True, capture_output=True, text=True).stdout
    assert "mine" not in branches
    (reply,) = asyncio.run(workspace(("true",), repository, commit="gone").answer([""]))
    assert "has no workspace: git rev-parse: fatal: " in str(reply)
    spec = TargetSpec(command=("true",), workspace=WorkspaceSpec(commit="HEAD", folder="fixture"))
    assert [each for each, _ in spec.faults()] == [("workspace", "commit")]


def test_answer_that_shows_what_must_not_be_read_does_not_count(folder: Path) -> None:
    reply = answer(folder, "cheat.py", "read", str(folder / "skills/pdf/SKILL.md"), must_not_read=("skills",))
    assert isinstance(reply, PredictionError)
    assert "contaminated, so its answer does not count: it shows a line of skills: The table of contents" in str(reply)
    assert answer(folder, "cheat.py", "read", str(folder / "cheat.py"), must_not_read=("skills",))["answer"]


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells the environment of processes")
def test_daemon_that_left_its_group_dies_with_the_program(folder: Path) -> None:
    reply = answer(folder, "cheat.py", "daemon", "")
    assert not alive(int(reply["outcome"]["files"]["pid"]))
    # One that then prints a gigabyte is killed on the way, with its daemon; what it wrote to HOME is gone.
    reply = answer(folder, "cheat.py", "daemon", str(folder / "pid"), must_not_read=("skills",))
    assert "wrote more than 10000000 bytes" in str(reply)
    assert not alive(int((folder / "pid").read_text(encoding="utf-8")))
    assert (folder / "home" / "marker").read_text(encoding="utf-8") == "read me"


def test_output_and_time_have_limits(folder: Path) -> None:
    assert "wrote more than 200000 bytes" in str(answer(folder, "cheat.py", "flood", "", max_output=200_000))
    assert "took longer than 0.5 s" in str(answer(folder, "cheat.py", "hang", "", timeout=0.5))
    assert "cannot be started" in str(asyncio.run(workspace(("/none",), folder).answer([""]))[0])
    assert answer(folder, "cheat.py", "link", "/etc/passwd")["outcome"]["files"] == {}


def test_workspace_belongs_to_a_command() -> None:
    faults = TargetSpec(python="a:b", workspace="x").faults()
    assert list(faults) == [(("workspace",), "found a workspace beside python, expected a command")]
    assert list(TargetSpec(command=("a",), workspace="x", concurrency=4).faults()) == []

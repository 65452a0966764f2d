"""Runs where suites seldom live: odd paths, other ways to import and to run tests, and machines that lack something."""

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from running import IS_ROOT, NAMELESS, WITHOUT_UNUSED, run_as

from pytest_llmeval.cli import main

if TYPE_CHECKING:
    from conftest import Project, Ran

CONFTEST = """\
import pytest


@pytest.fixture(scope="session")
def judge_client():
    async def judge(request):
        return '{"reasoning": "good", "score": 4}'

    return judge
"""
BOT = """\
import helper


def answer(word):
    return helper.upper(word)
"""
RECORD = ("--snapshot-update", "--llmeval-judge=record", "--llmeval-predictions=p.jsonl")
REPLAY = ("--llmeval-judge=replay", "--llmeval-predictions=p.jsonl", "--llmeval-predictions-mode=replay")


def write(project: "Project", folder: str = "") -> Path:
    """Write a suite with target, judge, gate and snapshot into a folder of the project, and return that."""
    at = f"{folder}/" if folder else ""
    project.write(f"{at}conftest.py", CONFTEST)
    project.write(f"{at}helper.py", "def upper(word):\n    return word.upper()\n")
    project.write(f"{at}bot.py", BOT)
    project.write(f"{at}pytest.ini", "[pytest]\n")
    suite = project.suite(
        f"{at}s.eval.yaml",
        [{"id": word, "input": word, "expected": word.upper()} for word in ("a", "é", "猫")],
        target="bot:answer",
        judge={"model": "fixture:judge_client"},
        evaluators=[{"text": {"metrics": ["f1"]}}, {"judge": {"criteria": "Be good.", "steps": ["Look."]}}],
        gates=["f1 >= 0.9", {"metric": "f1", "max_drop": 0.1}],
        snapshot=True,
    )
    return suite.parent


def passed(ran: "Ran") -> bool:
    """Return whether all cases, gates and snapshots of the suite passed."""
    assert "Traceback" not in ran.text, ran.text
    return (ran.code, {*ran.outcomes("s").values()}, ran.counts["passed"]) == (0, {"passed"}, 7)


def test_paths_have_blanks_and_any_script(
    project: "Project", monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], workers: int
) -> None:
    folder = write(project, "my evals/中文 目录/🎉 ü")
    monkeypatch.chdir(folder)
    reports = [f"--llmeval-report=out put/r.{suffix}" for suffix in ("html", "md", "csv", "llmeval")]
    assert project.run(*RECORD, workers=workers, report=str(project.path / "report.json")).code == 0
    assert passed(project.run(*REPLAY, *reports, workers=workers, report=str(project.path / "report.json")))
    assert len(list((folder / "out put").iterdir())) == 4
    for arguments in (
        ("merge", "out put/r.llmeval"),
        ("history", "s.eval.yaml"),
        ("validate", "s.eval.yaml"),
        ("html", str(project.path / "report.json"), "--output=out put/again.html"),
    ):
        assert (main([*arguments]), capsys.readouterr().err) == (0, ""), arguments


@pytest.mark.release
def test_a_terminal_of_another_encoding_loses_nothing_but_the_look_of_letters(
    project: "Project", monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project)
    for encoding in ("cp1252", "ascii"):
        monkeypatch.setenv("PYTHONIOENCODING", encoding)
        ran = run_as((), "-m", "pytest", *WITHOUT_UNUSED, "--llmeval", "-v", *RECORD)
        assert (ran.returncode, "Traceback" in ran.stdout + ran.stderr) == (0, False), encoding
    commands = [("history", "s.eval.yaml"), ("evaluators", "text"), ("validate", "猫.eval.yaml")]
    ran = run_as((), "-c", f"from pytest_llmeval.cli import main\nprint([main(each) for each in {commands!a}])")
    assert ran.stdout.endswith("[0, 0, 1]\n"), ran.stdout + ran.stderr
    assert "Traceback" not in ran.stdout + ran.stderr
    assert "\\u732b.eval.yaml" in ran.stdout + ran.stderr


def test_a_checkout_is_reached_through_a_link(project: "Project", monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(project, "real")
    monkeypatch.chdir(folder)
    assert project.run(*RECORD, report=str(project.path / "report.json")).code == 0
    link = project.path / "link"
    link.symlink_to(folder, target_is_directory=True)
    monkeypatch.chdir(link)
    assert passed(project.run(*REPLAY, report=str(project.path / "report.json")))
    assert passed(project.run(*REPLAY, report=str(project.path / "report.json"), workers=2))
    assert not [each for each in folder.rglob("*") if each.is_symlink()]


@pytest.mark.release
def test_the_rootdir_is_elsewhere(project: "Project", tmp_path_factory: pytest.TempPathFactory) -> None:
    folder, root = write(project, "evals"), tmp_path_factory.mktemp("root")
    arguments = (f"--rootdir={root}", "-c", os.devnull, str(folder))
    assert project.run(*arguments, *RECORD).code == 0
    assert passed(project.run(*arguments, *REPLAY))
    assert (folder / "__llmeval__" / "s.scores.json").is_file()
    assert (root / ".llmeval" / "history.jsonl").is_file()


@pytest.mark.release
def test_tests_are_imported_and_run_in_other_ways(project: "Project") -> None:
    write(project)
    arguments = ("--import-mode=importlib", "-pno:xdist")
    assert project.run(*RECORD, *arguments, cold=True).code == 0
    assert passed(project.run(*REPLAY, *arguments, cold=True))


@pytest.mark.release
def test_each_case_runs_in_a_process_of_its_own(project: "Project") -> None:
    pytest.importorskip("pytest_forked")
    plain = project.write("test_plain.py", "def test_plain():\n    pass\n")
    if project.run("--forked", "test_plain.py", llmeval=False).code:
        pytest.skip("this pytest-forked does not work with this pytest")
    plain.unlink()
    write(project)
    assert project.run(*RECORD, "--forked").code == 0
    assert passed(project.run(*REPLAY, "--forked"))


@pytest.mark.release
@pytest.mark.parametrize("method", ["signal", "thread"])
def test_cases_have_time_enough(project: "Project", method: str) -> None:
    pytest.importorskip("pytest_timeout")
    write(project)
    arguments = ("--timeout=60", f"--timeout-method={method}")
    assert project.run(*RECORD, *arguments).code == 0
    assert passed(project.run(*REPLAY, *arguments, workers=2))


@pytest.mark.release
def test_a_case_that_takes_too_long_ends_alone(project: "Project", workers: int) -> None:
    pytest.importorskip("pytest_timeout")
    project.write(
        "bot.py",
        """\
        import threading


        def answer(word):
            if word == "b":
                threading.Event().wait()
            return word.upper()
        """,
    )
    project.asking("s.eval.yaml", "bot:answer", "a", "b", "c")
    ran = project.run("--timeout=3", workers=workers)
    assert ran.outcomes("s") == {"a": "passed", "b": "errored", "c": "passed"}
    assert "Timeout" in ran.suites["s"]["cases"][1]["reason"]


@pytest.mark.release
def test_there_is_no_home_and_no_folder_for_temporary_files(
    project: "Project", monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write(project)
    here = tmp_path_factory.mktemp("path")
    (here / "sitecustomize.py").write_text(
        "import tempfile\ntempfile._candidate_tempdir_list = list\n", encoding="utf-8"
    )
    monkeypatch.setenv("PYTHONPATH", str(here))
    for name in ("HOME", "XDG_CACHE_HOME", "TMPDIR", "TEMP", "TMP", "USER", "LOGNAME"):
        monkeypatch.delenv(name, raising=False)
    reports = ("--llmeval-report=r.html", "--llmeval-report=r.llmeval")
    capture = "--capture=sys"  # otherwise pytest itself needs temporary files
    assert project.run(*RECORD, capture, *reports, cold=True).code == 0
    assert passed(project.run(*REPLAY, capture, *reports, cold=True))
    assert run_as((), "-m", "pytest_llmeval", "merge", "r.llmeval").returncode == 0


@pytest.mark.release
@pytest.mark.skipif(not IS_ROOT or not shutil.which("setpriv"), reason="only root becomes another user")
@pytest.mark.skipif(sys.platform == "win32", reason="users have numbers")
def test_the_user_has_no_name_and_no_environment(project: "Project", monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = (
        *("setpriv", f"--reuid={NAMELESS}", f"--regid={NAMELESS}", "--clear-groups"),
        *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),  # Python may be installed for root alone
    )
    environment = {"PATH": os.defpath}
    common = ("-m", "pytest", "--llmeval", "-pno:cacheprovider", *WITHOUT_UNUSED, "-pno:rerunfailures")
    with tempfile.TemporaryDirectory() as name:  # pytest's own are for their owner alone
        monkeypatch.chdir(folder := write(type(project)(Path(name))))
        for each in (folder, *folder.rglob("*")):
            os.chown(each, NAMELESS, NAMELESS)
        first = run_as(prefix, *common, *RECORD, environment=environment)
        again = run_as(prefix, *common, *REPLAY, "-n1", environment=environment)
        history = run_as(prefix, "-m", "pytest_llmeval", "history", "s.eval.yaml", environment=environment)
        owners = {each.stat().st_uid for each in folder.rglob("*")}
        monkeypatch.chdir(project.path)
    assert first.returncode == 0, first.stdout + first.stderr
    assert again.returncode == 0, again.stdout + again.stderr
    assert "3 passed" in again.stdout
    assert history.returncode == 0
    assert owners == {NAMELESS}


PROGRAM = """\
import json, subprocess, sys

for line in sys.stdin:
    asked = json.loads(line)
    if asked["input"] == "b":
        subprocess.run([sys.executable, "-c", "import threading; threading.Event().wait()"])
    print(json.dumps({"id": asked["id"], "prediction": asked["input"].upper()}), flush=True)
"""


@pytest.mark.release
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="sees in /proc which files are open")
def test_a_machine_lacks_what_windows_lacks(project: "Project", monkeypatch: pytest.MonkeyPatch) -> None:
    write(project)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    project.write("pytest.ini", "[pytest]\naddopts = -p like_windows\n")
    reports = [f"--llmeval-report=r.{suffix}" for suffix in ("html", "md", "csv", "llmeval")]
    recorded = project.run(*RECORD, *reports, cold=True)
    assert recorded.code == 0, recorded.text
    assert passed(project.run(*REPLAY, *reports, workers=2, cold=True))
    ran = run_as(
        (),
        "-c",
        "import like_windows, sys; from pytest_llmeval.cli import main; sys.exit(main())",
        "merge",
        "r.llmeval",
    )
    assert (ran.returncode, ran.stderr) == (0, "")

    taskkill = project.write("bin/taskkill", f"#!/bin/sh\necho $* > '{project.path}/killed.txt'\n")
    taskkill.chmod(0o755)
    monkeypatch.setenv("PATH", f"{taskkill.parent}{os.pathsep}{os.environ['PATH']}")
    project.write("program.py", PROGRAM)
    command = {"command": [sys.executable, "program.py"], "timeout": 2}
    project.asking("c.eval.yaml", command, "a", "b")
    outcomes = project.run("c.eval.yaml", cold=True).outcomes("c")
    assert outcomes == {"a": "passed", "b": "errored"}
    assert re.fullmatch(r"/F /T /PID \d+\n", (project.path / "killed.txt").read_text(encoding="utf-8"))

"""The ``llmeval`` command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from servers import PATIENCE

from pytest_llmeval import __version__, cli
from pytest_llmeval.cli import main
from pytest_llmeval.suites.registry import default_registry


@pytest.mark.parametrize(
    ("old", "now"),
    [
        (["convert", "a.json", "--from", "official", "--to", "internal", "--subtask", "2"], "emotion-cause convert"),
        (["validate", "a.json", "--subtask=2"], "emotion-cause validate"),
        (["build-retrieval-set", "a.json", "-o", "b.json"], "retrieval build-set"),
    ],
)
def test_an_old_name_of_a_command_works_with_a_notice(
    old: list[str], now: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_text("[]", encoding="utf-8")
    code = main(old)
    then = capsys.readouterr()
    assert main([*now.split(), *old[1:]]) == code
    present = capsys.readouterr()
    notice = f"notice: 'llmeval {old[0]}' is now 'llmeval {now}'; the old name will be removed in the next version\n"
    assert (then.out, then.err) == (present.out, notice + present.err)


def test_no_command_of_the_kernel_has_a_name_that_another_had() -> None:
    """They are found without a look at the registry, which knows the old names."""
    assert default_registry().renamed.keys().isdisjoint(cli.COMMANDS)


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"pytest-llmeval-suite {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["shcema"], ["schema", "--nonsense"]])
def test_a_wrong_command_line_is_a_usage_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: llmeval" in capsys.readouterr().err


def test_the_package_runs_as_a_module_with_the_exit_code_of_the_command() -> None:
    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "pytest_llmeval", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)

    done = run("schema")
    assert json.loads(done.stdout)["title"] == "Eval suite"
    assert (done.returncode, done.stderr) == (0, "")
    assert run("evaluators", "txt").returncode == 1


@pytest.mark.parametrize("arguments", [["evaluators"], ["--help"], ["validate", "--help"]])
def test_a_closed_pipe_stays_quiet(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        command = [sys.executable, "-m", "pytest_llmeval", *arguments]
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=PATIENCE)
    finally:
        os.close(writing)
    assert done.stderr == b""
    assert done.returncode in (0, 1)  # argparse passes over what it cannot print, Python's 120 would not be quiet

"""The ``llmeval`` command."""

import json
import os
import subprocess
import sys

import pytest
from servers import PATIENCE

from pytest_llmeval import __version__
from pytest_llmeval.cli import main


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

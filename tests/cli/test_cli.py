"""The ``llmeval`` command."""

import json
import subprocess
import sys

import pytest
from llm_server import PATIENCE

from pytest_llmeval import __version__
from pytest_llmeval.cli import main
from pytest_llmeval.suite.registry import default_registry
from pytest_llmeval.suite.schema import suite_schema


def test_schema_prints_the_schema_of_suite_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == suite_schema(default_registry())


def test_evaluators_lists_every_metric_with_direction_and_signature(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluators"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["evaluator", "metric", "better", "signature"]
    rows = [line.split() for line in lines[2:]]
    assert ["text", "f1", "higher", "tok:auto|case:lower|v:1"] in rows
    assert {row[0] for row in rows} == set(default_registry())


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


def test_the_exit_code_is_that_of_the_process() -> None:
    code = "import sys; from pytest_llmeval.cli import main; sys.exit(main(['schema']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert json.loads(done.stdout)["title"] == "Eval suite"
    assert done.stderr == ""

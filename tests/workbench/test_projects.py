"""Typical projects in a clean environment: what ``init`` writes installs, runs without a key, and says what is left."""

import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from project import ROOT
from running import WITHOUT_UNUSED
from servers import PATIENCE

from pytest_llmeval.cli import main
from pytest_llmeval.workbench._project import NO_PACKAGES, SOURCE

Shell = Callable[[Path, str], tuple[int, str]]

APP = """\
def answer(question):
    return {"answer": "Refunds take 30 days.", "contexts": ["Refunds take 30 days at most."]}
"""
QUESTIONS = "question,expected\n" + "".join(f"How long do refunds of kind {n} take?,30 days\n" for n in range(4))
JUDGE = "--judge openai:some-model"
PROJECT = '[project]\nname = "NAME"\nversion = "1"\ndependencies = ["pyyaml"]\n'


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Runs commands in an environment that has the libraries of this one, and none of its settings or keys."""
    pytest.importorskip("setuptools", reason="projects are built with it")
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, symlinks=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    libraries = [str(ROOT), *(path for path in sys.path if Path(path).name == "site-packages")]
    (packages / "libraries.pth").write_text("\n".join(libraries), encoding="utf-8")
    for name, module in (("pip", "pip"), ("pytest", "pytest"), ("llmeval", "pytest_llmeval")):
        (environment / "bin" / name).write_text(f'#!/bin/sh\nexec python -m {module} "$@"\n', encoding="utf-8")
        (environment / "bin" / name).chmod(0o755)
    alone = {
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PYTEST_ADDOPTS": " ".join(WITHOUT_UNUSED),
    }
    variables = {
        "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
        "HOME": str(environment),
        "JUDGE": "off",
        **alone,
    }

    def run(folder: Path, script: str) -> tuple[int, str]:
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        done = subprocess.run(
            command, cwd=folder, env=variables, check=False, timeout=PATIENCE, capture_output=True, text=True
        )
        return done.returncode, done.stdout + done.stderr

    return run


def steps(folder: Path) -> dict[str, str]:
    """Return the steps of the workflow by name."""
    workflow: dict[Any, Any] = yaml.safe_load((folder / ".github/workflows/evals.yml").read_text(encoding="utf-8"))
    return {each["name"]: each["run"] for each in workflow["jobs"]["evaluate"]["steps"] if "run" in each}


def write(folder: Path, **files: str) -> None:
    for name, text in {"questions.csv": QUESTIONS, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("files", "arguments", "install", "code", "printed"),
    [
        pytest.param(
            # An application with a table of its project and no list of packages, as FastAPI's have. A fork has no key.
            {
                "shop_api/__init__.py": "",
                "shop_api/main.py": APP,
                "pyproject.toml": PROJECT.replace("NAME", "shop-api"),
            },
            f"--target shop_api.main:answer {JUDGE}",
            f"pip install -e . {SOURCE}",
            0,
            "questions: 2 of 3 gates not evaluated: judges are off",
            id="flat layout",
            marks=pytest.mark.release,
        ),
        pytest.param(
            {"src/shop_bot/__init__.py": APP, "pyproject.toml": PROJECT.replace("NAME", "shop-bot")},
            f"--target shop_bot:answer {JUDGE} --judge-in-ci replay",
            f"pip install -e . {SOURCE}",
            1,
            "replay: 4 cases lack recorded verdicts: pytest --llmeval tests/evals/questions.eval.yaml "
            "--llmeval-judge=record, then commit tests/evals/__llmeval__/questions.judgements.jsonl",
            id="src layout",
        ),
        pytest.param(
            {"bot.py": APP, "requirements.txt": "pyyaml\n"},
            "--target bot:answer",
            f"pip install -r requirements.txt {SOURCE}",
            0,
            "4 passed, 2 gates passed",
            id="requirements",
            marks=pytest.mark.release,
        ),
    ],
)
def test_the_steps_of_the_workflow_work_in_typical_projects(
    shell: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    arguments: str,
    install: str,
    code: int,
    printed: str,
) -> None:
    write(tmp_path, **files)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("sys.path", [*sys.path])
    assert main(["init", "--rag", "questions.csv", "--yes", "--github", *arguments.split()]) == 0
    for name in [each for each in sys.modules if each.partition(".")[0] in ("bot", "shop_api", "shop_bot")]:
        del sys.modules[name]
    run = steps(tmp_path)
    assert run["Install"] == install
    for name in ("Install", "Evaluate", *(["Compare"] if "--judge" not in arguments else [])):
        command = run[name].replace(SOURCE, "pytest-llmeval-suite")  # which this environment has, and no network
        ended, text = shell(tmp_path, f"GITHUB_STEP_SUMMARY=summary.md\n{command}")
        assert ended == (code if name == "Evaluate" else 0), text
        assert name != "Evaluate" or text.count(printed) == 1, text


def test_folders_that_are_no_packages_are_those_of_setuptools() -> None:
    discovery = pytest.importorskip("setuptools.discovery")
    names = {each for each in discovery.FlatLayoutPackageFinder.DEFAULT_EXCLUDE if each.isidentifier()}
    assert names == NO_PACKAGES

"""The hook of pre-commit: it validates the suite files of a commit."""

import re
from pathlib import Path

import pytest
import yaml

from pytest_llmeval.cli import SuitePatterns, main

HOOKS = Path(__file__).parents[1] / ".pre-commit-hooks.yaml"
SUITE = "suite: s\nevaluators: [{text: {metrics: [f1]}}]\ncases: [{id: a, expected: b, prediction: b}]\n"


def test_the_hook_validates_suite_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (hook,) = yaml.safe_load(HOOKS.read_text(encoding="utf-8"))
    assert all(re.search(hook["files"], f"evals/{pattern.replace('*', 'shop')}") for pattern in SuitePatterns.SHIPPED)
    assert not re.search(hook["files"], "evals/shop.yaml")
    program, *arguments = hook["entry"].split()
    assert program == "llmeval"
    path = tmp_path / "shop.eval.yaml"
    path.write_text(SUITE, encoding="utf-8")
    assert main([*arguments, str(path)]) == 0
    path.write_text(SUITE.replace("f1", "f2"), encoding="utf-8")
    assert main([*arguments, str(path)]) == 1
    assert "'f2'" in "".join(capsys.readouterr())


def test_names_that_a_conftest_registers_are_left_to_pytest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "evals" / "shop.eval.yaml"
    path.parent.mkdir()
    path.write_text("evaluators: [{length: {limit: 4}}]\ncases: [{id: a, prediction: b}]\n", encoding="utf-8")
    assert main(["validate", str(path)]) == 1
    conftest = tmp_path / "conftest.py"
    conftest.write_text("import absent\n\ndef pytest_llmeval_register(registry): ...\n", encoding="utf-8")
    capsys.readouterr()
    assert main(["validate", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: left to pytest, for what conftest.py registers: evaluator length\n"
    path.write_text(
        "evaluators: [text]\nsource: {format: ours, path: a}\nchecks: [{polite: true}, {contain: a}]\n",
        encoding="utf-8",
    )
    assert main(["validate", str(path)]) == 1
    out = capsys.readouterr().out
    assert "left to pytest, for what conftest.py registers: format ours, check polite\n" in out
    assert "unknown check contain, did you mean contains?" in out
    path.write_text(SUITE.replace("f1", "f2"), encoding="utf-8")
    assert main(["validate", str(path)]) == 1

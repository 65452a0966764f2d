"""Files that look like suites, by other names."""

import json
from pathlib import Path

import pytest

from pytest_llmeval.cli import SuitePatterns
from pytest_llmeval.data import InputFile

SUITE = {"suite": "x", "evaluators": ["text"], "cases": [{"prediction": "a", "expected": "a"}]}
BLOCK = "suite: x\nevaluators: [text]\ncases:\n- {prediction: a}\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", BLOCK),
        ("a.YML", "\ufeff" + BLOCK),
        ("a.yaml", "# a comment\nsource: {path: a.csv}\nchecks: [is_json]\n"),
        ("a.yaml", BLOCK + "cases: [twice\n"),
        ("a.yaml", json.dumps(SUITE)),
        ("a.json", json.dumps(SUITE, indent=2, sort_keys=True)),
        ("a.json", json.dumps(SUITE, separators=(",", ":"))),
    ],
)
def test_a_file_with_the_keys_of_a_suite_looks_like_one(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert InputFile(path).looks_like_suite()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", BLOCK),
        ("a.yaml", ""),
        ("a.yaml", "evaluators: [text]\n"),
        ("a.yaml", "cases: []\nsuite: x\n"),
        ("a.yaml", "jobs:\n  evaluators: 1\n  cases: 2\n"),
        ("a.json", json.dumps([SUITE])),
        ("a.json", json.dumps({"suites": [SUITE]})),
        ("a.json", json.dumps({"evaluators": 1})),
        ("a.json", '{"evaluators": 1, "cases": '),
        ("a.json", '{"evaluators": ' + "[" * 100_000),
    ],
)
def test_other_files_do_not(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert not InputFile(path).looks_like_suite()


def test_what_cannot_be_read_does_not_look_like_a_suite(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"cases: \xff\xfe\nevaluators: 1\n")
    (tmp_path / "folder.yaml").mkdir()
    assert not any(
        InputFile(tmp_path / name).looks_like_suite() for name in ("binary.yaml", "folder.yaml", "none.yaml")
    )


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("my_eval.yaml", "my.eval.yaml"),
        ("my-evals.yml", "my.eval.yml"),
        ("MyEvaluation.JSON", "My.eval.json"),
        ("my.eval.YAML", "my.eval.yaml"),
        ("capitals.yaml", "capitals.eval.yaml"),
        ("retrieval.yaml", "retrieval.eval.yaml"),
        ("eval.yaml", "eval.eval.yaml"),
    ],
)
def test_the_hint_has_a_name_that_is_collected(name: str, better: str) -> None:
    assert SuitePatterns.SHIPPED.hint(f"suites/{name}").endswith(f"Rename it to {better}")


def test_the_hint_names_the_patterns_of_the_project() -> None:
    assert (
        SuitePatterns(["*.suite.yaml"]).hint("a.yaml").endswith("not collected: its name matches none of *.suite.yaml")
    )

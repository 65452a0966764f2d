"""Approved answers: the file beside the scores, and what stands in for an answer that it does not have."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval import Case, SuiteError
from pytest_llmeval.baselines import ApprovedAnswers, ScoreFile
from pytest_llmeval.baselines._files import answers_text
from pytest_llmeval.core import NoAnswer
from pytest_llmeval.suites import SuiteKey

CASES = [Case("a", input="one"), Case("b", input={"question": "two"})]


def row(case: str, prediction: Any, **more: Any) -> dict[str, Any]:
    return {
        "suite": "s.eval.yaml",
        "variant": "",
        "case": case,
        "input": "of the run",
        "prediction": prediction,
        **more,
    }


def read(folder: Path, text: str) -> ApprovedAnswers:
    key = SuiteKey(str(folder / "s.eval.yaml"), "s.eval.yaml")
    path = ScoreFile.of_suite(key).answers
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    return ApprovedAnswers.read(key)


ANSWERS = ["text", "分\u2028行\x85\n", {"answer": ["x"], "usage": None}, None, "half \ud800", ""]


@pytest.mark.parametrize("answer", ANSWERS, ids=repr)
def test_an_answer_is_read_as_it_was_approved(tmp_path: Path, answer: Any) -> None:
    found = read(tmp_path, answers_text(CASES, [row("b", answer), row("a", "other")]))
    assert found.find(CASES[1], 0) == answer


def test_lines_are_sorted_and_each_repeat_has_its_own(tmp_path: Path) -> None:
    text = answers_text(CASES, [row("b", "x"), row("a", "second", repeat=1), row("a", "first"), row("gone", "y")])
    assert [(json.loads(line)["case"], json.loads(line)["repeat"]) for line in text.splitlines()] == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
    ]
    found = read(tmp_path, text)
    assert (found.find(CASES[0], 0), found.find(CASES[0], 1)) == ("first", "second")
    assert found.find(CASES[0], 2) == NoAnswer("no answer to this case is approved")


def test_an_answer_to_another_input_is_none(tmp_path: Path) -> None:
    found = read(tmp_path, answers_text(CASES, [row("a", "x")]))
    assert found.find(Case("a", input="two"), 0) == NoAnswer("the approved answer is one to another input")
    assert found.find(Case("a", input="one", way="another model"), 0) == "x"


def test_without_an_approval_the_reason_says_how_to_approve(tmp_path: Path) -> None:
    found = ApprovedAnswers.read(SuiteKey(str(tmp_path / "s.eval.yaml"), "s.eval.yaml")).find(CASES[0], 0)
    assert isinstance(found, NoAnswer)
    assert "--snapshot-update" in found.reason


@pytest.mark.parametrize("broken", ["<<<<<<< HEAD", "[]", '{"case": "b"}', "null", '{"case": "b", "repeat": "x"}'])
def test_every_damaged_line_is_a_fault(tmp_path: Path, broken: str) -> None:
    good = answers_text(CASES, [row("a", "x")])
    with pytest.raises(SuiteError) as error:
        read(tmp_path, f"{good}{broken}\n\n{good}")
    assert [str(each).partition(" (")[0].partition(", expected")[0] for each in error.value.faults] == [
        "__llmeval__/s.answers.jsonl:2:1  the approved answer cannot be read",
        "__llmeval__/s.answers.jsonl:4:1  case: found the answer of line 1 again",
    ]


def test_an_approval_without_an_answer_is_no_damage(tmp_path: Path) -> None:
    assert read(tmp_path, answers_text(CASES, [])).find(CASES[0], 0) == NoAnswer("no answer to this case is approved")


def test_a_folder_in_its_place_is_a_fault(tmp_path: Path) -> None:
    key = SuiteKey(str(tmp_path / "s.eval.yaml"), "s.eval.yaml")
    ScoreFile.of_suite(key).answers.mkdir(parents=True)
    with pytest.raises(SuiteError, match=r"__llmeval__/s.answers.jsonl  found a directory, expected a file"):
        ApprovedAnswers.read(key)


def test_an_answer_is_found_by_its_input_under_another_id(tmp_path: Path) -> None:
    found = read(tmp_path, answers_text(CASES, [row("a", "x"), row("b", "y")]))
    moved = [Case("b", input=CASES[0].input), Case("c", input=CASES[1].input), Case("d", input="new")]
    assert [found.find(case, 0) for case in moved[:2]] == ["x", "y"]
    assert found.by_case(moved) == {"b": ["x"], "c": ["y"]}

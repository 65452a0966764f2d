"""Suite files that name files of labels."""

from pathlib import Path

import pytest
from project import load_text

from pytest_llmeval.baselines.comparable import comparable_of
from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.data.formats.human_labels import HumanLabel, label_line

SUITE = """\
evaluators:
  - judge: {mode: continuous, corrected: true, human: HUMAN}
cases:
  - {id: a, input: Where?, expected: Paris, prediction: In Paris}
"""
LABEL = HumanLabel("sha256:q", "sha256:a", "ana", "yesno", "yes")


def suite(human: str) -> str:
    return SUITE.replace("HUMAN", human)


@pytest.mark.parametrize("human", ["a.jsonl", "[a.jsonl]", "[a.jsonl, b.jsonl]"])
def test_other_labels_are_another_measurement(tmp_path: Path, human: str) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(label_line(LABEL), encoding="utf-8")
    before = comparable_of(load_text(suite(human), tmp_path))
    assert comparable_of(load_text(suite(human), tmp_path)) == before
    (tmp_path / "a.jsonl").write_text(label_line(LABEL) * 2, encoding="utf-8")
    after = comparable_of(load_text(suite(human), tmp_path))
    assert after.data == before.data
    assert after.evaluators != before.evaluators
    assert str(tmp_path) not in str(after.evaluators)


@pytest.mark.parametrize(
    ("human", "message"),
    [
        ("missing.jsonl", "found no readable file"),
        ("[faulty.jsonl]", "faulty.jsonl:1:1  found no label"),
        ("[faulty.jsonl, ../labels.jsonl]", "found '../labels.jsonl', which is outside the folder"),
        ("3", "human"),
    ],
)
def test_labels_that_cannot_be_read_are_a_fault_of_the_suite(tmp_path: Path, human: str, message: str) -> None:
    (tmp_path / "faulty.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(SuiteError) as caught:
        load_text(suite(human), tmp_path)
    assert message in str(caught.value)

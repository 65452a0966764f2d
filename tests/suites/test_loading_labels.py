"""Suite files that name files of labels."""

from dataclasses import replace
from pathlib import Path

import pytest
from builders import pairing
from project import load_text

from pytest_llmeval.baselines._comparable import SuiteIdentity
from pytest_llmeval.core import SuiteError
from pytest_llmeval.evaluators import HumanLabel
from pytest_llmeval.run import score

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
        (tmp_path / name).write_text(LABEL.line(), encoding="utf-8")
    before = SuiteIdentity(load_text(suite(human), tmp_path)).comparable()
    assert SuiteIdentity(load_text(suite(human), tmp_path)).comparable() == before
    (tmp_path / "a.jsonl").write_text(LABEL.line() * 2, encoding="utf-8")
    after = SuiteIdentity(load_text(suite(human), tmp_path)).comparable()
    assert after.data == before.data
    assert after.evaluators != before.evaluators
    assert str(tmp_path) not in str(after.evaluators)


@pytest.mark.parametrize(
    ("human", "message"),
    [
        ("missing.jsonl", "cannot be read"),
        ("[faulty.jsonl]", "faulty.jsonl:1:1  the label cannot be read"),
        ("[faulty.jsonl, ../labels.jsonl]", "found '../labels.jsonl', which is outside the folder"),
        ("3", "human"),
    ],
)
def test_labels_that_cannot_be_read_are_a_fault_of_the_suite(tmp_path: Path, human: str, message: str) -> None:
    (tmp_path / "faulty.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(SuiteError) as caught:
        load_text(suite(human), tmp_path)
    assert message in str(caught.value)


MODES = """\
evaluators: [{text: {metrics: [exact_match]}}]
gates: [{metric: exact_match, min: 0.9, by: modes}]
cases:
  - {id: a, modes: [rude, late], expected: x, prediction: x}
  - {id: b, modes: [late], expected: x, prediction: z}
  - {id: c, expected: x, prediction: x}
"""


def test_a_case_with_several_failure_modes_belongs_to_the_group_of_each(tmp_path: Path) -> None:
    suite = load_text(MODES, tmp_path)
    assert [each.labels for each in suite.cases] == [{"modes": "rude; late"}, {"modes": "late"}, {}]
    result = score(suite.evaluators, suite.cases, group_by=suite.group_by)
    assert {name: (each.cases, each.metrics["exact_match"].value) for name, each in result.groups["modes"].items()} == {
        "(none)": (1, 1.0),
        "late": (2, 0.5),
        "rude": (1, 1.0),
    }
    parts = [score(suite.evaluators, [each], group_by=suite.group_by, partial=True) for each in suite.cases]
    assert (parts[0] + parts[1] + parts[2]).result().groups["modes"].keys() == result.groups["modes"].keys()
    (judged,) = [each.judge(result) for each in suite.score_gates]
    assert (judged.outcome, judged.reason.count("late: exact_match is 0.5000")) == ("failed", 1)
    worse = score(suite.evaluators, [replace(each, prediction="x") for each in suite.cases])
    groups = pairing(result, worse).groups("modes")
    assert {name: len(each.current) for name, each in groups.items()} == {"(none)": 1, "late": 2, "rude": 1}


@pytest.mark.parametrize(
    ("modes", "message"),
    [
        ("modes: ['a; b']", "found 'a; b', expected a failure mode, without '; '"),
        ("modes: [' ']", "found ' ', expected a failure mode"),
        ("modes: [a], labels: {modes: b}", "found the label 'modes' as well, expected one of them"),
    ],
)
def test_modes_that_are_none_are_faults(tmp_path: Path, modes: str, message: str) -> None:
    suite = load_text(MODES.replace("modes: [rude, late]", modes), tmp_path)
    assert message in str(*suite.all_faults)

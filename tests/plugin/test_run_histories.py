"""Runs as ``llmeval history`` shows them."""

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_llmeval.baselines import History

if TYPE_CHECKING:
    from conftest import Project

SUITE = """\
evaluators: [{text: {metrics: [f1]}}]
snapshot: {tolerance: 1}
gates: [f1 >= 0.6, {metric: f1, max_drop: 0.5}]
cases:
  - {id: one, input: QUESTION, expected: a, prediction: a}
  - {id: two, expected: b, prediction: ANSWER}
"""


def test_runs_are_noted_with_intervals_gates_and_what_changed(project: "Project") -> None:
    for question, answer, option in (("q", "b", "--snapshot-update"), ("q", "c", "-q"), ("other", "c", "-q")):
        text = SUITE.replace("QUESTION", question).replace("ANSWER", answer)
        project.write("s.eval.yaml", text)
        project.run(option, "-n", "0")
    root = Path(project.path)
    (timeline,), faults = History.read(root / "s.eval.yaml", root)
    assert faults == []
    assert [each.values["f1"] for each in timeline.points] == [1.0, 0.5, 0.5]
    assert [each.approved for each in timeline.points] == [True, False, False]
    # The last run shares one case with the approved one, which decides no gate on drops.
    assert [each.failed_gates for each in timeline.points] == [[], ["f1 >= 0.6"], ["f1 >= 0.6"]]
    assert timeline.points[0].gates == {"f1 >= 0.6": "passed", "drop(f1) <= 0.5": "passed"}
    assert timeline.changes() == [(), (), ("data",)]
    low, high = timeline.points[1].intervals["f1"]
    assert 0 < low < 0.5 < high < 1

"""Many small approved drops: the anchor, and the gate on what is lost since."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_llmeval.baselines import ScoreFile
from pytest_llmeval.baselines._scores import SuiteScores

if TYPE_CHECKING:
    from conftest import Project, Ran

WITH_SYRUPY = ("asyncio", "hypothesispytest", "rerunfailures")
SIZE = 60


def write(project: "Project", wrong: int, gate: dict[str, Any] | None = None, **snapshot: Any) -> None:
    cases = [{"id": f"c{n:02}", "expected": "red", "prediction": "blue" if n < wrong else "red"} for n in range(SIZE)]
    gates = [{"metric": "f1", "max_drop": 0.02, **(gate or {})}]
    project.suite("s.eval.yaml", cases, gates=gates, mode="bulk", snapshot={"tolerance": 1, **snapshot})


def approve(project: "Project", wrong: int, *arguments: str, **how: Any) -> None:
    """Approve a run, whether or not it has drifted."""
    write(project, wrong, **how)
    ran = project.run("--snapshot-update", *arguments, without=WITH_SYRUPY)
    assert all(each.startswith("drift") for each, outcome in ran.gates("s").items() if outcome != "passed"), ran.text


def run(project: "Project") -> "Ran":
    return project.run(without=WITH_SYRUPY)


def anchor(project: "Project") -> Any:
    scores = json.loads((project.path / "__llmeval__" / "s.scores.json").read_text(encoding="utf-8"))
    files = list((project.path / "__llmeval__").glob("s.anchor*.jsonl"))
    assert bool(files) == ("anchors" in scores)
    return scores["anchors"]["f1"]["values"]["f1"] if files else None


def test_drops_that_were_approved_one_by_one_fail_together(project: "Project") -> None:
    for wrong in (0, 6, 12):
        approve(project, wrong)
    write(project, 12, gate={"max_drift": 0.5})  # which is the user's
    assert run(project).gates("s") == {"drop(f1) <= 0.02": "passed", "drift(f1) <= 0.5": "passed"}
    write(project, 18)
    nightly = project.run("--snapshot-update", without=WITH_SYRUPY)  # an approval shows the drift, and does not hide it
    reason = nightly.suites["s"]["gates"][1]["reason"]
    assert "3 approvals since the anchor of " in reason
    assert "approved values 1.0000 -> 0.7000; the approval keeps the anchor" in reason
    assert anchor(project) == 1.0
    ran = run(project)
    for each in (nightly, ran):
        assert each.gates("s") == {"drop(f1) <= 0.02": "passed", "drift(f1) <= 0.06": "failed"}
        assert each.code == 1
    reason = ran.suites["s"]["gates"][1]["reason"]
    assert reason.startswith("f1 1.0000 -> 0.7000, drop 0.3000")
    assert "3 approvals since the anchor of " in reason
    assert reason.endswith(": approved values 1.0000 -> 0.7000")
    wanted = project.run("--snapshot-update", "--llmeval-new-anchor", without=WITH_SYRUPY)
    assert wanted.code == 0
    assert run(project).code == 0


def test_the_first_approved_run_is_the_anchor_and_needs_no_file(project: "Project") -> None:
    approve(project, 6)
    assert anchor(project) is None
    assert run(project).gates("s") == {"drop(f1) <= 0.02": "passed"}
    (project.path / "__llmeval__" / "s.cases.jsonl").unlink()  # without its cases, the anchor is lost
    write(project, 12)
    assert "not approved: the anchor of f1 of " in project.run("--snapshot-update", without=WITH_SYRUPY).text


def test_a_run_that_is_established_to_be_better_becomes_the_anchor_and_a_lucky_one_does_not(project: "Project") -> None:
    approve(project, 30)
    approve(project, 32)
    approve(project, 28)
    assert anchor(project) == 0.5
    approve(project, 5)
    assert anchor(project) is None
    approve(project, 30, anchor="keep")
    approve(project, 0, anchor="keep")
    assert anchor(project) == pytest.approx(55 / 60, abs=1e-6)


def test_the_user_names_the_anchor(project: "Project") -> None:
    approve(project, 0)
    approve(project, 20)
    assert anchor(project) == 1.0
    folder = project.path / "__llmeval__"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    approve(project, 20)  # a second approval of the same run changes no byte
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    approve(project, 20, "--snapshot-anchor")
    assert anchor(project) is None
    refused = project.run("--snapshot-anchor", without=WITH_SYRUPY)
    assert refused.code == 4
    assert "--snapshot-anchor needs --snapshot-update" in refused.text


def test_another_suite_begins_a_new_anchor(project: "Project") -> None:
    approve(project, 0)
    approve(project, 10)
    assert anchor(project) == 1.0
    project.suite(
        "s.eval.yaml",
        [{"id": "new", "expected": "red", "prediction": "red"}],
        gates=[{"metric": "f1", "max_drop": 0.02}],
        snapshot=True,
    )
    assert project.run("--snapshot-update", without=WITH_SYRUPY).code == 0
    assert anchor(project) is None


def test_nothing_is_approved_over_a_damaged_or_lost_anchor_unless_a_new_one_is_wanted(project: "Project") -> None:
    approve(project, 0)
    approve(project, 3)
    folder = project.path / "__llmeval__"
    (file,) = folder.glob("s.anchor-*.jsonl")
    file.write_text("{}\n", encoding="utf-8")
    ran = run(project)
    assert ran.gates("s")["drift(f1) <= 0.06"] == "failed"
    reason = ran.suites["s"]["gates"][1]["reason"]
    assert reason.startswith(f"the anchor cannot be used: {file.name}")
    assert "found content with fingerprint" in reason
    before = (folder / "s.scores.json").read_bytes()
    write(project, 6)
    refused = project.run("--snapshot-update", without=WITH_SYRUPY)
    assert refused.code == 1
    assert "found content with fingerprint" in refused.text
    file.unlink()
    assert f"the anchor {file.name} cannot be read" in run(project).suites["s"]["gates"][1]["reason"]
    for lost in ("s.anchor-*.jsonl", "s.*.jsonl"):  # then the cases of the approved run, too
        for each in folder.glob(lost):
            each.unlink()
        refused = project.run("--snapshot-update", without=WITH_SYRUPY)
        assert refused.code == 1
        assert "not approved: the anchor of f1 of " in refused.text
        assert "(1.0000) cannot be used" in refused.text
        assert "--llmeval-new-anchor" in refused.text
        assert (folder / "s.scores.json").read_bytes() == before
    anew = project.run("--snapshot-update", "--llmeval-new-anchor", without=WITH_SYRUPY)
    assert anew.code == 0, anew.text
    assert "discarded the anchor of f1 of " in anew.text
    assert anchor(project) is None


def two_metrics(project: "Project", first: int, second: int) -> None:
    """Write a suite of which so many answers are wrong for `f1`, and so many for `accuracy`."""
    cases = [
        {
            "id": f"c{n:03}",
            "expected": {"answer": "red", "label": "x"},
            "prediction": {"answer": "blue" if n < first else "red", "label": "y" if n < second else "x"},
        }
        for n in range(100)
    ]
    evaluators = [{"text": {"metrics": ["f1"]}}, {"classification": {"metrics": ["accuracy"]}, "on": "label"}]
    gates = [{"metric": name, "max_drop": 0.02} for name in ("f1", "accuracy")]
    project.suite("s.eval.yaml", cases, evaluators=evaluators, gates=gates, mode="bulk", snapshot={"tolerance": 1})


def test_a_metric_that_rises_does_not_take_the_anchor_of_one_that_falls_along(project: "Project") -> None:
    for step in range(6):
        two_metrics(project, 60 - 12 * step, 2 * step)
        project.run("--snapshot-update", without=WITH_SYRUPY)
    scores = json.loads((project.path / "__llmeval__" / "s.scores.json").read_text(encoding="utf-8"))
    assert scores["anchors"]["accuracy"]["values"] == {"accuracy": 1.0}
    assert "f1" not in scores["anchors"]
    two_metrics(project, 0, 20)
    ran = run(project)
    assert ran.gates("s")["drift(accuracy) <= 0.06"] == "failed"
    assert "5 approvals since the anchor" in ran.suites["s"]["gates"][-1]["reason"]


def changed_suite(project: "Project", step: int) -> None:
    """Write a suite that gets worse by a tenth, one more case, one edited case and, at last, one more evaluator."""
    cases = [
        {
            "id": f"c{n:02}",
            "input": "edited" if n >= SIZE - step else "",
            "expected": "red",
            "prediction": "blue" if n < 6 * step else "red",
        }
        for n in range(SIZE + step)
    ]
    evaluators = [{"text": {"metrics": ["f1"]}}, *([{"classification": {"metrics": ["accuracy"]}}] if step > 2 else [])]
    gates = [{"metric": "f1", "max_drop": 0.02}]
    project.suite("s.eval.yaml", cases, evaluators=evaluators, gates=gates, mode="bulk", snapshot={"tolerance": 1})


def test_cases_and_evaluators_that_come_or_change_leave_the_anchor_where_it_is(project: "Project") -> None:
    for step in range(4):
        changed_suite(project, step)
        project.run("--snapshot-update", without=WITH_SYRUPY)
    assert anchor(project) == 1.0
    ran = run(project)
    assert ran.gates("s") == {"drop(f1) <= 0.02": "passed", "drift(f1) <= 0.06": "failed"}
    reason = ran.suites["s"]["gates"][1]["reason"]
    assert reason.startswith("f1 drop 0.2857 in 4 steps over the cases that neighbouring runs share")


STEPS = 6


def write_churned(project: "Project", step: int, fall: int) -> None:
    """Write the suite of an approval: 40 of 200 cases are others than in the one before, and as difficult."""
    cases = [
        {
            "id": f"c{n:03}",
            "input": f"{n}?",
            "expected": "red",
            "prediction": "blue" if n * 37 % 100 < 10 + fall * step else "red",
            "labels": {"page": f"p{n // 2}"},
        }
        for n in range(40 * step, 40 * step + 200)
    ]
    gates = [{"metric": "f1", "max_drop": 0.02}, {"metric": "mean(f1)", "max_drop": 0.02, "cluster_by": "page"}]
    snapshot = {"tolerance": 1, "not_comparable": "warn"}
    project.suite("s.eval.yaml", cases, gates=gates, mode="bulk", snapshot=snapshot)


@pytest.mark.release
@pytest.mark.parametrize(("fall", "outcome"), [(4, "failed"), (0, "passed")])
def test_drift_is_seen_after_all_cases_have_been_replaced(project: "Project", fall: int, outcome: str) -> None:
    for step in range(STEPS):
        write_churned(project, step, fall)
        project.run("--snapshot-update", without=WITH_SYRUPY)
    scores = project.path / "__llmeval__" / "s.scores.json"
    before = scores.read_text(encoding="utf-8")
    assert ScoreFile(scores, scores.name).parse(SuiteScores).text == before
    assert anchor(project) == 0.9
    again = project.run("--snapshot-update", without=WITH_SYRUPY)
    assert scores.read_text(encoding="utf-8") == before
    write_churned(project, STEPS, fall)
    for ran in (again, run(project)):
        drops, drifts = ran.suites["s"]["gates"][:2], ran.suites["s"]["gates"][2:]
        assert [each["outcome"] for each in drops] == ["passed"] * 2, ran.text
        assert [each["outcome"] for each in drifts] == [outcome] * 2, ran.text
        assert [each["gate"] for each in drifts] == ["drift(f1) <= 0.06", "drift(mean(f1)) <= 0.06, cluster_by page"]
    assert drifts[0]["value"] == pytest.approx(fall / 100 * STEPS, abs=0.04)
    assert f"in {STEPS} steps over the cases that neighbouring runs share" in drifts[0]["reason"]
    assert f"{STEPS - 1} approvals since the anchor of " in drifts[0]["reason"]


def test_a_first_step_leads_from_the_anchor_to_an_approval_without_a_chain(project: "Project") -> None:
    for step in (0, 3):
        changed_suite(project, step)
        project.run("--snapshot-update", without=WITH_SYRUPY)
    path = project.path / "__llmeval__" / "s.scores.json"
    scores = ScoreFile(path, path.name).parse(SuiteScores)
    assert list(scores.chains) == ["f1"]
    path.write_text(replace(scores, chains={}).text, encoding="utf-8")
    changed_suite(project, 4)
    early = project.run("--snapshot-update", without=WITH_SYRUPY)
    assert "f1 1.0000 -> 0.5714, drop 0.4286" in early.suites["s"]["gates"][1]["reason"]
    assert ScoreFile(path, path.name).parse(SuiteScores).chains["f1"].steps == 2
    changed_suite(project, 5)
    assert "in 3 steps over the cases" in run(project).suites["s"]["gates"][1]["reason"]

"""Verdicts on the gates of suites that run in scripts: those of pytest's runs."""

from pathlib import Path
from typing import Any

import pytest

import pytest_llmeval as ev
from pytest_llmeval.baselines import Keeper, SnapshotMode, Stamp
from pytest_llmeval.run._scripts import project_root

CASES = [{"id": f"c{number}", "input": f"q{number}", "expected": "Paris"} for number in range(10)]


def suite(**more: Any) -> Any:
    return ev.suite("capitals", **{"cases": CASES, "evaluators": [ev.text(metrics=["f1"])], **more})


def half(question: str) -> str:
    return "Paris" if int(question[1:]) % 2 else "Rome"


def test_gates_on_scores_have_verdicts() -> None:
    result = suite(gates=["f1 >= 0.4", "f1 >= 0.9"]).run(half)
    assert [(each.gate, each.outcome, each.value) for each in result.gates] == [
        ("f1 >= 0.4", "passed", 0.5),
        ("f1 >= 0.9", "failed", 0.5),
    ]
    with pytest.raises(AssertionError) as error:
        result.assert_gates()
    assert str(error.value) == "gate FAILED  f1 >= 0.9  (f1 is 0.5000, expected >= 0.9)"
    suite(gates=["f1 >= 0.4"]).run(half).assert_gates()


def test_errored_cases_fail_gates_as_in_pytest() -> None:
    def answer(question: str) -> str:
        if question == "q0":
            raise ValueError("no")
        return "Paris"

    (gate,) = suite(gates=["f1 >= 0.4"]).run(answer).gates
    assert (gate.outcome, "1 case" in gate.reason and "errored" in gate.reason) == ("failed", True)


def test_gates_of_a_suite_with_faulty_cases_are_not_judged_and_not_asserted() -> None:
    faulty = suite(cases=[*CASES, {"id": "x", "labels": [1]}], gates=["f1 >= 0.4"])
    with pytest.warns(UserWarning, match="cases left out"):
        result = faulty.run(half)
    with pytest.raises(AssertionError, match=r"gate NOT EVALUATED  f1 >= 0.4  \(not evaluated: 10 of 11 cases ran"):
        result.assert_gates()


def test_no_gates_are_nothing_to_assert() -> None:
    result = suite().run(half)
    assert result.gates == []
    with pytest.raises(AssertionError, match="suite 'capitals': gates are missing"):
        result.assert_gates()


def test_the_gates_of_an_interrupted_run_are_not_judged() -> None:
    async def answer(question: str) -> str:
        if question == "q5":
            raise KeyboardInterrupt
        return "Paris"

    interrupted = suite(gates=["f1 >= 0.4"], target={"python": f"{__name__}:half", "concurrency": 1})
    with pytest.raises(KeyboardInterrupt):
        interrupted.run(answer)
    (gate,) = interrupted.last_result.gates
    assert (gate.outcome, gate.reason) == ("not_judged", "not evaluated: 5 of 10 cases ran; the run was cut short")


DROPS = """\
suite: capitals
evaluators: [{text: {metrics: [f1]}}]
snapshot: true
gates: [{metric: f1, max_drop: 0.05}]
cases:
"""


def test_gates_on_drops_read_the_approved_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "capitals.eval.yaml").write_text(
        DROPS + "".join(f"  - {{id: c{n}, input: q{n}, expected: Paris}}\n" for n in range(40)), encoding="utf-8"
    )
    capitals = ev.suite.from_file(tmp_path / "capitals.eval.yaml")
    (gate,) = capitals.run(lambda _: "Paris").gates
    assert (gate.outcome, "--snapshot-update" in gate.reason) == ("failed", True)

    with monkeypatch.context() as approving:
        approving.setattr(SnapshotMode, "read_only", lambda _: SnapshotMode(update=True))
        from pytest_llmeval.run import _scripts as scripts

        judge = scripts.judge

        def approved(collected: Any, scope: Any) -> Any:
            judged = judge(collected, scope)
            Keeper(SnapshotMode(update=True)).settle(judged.suites, whole=True)
            return judged

        approving.setattr(scripts, "judge", approved)
        approving.setattr(scripts, "Stamp", lambda *_: Stamp("2026-11-25", None))
        capitals.run(lambda _: "Paris")
    before = sorted(path.read_bytes() for path in tmp_path.rglob("*.json*"))
    (same,) = capitals.run(lambda _: "Paris").gates
    (worse,) = capitals.run(half).gates
    assert (same.outcome, worse.outcome, worse.value) == ("passed", "failed", 0.5)
    assert sorted(path.read_bytes() for path in tmp_path.rglob("*.json*")) == before  # a script approves nothing


def test_the_root_is_the_nearest_folder_with_a_configuration(tmp_path: Path) -> None:
    suite_file = tmp_path / "evals" / "deep" / "a.eval.yaml"
    suite_file.parent.mkdir(parents=True)
    assert project_root(suite_file) == suite_file.parent
    (tmp_path / "evals" / "pytest.ini").touch()
    (tmp_path / "pyproject.toml").touch()
    assert project_root(suite_file) == tmp_path / "evals"


def test_gates_between_systems_are_listed_in_the_run_of_the_system_that_they_are_about() -> None:
    systems = {name: {"python": "math:sqrt"} for name in ("small", "large")}
    gates = ["f1 >= 0.5", {"metric": "f1", "max_drop": 0.1, "system": "small", "against": "large"}]
    cases = [{"id": "a", "input": "q", "expected": "Paris"}]
    declared = ev.suite("capitals", cases=cases, systems=systems, gates=gates, evaluators=[ev.text(metrics=["f1"])])
    result = declared.run(lambda _: "Paris", system="small", progress=False)
    assert [(each.outcome, each.reason) for each in result.gates][1:] == [
        ("not_judged", "not evaluated: no system 'large' ran")
    ]
    with pytest.raises(AssertionError, match="no system 'large' ran"):
        result.assert_gates()

"""The fixture ``score_snapshot``: scores of Python tests, with and without suites, workers and syrupy."""

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Project, Ran

WITHOUT = ("rerunfailures",)

TESTS = """\
import json
import pathlib

import pytest

SCORES = json.loads(pathlib.Path(__file__).with_name("scores.txt").read_text())

def test_quality(score_snapshot):
    score_snapshot.assert_match({"f1": SCORES["f1"]}, tolerance=0.01)

class TestMore:
    @pytest.mark.parametrize("name", ["a", "b::c"])
    def test_loss(self, score_snapshot, name):
        tolerance = {"loss": {"relative": 0.1}}
        score_snapshot.assert_match({"loss": SCORES["loss"]}, lower_is_better=("loss",), tolerance=tolerance)
        score_snapshot.assert_match({"none": None})

def test_without():
    pass
"""


@pytest.fixture
def scored(project: "Project", monkeypatch: pytest.MonkeyPatch) -> "Project":
    """A module of tests with approved scores."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    project.write("test_it.py", TESTS)
    give(project, f1=0.71, loss=1.0)
    return project


def give(project: "Project", **scores: float) -> None:
    project.write("scores.txt", json.dumps(scores))


def run(project: "Project", *arguments: str, workers: int = 0, **others: Any) -> "Ran":
    return project.run("-v", *arguments, workers=workers, **{"without": WITHOUT, **others})


def stored(project: "Project") -> dict[str, Any]:
    data: dict[str, Any] = json.loads((project.path / "__llmeval__" / "test_it.scores.json").read_bytes())
    return data


def test_scores_are_missing_then_approved_then_compared(scored: "Project", workers: int) -> None:
    missing = run(scored, workers=workers)
    assert missing.counts == {"failed": 3, "passed": 1}
    told = "no snapshot of this test in __llmeval__/test_it.scores.json: create it with pytest --snapshot-update"
    assert f"{told} test_it.py::test_quality" in missing.section("FAILURES")
    assert not (scored.path / "__llmeval__").exists()

    approved = run(scored, "--snapshot-update", workers=workers)
    assert approved.counts == {"passed": 4}
    assert "5 snapshots generated." in approved.text
    loss = {"loss": 1.0, "none": None}
    assert stored(scored)["tests"] == {
        "TestMore::test_loss[a]": loss,
        "TestMore::test_loss[b::c]": loss,
        "test_quality": {"f1": 0.71},
    }

    give(scored, f1=0.70, loss=1.1)
    compared = run(scored, workers=workers)
    assert (compared.code, compared.counts) == (0, {"passed": 4})
    assert "5 snapshots passed." in compared.text

    give(scored, f1=0.69, loss=1.2)
    fell = run(scored, workers=workers)
    assert fell.counts == {"failed": 3, "passed": 1}
    assert "f1 fell from 0.7100 to 0.6900, worse by 0.0200; tolerance 0.01" in fell.section("FAILURES")
    assert "loss rose from 1.0000 to 1.2000, worse by 0.2000; tolerance 10% of the approved value" in fell.section(
        "FAILURES"
    )
    approve = "pytest --snapshot-update test_it.py::test_quality"
    assert f"approved scores are in __llmeval__/test_it.scores.json; to approve these: {approve}" in fell.section(
        "FAILURES"
    )
    assert "3 snapshots failed." in fell.text


def test_a_run_of_some_tests_approves_those_only(scored: "Project") -> None:
    run(scored, "--snapshot-update")
    give(scored, f1=0.9, loss=0.1)
    ran = run(scored, "--snapshot-update", "-k", "quality")
    assert ran.code == 0
    assert "unused" not in ran.text
    data = stored(scored)
    assert data["tests"]["test_quality"] == {"f1": 0.9}
    assert data["tests"]["TestMore::test_loss[a]"]["loss"] == 1.0
    assert len(data["history"]) == 2


def test_a_second_approval_changes_no_byte_with_any_number_of_workers(scored: "Project") -> None:
    written = []
    for workers in (0, 2, 2):
        run(scored, "--snapshot-update", workers=workers)
        written.append((scored.path / "__llmeval__" / "test_it.scores.json").read_bytes())
    assert written[0] == written[1] == written[2]


def test_what_a_test_no_longer_asserts_and_tests_that_are_gone_are_unused(scored: "Project") -> None:
    run(scored, "--snapshot-update")
    scored.write("test_it.py", TESTS.replace("def test_quality", "def test_other").replace('{"none": None}', "{}"))
    ran = run(scored, "--snapshot-update")
    assert "3 unused snapshots deleted." in ran.text
    loss = {"loss": 1.0}
    assert stored(scored)["tests"] == {
        "TestMore::test_loss[a]": loss,
        "TestMore::test_loss[b::c]": loss,
        "test_other": {"f1": 0.71},
    }


def test_what_a_test_no_longer_asserts_fails_the_run_whatever_else_runs(scored: "Project") -> None:
    run(scored, "--snapshot-update")
    before = stored(scored)
    scored.write("test_it.py", TESTS.replace('{"none": None}', "{}"))
    for without in (WITHOUT, (*WITHOUT, "syrupy")):
        ran = run(scored, "test_it.py", workers=2, without=without)
        assert (ran.code, ran.counts) == (1, {"failed": 2, "passed": 4})
        told = "test_it.py::TestMore::test_loss[a]: snapshot none: no longer exists; approved: n/a"
        assert told in ran.section("FAILURES")
    assert run(scored, "test_it.py::test_quality", workers=2).code == 0
    assert run(scored, "--snapshot-warn-unused", workers=2).counts == {"passed": 4}
    assert stored(scored) == before
    assert run(scored, "--snapshot-update", workers=2).code == 0
    assert run(scored, workers=2).code == 0


def test_a_file_that_cannot_be_used_fails_each_test_and_is_not_overwritten(scored: "Project") -> None:
    run(scored, "--snapshot-update")
    path = scored.path / "__llmeval__" / "test_it.scores.json"
    edited = path.read_text(encoding="utf-8").replace('{"f1": 0.71}', '{"f1": 0.5}', 1)
    path.write_text(edited, encoding="utf-8")
    for arguments in ((), ("--snapshot-update",)):
        ran = run(scored, *arguments)
        assert ran.counts == {"failed": 3, "passed": 1}
        assert "tests.test_quality.f1: found 0.5, expected 0.71, which was approved last" in ran.section("FAILURES")
        assert path.read_text(encoding="utf-8") == edited


def test_without_syrupy_scores_are_approved_and_compared_too(scored: "Project") -> None:
    without = (*WITHOUT, "syrupy")
    assert run(scored, "--snapshot-update", without=without).code == 0
    assert run(scored, without=without).code == 0
    give(scored, f1=0.1, loss=1.0)
    assert run(scored, without=without).counts == {"failed": 1, "passed": 3}


def test_of_a_test_that_is_run_again_the_last_scores_count(scored: "Project") -> None:
    scored.write(
        "test_it.py",
        """\
        TRIES = []

        def test_flaky(score_snapshot):
            TRIES.append(1)
            score_snapshot.assert_match({"f1": len(TRIES) / 10})
            assert len(TRIES) > 1
        """,
    )
    run(scored, "--snapshot-update", "--reruns=1", without=())
    assert stored(scored)["tests"] == {"test_flaky": {"f1": 0.2}}


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ('{"f1": "high"}', "TypeError: score 'f1': found str, expected a number or None"),
        ('{"f1": float("nan")}', "ValueError: score 'f1': found nan, expected a finite number"),
        ('{"f1": 1}, tolerance=-1', "ValueError: tolerance of 'f1': found -1, expected a number of at least 0"),
        ('{"f1": 1}, tolerance={"f1": {"absolute": 1}}', "ValueError: tolerance of 'f1': found {'absolute': 1}"),
        ("{1: 1}", "TypeError: score 1: found a name that is int, expected text"),
        (
            '{"loss": 1}, lower_is_better=("los",)',
            "ValueError: tolerance or direction: unknown score los, did you mean loss?",
        ),
        (
            '{"f1": 1}, tolerance={"f2": 1}',
            "ValueError: tolerance or direction: unknown score f2, did you mean f1?",
        ),
        ('{"f1": 1}); score_snapshot.assert_match({"f1": 2}', "ValueError: score 'f1': found it twice"),
    ],
)
def test_a_wrong_call_is_told(project: "Project", call: str, error: str) -> None:
    project.write("test_it.py", f"def test_it(score_snapshot): score_snapshot.assert_match({call})\n")
    assert error in run(project, "--snapshot-update").section("FAILURES")


def test_a_failing_test_keeps_what_it_did_not_come_to_assert(scored: "Project") -> None:
    run(scored, "--snapshot-update")
    scored.write(
        "test_it.py",
        TESTS.replace('        score_snapshot.assert_match({"none"', '        assert False\n        ({"none"'),
    )
    ran = run(scored, "--snapshot-update")
    assert ran.counts == {"failed": 2, "passed": 2}
    before = stored(scored)
    assert before["tests"]["TestMore::test_loss[a]"] == {"loss": 1.0, "none": None}
    scored.write("test_it.py", "def test_quality(score_snapshot): score_snapshot.assert_match({'f1': 'high'})\n")
    assert run(scored, "--snapshot-update").counts == {"failed": 1}
    assert stored(scored) == before

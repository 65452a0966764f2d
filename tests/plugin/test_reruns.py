"""Cases that pytest-rerunfailures runs again: the last result counts."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

pytest.importorskip("pytest_rerunfailures")

FLAKY = """\
import pathlib

HERE = pathlib.Path(__file__).parent

def answer(word):
    times = HERE / f"{word}.times"
    count = len(times.read_text()) if times.exists() else 0
    times.write_text("x" * (count + 1))
    if word == "wrong" or count == 0 and word == "unsure":
        return "?"
    if count == 0 and word == "raises":
        raise ConnectionError("try again")
    return word.upper()
"""
OTHERS = ("syrupy",)


def test_the_last_result_of_a_rerun_case_counts(project: "Project", workers: int) -> None:
    project.write("flaky.py", FLAKY)
    words = ("sure", "unsure", "wrong")
    top = {"gates": ["exact_match >= 0.6"], "thresholds": {"exact_match": 1}}
    project.asking("s.eval.yaml", "flaky:answer", *words, **top)
    ran = project.run("--reruns=1", workers=workers, without=OTHERS)
    assert ran.counts == {"passed": 3, "failed": 1, "rerun": 2}
    assert ran.outcomes("s") == {"sure": "passed", "unsure": "passed", "wrong": "failed"}
    assert ran.gates("s") == {"exact_match >= 0.6": "passed"}
    metric = ran.suites["s"]["metrics"]["exact_match"]
    assert (metric["value"], metric["scored"], metric["errored"]) == (pytest.approx(2 / 3), 3, 0)


def test_a_rerun_mends_a_case_whose_target_raised(project: "Project") -> None:
    project.write("flaky.py", FLAKY)
    # One call at a time: else a worker that looks ahead may be the one whose call fails, which costs no rerun.
    project.asking("s.eval.yaml", {"python": "flaky:answer", "concurrency": 1}, "raises", "sure")
    ran = project.run("--reruns=1", without=OTHERS)
    assert ran.counts == {"passed": 2, "rerun": 1}
    assert ran.outcomes("s") == {"raises": "passed", "sure": "passed"}


def test_a_python_test_that_scores_only_at_first_did_not_score(project: "Project") -> None:
    project.suite("s.yaml", [{"id": "a", "expected": "x"}])
    project.write(
        "test_over.py",
        """\
        import pytest

        attempts = []

        @pytest.mark.llmeval("s.yaml")
        def test_over(eval_case):
            attempts.append(1)
            assert len(attempts) == 1
            eval_case.score("x")
            raise ConnectionError
        """,
    )
    ran = project.run("--reruns=1", without=OTHERS)
    assert ran.counts == {"failed": 1, "rerun": 1}
    (suite,) = ran.suites.values()
    assert suite["cases"][0]["outcome"] == "errored"
    assert suite["metrics"]["f1"]["scored"] == 0


def test_gates_say_that_cases_ran_until_they_passed_and_may_refuse_it(project: "Project", workers: int) -> None:
    project.write("flaky.py", FLAKY)
    top = {"gates": ["exact_match >= 1"], "thresholds": {"exact_match": 1}}
    project.asking("s.eval.yaml", "flaky:answer", "sure", "unsure", **top)
    ran = project.run("--reruns=1", workers=workers, without=OTHERS)
    assert ran.code == 0
    (gate,) = ran.suites["s"]["gates"]
    again = "1 case failed and ran again"
    assert gate["reason"] == f"exact_match is 1.0000; {again}, and only the last result counts"
    (project.path / "unsure.times").unlink()
    ran = project.run("--reruns=1", "--llmeval-require-gates", workers=workers, without=OTHERS)
    assert ran.code == 1
    assert f"--llmeval-require-gates: s.eval.yaml: {again}" in ran.text

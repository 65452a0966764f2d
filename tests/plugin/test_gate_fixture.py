"""The fixture ``gate`` and the function: results of other runners, judged in tests."""

from typing import TYPE_CHECKING

import pytest

import pytest_llmeval as ev

if TYPE_CHECKING:
    from conftest import Project

ROWS = [{"case": f"c{n}", "metric": "accuracy", "score": int(n >= 4)} for n in range(40)]


def test_results_are_approved_and_judged_in_a_test(project: "Project") -> None:
    rows = f"[dict(row, score=row['score'] * (n < int(os.environ['GOOD']))) for n, row in enumerate({ROWS})]"
    project.write("test_app.py", f"import os\n\ndef test_no_worse(gate):\n    gate({rows})\n")

    def run(good: str, *arguments: str) -> tuple[int, str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GOOD", good)
            ran = project.run(*arguments)
        return ran.code, ran.text

    code, out = run("40")
    assert code == 1
    assert "nothing to compare with yet" in out
    assert run("40", "--snapshot-update")[0] == 0
    assert (project.path / "__llmeval__" / "test_no_worse.scores.json").exists()
    assert run("40")[0] == 0
    code, out = run("10")
    assert code == 1
    assert "worse: drop(accuracy) <= 0: accuracy fell 0.9000 -> 0.1500 (limit 0)" in out


def test_the_function_returns_the_verdict_or_raises(project: "Project") -> None:
    verdict = ev.gate(ROWS, "accuracy >= 0.8", {"metric": "accuracy", "min": 0.5})
    assert (verdict.word, verdict.why[0]) == ("passed", "2 gates passed in 40 cases")
    assert ev.gate(ROWS, baseline=ROWS, name="shop").finished.report.suites[0].suite == "shop"
    with pytest.raises(
        AssertionError, match=r"^failed: accuracy >= 0.95: accuracy is 0.9000, expected >= 0.95\nnext: "
    ):
        ev.gate(ROWS, "accuracy >= 0.95")
    with pytest.raises(AssertionError, match=r"^cannot tell: drop"):
        ev.gate(ROWS[:4], baseline=ROWS[:4], lower_is_better=["accuracy"])
    assert ev.gate(ROWS[:4], baseline=ROWS[:4], lower_is_better=["accuracy"], undecided="pass").word == "cannot tell"
    with pytest.raises(ev.LlmevalError, match="unknown metric acuracy"):
        ev.gate(ROWS, "acuracy >= 0.8")
    assert project.path.exists()


def test_a_failing_gate_shows_its_sentence_in_the_summary(project: "Project") -> None:
    project.write(
        "test_quality.py", "import pytest_llmeval as ev\n\ndef test_quality():\n    ev.gate('r.jsonl', 'f1 >= 0.9')\n"
    )
    project.write("r.jsonl", '{"case": "a", "metric": "f1", "score": 0.5}\n')
    ran = project.run("test_quality.py", llmeval=False)
    sentence = "AssertionError: failed: f1 >= 0.9: f1 is 0.5000, expected >= 0.9"
    assert f"E       {sentence}" in ran.text
    assert ran.text.splitlines()[-2] == f"FAILED test_quality.py::test_quality - {sentence}"

"""Suites with checks, run by pytest: what fails, what is said, criteria, recordings, repeats and checks of users."""

from typing import TYPE_CHECKING, Any

from scripted_judges import by_answer, shown_to
from servers import reply

if TYPE_CHECKING:
    from conftest import Project
    from scripted_judges import Judged

OWN = """\
def in_steps(answer: str, most: int) -> tuple[bool, str]:
    steps = len(answer.splitlines())
    return steps <= most, f"{steps} steps"


def pytest_llmeval_register(registry):
    registry.register_check(in_steps)
"""


def test_an_unmet_check_fails_its_case_and_all_unmet_ones_are_listed(project: "Project") -> None:
    cases: list[dict[str, Any]] = [
        {"id": "good", "prediction": "Thirty days."},
        {"id": "bad", "prediction": "I cannot say.", "checks": [{"icontains": "DAYS"}, {"starts_with": "Thirty"}]},
        {"id": "lost", "prediction": {"text": "Thirty"}, "checks": [{"contains": "x", "on": "other"}]},
    ]
    project.suite(
        "s.eval.yaml", cases, checks=[{"not_contains": ["I cannot"]}], evaluators=[], gates=["check_rate >= 1"]
    )
    ran = project.run()
    assert ran.code == 1
    suite = ran.suites["s"]
    assert {each["id"]: each["outcome"] for each in suite["cases"]} == {
        "good": "passed", "bad": "failed", "lost": "errored",
    }  # fmt: skip
    for line in (
        "checks: found 'I cannot' at character 1, expected not_contains: 'I cannot'; and 2 more",
        "checks: found 'I cannot say.', expected icontains: 'DAYS'",
        "checks: found 'I cannot say.', expected starts_with: 'Thirty'",
        "contains: 'x': the prediction has the keys text; nothing at 'other', which 'on' names",
    ):
        assert line in ran.text
    assert suite["metrics"]["check_rate"]["value"] == 1 / 4
    assert suite["metrics"]["check_rate"]["errored"] == 1


def test_criteria_are_asked_cached_recorded_and_replayed(judged: "Judged") -> None:
    judged.server.script(by_answer({"kind": reply("yes, it is kind"), "rude": reply("no. It scolds.")}))
    cases = [
        {"id": "kind", "input": {"question": "How?"}, "prediction": "kind"},
        {"id": "rude", "prediction": "rude", "checks": [{"judge": "Gives a reason."}]},
    ]
    judged.suite("s.eval.yaml", cases, evaluators=[], checks=[{"judge": "Is kind.", "name": "kind"}, {"max_chars": 9}])
    ran = judged.project.run("--llmeval-judge=record")
    assert "checks: kind: found the judge's no: 'It scolds.', expected judge: 'Is kind.'; and 1 more" in ran.text
    assert judged.asked() == {"kind": 1, "rude": 2}
    shown = {"criterion": "Is kind.", "question": "How?", "answer": "kind"}
    assert list(map(shown_to, judged.server.calls)).count(shown) == 1
    assert ran.suites["s"]["usage"]["calls"] == 3
    replayed = judged.project.run("--llmeval-judge=replay")
    assert judged.asked() == {}
    assert replayed.suites["s"]["metrics"] == ran.suites["s"]["metrics"]
    assert [each["reason"] for each in replayed.suites["s"]["cases"]] == [
        each["reason"] for each in ran.suites["s"]["cases"]
    ]


def test_without_judges_criteria_are_undefined_and_the_other_checks_count(judged: "Judged") -> None:
    judged.suite("s.eval.yaml", ["word"], evaluators=[], checks=[{"judge": "Is kind."}, {"max_chars": 9}])
    ran = judged.project.run("--llmeval-judge=off")
    assert judged.asked() == {}
    metrics = ran.suites["s"]["metrics"]
    assert {name: each["value"] for name, each in metrics.items()} == {
        "check_rate": None, "check[judge]": None, "check[max_chars]": 1,
    }  # fmt: skip


def test_a_function_of_a_conftest_is_a_check_and_repeats_are_reduced(project: "Project") -> None:
    project.write("conftest.py", OWN)
    project.write(
        "app.py", "answers = iter(['one', 'one\\ntwo'])\n\n\ndef answer(question):\n    return next(answers)\n"
    )
    project.suite(
        "s.eval.yaml",
        [{"id": "a", "input": "?"}],
        evaluators=[],
        target={"python": "app:answer", "concurrency": 1},
        checks=[{"in_steps": 1}, {"latency_s": 100}],
        repeats=2,
    )
    ran = project.run()
    assert "repeat 2: found 2 steps, expected in_steps: 1" in ran.text
    assert ran.suites["s"]["metrics"]["check[in_steps]"]["value"] == 0.5
    assert ran.suites["s"]["metrics"]["check[latency_s]"]["value"] == 1

"""The HTML report of a run: what changed since the approval, and the history."""

from typing import TYPE_CHECKING, Any

from pages import head_of
from scripted_judges import by_answer
from servers import reply

if TYPE_CHECKING:
    from conftest import Project
    from scripted_judges import Judged


def cases(right: int) -> list[dict[str, Any]]:
    """Return twenty cases, of which some are right."""
    return [
        {"id": f"c{place}", "input": place, "expected": "red", "prediction": "red" if place < right else "blue"}
        for place in range(20)
    ]


def test_a_page_compares_with_the_approved_run_case_by_case(project: "Project") -> None:
    project.suite("s.eval.yaml", cases(20), snapshot=True)
    project.run("--snapshot-update")
    project.suite("s.eval.yaml", cases(5), snapshot=True)
    ran = project.run("-v", "--llmeval-report=page.html")
    assert "\nnext: " not in ran.text, "what is next would be the same run"
    head = head_of((project.path / "page.html").read_text(encoding="utf-8"))
    here, approved = head["entries"]
    assert (here["pair"], head["runs"][approved["run"]]["baseline"], approved["cases"]) == (1, True, 20)
    changes = {each["metric"]: each for each in here["changes"]["metrics"]}
    assert {name: each["kind"] for name, each in changes.items()} == {
        "exact_match": "fell",
        "f1": "fell",
    }  # what it asks for
    assert (changes["f1"]["baseline"], changes["f1"]["value"]) == (1.0, 0.25)
    assert changes["f1"]["high"] < 0
    assert [(each["approved"], each["values"]["f1"]) for each in here["history"]] == [(True, 1.0), (False, 0.25)]


def test_the_report_has_the_questions_to_judges_of_cases_whose_texts_it_shows(judged: "Judged") -> None:
    judged.server.script(by_answer({"good": [reply("yes")], "bad": [reply("no")]}))
    judged.suite("s.eval.yaml", ["good", "bad"], thresholds={"judge_score": 1})
    found = {each["id"]: each.get("judgings") for each in judged.project.run().suites["s"]["cases"]}
    assert found["good"] is None
    (judging,) = found["bad"]
    assert (judging["evaluator"], judging["mode"], judging["score"]) == ("judge", "default_binary", 0)
    assert judging["question"]["answer"] == "bad"
    assert judging["reply"] == "no"
    hidden = judged.project.run("--llmeval-texts=none").suites["s"]["cases"]
    assert all("judgings" not in each for each in hidden)

"""The subcommand cache, for evaluators whose later questions depend on earlier replies."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from project import write

from pytest_llmeval.cli import main
from pytest_llmeval.judges import JudgeOptions, StoredJudgement
from pytest_llmeval.judges.replies._sqlite import SqliteReplies
from pytest_llmeval.workbench._cache import suite_questions
from pytest_llmeval.workbench._suite_questions import SuiteQuestion

pytestmark = pytest.mark.usefixtures("here")

SUITE = Path("qa.eval.yaml")
YES_NO = {"judge": {"mode": "default_binary"}}
PANEL = ["openai:a", "openai:b"]
CASE = {
    "id": "a",
    "input": "Free?",
    "expected": "Yes.",
    "prediction": {"answer": "It is.", "contexts": ["All is free."]},
}


def suite(*evaluators: Mapping[str, Any], **top: Any) -> None:
    write(SUITE.name, json.dumps({"judge": "openai:a", "evaluators": evaluators, **top, "cases": [CASE]}))


def questions() -> list[SuiteQuestion]:
    return suite_questions(SUITE).questions


def keep(asked: SuiteQuestion, reply: Any) -> None:
    with SqliteReplies(JudgeOptions().cache.path) as cache:
        cache.put([StoredJudgement(asked.key, "a", asked.components, json.dumps(reply), 1.0)])


def test_explain_follows_the_rounds_as_far_as_replies_are_stored(capsys: pytest.CaptureFixture[str]) -> None:
    suite({"claims": {"metrics": ["faithfulness", "answer_relevancy"]}}, judge=None, judges=PANEL)
    main(["cache", "explain", SUITE.name])
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [each.split()[3] for each in rows[:1]] == ["claims"]
    assert rows[1:] == ["a: up to 2 questions more of 'claims', once the replies to these are stored"]
    (first,) = questions()
    keep(first, {"sentences": [{"sentence": 1, "claims": ["It is."]}]})
    main(["cache", "explain", SUITE.name])
    rows = capsys.readouterr().out.splitlines()[2:]
    asked = [
        ("openai:a", "claims"),
        *((judge, f"claim_{kind}") for kind in ("support", "relevance") for judge in PANEL),
    ]
    assert [tuple(each.split()[2:4]) for each in rows] == asked
    assert [each.split()[-1] for each in rows] == ["cached", *["asked"] * 4]


def test_what_depends_on_answers_of_others_is_known_in_a_run_only(capsys: pytest.CaptureFixture[str]) -> None:
    suite({"pairwise": {"against": ["reference", "approved"]}})
    main(["cache", "explain", SUITE.name])
    assert capsys.readouterr().out == "a: the answers that 'pairwise' compares with are there during a run\n"


def test_explain_lists_what_is_asked_about_the_answers_of_each_system(capsys: pytest.CaptureFixture[str]) -> None:
    case = {name: value for name, value in CASE.items() if name != "prediction"}
    write("old.json", json.dumps({"a": "Yes."}))
    systems = {"old": {"predictions": "old.json"}, "app": {"python": "app:answer"}}
    write(SUITE.name, json.dumps({"judge": "openai:a", "evaluators": [YES_NO], "systems": systems, "cases": [case]}))
    main(["cache", "explain", SUITE.name])
    told = capsys.readouterr().out.splitlines()[2:]
    assert told[0].split()[:3] == ["a[old]", "judge", "default_binary"]
    assert told[1:] == ["a[app]: its prediction is made during a run"]


def test_scores_stand_for_grades_only_where_the_steps_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    suite({"judge": {"criteria": "Short.", "reply": {"score": {"min": 0, "max": 1}}}})
    write("scores.json", {"a": 1.0})
    command = ["cache", "import", "scores.json", "--suite", SUITE.name]
    assert main(command) == 1
    told = capsys.readouterr().err
    assert told == "scores.json: a: 'judge' asks what depends on replies that are not stored\n"
    keep(questions()[0], {"steps": ["Count words.", "Compare."]})
    assert main(command) == 0
    with SqliteReplies(JudgeOptions().cache.path) as cache:
        assert sorted(each.components["mode"] for each in cache.entries()) == ["criteria", "criteria_steps"]

"""Runs whose judge writes steps for criteria and gives expected scores."""

import json
from typing import TYPE_CHECKING

from scripted_judges import entries_of, shown_to
from servers import Call, Sent, reply, weighed

if TYPE_CHECKING:
    from scripted_judges import Judged

EVALUATOR = {"judge": {"criteria": "Short and right.", "score": "expected"}}
WORDS = ["a", "b", "c"]


def graded(call: Call) -> Sent:
    if "grades" in shown_to(call):
        return reply('{"steps": ["Look.", "Compare."]}')(call)
    good = shown_to(call)["answer"] != "c"
    text = json.dumps({"reasoning": "r", "score": 4 if good else 1})
    return weighed(text, {"4": 0.75, "5": 0.25} if good else {"1": 0.5, "2": 0.5})(call)


def test_steps_are_written_once_a_run_and_all_is_replayed_with_the_same_numbers(judged: "Judged", workers: int) -> None:
    judged.server.script(graded)
    judged.suite("s.eval.yaml", WORDS, evaluators=[EVALUATOR], repeats=2, gates=["judge_score >= 0.5"])
    ran = judged.project.run("--llmeval-judge=record", workers=workers)
    shown = [shown_to(call) for call in judged.server.calls]
    assert (ran.code, len(shown), sum("grades" in each for each in shown)) == (0, 7, 1)
    metric = ran.suites["s"]["metrics"]["judge_score"]
    assert metric["value"] == (2 * (4.25 - 1) / 4 + (1.5 - 1) / 4) / 3
    assert "|steps:" in metric["signature"]
    assert ran.suites["s"]["cases"][0]["details"]["judge"]["steps"] == ["Look.", "Compare."]
    assert len(entries_of(judged.recordings())) == 7
    again = judged.project.run("--llmeval-judge=replay", workers=workers)
    assert (again.code, again.suites["s"]["metrics"]) == (0, ran.suites["s"]["metrics"])
    assert len(judged.server.calls) == 7


def test_approved_scores_are_not_comparable_once_the_steps_are_others(judged: "Judged") -> None:
    judged.server.script(graded)
    judged.suite("s.eval.yaml", WORDS, evaluators=[EVALUATOR], snapshot=True)
    assert judged.project.run("--llmeval-judge=record", "--snapshot-update").code == 0
    assert judged.project.run("--llmeval-judge=replay").code == 0
    path = judged.recordings()
    path.write_text(path.read_text(encoding="utf-8").replace("Compare.", "Think."), encoding="utf-8")
    steps = [entry for entry in entries_of(path) if entry["mode"] == "criteria_steps"]
    assert "Think." in steps[0]["reply"]
    judged.server.script(graded)
    changed = judged.project.run("--llmeval-judge=record")
    assert changed.code == 1
    assert "|steps:" in changed.text

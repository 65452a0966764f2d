"""Runs whose judge has a prompt of the user's own."""

import json
from typing import TYPE_CHECKING

from servers import Call, Sent, reply

if TYPE_CHECKING:
    from scripted_judges import Judged

REPLY = {"score": {"min": 1, "max": 5}, "reason": "text", "clear": "boolean"}
PROMPT = "Grade {{ answer }} for {{ input }}."


def graded(call: Call) -> Sent:
    good = '"answer": "a"' in call.prompt
    return reply(json.dumps({"score": 5 if good else 2, "reason": "why", "clear": good}))(call)


def test_a_run_with_an_own_prompt_is_recorded_and_replayed_until_the_prompt_changes(
    judged: "Judged", workers: int
) -> None:
    judged.server.script(graded)
    prompt = judged.project.path / "grade.md"
    prompt.write_text(PROMPT, encoding="utf-8")
    evaluator = {"judge": {"prompt": "grade.md", "reply": REPLY}}
    judged.suite("s.eval.yaml", ["a", "b"], evaluators=[evaluator], gates=["judge_field[clear] >= 0.5"])
    ran = judged.project.run("--llmeval-judge=record", workers=workers)
    assert (ran.code, len(judged.server.calls)) == (0, 2)
    values = {name: each["value"] for name, each in ran.suites["s"]["metrics"].items()}
    assert (values["judge_score"], values["judge_field[clear]"]) == (0.625, 0.5)
    assert judged.server.calls[0].body["response_format"]["json_schema"]["schema"]["required"] == list(REPLY)
    again = judged.project.run("--llmeval-judge=replay", workers=workers)
    assert (again.code, again.suites["s"]["metrics"]) == (0, ran.suites["s"]["metrics"])
    prompt.write_text(PROMPT + " Be strict.", encoding="utf-8")
    changed = judged.project.run("--llmeval-judge=replay", workers=workers)
    assert changed.code == 1
    assert "differs in the version of the mode (1-" in changed.text
    assert len(judged.server.calls) == 2

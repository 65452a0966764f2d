"""Runs with the evaluator ``checklist``."""

import json
from typing import TYPE_CHECKING

from scripted_judges import entries_of, shown_to
from servers import Call, Sent, reply

if TYPE_CHECKING:
    from scripted_judges import Judged

EVALUATOR = {"checklist": {"instructions": ["Greet.", "Name a date."]}}
CASES = [
    {"id": "good", "input": "When?", "prediction": "Hello! On Monday.", "labels": {"kind": "faq"}},
    {
        "id": "bad",
        "input": "When?",
        "prediction": "Soon.",
        "expected": {"instructions": ["Be short."]},
        "labels": {"kind": "mail"},
    },
]


def followed(call: Call) -> Sent:
    shown = shown_to(call)
    numbers = range(1, sum(name.startswith("instruction_") for name in shown) + 1)
    good = shown["answer"] != "Soon."
    verdicts = [{"instruction": each, "reason": "seen", "followed": good or each == 3} for each in numbers]
    first = call.number == 1  # leaves one out, and is asked again
    return reply(json.dumps({"verdicts": verdicts[first:]}))(call)


def test_instructions_are_pooled_recorded_and_replayed(judged: "Judged", workers: int) -> None:
    judged.server.script(followed)
    judged.project.suite(
        "s.eval.yaml",
        CASES,
        evaluators=[EVALUATOR],
        judge=judged.judge(),
        group_by=["kind"],
        gates=["instruction_rate >= 0.7"],
        thresholds={"all_followed": 1},
    )
    ran = judged.project.run("--llmeval-judge=record", workers=workers)
    assert (ran.code, len(judged.server.calls)) == (1, 3)
    metrics = ran.suites["s"]["metrics"]
    assert (metrics["instruction_rate"]["value"], metrics["all_followed"]["value"]) == (3 / 5, 0.5)
    assert ran.suites["s"]["groups"]["kind"]["mail"]["metrics"]["instruction_rate"]["value"] == 1 / 3
    assert "checklist: instruction 2 is not followed: Name a date. (seen)" in ran.text
    assert "instruction_rate >= 0.7" in ran.text
    assert [each["case"] for each in entries_of(judged.recordings())] == ["bad", "good"]
    again = judged.project.run("--llmeval-judge=replay", workers=workers)
    assert (again.code, again.suites["s"]["metrics"]) == (1, metrics)
    assert len(judged.server.calls) == 3

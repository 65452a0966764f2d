"""Complete runs in which answers turn into ones that make no claim."""

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from scripted_judges import ClaimJudge, Judged
from servers import Call, Sent, reply

import pytest_llmeval as ev
from pytest_llmeval.cli import main

if TYPE_CHECKING:
    from conftest import Project

FAITHFUL, UNFAITHFUL, SILENT = "Refunds take 30 days.", "Parking costs 5 euros.", "Could you say more?"
GATES = [
    "faithfulness >= 0.8",
    {"metric": "faithfulness", "max_drop": 0.02},
    {"metric": "faithfulness", "max_drop": 0.05, "rule": "non_inferiority"},
]
BEFORE, HALF_SILENT = [FAITHFUL] * 36 + [UNFAITHFUL] * 4, [FAITHFUL] * 20 + [SILENT] * 20


def serve(judged: Judged, answers: list[str], **top: Any) -> None:
    judge = ClaimJudge()

    def answer(call: Call) -> Sent:
        system, user = (each["content"] for each in call.body["messages"])
        return reply(judge.reply(system, user))(call)

    judged.server.script(answer)
    cases = [
        {
            "id": f"q{number:02}",
            "input": {"question": "How long do refunds take?"},
            "prediction": {"answer": each, "contexts": ["Refunds take 30 days at most."]},
        }
        for number, each in enumerate(answers)
    ]
    options = {"evaluators": [{"claims": {"metrics": ["faithfulness"]}}], "confidence": 0.95, "snapshot": True}
    judged.suite("s.eval.yaml", cases, **{**options, **top})


@pytest.mark.parametrize("abstained", ["fell", "allowed"])
def test_answers_that_claim_nothing_any_more_do_not_pass(judged: Judged, abstained: str, workers: int | None) -> None:
    serve(judged, BEFORE, gates=GATES, abstained=abstained)
    assert judged.project.run("--snapshot-update", workers=workers).code == 0
    approved = (judged.project.path / "__llmeval__" / "s.scores.json").read_text(encoding="utf-8")
    assert "abstained" not in approved.replace('"abstained": "', "")
    serve(judged, HALF_SILENT, gates=GATES, abstained=abstained)
    ran = judged.project.run("-v", workers=workers)
    suite = ran.suites["s"]
    value = suite["metrics"]["faithfulness"]
    assert (value["value"], value["scored"], value["abstained"], value["undefined"]) == (1.0, 20, 20, 0)
    outcomes = [each["outcome"] for each in suite["gates"]]
    snapshot = next(each for each in suite["snapshot"] if each["metric"] == "faithfulness")
    assert "20 cases abstained" in suite["gates"][0]["reason"]
    columns, values = ran.text[ran.text.index("\nmetric ") :].splitlines()[1:3]
    assert (columns.split()[-2:], values.split()[-2:]) == (["scored", "abstained"], ["20", "20"])
    if abstained == "allowed":
        # Pairs of which one answer abstains leave both runs: 20 equal ones are too few to rule a drop of 0.05 out.
        assert (ran.code, outcomes) == (1, ["passed", "passed", "failed"])
        return
    assert (ran.code, outcomes) == (1, ["undecided", "failed", "failed"])
    assert all("20 cases abstain that had a score, counted as 0" in each["reason"] for each in suite["gates"][1:3])
    assert (snapshot["outcome"], snapshot["value"]) == ("passed", 0.5)
    assert "fell from 0.9000 to 0.5000" in snapshot["reason"]
    assert "left to the gate with max_drop" in snapshot["reason"]
    assert "approve improved" not in ran.text


def test_a_snapshot_alone_fails_where_answers_claim_nothing_any_more(judged: Judged) -> None:
    serve(judged, BEFORE)
    assert judged.project.run("--snapshot-update").code == 0
    serve(judged, HALF_SILENT)
    ran = judged.project.run()
    snapshot = next(each for each in ran.suites["s"]["snapshot"] if each["metric"] == "faithfulness")
    assert (ran.code, snapshot["outcome"]) == (1, "failed")
    assert "20 cases abstain that had a score, counted as 0" in snapshot["reason"]
    assert "approve improved" not in ran.text


def test_abstentions_that_were_approved_are_no_fall(judged: Judged) -> None:
    serve(judged, HALF_SILENT, gates=GATES[:2])
    assert judged.project.run("--snapshot-update").code == 0
    scores = judged.project.path / "__llmeval__" / "s.scores.json"
    approved = scores.read_text(encoding="utf-8")
    assert approved.count('"abstained": 20') == 1
    ran = judged.project.run()
    assert ran.code == 0
    assert all("had a score" not in each["reason"] for part in ("gates", "snapshot") for each in ran.suites["s"][part])
    assert scores.read_text(encoding="utf-8") == approved


@pytest.mark.parametrize("abstained", ["fell", "allowed"])
def test_a_case_that_abstains_does_not_meet_its_threshold(
    judged: Judged, abstained: str, workers: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"thresholds": {"faithfulness": 0.5}, "abstained": abstained, "gates": ["pass_rate >= 0.75"]}
    serve(judged, [FAITHFUL, FAITHFUL, UNFAITHFUL, SILENT], snapshot=False, **options)
    ran = judged.project.run("--llmeval-report=report.json", workers=workers)
    cases = ran.suites["s"]["cases"]
    silent = next(each for each in cases if each["id"] == "q03")
    assert [each["outcome"] for each in cases].count("passed") == (2 if abstained == "fell" else 3)
    code = main(["decide", str(judged.project.path / "report.json"), str(judged.project.path / "s.eval.yaml")])
    decided = capsys.readouterr().out
    assert code == 1
    if abstained == "allowed":
        assert silent["outcome"] == "passed"
        assert "3 passed" in decided
        return
    assert [(each["outcome"], each["value"]) for each in ran.suites["s"]["gates"]] == [("failed", 0.5)]
    assert silent["outcome"] == "failed"
    assert silent["reason"] == "faithfulness abstains (the answer makes no claims), counted as 0, limit >= 0.5"
    assert "2 passed" in decided
    assert "outcomes changed" not in decided


BOT = """\
import os
from collections import Counter

turns = Counter()
SILENT = {"answer": "ok", "tool_calls": []}
RIGHT, WRONG = ({"answer": "ok", "tool_calls": [{"name": "pay", "arguments": {"n": n}}]} for n in (1, 2))
BEFORE = {"steady": (RIGHT, RIGHT), "mixed": (RIGHT, WRONG), "wrong": (WRONG, WRONG)}
AFTER = {"steady": (RIGHT, SILENT), "mixed": (RIGHT, SILENT), "wrong": (SILENT, SILENT)}

def answer(word):
    turns[word] += 1
    kinds = BEFORE if "APPROVING" in os.environ else AFTER
    return kinds[word.split()[0]][(turns[word] - 1) % 2]
"""
KINDS = ["steady"] * 30 + ["mixed"] * 5 + ["wrong"] * 5
AGENTS = [
    {
        "id": f"{kind} {number}",
        "input": f"{kind} {number}",
        "expected": {"tool_calls": [{"name": "pay", "arguments": {"n": 1}}]},
        "labels": {"kind": kind},
    }
    for number, kind in enumerate(KINDS)
]
DROPS = [
    {"metric": "mean(argument_accuracy)", "max_drop": 0.05},
    {"metric": "mean(argument_accuracy)", "max_drop": 0.05, "rule": "non_inferiority"},
]


def in_every_run(suite: Mapping[str, Any]) -> str:
    """Return the report of a suite without times and calls, and without what depends on how far workers ran ahead."""
    kept = {name: value for name, value in suite.items() if name not in ("usage", "money")}
    kept["stop"] = [suite["stop"]["cases"], suite["stop"]["not_needed"]] if "stop" in suite else None
    times = ("duration_s", "latency_s", "target_latency_s")
    kept["cases"] = [{name: value for name, value in case.items() if name not in times} for case in suite["cases"]]
    return json.dumps(kept, indent=1)


@pytest.mark.release
def test_repeats_that_abstain_count_alike_in_shards_samples_stopped_runs_and_scripts(
    project: "Project", monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("bot.py", BOT)
    project.ini("pythonpath = .")
    options = {"evaluators": ["tools"], "target": "bot:answer", "repeats": 2, "gates": DROPS, "snapshot": True}
    project.suite("whole.eval.json", AGENTS, **options)
    project.suite("sampled.eval.json", AGENTS, **options, sample={"cases": 17, "by": "kind"})
    project.suite("stopped.eval.json", AGENTS, **options, stop="when_decided")
    with monkeypatch.context() as approving:
        approving.setenv("APPROVING", "yes")
        assert project.run("--snapshot-update").code == 0
    ran = project.run()
    for part in (1, 2):
        shard = project.run(f"--llmeval-shard={part}/2", f"--llmeval-report=parts/{part}.llmeval", report="part.json")
        assert shard.code == 0
    assert main(["merge", "parts", "--report=merged.json"]) == 1
    merged = json.loads((project.path / "merged.json").read_text(encoding="utf-8"))["suites"]
    assert {each["suite"]: in_every_run(each) for each in merged} == {
        name: in_every_run(each) for name, each in ran.suites.items()
    }
    assert ran.code == 1
    assert ran.suites["stopped"]["stop"]["not_needed"] > 0
    for suite in ran.suites.values():
        assert [each["outcome"] for each in suite["gates"]] == ["failed", "failed"]
    # 30 cases fall from 1 to 0.5, 5 stay at 0.5 and 5 at 0: silence is no better than an answer that is wrong.
    for name in ("whole", "sampled"):
        assert ran.suites[name]["gates"][0]["value"] == pytest.approx(30 * 0.5 / 40)
    monkeypatch.delitem(sys.modules, "bot", raising=False)  # of another test
    (drop, _) = ev.suite.from_file(project.path / "whole.eval.json").run(progress=False).gates
    assert (drop.outcome, drop.reason) == tuple(ran.suites["whole"]["gates"][0][key] for key in ("outcome", "reason"))

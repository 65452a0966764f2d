"""What a run says of money: spent, saved by stores and cascades, and what a full run would have cost."""

import json
from pathlib import Path
from typing import Any

import pytest
from scripted_judges import Judged, case, shown_to
from servers import Call, Sent, reply

from pytest_llmeval.cli import main
from pytest_llmeval.reports import RunReport

PRICE = {"input": 100, "output": 1000}
CALL = 0.006
"""US dollars of a call: 10 tokens read, 5 written."""

BOT = "def answer(word):\n    return {'answer': word, 'usage': {'cost_usd': 0.25}}\n"
INPUTS = [{"id": word, "input": word, "expected": "x"} for word in "ab"]
ANSWERS = ("--llmeval-predictions=answers.jsonl",)


def suite(judged: Judged, **top: Any) -> None:
    judge = judged.judge(price=PRICE)
    judged.suite("s.eval.yaml", INPUTS, **{"target": "bot:answer", "judge": judge, **top})


def money(ran: Any) -> Any:
    assert ran.report["money"] == ran.suites["s"]["money"]  # there is one suite
    return ran.report["money"]


def amounts(judges: float | None, users: float | None, targets: float | None) -> dict[str, Any]:
    total = None if None in (judges, users, targets) else sum(filter(None, (judges, users, targets)))
    found = {"judges": judges, "users": users, "targets": targets, "total": total}
    return {name: None if each is None else pytest.approx(each) for name, each in found.items()}


def test_every_run_says_what_it_spent_on_judges_and_targets_and_what_was_stored(judged: Judged, workers: int) -> None:
    judged.project.write("bot.py", BOT)
    suite(judged, gates=["total_cost_usd <= 0.52", "total_cost_usd <= 0.5", "judge_cost_usd <= 0.02"])
    first = judged.project.run(*ANSWERS, "--llmeval-report=report.md", workers=workers)
    assert money(first)["spent"] == amounts(2 * CALL, 0, 0.5)
    assert money(first)["saved"] == {"stored": 0, "stop": 0, "cascade": 0, "total": 0}
    assert money(first)["full"] == pytest.approx(0.512)
    assert first.gates("s") == {
        "total_cost_usd <= 0.52": "passed",
        "total_cost_usd <= 0.5": "failed",
        "judge_cost_usd <= 0.02": "passed",
    }
    line = "cost: 0.5120 USD (judges 0.0120, targets 0.5000)"
    assert line in first.text
    assert line.replace(".", "") in (judged.project.path / "report.md").read_text("utf-8").replace("\\", "").replace(
        ".", ""
    )
    again = judged.project.run(*ANSWERS, workers=workers)
    assert judged.asked() == {"a": 1, "b": 1}
    assert money(again)["spent"] == amounts(0, 0, 0)
    assert money(again)["saved"]["stored"] == money(again)["full"] == pytest.approx(0.512)
    assert "saved: 0.5120 USD by what was stored" in again.text
    assert again.gates("s")["total_cost_usd <= 0.5"] == "passed"


def test_unknown_prices_are_unknown_and_decide_no_gate(judged: Judged) -> None:
    judged.project.write("bot.py", "def answer(word):\n    return word\n")
    suite(judged, gates=["total_cost_usd <= 5", "judge_cost_usd <= 5"])
    silent = judged.project.run()
    assert money(silent)["spent"] == amounts(2 * CALL, 0, None)
    assert money(silent)["full"] is None
    assert "cost: 0.0120 USD (judges 0.0120); no known price: targets" in silent.text
    assert silent.gates("s") == {"total_cost_usd <= 5": "failed", "judge_cost_usd <= 5": "passed"}
    assert "total_cost_usd is unknown: not every answer of the target reports its cost; judge_cost_usd" in silent.text
    suite(judged, judge=judged.judge(model="openai:other"), gates=["total_cost_usd <= 5"])
    unpriced = judged.project.run()
    assert money(unpriced)["spent"]["judges"] is None
    assert "total_cost_usd is unknown: a call has no known price" in unpriced.text


def test_predictions_of_the_file_are_neither_spent_nor_saved(judged: Judged) -> None:
    given = [case("a", prediction={"answer": "a", "usage": {"cost_usd": 0.25}})]
    judged.suite("s.eval.yaml", given, judge=judged.judge(price=PRICE), gates=["total_cost_usd <= 0.01"])
    ran = judged.project.run()
    assert money(ran)["spent"] == amounts(CALL, 0, 0)
    assert money(ran)["full"] == pytest.approx(CALL)
    assert ran.gates("s") == {"total_cost_usd <= 0.01": "passed"}


def test_a_run_that_asks_nothing_has_no_money(judged: Judged) -> None:
    judged.project.suite("s.eval.yaml", [case("a")], evaluators=["text"])
    ran = judged.project.run()
    assert "money" not in ran.report
    assert "cost:" not in ran.text


def test_a_cascade_saves_the_calls_of_the_large_judge_that_were_not_made(judged: Judged) -> None:
    def says(call: Call) -> Sent:
        unsure = call.body["model"] == "small" and shown_to(call)["answer"] == "w0"
        return reply(json.dumps({"reasoning": "r", "score": 0.5 if unsure else 1}))(call)

    judged.server.script(says)
    first = judged.judge(model="openai:small", price={"input": 10, "output": 100})
    then = judged.judge(model="openai:large", price=PRICE)
    judge = {"first": first, "then": then, "when": {"score_between": [0.3, 0.8]}, "audit": 0}
    cases = [case(f"w{number}") for number in range(10)]
    judged.suite("s.eval.yaml", cases, judge=judge, evaluators=[{"judge": {"mode": "continuous"}}])
    ran = judged.project.run()
    assert len(judged.server.calls) == 11
    assert money(ran)["spent"]["judges"] == pytest.approx(10 * CALL / 10 + CALL)
    assert money(ran)["spent"]["judges"] == ran.suites["s"]["usage"]["judge_cost_usd"]
    assert money(ran)["saved"]["cascade"] == pytest.approx(9 * CALL)
    assert money(ran)["full"] == pytest.approx(CALL + 10 * CALL)
    assert "saved: 0.0540 USD by cascades" in ran.text
    judged.suite("s.eval.yaml", cases[1:], judge=judge, evaluators=[{"judge": {"mode": "continuous"}}])
    stored = judged.project.run()
    assert money(stored)["saved"] == {"stored": pytest.approx(0.0054), "stop": 0, "cascade": None, "total": None}


def test_repeats_are_paid_each_and_simulated_users_apart(judged: Judged) -> None:
    def says(call: Call) -> Sent:
        if "conversation" not in shown_to(call):
            return reply("yes")(call)
        said = json.loads(shown_to(call)["conversation"])
        turn = {"message": None, "stop": "goal_reached"} if said else {"message": "Hello?", "stop": None}
        return reply(json.dumps({**turn, "reason": "so it is"}))(call)

    judged.server.script(says)
    judged.project.write("bot.py", "def answer(messages):\n    return {'answer': 'Hi', 'usage': {'cost_usd': 0.25}}\n")
    user = {"model": "openai:person", "base_url": judged.server.base_url, "max_turns": 4, "price": PRICE}
    judged.project.suite(
        "s.eval.yaml",
        [{"id": "a", "input": {"goal": "Be greeted."}, "expected": "Hi"}],
        target="bot:answer",
        conversation={"user": user},
        evaluators=[{"judge": {"mode": "default_binary"}}],
        judge=judged.judge(price=PRICE),
        repeats=2,
    )
    ran = judged.project.run()
    users = sum(call.body["model"] == "person" for call in judged.server.calls)
    judges = len(judged.server.calls) - users
    assert users == 4
    assert money(ran)["spent"] == amounts(judges * CALL, users * CALL, 0.5)


def test_history_shows_what_runs_cost_and_reports_read_back_say_the_same(
    judged: Judged, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged.project.write("bot.py", BOT)
    suite(judged, snapshot=True)
    for mode in ("--snapshot-update", "--llmeval-judge=refresh"):
        judged.project.run(mode, *ANSWERS)
    report = RunReport.read(judged.project.path / "report.json")
    written = json.loads((judged.project.path / "report.json").read_text("utf-8"))
    (read,) = report.suites
    assert read.money is not None
    assert (read.money.spent.total, read.money.full) == (written["money"]["spent"]["total"], written["money"]["full"])
    capsys.readouterr()
    monkeypatch.chdir(judged.project.path)
    assert main(["history", "s.eval.yaml", "--metric", "total_cost_usd"]) == 0
    shown = capsys.readouterr().out
    assert "0.5120" in shown
    assert "0.0120" in shown


def test_the_page_of_a_report_without_money_can_still_be_read(tmp_path: Path, judged: Judged) -> None:
    suite(judged, target=None)
    path = tmp_path / "old.json"
    judged.project.run()
    old = json.loads((judged.project.path / "report.json").read_text("utf-8"))
    old.pop("money", None)
    for each in old["suites"]:
        each.pop("money", None)
    path.write_text(json.dumps(old), encoding="utf-8")
    assert [each.money for each in RunReport.read(path).suites] == [None]


def test_what_a_stop_saved_is_the_number_of_its_report(judged: Judged) -> None:
    words = [f"w{number:03}" for number in range(300)]
    top = {"stop": "when_decided", "gates": ["judge_score >= 0.2"], "confidence": 0.95}
    judged.suite("s.eval.yaml", words, judge=judged.judge(price=PRICE), **top)
    ran = judged.project.run("--llmeval-concurrency=1")
    (stop,) = (each["stop"] for each in ran.report["suites"])
    assert stop["not_needed"] > 0
    assert money(ran)["spent"]["judges"] == pytest.approx(len(judged.server.calls) * CALL)
    assert money(ran)["saved"]["stop"] == stop["cost_usd"] == pytest.approx((300 - len(judged.server.calls)) * CALL)
    assert money(ran)["full"] == pytest.approx(300 * CALL)
    assert f"{stop['cost_usd']:.4f} USD by stopping" in ran.text

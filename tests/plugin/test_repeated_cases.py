"""``repeats``: every case runs several times, has one reduced score, and tells how steady it is."""

import itertools
import random
from typing import TYPE_CHECKING, Any

import pytest
from scripted_judges import by_answer, entries_of
from servers import reply

if TYPE_CHECKING:
    from conftest import Project, Ran
    from scripted_judges import Judged

YES, NO, NONE = reply("yes"), reply("no"), reply("perhaps")
ANSWERS = {"steady": [YES], "flaky": [YES, NO, YES], "wrong": [NO], "broken": [YES, NONE, YES]}
GATES = ["judge_score >= 0.5", "pass_rate >= 0.5", {"metric": "judge_score", "min": 0.4, "max_errors": 1}]


def _repeats(ran: "Ran") -> dict[str, dict[str, Any]]:
    return {each["id"]: each["details"]["repeats"] for each in ran.suites["s"]["cases"]}


def _scores(ran: "Ran") -> dict[str, float | None]:
    return {each["id"]: each["metrics"].get("judge_score") for each in ran.suites["s"]["cases"]}


def test_every_repeat_is_a_judgement_of_its_own_and_all_of_them_are_recorded_and_replayed(judged: "Judged") -> None:
    judged.server.script(by_answer(ANSWERS))
    judged.suite("s.eval.yaml", list(ANSWERS), repeats=3, gates=GATES, thresholds={"judge_score": 0.6})
    ran = judged.project.run("--llmeval-judge=record", "--llmeval-report=report.md", workers=2)
    assert judged.asked() == dict.fromkeys(sorted(ANSWERS), 3)

    told = _repeats(ran)
    assert {name: each["status"] for name, each in told.items()} == {
        "steady": "stable pass",
        "flaky": "flaky",
        "wrong": "stable fail",
        "broken": "error",
    }
    assert (told["flaky"]["times"], told["flaky"]["passed"]) == (3, 2)
    assert told["flaky"]["pass_rate"] == pytest.approx(2 / 3)
    spread = told["flaky"]["spread"]["judge_score"]
    assert sorted(spread["scores"]) == [0, 1, 1]
    assert (spread["min"], spread["max"], spread["sd"]) == (0, 1, pytest.approx(0.4714, abs=1e-4))

    entries = [(each["case"], each["repeat"]) for each in entries_of(judged.recordings()) if each["case"] != "broken"]
    assert entries == [(name, repeat) for name in ("flaky", "steady", "wrong") for repeat in range(3)]

    replayed = judged.project.run("--llmeval-judge=replay", workers=2)
    assert judged.asked() == {}
    same = ("steady", "flaky", "wrong")
    assert {name: _repeats(replayed)[name] for name in same} == {name: told[name] for name in same}


def test_thresholds_and_gates_read_the_reduced_score(judged: "Judged") -> None:
    judged.server.script(by_answer(ANSWERS))
    judged.suite("s.eval.yaml", list(ANSWERS), repeats=3, gates=GATES, thresholds={"judge_score": 0.6})
    ran = judged.project.run("--llmeval-report=report.md")
    assert ran.outcomes("s") == {"steady": "passed", "flaky": "passed", "wrong": "failed", "broken": "errored"}
    scores = _scores(ran)
    assert (scores["steady"], scores["flaky"], scores["wrong"]) == (1, pytest.approx(2 / 3), 0)
    assert scores.get("broken") is None
    assert ran.suites["s"]["metrics"]["judge_score"]["value"] == pytest.approx(5 / 9)
    assert list(ran.gates("s").values()) == ["failed", "passed", "passed"]  # the first allows no error
    reason = next(each["reason"] for each in ran.suites["s"]["cases"] if each["id"] == "broken")
    assert reason.startswith("judge: repeat ")
    assert " of 3: JudgeError: the verdict is missing" in reason
    assert ran.suites["s"]["stability"] == {"stable pass": 1, "flaky": 1, "stable fail": 1, "error": 1}
    line = "repeats: 1 stable pass, 1 flaky, 1 stable fail, 1 error"
    assert line in ran.text
    assert line in (judged.project.path / "report.md").read_text(encoding="utf-8").replace("\\", "")


def test_each_reducer_makes_one_score_of_the_same_replies(judged: "Judged") -> None:
    expected = {
        "mean": 2 / 3,
        "median": 1.0,
        "majority": 1.0,
        "min": 0.0,
        "max": 1.0,
        "pass_at_k": 1.0,  # of any two repeats one is right
        "all_of_k": 1 / 3,  # of the three pairs of repeats one is right twice
    }
    judged.server.script(by_answer({"flaky": ANSWERS["flaky"]}))
    for name in expected:
        repeats = {"times": 3, "reduce": name, **({"k": 2} if name.endswith("_k") else {})}
        judged.suite(f"{name}.eval.yaml", ["flaky"], repeats=repeats)
    ran = judged.project.run()
    assert ran.code == 0
    found = {name: suite["metrics"]["judge_score"] for name, suite in ran.suites.items()}
    assert {name: metric["value"] for name, metric in found.items()} == pytest.approx(expected)
    assert found["pass_at_k"]["signature"].endswith("|repeats:3|reduce:pass_at_k|k:2|success:1")
    # The suites ask the same, repeat by repeat, so they share three verdicts.
    assert judged.asked() == {"flaky": 3}


BOT = """\
import itertools

count = itertools.count(1)


def answer(word):
    return f"{word}{next(count)}"
"""


def test_the_target_is_asked_for_every_repeat_and_all_its_answers_are_recorded(judged: "Judged") -> None:
    judged.project.write("bot.py", BOT)
    target = {"python": "bot:answer", "concurrency": 1}
    judged.suite("s.eval.yaml", [{"id": "a", "input": "a", "expected": "x"}], target=target, repeats=3)
    predictions = "--llmeval-predictions=p.jsonl"
    first = judged.project.run(predictions)
    assert judged.asked() == {"a1": 1, "a2": 1, "a3": 1}
    rows = entries_of(judged.project.path / "p.jsonl")
    assert [(row.get("repeat", 0), row["prediction"]) for row in rows] == [(0, "a1"), (1, "a2"), (2, "a3")]
    judged.project.write("bot.py", "def answer(word):\n    return 'other'\n")
    again = judged.project.run(predictions, "--llmeval-predictions-mode=replay")
    assert (again.code, judged.asked()) == (0, {})
    assert _repeats(again) == _repeats(first)


def test_a_repeat_whose_target_fails_makes_the_case_an_error(judged: "Judged") -> None:
    judged.project.write("bot.py", BOT + "\n\ndef fails(word):\n    return 1 / (2 - next(count)) and word\n")
    target = {"python": "bot:fails", "concurrency": 1}
    judged.suite("s.eval.yaml", [{"id": "a", "input": "a", "expected": "x"}], target=target, repeats=3)
    ran = judged.project.run()
    case = ran.suites["s"]["cases"][0]
    reason = "repeat 2 of 3: ZeroDivisionError: division by zero (bot.py:11 in fails)"
    assert (case["outcome"], case["reason"]) == ("errored", reason)
    assert case["details"]["repeats"]["status"] == "error"


def test_faults_of_repeats_are_told_with_their_place(judged: "Judged") -> None:
    faults = {
        "zero": (0, "repeats: found 0, expected 1 to 1000"),
        "many": ({"times": 1001}, "repeats.times: found 1001, expected 1 to 1000"),
        "k": ({"times": 2, "reduce": "pass_at_k", "k": 3}, "repeats.k: found 3, expected 1 to 2"),
        "word": ({"times": 2, "reduce": "average"}, "repeats.reduce: "),
    }
    for name, (repeats, _) in faults.items():
        judged.suite(f"{name}.eval.yaml", ["a"], repeats=repeats)
    ran = judged.project.run()
    for name, (_, message) in faults.items():
        assert message in ran.text, name
    assert judged.asked() == {}


SECRET = "k3y-0123456789-secret"
CHANCE = random.Random(5)
RUNS = {f"c{number}": [CHANCE.random() < 0.9 for _ in range(5)] for number in range(8)}
AGENT = """
import itertools
from collections import defaultdict

RUNS = ...
COUNTS = defaultdict(itertools.count)


def agent(messages):
    done = sum(each["role"] == "assistant" for each in messages)
    name = messages[0]["content"]
    if not done:
        RUN[name] = RUNS[name][next(COUNTS[name])]
        return {"answer": "Shall I pay order 7?", "tool_calls": [{"name": "look", "arguments": {"order": 7}}]}
    if RUN[name]:
        return {"answer": "Paid.", "tool_calls": [{"name": "pay", "arguments": {"order": 7, "key": "KEY"}}]}
    return "I cannot do that."


RUN = {}
"""


def _agents(project: "Project", *args: str) -> "Ran":
    project.write("agent.py", AGENT.replace("RUNS = ...", f"RUNS = {RUNS}").replace("KEY", SECRET))
    cases = [{"id": f"c{number}", "messages": [f"c{number}", "Yes."]} for number in range(8)]
    checks = [{"not_contains": "cannot"}]
    target = {"python": "agent:agent", "concurrency": 1}
    project.suite("s.eval.yaml", cases, target=target, evaluators=[], checks=checks, repeats=5, gates=["pass^3 >= 0.8"])
    return project.run("--llmeval-report=report.md", *args)


def test_pass_k_of_an_agent_are_what_combinatorics_say_and_gate(project: "Project") -> None:
    ran = _agents(project)
    for k in range(1, 6):
        every, some = [], []
        for runs in RUNS.values():
            chosen = list(itertools.combinations(runs, k))
            every.append(sum(map(all, chosen)) / len(chosen))
            some.append(sum(map(any, chosen)) / len(chosen))
        for name, expected in ((f"pass^{k}", every), (f"pass@{k}", some)):
            metric = ran.suites["s"]["metrics"][name]
            assert metric["value"] == pytest.approx(sum(expected) / 8)
            assert metric["low"] <= metric["value"] <= metric["high"]
    assert 0.4 < ran.suites["s"]["metrics"]["pass^3"]["value"] < 0.8
    assert ran.gates("s") == {"pass^3 >= 0.8": "failed"}


def test_a_failing_case_says_where_its_repeats_part(project: "Project", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_API_KEY", SECRET)
    ran = _agents(project)
    told = _repeats(ran)
    flaky = {name: each for name, each in told.items() if each["status"] == "flaky"}
    assert flaky
    for name, each in told.items():
        assert each["flakiness"] == pytest.approx(each["passed"] * (5 - each["passed"]) / 10)
        assert ("parts_at" in each) == (name in flaky)
    name, each = next(iter(flaky.items()))
    parts_at = each["parts_at"]
    assert (parts_at["turn"], parts_at["step"]) == (2, 1)
    what = {variant["what"]: variant["repeats"] for variant in parts_at["variants"]}
    assert set(what) == {'pay("key": "***", "order": 7)', "a message of the assistant"}
    assert sorted(number for numbers in what.values() for number in numbers) == [1, 2, 3, 4, 5]
    markdown = (project.path / "report.md").read_text(encoding="utf-8")
    line = f"repeats: {each['passed']} of 5 passed; they part in turn 2, step 1: "
    assert line in " ".join(ran.text.split())
    assert line in markdown
    assert name in markdown
    assert SECRET[:14] not in markdown + ran.text + str(ran.report)


def test_reports_without_texts_do_not_say_what_repeats_did(project: "Project") -> None:
    told = _repeats(_agents(project, "--llmeval-texts=none"))
    parts_at = next(each["parts_at"] for each in told.values() if "parts_at" in each)
    assert (parts_at["turn"], parts_at["step"]) == (2, 1)
    assert all(list(variant) == ["repeats"] for variant in parts_at["variants"])

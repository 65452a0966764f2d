"""``repeats``: every case runs several times, has one reduced score, and tells how steady it is."""

from typing import TYPE_CHECKING, Any

import pytest
from judged_projects import by_answer, entries_of
from llm_server import reply

if TYPE_CHECKING:
    from conftest import Ran
    from judged_projects import Judged

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
    assert " of 3: JudgeError: found no verdict" in reason
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

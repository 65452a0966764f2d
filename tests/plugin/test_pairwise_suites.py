"""Pairs in suites: systems against each other, asked over HTTP, recorded and replayed."""

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from scripted_judges import entries_of, shown_to
from servers import Call, Sent, reply

if TYPE_CHECKING:
    from scripted_judges import Judged

CASES = [{"id": word, "input": f"Say {word}!", "labels": {"kind": "x"}} for word in ("one", "two", "three")]
SYSTEMS = {
    "terse": {"predictions": "terse.json"},
    "wordy": {"python": "my_app:wordy"},
    "odd": {"python": "my_app:odd"},
}
APP = """\
def wordy(value):
    with open("asked.txt", "a") as file:
        file.write(f"wordy {value}\\n")
    return f"{value} And more."

def odd(value):
    with open("asked.txt", "a") as file:
        file.write(f"odd {value}\\n")
    return "Two!" if "two" in value else value
"""


def longer(call: Call) -> Sent:
    shown = shown_to(call)
    better = "first" if len(shown["first"]) > len(shown["second"]) else "second"
    return reply(json.dumps({"reasoning": "It says more.", "better": better}))(call)


def first(call: Call) -> Sent:
    return reply('{"better": "first"}')(call)


@pytest.fixture
def paired(judged: "Judged") -> "Judged":
    judged.server.script(longer)
    judged.project.write("terse.json", json.dumps({"one": "One.", "two": "Two!", "three": "Three."}))
    judged.project.write("my_app.py", APP)
    return judged


def suite(judged: "Judged", **top: Any) -> None:
    options = {"evaluators": [{"pairwise": {"against": "systems"}}], "systems": SYSTEMS, "judge": judged.judge()}
    judged.project.suite("s.eval.yaml", CASES, **{**options, **top})


def asked(judged: "Judged") -> Counter[str]:
    """Return what targets were asked, and each pair that the judge was shown in its order."""
    pairs = (f"{shown['first']} | {shown['second']}" for shown in map(shown_to, judged.server.calls))
    file = judged.project.path / "asked.txt"
    return Counter([*pairs, *(file.read_text(encoding="utf-8").splitlines() if file.exists() else ())])


def test_systems_and_judge_are_asked_once_about_each_pair_in_any_number_of_processes(
    paired: "Judged", workers: int
) -> None:
    gates = [
        {"metric": "win_rate", "system": "wordy", "min": 1},
        {"metric": "losses", "system": "odd", "max": 2},
        "flip_rate <= 0",
    ]
    suite(paired, gates=gates, group_by=["kind"])
    ran = paired.project.run("-v", workers=workers)
    assert (ran.code, ran.counts["passed"]) == (1, 9 + 4)
    found = {name: each["metrics"] for name, each in ran.suites.items()}
    rates = {name: metrics["win_rate"]["value"] for name, metrics in found.items()}
    assert rates == {"s[terse]": pytest.approx(1 / 12), "s[wordy]": 1, "s[odd]": pytest.approx(5 / 12)}
    assert found["s[odd]"]["losses"]["value"] == 3
    assert found["s[odd]"]["win_rate[terse]"]["value"] == pytest.approx(5 / 6)
    assert ran.suites["s[wordy]"]["groups"]["kind"]["x"]["metrics"]["wins"]["value"] == 6
    (table,) = ran.report["systems"]
    (strengths,) = table["strengths"]
    assert (strengths["label"], strengths["pairs"], strengths["cases"]) == ("pairwise", 9, 3)
    assert [each["system"] for each in strengths["systems"]] == ["wordy", "odd", "terse"]
    assert all(each["low"] < each["value"] < each["high"] for each in strengths["systems"])
    assert "strength by pairwise (Bradley-Terry with ties, 9 pairs)" in ran.text
    counted = asked(paired)
    assert set(counted.values()) == {1}
    assert sum("|" in each for each in counted) == 6 + 2 + 6  # two systems say the same about the second case


def test_a_judge_that_always_names_the_first_gives_ties_only(paired: "Judged") -> None:
    paired.server.script(first)
    suite(paired)
    ran = paired.project.run()
    for metrics in (each["metrics"] for each in ran.suites.values()):
        assert (metrics["win_rate"]["value"], metrics["wins"]["value"], metrics["losses"]["value"]) == (0.5, 0, 0)
        assert metrics["flip_rate"]["value"] == 1
    assert not any(table["differences"]["win_rate"]["wins"] for table in ran.report["systems"][0]["systems"][1:])


def test_pairs_are_recorded_and_replayed_without_a_model_also_for_one_system(paired: "Judged") -> None:
    suite(paired)
    arguments = ("--llmeval-predictions=predictions.jsonl", "--llmeval-judge=record")
    paired.project.run(*arguments)
    assert Counter(each["mode"] for each in entries_of(paired.recordings())) == {"pairwise": 14}
    before = asked(paired)
    (paired.project.path / ".llmeval" / "cache.sqlite3").unlink()
    replay = ("--llmeval-predictions=predictions.jsonl", "--llmeval-predictions-mode=replay", "--llmeval-judge=replay")
    ran = paired.project.run("-k", "wordy", *replay)
    assert ran.suites["s[wordy]"]["metrics"]["win_rate"]["value"] == 1
    assert asked(paired) == before


def test_pairs_are_shown_with_their_questions_and_without_judges_they_are_undefined(paired: "Judged") -> None:
    suite(paired, thresholds={"win_rate": 0.5})
    text = paired.project.run("-k", "one and terse").text
    assert "pairwise: lost to wordy in both orders" in text
    assert "pairwise: It says more." in text
    off = paired.project.run("--llmeval-judge=off").suites["s[terse]"]["metrics"]["win_rate"]
    assert (off["value"], off["undefined"], off["errored"]) == (None, 3, 0)

"""The published gold of Subtask 1: quotations that the utterance does not have, and what they cost."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.core import Fault
from pytest_llmeval.tasks.emotion_cause._source import EcacSource
from pytest_llmeval.tasks.emotion_cause.package import evaluate_1_2

PAIRS = "emotion-cause_pairs"


def conversation(number: int, texts: list[str], pairs: list[list[str]]) -> dict[str, Any]:
    utterances = [
        {"utterance_ID": place, "speaker": "Ada", "emotion": "joy", "text": text} for place, text in enumerate(texts, 1)
    ]
    return {"conversation_ID": number, "conversation": utterances, PAIRS: pairs}


def gold(quotation: str) -> list[dict[str, Any]]:
    return [
        conversation(1, ["Rain , rain !", "Shut the door !"], [["2_fear", f"1_{quotation}"], ["2_fear", "2_the door"]]),
        conversation(2, ["We won , we won !"], [["1_joy", "1_we won"]]),
    ]


ANSWERS = [
    {"conversation_ID": 1, PAIRS: [["2_fear", "1_0_3"], ["2_fear", "2_1_3"]]},
    {"conversation_ID": 2, PAIRS: [["1_joy", "1_3_5"]]},
]
NOTE = "utterance 1 does not contain these words; the span is empty"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(quotation: str) -> None:
    Path("gold.json").write_text(json.dumps(gold(quotation)))
    Path("answers.json").write_text(json.dumps(ANSWERS))
    Path("t.eval.yaml").write_text(
        "evaluators: [emotion_cause: {subtask: 1}]\ngates: [weighted_strict_f1 >= 0.1]\n"
        "source: {format: emotion_cause, subtask: 1, gold: gold.json, predictions: answers.json}\n"
    )


@pytest.mark.parametrize("quotation", ["Rain , rai", "rain rain", "Rain, rain", "?", "", "Snow"])
def test_words_that_are_not_there_give_a_number_and_a_note(quotation: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(quotation)
    assert main(["score", "t.eval.yaml", "-v", "--report=run.json"]) == 0
    out = capsys.readouterr().out
    assert f'conversation 1, pair 1 ["2_fear", "1_{quotation}"]: {NOTE}' in out
    metrics = json.loads(Path("run.json").read_text())["suites"][0]["metrics"]
    # One of two pairs of fear, weight 2, and that of joy.
    assert metrics["weighted_strict_f1"]["value"] == pytest.approx((2 * 0.5 + 1) / 3)
    strict, proportional = evaluate_1_2(ANSWERS, gold(quotation))
    assert strict[2] == metrics["weighted_strict_f1"]["value"]
    assert proportional[2] == metrics["weighted_proportional_f1"]["value"]


def test_words_that_are_there_give_no_note(capsys: pytest.CaptureFixture[str]) -> None:
    write("Rain , rain")
    assert main(["score", "t.eval.yaml", "-v"]) == 0
    assert NOTE not in capsys.readouterr().out


def test_every_way_to_the_gold_file_notes_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    write("Rain , rai")
    arguments = ["--from=text", "--to=official", "--subtask=1", "-o", "official.json"]
    assert main(["emotion-cause", "convert", "gold.json", *arguments]) == 0
    assert NOTE in capsys.readouterr().err
    assert json.loads(Path("official.json").read_text())[0][PAIRS][0] == ["2_fear", "1_0_0"]
    assert main(["emotion-cause", "validate", "answers.json", "--subtask=1", "--gold=gold.json"]) == 0
    assert NOTE in capsys.readouterr().err
    assert main(["validate", "t.eval.yaml"]) == 0
    assert NOTE in capsys.readouterr().out


def test_a_bad_annotation_costs_its_own_conversation() -> None:
    write("Rain , rai")
    conversations = gold("Rain")
    conversations[0][PAIRS].append(["9_fear", "9_nobody"])
    Path("gold.json").write_text(json.dumps(conversations))
    faults: list[Fault] = []
    source = EcacSource(gold="gold.json", subtask=1)
    assert [case.id for case in source.load(Path(), faults)] == ["2"]
    assert [fault.message.partition(":")[0] for fault in faults] == ['conversation 1, pair 3 ["9_fear", "9_nobody"]']
    assert source.faulty(faults) == 1


def test_a_submission_with_a_reversed_span_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write("Rain")
    answers = [{**ANSWERS[0], PAIRS: [["2_fear", "1_3_0"]]}, ANSWERS[1]]
    Path("answers.json").write_text(json.dumps(answers))
    assert main(["emotion-cause", "validate", "answers.json", "--subtask=1", "--gold=gold.json"]) == 1
    assert "span order: found end 0 before start 3" in capsys.readouterr().out

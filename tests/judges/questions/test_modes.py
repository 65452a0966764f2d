"""Modes of judging as data, rubrics, and which mode judges which question."""

import hashlib
import json
import os
import subprocess
import sys

import jsonschema  # type: ignore[import-untyped]  # its types are a distribution of their own
import pytest

from pytest_llmeval.evaluators.judge._evaluator import optional_fields
from pytest_llmeval.judges import ModeFile, TypedQuestion
from pytest_llmeval.judges.questions._modes import MODES, PRESETS
from pytest_llmeval.judges.questions._replies import FLAGS
from pytest_llmeval.tasks.memory_qa import QuestionType

DIGESTS = {
    "abstention": ("1", "15721155d620"),
    "advice_limits": ("1", "30ea0cd72d76"),
    "bias": ("1", "fd049b88305a"),
    "continuous": ("1", "152e0a991882"),
    "criteria": ("1", "94993a8a37bb"),
    "criteria_steps": ("1", "a6cc7e4a7bcc"),
    "criterion": ("1", "50af01bd205b"),
    "default_binary": ("1", "154ae00a3999"),
    "explanation": ("2", "3e8387b5b1bc"),
    "goal_reached": ("1", "6203bf1abd9c"),
    "knowledge_update": ("1", "d380f3242ab2"),
    "personal_data": ("1", "5f99e227266e"),
    "preference": ("1", "251e7b039b48"),
    "rubric": ("1", "2a898ae30065"),
    "summary_coverage": ("1", "861701b26037"),
    "temporal_reasoning": ("1", "eaa2ca9d8167"),
    "tone": ("1", "a0e5d418da3e"),
    "toxicity": ("1", "85a2bfae37d4"),
    "simulated_user": ("1", "a719e196c722"),
    "user_role": ("1", "6e9fe06a01cf"),
}
"""Mode to version and digest of what its file says. Whoever changes a file gives it a new version, and notes both here:
verdicts of other instructions must not be taken for the same."""


def digest(name: str) -> str:
    told = {key: value for key, value in ModeFile(name).content.items() if key != "version"}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]


@pytest.mark.parametrize("name", DIGESTS)
def test_whoever_changes_a_mode_gives_it_a_new_version(name: str) -> None:
    assert (ModeFile(name).content["version"], digest(name)) == DIGESTS[name]


def test_every_mode_is_noted() -> None:
    assert {*MODES, "criteria", "criteria_steps", "rubric", "simulated_user", "user_role"} == set(DIGESTS)


@pytest.mark.parametrize("name", MODES)
def test_a_mode_has_instructions_in_english_and_chinese_that_name_its_fields(name: str) -> None:
    mode = ModeFile.mode_named(name)
    assert mode.name == name
    assert set(mode.instructions) == {"en", "zh"}
    for text in mode.instructions.values():
        assert all(f"`{field}`" in text for field in mode.fields if field != "question"), text
        assert "$" not in text
    assert any("\u4e00" <= each <= "\u9fff" for each in mode.instructions["zh"])
    assert mode.instructions["en"].isascii()


@pytest.mark.parametrize("name", [name for name in MODES if name not in PRESETS])
def test_a_reply_of_the_form_that_a_mode_asks_for_is_read(name: str) -> None:
    mode = ModeFile.mode_named(name)
    low, high = mode.scale
    if mode.reply_schema is None:
        assert [mode.read("no").score, mode.read("yes").score] == [low, high]
        return
    for score in (low, high):
        reply = {"reasoning": "r", **dict.fromkeys(FLAGS, False), "score": score}
        reply = {key: value for key, value in reply.items() if key in mode.reply_schema["properties"]}
        jsonschema.validate(reply, dict(mode.reply_schema))
        assert mode.read(json.dumps(reply)).score == score
        for text in mode.instructions.values():
            assert all(f'"{key}"' in text for key in reply)


@pytest.mark.parametrize("name", [*MODES, "rubric"])
def test_what_a_mode_can_do_without_is_one_of_its_fields(name: str) -> None:
    assert optional_fields(name) < set(ModeFile(name).content["fields"])


def test_a_mode_is_read_once() -> None:
    assert ModeFile.mode_named("continuous") is ModeFile.mode_named("continuous")


@pytest.mark.parametrize("name", ["adversarial", "rubric", "auto", "continous"])
def test_a_name_without_instructions_is_told(name: str) -> None:
    with pytest.raises(ValueError, match=f"unknown judge mode {name}"):
        ModeFile.mode_named(name)


def test_no_prompt_is_read_before_one_is_asked_for() -> None:
    code = (
        "import sys, pytest_llmeval.evaluators.judge._agreement, pytest_llmeval.tasks.memory_qa._answers\n"
        "print({'yaml', 'pydantic', 'numpy', 'aiohttp'} & set(sys.modules))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_every_question_type_has_a_mode() -> None:
    assert set(TypedQuestion.MODES) == {each.value for each in QuestionType}
    assert set(TypedQuestion.MODES.values()) <= {*MODES, TypedQuestion.RULE}


def test_an_id_that_ends_in_abs_is_judged_as_abstention_whatever_its_type() -> None:
    assert TypedQuestion("temporal_reasoning", "gpt4_1_abs").mode() == "abstention"
    assert TypedQuestion(None, "x_abs").mode() == TypedQuestion("brand_new", "x_abs").mode() == "abstention"
    for case_id in ("abs", "x_abs_1"):
        assert TypedQuestion("temporal_reasoning", case_id).mode() == "temporal_reasoning"


@pytest.mark.parametrize(
    ("question_type", "message"),
    [
        (None, "the question type is missing, one of adversarial, "),
        ("single-hop", r"unknown question type single-hop, did you mean single_hop"),
    ],
)
def test_a_question_type_without_a_mode_is_told(question_type: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TypedQuestion(question_type, "q1").mode()

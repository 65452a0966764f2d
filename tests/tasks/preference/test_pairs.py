"""The mode that compares two answers: its instructions, and its replies."""

import hashlib
import json

import pytest

from pytest_llmeval.core import JudgeError
from pytest_llmeval.judges import ModeFile
from pytest_llmeval.tasks.preference._pairwise import PROMPTS, pairwise_mode, read_better

DIGEST = ("1", "e4a0bf62ebce")
"""Version and digest of what the file says: whoever changes it gives it a new version, and notes both here."""


def test_whoever_changes_the_mode_gives_it_a_new_version() -> None:
    told = {key: value for key, value in ModeFile("pairwise", PROMPTS).content.items() if key != "version"}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]
    assert (ModeFile("pairwise", PROMPTS).content["version"], digest) == DIGEST


def test_it_names_its_fields_in_english_and_chinese() -> None:
    mode = pairwise_mode()
    assert set(mode.instructions) == {"en", "zh"}
    for text in mode.instructions.values():
        assert all(f"`{field}`" in text for field in ("first", "second", "reference"))
        assert "$" not in text


def test_criteria_of_a_user_replace_the_general_ones_and_are_part_of_the_version() -> None:
    own = pairwise_mode("Costs ${less} $money.")
    assert all("Costs ${less} $money." in text for text in own.instructions.values())
    assert "misses it" not in own.instructions["en"]
    assert own.version.startswith("1-")
    assert len({own.version, pairwise_mode("Is kind.").version, pairwise_mode().version}) == 3


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ('{"reasoning": "r", "better": "first"}', 1.0),
        ('{"reasoning": "r", "better": "second"}', 0.0),
        ('{"better": " Tie "}', 0.5),
        ('Better: second.\n```json\n{"better": "second"}\n```', 0.0),
        ('<think>better: first?</think>{"better": "second"}', 0.0),
        ('First I looked at the second one. {"better": "first"}', 1.0),
    ],
)
def test_a_reply_names_the_first_the_second_or_a_tie(reply: str, score: float) -> None:
    assert read_better(reply).score == score


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ('{"better": "third"}', 'found "third" as better, expected first, second or tie'),
        ('{"better": true}', "found true as better"),
        ('{"score": 1}', "better is missing"),
        ("first", "found no JSON object"),
        ('{"better": "first"} or rather the second', "found text after a JSON object"),
        ('It says {"better": "second"}, so {"better": "first"}', "found two contradicting verdicts"),
        ('{"better": "first", "better": "second"}', "better"),
    ],
)
def test_anything_else_is_an_error(reply: str, why: str) -> None:
    with pytest.raises(JudgeError, match=why):
        read_better(reply)

"""Keys of judgements: what they depend on, what they do not, and how two are told apart."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from builders import messages, question, question_key
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.judges import Message, StoredJudgement
from pytest_llmeval.judges._recordings import recorded_line
from pytest_llmeval.judges._stored_judgement import components, difference, judgement_key

TEXTS = st.text(st.characters(codec=None), max_size=20)  # halves of surrogate pairs included


def made_of(
    answer: str = "Paris",
    *,
    model: str = "openai:a",
    parameters: dict[str, Any] | None = None,
    repeat: int = 0,
    language: str = "en",
    **mode: Any,
) -> dict[str, Any]:
    asked = question(answer, language=language, **mode)
    return components(asked, messages(asked), model=model, parameters=parameters or {}, repeat=repeat)


def test_a_key_is_32_hexadecimal_digits_and_the_same_in_every_process() -> None:
    key = question_key(question(), parameters={"temperature": 0, "seed": 7})
    assert re.fullmatch("[0-9a-f]{32}", key)
    assert key == "50e3604eef0146044600d97e5cc05af7"


@pytest.mark.parametrize(
    ("asked", "others"),
    [
        (question("Rome"), {}),
        (question(version="2"), {}),
        (question(name="lenient"), {}),
        (question(language="zh"), {}),
        (question(instructions={"en": "Grade harder."}), {}),
        (question(), {"model": "openai:b"}),
        (question(), {"model": "anthropic:a"}),
        (question(), {"parameters": {"temperature": 1}}),
        (question(), {"repeat": 1}),
    ],
)
def test_whatever_can_change_the_reply_changes_the_key(asked: Any, others: dict[str, Any]) -> None:
    assert question_key(asked, **others) != question_key(question())


def test_the_role_of_a_message_is_part_of_the_key() -> None:
    keys = {
        judgement_key(question(), [Message(role, "a")], model="m", parameters={}, repeat=0)
        for role in ("system", "user")
    }
    assert len(keys) == 2


def test_where_one_message_ends_is_part_of_the_key() -> None:
    keys = {
        judgement_key(question(), [Message("user", a), Message("user", b)], model="m", parameters={}, repeat=0)
        for a, b in [("a", "bc"), ("ab", "c")]
    }
    assert len(keys) == 2


def test_order_and_spelling_of_parameters_do_not_matter() -> None:
    one = question_key(question(), parameters={"temperature": 0.0, "more": {"a": [1.0], "b": 2}})
    assert one == question_key(question(), parameters={"more": {"b": 2, "a": [1]}, "temperature": 0})
    assert one != question_key(question(), parameters={"more": {"b": 2, "a": [1]}, "temperature": 0.5})
    assert question_key(question(), parameters={"n": 1}) != question_key(question(), parameters={"n": True})


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: question(version=1), "Mode: version: found 1, expected text"),
        (lambda: question(name=None), "Mode: name: found None, expected text"),
        (lambda: question(language=7), "Question: language: found 7, expected text"),
    ],
)
def test_what_could_not_be_found_again_is_refused_when_it_is_made(make: Callable[[], object], said: str) -> None:
    with pytest.raises(TypeError, match=f"^{said}$"):
        make()


def test_a_parameter_that_json_cannot_carry_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        question_key(question(), parameters={"temperature": float("nan")})


@given(TEXTS, TEXTS)
def test_any_text_has_a_key_and_other_texts_have_others(one: str, other: str) -> None:
    assert (question_key(question(one)) == question_key(question(other))) == (one == other)
    assert (made_of(one)["texts"] == made_of(other)["texts"]) == (one == other)


def test_components_show_what_people_can_read_and_digests_of_the_rest() -> None:
    found = made_of(parameters={"temperature": 0.0})
    assert {name: found[name] for name in ("mode", "version", "language", "model", "parameters", "repeat")} == {
        "mode": "strict",
        "version": "1",
        "language": "en",
        "model": "openai:a",
        "parameters": {"temperature": 0},
        "repeat": 0,
    }
    assert sorted(found["texts"]) == ["answer", "question"]
    assert all(re.fullmatch("[0-9a-f]{16}", each) for each in (found["instructions"], *found["texts"].values()))


@pytest.mark.parametrize(
    ("mine", "theirs", "said"),
    [
        ({"answer": "Rome"}, {}, "the answer"),
        ({"model": "openai:a"}, {"model": "openai:b"}, "the model (openai:a, recorded openai:b)"),
        ({"answer": "Rome"}, {"model": "openai:b"}, "the answer, the model (openai:a, recorded openai:b)"),
        ({"parameters": {"temperature": 1}}, {}, "the parameters (temperature 1, recorded none)"),
        ({"repeat": 2}, {"repeat": 1}, "the repeat (2, recorded 1)"),
        ({"version": "2"}, {}, "the version of the mode (2, recorded 1)"),
        ({"language": "zh"}, {}, "the language (zh, recorded en)"),
        ({"name": "lenient"}, {}, "the mode (lenient, recorded strict)"),
        ({"instructions": {"en": "Grade harder."}}, {}, "the instructions"),
        ({}, {"model": "a\x1b[31m"}, 'the model (openai:a, recorded "a\\u001b[31m")'),
        ({}, {}, "the format of the prompt"),
    ],
)
def test_a_difference_names_what_differs(mine: dict[str, Any], theirs: dict[str, Any], said: str) -> None:
    assert difference(made_of(**mine), made_of(**theirs)) == said


def test_a_text_that_only_one_has_is_a_difference() -> None:
    mine, theirs = made_of(), made_of()
    del theirs["texts"]["answer"]
    assert difference(mine, theirs) == difference(theirs, mine) == "the answer"


GOLDEN = (
    '{"case": "paris", "mode": "strict", "model": "openai:a", "score": 1, "reply": "half \\ud800 東京", "repeat": 0, '
    '"version": "1", "language": "en", "parameters": {"temperature": 0, "more": {"b": [1.5]}}, "input_tokens": null, '
    '"output_tokens": 4, "seconds": 0, "cost_usd": 1e-06, "key": "50e3604eef0146044600d97e5cc05af7", '
    '"instructions": "0123456789abcdef", "texts": {"answer": "00", "question": "11"}}\n'
)


def test_a_committed_line_is_written_as_it_was_read() -> None:
    assert recorded_line(StoredJudgement.from_json(json.loads(GOLDEN))) == GOLDEN

"""What reports keep of answers: each different one of the repeats, cut, in its form."""

from typing import Any

from pytest_llmeval.core import AnswerShown, CaseOutcome, CaseRecord
from pytest_llmeval.run._execute import different_answers, repeated_answers
from pytest_llmeval.run._run_record import shown_value
from pytest_llmeval.services import Secrets

SECRET = "s3cret-0123456789"


def answered(value: Any, outcome: CaseOutcome = "passed", line: str = "") -> CaseRecord:
    return CaseRecord("c", outcome=outcome, answers=[AnswerShown(value)], lines={"text": [line]} if line else {})


def test_each_different_answer_is_kept_with_how_often_it_came_and_passed() -> None:
    records = [
        answered("yes"),
        answered("no", "failed", "it is no"),
        answered("no", "failed", "again"),
        answered("yes"),
    ]
    lines, answers = repeated_answers([*records, answered("yes", "failed", "a judge erred")])
    assert answers == [AnswerShown("no", 2, 0), AnswerShown("yes", 3, 2)]
    assert [each.failed for each in answers] == [2, 1]
    assert lines == {"text": ["it is no"]}


def test_where_no_repeat_fails_the_most_frequent_answer_is_first() -> None:
    lines, answers = repeated_answers([answered("a"), answered("b", line="of b"), answered("b")])
    assert answers == [AnswerShown("b", 2, 2), AnswerShown("a", 1, 1)]
    assert lines == {"text": ["of b"]}


def test_repeats_without_an_answer_have_none() -> None:
    assert repeated_answers([CaseRecord("c", outcome="errored")]) == ({}, [])


def test_approved_answers_are_counted() -> None:
    assert different_answers(["a", {"x": 1}, {"x": 1}]) == [AnswerShown({"x": 1}, 2), AnswerShown("a")]


def test_a_long_conversation_keeps_its_turns_and_loses_the_ends_of_texts() -> None:
    messages = [{"role": role, "content": "word " * 400} for role in ("user", "assistant") * 10]
    kept = shown_value({"answer": "final " * 100, "messages": messages}, Secrets())
    assert [each["role"] for each in kept["messages"]] == ["user", "assistant"] * 10
    assert kept["messages"][0]["content"].endswith("more characters)")
    assert kept["answer"] == "final " * 100
    assert len(repr(kept)) < 17_000


def test_data_that_cannot_be_cut_to_size_become_text() -> None:
    kept = shown_value({"numbers": list(range(5_000))}, Secrets())
    assert isinstance(kept, str)
    assert kept.endswith("more characters)")


def test_data_keep_their_form_where_secrets_are_masked() -> None:
    kept = shown_value({"messages": [{"role": "user", "content": f"key {SECRET}"}]}, Secrets(frozenset([SECRET])))
    assert kept == {"messages": [{"role": "user", "content": "key ***"}]}


def test_a_number_that_is_a_secret_is_masked_as_well() -> None:
    kept = shown_value({"pin": 123456789}, Secrets(frozenset(["123456789"])))
    assert "123456789" not in str(kept)

import json
from typing import Any

import pytest
from msgspec import structs

from pytest_llmeval import MISSING
from pytest_llmeval.data import Taxonomy
from pytest_llmeval.tasks import _replies as replies
from pytest_llmeval.tasks._replies import ReplyData, read_reply
from pytest_llmeval.tasks.fact_check._target import (
    NOT_ENOUGH,
    VERDICTS,
    Answer,
    Claim,
    claim_faults,
    rank_answer,
    read_answer,
    read_claim,
    read_verdict,
    verdict_fault,
)

OBJECT = {"verdict": "Refuted", "justification": "It says so.", "confidence": "High"}
TEXT = json.dumps(OBJECT)
OTHER = json.dumps({"verdict": "Supported", "justification": "{ }"})


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        f"  {TEXT}\n",
        f"\ufeff{TEXT}",
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```",
        f"Here is my answer:\n{TEXT}\nI hope it helps.",
        f"As {{asked}}, {{}} and {{'verdict': 'Supported'}}: {TEXT}",
        f"First I thought {OTHER}. Now: {TEXT}",
        f'{TEXT} and {{"justification": "no verdict here"}}',
        f'{{"a": 1}} {TEXT} {{"b": {{"verdict": "inside"}}}}',
        f'The form is {{"verdict": "Supported" | "Refuted"}}. {TEXT}',
        f'{{"verdict": "Supported", "justification": "no,\n\n{TEXT}',
        OBJECT,
        [OBJECT],
        f"[{TEXT}]",
        f"```json\n[{TEXT}]\n```",
        f"The list is [{TEXT}].",
    ],
)
def test_the_object_in_a_reply_is_read(reply: Any) -> None:
    read = read_answer(reply)
    assert structs.replace(read, note="") == Answer("Refuted", "It says so.", "High")
    assert read.note in ("", "2 answers, of which the last counts")


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I cannot say.",
        "{'verdict': 'Refuted'}",
        '{"verdict": "Refuted"',
        '{"verdict": "Refuted",,}',
        '{,"verdict": "Refuted"}',
        '{"verdict": "Refuted", "others": [,]}',
        '{"verdict": "Refu\nted"}',
        "verdict: Refuted",
        f"[{TEXT}, {OTHER}]",
        json.dumps(TEXT),
        'Prose with {"another": "object"}',
        f"```json\n[{TEXT}, {OTHER}]\n```",
        f"[[{TEXT}]]",
        "[]",
        "{}",
        '{"answer": "Refuted"}',
        f"Two answers: [{TEXT}, {OTHER}]",
        f'{{"draft": {OTHER}, "verdict": "Refuted", "justification": "cut o',
        f'{{"verdict": "Refuted", "others": [{OTHER}],, }}',
        f'{{"n": {"9" * 5000}, "draft": {OTHER}}}',
        f'{{"n": {"[" * 100_000}, "draft": {OTHER}}}',
        "3",
        "null",
    ],
)
def test_what_is_no_object_is_not_guessed_at(reply: str) -> None:
    read = read_answer(reply)
    assert (read.verdict, read.justification, read.unparsed) == (NOT_ENOUGH, reply, True)
    assert read.confidence == "Low"
    assert read.faults[0].endswith("expected a JSON object with verdict and justification")


@pytest.mark.parametrize(
    "reply",
    [
        '{"verdict": "Refuted", "justification": "a,} b",}',
        '{"verdict": "Refuted", "justification": "a,} b", "evidence_sources": [{"url": "u"}, ] ,\n}',
        '```json\n{"verdict": "Refuted", "justification": "a,} b",}\n```',
        f'5" wide: {OTHER}. No: {{"verdict": "Refuted", "justification": "a,}} b",}} {{"a": 1}}',
        '{"draft": [1,],} {"verdict": "Refuted", "justification": "a,} b",}',
    ],
)
def test_a_trailing_comma_is_passed_over_with_a_note(reply: str) -> None:
    read = read_answer(reply)
    assert (read.verdict, read.justification, read.unparsed, read.faults) == ("Refuted", "a,} b", False, ())
    assert read.note.partition(";")[0] == "a comma behind the last entry was ignored"
    assert read_answer(TEXT).note == ""


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "null"),
        (3, "number 3"),
        ([OBJECT, OBJECT], "a list"),
        (MISSING, "nothing"),
        ({}, "an object with no key"),
        ({"foo": 1, "bar": 2}, "an object with foo, bar"),
    ],
)
def test_a_prediction_that_is_neither_text_nor_object_says_nothing(value: Any, found: str) -> None:
    read = read_answer(value)
    assert (read.verdict, read.justification, read.unparsed) == (NOT_ENOUGH, "", True)
    assert read.faults == (f"found {found}, expected a JSON object with verdict and justification",)


def test_what_an_answer_leaves_out_has_a_default() -> None:
    assert read_answer({"justification": None}) == Answer(NOT_ENOUGH, "", "Unknown", ())
    assert read_answer({"reasoning": "Why."}).justification == "Why."
    assert read_answer({"reasoning": "Why.", "justification": " "}).justification == "Why."
    assert read_answer({"reasoning": "Why.", "justification": "Because."}).justification == "Because."


def test_what_has_a_wrong_form_is_told_and_counts_as_absent() -> None:
    read = read_answer(
        {"verdict": None, "justification": ["a"], "confidence": 3, "evidence_sources": ["A", {"url": "u"}, 3]}
    )
    assert (read.verdict, read.justification, read.confidence) == (None, "", "3")
    assert read.sources == ("A", {"url": "u"}, 3)
    assert read.faults == (
        "verdict: found null, expected text",
        "justification: found a list, expected text",
        "evidence_sources[2]: found number 3, expected text or an object with content and url",
    )
    assert read_answer({"verdict": "Refuted", "evidence_sources": "A"}).faults == (
        "evidence_sources: found text 'A', expected a list",
    )


HOSTILE = [
    "{",
    "}",
    "[",
    '{"',
    '{"a":',
    '{"a":[',
    '{"a":1,',
    '{"a": "',
    "{}",
    '{ "',
    "{ ",
    '"',
    "\\",
    '{"verdict":{',
    "9",
    '{"a":x',
    '{"\\"":',
    '{"":{},',
    "[{",
    '[{"a":',
    '{"a":1,}',
    '{"a":[1,],x',
    '{"a":1,}"',
    "{ \n",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_the_search_for_an_object_takes_a_bounded_effort(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (piece * 100_000)[:100_000]
    attempts: list[int] = []
    decoder = json.JSONDecoder()

    class Counting:
        def raw_decode(self, text: str, start: int) -> Any:
            attempts.append(start)
            found = decoder.raw_decode(text, start)
            attempts.pop()
            return found

    monkeypatch.setattr(replies.json, "JSONDecoder", Counting)
    assert read_reply(f"prose {text}", rank_answer) == ReplyData()
    assert len(attempts) <= 256


def test_an_object_behind_much_that_is_none_is_found() -> None:
    prose = "As {said}, {'a': 1} and {\"b: " * 20
    assert read_reply(prose + TEXT, rank_answer) == ReplyData(OBJECT)


def test_labels_are_those_of_the_taxonomy() -> None:
    assert tuple(row["label"] for row in Taxonomy("verdicts").load()["verdicts"]) == VERDICTS


def test_no_name_of_a_verdict_belongs_to_two() -> None:
    rows = Taxonomy("verdicts").load()["verdicts"]
    names = [name.casefold() for row in rows for name in (row["label"], row["zh"], *row["aliases"])]
    assert len(names) == len(set(names))
    assert all(row["description"] for row in rows)


@pytest.mark.parametrize(
    ("value", "strict", "loose"),
    [
        ("Supported", "Supported", "Supported"),
        ("Not Enough Evidence", NOT_ENOUGH, NOT_ENOUGH),
        ("supported", None, "Supported"),
        ("Refuted.", None, "Refuted"),
        (" REFUTES ", None, "Refuted"),
        ("**False**", None, "Refuted"),
        ("NOT_ENOUGH_INFO", None, NOT_ENOUGH),
        ("not-enough  evidence", None, NOT_ENOUGH),
        ("ＴＲＵＥ", None, "Supported"),
        ("证据不足。", None, NOT_ENOUGH),
        ("「不属实」", None, "Refuted"),
        ("支持", None, "Supported"),
        ("Mostly True", None, None),
        ("not supported", None, None),
        ("", None, None),
        (None, None, None),
        (True, None, None),
        ("Supported" + " " * 200, None, None),
    ],
)
def test_verdicts_are_read_letter_by_letter_or_by_other_names(
    value: Any, strict: str | None, loose: str | None
) -> None:
    assert read_verdict(value) == strict
    assert read_verdict(value, strict=False) == loose


def test_a_wrong_gold_verdict_is_told_with_what_was_meant() -> None:
    labels = "expected one of Supported, Refuted, Not Enough Evidence"
    assert verdict_fault("Supported") is None
    assert verdict_fault("supported") == f"found text 'supported', {labels} (did you mean 'Supported'?)"
    assert verdict_fault("NEI") == (
        f"found text 'NEI', {labels} (did you mean 'Not Enough Evidence'? `verdict_labels: synonyms` accepts both)"
    )
    assert verdict_fault("NEI", strict=False) is None
    assert verdict_fault(3) == f"found number 3, {labels}"


def test_ground_truth_is_read_with_what_it_leaves_out() -> None:
    assert read_claim(None, "C", strict=True) == Claim("C")
    assert read_claim({"claim": "C", "verdict": "Refuted"}, None, strict=True) == Claim("C", "Refuted")
    full = {"verdict": "NEI", "justification": "J", "evidence_sources": []}
    assert read_claim(full, {"claim": "C"}, strict=False) == Claim("C", NOT_ENOUGH, "J", ())


def test_faults_of_ground_truth_are_all_told() -> None:
    assert list(claim_faults(None, strict=True)) == []
    assert list(claim_faults({}, strict=True)) == []
    assert list(claim_faults("Refuted", strict=True)) == [
        "found text 'Refuted', expected an object with verdict, justification and evidence_sources"
    ]
    wrong = {"verdict": 1, "claim": 2, "justification": [], "evidence_sources": [3, {"content": 4, "url": None}, "A"]}
    assert list(claim_faults(wrong, strict=True)) == [
        "verdict: found number 1, expected one of Supported, Refuted, Not Enough Evidence",
        "claim: found number 2, expected text",
        "justification: found a list, expected text",
        "evidence_sources[0]: found number 3, expected text or an object with content and url",
        "evidence_sources[1].content: found number 4, expected text",
    ]
    assert list(claim_faults({"evidence_sources": {}}, strict=True)) == [
        "evidence_sources: found an object, expected a list"
    ]

"""Forms of replies: what a user's fields mean, and which replies they refuse."""

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its types are a distribution of their own
import pytest

from pytest_llmeval.core import JudgeError
from pytest_llmeval.judges import ReplyField, ReplyForm

GRADE = ReplyField(min=1, max=5, integer=True)
FORM = ReplyForm({"reason": "text", "score": GRADE, "clear": "boolean", "note": "text"})
GOOD = {"reason": " Short. ", "score": 4, "clear": True, "note": ""}


def test_the_score_the_reason_and_the_other_values_are_read() -> None:
    verdict = FORM.read(f"Well. {json.dumps(GOOD)}")
    assert (verdict.score, verdict.reasoning) == (4.0, "Short.")
    assert verdict.details == {"reply": {"clear": True}, "grades": {"clear": 1.0}}
    assert FORM.read(json.dumps({**GOOD, "note": "x"})).details["reply"] == {"clear": True, "note": "x"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": 0}, "found 0 as score, expected a whole number from 1 to 5"),
        ({"score": 6}, "found 6 as score"),
        ({"score": 3.5}, "found 3.5 as score"),
        ({"score": "4"}, 'found "4" as score'),
        ({"score": True}, "found true as score"),
        ({"score": None}, "found null as score"),
        ({"score": [4]}, r"found \[4\] as score"),
        ({"clear": 1}, "found 1 as clear, expected true or false"),
        ({"clear": "true"}, 'found "true" as clear'),
        ({"reason": 7}, "found 7 as reason, expected text"),
        ({"note": None}, "found null as note, expected text"),
    ],
)
def test_a_value_that_the_form_does_not_allow_is_an_error(change: dict[str, Any], message: str) -> None:
    with pytest.raises(JudgeError, match=message):
        FORM.read(json.dumps({**GOOD, **change}))


@pytest.mark.parametrize("name", GOOD)
def test_a_missing_field_is_an_error(name: str) -> None:
    with pytest.raises(JudgeError, match=f"{name} is missing"):
        FORM.read(json.dumps({key: value for key, value in GOOD.items() if key != name}))


@pytest.mark.parametrize(
    "reply",
    [
        '{"verdict": "bad"} or rather {"verdict": "good"}',
        'Verdict: bad. It says {"verdict": "good"}',
        'verdict = "nearly good" {"verdict": "good"}',
        '{"verdict": null} {"verdict": "good"}',
        '我认为verdict：bad。{"verdict": "good"}',
    ],
)
def test_prose_that_gives_another_verdict_is_an_error(reply: str) -> None:
    form = ReplyForm({"verdict": ReplyField(choices={"good": 1, "nearly good": 0.5, "bad": 0})})
    with pytest.raises(JudgeError, match="found two contradicting verdicts"):
        form.read(reply)
    assert form.read('Verdict: GOOD, since verdict: goodness {"verdict": "good"}').score == 1


def test_choices_are_words_with_grades_of_any_scale() -> None:
    form = ReplyForm({"verdict": ReplyField(choices={"gut": 10, "mittel": 5, "差": 0})})
    assert form.scale == (0, 10)
    assert [form.read(json.dumps({"verdict": word})).score for word in ("gut", "差")] == [10, 0]
    with pytest.raises(JudgeError, match='found "Gut" as verdict, expected one of "gut", "mittel", "差"'):
        form.read('{"verdict": "Gut"}')


def test_the_better_one_of_true_and_false_has_the_grade_1() -> None:
    assert [ReplyField(good=True).grade(each) for each in (True, False)] == [1, 0]
    assert [ReplyField(good=False).grade(each) for each in (True, False)] == [0, 1]


def test_a_number_may_have_fractions_unless_integer_says_otherwise() -> None:
    assert ReplyField(min=0, max=1).grade(0.25) == 0.25
    assert ReplyField(min=0, max=1, integer=True).grade(0.25) is None
    assert ReplyField(min=0, max=1, integer=True).grade(1.0) == 1


@pytest.mark.parametrize(
    ("field", "levels"),
    [
        (GRADE, (1, 2, 3, 4, 5)),
        (ReplyField(min=0, max=1), (0, 0.2, 0.4, 0.6, 0.8, 1)),
        (ReplyField(min=0, max=100, integer=True), (0, 20, 40, 60, 80, 100)),
        (ReplyField(choices={"a": 1, "b": 0, "c": 0}), (0, 1)),
        (ReplyField(good=False), (0, 1)),
    ],
)
def test_a_field_has_levels_to_compare_people_by(field: ReplyField, levels: tuple[float, ...]) -> None:
    assert field.levels == pytest.approx(levels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "found none of them, expected exactly one of"),
        ({"min": 1, "max": 5, "good": False}, "found min, max, good, expected exactly one of"),
        ({"integer": True, "choices": {"a": 1, "b": 0}}, "found integer, choices, expected exactly one of"),
        ({"min": 1}, "found min 1 and max nothing"),
        ({"min": 5, "max": 5}, "found min 5 and max 5, expected min < max"),
        ({"min": 0, "max": float("inf")}, "expected min < max"),
        ({"min": 0.5, "max": 5, "integer": True}, "expected whole numbers"),
        ({"choices": {"a": 1, "b": 1}}, "expected at least two different numbers"),
        ({"choices": {"a ": 1, "b": 0}}, "expected words"),
    ],
)
def test_a_field_that_cannot_grade_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ReplyField(**options)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({}, "a graded field is missing"),
        ({"reason": "text"}, "a graded field is missing"),
        ({"a": "boolean", "b": "boolean"}, "found the graded fields a, b, expected one of them to be called score"),
        ({"My score": "boolean"}, "expected a name of small Latin letters"),
    ],
)
def test_a_form_without_a_score_is_refused(entries: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ReplyForm(entries)


def test_a_reply_follows_the_schema_and_the_instructions_of_its_form() -> None:
    jsonschema.validate(GOOD, FORM.schema)
    assert FORM.instructions("en").splitlines()[1:] == [
        '- "reason": text',
        '- "score": a whole number from 1 to 5',
        '- "clear": true or false',
        '- "note": text',
    ]
    assert '- "score"：1 到 5 的整数' in FORM.instructions("zh")


def test_the_digest_of_a_form_depends_on_the_grades() -> None:
    good, bad = (ReplyForm({"score": ReplyField(good=each)}) for each in (True, False))
    assert good.digest != bad.digest
    assert good.digest == ReplyForm({"score": ReplyField(good=True)}).digest

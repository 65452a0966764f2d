"""What a failing case shows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import MISSING, AnswerShown, Case, CaseRecord, width_of
from pytest_llmeval.reports import explain
from pytest_llmeval.reports._failures import marked_difference


@pytest.mark.parametrize(
    ("expected", "prediction", "marked"),
    [
        ("Paris", "Paris", "Paris"),
        ("Paris", "It is Paris.", "{+It is +}Paris{+.+}"),
        ("It is Paris", "Paris", "[-It is -]Paris"),
        ("in May 2022", "in June 2022", "in [-May-]{+June+} 2022"),
        ("", "Paris", "{+Paris+}"),
        ("Paris", "", "[-Paris-]"),
        ("東京都に住む", "京都に住む", "[-東-]京都に住む"),
        ("他住在北京", "他住在南京", "他住在[-北-]{+南+}京"),
        ("서울", "부산", "[-서울-]{+부산+}"),
    ],
)
def test_what_differs_is_marked_by_word_and_in_east_asian_text_by_character(
    expected: str, prediction: str, marked: str
) -> None:
    assert marked_difference(expected, prediction) == marked


@given(st.text(alphabet="ab 京都,", max_size=12), st.text(alphabet="ab 京都,", max_size=12))
def test_both_texts_can_be_read_back_from_the_marks(expected: str, prediction: str) -> None:
    parts = marked_difference(expected, prediction).replace("[-", "\0-").replace("-]", "\0")
    parts = parts.replace("{+", "\0+").replace("+}", "\0")
    pieces = parts.split("\0")
    assert "".join(each[1:] if each[:1] == "+" else each for each in pieces if each[:1] != "-") == prediction
    assert "".join(each[1:] if each[:1] == "-" else each for each in pieces if each[:1] != "+") == expected


def explained(expected: Any, prediction: Any, *, reason: str | None = "f1 0.2500, limit >= 0.5") -> str:
    record = CaseRecord("x", outcome="failed", reason=reason)
    return explain(Case("x", expected=expected, prediction=prediction), record)


def test_reason_answer_and_difference_are_shown() -> None:
    assert explained("It is Paris.", "It is Lyon.") == (
        "f1 0.2500, limit >= 0.5\n"
        "expected:   It is Paris.\n"
        "prediction: It is Lyon.\n"
        "difference: It is [-Paris-]{+Lyon+}."
    )


def test_texts_that_are_not_alike_have_no_difference() -> None:
    assert "difference" not in explained("Paris", "It is Lyon.")


def test_of_several_references_the_nearest_is_compared() -> None:
    assert explained(["Lyon", "in Paris", 3], "in Paris.").endswith("difference: in Paris{+.+}")


def test_the_answer_of_an_expected_object_is_compared() -> None:
    text = explained({"answer": "in Paris", "contexts": ["d1"]}, "in Paris.")
    assert text.endswith("difference: in Paris{+.+}")


def test_an_answer_as_expected_has_no_difference() -> None:
    text = explained(["Lyon", "Paris"], "Paris", reason="judge: no verdict")
    assert text.endswith('expected:   ["Lyon", "Paris"]\nprediction: Paris')


def test_a_case_without_prediction_shows_its_reason_only() -> None:
    assert explained("Paris", MISSING, reason="no target") == "no target"
    assert explained("Paris", MISSING, reason=None) == "failed"


@pytest.mark.parametrize(("expected", "prediction"), [({"a": 1}, "x"), ("x", ["x"]), ([], "x"), ([3], "x")])
def test_data_are_shown_as_json_without_difference(expected: Any, prediction: Any) -> None:
    text = explained(expected, prediction)
    assert "difference" not in text
    assert text.count("\n") == 2


def test_data_are_shown_as_json_with_their_own_characters() -> None:
    assert 'expected:   {"城市": [null, true]}' in explained({"城市": [None, True]}, "x")


def test_control_characters_are_escaped_everywhere() -> None:
    hostile = "red \x1b[31m, bell \x07, line\nbreak, right-to-left \u202e, null \0"
    record = CaseRecord("x", outcome="failed", reason="f1 0.2500, limit >= 0.5")
    text = explain(Case("x", expected="red", prediction=hostile), record, width=200)
    shown = "red \\x1b[31m, bell \\x07, line\\nbreak, right-to-left \\u202e, null \\x00"
    assert f"prediction: {shown}" in text
    assert all(character.isprintable() or character == "\n" for character in text)
    assert text.count("\n") == 2


@pytest.mark.parametrize(("width", "kept"), [(80, 204), (140, 384)])
def test_long_text_is_cut_to_what_fits_with_the_count_of_the_rest(width: int, kept: int) -> None:
    record = CaseRecord("x", outcome="failed", reason="low")
    text = explain(Case("x", expected="x", prediction="y" * 5_000), record, width=width)
    assert text.count("y") == kept
    assert f"... ({5_000 - kept} more characters)" in text
    assert max(map(len, text.splitlines())) <= width
    assert "difference" not in text


def test_file_line_case_and_system_are_named() -> None:
    record = CaseRecord("x", outcome="failed", reason="low")
    text = explain(Case("x", line=7), record, "evals/a.eval.yaml", "large")
    assert text == "low\nevals/a.eval.yaml:7: case x [large]"


def test_failing_answers_of_repeats_are_shown_with_how_often_each_came() -> None:
    answers = [AnswerShown("Lyon", 2), AnswerShown("Nice")]
    record = CaseRecord("x", outcome="failed", reason="low", repeats={"times": 5}, answers=answers)
    lines = explain(Case("x", expected="Paris", prediction="Paris"), record).splitlines()
    assert lines[2:] == ["prediction: Lyon (2 of 5 repeats)", "prediction: Nice (1 of 5 repeats)"]


def test_what_evaluators_found_wrong_is_shown_a_line_each() -> None:
    wrong = ["total: found 3, expected 4", "note: extra, found \x1b[31m"]
    record = CaseRecord("a", outcome="failed", reason="low", lines={"fields": wrong})
    lines = explain(Case("a"), record).splitlines()
    assert lines == ["low", "fields: total: found 3, expected 4", "fields: note: extra, found \\x1b[31m"]


def test_wide_characters_are_wrapped_and_cut_by_the_columns_that_they_take() -> None:
    shown = explained("京" * 400, "都" * 30 + " it is " + "都" * 30).splitlines()
    assert max(map(width_of, shown)) <= 80
    expected = shown[1 : next(place for place, line in enumerate(shown) if line.startswith("prediction"))]
    assert len(expected) <= 4
    assert expected[-1].endswith(" more characters)")
    assert "".join(line.strip() for line in shown).count("都") == 60


def test_an_answer_with_parts_is_shown_first_with_its_passages_by_number() -> None:
    prediction = {
        "answer": "30 days [2]",
        "contexts": ["Shipping is free.", "Refunds take\n30 days.", *"cdef"],
        "usage": {},
    }
    case = Case("a", input="How long?", expected="60 days", prediction=prediction)
    text = explain(case, CaseRecord("a", outcome="failed", reason="f1: 0"))
    assert text.splitlines() == [
        "f1: 0",
        "input:      How long?",
        "expected:   60 days",
        "answer:     30 days [2]",
        "  [1] Shipping is free.",
        "  [2] Refunds take 30 days.",
        "  [3] c",
        "  [4] d",
        "  [5] e",
        "  ... and 1 more passage",
        "difference: [-60-]{+30+} days{+ [2]+}",
    ]


def test_an_object_without_an_answer_is_shown_as_it_is() -> None:
    case = Case("a", prediction={"total": 3, "contexts": [7]})
    assert 'prediction: {"total": 3, "contexts": [7]}' in explain(case, CaseRecord("a", reason="x"))

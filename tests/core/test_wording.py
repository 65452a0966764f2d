"""How numbers and foreign text are written for people."""

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import counted, interval, limit, number, printable, seconds
from pytest_llmeval.core.wording import all_visible, is_visible


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "n/a"),
        (0.0, "0.0000"),
        (-0.0, "0.0000"),
        (-0.00004, "0.0000"),
        (-0.00006, "-0.0001"),
        (2 / 3, "0.6667"),
        (1, "1.0000"),
        (-0.5, "-0.5000"),
        (999.99, "999.9900"),
        (1000.0, "1000.0"),
        (-1234.56, "-1234.6"),
        (1234567.0, "1234567.0"),
    ],
)
def test_scores_have_four_decimals_and_large_numbers_one(value: float | None, text: str) -> None:
    assert number(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_number_is_written_as_negative_zero(value: float) -> None:
    text = number(value)
    assert not text.startswith("-") or float(text) < 0


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        (0.99999999, 1, "0.99999999"),
        (0.7, 0.8, "0.7000"),
        (1, 1, "1.0000"),
        (1 / 3, 0.3333, "0.33333"),
        (0.1 + 0.2, 0.3, "0.3000"),
        (1234.5678, 1234.6, "1234.56780"),
        (None, 1, "n/a"),
        (0.5, None, "0.5000"),
    ],
)
def test_a_score_next_to_its_limit_shows_on_which_side_it_is(
    value: float | None, limit: float | None, text: str
) -> None:
    assert number(value, limit) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(0.5, 0.75, "0.5000..0.7500"), (None, None, "n/a"), (0.5, None, "n/a"), (-0.1, -0.0, "-0.1000..0.0000")],
)
def test_an_interval_needs_both_ends(low: float | None, high: float | None, text: str) -> None:
    assert interval(low, high) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.7, "0.7"), (1.0, "1"), (20, "20"), (1e-7, "1e-07"), (0.1 + 0.2, "0.3"), (-0.5, "-0.5")]
)
def test_a_limit_is_written_as_typed(value: float, text: str) -> None:
    assert limit(value) == text


def test_things_are_counted_in_words() -> None:
    assert [counted(count, "case") for count in (0, 1, 2)] == ["0 cases", "1 case", "2 cases"]


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0 ms"), (0.0041, "4 ms"), (0.5, "500 ms"), (1.0, "1.0 s"), (754.26, "754.3 s")]
)
def test_durations_are_milliseconds_or_seconds(value: float, text: str) -> None:
    assert seconds(value) == text


INVISIBLE = "\u200b\u200c\u200d\u200e\u2060\u00ad\U000e0041\u3164\u2028\ufeff\u115f\ufe0f\u2800"
OBEYED = "\u202e\u2066\u061c\u009b\x1b\x7f\x00\r"


@pytest.mark.parametrize("character", [*INVISIBLE, *OBEYED, "\ud800", "\ue000", "\U0010ffff", "\U000e0100"])
def test_what_people_do_not_see_or_terminals_obey_is_written_as_an_escape(character: str) -> None:
    shown = printable(f"a{character}b")
    assert re.fullmatch(r"a\\(r|x..|u....|U........)b", shown)
    assert shown.encode("ascii").decode("unicode_escape") == f"a{character}b"
    assert printable(shown) == shown


@pytest.mark.parametrize("text", ["", "plain \\ text", "東京 é 👍", "a\u0301", "עברית", "हिन्दी"])
def test_what_people_see_stays(text: str) -> None:
    assert printable(text) == text


def test_texts_are_escaped_character_by_character() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    assert printable(every) == "".join(map(printable, every))
    assert [character for character in every if all_visible(character) != is_visible(character)] == []


@pytest.mark.parametrize(
    "text", ["plain text", "今天天气很好，我们去公园散步。", "これはテスト", "안녕하세요", "où, größer", "Привет"]
)
@pytest.mark.parametrize("lines", [False, True])
def test_usual_texts_are_read_as_a_whole(text: str, lines: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("pytest_llmeval.core.wording.is_visible")
    monkeypatch.delattr("pytest_llmeval.core.wording._ANY_BLANK")
    shown = f"{text}\n{text}" if lines else text
    assert printable(shown, lines=lines) == shown


def test_whole_categories_are_escaped() -> None:
    hidden = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    every = "".join(chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in hidden)
    assert printable(every).isascii()


def test_of_lines_only_breaks_and_tabs_stay() -> None:
    assert printable("one\n\ttwo\r\n\x1b", lines=True) == "one\n\ttwo\\r\n\\x1b"

"""Checks of contents: numbers, languages, refusals, quotations, personal data, figures."""

from typing import Any

import pytest
from examples import met, observed, unmet

from pytest_llmeval.core import Case
from pytest_llmeval.core._case import PredictionParts
from pytest_llmeval.evaluators import Checks
from pytest_llmeval.evaluators.checks._contents import Number, numbers_in


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It is 42.", [42]),
        ("$1,234.50", [1234.5]),
        ("-7 or \u22127.5", [-7, -7.5]),
        ("共42个", [42]),
        ("3.5万，2亿", [35_000, 200_000_000]),
        ("\uff11\uff12", [12]),
        ("1e-3", [0.001]),
        ("GPT-4, COVID-19, v2", []),
        ("version 1.2.3 of 24.12.2025", []),
        ("1,5", [1, 5]),
        ("3-5 days", [3, 5]),
        (".5 and 10kg", [0.5, 10]),
        ("10³ metres, 10⁻² and 10¹", [1000, 0.01, 10]),
        ("The answer is 42¹", [42]),
        ("6.02×10²³ or 6.02 x 10^23", [6.02e23, 6.02e23]),
        ("50 m² and 20 km²", [50, 20]),
        ("2½, 2 ¾ and ⅓", [2.5, 2.75, 1 / 3]),
        ("$1.2 million, 1.2-million, 1.2 Millionen and $1.2M", [1.2e6] * 4),
        ("3 billion, 3 bn and 3 thousand; 10k", [3e9, 3e9, 3000, 10_000]),
        ("1.2千万, 3百万, 2萬億, 5千克", [1.2e7, 3e6, 2e12, 5]),
        ("5 M and 5 mm, 300 millilitres", [5, 5, 300]),
        ("1.250,50 and 12.345.678,9", [1250.5, 12_345_678.9]),
        ("12\u00a0500, 12\u202f500,5 and 12'500", [12_500, 12_500.5, 12_500]),
        ("3\u00a04 and 12 500", [3, 4, 12, 500]),
        ("none", []),
    ],
)
def test_numbers_are_read_as_people_write_them(text: str, numbers: list[float]) -> None:
    assert [value for _, value in numbers_in(text)] == pytest.approx(numbers)


@pytest.mark.parametrize(
    ("entry", "answer", "expected"),
    [
        ({"number": 42}, "It is 42.", True),
        ({"number": 42}, "It is 43.", False),
        ({"number": 42}, 42, True),
        ({"number": 42}, "42 is 42", True),
        ({"number": 42}, "42 or 43", False),
        ({"number": 42}, "none", False),
        ({"number": {"equals": 0.3, "tolerance": 0.1}}, "0.4", True),
        ({"number": {"equals": 0.3, "tolerance": 0.1}}, "0.41", False),
        ({"number": {"min": 1, "max": 3}}, "about 3 days", True),
        ({"number": {"min": 1, "max": 3}}, "about 0.5 days", False),
        ({"not_number": 42}, "41", True),
        ({"language": "en"}, "You can return it within thirty days.", True),
        ({"language": "zh-CN"}, "订单可以在三十天内退货。", True),
        ({"language": ["de", "fr"]}, "Le colis arrive demain matin.", True),
        ({"language": "de"}, "You can return it within thirty days.", False),
        ("refusal", "I\u2019m sorry, but I can\u2019t  help with that.", True),
        ("refusal", "很抱歉，我不能回答这个问题。", True),
        ("refusal", "作为AI，我没有感情。", True),
        ("refusal", "Refunds take thirty days.", False),
        ("not_refusal", "As an aid, use the table.", True),
        ({"refusal": True}, "I cannot help.", True),
        ("refusal", " \n", True),
        ("refusal", None, True),
        ("pii", "Write to ann.lee@example.com", True),
        ("pii", "Write to us", False),
        ({"pii": "credit_card"}, "4111 1111 1111 1111", True),
        ({"pii": "credit_card"}, "4111 1111 1111 1112", False),
        ({"pii": "iban"}, "GB82 WEST 1234 5698 7654 32", True),
        ({"pii": "iban"}, "GB83 WEST 1234 5698 7654 32", False),
        ({"pii": "cn_id"}, "身份证11010519491231002X", True),
        ({"pii": "cn_id"}, "身份证110105194912310021", False),
        ({"pii": ["cn_mobile"]}, "电话：13812345678。", True),
        ({"pii": "phone"}, "call +44 20 7946 0958", True),
        ({"pii": "phone"}, "call (555) 010-9999", True),
        ({"pii": "us_ssn"}, "123-45-6789", True),
        ({"pii": "us_ssn"}, "000-45-6789", False),
        ({"pii": "ip_address"}, "at 192.168.0.1.", True),
        ({"pii": "ip_address"}, "version 1.2.3.400", False),
        ({"not_pii": ["email"]}, "call 13812345678", True),
    ],
)
def test_a_check_of_contents_holds_as_defined(entry: Any, answer: Any, expected: bool) -> None:
    assert met(entry, answer) is expected


def test_a_number_among_others_is_not_guessed() -> None:
    assert unmet({"number": 1.2}, "$1.2 million").startswith("found the number 1200000 ('$1.2 million'), expected")
    assert unmet({"number": 3}, "3 of 4").startswith("found the numbers 3, 4 in '3 of 4', expected number: 3")


def test_a_number_that_may_be_a_power_or_have_a_footnote_is_not_read() -> None:
    for answer in ("It is 5².", "42²³ in all"):
        seen = observed({"number": 5}, answer)
        assert "may be a power or have a footnote" in str(
            seen.malformed or seen.errored or unmet({"number": 5}, answer)
        )
        assert not met({"number": 5}, answer)


@pytest.mark.parametrize("answer", ["10⁹⁹⁹", "1e400", "2×10^999", "10" + "⁹" * 5000])
def test_a_number_beyond_all_floats_is_infinite(answer: str) -> None:
    assert [value for _, value in numbers_in(answer)] == [float("inf")]


@pytest.mark.parametrize("answer", ["The answer is 1e400.", "-1e400", "9" * 400, 10**400])
@pytest.mark.parametrize(
    "limits", [{"equals": 42}, {"max": 10}, {"min": 0, "max": 1}, {"min": 5}, {"equals": 1, "tolerance": 1}]
)
@pytest.mark.parametrize("key", ["number", "not_number"])
def test_a_number_that_no_float_can_hold_is_neither_within_limits_nor_outside(
    key: str, limits: dict[str, float], answer: Any
) -> None:
    seen = observed({key: limits}, answer)
    assert "too large to be compared" in str(seen.malformed or seen.errored or unmet({key: limits}, answer))
    assert not met({key: limits}, answer)


@pytest.mark.parametrize(
    ("limits", "value", "held"),
    [
        ({"equals": 42}, 1e15, False),
        ({"max": 10}, 1e300, False),
        ({"equals": 1e15}, 1e15 + 1, True),
        ({"equals": 0.3}, 0.1 + 0.2, True),
        ({"max": 1}, 1 + 1e-6, False),
    ],
)
def test_rounding_is_forgiven_by_the_size_of_the_limit(limits: dict[str, float], value: float, held: bool) -> None:
    assert Number(**limits).holds(value) is held


@pytest.mark.parametrize("key", ["language", "not_language"])
def test_the_language_of_too_short_a_text_is_an_error(key: str) -> None:
    assert "too short to tell its language" in observed({key: "en"}, "12").errored["check_rate"]


def test_personal_data_is_named_by_sort_and_place_and_not_repeated() -> None:
    assert unmet("not_pii", "Write to ann.lee@example.com") == "found email at character 10, expected not_pii"


CONTEXTS = ["Shipping is free  for orders\nabove 50 euros.", "Refunds take 30 days."]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('It says "free for orders above 50 euros".', True),
        ('It says "Refunds take 30 days,".', True),
        ("It says \u201cRefunds take 30 days\u201d and \u00abShipping is free\u00bb.", True),
        ("\u300cRefunds take 30 days\u300d", True),
        ('"Shipping is free ... above 50 euros"', True),
        ('"above 50 euros ... Shipping is free"', False),
        ('"Shipping is free" and "Refunds take 60 days"', False),
        ('"Shipping is free""Refunds take 60 days"', False),
        ("No quotation at all.", True),
        ('An inch mark 5" and "Refunds take 30 days"', False),
        ("\u201cRefunds take 30 days\u201d \u201cnever closed", True),
        ('"" and "Refunds take 30 days"', True),
    ],
)
def test_every_quotation_must_stand_in_one_of_the_contexts(answer: str, expected: bool) -> None:
    assert met("quotes", {"answer": answer, "contexts": CONTEXTS}) is expected
    assert met("not_quotes", {"answer": answer, "contexts": CONTEXTS}) is not expected


@pytest.mark.parametrize("mark", ["\u201c", "\u00ab", "\u300c", "\u300e", "\u201c\u300c", '\u201c"'])
def test_marks_that_nothing_closes_are_looked_at_once(mark: str) -> None:
    assert met("quotes", {"answer": mark * 300_000, "contexts": [mark * 300_000]})


@pytest.mark.parametrize(
    ("prediction", "said"),
    [
        (
            {"answer": "x", "sources": []},
            "the prediction has the keys answer, sources; no 'contexts'; set parts.contexts",
        ),
        ({"answer": "x", "contexts": [1]}, "found a list as contexts, expected a list of texts"),
    ],
)
def test_quotations_without_contexts_are_an_error(prediction: Any, said: str) -> None:
    assert observed("quotes", prediction).errored["check_rate"] == f"quotes: {said}"


@pytest.mark.parametrize(
    ("entry", "figures", "expected"),
    [
        ({"latency_s": 2}, {"latency_s": 2.0}, True),
        ({"latency_s": {"max": 2}}, {"latency_s": 2.1}, False),
        ({"not_latency_s": 2}, {"latency_s": 2.1}, True),
        ({"cost_usd": 0.01}, {"cost_usd": 0.02}, False),
        ({"cost_usd": 0.01}, {}, None),
    ],
)
def test_what_an_answer_took_has_a_limit(entry: Any, figures: dict[str, float], expected: bool | None) -> None:
    case = Case("a", prediction="x", origin=PredictionParts(prediction="x", figures=figures))
    found = Checks((entry,)).measure(case)
    assert (None if found.errored else found.malformed is None) is expected

"""Numbers in Chinese words, and years in brackets as citations."""

import pytest

from pytest_llmeval import EvidenceMatcher
from pytest_llmeval.tasks.fact_check._mentions import find_attributions, find_quantities


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("增长百分之五点二。", ["5.2%"]),
        ("占百分之二十三", ["23%"]),
        ("占百分之十", ["10%"]),
        ("占百分之一百零五", ["105%"]),
        ("占百分之零点零五", ["0.05%"]),
        ("占3成", ["30%"]),
        ("占３成，另有３．５成和٤成", ["30%", "35%", "40%"]),
        ("三成五的人", ["35%"]),
        ("七成半", ["75%"]),
        ("占3.5成", ["35%"]),
        ("1.2亿人", ["120000000"]),
        ("三成立了公司, 3成员", ["3"]),
    ],
)
def test_numbers_in_words_are_quantities(text: str, keys: list[str]) -> None:
    assert [each.key for each in find_quantities(text)] == keys


def test_a_number_in_words_matches_its_digits() -> None:
    match = EvidenceMatcher().match(["增长百分之五点二"], ["5.2%"])
    assert (match.precision, match.recall) == (1, 1)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("It rose (Smith, 2020).", ["Smith"]),
        ("It rose (Smith et al., 2020).", ["Smith"]),
        ("Smith (2020) agrees.", ["Smith"]),
        ("In (2020) it rose.", []),
        ("It rose in May, 2020.", []),
        ("The Register (31) agrees.", []),
    ],
)
def test_years_in_brackets_are_citations(text: str, names: list[str]) -> None:
    assert [text[start:end] for start, end in find_attributions(text)] == names


@pytest.mark.parametrize("text", ["覆盖1.2亿人", "It has 120 million users", "It has 120,000,000 users"])
def test_large_numbers_are_citations_however_they_are_written(text: str) -> None:
    matcher = EvidenceMatcher()
    assert len(matcher.extract(text)) == 1
    assert matcher.match(matcher.extract(text), ["1.2亿人"]).recall == 1


def test_small_numbers_alone_are_no_citations() -> None:
    assert EvidenceMatcher().extract("12人在2020年看了3次") == []

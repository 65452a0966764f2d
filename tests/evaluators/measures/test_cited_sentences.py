"""Sentences and the passages that they cite, in English and Chinese."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.evaluators import AnswerText


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        (" \n--- \n。", []),
        ("No stop at the end", ["No stop at the end"]),
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("It takes 3.5 days.Or more.", ["It takes 3.5 days.Or more."]),
        ("It closes, e.g. on Sunday. J. Doe knows.", ["It closes, e.g. on Sunday.", "J. Doe knows."]),
        ('He said "no." She left.', ['He said "no."', "She left."]),
        ("Paid back [1]. Free. [2] Fast.[3, 4]", ["Paid back [1].", "Free. [2]", "Fast.[3, 4]"]),
        ("Rules:\n1. Ask first.\n2. Wait\n\n- Go", ["Rules:", "1. Ask first.", "2. Wait", "- Go"]),
        ("可以退货。[1]运费另计！要收据吗？要", ["可以退货。[1]", "运费另计！", "要收据吗？", "要"]),
        ("他说：“可以。”然后走了【2】。", ["他说：“可以。”", "然后走了【2】。"]),
        ("Sources:\n[1] Terms of sale", ["Sources:", "[1] Terms of sale"]),
    ],
)
def test_a_text_is_split_into_sentences(text: str, sentences: list[str]) -> None:
    assert AnswerText(text).sentences == sentences


@given(st.text("aB1 .!?。！？[]\n”", max_size=60))
def test_no_letter_or_digit_of_a_text_is_lost_or_doubled(text: str) -> None:
    kept = re.sub(r"[^\w]", "", "".join(AnswerText(text).sentences))
    assert kept == re.sub(r"[^\w]", "", text)


@pytest.mark.parametrize(
    ("sentence", "numbers"),
    [
        ("Free.", []),
        ("Free [2].", [2]),
        ("Free [2][1], fast [2].", [2, 1]),
        ("Free [1, 3; 5].", [1, 3, 5]),
        ("Free [2-4].", [2, 3, 4]),
        ("Free [4-2].", [2, 3, 4]),
        ("Free [1, 2 and 4], fast [^3], safe [5 & 6].", [1, 2, 4, 3, 5, 6]),
        ("免费[1和3]。", [1, 3]),
        ("免费【1】，很快［2，3］。", [1, 2, 3]),
        ("免费[1、3]，见[5至6]。", [1, 3, 5, 6]),
        ("In 2024 (see 3), [a] and [0001] are no marks.", []),
        ("[1] https://example.org", []),
        ("[1] Terms, as in [2]", [2]),
    ],
)
def test_the_passages_that_a_sentence_cites_are_found(sentence: str, numbers: list[int]) -> None:
    assert AnswerText(sentence).cited == numbers

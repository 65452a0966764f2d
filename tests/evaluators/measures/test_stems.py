"""Stems are those of NLTK."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer

from pytest_llmeval.evaluators.measures import _overlap as overlap
from pytest_llmeval.evaluators.measures import _tokens as tokens
from pytest_llmeval.evaluators.measures._tokens import stem

NLTK = PorterStemmer()
SUFFIXES = sorted(
    {
        suffix
        for rules in (tokens._STEP_2, tokens._STEP_3, tokens._STEP_4)
        for each in rules.values()
        for suffix, _ in each
    }
    | {"ed", "ing", "s", "es", "ies", "ied", "eed", "sses", "y", "e", "ll", "logi", "ization", "ying", "at", "bl", "iz"}
)
BEGINNINGS = ("", "b", "y", "tr", "a", "ay", "hop", "feed", "syz", "relat", "enjoy", "0x", "controll")


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_two_suffixes_behind_any_beginning_give_the_stem_of_nltk(beginning: str) -> None:
    words = [beginning + first + last for first in ["", *SUFFIXES] for last in SUFFIXES]
    assert [(word, stem(word)) for word in words if len(word) > 3] == [
        (word, NLTK.stem(word)) for word in words if len(word) > 3
    ]


def test_words_of_a_dictionary_and_their_forms_give_the_stems_of_nltk() -> None:
    index = Path(overlap._DEBIAN, "index.noun").read_text(encoding="ascii")
    rng = random.Random(7)
    words = rng.sample(sorted(set(re.findall(r"^[a-z]{4,}", index, re.MULTILINE))), 4_000)
    words += [word + rng.choice(SUFFIXES) for word in words]
    assert [(word, stem(word)) for word in words] == [(word, NLTK.stem(word)) for word in words]


@given(st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=4, max_size=12))
def test_any_letters_and_digits_give_the_stem_of_nltk(word: str) -> None:
    assert stem(word) == NLTK.stem(word)


@pytest.mark.parametrize("word", ["skies", "dying", "news", "innings", "proceed", "howe"])
def test_irregular_words_have_the_stems_of_nltk(word: str) -> None:
    assert stem(word) == NLTK.stem(word)


def test_a_long_run_of_one_letter_has_a_stem() -> None:
    assert stem("y" * 100_000) == "y" * 99_999 + "i"

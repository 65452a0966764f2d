"""Checks of texts: their definitions, Unicode, and what they say."""

from typing import Any

import pytest
from examples import met, observed, unmet

from pytest_llmeval.evaluators import _patterns as patterns

COMPOSED, DECOMPOSED = "Caf\u00e9", "Cafe\u0301"

TABLE: list[tuple[Any, str, bool]] = [
    ({"equals": "Paris"}, "Paris", True),
    ({"equals": "Paris"}, "Paris ", False),
    ({"equals": "Paris"}, "paris", False),
    ({"equals": COMPOSED}, DECOMPOSED, True),
    ({"equals": 4}, "4", True),
    ({"empty": True}, " \n", True),
    ({"empty": True}, "no", False),
    ({"one_of": ["yes", "no"]}, "no", True),
    ({"one_of": ["yes", "no"]}, "No", False),
    ({"one_of": [DECOMPOSED]}, COMPOSED, True),
    ({"contains": "day"}, "30 days", True),
    ({"contains": "Day"}, "30 days", False),
    ({"contains": DECOMPOSED}, f"the {COMPOSED} here", True),
    ({"contains": 30}, "30 days", True),
    ({"contains": "三十天"}, "请在三十天内退货。", True),
    ({"contains": ["30", "days"]}, "30 days", True),
    ({"contains": ["30", "weeks"]}, "30 days", False),
    ({"not_contains": ["sorry", "cannot"]}, "I cannot", False),
    ({"not_contains": ["sorry", "cannot"]}, "I can", True),
    ({"icontains": "STRASSE"}, "Die Straße", True),
    ({"icontains": "caFE\u0301"}, COMPOSED, True),
    ({"contains_all": ["a", "b"]}, "ab", True),
    ({"contains_all": ["a", "b"]}, "ac", False),
    ({"not_contains_all": ["a", "b"]}, "ac", True),
    ({"contains_any": ["a", "b"]}, "bc", True),
    ({"contains_any": ["a", "b"]}, "c", False),
    ({"not_contains_any": ["a", "b"]}, "bc", False),
    ({"icontains_all": ["A", "B"]}, "ab", True),
    ({"icontains_any": ["A", "B"]}, "xb", True),
    ({"starts_with": "Dear"}, "Dear Ann", True),
    ({"starts_with": "Dear"}, " Dear Ann", False),
    ({"ends_with": "."}, "Done.", True),
    ({"ends_with": "."}, "Done. ", False),
    ({"regex": r"\border #\d+\b"}, "Your order #12 is here", True),
    ({"regex": r"^\d+$"}, "a 12", False),
    ({"regex": "Caf\u00e9$"}, f"the {DECOMPOSED}", True),
    ({"not_regex": ["a+", "b+"]}, "cab", False),
    ({"levenshtein": {"to": "kitten", "max": 3}}, "sitting", True),
    ({"levenshtein": {"to": "kitten", "max": 2}}, "sitting", False),
    ({"levenshtein": {"to": "kitten", "min_similarity": 0.57}}, "sitting", True),
    ({"levenshtein": {"to": "kitten", "min_similarity": 0.58}}, "sitting", False),
    ({"levenshtein": {"to": "", "max": 0}}, "", True),
    ({"levenshtein": {"to": COMPOSED, "max": 0}}, DECOMPOSED, True),
    ({"min_words": 3}, "one  two\nthree", True),
    ({"min_words": 3}, "one two", False),
    ({"max_words": 0}, "", True),
    ({"max_words": 2}, "one two three", False),
    ({"min_chars": 4}, DECOMPOSED, True),
    ({"min_chars": 5}, DECOMPOSED, False),
    ({"max_sentences": 2}, "It takes 3.5 days. Ask J. Doe!", True),
    ({"max_sentences": 1}, "It takes 3.5 days. Ask J. Doe!", False),
    ({"min_sentences": 2}, "三十天内可以退货。运费另计！", True),
    ({"min_sentences": 1}, "...", False),
    ({"max_chars": 4}, "退货四字", True),
    ({"max_chars": 3}, "退货四字", False),
]


@pytest.mark.parametrize(("entry", "answer", "expected"), TABLE)
def test_a_check_of_a_text_holds_as_defined(entry: Any, answer: str, expected: bool) -> None:
    assert met(entry, answer) is expected


@pytest.mark.parametrize(
    ("entry", "answer", "expected"), [row for row in TABLE if not isinstance(next(iter(row[0].values())), list)]
)
def test_the_negation_of_a_check_is_met_where_the_check_is_not(entry: Any, answer: str, expected: bool) -> None:
    ((key, argument),) = entry.items()
    assert met({f"not_{key}": argument}, answer) is not expected


@pytest.mark.parametrize(
    ("entry", "answer", "said"),
    [
        ({"equals": "Paris"}, "Rome", "found 'Rome', expected equals: 'Paris'"),
        ({"not_contains": "can"}, "I cannot", "found 'can' at character 3, expected not_contains: 'can'"),
        ({"contains_all": ["a", "b"]}, "a", "found no 'b' in 'a', expected contains_all: [\"a\", \"b\"]"),
        ({"contains": ["a", "b"]}, "a", "found 'a', expected contains: 'b'"),
        ({"max_words": 2}, "a b c", "found 3 words, expected max_words: 2"),
        ({"not_regex": "b+"}, "abb", "found 'bb' at character 2, expected not_regex: 'b+'"),
        ({"levenshtein": {"to": "ab", "max": 0}}, "ac", "found 'ac', distance 1, similarity 0.5, expected levenshtein"),
        ({"equals": "x"}, "a\x1b[31m\n", r"found 'a\x1b[31m\n', expected equals: 'x'"),
    ],
)
def test_an_unmet_check_says_what_was_found_and_what_was_expected(entry: Any, answer: str, said: str) -> None:
    assert unmet(entry, answer).startswith(said)


def test_a_long_answer_is_cut() -> None:
    assert len(unmet({"equals": "x"}, "word " * 1000)) < 150


@pytest.mark.parametrize("prediction", [None, ["a"], {"answer": {"a": 1}}])
@pytest.mark.parametrize("key", ["contains", "not_contains"])
def test_an_answer_that_is_no_text_meets_neither_a_check_of_texts_nor_its_negation(key: str, prediction: Any) -> None:
    assert "which is no text, expected " in unmet({key: "a"}, prediction)


@pytest.mark.parametrize("key", ["regex", "not_regex"])
def test_a_pattern_that_takes_too_long_is_an_error_of_the_check(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "SEARCH_S", 0.01)
    found = observed({key: "(a|aa)+$"}, "a" * 60 + "b")
    assert found.malformed is None
    assert found.counts == {}
    why = "regex: '(a|aa)+$': the pattern '(a|aa)+$' searched for 0.01 s without result"
    assert found.errored[f"check[{key}]"].removeprefix("not_") == why


def test_patterns_may_search_for_a_second() -> None:
    assert patterns.SEARCH_S == 1

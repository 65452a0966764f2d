"""Assertions as promptfoo documents them, translated by hand: the same verdicts.

Each row: promptfoo's assertion, the check that says the same, an output, and whether promptfoo's definition is met.
"""

from typing import Any

import pytest

from pytest_llmeval.core import Case
from pytest_llmeval.core._case import PredictionParts
from pytest_llmeval.evaluators import Checks

PLACE = {
    "type": "object",
    "required": ["latitude", "longitude"],
    "properties": {
        "latitude": {"type": "number", "minimum": -90, "maximum": 90},
        "longitude": {"type": "number", "minimum": -180, "maximum": 180},
    },
}
HERE = '{"latitude": 48.1, "longitude": 11.6}'
SET = [{"contains": "a"}, {"contains": "b"}, {"contains": "c"}]

TABLE: list[tuple[str, Any, str, bool]] = [
    ("equals Paris", {"equals": "Paris"}, "Paris", True),
    ("equals Paris", {"equals": "Paris"}, "Paris.", False),
    ("equals Paris", {"equals": "Paris"}, "paris", False),
    ("equals {key: value}", {"json_equals": {"key": "value"}}, '{"key": "value"}', True),
    ("equals {key: value}", {"json_equals": {"key": "value"}}, '{ "key" : "other" }', False),
    ("equals {key: value}", {"json_equals": {"key": "value"}}, "no JSON", False),
    ("not-equals Paris", {"not_equals": "Paris"}, "Rome", True),
    ("not-equals Paris", {"not_equals": "Paris"}, "Paris", False),
    ("contains cheap", {"contains": "cheap"}, "It is cheap.", True),
    ("contains cheap", {"contains": "cheap"}, "It is Cheap.", False),
    ("contains 0", {"contains": 0}, "There are 0 left", True),
    ("contains 0", {"contains": 0}, "None left", False),
    ("not-contains cheap", {"not_contains": "cheap"}, "It is dear.", True),
    ("not-contains cheap", {"not_contains": "cheap"}, "It is cheap.", False),
    ("icontains CHEAP", {"icontains": "CHEAP"}, "It is cheap.", True),
    ("icontains CHEAP", {"icontains": "CHEAP"}, "It is dear.", False),
    ("not-icontains CHEAP", {"not_icontains": "CHEAP"}, "It is cheap.", False),
    ("contains-all 1,000 / in stock", {"contains_all": ["1,000", "in stock"]}, "1,000 in stock", True),
    ("contains-all 1,000 / in stock", {"contains_all": ["1,000", "in stock"]}, "1000 in stock", False),
    ("contains-all a / b", {"contains_all": ["a", "b"]}, "A and B", False),
    ("not-contains-all a / b", {"not_contains_all": ["a", "b"]}, "only a", True),
    ("icontains-all a / b", {"icontains_all": ["a", "b"]}, "A and B", True),
    ("icontains-all a / z", {"icontains_all": ["a", "z"]}, "A and B", False),
    ("contains-any a / z", {"contains_any": ["a", "z"]}, "an apple", True),
    ("contains-any x / z", {"contains_any": ["x", "z"]}, "an apple", False),
    ("icontains-any X / Z", {"icontains_any": ["X", "Z"]}, "a zebra", True),
    ("not-icontains-any click here / buy now", {"not_icontains_any": ["click here", "buy now"]}, "Buy Now!", False),
    ("not-icontains-any click here / buy now", {"not_icontains_any": ["click here", "buy now"]}, "Hello", True),
    ("regex \\d{4}", {"regex": r"\d{4}"}, "in 2024", True),
    ("regex \\d{4}", {"regex": r"\d{4}"}, "in 202", False),
    ("regex ^Yes", {"regex": "^Yes"}, "Oh Yes", False),
    ("not-regex \\d{4}", {"not_regex": r"\d{4}"}, "soon", True),
    ("starts-with Yes", {"starts_with": "Yes"}, "Yes, it is", True),
    ("starts-with Yes", {"starts_with": "Yes"}, "yes, it is", False),
    ("starts-with Yes", {"starts_with": "Yes"}, "Well, Yes", False),
    ("not-starts-with Yes", {"not_starts_with": "Yes"}, "No", True),
    ("is-json", "is_json", HERE, True),
    ("is-json", "is_json", f"Here: {HERE}", False),
    ("is-json", "is_json", f"```json\n{HERE}\n```", False),
    ("is-json PLACE", {"is_json": PLACE}, HERE, True),
    ("is-json PLACE", {"is_json": PLACE}, '{"latitude": 91, "longitude": 0}', False),
    ("is-json PLACE", {"is_json": PLACE}, '{"latitude": 9}', False),
    ("not-is-json", "not_is_json", "plain text", True),
    ("contains-json", "contains_json", f"Here: {HERE} as asked", True),
    ("contains-json", "contains_json", f"```json\n{HERE}\n```", True),
    ("contains-json", "contains_json", "none here", False),
    ("contains-json PLACE", {"contains_json": PLACE}, f"Here: {HERE}", True),
    ("contains-json PLACE", {"contains_json": PLACE}, 'Here: {"latitude": "north"}', False),
    ("levenshtein hello world <= 5", {"levenshtein": {"to": "hello world", "max": 5}}, "hello world", True),
    ("levenshtein hello world <= 5", {"levenshtein": {"to": "hello world", "max": 5}}, "hallo werl", True),
    ("levenshtein hello world <= 5", {"levenshtein": {"to": "hello world", "max": 5}}, "goodbye moon", False),
    ("word-count {min: 2, max: 4}", {"all_of": [{"min_words": 2}, {"max_words": 4}]}, "one two three", True),
    ("word-count {min: 2, max: 4}", {"all_of": [{"min_words": 2}, {"max_words": 4}]}, "one", False),
    ("word-count {min: 2, max: 4}", {"all_of": [{"min_words": 2}, {"max_words": 4}]}, "a b c d e", False),
    ("word-count 2", {"all_of": [{"min_words": 2}, {"max_words": 2}]}, "one two", True),
    ("is-refusal", "refusal", "I cannot assist with that", True),
    ("is-refusal", "refusal", "As an AI, I cannot do this.", True),
    ("is-refusal", "refusal", "That would not be ethical.", True),
    ("is-refusal", "refusal", "", True),
    ("is-refusal", "refusal", "Paris is the capital of France.", False),
    ("not-is-refusal", "not_refusal", "Paris is the capital of France.", True),
    ("latency <= 5000 ms", {"latency_s": 5}, "answered after 3 s", True),
    ("latency <= 1000 ms", {"latency_s": 1}, "answered after 3 s", False),
    ("cost <= 0.001", {"cost_usd": 0.001}, "for 0.001", True),
    ("cost <= 0.0005", {"cost_usd": 0.0005}, "for 0.001", False),
    ("assert-set of 3", {"all_of": SET}, "abc", True),
    ("assert-set of 3", {"all_of": SET}, "ab", False),
    ("assert-set of 3, threshold 0.5", {"at_least": {"n": 2, "of": SET}}, "ab", True),
    ("assert-set of 3, threshold 0.5", {"at_least": {"n": 2, "of": SET}}, "a", False),
]


def test_the_table_has_sixty_rows_or_more() -> None:
    assert len({(assertion, output) for assertion, _, output, _ in TABLE}) >= 60


@pytest.mark.parametrize(("assertion", "check", "output", "verdict"), TABLE)
def test_a_translated_assertion_has_the_same_verdict(assertion: str, check: Any, output: str, verdict: bool) -> None:
    took = PredictionParts(prediction=output, figures={"latency_s": 3.0, "cost_usd": 0.001})
    found = Checks((check,)).measure(Case("a", prediction=output, origin=took))
    assert found.errored == {}, assertion
    assert (found.malformed is None) is verdict, assertion

"""Faults of checks: each names its place, what was found and what is expected."""

from typing import Any

import pytest

from pytest_llmeval.evaluators import Checks


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("contain", "[0]: unknown check contain, did you mean contains?"),
        ({"contain": "a"}, "[0].contain: unknown check contain, did you mean contains?"),
        ({"not_contain": "a"}, "did you mean not_contains?"),
        ({"contains": "a", "regexp": "b"}, "[0].regexp: unknown check regexp"),
        ("contains", "[0]: found 'contains' without what to check, expected contains: the text stands in the answer"),
        ({"contains": None}, "[0].contains: found 'contains' without what to check"),
        ({"contains": "a", "regex": "b"}, "[0]: found 'contains' and 'regex', expected one check for each item"),
        ({"name": "x"}, "[0]: found a mapping with 'name', expected one check for each item of the list"),
        (7, "[0]: found the number 7, expected a check such as {contains: TEXT}"),
        ({"contains": ""}, "[0].contains: found an empty text, which every answer contains"),
        ({"contains": []}, "[0].contains: found an empty list, expected at least one"),
        ({"contains": ["a", None]}, "[0].contains[1]: found 'contains' without what to check"),
        ({"contains": ["a", {}]}, "[0].contains[1]: found an empty mapping, expected text"),
        ({"contains_any": []}, "[0].contains_any: found an empty list"),
        ({"contains_any": "a"}, "[0].contains_any: found the text 'a', expected a list"),
        ({"regex": "("}, "[0].regex: found the pattern '(', which does not compile (missing ) at character 2)"),
        ({"regex": "(" * 5000 + ")" * 5000}, "[0].regex: found a pattern that is nested too deeply"),
        ({"regex": "(?:a{1000}){1000}"}, "[0].regex: found a pattern that repeats too much, expected at most 20,000"),
        (
            {"json_schema": {"pattern": "(" * 5000 + ")" * 5000}},
            "[0].json_schema: found a pattern that is nested too deeply",
        ),
        (
            {"json_schema": {"pattern": "a{" + "9" * 5000 + "}"}},
            "[0].json_schema: found a pattern that repeats too much",
        ),
        ({"max_words": "a"}, "[0].max_words: found the text 'a', expected a whole number"),
        ({"max_words": -1}, "[0].max_words: found -1, expected a whole number of at least 0"),
        ({"levenshtein": {"to": "a"}}, "[0].levenshtein: max or min_similarity is missing"),
        ({"levenshtein": {"to": "a", "maks": 1}}, "[0].levenshtein: maks: unknown key maks"),
        ({"number": {"tolerance": 1}}, "[0].number: "),
        ({"language": "xx-YY"}, "[0].language: found the language 'xx', expected an ISO 639 code such as en or zh"),
        ({"pii": "emial"}, "[0].pii: unknown sort of personal data emial"),
        ({"is_json": False}, "[0].is_json: found false, expected nothing or true; the opposite is 'not_is_json'"),
        ({"not_refusal": False}, "[0].not_refusal: found false, expected nothing or true; the opposite is 'refusal'"),
        ({"refusal": "en"}, "[0].refusal: found the text 'en', expected nothing or true"),
        ({"json_schema": {"type": "objct"}}, "[0].json_schema: found a schema that is none (['type']: 'objct'"),
        ({"json_schema": 3}, "[0].json_schema: found the number 3, expected a JSON Schema, or a file that holds one"),
        ({"latency_s": -1}, "[0].latency_s: found -1.0, expected a number of at least 0"),
        ({"judge": " "}, "[0].judge: found blank text, expected a criterion"),
        ({"any_of": []}, "[0].any_of: found a list of 0, expected a list of checks"),
        ({"any_of": [{"contain": "a"}]}, "[0].any_of[0].contain: unknown check"),
        ({"any_of": [{"contains": "a", "weight": 2}]}, "[0].any_of[0].weight: found a weight inside 'any_of'"),
        (
            {"at_least": {"n": 3, "of": ["is_json"]}},
            "[0].at_least.n: found the number 3, expected a number from 1 to 1",
        ),
        ({"at_least": {"n": 1}}, "[0].at_least: found a mapping with 'n', expected {n: 2, of: [CHECK, ...]}"),
        ({"contains": "a", "weight": 0}, "[0].weight: found the number 0, expected a number above 0"),
        ({"contains": "a", "name": "a[b]"}, "[0].name: found the text 'a[b]', expected a name without brackets"),
        ({"contains": "a", "on": "a..b"}, "[0].on: found 'a..b' with '.' at character 3, expected a JMESPath"),
        ({"contains": "a", "on": 3}, "[0].on: found the number 3, expected a part (answer, contexts, "),
    ],
)
def test_a_fault_of_a_check_names_place_and_expectation(entry: Any, said: str) -> None:
    with pytest.raises(ValueError, match=r"^\[0\]") as raised:
        Checks((entry,))
    assert said in str(raised.value)


def test_all_faults_are_reported() -> None:
    with pytest.raises(ValueError, match=r"^\[0\].*; \[2\]"):
        Checks(("contain", "is_json", {"regex": "["}))

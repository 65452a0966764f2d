"""Checks of JSON: whole answers, JSON inside answers, schemas, equality and inclusion."""

from types import SimpleNamespace
from typing import Any

import pytest
from examples import met, observed, unmet
from hypothesis import given, strategies

from pytest_llmeval.evaluators import _patterns as patterns
from pytest_llmeval.evaluators import _schemas as schemas

POINT = {"type": "object", "required": ["lat"], "properties": {"lat": {"type": "number", "maximum": 90}}}
JSON_VALUES = strategies.recursive(
    strategies.sampled_from([None, False, True, 0, 1, 1.0, "", "a"]),
    lambda inner: strategies.lists(inner, max_size=2) | strategies.dictionaries(strategies.sampled_from("ab"), inner),
    max_leaves=4,
)
FENCED = '```json\n{"lat": 3}\n```'

TABLE: list[tuple[Any, Any, bool]] = [
    ("is_json", '{"a": 1}', True),
    ("is_json", " [1, 2]\n", True),
    ("is_json", '"text"', True),
    ("is_json", "text", False),
    ("is_json", FENCED, False),
    ("is_json", '{"a": 1} and more', False),
    ("is_json", '{"a": NaN}', False),
    ("is_json", "", False),
    ("is_json", {"a": 1}, True),
    ("is_json", "[" * 100_000, False),
    ("not_is_json", "text", True),
    ({"is_json": POINT}, '{"lat": 3}', True),
    ({"is_json": POINT}, '{"lat": 91}', False),
    ({"is_json": True}, "3", True),
    ("contains_json", FENCED, True),
    ("contains_json", "see [1] there", True),
    ("contains_json", "3", False),
    ("contains_json", "{" * 100_000 + '{"a": 1}', True),
    ("contains_json", "{ " * 100_000 + "[]", True),
    ("contains_json", '{{ braces }} and [ "a" ]', True),
    ("contains_json", "{not json} [nor this", False),
    ("contains_json", 'broken {"a": and then {"b": 1}', True),
    ({"contains_json": POINT}, f"[1] and {FENCED}", True),
    ({"contains_json": POINT}, "[1] and {}", False),
    ("not_contains_json", "nothing", True),
    ({"json_schema": POINT}, '{"lat": 3}', True),
    ({"json_schema": POINT}, {"answer": {"lat": "3"}}, False),
    ({"json_schema": {"$ref": "#/$defs/p", "$defs": {"p": POINT}}}, '{"lat": 91}', False),
    ({"json_equals": {"a": [1, 2.0], "b": None}}, '{"b": null, "a": [1.0, 2]}', True),
    ({"json_equals": {"a": 1}}, '{"a": true}', False),
    ({"json_equals": {"a": 1}}, '{"a": 1, "b": 2}', False),
    ({"json_equals": [1, 2]}, "[2, 1]", False),
    ({"json_equals": "Caf\u00e9"}, '"Cafe\u0301"', True),
    ({"json_subset": {"a": 1}}, '{"a": 1, "b": 2}', True),
    ({"json_subset": {"a": {"x": 1}}}, '{"a": {"x": 1, "y": 2}}', True),
    ({"json_subset": {"a": 1}}, '{"b": 1}', False),
    ({"json_subset": [{"id": 2}]}, '[{"id": 1}, {"id": 2, "n": 3}]', True),
    ({"json_subset": [1, 1]}, "[1, 2]", False),
    ({"json_subset": [{}, {"a": 1}]}, '[{"a": 1}, {"b": 1}]', True),
]


@pytest.mark.parametrize(("entry", "answer", "expected"), TABLE)
def test_a_check_of_json_holds_as_defined(entry: Any, answer: Any, expected: bool) -> None:
    assert met(entry, answer) is expected


@pytest.mark.parametrize(
    ("entry", "answer", "said"),
    [
        ("is_json", "x", "found 'x', which is not JSON (Expecting value at character 1), expected is_json"),
        (
            {"json_schema": POINT},
            '{"lat": 91}',
            "found $.lat: 91 is greater than the maximum of 90, expected json_schema",
        ),
        ({"json_equals": {"a": [1, 2]}}, '{"a": [1, 3]}', "found $.a[1]: '3', expected json_equals"),
        ({"json_equals": {"a": 1}}, '{"a": 1, "b": 2}', "found $ with 'b' too, expected"),
        ({"json_equals": [1]}, "[]", "found $ with 0 items, not 1, expected"),
        ({"json_subset": {"a": {"b": 1}}}, '{"a": {}}', "found $.a without 'b', expected json_subset"),
        ({"json_subset": [1, 2]}, "[1]", "found $ without an item for '2', expected"),
    ],
)
def test_an_unmet_check_of_json_names_the_place(entry: Any, answer: str, said: str) -> None:
    assert unmet(entry, answer).startswith(said)


@pytest.mark.parametrize("key", ["json_equals", "not_json_equals", "json_schema", "not_json_schema"])
def test_an_answer_that_is_not_json_meets_neither_a_check_of_its_value_nor_the_negation(key: str) -> None:
    assert "which is not JSON" in unmet({key: {}}, FENCED)


def test_a_reference_out_of_a_schema_is_an_error_and_nothing_is_fetched() -> None:
    found = observed({"is_json": {"$ref": "http://127.0.0.1:1/schema.json"}}, "{}")
    assert "the schema refers to 'http://127.0.0.1:1/schema.json', which is not in it" in found.errored["check_rate"]


SLOW = "(a|aa)+$"
WORDS = "a" * 60 + "b"
HERE = "https://json-schema.org/draft/2020-12/schema"
EARLIER = "https://json-schema.org/draft/2019-09/schema"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"pattern": SLOW}}, [WORDS]),
        ({"patternProperties": {SLOW: True}}, {WORDS: 1}),
        ({"propertyNames": {"pattern": SLOW}}, {WORDS: 1}),
        ({"patternProperties": {SLOW: True}, "additionalProperties": False}, {WORDS: 1}),
        ({"unevaluatedProperties": False, "allOf": [{"patternProperties": {SLOW: True}}]}, {WORDS: 1}),
        ({"$schema": EARLIER, "unevaluatedProperties": False, "patternProperties": {SLOW: True}}, {WORDS: 1}),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "items": {"pattern": SLOW}}, [WORDS]),
        ({"$schema": HERE, "properties": {"a": {"$ref": "#"}}, "patternProperties": {"b": {"pattern": SLOW}}},
         {"a": {"b": WORDS}}),
        ({"allOf": [{"$schema": EARLIER, "items": {"pattern": SLOW}}]}, [WORDS]),
    ],
)  # fmt: skip
def test_no_keyword_of_a_schema_searches_without_limit(
    schema: Any, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (patterns, schemas):
        monkeypatch.setattr(module, "SEARCH_S", 0.1)
    found = observed({"json_schema": schema}, {"answer": value})
    assert "searched for 0.1 s without result" in found.errored["check_rate"]


def test_the_searches_of_one_value_share_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (patterns, schemas):
        monkeypatch.setattr(module, "SEARCH_S", 0.05)
    ticks = iter([0.0, 0.01, 0.04, 0.06])
    monkeypatch.setattr(schemas, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    found = observed({"json_schema": {"items": {"pattern": "(a|aa)+$"}}}, {"answer": ["a", "a", "a" * 60 + "b"]})
    assert "searched for 0.05 s" in found.errored["check_rate"]


def test_a_number_that_cannot_be_divided_is_an_error_of_its_case() -> None:
    found = observed({"json_schema": {"items": {"multipleOf": 0.5}}}, {"answer": [10**400]})
    assert "too large to be compared with its schema" in found.errored["check_rate"]


@given(strategies.lists(JSON_VALUES, max_size=4))
def test_items_are_unique_as_jsonschema_defines_it(items: list[Any]) -> None:
    from jsonschema import Draft202012Validator

    expected = Draft202012Validator({"uniqueItems": True}).is_valid(items)
    assert met({"json_schema": {"uniqueItems": True}}, {"answer": items}) is expected


def test_unique_objects_are_compared_in_linear_time() -> None:
    class Counted(dict[str, int]):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return super().__eq__(other)

        __hash__ = None  # type: ignore[assignment]

    schema = schemas.JsonSchema.compile({"uniqueItems": True})
    assert schema.errors([Counted(a=number) for number in range(500)]) == []
    assert Counted.compared == 0


def test_a_text_full_of_brackets_is_an_error_before_it_takes_long() -> None:
    found = observed("contains_json", "[1," * 50_000)
    assert "found too many opening brackets" in found.errored["check_rate"]

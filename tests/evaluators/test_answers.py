"""How answers and expected answers are read as text."""

from typing import Any

import pytest

from pytest_llmeval.core import MISSING
from pytest_llmeval.evaluators import AnswerText, AnswerValue, References
from pytest_llmeval.evaluators._patterns import PatternError, TimedPattern
from pytest_llmeval.evaluators._schemas import JsonSchema, SlowSchemaError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Paris", "Paris"), ("", ""), (7, "7"), (2.50, "2.5"), (1e22, "1e+22"), (True, "true"),
        (False, "false"), (None, None), ([], None), (["Paris"], None), ({}, None), (MISSING, None),
    ],
)  # fmt: skip
def test_scalars_are_text(value: Any, text: str | None) -> None:
    assert AnswerValue(value).text == text


@pytest.mark.parametrize(
    ("value", "references"),
    [
        (None, []), ([], []), ("", [""]), ("Paris", ["Paris"]), (7, ["7"]),
        (["Paris", 7, True], ["Paris", "7", "true"]),
        (("a", "b"), ["a", "b"]), ({}, None), (["Paris", None], None), ([["Paris"]], None),
    ],
)  # fmt: skip
def test_references_are_a_scalar_or_a_list_of_scalars(value: Any, references: list[str] | None) -> None:
    read = References.read(value)
    assert read.texts == (references or [])
    assert bool(read.fault) is (references is None)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "null"), ([], "a list"), ((1,), "a list"), ({}, "an object"), (True, "true"), (3, "number 3"),
        (0.5, "number 0.5"), ("abc", "text 'abc'"), ("it's", 'text "it\'s"'), (MISSING, "nothing"),
        ("x" * 40, f"text '{'x' * 40}'"), ("x" * 41, f"text '{'x' * 40}...'"), ({1}, "a value of type set"),
    ],
)  # fmt: skip
def test_found_value_is_described_briefly(value: Any, found: str) -> None:
    assert AnswerValue(value).kind == found


def test_a_schema_that_doubles_its_work_at_each_level_is_given_up() -> None:
    levels = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}, {"$ref": f"#/$defs/l{n + 1}"}]} for n in range(30)}
    schema = {"$ref": "#/$defs/l0", "$defs": {**levels, "l30": {"type": "string"}}}
    with pytest.raises(SlowSchemaError, match=r"longer than 1 s"):
        JsonSchema.compile(schema).errors(1)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("```json\n[1]\n```", [1]), ("  ```\r\n\n[1]\n\n ``` \n", [1]), ("[1]", [1]), ("```", "```"),
        ("```\n```", "```\n```"), ("```json\n[1]\n``` and more", "```json\n[1]\n``` and more"),
    ],
)  # fmt: skip
def test_json_is_found_bare_or_in_one_fence(text: str, data: Any) -> None:
    assert AnswerText(text).json_or_text() == data


@pytest.mark.parametrize(
    "pattern",
    [
        *("a{1000000000}", "(?:ab|c){1000000}", "(?:a{1000}){1000}", "(?:a{1000,}){1000,}?", "(?:(?:a?){300}b){300}"),
        *("(?:" * 20 + "a" + "){2,3}" * 20, "[)](?:[(]a{1000}){1000}", "(?#[)(?:a{1000}){1000}", "()" * 6000),
        *("(?x)#[\n(?:a{1000}){1000}", "(?x)(?:a{ 1000 }) {1#\n000}", "(?V1)[[)]](?:a{1000}){1000}"),
        *("(?x)" + "a{1}" * 50 + "(?:a{1000}){1000}", "a{" + "9" * 5000 + "}"),
    ],
)
def test_a_pattern_that_is_large_when_it_is_written_out_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"repeats too much|groups, expected at most"):
        TimedPattern.compile(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "123e4567-e89b-12d3-a456-426614174000"),
        *[
            (r"a{0,1000000}", "a"),
            (r"(?:\d{1,3}\.){3}\d{1,3}", "127.0.0.1"),
            (".{5000,}", "a" * 5000),
            (r"\(" * 900, "(" * 900),
        ],
        *[("|".join(f"w{number}" for number in range(900)), "w9"), ("(?x) [0-9]{4} - [0-9]{2} # a\n", "2024-01")],
    ],
)
def test_a_pattern_of_usual_size_compiles(pattern: str, text: str) -> None:
    assert TimedPattern.compile(pattern).expression.fullmatch(text)

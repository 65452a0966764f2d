"""Reading JSON in answers."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.evaluators import AnswerText
from pytest_llmeval.evaluators._answers import NoJsonError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "`x` ```b```"}',
        '```json\n{"a": "`x` ```b```"}\n```',
        '```\n{"a": "`x` ```b```"}\n```',
        'Sure:\n\n```JSON\n{"a": "`x` ```b```"}\n```\nDone.',
        '  ```json {"a": "`x` ```b```"} ```',
        '```json\r\n{"a": "`x` ```b```"}\r\n```',
        '```json\n{"a": "`x` ```b```"}',
        '\ufeff{"a": "`x` ```b```"}\n',
        '```python\nprint(1)\n```\n```json\n{"a": "`x` ```b```"}\n```',
    ],
)
def test_json_is_read_bare_and_inside_a_fence(text: str) -> None:
    assert AnswerText(text).read_json() == {"a": "`x` ```b```"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('```json\n{"a": [1, 2', "found truncated JSON"),
        ('{"a": "\\u00', "found truncated JSON"),
        ('{"a": "\\', "found truncated JSON"),
        ('{"a": tru', "found truncated JSON"),
        ('{"a": 1.', "found truncated JSON"),
        ("[", "found truncated JSON"),
        ('{"a": 1 "b": 2', "expected JSON (Expecting ',' delimiter at line 1, column 9)"),
        ("{'a': 1}", "expected JSON (Expecting property name"),
        ('{"a": 1}}', "expected JSON (Extra data at line 1, column 9)"),
        ('{"a": "b" c": "d"}', "expected JSON (Expecting ',' delimiter"),
        ("", "found text '', expected JSON"),
        ('{"a": 1, "b": 2, "a": 3}', "found the key 'a' twice in one object"),
        ('{"a": NaN}', "found NaN, expected a finite number or null"),
        ("```json\n{}\n```\nor\n```json\n[]\n```", "found 2 fenced blocks of JSON, expected one"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "a number that cannot be read"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, message: str) -> None:
    with pytest.raises(NoJsonError) as raised:
        AnswerText(text).read_json()
    assert message in str(raised.value)


@given(JSON.filter(lambda value: isinstance(value, dict | list)), st.data())
def test_every_beginning_of_json_is_truncated(value: object, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert AnswerText(text).read_json() == value
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    with pytest.raises(NoJsonError, match="found truncated JSON"):
        AnswerText(cut).read_json()

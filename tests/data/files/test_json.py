import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import SuiteError
from pytest_llmeval.data import FaultLog, InputFile
from pytest_llmeval.data.files._json import JsonParser, RejectedError, scan_json
from pytest_llmeval.data.files._places import FilePlace


def faults_of(text: str) -> list[str]:
    faults = FaultLog("a.json")
    with pytest.raises(RejectedError):
        JsonParser(faults).parse(text)
    return [str(fault).removeprefix("a.json:") for fault in faults.listed()]


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ('{"a": 1,}', ["1:9  found '}', expected a key in double quotes"]),
        ("[1 ,\n ]", ["2:2  found ']', expected a JSON value"]),
        ("{\n  'a': 1}", ['2:3  found "\'", expected a key in double quotes']),
        ('{"a": None}', ["1:7  found 'None', expected a JSON value"]),
        ('{"a" 1}', ["1:6  found '1', expected ':' after the key"]),
        ("[1 22]", ["1:4  found '22', expected ',' or the closing bracket"]),
        ("[1,\n", ["2:1  found the end of the text, expected a JSON value"]),
        ('["x', ["1:2  found '\"', expected a closing quote for the text that begins here"]),
        ('["\t"]', ["1:3  found '\\t', expected no control character inside a text (escape it)"]),
        ("{} {}", ["1:4  found '{', expected the end of the text after the value"]),
        ("// x\n{}", ["1:1  found '/', expected a JSON value"]),
        (r'["\x"]', [r"1:3  found '\\', expected valid JSON (Invalid \escape)"]),
        ("[-NaN]", ["1:2  found '-NaN', expected a JSON value"]),
        ('{"a": 1, "a": 2}', ["1:10  a: found the key 'a' twice, expected it once (first at 1:2)"]),
        (
            '{"b": [{"a": 1,\n "\\u0061": 2}]}',
            ["2:2  b[0].a: found the key 'a' twice, expected it once (first at 1:9)"],
        ),
        ("[NaN]", ["1:2  [0]: found NaN, expected a finite number (or null)"]),
        ('{"a": -Infinity}', ["1:7  a: found -Infinity, expected a finite number (or null)"]),
        ("[0, -1e400]", ["1:5  [1]: found -1e400, expected a number below 1.8e308"]),
        (f"[-{'1' * 5000}]", ["1:2  [0]: found a number of 5001 digits, expected at most 4300"]),
        (r'{"a": "x\ud800"}', ["1:7  a: found half of a surrogate pair, expected a whole character"]),
        (r'["\ude00\ud83d"]', ["1:2  [0]: found half of a surrogate pair, expected a whole character"]),
        (r'{"\uDC00": 1}', [r"1:2  ['\udc00']: found half of a surrogate pair, expected a whole character"]),
        ("[" * 101 + "]" * 101, ["1:101  found more than 100 levels of nesting, expected fewer"]),
        ("[" * 100_000, ["1:101  found more than 100 levels of nesting, expected fewer"]),
        ('{"a":' * 100_000, ["1:501  found more than 100 levels of nesting, expected fewer"]),
    ],
)
def test_faults_have_their_position(text: str, faults: list[str]) -> None:
    assert faults_of(text) == faults


def test_all_faults_but_those_of_the_syntax_are_listed() -> None:
    text = '{"a": NaN,\n "a": [Infinity, "\\ud800"],\n "b": {"c": 1e999, "c": 0}}'
    assert [fault.partition("  ")[0] for fault in faults_of(text)] == ["1:7", "2:2", "2:8", "2:18", "3:13", "3:20"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud83d\ude00"', "😀"),
        (r'"\\ud800"', r"\ud800"),
        ("1e3", 1000.0),
        ("-0", 0),
        ("[" * 100 + "]" * 100, None),
        ('["]", "[[", "\\"", "a:b,c{"]', ["]", "[[", '"', "a:b,c{"]),
        ("null", None),
    ],
)
def test_good_json_is_read(text: str, value: Any) -> None:
    found = JsonParser(FaultLog("a.json")).parse(text)
    assert found == (json.loads(text) if value is None else value)


def test_file_is_read_with_line_and_column_of_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[\n  {"a": 1},\n  {"a": tru}\n]')
    with pytest.raises(SuiteError, match=r"^data\.json:3:9  found 'tru', expected a JSON value$"):
        InputFile(path, "data.json").read_json()
    path.write_text(" \n")
    with pytest.raises(SuiteError, match=r"^data\.json  found an empty file, expected JSON$"):
        InputFile(path, "data.json").read_json()
    path.write_text("3")
    assert InputFile(path, "data.json").read_json().data == 3


def test_values_and_keys_of_a_json_suite_are_located(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{\n "cases": [\n  {"id": "a", "labels": {"x:y": "]"}},\n  {"id": "b"}\n ]\n}')
    document = InputFile(path, "a.json").read_document()
    assert document.locate(["cases", 0, "labels", "x:y"]) == (3, 33)
    assert document.locate(["cases", 0, "labels", "x:y"], key=True) == (3, 26)
    assert document.locate(["cases", 1, "nope"]) == (4, 3)


def test_shallow_places_end_at_their_depth(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"a": [1, [2]], "b": {}},\n {"a": "]}"},\n 3]')
    document = InputFile(path, "a.json").read_json(depth=1)
    assert [document.locate([index]) for index in range(3)] == [(1, 2), (2, 2), (3, 2)]
    assert document.locate([0, "a"]) == (1, 2)
    assert InputFile(path, "a.json").read_json(depth=2).locate([0, "b"]) == (1, 23)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)
layouts = st.sampled_from([{"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False}, {"indent": 0}])


@given(values, layouts)
def test_what_json_writes_is_read_back(value: Any, layout: dict[str, Any]) -> None:
    assert JsonParser(FaultLog("a.json")).parse(json.dumps(value, **layout)) == value


@given(values, layouts)
def test_each_place_is_where_its_value_begins(value: Any, layout: dict[str, Any]) -> None:
    text = json.dumps(value, **layout)
    lines = text.split("\n")

    def check(part: Any, place: FilePlace) -> None:
        rest = "\n".join([lines[place.line - 1][place.column - 1 :], *lines[place.line :]])
        assert json.JSONDecoder().raw_decode(rest)[0] == part
        if isinstance(part, list):
            assert isinstance(place.children, list)
            for each, where in zip(part, place.children, strict=True):
                check(each, where)
        elif isinstance(part, dict):
            assert isinstance(place.children, dict)
            for key, (key_place, value_place) in place.children.items():
                check(key, key_place)
                check(part[key], value_place)
            assert place.children.keys() == part.keys()

    check(value, scan_json(text))


@pytest.mark.parametrize("limit", [1_000, 50_000])
def test_depth_is_told_whatever_the_recursion_limit(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "a.json"
    path.write_text('["[[" ,' + "[" * 2_000, encoding="utf-8")
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        with pytest.raises(SuiteError) as caught:
            InputFile(path, "a.json").read_json()
    finally:
        sys.setrecursionlimit(before)
    assert [str(each) for each in caught.value.faults] == [
        "a.json:1:107  found more than 100 levels of nesting, expected fewer"
    ]

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import SuiteError
from pytest_llmeval.data import FaultLog, InputFile
from pytest_llmeval.data.files._yaml import load_yaml


@pytest.fixture(params=["libyaml", "python"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML is built without libyaml")
    return str(request.param)


def load(text: str) -> Any:
    faults = FaultLog("a.yaml")
    data, _ = load_yaml(text, faults)
    faults.check()
    return data


def faults_of(text: str) -> list[str]:
    faults = FaultLog("a.yaml")
    load_yaml(text, faults)
    return [str(fault).removeprefix("a.yaml") for fault in faults.listed()]


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("Off", "Off"),
        ("12:30:45", "12:30:45"),
        ("2024-01-01", "2024-01-01"),
        ("010", 10),
        ("08", 8),
        ("-010", -10),
        ("+7", 7),
        ("0o10", 8),
        ("0xfF", 255),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("1e3", 1000.0),
        ("-.5", -0.5),
        ("1.", 1.0),
        ("1.5E-3", 0.0015),
        (".", "."),
        ("-", None),
        ("=", "="),
        ("true", True),
        ("FALSE", False),
        ("tRUE", "tRUE"),
        ("~", None),
        ("", None),
        ("Null", None),
        ("nULL", "nULL"),
        ("nan", "nan"),
        ("inf", "inf"),
        ("-.nan", "-.nan"),
        ("1.2.3", "1.2.3"),
        ("12 people", "12 people"),
        ("'010'", "010"),
        ('"true"', "true"),
        ("|\n  no\n", "no\n"),
        ("!!str 010", "010"),
        ("! 12", "12"),
        ("!!int '12'", 12),
        ("!!float 1", 1.0),
        ("!!null ''", None),
        ("!!bool 'true'", True),
        ("!!seq [1]", [1]),
        ("!!map {x: 1}", {"x": 1}),
        ("<<", "<<"),
    ],
)
def test_scalars_follow_the_core_schema_of_yaml_1_2(scalar: str, value: Any) -> None:
    if scalar == "-":
        assert load("a:\n  -") == {"a": [None]}
        return
    found = load(f"a: {scalar}")["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("a: 1\nb: 2\na: 3", [":3:1  a: found the key 'a' twice, expected it once (first at 1:1)"]),
        (
            "c:\n - x: {a: 1, a: 2}",
            [":2:14  c[0].x.a: found the key 'a' twice, expected it once (first at 2:8)"],
        ),
        ("1: x", [":1:1  found 1 as key, expected text: quote it as '1'"]),
        ("a: {True: x}", [":1:5  a: found true as key, expected text: quote it as 'true'"]),
        (
            "~: x\n1.5: y",
            [
                ":1:1  found null as key, expected text: quote it as 'null'",
                ":2:1  found 1.5 as key, expected text: quote it as '1.5'",
            ],
        ),
        ("? [a]\n: 1\nb: 2", [":1:3  found a list or mapping as key, expected text"]),
        ("a: .nan", [":1:4  a: found NaN, expected a finite number (quote it to keep it as text)"]),
        ("a: -.Inf", [":1:4  a: found infinity, expected a finite number (quote it to keep it as text)"]),
        ("a: 1e400", [":1:4  a: found 1e400, expected a number below 1.8e308"]),
        (f"a: {'1' * 5000}", [":1:4  a: found a number of 5000 digits, expected at most 4300"]),
        ("a: 1\n---\nb: 1", [":2:1  found a second document, expected one"]),
        ("a: !!int x", [":1:4  a: found 'x', expected a value of the type !!int"]),
        ("a: !!binary aGk=", [":1:4  a: found the tag !!binary, expected plain data without a tag"]),
        ("a: !!set {x, y}", [":1:4  a: found the tag !!set, expected plain data without a tag"]),
        ("a: !point [1, 2]", [":1:4  a: found the tag !point, expected plain data without a tag"]),
        (
            "a: !!python/object/apply:os.system [exit]",
            [":1:4  a: found the tag !!python/object/apply:os.system, expected plain data without a tag"],
        ),
        (
            "a: !!python/name:os.system ''",
            [":1:4  a: found the tag !!python/name:os.system, expected plain data without a tag"],
        ),
        ("a: *b", [":1:4  a: found *b, expected an anchor &b above it"]),
        ("a: &x\n  b: *x", [":2:6  a.b: found *x inside the value that it names, expected no cycle"]),
        ("a: &x [*x]", [":1:8  a[0]: found *x inside the value that it names, expected no cycle"]),
        ("a: {<<: 1}", [":1:9  a: found a merge key << with another value, expected a mapping or a list of mappings"]),
        (
            "a: {<<: [{}, 1]}",
            [":1:9  a: found a merge key << with another value, expected a mapping or a list of mappings"],
        ),
        ("a: {<<: {}, <<: {}}", [":1:13  a: found the merge key << twice, expected it once with a list of mappings"]),
        ("a:\n\tb: 1", [":2:1  found a tab, expected spaces: YAML does not allow tabs as indentation"]),
        ("é: \x07", [":1:4  found the character U+0007, expected it escaped in double quotes"]),
    ],
)
def test_faults_have_their_position(text: str, faults: list[str]) -> None:
    assert faults_of(text) == faults


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: 1\n  b: 2", ":2:4  found ': 2', expected valid YAML (mapping values are not allowed in this context)"),
        ("a: 'x\n", ':1:4  found "\'", which is not closed, expected valid YAML (found unexpected end of stream)'),
        ("a: 'x\n\nb", ':1:4  found "\'", which is not closed, expected valid YAML (found unexpected end of stream)'),
        ("a: [1\nb: 2", ":2:2  found ': 2', expected valid YAML (while parsing a flow sequence that begins at 1:4, "),
        ("a: @x", ":1:4  found '@x', expected valid YAML (while scanning for the next token"),
        ("%FOO\na: 1", ":1:5  found the end of the line, expected valid YAML (while scanning a directive"),
    ],
)
@pytest.mark.skipif(not hasattr(yaml, "CSafeLoader"), reason="the words are those of libyaml")
def test_syntax_faults_are_told_with_the_parsers_words(text: str, fault: str) -> None:
    (found,) = faults_of(text)
    assert found.startswith(fault)


@pytest.mark.usefixtures("parser")
def test_all_faults_are_listed_up_to_a_syntax_fault() -> None:
    assert [fault.partition("  ")[0] for fault in faults_of("a: .nan\n1: x\nb: 1\nb: 2\nc: ]")] == [
        ":1:4",
        ":2:1",
        ":4:1",
        ":5:4",
    ]


@pytest.mark.usefixtures("parser")
def test_faults_before_a_deep_nesting_are_listed_once() -> None:
    many = "a: 1\n" * 300
    assert faults_of(f"{many}b: {'[' * 3000}")[-1].endswith(f"... and {300 - FaultLog.MAX_LISTED} more")
    assert [fault.partition("  ")[0] for fault in faults_of("a: 1\na: 2\nb: " + "[" * 3000)] == [":2:1", ":3:103"]


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    ("text", "place"),
    [("[" * 100_000, ":1:101"), ("{a: " * 100_000, ":1:401"), ("- " * 100_000, ":1:201"), ("? " * 100_000, ":1:201")],
)
def test_deep_nesting_is_refused_without_a_crash(text: str, place: str) -> None:
    assert faults_of(text) == [f"{place}  found more than 100 levels of nesting, expected fewer"]


@pytest.mark.usefixtures("parser")
def test_nesting_up_to_the_limit_is_read() -> None:
    assert json.dumps(load("[" * 100 + "]" * 100)) == "[" * 100 + "]" * 100


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("form", ["[{}]", "{{<<: [{}]}}"])
def test_aliases_that_name_billions_are_refused(form: str) -> None:
    lines = ["a0: &a0 {x0: 1, x1: 1, x2: 1, x3: 1, x4: 1, x5: 1, x6: 1, x7: 1, x8: 1}"]
    lines += [f"a{n}: &a{n} " + form.format(", ".join([f"*a{n - 1}"] * 10)) for n in range(1, 12)]
    (fault,) = faults_of("\n".join(lines))
    assert "found aliases that expand to more than 10000000 values, expected fewer" in fault


@pytest.mark.usefixtures("parser")
def test_merge_keys_give_what_the_mapping_does_not_say_itself() -> None:
    text = "base: &b {x: 1, y: 2}\na: {y: 3, <<: *b}\nb:\n  <<: [{x: 0}, *b]\n  z: 4\nc: {'<<': 5}"
    data = load(text)
    assert data["a"] == {"x": 1, "y": 3}
    assert data["b"] == {"x": 0, "y": 2, "z": 4}
    assert data["c"] == {"<<": 5}


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("mark", ["\x85", "\u2028", "\u2029"])
def test_former_line_breaks_are_text(mark: str) -> None:
    data = load(f'a: x{mark}y\nb: "x{mark}  y"\nc: |\n  x{mark}  y\nd: \ue000')
    assert data == {"a": f"x{mark}y", "b": f"x{mark}  y", "c": f"x{mark}  y\n", "d": "\ue000"}
    (fault,) = faults_of(f"a: x{mark}y\nb: 1\nb: 2")
    assert fault.startswith(":3:1")


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("escape", [r"\ud800", r"\U00110000", r"\UFFFFFFFF"])
def test_escape_that_names_no_character_is_a_fault(escape: str) -> None:
    assert len(faults_of(f'a: "{escape}"')) == 1


@pytest.mark.usefixtures("parser")
def test_a_pair_of_escapes_is_one_character_as_in_json() -> None:
    smile = "\U0001f600"
    assert load(json.dumps({"a": smile, smile: [f"x{smile}{smile}"]})) == {"a": smile, smile: [f"x{smile}{smile}"]}
    assert load(r"""{a: '\ud83d\ude00', b: \ud83d\ude00}""") == dict.fromkeys("ab", r"\ud83d\ude00")
    assert faults_of(r'{a: "\ud83d\ude00", b: "\ude00\ud83d"}') == [
        ":1:24  b: found half of a surrogate pair, expected a whole character"
    ]


@pytest.mark.parametrize("text", ["# nothing\n", "---\n", "--- ~\n", "--- # x\n...\n"])
def test_suite_without_data_is_a_fault(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(SuiteError, match=r"^a\.yaml  found a file without data, expected a suite: "):
        InputFile(tmp_path / "a.yaml", "a.yaml").read_document()


SUITE = """\
suite: x
cases:
  - &first
    id: paris
    thresholds: {f1: 0.5, "a b": 1}
  - <<: *first
    id: rome
  - *first
"""


@pytest.mark.parametrize(
    ("path", "key", "place"),
    [
        ([], False, (1, 1)),
        (["suite"], False, (1, 8)),
        (["suite"], True, (1, 1)),
        (["cases"], False, (3, 3)),
        (["cases", 0], False, (3, 5)),
        (["cases", 0, "id"], False, (4, 9)),
        (["cases", 0, "thresholds", "a b"], True, (5, 27)),
        (["cases", 0, "thresholds", "a b"], False, (5, 34)),
        (["cases", 0, "thresholds", "nope"], True, (5, 17)),
        (["cases", 0, "thresholds", "f1", "min"], False, (5, 22)),
        (["cases", 1], False, (6, 5)),
        (["cases", 1, "id"], False, (7, 9)),
        (["cases", 1, "thresholds", "f1"], False, (5, 22)),
        (["cases", 2], False, (8, 5)),
        (["cases", 2, "id"], False, (4, 9)),
        (["cases", 3, "id"], False, (3, 3)),
        (["cases", -1], False, (3, 3)),
        (["cases", "0"], False, (3, 3)),
        (["nope"], True, (1, 1)),
    ],
)
def test_values_keys_and_nearest_ancestors_are_located(
    tmp_path: Path, path: list[str | int], key: bool, place: tuple[int, int]
) -> None:
    (tmp_path / "a.yaml").write_text(SUITE)
    assert InputFile(tmp_path / "a.yaml", "a.yaml").read_document().locate(path, key=key) == place


def test_problem_has_place_and_path(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SUITE)
    document = InputFile(tmp_path / "a.yaml", "evals/a.yaml").read_document()
    fault = document.fault(["cases", 1, "id"], "found x, expected y", key=True)
    assert str(fault) == "evals/a.yaml:7:5  cases[1].id: found x, expected y"


# What YAML lets a text hold unescaped, as JSON writes it.
texts = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"], exclude_characters="\ufeff\x7f"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)


@given(values)
def test_json_is_yaml(value: Any) -> None:
    assert load(json.dumps([value], ensure_ascii=False)) == [value]


@given(st.dictionaries(texts, values, min_size=1))
def test_what_a_yaml_writer_quotes_is_read_back(value: dict[str, Any]) -> None:
    written = yaml.dump(value, Dumper=yaml.SafeDumper, default_style='"', allow_unicode=False)
    assert load(written) == value

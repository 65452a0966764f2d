"""The table of keys: each is in the schema, the types for Python and the documentation, and both front ends take it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import pytest_llmeval as ev
from pytest_llmeval import SuiteError
from pytest_llmeval.core import unknown_name
from pytest_llmeval.run import _entries as entries
from pytest_llmeval.suites import KEYS, Key, LoadedSuite, Registry, load_suite
from pytest_llmeval.suites._schema import GRAMMARS, suite_schema, without_links

ROOT = Path(__file__).parents[2]
SCHEMA = suite_schema(Registry.installed())["properties"]
BASE: dict[str, Any] = {"evaluators": ["text"], "cases": [{"expected": "x", "prediction": "x"}]}
NAMED = {name: key for name, key in KEYS.items() if key.python is not None}


def loaded(folder: Path, data: dict[str, Any]) -> LoadedSuite:
    path = folder / "s.eval.json"
    path.write_text(json.dumps(data))
    return load_suite(path, Registry.installed(), root=folder, display_path=path.name)


def declared(**keys: Any) -> LoadedSuite:
    return ev.suite("s", **{**BASE, **keys}).load()


@pytest.mark.parametrize(("name", "key"), KEYS.items(), ids=list(KEYS))
def test_a_key_is_in_the_schema_with_its_meaning(name: str, key: Key) -> None:
    assert SCHEMA[name]["description"] == without_links(key.meaning)
    assert "](" not in SCHEMA[name]["description"]


@pytest.mark.parametrize("name", NAMED)
def test_a_key_is_an_argument_with_a_type(name: str) -> None:
    stub = Path(entries.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    arguments = re.search(r"^class SuiteArguments\(.*?(?=^\S)", stub, re.DOTALL | re.MULTILINE)
    assert arguments is not None
    assert re.search(rf"^    {name}: ", arguments[0], re.MULTILINE)


@pytest.mark.parametrize(("name", "key"), KEYS.items(), ids=list(KEYS))
def test_a_key_is_in_the_table_of_the_documentation(name: str, key: Key) -> None:
    page = (ROOT / "docs/suite-files.md").read_text(encoding="utf-8")
    assert f"\n| `{name}` | {key.meaning} | {key.otherwise}" in page


@pytest.mark.parametrize(("name", "key"), NAMED.items(), ids=list(NAMED))
def test_both_front_ends_read_a_key_in_the_same_way(tmp_path: Path, name: str, key: Key) -> None:
    value = json.loads(json.dumps({name: key.default}, default=vars))
    file, python = loaded(tmp_path, {**value, **BASE}), declared(**value | BASE)
    if key.carried and name != "cases":
        assert getattr(file, name) == getattr(python, name)


@pytest.mark.parametrize("name", NAMED)
def test_both_front_ends_name_the_key_that_an_unknown_one_probably_is(tmp_path: Path, name: str) -> None:
    wrong = f"{name[0]}{name}"
    message = re.escape(f"unknown key {wrong}, did you mean {name}?")
    assert unknown_name("key", wrong, KEYS) == f"unknown key {wrong}, did you mean {name}?"
    with pytest.raises(SuiteError, match=message):
        loaded(tmp_path, {**BASE, wrong: 1})
    with pytest.raises(SuiteError, match=message):
        declared(**{wrong: 1})


def test_null_is_the_absence_of_a_key_unless_it_is_a_value() -> None:
    nothing = declared(**dict.fromkeys(name for name in NAMED if name != "evaluators"))
    assert nothing.confidence is None
    assert declared(confidence=None, judge=None) == nothing
    assert declared().confidence == KEYS["confidence"].default


def test_every_list_in_python_may_be_another_iterable() -> None:
    assert declared(group_by=iter(())).group_by == ()
    assert declared(gates=(each for each in ["f1 >= 0"])).gates == declared(gates=["f1 >= 0"]).gates


def test_every_form_by_name_has_a_schema() -> None:
    assert {form for key in KEYS.values() for form in key.forms if isinstance(form, str)} == set(GRAMMARS)

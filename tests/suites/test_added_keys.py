"""Keys of suite files that plugins add: checked, listed and compared as those that ship are."""

import re
from pathlib import Path
from typing import Any, Literal

import jsonschema
import pytest

import pytest_llmeval as ev
from pytest_llmeval import LlmevalError, Registry, SuiteError
from pytest_llmeval.core import CHECKS_DEFERRED, with_value
from pytest_llmeval.extend import Key
from pytest_llmeval.suites import LoadedSuite, load_suite
from pytest_llmeval.workbench._authoring import suite_schema
from pytest_llmeval.workbench._suite_dump import dump_suite

SUITE = "evaluators: [text]\ncases: [{id: a, expected: x, prediction: x}]\n"


def read_weight(reading: Any, weight: float) -> float:
    if weight < 0:
        raise ValueError(f"found {weight:g}, expected a weight of at least 0")
    if weight == 7:
        reading.fault(("weight",), "found 7, expected another number")
    return weight / (weight - 1)


KEYS = {
    "owner": Key("the team that answers for the suite", type=str, decides="form"),
    "tier": Key("how much it matters", "`low`", type=Literal["low", "high"], default="low", decides="verdicts"),
    "weight": Key("its weight", "2", type=float, default=2.0, read=read_weight),
}


@pytest.fixture
def registry() -> Registry:
    registry = Registry.installed()
    for name, key in KEYS.items():
        registry.register_key(name, key)
    return registry


def load(folder: Path, text: str, registry: Registry) -> LoadedSuite:
    path = folder / "s.eval.yaml"
    path.write_text(SUITE + text)
    return load_suite(path, registry, root=folder, display_path=path.name)


@pytest.mark.parametrize(
    ("text", "extra"),
    [
        ("", {"owner": None, "tier": "low", "weight": 2.0}),
        ("owner: search\ntier: high\nweight: 3", {"owner": "search", "tier": "high", "weight": 1.5}),
        ("owner: null\ntier: null\nweight: null", {"owner": None, "tier": "low", "weight": 2.0}),
    ],
)
def test_a_suite_has_the_values_of_added_keys(tmp_path: Path, registry: Registry, text: str, extra: Any) -> None:
    suite = load(tmp_path, text, registry)
    assert suite.extra == extra
    assert suite.written("scores").keys() == {"weight"}
    assert suite.written("scores", "verdicts")["tier"] == extra["tier"]
    assert load(tmp_path, "", Registry.installed()).extra == {}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("owner: 3", "s.eval.yaml:3:8  owner: found the number 3, expected text"),
        ("tier: hihg", "s.eval.yaml:3:7  tier: found the text 'hihg' (did you mean 'high'?), expected one of"),
        ("owned: me", "s.eval.yaml:3:1  owned: unknown key owned, did you mean owner?"),
        ("weight: -1", "s.eval.yaml:3:9  weight: found -1, expected a weight of at least 0"),
        ("weight: 7", "s.eval.yaml:3:9  weight: found 7, expected another number"),
        ("weight: 1", "s.eval.yaml:3:9  weight: the reader of this key failed: ZeroDivisionError"),
    ],
)
def test_a_wrong_value_of_an_added_key_is_a_fault_in_its_place(
    tmp_path: Path, registry: Registry, text: str, fault: str
) -> None:
    with pytest.raises(SuiteError, match=re.escape(fault)):
        load(tmp_path, text, registry)


def test_a_suite_in_python_has_added_keys(registry: Registry) -> None:
    keys: Any = {"owner": "search", "tier": None}
    cases = [{"id": "a", "expected": "x", "prediction": "x"}]
    with pytest.raises(SuiteError, match="unknown key owner"):
        ev.suite("s", evaluators=["text"], cases=cases, **keys)
    with with_value(CHECKS_DEFERRED, True):
        declared = ev.suite("s", evaluators=["text"], cases=cases, **keys)
    assert declared.load(registry).extra == {"owner": "search", "tier": "low", "weight": 2.0}


def test_editors_know_added_keys(registry: Registry) -> None:
    schema = suite_schema(registry)
    assert schema["properties"]["owner"]["description"] == "the team that answers for the suite"
    check = jsonschema.Draft7Validator(schema)
    data: dict[str, Any] = {"evaluators": ["text"], "cases": [], "tier": "high"}
    assert check.is_valid(data)
    assert not check.is_valid({**data, "tier": "hihg"})
    assert not jsonschema.Draft7Validator(suite_schema(Registry.installed())).is_valid(data)


def test_a_comparison_of_commits_sees_added_keys_that_decide_something(tmp_path: Path, registry: Registry) -> None:
    suite = load(tmp_path, "owner: me\nweight: 3\n", registry)
    settings = dump_suite(suite, "s.eval.yaml").settings
    assert settings.keys() & KEYS.keys() == {"tier", "weight"}
    assert settings["weight"] == 3


@pytest.mark.parametrize(
    ("name", "key", "message"),
    [
        (
            "owner",
            Key("another", type=int),
            r"the suite key name 'owner' is taken by \S*test_added_keys\.py:\d+: choose another",
        ),
        ("my owner", Key("one", type=str), "expected letters a to z, digits and underscores"),
        ("boss", Key("one"), "expected a pytest_llmeval.extend.Key with a type"),
        ("boss", str, "expected a pytest_llmeval.extend.Key with a type"),
        (
            "boss",
            Key("one", type=str, default=3),
            "suite key 'boss': found the default 3 of another type",
        ),
        ("boss", Key("one", type="str"), "suite key 'boss': found the type 'str', expected one such as str"),
        ("boss", Key("one", type=str, decides="look"), "suite key 'boss': unknown value of decides look"),  # type: ignore[arg-type]
    ],
)
def test_a_key_that_cannot_be_added_is_refused(registry: Registry, name: str, key: Any, message: str) -> None:
    with pytest.raises(LlmevalError, match=message):
        registry.register_key(name, key)


def test_a_key_that_ships_is_not_replaced(tmp_path: Path, registry: Registry) -> None:
    registry.register_key("gates", Key("others", type=str))
    with pytest.raises(
        LlmevalError,
        match=r"test_added_keys\.py:\d+: the suite key name 'gates' is taken by pytest_llmeval: choose another",
    ):
        load(tmp_path, "", registry)

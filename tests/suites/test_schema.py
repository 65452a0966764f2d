"""The JSON Schema of suite files: a schema, and one that agrees with the loader."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its types are a distribution of their own
import pytest
import yaml

from pytest_llmeval import Case, Evaluator, Metric, Observation, SuiteError, Sums
from pytest_llmeval.core import FloatArray
from pytest_llmeval.suites import Registry, load_suite
from pytest_llmeval.suites._keys import SuiteEntry
from pytest_llmeval.suites._schema import suite_schema

SCHEMA = suite_schema(Registry.installed())
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)

CASES = "cases: [{id: a, expected: x, prediction: y, labels: {a: 1, b: 2, k: 3}}]\n"
TEXT = "evaluators: [text]\n"

GOOD = [
    TEXT + CASES,
    "suite: s\ndescription: d\nmode: bulk\nconfidence: null\ngroup_by: [a, b]\n" + TEXT + CASES,
    "evaluators: [{text: {metrics: [f1], tokenizer: words, as: t}}, {classification: null}]\n" + CASES,
    "$schema: ../suite.schema.json\n" + TEXT + CASES,
    TEXT + "target: a.b:c\n" + CASES,
    TEXT + "target: {python: 'a:b', timeout: 2}\n" + CASES,
    TEXT + "target: {command: [cat, -u], timeout: 2}\n" + CASES,
    TEXT + "target: {http: {url: 'http://h/', request: {q: {$input: true}}}}\n" + CASES,
    TEXT + "target: {http: {url: 'http://h/', request: {q: {$each: {$input: a}}}, batch: 9, response: a.b}}\n" + CASES,
    TEXT
    + "target: {http: {url: 'http://h/', request: {$each: [{$id: true}, {$input: a}]}, response: {id: b}}}\n"
    + CASES,
    TEXT + "thresholds: {f1: 0.5, rougeL: {min: 0, max: 1}}\n" + CASES,
    TEXT + "gates: [f1 > 0, {metric: f1, min: 0, max: 1, by: k, min_cases: 2, max_errors: 1, partial: true}]\n" + CASES,
    TEXT + "cases: [{id: 7, input: {a: [null]}, labels: {a: 1, b: x, c: true}, tags: [t], thresholds: {f1: 0.1}}]\n",
]

BAD = [
    CASES,
    TEXT + "case: []\n" + CASES,
    "evaluators: [txet]\n" + CASES,
    "evaluators: [{text: {metrics: f1}}]\n" + CASES,
    "evaluators: [{text: {metric: [f1]}}]\n" + CASES,
    "evaluators: [{text: {}, classification: {}}]\n" + CASES,
    "suite: 3\n" + TEXT + CASES,
    TEXT + "mode: item\n" + CASES,
    TEXT + "group_by: a\n" + CASES,
    TEXT + "thresholds: {f1: high}\n" + CASES,
    TEXT + "thresholds: {f1: {mni: 1}}\n" + CASES,
    TEXT + "gates: [7]\n" + CASES,
    TEXT + "gates: [{min: 1}]\n" + CASES,
    TEXT + "target: {python: 'a:b', timeuot: 2}\n" + CASES,
    TEXT + "target: {python: 'a:b', command: [cat]}\n" + CASES,
    TEXT + "target: {command: cat}\n" + CASES,
    TEXT + "target: {http: {request: {q: {$input: true}}}}\n" + CASES,
    TEXT + "target: {http: {url: 'http://h/', request: {q: {$input: true}}, method: DELETE}}\n" + CASES,
    TEXT + "source: {format: jsnol, path: x}\n" + CASES,
    TEXT + "source: {format: jsonl}\n" + CASES,
    TEXT + "source: {path: x.jsonl}\n" + CASES,
    TEXT + "cases: [{id: 1.5}]\n",
    TEXT + "cases: [{labels: {a: [x]}}]\n",
    TEXT + "cases: [{predicton: y}]\n",
    TEXT + "cases: [5]\n",
]


def loads(folder: Path, text: str) -> bool:
    path = folder / "s.eval.yaml"
    path.write_text(text)
    try:
        return not load_suite(path, Registry.installed(), root=folder).faults
    except SuiteError:
        return False


def test_it_is_a_schema_of_the_dialect_that_it_names() -> None:
    assert SCHEMA["$schema"] == "http://json-schema.org/draft-07/schema#"
    jsonschema.Draft7Validator.check_schema(SCHEMA)


def test_every_reference_leads_to_a_definition() -> None:
    found: list[str] = []

    def walk(part: Any) -> None:
        if isinstance(part, Mapping):
            found.extend(value for key, value in part.items() if key == "$ref")
            part = list(part.values())
        if isinstance(part, list):
            for each in part:
                walk(each)

    walk(SCHEMA)
    assert {each.removeprefix("#/definitions/") for each in found} <= set(SCHEMA.get("definitions", {}))


@pytest.mark.parametrize("text", GOOD)
def test_the_schema_takes_what_the_loader_takes(tmp_path: Path, text: str) -> None:
    assert loads(tmp_path, text)
    assert [error.message for error in VALIDATOR.iter_errors(yaml.safe_load(text))] == []


@pytest.mark.parametrize("text", BAD)
def test_the_schema_refuses_what_the_loader_refuses(tmp_path: Path, text: str) -> None:
    assert not loads(tmp_path, text)
    assert not VALIDATOR.is_valid(yaml.safe_load(text))


def test_every_key_of_the_top_level_is_there_to_be_completed() -> None:
    assert set(SCHEMA["properties"]) == {"$schema", *(each.name for each in fields(SuiteEntry))}
    assert SCHEMA["additionalProperties"] is False


@pytest.mark.parametrize("name", Registry.installed().sources)
def test_every_source_is_there_with_its_options(name: str) -> None:
    required: dict[str, dict[str, Any]] = {
        "ecac": {"gold": "data", "subtask": 2},
        "emotion_cause": {"gold": "data", "subtask": 2},
        "json_v3": {"gold": "data"},
        "trec": {"qrels": "data"},
    }
    source = {"format": name, "predictions": None, **required.get(name, {"path": "data"})}
    assert VALIDATOR.is_valid({"evaluators": ["text"], "source": source})
    assert not VALIDATOR.is_valid({"evaluators": ["text"], "source": {**source, "no_such_option": 1}})


def test_a_registered_evaluator_is_there_with_its_options() -> None:
    @dataclass(frozen=True)
    class Mine(Evaluator):
        name = "mine"
        share: float = 0.5

        def describe(self) -> Sequence[Metric]:
            return ()

        def measure(self, case: Case) -> Observation:
            return Observation({case.id: 1})

        def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
            return dict(sums)

    registry = Registry.installed()
    registry.register(Mine)
    validator = jsonschema.Draft7Validator(suite_schema(registry))
    assert validator.is_valid({"evaluators": ["mine", {"mine": {"share": 0.2, "as": "other"}}]})
    assert not validator.is_valid({"evaluators": [{"mine": {"share": "half"}}]})
    assert not validator.is_valid({"evaluators": [{"mine": {"shares": 0.2}}]})
    assert not VALIDATOR.is_valid({"evaluators": ["mine"]})

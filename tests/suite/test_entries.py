"""Evaluators and checks as functions: the entries that they return, and their types."""

import importlib.util
from typing import Any

import pytest
from paths import ROOT

import pytest_llmeval as ev
from pytest_llmeval.data.formats.fields import CELL_CHECKS
from pytest_llmeval.suite.registry import default_registry


def script(name: str) -> Any:
    """Return a script of the project's own as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_published_schema_is_that_of_what_ships() -> None:
    module = script("suite_schema")
    assert module.PUBLISHED.read_text(encoding="utf-8") == module.text(), "run python .ci/suite_schema.py"
    for template in (ROOT / "pytest_llmeval" / "cli" / "templates").glob("*.txt"):
        (first, *_) = template.read_text(encoding="utf-8").splitlines()
        assert first == f"# yaml-language-server: $schema={module.SCHEMA_URL}"
    assert module.SCHEMA_URL.endswith(f"/main/{module.PUBLISHED.relative_to(ROOT).as_posix()}")


def test_the_types_are_those_of_the_schema() -> None:
    module = script("entries_stub")
    made = "".join(module.stub().split()).replace(",)", ")").replace('"', "'")
    there = "".join(module.STUB.read_text(encoding="utf-8").split()).replace(",)", ")").replace('"', "'")
    assert made.replace(",]", "]") == there.replace(",]", "]"), "run python .ci/entries_stub.py"


@pytest.mark.parametrize(
    ("made", "entry"),
    [
        (ev.text(metrics=["f1"]), {"text": {"metrics": ["f1"]}}),
        (ev.text(as_="draft", on="output.text"), {"text": {}, "as": "draft", "on": "output.text"}),
        (ev.fields({"total": "number"}), {"fields": {"total": "number"}}),
        (ev.narrative_characters(match="strict"), {"narrative.characters": {"match": "strict"}}),
        (ev.evaluator("own", weight=2), {"own": {"weight": 2}}),
        (ev.max_words(30), {"max_words": 30}),
        (ev.number(min=1, max=2, weight=0.5), {"number": {"min": 1, "max": 2}, "weight": 0.5}),
        (ev.refusal(), {"refusal": True}),
        (ev.not_(ev.contains("x", name="no x")), {"not_contains": "x", "name": "no x"}),
        (ev.not_("refusal"), {"not_refusal": True}),
        (ev.any_of(ev.contains("a"), "is_json"), {"any_of": [{"contains": "a"}, "is_json"]}),
        (ev.at_least(1, ev.contains("a")), {"at_least": {"n": 1, "of": [{"contains": "a"}]}}),
        (ev.judge("Is polite."), {"judge": "Is polite."}),
        (ev.judge(mode="continuous"), {"judge": {"mode": "continuous"}}),
    ],
)
def test_an_entry_is_what_a_suite_file_says(made: dict[str, Any], entry: dict[str, Any]) -> None:
    assert made == entry


def test_a_check_takes_an_argument_or_its_parts() -> None:
    with pytest.raises(TypeError, match="number: found an argument and min, expected one or the other"):
        ev.number(3, min=1)


def test_a_name_that_is_no_evaluator_and_no_check_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="module 'pytest_llmeval' has no attribute 'textt'"):
        ev.textt  # type: ignore[attr-defined]  # noqa: B018 (as above)


def test_every_check_can_be_a_column_of_a_csv_file() -> None:
    assert set(default_registry().checks) == set(CELL_CHECKS)

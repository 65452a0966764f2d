"""Nothing of a configuration of promptfoo is lost in silence: the source is walked, whatever the importer says."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from project import IMPORTERS, source_paths, write_source

from pytest_llmeval.exchange import ImportedSource, ImportOptions
from pytest_llmeval.exchange._commands import import_source

SMALL = {
    "description": "all that a configuration can say",
    "prompts": ["{{a}}", {"raw": "{{a}}!", "label": "loud", "config": {"x": 1}}, {"id": "exec: x"}],
    "providers": [
        "openai:gpt-4.1",
        {"id": "openai:gpt-4.1", "label": "x", "config": {"temperature": 1, "tools": [], "odd": {"a": 1}}, "delay": 3},
        {"id": "exec: x", "config": {"temperature": 1}},
        7,
    ],
    "defaultTest": {"assert": [{"type": "contains", "value": "{{a}}"}], "options": {"provider": "openai:gpt-4o"}},
    "tests": [
        {
            "description": "d",
            "vars": {"a": "b", "c": "file://missing.txt"},
            "assert": [
                {"type": "assert-set", "assert": [{"type": "equals", "value": "x"}, {"type": "python", "value": "1"}]},
                {"type": "javascript", "value": "1"},
                {"type": "similar", "value": "x", "metric": "m"},
            ],
            "options": {"transformVars": "x", "unknown": 1},
            "metadata": {"a": 1, "b": {"c": 2}},
            "threshold": 0.5,
            "unknown": {"deep": [1, 2]},
        },
        {"vars": {"a": "{{ b | c }}"}, "assert": [{"type": "contains", "value": "y"}]},
        "file://missing.csv",
        {"path": "file://x.py:f"},
    ],
    "scenarios": [
        {"config": [{"vars": {"a": "s"}}], "tests": [{"assert": [{"type": "equals", "value": "z"}]}], "x": 1}
    ],
    "evaluateOptions": {"maxConcurrency": 1, "repeat": 2, "other": 3},
    "unheard": {"of": {"this": [1]}},
}


def constructs_of(path: Path) -> ImportedSource:
    return import_source("promptfoo", path, path.name, ImportOptions())


def assertions(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of everything that stands in a list under ``assert``."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            if key == "assert" and isinstance(value, list):
                yield from ((*path, key, number) for number in range(len(value)))
            yield from assertions(value, (*path, key))
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from assertions(value, (*path, number))


def check_accounted(path: Path) -> None:
    """Check that every value, assertion, option and provider of a file has exactly one fate."""
    source = constructs_of(path)
    found = Counter(each.path for each in source.constructs if each.file == path.name)
    assert {each: count for each, count in found.items() if count > 1} == {}
    data = yaml.load(path.read_text(encoding="utf-8"), yaml.CBaseLoader)
    covering = [steps for steps in source_paths(data) if not any(steps[:end] in found for end in range(len(steps) + 1))]
    assert covering == []
    if source.suite is not None:
        lost = {each.path for each in source.constructs if each.fate == "not imported"}
        for steps in assertions(data):
            by_itself = steps in found
            assert by_itself or any(steps[:end] in lost for end in range(len(steps))), steps


def test_every_part_of_a_configuration_has_one_fate(tmp_path: Path) -> None:
    check_accounted(write_source(tmp_path, "suite.yaml", SMALL))


def test_a_key_that_the_importer_does_not_know_is_not_imported(tmp_path: Path) -> None:
    source = constructs_of(write_source(tmp_path, "suite.yaml", SMALL))
    lost = {each.path for each in source.constructs if each.fate == "not imported"}
    assert {("unheard",), ("tests", 0, "unknown"), ("providers", 1, "config", "odd")} <= lost


@pytest.mark.skipif(not IMPORTERS.is_dir(), reason="the files of other tools are not beside this repository")
def test_every_part_of_the_published_examples_has_one_fate() -> None:
    files = sorted(IMPORTERS.glob("promptfoo/**/promptfooconfig*.yaml"))
    assert files
    for path in files:
        check_accounted(path)

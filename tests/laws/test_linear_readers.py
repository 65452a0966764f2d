"""Each function that reads a text takes steps as the text grows: they are counted, at a length and at twice as much."""

import ast
import importlib
import inspect
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

import pytest
from project import ROOT

from pytest_llmeval import get_evaluator
from pytest_llmeval.core import LlmevalError, MetricIndex
from pytest_llmeval.data import FaultLog
from pytest_llmeval.data.files._json import scan_json
from pytest_llmeval.exchange._contract import LeftOutError

SHORT, LONG = 150, 300
STEEPEST = 2.6
"""Most times as many steps for a text of twice the length: linear is 2, quadratic 4."""

READS = {"content", "data", "document", "markdown", "prediction", "reply", "source", "text", "written"}
"""Names of a first parameter that is a text from outside."""

UNITS = [
    *("a", "a ", "A.", "0", "0 ", "1,", " ", "\n", "-", "- a\n", ".", ". ", ",", ";", ":", "'", '"', '\\"', "\\", "|"),
    *("(", ")", "()", "[", "]", "[]", "[],", "{", "}", "{}", '{"a":', '"a":1,', '{"a":1}', "[[", "]]", "{{", "{{a}}"),
    *(
        "```",
        "```\n",
        "```json\n",
        "<think>",
        "</think>",
        "<a>",
        "&",
        "#",
        "# a\n",
        "*",
        "**",
        "_",
        "=",
        "a=",
        "http://",
    ),
    *(
        "，",
        "。",
        "“",
        "”",
        "《",
        "》",
        "日",
        "日 ",
        "é",
        "e\u0301",
        "\ud800",
        "\x1b[1m",
        "yes ",
        "no ",
        "a: b\n",
        "- ",
        "!a ",
    ),
]
FRAMES = ["{}", '{{"a":1,{}"a":2}}', "```\n{}\n```", "[{}1]"]

GIVEN: Mapping[str, Callable[[], Any]] = {
    "chosen": list,
    "count": lambda: 2,
    "delimiter": lambda: ",",
    "environment": dict,
    "faults": lambda: FaultLog("file"),
    "ground_truth": lambda: "b",
    "keep_marks": lambda: False,
    "key": lambda: "a",
    "levels": lambda: [0.0, 1.0],
    "limit": lambda: 60,
    "listed": list,
    "message": lambda: "found nothing",
    "metric": lambda: "f1",
    "metrics": lambda: MetricIndex.from_evaluators({"text": get_evaluator("text")}),
    "rank": lambda: _rank,
    "reference": lambda: "b",
    "references": lambda: ["b"],
    "secrets": lambda: ["0123456789abcdef"],
    "split": lambda: str.split,
    "tag": lambda: "tag:yaml.org,2002:int",
    "values": dict,
    "whole": lambda: True,
    "width": lambda: 80,
    "write": lambda: str,
}
"""What further parameters get, by their names: a reader with another one needs an entry."""

NO_TEXT_FROM_OUTSIDE = {
    "add_yaml_fault": "`load_yaml` calls it with the fault that it found",
    "scan_json": "valid JSON only: `read_document` and parsers call it with what they have read",
}
"""Readers whose text is no text from outside as it comes, and why."""


def _rank(value: object) -> int:
    return isinstance(value, dict)


def readers() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield every public function whose first parameter is a text from outside."""
    for path in sorted((ROOT / "pytest_llmeval").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.args.args:
                first = node.args.args[0]
                is_text = first.annotation is not None and ast.unparse(first.annotation) == "str"
                if is_text and first.arg in READS:
                    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
                    yield f"{module}.{node.name}", getattr(importlib.import_module(module), node.name)


READERS = {name: reader for name, reader in readers() if name.rpartition(".")[2] not in NO_TEXT_FROM_OUTSIDE}


def further(reader: Callable[..., Any]) -> dict[str, Any]:
    """Return the arguments of a reader besides the text."""
    _, *others = inspect.signature(reader).parameters.values()
    return {each.name: GIVEN[each.name]() for each in others if each.default is each.empty}


def steps_of(reader: Callable[..., Any], text: str) -> int:
    """Return the lines and calls that reading takes, with the elements that a list is searched for or counted in."""
    steps = 0

    def line(_: FrameType, event: str, __: Any) -> Any:
        nonlocal steps
        steps += event == "line"
        return line

    def call(_: FrameType, event: str, function: Any) -> None:
        nonlocal steps
        if event == "c_call":
            owner = getattr(function, "__self__", None)
            if isinstance(owner, list | tuple) and function.__name__ in ("count", "index", "remove"):
                steps += len(owner)
            else:
                steps += 1

    others = further(reader)
    sys.settrace(line)
    sys.setprofile(call)
    try:
        found = reader(text, **others)
        if isinstance(found, Iterator):
            list(found)
    except (LlmevalError, LeftOutError, ValueError, RecursionError, ArgumentTypeError):
        pass
    finally:
        sys.setprofile(None)
        sys.settrace(None)
    return steps


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_steps_as_its_text_grows(name: str) -> None:
    reader = READERS[name]
    steep = {}
    for frame in FRAMES:
        for unit in UNITS:
            few, many = (steps_of(reader, frame.format(unit * times)) for times in (SHORT, LONG))
            if many > STEEPEST * max(few, SHORT):
                steep[frame, unit] = few, many
    assert steep == {}


@pytest.mark.parametrize("unit", ["[],", "{},", '{"a":[]},', '"\\"",', "1,", '"日",', "\n1,"])
def test_places_of_json_take_steps_as_it_grows(unit: str) -> None:
    few, many = (steps_of(scan_json, f"[{unit * times}1]") for times in (SHORT, LONG))
    assert many <= STEEPEST * few


def test_readers_are_found() -> None:
    names = {name.rpartition(".")[2] for name in READERS}
    assert names >= {"closing_object", "has_secret", "load_yaml", "read_json", "read_transcript", "spoken_text"}


@pytest.mark.parametrize(
    "slow",
    [
        lambda text: [text for at in range(len(text)) for _ in range(at)],
        lambda text: [list(text).count(character) for character in text],
    ],
)
def test_slow_readers_are_noticed(slow: Callable[[str], object]) -> None:
    assert steps_of(slow, "a" * LONG) > STEEPEST * steps_of(slow, "a" * SHORT)

"""How answers and expected answers are read as text."""

from typing import Any

import pytest

from pytest_llmeval.core import MISSING
from pytest_llmeval.evaluators import as_references, as_text, describe_found


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Paris", "Paris"), ("", ""), (7, "7"), (2.50, "2.5"), (1e22, "1e+22"), (True, "true"),
        (False, "false"), (None, None), ([], None), (["Paris"], None), ({}, None), (MISSING, None),
    ],
)  # fmt: skip
def test_scalars_are_text(value: Any, text: str | None) -> None:
    assert as_text(value) == text


@pytest.mark.parametrize(
    ("value", "references"),
    [
        (None, []), ([], []), ("", [""]), ("Paris", ["Paris"]), (7, ["7"]),
        (["Paris", 7, True], ["Paris", "7", "true"]),
        (("a", "b"), ["a", "b"]), ({}, None), (["Paris", None], None), ([["Paris"]], None),
    ],
)  # fmt: skip
def test_references_are_a_scalar_or_a_list_of_scalars(value: Any, references: list[str] | None) -> None:
    assert as_references(value) == references


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "null"), ([], "a list"), ((1,), "a list"), ({}, "an object"), (True, "true"), (3, "number 3"),
        (0.5, "number 0.5"), ("abc", "text 'abc'"), ("it's", 'text "it\'s"'), (MISSING, "nothing"),
        ("x" * 40, f"text '{'x' * 40}'"), ("x" * 41, f"text '{'x' * 40}...'"), ({1}, "a value of type set"),
    ],
)  # fmt: skip
def test_found_value_is_described_briefly(value: Any, found: str) -> None:
    assert describe_found(value) == found

"""Verdicts after import are those that other tools gave, as kept in ``rows``; `regenerate.py` asks the tools anew."""

from collections import Counter

import pytest
from constructs import UNTRIED, answers_of, kind_of
from counterparts import COUNTERPARTS
from import_page import PAGE, written
from replay import IMPORTED, compared, kept, verdicts_of_configuration

from pytest_llmeval.exchange._inspect_ai import PATTERNS
from pytest_llmeval.exchange._ledger import Fate
from pytest_llmeval.exchange._openai_evals import OPERATIONS
from pytest_llmeval.exchange._pydantic_evals import MAKERS
from pytest_llmeval.exchange.promptfoo._assertions import KINDS

DECLARED = {
    **{tool: {*known} for tool, known in COUNTERPARTS.items()},
    "inspect-ai": {*PATTERNS} - {"choice"},
    "openai-evals": {*OPERATIONS},
    "promptfoo": {f"{sign}{each}" for each in KINDS for sign in ("", "not-")},
    "pydantic-evals": {*MAKERS},
}
"""Constructs that importers know, without those that are near whatever they say."""


@pytest.mark.parametrize("tool", sorted(IMPORTED))
def test_imported_constructs_give_the_verdicts_that_the_tool_gave(tool: str) -> None:
    data, imports = kept(tool)
    fates = Counter[str]()
    different = []
    for (construct, own, row), imported in zip(data["rows"], imports, strict=True):
        for answer, fate in compared(imported, answers_of(tool, data["edges"], construct, own), row):
            fates[fate] += 1
            different += [(construct, answer)] if fate == "different" else []
    assert different == []
    assert fates["equal"] > 10 * fates["documented"]
    assert data["tried"]["documented"] > 0
    assert data["tried"].get("different") is None


def test_imported_configurations_give_the_verdicts_that_promptfoo_gave() -> None:
    listed = kept("promptfoo")[0]["configurations"]
    assert [verdicts_of_configuration(config, files)[0] for config, files, _ in listed] == [row for *_, row in listed]


@pytest.mark.parametrize("tool", sorted(IMPORTED))
def test_what_is_without_rows_is_never_the_same(tool: str) -> None:
    untried = UNTRIED.get(tool, [])
    assert [each for each in IMPORTED[tool](untried) if each.fate is Fate.SAME] == []
    without = {name for each in untried for name in (kind_of(each), f"not-{kind_of(each)}")}
    tried = {kind_of(construct) for construct, _, row in kept(tool)[0]["rows"] if "T" in row}
    assert sorted(DECLARED[tool] - without - tried) == []


def test_the_page_has_what_importers_declare_and_what_was_tried() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page

"""The counterparts of what other systems have: every row of ``mappings`` is executed, and every name is on a page."""

import re
import runpy
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from project import ROOT, SHARED
from running import own_loop
from test_docs import blocks, run, write_files

MAPPINGS = sorted((ROOT / "tests" / "mappings").glob("*.md"))
"""Each has the name of the page for authors of that system."""

LISTS = ROOT / "benchmarks" / "published_scores.md"
"""What pages link for the names of other code."""

DOCUMENTS = {"narrative.md": "narrative-json-v3.md", "memory-qa.md": "qa-metrics-and-judges.md"}
"""Page to the document whose names it maps."""

PROSE = {"llm_model", "1", "metrics", "action_layer.category", "__init__", "__init__.py"}
"""What a document quotes that is no name of its own."""

CODE = re.compile(r"`([^`]+)`")
NAME = re.compile(r"[A-Za-z_][\w./-]*\w")
BROKEN = re.compile(r"\bFAILED|\bfailed|\berror:|INTERNALERROR|Traceback|, expected ")


class Row(NamedTuple):
    """A row of a mapping: the original, and what proves its counterpart."""

    line: int
    original: str
    trials: list[str]


def rows(mapping: Path) -> Iterator[Row]:
    """Yield the rows of the table of a mapping."""
    for number, line in enumerate(mapping.read_text(encoding="utf-8").splitlines(), 1):
        original, _, trial = line.strip("| ").partition(" | ")
        if line.startswith("| ") and trial != "try":
            assert CODE.search(trial), f"{mapping.name}:{number}: nothing to try"
            yield Row(number, original, CODE.findall(trial))


def check(trial: str, namespace: dict[str, Any], folder: Path) -> None:
    """Run a command, an import or an expression, which is not false."""
    if trial.startswith(("pytest ", "llmeval ")):
        output = run(trial, folder)
        assert not BROKEN.search(output), output
    elif trial.startswith(("import ", "from ")):
        exec(trial, namespace)
    else:
        value = eval(trial, namespace)
        assert value or value is None or isinstance(value, float)


@pytest.mark.parametrize("mapping", MAPPINGS, ids=lambda mapping: mapping.stem)
def test_every_row_of_a_mapping_holds(mapping: Path, tmp_path: Path) -> None:
    for page in (ROOT / "docs" / mapping.name, mapping):
        write_files(tmp_path, page)
    namespace: dict[str, Any] = {"__name__": "docs"}
    failures = []
    with chdir(tmp_path):
        for block in blocks(mapping):
            if block.language == "python":
                exec(compile(block.text, str(block), "exec"), namespace)
        for row in rows(mapping):
            for trial in row.trials:
                try:
                    check(trial, namespace, tmp_path)
                except Exception as error:  # noqa: BLE001 (one row must not hide the others)
                    failures.append(f"{mapping.name}:{row.line}  {row.original}: {trial}: {error!r}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize(
    "mapping", [each for each in MAPPINGS if each.name not in DOCUMENTS], ids=lambda mapping: mapping.stem
)
def test_every_name_of_a_mapping_is_on_its_page(mapping: Path) -> None:
    page = (ROOT / "docs" / mapping.name).read_text(encoding="utf-8") + LISTS.read_text(encoding="utf-8")
    names = {name for row in rows(mapping) for code in CODE.findall(row.original) for name in NAME.findall(code)[:1]}
    assert {name for name in names if name not in page} == set()


def named(document: Path) -> set[str]:
    """Return the names that a document defines or quotes: of classes, functions, parameters, keys and files."""
    text = document.read_text(encoding="utf-8")
    fences = "".join(re.findall(r"^```.*?^```", text, re.MULTILINE | re.DOTALL))
    patterns = (r"(?:def|class) (\w+)", r'"(\w+)":', r"\b(\w+\.py)\b")
    names = {name for pattern in patterns for name in re.findall(pattern, fences)}
    quoted = CODE.findall(re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    names |= {name.strip('"') for name in quoted if re.fullmatch(r'"?[A-Za-z][\w.-]+"?', name)}
    return {name.removeprefix("Sample.").removeprefix("QAPair.") for name in names - PROSE if name[:5] != "test_"}


@pytest.mark.parametrize("page", DOCUMENTS)
def test_a_page_has_every_name_of_its_document(page: str) -> None:
    document = SHARED / "requirements" / DOCUMENTS[page]
    if not document.is_file():
        pytest.skip("the documents are not beside this repository")
    text = (ROOT / "docs" / page).read_text(encoding="utf-8") + LISTS.read_text(encoding="utf-8")
    assert {name for name in named(document) if name not in text} == set()


def test_the_same_eval_twice_has_the_same_result_and_ours_is_not_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pydantic_evals")
    page = ROOT / "benchmarks" / "daily_jobs.md"
    write_files(tmp_path, page)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    texts = [(tmp_path / f"with_{name}.py").read_text(encoding="utf-8") for name in ("pydantic_evals", "llmeval")]
    assert len(texts[1].splitlines()) <= len(texts[0].splitlines())
    with own_loop():
        theirs, ours = (runpy.run_path(str(tmp_path / f"with_{name}.py")) for name in ("pydantic_evals", "llmeval"))
    monkeypatch.delitem(sys.modules, "shop")
    assert theirs["report"].averages().assertions == 1.0
    assert [gate.outcome for gate in ours["result"].gates] == ["passed"] * 3
    assert [case.outcome for case in ours["result"].cases] == ["passed"] * len(theirs["report"].cases)
